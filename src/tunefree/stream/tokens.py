"""Lines of svmlight and Vowpal Wabbit text as arrays: labels, weights, keys and values of features, and errors.

svmlight is ``label [qid:n] index:value ... [# comment]``. Vowpal Wabbit is ``[label [importance [base]]]
['tag]|namespace[:value] feature[:value] ... |namespace ...``, with that program's rules: a word that touches the first
bar is the tag, with or without an apostrophe; a namespace's value multiplies its features; a feature without a value
has the value 1; a bar followed by a blank opens the namespace without a name. Two inputs that it accepts are errors
here: features without a name (``:3``) and a base (initial prediction) other than 0. A tab is a blank everywhere (there,
text before a tab in front of the first bar is ignored). Names may have any bytes except control characters, blanks,
colons and bars. Every byte is checked.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, NamedTuple

import numpy as np

from tunefree.compiled.functions import compiled
from tunefree.core import rows
from tunefree.stream.keys import SEED, finish, fold, load, mix
from tunefree.stream.text import count_line_ends

# Outcomes of reading a token, and kinds of errors.
OK, LONG, NOT_A_NUMBER, NOT_FINITE, TOO_LARGE = 0, 1, 2, 3, 4
_LABEL, _LABEL_NOT_FINITE, _LABELS, _QUERY, _INDEX, _COLON_MISSING, _OVERFLOW, _REPEATED = range(10, 18)  # svmlight
_NUMBER, _HEAD_NOT_FINITE, NO_LABEL, _WEIGHT, _BASE, _MANY, _NO_BAR, _NAME = range(20, 28)  # Vowpal Wabbit

MESSAGES = {  # problem and remedy by kind of error; {} is the token
    NOT_A_NUMBER: ("the value of {} is not a number", "correct the row"),
    NOT_FINITE: ("the value of {} is not finite", "leave out features of unknown value"),
    TOO_LARGE: ("a number of {} is too large", "correct the row"),
    _LABEL: ("the label {} is not a number", "start every row with its label (0 where it is unknown)"),
    _LABEL_NOT_FINITE: ("the label {} is not finite", "correct the row"),
    _LABELS: ("the row has several labels, {}", "give each row one label"),
    _QUERY: ("the query number of {} is not an integer", "correct the row"),
    _INDEX: ("{} is not index:value, with an index of digits", "correct the row"),
    _COLON_MISSING: ("{} has no colon", "write index:value (a row cut short looks like this)"),
    _OVERFLOW: ("the index of {} is larger than 2147483647", "hash features (`hash_bits=20`), or renumber them"),
    _REPEATED: ("an index occurs twice in the row that starts with {}", "give each feature one value"),
    _NUMBER: ("{} before the first bar is not a number", "write [label [importance]] ['tag]| before the features"),
    _HEAD_NOT_FINITE: ("the label or importance {} is not finite", "correct the row"),
    NO_LABEL: ("the row has no label, it starts with {}", "give it one, with a blank between label and bar"),
    _WEIGHT: ("the importance of the row that starts with {} is negative", "give it one from 0"),
    _BASE: ("the base (initial prediction) of the row that starts with {} is not 0", "leave it out"),
    _MANY: ("{} is one word too many before the first bar", "write [label [importance]] ['tag]| before the features"),
    _NO_BAR: ("the row that starts with {} has no bar", "put | before the features"),
    _NAME: ("{} does not start with a feature's name", "write name:value"),
}

PADDING = 16
TAB, LINE_END, RETURN, BLANK = 9, 10, 13, 32
_COLON, _COMMA, _HASH, _BAR, _APOSTROPHE, _CARET = 58, 44, 35, 124, 39, 94
_PLUS, _MINUS, _POINT, _ZERO = 43, 45, 46, 48
_SMALL_E, _SMALL_I, _SMALL_N, _SMALL_BIT = 101, 105, 110, 32
_POWERS = np.array([float(10**i) for i in range(23)])  # the powers of ten that are exact in double precision
_WHOLE_POWERS = np.array([10**i for i in range(8)], np.uint64)
_NONE, _TOP = np.uint64(0), np.uint64(1 << 63)
_ONES, _EVERY_FOURTH = np.uint64(0x0101010101010101), np.uint64(0x000000FF000000FF)
# Multiplied by the highest bit of byte i, it gives i + 1 in the highest four bits.
_NUMBERS_OF_BYTES = np.uint64(1 + sum((i + 1) << (53 - 8 * i) for i in range(7)))
_TEN, _CODE_OF_ZERO = np.uint64(10), np.uint64(_ZERO)
_EXACT, _LARGEST = np.uint64(1 << 53), float(np.finfo(np.float64).max)
_QID, _FOUR_BYTES = np.uint64(int.from_bytes(b"qid:", "little")), np.uint64(0xFFFFFFFF)
_NO_NAME, _CONTROL_LIMIT = np.uint64(0), np.uint64(33)
LARGEST_INDEX, LARGEST_HASHED = 2**31 - 1, 10**19 - 1  # maximum index in svmlight, without and with hashing

_DECIMAL = re.compile(rb"[+-]?[0-9]*\.?[0-9]*(?:[eE][+-]?[0-9]+)?")  # a number as parsed by _read_number


class Output(NamedTuple):
    """The output arrays of a tokenizer, which allocates nothing itself."""

    reals: Annotated[np.ndarray, "float64[rows, 2]"]  # label, weight
    integers: Annotated[np.ndarray, "int64[rows, 4]"]  # line, number of entries so far, start and stop of the tag
    keys: Annotated[np.ndarray, "uint64[entries]"]
    values: Annotated[np.ndarray, "float64[entries]"]
    places: Annotated[np.ndarray, "int32[entries, 2]"]  # offsets of the name and of its namespace, for VW text
    errors: Annotated[np.ndarray, "int64[errors, 3]"]  # line, offset of the token, kind


class Longs(NamedTuple):
    """Numbers with too many digits for double arithmetic."""

    places: Annotated[np.ndarray, "int32[places]"]  # their count so far, then the offset of each
    values: Annotated[np.ndarray, "float64[values]"]  # their values; empty in the first run, which records offsets


class Scratch:
    """Arrays that are reused for each chunk of text, because fresh memory costs as much time as tokenizing."""

    def __init__(self) -> None:
        self._arrays: dict[str, np.ndarray] = {}

    def array(self, name: str, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        """Return an uninitialized array."""
        old = self._arrays.get(name)
        if old is None or len(old) < shape[0]:
            self._arrays[name] = old = np.empty((shape[0] + shape[0] // 4, *shape[1:]), dtype)
        return old[: shape[0]]


def tokenize(data: np.ndarray, scratch: Scratch, is_vw: bool, labelled: bool = True, is_hashed: bool = False) -> Output:
    """Tokenize whole lines into labels and features, in scratch arrays.

    The first run records the rare numbers that need more than double arithmetic. Python parses them, and a second run
    uses their values.
    """
    n = count_line_ends(data)
    entries = len(data) // (2 if is_vw else 4)  # an entry is at least as long as " a", or as " 1:2"
    # A long number has at least 4 bytes. The first element is their count.
    longs = Longs(scratch.array("longs", (len(data) // 4 + 2,), np.int32), np.empty(0))
    seen = scratch.array("seen", (4 if is_vw else int(_table_mask(entries)) + 1,), np.uint64)
    largest = np.array([LARGEST_HASHED if is_hashed else LARGEST_INDEX], np.uint64)
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
        scan(data, output, longs, sizes, is_vw, labelled, largest, seen, SEED)
        n_longs = int(longs.places[0])
        if not n_longs or len(longs.values):
            break
        longs = longs._replace(values=np.array([_exact(data, start) for start in longs.places[1 : n_longs + 1]]))
    rows_read, entries_read, errors = sizes.tolist()
    lengths = rows_read, rows_read, entries_read, entries_read, entries_read, errors
    return Output(*(array[:n] for array, n in zip(output, lengths, strict=True)))


def _exact(data: np.ndarray, start: int) -> float:
    """Parse the number that starts at an offset; any text may follow it."""
    number = _DECIMAL.match(data, start)  # type: ignore[call-overload]
    return float(number[0])


def terminated(data: np.ndarray) -> np.ndarray:
    """Append a line end if it is absent, at which every scan stops, and PADDING bytes for reads of eight-byte words."""
    end = [] if len(data) and data[-1] == LINE_END else [LINE_END]
    return rows.read_only(np.concatenate([data, np.array(end + [0] * PADDING, np.uint8)]), np.uint8)


def token(data: np.ndarray, start: int) -> tuple[str, bool]:
    """Return the token that starts at an offset, formatted for a message, and whether it has control characters."""
    word = (data[start : start + 200].tobytes().split(b"\n")[0].split() or [b""])[0]
    letters = word.decode("ascii", "backslashreplace")
    shown = "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in letters)
    shown = repr(shown if len(shown) <= 40 else shown[:37] + "...").replace("\\\\", "\\")
    return shown, any(byte < BLANK or byte == 127 for byte in word)


def _byte_at(data, place):
    """A byte; an unsigned place spares the check whether it counts from the end."""
    return data[np.uint64(place)]


def _is_blank(byte):
    return byte == BLANK or byte == TAB or byte == RETURN  # compiled, "in" is a loop


def _is_sign(byte):
    return byte == _MINUS or byte == _PLUS  # compiled, "in" is a loop


def _skip_blanks(data, place):
    while _is_blank(_byte_at(data, place)):
        place += 1
    return place


def _skip_line(data, place):
    """The start of the next line."""
    while _byte_at(data, place) != LINE_END:
        place += 1
    return place + 1


def _read_digits(data, place, number):
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
    count = _bytes_before(marks)
    return number * _WHOLE_POWERS[count] + _first_digits(word, count), place + np.int64(count)


def _bytes_before(marks):
    """The number of bytes of a word before the first marked one; marks are at highest bits, and one is there."""
    lowest = marks & (~marks + np.uint64(1))
    return (lowest * _NUMBERS_OF_BYTES >> np.uint64(60)) - np.uint64(1)


def _less(word, limit):
    """Marks at the highest bits of the bytes below a limit of at most 128; right up to the first mark."""
    return (word - _ONES * limit) & ~word & (_ONES * np.uint64(0x80))


def _equal(word, byte):
    """Marks at the highest bits of the bytes that are equal to one; right up to the first mark."""
    return _less(word ^ (_ONES * np.uint64(byte)), np.uint64(1))


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


def _read_short(data, place):
    """The usual number, like 0.25: (value, place of what follows, the number's own where it is another kind of token).

    It has no branches, and where the fraction starts does not depend on the digits before it, which makes it fast. Of
    a longer fraction it reads seven digits, so that a digit follows.
    """
    whole = np.uint64(_byte_at(data, place)) - _CODE_OF_ZERO
    usual = (whole < _TEN) & (_byte_at(data, place + 1) == _POINT)
    word = load(data, place + 2) - _ONES * _CODE_OF_ZERO
    count = _bytes_before(_non_digits(word) | _TOP)
    value = float(np.int64(whole * _WHOLE_POWERS[count] + _first_digits(word, count))) / _POWERS[count]
    return value, place + np.int64(count + np.uint64(2)) if usual else place


def _read_number(data, place):
    """A decimal number, exact to the last bit: (value, place of what follows, kind of the token)."""
    sign = _byte_at(data, place)
    start = place + _is_sign(sign)
    mantissa, place = _read_digits(data, start, np.uint64(0))
    digits, exponent = place - start, 0
    if _byte_at(data, place) == _POINT:
        start = place + 1
        mantissa, place = _read_digits(data, start, mantissa)
        digits, exponent = digits + place - start, start - place
    letter = _byte_at(data, place) | _SMALL_BIT
    if digits > 0 and letter == _SMALL_E:
        exponent, place, digits = _read_exponent(data, place + 1, exponent, digits)
    if digits > 0:
        value, kind = _scaled(mantissa, digits, exponent)
    else:
        value, kind = 0.0, NOT_FINITE if letter in (_SMALL_N, _SMALL_I) else NOT_A_NUMBER
    return -value if sign == _MINUS else value, place, kind


def _read_exponent(data, place, exponent, digits):
    """Add the integer after an "e": (exponent, place of what follows, digits, 0 where there is no integer)."""
    sign = _byte_at(data, place)
    start = place + _is_sign(sign)
    place, size = start, np.int64(0)
    while _byte_at(data, place) >= _ZERO and _byte_at(data, place) < _ZERO + 10:
        size = np.int64(min(10 * size + _byte_at(data, place) - _ZERO, 99999))  # as good as infinite either way
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


def _ends_token(byte, mark):
    """Whether a byte ends a token, where a mark does besides blanks and the line end."""
    return _is_blank(byte) or byte == LINE_END or byte == mark  # compiled, "in" is a loop


def _read_any(data, place, longs):
    """As a number, of numbers that need more than double arithmetic too."""
    value, stop, kind = _read_number(data, place)
    if kind == LONG:
        value, kind = _exact_value(place, longs)
    return value, stop, kind


def _read_value(data, start, longs, mark):
    """Any number that a token ends with: (value, place of what follows, kind of error)."""
    value, stop = _read_short(data, start)
    kind = OK
    if not _ends_token(_byte_at(data, stop), mark) or stop == start:
        value, stop, kind = _read_any(data, start, longs)
        if kind == OK and not _ends_token(_byte_at(data, stop), mark):
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


def _table_mask(size):
    """The mask of a power of two of slots, at least four times the size of a row."""
    slots = np.uint64(4)
    while slots < np.uint64(4 * size):
        slots = slots << np.uint64(1)
    return slots - np.uint64(1)


def _first_slot(key, seed, mask):
    """The place where the search for a key begins in the table of a row; ``seed`` is the seed of the process."""
    return mix(key ^ seed) & mask


def _read_label(data, place, longs):
    """(label, place of what follows, kind of error)"""
    label, stop, kind = _read_any(data, place, longs)
    if kind == NOT_FINITE:
        kind = _LABEL_NOT_FINITE
    elif kind != TOO_LARGE and (kind != OK or not _ends_token(_byte_at(data, stop), _HASH)):
        kind = _LABELS if kind == OK and _byte_at(data, stop) == _COMMA else _LABEL
    return label, stop, kind


def _skip_query(data, place):
    """Skip ``qid:n``: (place of what follows, kind of error)."""
    kind = OK
    if load(data, place) & _FOUR_BYTES == _QID:
        _, stop = _read_digits(data, place + 4, np.uint64(0))
        kind = OK if stop > place + 4 and _ends_token(_byte_at(data, stop), _HASH) else _QUERY
        place = stop if kind == OK else place
    return place, kind


def _index_error(digits, byte):
    """The kind of error of an index, followed by a byte, that is not one followed by a colon."""
    if byte != _COLON or digits == 0:
        return _COLON_MISSING if digits > 0 and _ends_token(byte, _HASH) else _INDEX
    return _OVERFLOW


def _read_entries(data, place, k, output, longs, largest):
    """Read ``index:value`` to the end of a row: (entries after it, place reached, kind of error)."""
    next_index, ascending, kind = np.uint64(0), True, OK
    while True:
        place = _skip_blanks(data, place)
        if _byte_at(data, place) == LINE_END or _byte_at(data, place) == _HASH:
            break
        index, stop = _read_digits(data, place, np.uint64(0))
        if _byte_at(data, stop) != _COLON or stop == place or stop - place > 19 or index > largest:
            kind = _index_error(stop - place, _byte_at(data, stop))
            break
        value, stop, kind = _read_value(data, stop + 1, longs, _HASH)
        if kind != OK:
            break
        ascending &= index >= next_index
        next_index = index + np.uint64(1)
        output.keys[k], output.values[k] = index, value
        k += 1
        place = stop
    return k, place, kind if kind != OK or ascending else _REPEATED


def _repeats(keys, seen, seed, start, stop):
    """Whether a key occurs twice in a row; ``seen`` is a hash table with any content."""
    mask = _table_mask(stop - start)
    seen[: np.int64(mask) + 1] = 0
    repeated = False
    for k in range(start, stop):
        mark = keys[k] + np.uint64(1)
        slot = _first_slot(mark, seed, mask)
        while seen[slot] != 0 and seen[slot] != mark:
            slot = (slot + np.uint64(1)) & mask
        repeated |= seen[slot] == mark
        seen[slot] = mark
    return repeated


def _read_svmlight(data, place, k, n, output, longs, largest, seen, seed):
    """Read row n, whose entries begin at k: (entries after it, place of the error, kind of error)."""
    start, first = place, k
    output.reals[n, 0], stop, kind = _read_label(data, place, longs)
    if kind == OK:
        place, kind = _skip_query(data, _skip_blanks(data, stop))
    if kind == OK:
        k, place, kind = _read_entries(data, place, k, output, longs, largest)
    if kind == _REPEATED:
        if _repeats(output.keys, seen, np.uint64(seed), first, k):
            place = start
        else:
            kind = OK
    return k, place, kind


def _read_name(data, place, seed):
    """The key of a name that ends at a control character, blank, colon or bar: (key, place of what follows)."""
    key, start = seed, place
    while True:
        word = load(data, place)
        marks = _less(word, _CONTROL_LIMIT) | _equal(word, _COLON) | _equal(word, _BAR)
        if marks != 0:
            break
        key = fold(key, word)
        place += 8
    count = _bytes_before(marks)
    key = fold(key, word & ((np.uint64(1) << np.uint64(8) * count) - np.uint64(1)))
    place += np.int64(count)
    return finish(key, place - start), place


def _find_bar(data, place):
    while _byte_at(data, place) != _BAR and _byte_at(data, place) != LINE_END:
        place += 1
    return place


def _end_of_word(data, place):
    while not _ends_token(_byte_at(data, place), _BAR):
        place += 1
    return place


def _read_head(data, place, bar, n, output, longs, labelled):
    """Read the label, importance, base and tag of row n, up to the first bar: (place of the error, kind of error)."""
    reals, integers, start = output.reals, output.integers, place
    reals[n, 0], reals[n, 1], integers[n, 2], integers[n, 3] = np.nan, 1.0, 0, 0
    count, base, kind = 0, 0.0, OK
    while True:
        place = _skip_blanks(data, place)
        if place >= bar or kind != OK:
            break
        stop = _end_of_word(data, place)
        if stop == bar or _byte_at(data, place) == _APOSTROPHE:
            integers[n, 2], integers[n, 3] = place + (_byte_at(data, place) == _APOSTROPHE), stop
        elif count == 3 or integers[n, 3] > 0:
            kind = _MANY
        else:
            value, end, kind = _read_any(data, place, longs)
            if kind == NOT_A_NUMBER or (kind == OK and end != stop):
                kind = _NUMBER
            if count == 2:
                base = value
            else:
                reals[n, count] = value
            count += 1
        place = place if kind != OK else stop
    if kind == NOT_FINITE:
        kind = _HEAD_NOT_FINITE
    elif kind == OK:
        place = start
        if count == 0 and labelled:
            kind = NO_LABEL
        elif reals[n, 1] < 0:
            kind = _WEIGHT
        elif base != 0:
            kind = _BASE
    return place, kind


def _read_features(data, place, k, output, longs):
    """Read from the first bar to the end of a row: (entries after it, place reached, kind of error)."""
    namespace, factor, space, kind = _NO_NAME, 1.0, place, OK
    while True:
        place = _skip_blanks(data, place)
        if _byte_at(data, place) == LINE_END:
            break
        opens = _byte_at(data, place) == _BAR
        start = place + 1 if opens else place
        key, stop = _read_name(data, start, _NO_NAME if opens else namespace)
        value = 1.0
        if _byte_at(data, stop) == _COLON and stop > start:
            value, stop, kind = _read_value(data, stop + 1, longs, _BAR)
        elif not _ends_token(_byte_at(data, stop), _BAR) or (stop == start and not opens):
            kind = _NAME
        if kind != OK:
            break
        if opens:
            namespace, factor, space = key, value, start
        else:
            output.keys[k], output.values[k] = key, value * factor
            output.places[k, 0], output.places[k, 1] = place, space
            k += 1
            if not np.isfinite(value * factor):
                kind = TOO_LARGE
                break
        place = stop
    return k, place, kind


def _read_vw(data, place, k, n, output, longs, labelled):
    """Read row n, whose entries begin at k: (entries after it, place of the error, kind of error)."""
    bar = _find_bar(data, place)
    if _byte_at(data, bar) == LINE_END:
        return k, place, _NO_BAR
    place, kind = _read_head(data, place, bar, n, output, longs, labelled)
    return _read_features(data, bar, k, output, longs) if kind == OK else (k, place, kind)


@compiled
def scan(
    data: Annotated[np.ndarray, "uint8[bytes]"],
    output: Output,
    longs: Longs,
    sizes: Annotated[np.ndarray, "int64[3]"],
    is_vw: bool,
    labelled: bool,
    largest: Annotated[np.ndarray, "uint64[1]"],
    seen: Annotated[np.ndarray, "uint64[slots]"],
    seed: int,
) -> None:
    """Tokenize whole lines, whose last byte is a line end; sizes become the numbers of rows, entries, and errors."""
    place, line, n, entries, n_errors = 0, 0, 0, 0, 0
    integers, errors = output.integers, output.errors
    while place < len(data) - PADDING:
        place = _skip_blanks(data, place)
        if _byte_at(data, place) != LINE_END and (is_vw or _byte_at(data, place) != _HASH):
            if is_vw:
                k, place, kind = _read_vw(data, place, entries, n, output, longs, labelled)
            else:
                k, place, kind = _read_svmlight(data, place, entries, n, output, longs, largest[0], seen, seed)
            if kind == OK:
                integers[n, 0], integers[n, 1] = line, k
                n, entries = n + 1, k
            else:
                errors[n_errors, 0], errors[n_errors, 1], errors[n_errors, 2] = line, place, kind
                n_errors += 1
        place = _skip_line(data, place)
        line += 1
    sizes[0], sizes[1], sizes[2] = n, entries, n_errors


def _copy_name(data, place, names, stop):
    """Copy a name where there is capacity for it; returns the place behind its copy."""
    while _byte_at(data, place) > BLANK and _byte_at(data, place) != _COLON and _byte_at(data, place) != _BAR:
        if stop < len(names):
            names[stop] = _byte_at(data, place)
        place += 1
        stop += 1
    return stop


@compiled
def copy_names(
    data: Annotated[np.ndarray, "uint8[bytes]"],
    ids: Annotated[np.ndarray, "int32[entries]"],
    places: Annotated[np.ndarray, "int32[entries, 2]"],
    first: int,
    sizes: Annotated[np.ndarray, "int64[new]"],
    names: Annotated[np.ndarray, "uint8[names]"],
) -> int:
    """Copy the names of the features from id ``first`` on, which appear in the order of their ids.

    Fills in their sizes and returns the sum; copies the names where there is capacity for them.
    """
    total, new = 0, 0
    for k in range(len(ids)):
        if ids[k] == first + new:
            begin = total
            total = _copy_name(data, places[k, 1], names, total)
            if total > begin:
                if total < len(names):
                    names[total] = _CARET
                total += 1
            total = _copy_name(data, places[k, 0], names, total)
            sizes[new] = total - begin
            new += 1
    return total


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
        mask, stamp = _table_mask(stop - start), np.uint64(i + 1)
        for k in range(start, stop):
            feature = np.uint64(features[k])
            slot = _first_slot(feature, np.uint64(seed), mask)
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
