"""The common part of svmlight and Vowpal Wabbit text: the encoder of lines, and the reading of numbers."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np

from tunefree.compiled.functions import compiled
from tunefree.core import rows
from tunefree.stream import keys as dictionary
from tunefree.stream.arrays import number_array
from tunefree.stream.batch import BadRows, Batch, Chunk
from tunefree.stream.keys import load, mix
from tunefree.stream.text import count_line_ends

# Outcomes of reading a token.
OK, LONG, NOT_A_NUMBER, NOT_FINITE, TOO_LARGE = 0, 1, 2, 3, 4
MESSAGES = {  # of kinds of errors: the problem, of a token {}, and the remedy
    NOT_A_NUMBER: ("the value of {} is not a number", "correct the row"),
    NOT_FINITE: ("the value of {} is not finite", "leave out features of unknown value"),
    TOO_LARGE: ("a number of {} is too large", "correct the row"),
}

UNKNOWN = "at least half of the features were never seen in training"

PADDING = 16
TAB, LINE_END, RETURN, BLANK = 9, 10, 13, 32
_PLUS, _MINUS, _POINT, _ZERO = 43, 45, 46, 48
_SMALL_E, _SMALL_I, _SMALL_N, _SMALL_BIT = 101, 105, 110, 32
_POWERS = np.array([float(10**i) for i in range(23)])  # the powers of ten that a double holds exactly
_WHOLE_POWERS = np.array([10**i for i in range(8)], np.uint64)
_NONE, _TOP = np.uint64(0), np.uint64(1 << 63)
_ONES, _EVERY_FOURTH = np.uint64(0x0101010101010101), np.uint64(0x000000FF000000FF)
# Times the lowest bit of a byte that is the highest of it, number i: i + 1 in the highest four bits.
_NUMBERS_OF_BYTES = np.uint64(1 + sum((i + 1) << (53 - 8 * i) for i in range(7)))
_TEN, _CODE_OF_ZERO = np.uint64(10), np.uint64(_ZERO)
_EXACT, _LARGEST = np.uint64(1 << 53), float(np.finfo(np.float64).max)

_NUMBER = re.compile(rb"[+-]?[0-9]*\.?[0-9]*(?:[eE][+-]?[0-9]+)?")  # where one is, as read_number takes it


class Output(NamedTuple):
    """The output arrays of a tokenizer, which allocates nothing itself."""

    reals: Annotated[np.ndarray, "float64[rows, 2]"]  # label, weight
    integers: Annotated[np.ndarray, "int64[rows, 4]"]  # line, entries so far, start and stop of the tag
    keys: Annotated[np.ndarray, "uint64[entries]"]
    values: Annotated[np.ndarray, "float64[entries]"]
    places: Annotated[np.ndarray, "int32[entries, 2]"]  # where each name and its namespace start, of VW text
    errors: Annotated[np.ndarray, "int64[errors, 3]"]  # line, place of the token, kind


class Longs(NamedTuple):
    """Numbers that need more than double arithmetic."""

    places: Annotated[np.ndarray, "int32[places]"]  # how many there are so far, and where each starts
    values: Annotated[np.ndarray, "float64[values]"]  # of each; none in the first run, which notes the places


class Scratch:
    """Arrays that are used again for each chunk of text, because fresh memory costs as much time as tokenizing."""

    def __init__(self) -> None:
        self._arrays: dict[str, np.ndarray] = {}

    def array(self, name: str, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        """An array of any content."""
        old = self._arrays.get(name)
        if old is None or len(old) < shape[0]:
            self._arrays[name] = old = np.empty((shape[0] + shape[0] // 4, *shape[1:]), dtype)
        return old[: shape[0]]


class Prepared(NamedTuple):
    """A chunk that is tokenized, before its features are looked up."""

    lines: Chunk
    data: np.ndarray  # (bytes,) the text, terminated
    output: Output
    scratch: Scratch  # in use for as long as the output


class LineEncoder:
    """Turns lines of text into rows of features, and learns which features there are.

    Threads may :meth:`prepare` several chunks at once, and chunks are encoded one by one, in the order of the stream.
    Features are hashed to 2^hash_bits of them, or kept in an exact dictionary if that is 0.
    """

    messages: ClassVar[dict[int, tuple[str, str]]]  # of each kind of error
    unlabelled: ClassVar[int | None] = None  # the kind of error of rows that lack a label
    has_duplicates: ClassVar[bool] = False  # whether a feature may occur twice in a row

    def __init__(self, hash_bits: int) -> None:
        self.keys = dictionary.create(bits=hash_bits)
        self._spare: list[Scratch] = []  # not in use; several chunks may be in work at once, each with its own

    def prepare(self, lines: Chunk, labelled: bool) -> Prepared:
        """The part of :meth:`encode` that does not depend on other chunks."""
        data = terminated(lines.data)
        try:
            scratch = self._spare.pop()
        except IndexError:  # asked beforehand, another thread may take the last one
            scratch = Scratch()
        return Prepared(lines, data, self._tokenized(data, scratch, labelled), scratch)

    def encode(self, chunk: Chunk | Prepared, learning: bool, bad: BadRows, labelled: bool | None = None) -> Batch:
        """The rows of a chunk of text; new features are learned or, at prediction, left out.

        Rows without a label, where a format has such, are bad if they must be ``labelled`` (by default when learning);
        otherwise their target is null, and a batch in which no row has a label has no target.
        """
        must = learning if labelled is None else labelled
        prepared = chunk if isinstance(chunk, Prepared) else self.prepare(chunk, must)
        lines, data, output, scratch = prepared
        self._report(prepared, bad)
        ids = self._ids_of(prepared, learning)
        if not learning:
            self._note_unknown(prepared, ids, bad)
        block = to_rows(output, ids, self.has_duplicates or self.keys.bits > 0)
        labels, weight = output.reals.T.copy()
        missing = np.isnan(labels)
        target = None if len(labels) and missing.all() else number_array(labels, missing)
        numbers, tags = output.integers[:, 0] + lines.row, self._tags(data, output)
        self._spare.append(scratch)
        return Batch(block, target, weight, numbers, tags, lines.file, lines.position, n_features=self.n_features)

    def _report(self, prepared: Prepared, bad: BadRows) -> None:
        """Report the bad rows."""
        lines, data, output, _ = prepared
        for line, place, kind in output.errors.tolist():
            problem, remedy = self.messages[kind]
            is_unlabelled = kind == self.unlabelled
            if is_unlabelled and bad.skip_unlabelled:
                bad.report_unlabelled(problem, lines.file, lines.row + line)
                continue
            shown, is_binary = token(data, place)
            if is_binary:
                is_unlabelled = False
                problem, remedy = "{} is binary, not text", "check that the file is text and not damaged"
            report = bad.report_unlabelled if is_unlabelled else bad.report
            report(problem.format(shown), lines.file, lines.row + line, None, remedy)

    def _note_unknown(self, prepared: Prepared, ids: np.ndarray, bad: BadRows) -> None:
        """Note rows to predict of whose features at most half are known; texts always have some new words."""
        lines, ends = prepared.lines, prepared.output.integers[:, 1]
        unknown = np.diff(np.append(0, np.cumsum(ids == 0))[ends], prepend=0)
        is_odd = (unknown > 0) & (2 * unknown >= np.diff(ends, prepend=0))
        if is_odd.any():
            row = lines.row + int(prepared.output.integers[is_odd.argmax(), 0])
            bad.note(UNKNOWN, lines.file, row, rows=int(is_odd.sum()))

    def _tokenized(self, data: np.ndarray, scratch: Scratch, labelled: bool) -> Output:
        raise NotImplementedError

    def _ids_of(self, prepared: Prepared, learning: bool) -> np.ndarray:
        """The features of the entries, 0 for unknown ones, unless they are learned."""
        raise NotImplementedError

    def _tags(self, data: np.ndarray, output: Output) -> list[str] | None:
        """The tags of the rows, where a format has such."""
        return None

    @property
    def n_features(self) -> int:
        """The largest feature id there may be so far, plus 1."""
        return dictionary.n_features(self.keys)

    def names(self) -> list[str]:
        """Names by feature id; where features are hashed, numbers of buckets."""
        hashed = [f"(hash {i})" for i in range(1 << self.keys.bits)] if self.keys.bits else None
        return ["(constant)", *(self._known_names() if hashed is None else hashed)]

    def _known_names(self) -> list[str]:
        raise NotImplementedError

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays, and a header that JSON can hold, from which the class method ``restore`` makes the same encoder."""
        raise NotImplementedError


