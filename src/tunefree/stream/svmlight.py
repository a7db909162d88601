"""svmlight (libsvm) text: ``label [qid:n] index:value ... [# comment]``, checked to the last byte."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from tunefree import compiled
from tunefree.stream import keys as dictionary
from tunefree.stream import tokens
from tunefree.stream.batch import BadRows, Batch, Lines
from tunefree.stream.tokens import ENTRIES, FINE, LINE_END, NOT_A_NUMBER, NOT_FINITE, ROWS, TOO_LARGE

_COLON, _COMMA, _HASH = 58, 44, 35
_LARGEST_INDEX = np.uint64(2**31 - 1)

# Kinds of errors beside those of tokens.py.
_LABEL, _LABEL_NOT_FINITE, _LABELS, _QUERY, _INDEX, _COLON_MISSING, _ZERO, _OVERFLOW, _REPEATED, _BINARY = range(10, 20)

_MESSAGES = {
    NOT_A_NUMBER: ("the value of {} is not a number", "mend the row"),
    NOT_FINITE: ("the value of {} is not finite", "leave out features of unknown value"),
    TOO_LARGE: ("a number of {} is too large", "mend the row"),
    _LABEL: ("the label {} is not a number", "start every row with its label (0 where it is unknown)"),
    _LABEL_NOT_FINITE: ("the label {} is not finite", "mend the row"),
    _LABELS: ("the row has several labels, {}", "give each row one label"),
    _QUERY: ("the query number of {} is not an integer", "mend the row"),
    _INDEX: ("{} is not index:value, with an index of digits", "mend the row"),
    _COLON_MISSING: ("{} has no colon", "write index:value (a row cut short looks like this)"),
    _ZERO: ("the index of {} is 0", "count features from 1, or allow indices from 0 (zero_based)"),
    _OVERFLOW: ("the index of {} is larger than 2147483647", "number the features anew"),
    _REPEATED: ("an index occurs twice in the row that starts with {}", "give each feature one value"),
    _BINARY: ("{} is followed by a zero byte", "check that the file is text and not damaged"),
}


class SvmlightEncoder:
    """Turns lines of svmlight text into batches.

    Parameters
    ----------
    hash_bits : int, default=0
        0 keeps an exact dictionary of indices; otherwise indices are hashed to 2^hash_bits features, and the values of
        features that meet are added up.
    zero_based : bool, default=False
        Whether 0 is an index.

    Examples
    --------
    >>> from tunefree.stream.batch import BadRows, Lines, Position
    >>> text = np.frombuffer(b"+1 7:0.5 9:2 # a comment\\n-1 9:1\\n", np.uint8)
    >>> encoder = SvmlightEncoder()
    >>> batch = encoder.encode(Lines(text, "example", 1, Position()), learning=True, bad=BadRows())
    >>> batch.target.to_pylist(), batch.rows.features.tolist(), batch.rows.values.tolist()
    ([1.0, -1.0], [1, 2, 2], [0.5, 2.0, 1.0])
    >>> encoder.names()
    ['(constant)', '7', '9']
    """

    def __init__(self, hash_bits: int = 0, zero_based: bool = False) -> None:
        self.keys = dictionary.create(bits=hash_bits)
        self.zero_based = zero_based

    def encode(self, lines: Lines, learning: bool, bad: BadRows) -> Batch:
        """The rows of a chunk of text; new features are learned or, at prediction, left out."""
        data = tokens.closed(lines.data)
        output = tokens.tokenize(_tokenize, data, tokens.count_bytes(data, _COLON), self.zero_based)
        tokens.report(output, data, lines, bad, _MESSAGES)
        self.keys, rows, _ = tokens.to_sparse(self.keys, output, learning, merge=self.keys.bits > 0)
        n = output.counts[ROWS]
        target = pa.array(output.labels[:n])
        return Batch(rows, target, np.ones(n), output.numbers[:n] + lines.row, None, lines.file, lines.position)

    @property
    def n_features(self) -> int:
        """The largest feature id there may be so far, plus 1."""
        return dictionary.n_features(self.keys)

    def names(self) -> list[str]:
        """Names by feature id: the indices."""
        return tokens.hashed_or_known(self.keys, lambda: [str(key) for key in dictionary.save(self.keys).tolist()])

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays and header to be stored."""
        return {"keys": dictionary.save(self.keys)}, {"hash_bits": self.keys.bits, "zero_based": self.zero_based}

    @classmethod
    def restore(cls, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> SvmlightEncoder:
        """The encoder that was stored."""
        encoder = cls(header["hash_bits"], header["zero_based"])
        encoder.keys = dictionary.restore(arrays["keys"], bits=header["hash_bits"])
        return encoder


@compiled.inline
def _ends_token(byte):
    return tokens.is_blank(byte) or byte == LINE_END or byte == _HASH


@compiled.inline
def _read_label(data, place, output):
    """(label, place of what follows, kind of error)"""
    label, place, kind = tokens.read_value(data, place, output)
    if kind == FINE and _ends_token(data[place]):
        return label, place, FINE
    if kind == NOT_FINITE:
        return label, place, _LABEL_NOT_FINITE
    if kind == TOO_LARGE:
        return label, place, TOO_LARGE
    return label, place, _LABELS if kind == FINE and data[place] == _COMMA else _LABEL


@compiled.inline
def _skip_query(data, place):
    """Skip ``qid:n``: (place of what follows, kind of error)."""
    if not (data[place] == 113 and data[place + 1] == 105 and data[place + 2] == 100 and data[place + 3] == _COLON):
        return place, FINE
    _, stop = tokens.read_digits(data, place + 4, np.uint64(0))
    return stop, FINE if stop > place + 4 and _ends_token(data[stop]) else _QUERY


@compiled.inline
def _read_index(data, place, zero_based):
    """``index:``: (index, place of what follows, kind of error)"""
    index, stop = tokens.read_digits(data, place, np.uint64(0))
    if data[stop] == _COLON and stop > place:
        if stop - place > 10 or index > _LARGEST_INDEX:
            return index, stop, _OVERFLOW
        return index, stop + 1, FINE if index > 0 or zero_based else _ZERO
    return index, stop, _COLON_MISSING if stop > place and _ends_token(data[stop]) else _INDEX


@compiled.inline
def _repeats(keys, start, stop, seen, stamp):
    """Whether a key occurs twice among those of a row."""
    mask = tokens.table_mask(stop - start)
    for k in range(start, stop):
        slot = tokens.seen_at(seen, mask, keys[k], stamp)
        if seen[slot, 1] == stamp:
            return True
        seen[slot, 0], seen[slot, 1] = keys[k], stamp
    return False


@compiled.inline
def _read_entries(data, place, start, output, zero_based):
    """Read ``index:value`` to the end of a row: (entries after it, place reached, kind of error)."""
    keys, values = output.keys, output.values
    k, least, ascending = start, np.uint64(0), True
    while True:
        place = tokens.skip_blanks(data, place)
        if data[place] == LINE_END or data[place] == _HASH:
            return k, place, FINE if ascending else _REPEATED
        index, stop, kind = _read_index(data, place, zero_based)
        if kind == FINE:
            value, stop, kind = tokens.read_value(data, stop, output)
            if kind == FINE and not _ends_token(data[stop]):
                kind = NOT_A_NUMBER
        if kind != FINE:
            return k, place, kind
        ascending &= index >= least
        least = index + np.uint64(1)
        keys[k], values[k] = index, value
        k += 1
        place = stop


@compiled.inline
def _read_row(data, place, start, output, zero_based, line):
    """Read one row: (entries after it, place reached, kind of error)."""
    label, stop, kind = _read_label(data, place, output)
    if kind != FINE:
        return start, place, kind
    output.labels[output.counts[ROWS]] = label
    place = tokens.skip_blanks(data, stop)
    stop, kind = _skip_query(data, place)
    if kind != FINE:
        return start, place, kind
    k, place, kind = _read_entries(data, stop, start, output, zero_based)
    if kind == _REPEATED and not _repeats(output.keys, start, k, output.seen, np.uint64(line + 1)):
        kind = FINE
    return k, place, kind


@compiled.entry
def _tokenize(sources: str) -> Any:
    def tokenize(data, output, zero_based):
        """Tokenize whole lines; the last byte is a line end."""
        assert sources
        place, line = 0, 0
        while place < len(data):
            first = tokens.skip_blanks(data, place)
            if data[first] != LINE_END and data[first] != _HASH:
                n, start = output.counts[ROWS], output.counts[ENTRIES]
                k, place, kind = _read_row(data, first, start, output, zero_based, line)
                if kind != FINE:
                    tokens.fail(output, line, first if kind == _REPEATED else place, kind)
                else:
                    output.numbers[n], output.pointers[n + 1] = line, k
                    output.counts[ROWS], output.counts[ENTRIES] = n + 1, k
            place, _ = tokens.skip_line(data, place)
            line += 1

    return tokenize
