"""What the tokenizers of svmlight and Vowpal Wabbit text share: numbers, errors, and sparse rows from keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tunefree import compiled, rows
from tunefree.errors import DataError
from tunefree.stream import keys as dictionary
from tunefree.stream.batch import BadRows, Lines

# What a look at a token finds.
FINE, LONG, NOT_A_NUMBER, NOT_FINITE, TOO_LARGE = 0, 1, 2, 3, 4
# Counters of an output.
ROWS, ENTRIES, LONGS, ERRORS = 0, 1, 2, 3

TAB, LINE_END, RETURN, BLANK = 9, 10, 13, 32
_PLUS, _MINUS, _POINT, _ZERO = 43, 45, 46, 48
_SMALL_E, _SMALL_I, _SMALL_N, _SMALL_BIT = 101, 105, 110, 32
_POWERS = np.array([float(10**i) for i in range(23)])  # the powers of ten that a double holds exactly
_TEN, _CODE_OF_ZERO = np.uint64(10), np.uint64(_ZERO)
_EXACT, _SIGNED = np.uint64(1 << 53), np.uint64(1 << 63)


class Output(NamedTuple):
    """What a tokenizer writes; it allocates nothing itself."""

    counts: np.ndarray  # (4,) int64: rows, entries, long numbers, errors
    labels: np.ndarray  # (lines,) float64
    weights: np.ndarray  # (lines,) float64
    numbers: np.ndarray  # (lines,) int64: the line of each row
    pointers: np.ndarray  # (lines + 1,) int64
    tags: np.ndarray  # (lines, 2) int64: start and stop of each row's tag
    keys: np.ndarray  # (entries,) uint64
    values: np.ndarray  # (entries,) float64
    places: np.ndarray  # (entries,) int32: where each name starts, if names are kept
    longs: np.ndarray  # int32: where the numbers start that need more than double arithmetic
    exact: np.ndarray  # float64: their values, empty at the first attempt
    errors: np.ndarray  # (lines, 3) int64: line, place of the token, kind
    seen: np.ndarray  # (m, 2) uint64: table of one row's keys, m a power of two at least twice the longest row


def tokenize(
    tokenizer: Callable[[np.ndarray, Output, bool], None], data: np.ndarray, entries: int, option: bool
) -> Output:
    """Run a tokenizer over whole lines.

    Numbers that need more than double arithmetic to be exact to the last bit (more than 19 digits, large exponents)
    are rare: the first run notes where they are, Python reads them, and a second run takes them from there.
    """
    ends = np.flatnonzero(data == LINE_END)
    longest = int(np.diff(ends, prepend=-1).max(initial=0))
    n = len(ends)
    output = Output(
        counts=np.zeros(4, np.int64),
        labels=np.empty(n),
        weights=np.empty(n),
        numbers=np.empty(n, np.int64),
        pointers=np.zeros(n + 1, np.int64),
        tags=np.zeros((n, 2), np.int64),
        keys=np.empty(entries, np.uint64),
        values=np.empty(entries),
        places=np.empty(entries, np.int32),
        longs=np.empty(len(data) // 4 + 1, np.int32),  # such a number has at least 4 characters
        exact=np.empty(0),
        errors=np.empty((n, 3), np.int64),
        seen=np.zeros((1 << (longest + 2).bit_length(), 2), np.uint64),
    )
    tokenizer(data, output, option)
    count = int(output.counts[LONGS])
    if count:
        exact = np.array([_exact(data, int(place)) for place in output.longs[:count]])
        output = output._replace(exact=exact)
        output.counts[:] = 0
        tokenizer(data, output, option)
    return output


def _exact(data: np.ndarray, place: int) -> float:
    """The number that starts at a place; the tokenizer has seen that it is one."""
    stop = place
    while chr(data[stop]) in "+-.0123456789eE":
        stop += 1
    return float(data[place:stop].tobytes())


def closed(data: np.ndarray) -> np.ndarray:
    """The text with a line end at its end, where every scan stops."""
    if len(data) and data[-1] == LINE_END:
        return rows.read_only(data, np.uint8)
    return rows.read_only(np.append(data, np.uint8(LINE_END)), np.uint8)


def count_bytes(data: np.ndarray, byte: int) -> int:
    """How often a byte occurs."""
    return sum(int(np.count_nonzero(data[i : i + 65536] == byte)) for i in range(0, len(data), 65536))


def token(data: np.ndarray, place: int) -> str:
    """The token that starts at a place, as a message shows it."""
    text = data[place : place + 200].tobytes().split(b"\n")[0]
    words = text.split()
    word = words[0] if words else b""
    shown = word.decode("ascii", "backslashreplace")
    shown = "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in shown)
    return repr(shown if len(shown) <= 40 else shown[:37] + "...").replace("\\\\", "\\")


def is_binary(data: np.ndarray, place: int) -> bool:
    """Whether a token holds bytes that no text has."""
    word = (data[place : place + 200].tobytes().split(b"\n")[0].split() or [b""])[0]
    return any(byte < BLANK or byte == 127 for byte in word)


def report(
    output: Output, data: np.ndarray, lines: Lines, bad: BadRows, messages: dict[int, tuple[str, str]]
) -> None:
    """Tell of the bad rows; ``messages`` holds for each kind the problem, with ``{}`` for the token, and a remedy."""
    for line, place, kind in output.errors[: output.counts[ERRORS]].tolist():
        problem, remedy = messages[kind]
        if is_binary(data, place):
            problem, remedy = "{} is binary, not text", "check that the file is text and not damaged"
        bad.report(problem.format(token(data, place)), lines.file, lines.row + line, None, remedy)


def to_sparse(
    keys: dictionary.Keys, output: Output, learning: bool, merge: bool
) -> tuple[dictionary.Keys, rows.Sparse, np.ndarray]:
    """Give the keys of an output their ids.

    Returns the dictionary, the rows, and the ids of all entries as they came. New features are dropped unless
    ``learning``. With ``merge`` entries of one row with the same id become one that is their sum; without it they
    must be different already.
    """
    n, size = output.counts[ROWS], output.counts[ENTRIES]
    keys, ids = dictionary.lookup(keys, output.keys[:size], learning)
    features, values, pointers = ids, output.values[:size], output.pointers[: n + 1]
    if not learning and not ids.all():
        known = ids > 0
        pointers = np.concatenate([[0], np.cumsum(known)])[pointers]
        features, values = features[known], values[known]
    if merge:
        features, pointers = features.copy(), pointers.copy()
        values = values.copy() if values.base is None else values
        kept = _merge(pointers, features, values, output.seen)
        features, values = features[:kept], values[:kept]
    return keys, rows.sparse(pointers, features, values), ids


@compiled.inline
def is_blank(byte):
    return byte == BLANK or byte == TAB or byte == RETURN


@compiled.inline
def skip_blanks(data, place):
    while is_blank(data[place]):
        place += 1
    return place


@compiled.inline
def skip_line(data, place):
    """The start of the next line, and whether the rest of this one holds a zero byte."""
    binary = False
    while data[place] != LINE_END:
        binary |= data[place] == 0
        place += 1
    return place + 1, binary


@compiled.inline
def read_digits(data, place, number):
    """Append decimal digits to a number: (number, place of what follows them)."""
    digit = np.uint64(data[place]) - _CODE_OF_ZERO
    while digit < _TEN:
        number = number * _TEN + digit
        place += 1
        digit = np.uint64(data[place]) - _CODE_OF_ZERO
    return number, place


@compiled.inline
def read_number(data, place):
    """A decimal number, exact to the last bit: (value, place of what follows, kind of the token)."""
    negative = data[place] == _MINUS
    if negative or data[place] == _PLUS:
        place += 1
    start = place
    mantissa, place = read_digits(data, place, np.uint64(0))
    digits, exponent = place - start, 0
    if data[place] == _POINT:
        start = place + 1
        mantissa, place = read_digits(data, start, mantissa)
        digits, exponent = digits + place - start, start - place
    if digits == 0:
        letter = data[start] | _SMALL_BIT
        return 0.0, place, NOT_FINITE if letter == _SMALL_N or letter == _SMALL_I else NOT_A_NUMBER
    if data[place] | _SMALL_BIT == _SMALL_E:
        power, place = _read_exponent(data, place + 1)
        if place < 0:
            return 0.0, -place, NOT_A_NUMBER
        exponent += power
    value, kind = _scaled(mantissa, digits, exponent)
    return -value if negative else value, place, kind


@compiled.inline
def _read_exponent(data, place):
    """The integer after an "e": (exponent, place of what follows, negative where there is no integer)."""
    negative = data[place] == _MINUS
    if negative or data[place] == _PLUS:
        place += 1
    power, stop = read_digits(data, place, np.uint64(0))
    if stop == place:
        return 0, -place
    power = np.int64(power) if stop - place < 6 else 99999  # as good as infinite either way
    return -power if negative else power, stop


@compiled.inline
def _scaled(mantissa, digits, exponent):
    """mantissa * 10^exponent and FINE where double arithmetic gives the nearest double, else 0 and LONG.

    Mantissa and power exact in double, one operation rounds once (Clinger 1990). Longer mantissas are divided in twice
    the precision, and accepted where the error bound leaves one nearest double.
    """
    if digits > 19 or exponent < -22 or exponent > 22:
        return (0.0, FINE) if digits <= 19 and mantissa == 0 else (0.0, LONG)
    if mantissa <= _EXACT:
        if exponent < 0:
            return float(mantissa) / _POWERS[-exponent], FINE
        return float(mantissa) * _POWERS[exponent], FINE
    if exponent > 0 or mantissa >= _SIGNED:
        return 0.0, LONG
    return _divided(np.int64(mantissa), _POWERS[-exponent])


@compiled.inline
def _divided(mantissa, power):
    high = float(mantissa)
    rest = float(mantissa - np.int64(high))
    quotient = high / power
    product, error = _product(quotient, power)
    correction = (((high - product) - error) + rest) / power
    low, up = quotient + correction * (1.0 - 2.0**-49), quotient + correction * (1.0 + 2.0**-49)
    return (low, FINE) if low == up else (0.0, LONG)


@compiled.inline
def _product(a, b):
    """a * b as a double and what it lacks (Dekker 1971)."""
    a_high = a * 134217729.0
    a_high = a_high - (a_high - a)
    b_high = b * 134217729.0
    b_high = b_high - (b_high - b)
    a_low, b_low = a - a_high, b - b_high
    product = a * b
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


@compiled.inline
def recall(output, place):
    """The value of a long number: noted at the first run, known at the second: (value, kind)."""
    i = output.counts[LONGS]
    if len(output.exact) == 0:
        output.longs[i] = place
        output.counts[LONGS] = i + 1
        return 0.0, FINE
    while output.longs[i] < place:
        i += 1
    output.counts[LONGS] = i
    value = output.exact[i]
    return value, FINE if np.isfinite(value) else TOO_LARGE


@compiled.inline
def read_value(data, place, output):
    """As :func:`read_number`, long numbers included."""
    value, stop, kind = read_number(data, place)
    if kind == LONG:
        value, kind = recall(output, place)
    return value, stop, kind


@compiled.inline
def fail(output, line, place, kind):
    """Note a bad row."""
    i = output.counts[ERRORS]
    output.errors[i, 0], output.errors[i, 1], output.errors[i, 2] = line, place, kind
    output.counts[ERRORS] = i + 1


@compiled.inline
def seen_at(seen, mask, key, stamp):
    """The slot of a key in the table of one row, whose slots hold a key and a stamp; older stamps are empty slots."""
    slot = ((key * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32)) & mask
    while seen[slot, 1] >= stamp and seen[slot, 0] != key:
        slot = (slot + np.uint64(1)) & mask
    return slot


@compiled.inline
def table_mask(size):
    """The mask of a power of two of slots, at least twice the size of a row."""
    slots = np.uint64(4)
    while slots < np.uint64(2 * size):
        slots = slots << np.uint64(1)
    return slots - np.uint64(1)


@compiled.entry
def _merge(sources: str) -> Any:
    def merge(pointers, features, values, seen):
        """Add up entries of one row with the same feature, in place; returns how many entries are left."""
        assert sources
        seen[:, 1] = 0
        kept = 0
        start = pointers[0]
        for i in range(len(pointers) - 1):
            stop, begin = pointers[i + 1], kept
            mask = table_mask(stop - start)
            for k in range(start, stop):
                slot = seen_at(seen, mask, np.uint64(features[k]), np.uint64(begin + 1))
                if seen[slot, 1] > np.uint64(begin):
                    values[np.int64(seen[slot, 1]) - 1] += values[k]
                else:
                    seen[slot, 0], seen[slot, 1] = np.uint64(features[k]), np.uint64(kept + 1)
                    features[kept], values[kept] = features[k], values[k]
                    kept += 1
            pointers[i + 1] = kept
            start = stop
        return kept

    return merge


def hashed_or_known(keys: dictionary.Keys, known: Callable[[], list[str]]) -> list[str]:
    """Names by feature id: those of the features, or numbered buckets where the features are hashed."""
    if keys.bits:
        return ["(constant)", *(f"(hash {i})" for i in range(1 << keys.bits))]
    return ["(constant)", *known()]


def exceeded(error: DataError, lines: Lines) -> DataError:
    """The error of a dictionary that is full, with its place."""
    return DataError(error.problem, lines.file, lines.row, None, error.remedy)