def tokenize(
    tokenizer: Callable[..., None], data: np.ndarray, shortest: int, scratch: Scratch, *options: Any
) -> Output:
    """The output of a tokenizer of whole lines, in scratch arrays; entries have at least ``shortest`` bytes.

    The first run notes the rare numbers that need more than double arithmetic, Python reads them, and a second run
    takes them from there.
    """
    n = count_line_ends(data)
    entries = len(data) // shortest
    # a long number has at least 4 bytes; the first element is a count
    longs = Longs(scratch.array("longs", (len(data) // 4 + 2,), np.int32), np.empty(0))
    sizes = np.zeros(3, np.int64)
    output = Output(
        reals=np.ones((n, 2)),
        integers=np.zeros((n, 4), np.int64),
        keys=scratch.array("keys", (entries,), np.uint64),
        values=scratch.array("values", (entries,), np.float64),
        places=scratch.array("places", (entries, 2), np.int32),
        errors=np.empty((n, 3), np.int64),
    )
    while True:
        longs.places[0] = 0
        tokenizer(data, output, longs, sizes, *options)
        n_longs = int(longs.places[0])
        if not n_longs or len(longs.values):
            break
        longs = longs._replace(values=np.array([_exact(data, place) for place in longs.places[1 : n_longs + 1]]))
    rows_read, entries_read, errors = sizes.tolist()
    lengths = rows_read, rows_read, entries_read, entries_read, entries_read, errors
    return Output(*(array[:n] for array, n in zip(output, lengths, strict=True)))


def _exact(data: np.ndarray, place: int) -> float:
    """The number that starts at a place: as much as :func:`read_number` takes, whatever follows."""
    number = _NUMBER.match(data, place)  # type: ignore[call-overload]
    return float(number[0])


def terminated(data: np.ndarray) -> np.ndarray:
    """The text with a line end, where every scan stops, and PADDING bytes more, for words of eight bytes."""
    end = [] if len(data) and data[-1] == LINE_END else [LINE_END]
    return rows.read_only(np.concatenate([data, np.array(end + [0] * PADDING, np.uint8)]), np.uint8)


def token(data: np.ndarray, place: int) -> tuple[str, bool]:
    """The token that starts at a place, as a message shows it, and whether it holds control characters, as no text."""
    word = (data[place : place + 200].tobytes().split(b"\n")[0].split() or [b""])[0]
    letters = word.decode("ascii", "backslashreplace")
    shown = "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in letters)
    shown = repr(shown if len(shown) <= 40 else shown[:37] + "...").replace("\\\\", "\\")
    return shown, any(byte < BLANK or byte == 127 for byte in word)


def to_rows(output: Output, ids: np.ndarray, merge: bool) -> rows.Block:
    """The rows of an output, whose keys have the ids, without id 0; same ids of a row are summed if ``merge``."""
    features, values = ids, output.values
    pointers = np.concatenate([[0], output.integers[:, 1]])
    known = ids > 0
    if not known.all():
        pointers = np.concatenate([[0], np.cumsum(known)])[pointers]
        features, values = features[known], values[known]
    if merge:
        slots = 8 << int(np.diff(pointers).max(initial=0)).bit_length()
        kept = merge_entries(
            pointers, features, values, np.zeros(slots, np.uint64), np.zeros(slots, np.int64), dictionary.SEED
        )
        features, values = features[:kept], values[:kept]
    return rows.sparse(pointers, features, values.copy())


def byte_at(data, place):
    """A byte; an unsigned place spares the check whether it counts from the end."""
    return data[np.uint64(place)]


def is_blank(byte):
    return byte == BLANK or byte == TAB or byte == RETURN  # compiled, "in" is a loop


def is_sign(byte):
    return byte == _MINUS or byte == _PLUS  # compiled, "in" is a loop


def skip_blanks(data, place):
    while is_blank(byte_at(data, place)):
        place += 1
    return place


def skip_line(data, place):
    """The start of the next line."""
    while byte_at(data, place) != LINE_END:
        place += 1
    return place + 1


def read_digits(data, place, number):
    """Append decimal digits to a number: (number, place of what follows them).

    Eight bytes at a time, without a branch that depends on how many are digits (Langdale, Lemire 2019).
    """
    while True:
        word = load(data, place) - _ONES * _CODE_OF_ZERO  # digits become 0 to 9, the byte after them more
        marks = _non_digits(word)
        if marks != _NONE:
            break
        number = number * np.uint64(10**8) + _eight_digits(word)
        place += 8
    count = bytes_before(marks)
    return number * _WHOLE_POWERS[count] + _first_digits(word, count), place + np.int64(count)


def bytes_before(marks):
    """The number of bytes of a word before the first marked one; marks are at highest bits, and one is there."""
    lowest = marks & (~marks + np.uint64(1))
    return (lowest * _NUMBERS_OF_BYTES >> np.uint64(60)) - np.uint64(1)


def less(word, limit):
    """Marks at the highest bits of the bytes below a limit of at most 128; right up to the first mark."""
    return (word - _ONES * limit) & ~word & (_ONES * np.uint64(0x80))


def equal(word, byte):
    """Marks at the highest bits of the bytes that are equal to one; right up to the first mark."""
    return less(word ^ (_ONES * np.uint64(byte)), np.uint64(1))


def _non_digits(word):
    """Marks at the highest bits of the bytes above 9; right up to the first mark."""
    return ((word + _ONES * np.uint64(0x76)) | word) & (_ONES * np.uint64(0x80))


def _eight_digits(word):
    """The number whose digits are the bytes of a word."""
    word = word * _TEN + (word >> np.uint64(8))
    high, low = word & _EVERY_FOURTH, (word >> np.uint64(16)) & _EVERY_FOURTH
    return (high * np.uint64(0x000F424000000064) + low * np.uint64(0x0000271000000001)) >> np.uint64(32)


def _first_digits(word, count):
    """The number whose digits are the first bytes of a word, fewer than eight."""
    return _eight_digits(word << (np.uint64(56) - np.uint64(8) * count) << np.uint64(8))  # zeros lead


def read_short(data, place):
    """The usual number, like 0.25: (value, place of what follows, the number's own where it is another kind of token).

    It has no branches, and where the fraction starts does not depend on the digits before it, which makes it fast. Of
    a longer fraction it reads seven digits, so that a digit follows.
    """
    whole = np.uint64(byte_at(data, place)) - _CODE_OF_ZERO
    usual = (whole < _TEN) & (byte_at(data, place + 1) == _POINT)
    word = load(data, place + 2) - _ONES * _CODE_OF_ZERO
    count = bytes_before(_non_digits(word) | _TOP)
    value = float(np.int64(whole * _WHOLE_POWERS[count] + _first_digits(word, count))) / _POWERS[count]
    return value, place + np.int64(count + np.uint64(2)) if usual else place


def read_number(data, place):
    """A decimal number, exact to the last bit: (value, place of what follows, kind of the token)."""
    sign = byte_at(data, place)
    start = place + is_sign(sign)
    mantissa, place = read_digits(data, start, np.uint64(0))
    digits, exponent = place - start, 0
    if byte_at(data, place) == _POINT:
        start = place + 1
        mantissa, place = read_digits(data, start, mantissa)
        digits, exponent = digits + place - start, start - place
    letter = byte_at(data, place) | _SMALL_BIT
    if digits > 0 and letter == _SMALL_E:
        exponent, place, digits = _read_exponent(data, place + 1, exponent, digits)
    if digits > 0:
        value, kind = _scaled(mantissa, digits, exponent)
    else:
        value, kind = 0.0, NOT_FINITE if letter in (_SMALL_N, _SMALL_I) else NOT_A_NUMBER
    return -value if sign == _MINUS else value, place, kind


def _read_exponent(data, place, exponent, digits):
    """Add the integer after an "e": (exponent, place of what follows, digits, 0 where there is no integer)."""
    sign = byte_at(data, place)
    start = place + is_sign(sign)
    place, size = start, np.int64(0)
    while byte_at(data, place) >= _ZERO and byte_at(data, place) < _ZERO + 10:
        size = np.int64(min(10 * size + byte_at(data, place) - _ZERO, 99999))  # as good as infinite either way
        place += 1
    return exponent - size if sign == _MINUS else exponent + size, place, digits if place > start else 0


def _scaled(mantissa, digits, exponent):
    """mantissa * 10^exponent and OK where double arithmetic gives the nearest double, else 0 and LONG.

    Mantissa and power exact in double, one operation rounds once (Clinger 1990). Longer mantissas are divided in twice
    the precision, and accepted where the error bound leaves one nearest double.
    """
    if digits > 19 or exponent < -22 or exponent > 22:
        return (0.0, OK) if digits <= 19 and mantissa == 0 else (0.0, LONG)
    if mantissa <= _EXACT:
        if exponent < 0:
            return float(np.int64(mantissa)) / _POWERS[-exponent], OK
        return float(np.int64(mantissa)) * _POWERS[exponent], OK
    if exponent > 0 or mantissa >= _TOP:
        return 0.0, LONG
    return _divided(np.int64(mantissa), _POWERS[-exponent])


def _divided(mantissa, power):
    high = float(mantissa)
    rest = float(mantissa - np.int64(high))
    quotient = high / power
    product, error = _product(quotient, power)
    correction = (((high - product) - error) + rest) / power
    low, up = quotient + correction * (1.0 - 2.0**-49), quotient + correction * (1.0 + 2.0**-49)
    return (low, OK) if low == up else (0.0, LONG)


def _product(a, b):
    """a * b as a double, and its rounding error (Dekker 1971)."""
    a_high = a * 134217729.0
    a_high = a_high - (a_high - a)
    b_high = b * 134217729.0
    b_high = b_high - (b_high - b)
    a_low, b_low = a - a_high, b - b_high
    product = a * b
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


def ends_token(byte, mark):
    """Whether a byte ends a token, where a mark does besides blanks and the line end."""
    return is_blank(byte) or byte == LINE_END or byte == mark  # compiled, "in" is a loop


def read_any(data, place, longs):
    """As :func:`read_number`, of numbers that need more than double arithmetic too."""
    value, stop, kind = read_number(data, place)
    if kind == LONG:
        value, kind = _exact_value(place, longs)
    return value, stop, kind


def read_value(data, start, longs, mark):
    """Any number that a token ends with: (value, place of what follows, kind of error)."""
    value, stop, kind = read_any(data, start, longs)
    if kind == OK and not ends_token(byte_at(data, stop), mark):
        kind = NOT_A_NUMBER
    return value, stop, kind


def _exact_value(place, longs):
    """(value, kind) of a number that needs more than double arithmetic: the first run notes it, the second knows it."""
    i = longs.places[0] + 1
    value, kind = 0.0, OK
    if len(longs.values) == 0:
        longs.places[i] = place
    else:
        while longs.places[i] < place:
            i += 1
        value = longs.values[i - 1]
        kind = OK if np.isfinite(value) else TOO_LARGE
    longs.places[0] = i
    return value, kind


def table_mask(size):
    """The mask of a power of two of slots, at least four times the size of a row."""
    slots = np.uint64(4)
    while slots < np.uint64(4 * size):
        slots = slots << np.uint64(1)
    return slots - np.uint64(1)


def first_slot(key, seed, mask):
    """The place where the search for a key begins in the table of a row; ``seed`` is the seed of the process."""
    return mix(key ^ seed) & mask


@compiled
def merge_entries(
    pointers: Annotated[np.ndarray, "int64[pointers]"],
    features: Annotated[np.ndarray, "int32[entries]"],
    values: Annotated[np.ndarray, "float64[entries]"],
    seen: Annotated[np.ndarray, "uint64[slots]"],
    places: Annotated[np.ndarray, "int64[slots]"],
    seed: int,
) -> int:
    """Add up entries of one row with the same feature, in place; returns how many entries are left.

    ``seen`` is a table of one row's features, each with the number of the row, so that older ones are empty slots;
    ``places`` are their entries.
    """
    kept = 0
    start = pointers[0]
    for i in range(len(pointers) - 1):
        stop = pointers[i + 1]
        mask, stamp = table_mask(stop - start), np.uint64(i + 1)
        for k in range(start, stop):
            feature = np.uint64(features[k])
            slot = first_slot(feature, np.uint64(seed), mask)
            mark = stamp << np.uint64(32) | feature
            while seen[slot] >> np.uint64(32) == stamp and seen[slot] != mark:
                slot = (slot + np.uint64(1)) & mask
            if seen[slot] == mark:
                j = places[slot]
                values[j] = min(max(values[j] + values[k], -_LARGEST), _LARGEST)  # the sum stays finite
            else:
                seen[slot], places[slot] = mark, kept
                features[kept], values[kept] = features[k], values[k]
                kept += 1
        pointers[i + 1] = kept
        start = stop
    return kept
