"""Lines that a stranger may have written cost their row, and damaged files are refused with one line."""

import os

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.readers import corpus, outcome
from tests.stream.tabular import numbers, read_tables, records, skipped, standard_input, text, write
from tunefree.core.errors import DataError
from tunefree.stream.batch import BadRows, Position
from tunefree.stream.jsonlines import _LONE_NULL, _PERHAPS_LONE_NULL, read_objects
from tunefree.stream.source import open_source
from tunefree.stream.text import errors_of, read_lines

LONG = b"9" * 400


def nested(depth):
    return b'{"x":' + b"[" * depth + b"]" * depth + b',"y":1}\n'


CASES = {
    "a byte-order mark.svm": (b"\xef\xbb\xbf1 1:7\n1 x:1\n", 1, "row 2: 'x:1' is not index:value"),
    "deep.jsonl": (b'{"x":1,"y":1}\n' + nested(9000), 1, "row 2: the line is nested"),
    # Between what is read and where Python's recursion ends was a traceback.
    "70 deep at first.jsonl": (nested(70) + b'{"x":1,"y":1}\n', 1, "row 1: the line is nested"),
    "900 deep at first.jsonl": (nested(900) + b'{"x":1,"y":1}\n', 1, "row 1: the line is nested"),
    "texts of brackets.jsonl": (b'{"x":"' + b"[" * 99 + b'","y":1}\n{"x":"a","y":2,"y":3}\n' * 2, 1, "twice"),
    "deep at first.jsonl": (b'{"x":' + b"[" * 9000 + b'}\n{"x":1,"y":1}\n', 1, "row 1: the line is "),
    "400 digits.jsonl": (b'{"x":1,"y":1}\n{"x":' + LONG + b',"y":1}\n', 1, "row 2, column 'x': the number is infinite"),
    "400 digits, bad row.jsonl": (b'{"x":1,"y":1}\n{"x":-' + LONG + b',"y":1}\n{\n', 1, "row 3: the line is not JSON"),
    "half a pair.jsonl": (b'{"x":"a","y":1}\n{"x":"\\ud800","y":1}\n', 1, "row 2, column 'x': half of a surrogate"),
    "half a pair at first.jsonl": (b'{"x":"\\ud800","y":1}\n{"x":"b","y":1}\n', 1, "row 1, column 'x': half of"),
    "a count and no text.csv": (b"x,y\n1,2\n\xff,2,3\n3,4\n", 2, "row 2: the row has 3 fields, the header 2"),
    "no text and a count.csv": (b"x,y\na\xff,2\nb,2,3\nc,4\n", 1, "row 1, column 'x': 'a�' is not text in"),
}


@pytest.mark.parametrize("case", CASES)
def test_odd_lines_cost_their_row(tmp_path, case):
    content, good, problem = CASES[case]
    source, bad = open_source(text(tmp_path / case, content)), BadRows(skip=True)
    chunks = source.chunks(bad=bad)
    first = next(chunks)
    encoder = source.encoder(first, "y" if source.kind == "table" else None)
    assert sum(len(encoder.encode(chunk, True, bad).numbers) for chunk in (first, *chunks)) == good
    assert any(problem in message for message in bad.tally.first), bad.tally.first


def test_what_is_nested_has_one_type(tmp_path):
    lines = b'{"n":{"a":1},"y":[1]}\n{"n":{"a":"s"},"y":[]}\n{"n":[1],"y":[1]}\n{"n":{"a":null},"y":[0,"2","NA"]}\n'
    bad = BadRows(skip=True)
    rows = records(open_source(text(tmp_path / "nested.jsonl", lines + b'{"n":null}\n')).chunks(bad=bad))
    assert [row["n.a"] for row in rows] == [1, None, None] and rows[1]["y"] == [0.0, 2.0, None]
    assert "row 2, column 'n': 's' is not a number" in bad.tally.first[0]
    assert "row 3, column 'n': [1] is not as in the rows before" in bad.tally.first[1] and bad.tally.count == 2


@pytest.mark.parametrize(
    ("name", "content", "options", "problem"),
    [
        ("a.csv", b"x,y\n1,2\n", {"delimiter": "ab"}, "the delimiter 'ab' is not one ASCII character"),
        ("a.csv", b"x,y\n1,2\n", {"encoding": "base64"}, "no encoding 'base64' of text; name one such as cp1252"),
        ("a.csv", b"x,y\n\xff,2\n", {"encoding": "ascii"}, "not text in ascii .* name its `encoding`"),
        ("a.csv", b"x,y\n1,2\n", {"escape": "x"}, "`escape` must be 'backslash' or 'quote', not 'x'"),
        ("a.csv", b"x,y\n1,2\n", {"format": "xls"}, "there is no format 'xls'; choose one of arrow, csv"),
        ("a.csv", b"x" * 200_000 + b",y\n1,2\n", {}, r"cannot be read as CSV \(field larger than"),
        ("a.csv", b"x" * 99, {"max_line_bytes": 64}, "a line is longer than 64 bytes"),
        ("a.csv", b'x,"z,y\n1,a,no\n3,b,yes\n5,"c",no\n', {}, "the name of a column holds 3 line ends"),
        ("a.csv", b"PAR1\0\0", {}, "a Parquet or Arrow file, not text; give it its own extension"),
        ("a.log", b"two words\n", {}, "its format cannot be told; pass `format`, one of arrow, csv"),
        ("a.jsonl", b"\n", {}, "the file is empty; give it one JSON object a line"),
        ("a.jsonl", b'[{"x": 1}]', {}, "this is a JSON array, not JSON lines"),
        ("a.csv.zip", b"PK\x03\x04", {}, r"the zip archive cannot be read \(.*unpack it"),
        ("a.csv.zip", b"PK\x05\x06" + bytes(18), {}, "the zip archive has 0 files, not one"),
    ],
)
def test_files_that_cannot_be_read_are_refused(tmp_path, name, content, options, problem):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=problem):
        list(open_source(tmp_path / name, **options).chunks())


def test_what_is_not_there_or_was_read_before_is_named(tmp_path, monkeypatch):
    (tmp_path / "folder").mkdir()
    paths = {str(tmp_path / "folder"): "there is no file in it", os.devnull: "is a pipe or device; redirect it"}
    for path, problem in paths.items():
        with pytest.raises(DataError, match=problem):
            open_source(path)
    with pytest.raises(DataError, match="parquet cannot be read from standard input"):
        next(open_source("-", "parquet").chunks())
    standard_input(monkeypatch, b"PAR1\0\0")
    with pytest.raises(DataError, match="not text; save it to a file"):
        next(open_source("-", "csv").chunks())
    with pytest.raises(DataError, match=r"a: it cannot be read \(.*check the file and its permissions"), errors_of("a"):
        raise PermissionError(13, "Permission denied")
    for name, content in (("csv", b"x,y\n1,2\n"), ("json", b'{"x": 1}\n')):
        standard_input(monkeypatch, content)
        list(open_source("-", name).chunks())
        with pytest.raises(DataError, match=r"has been read already.*save it to a file"):
            next(open_source("-", name).chunks())
    with pytest.raises(DataError, match="the data end before the place to go on from"):
        list(read_lines([text(tmp_path / "a.txt", "short\n")], Position(0, 99)))


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"x": "\ud800"}, "half of a surrogate pair"),
        ({"new": "\ud800"}, "half of a surrogate pair"),
        ({"\ud800": 1.0}, "half of a surrogate pair"),
        ({"new": [1, {"a": 1}]}, r"\[1, .* is not of one type"),
        ({"i": 1.5}, "1.5 is not a whole number of 64 bits"),
        ({"i": 2**63}, "9223372036854775808 is not a whole number of 64 bits"),
    ],
)
def test_values_of_objects_that_do_not_fit_are_named(row, problem):
    with pytest.raises(DataError, match=f"the request, row 1, column .*: {problem}"):
        read_objects([row], {"x": pa.string(), "i": pa.int64()}, "the request")


@pytest.mark.parametrize(
    ("line", "column", "problem"),
    [
        ('{"a": "x", "s": "t"}', "a", "'x' is not a number"),
        ('{"a": true}', "a", "true is not a number"),
        ('{"s": 5}', "s", "5 is not a string"),
        ('{"b": 1}', "b", "1 is not true or false"),
        ('{"a": 1', None, "not JSON"),
        ("[1]", None, "not a JSON object"),
        ('{"a": 1, "a": 2}', None, "a name appears twice"),
        (b'{"s": "\xff"}', None, "not text in UTF-8"),
    ],
)
@pytest.mark.parametrize("block", [10, 1000])
def test_bad_lines_of_json(tmp_path, line, column, problem, block):
    good = b'{"a": 1, "s": "x", "b": true}\n'
    line = line if isinstance(line, bytes) else line.encode()
    file = text(tmp_path / "t.jsonl", good + b"\n" + good + line + b"\n" + good)
    types = {"a": pa.float64(), "s": pa.string(), "b": pa.bool_()}
    with pytest.raises(DataError, match=problem) as caught:
        list(read_tables([file], types=types, block_size=block))
    assert (caught.value.file, caught.value.row, caught.value.column) == (file, 3, column)
    chunks, bad = skipped([file], types=types, block_size=block)
    assert numbers(chunks) == [1, 2, 4] and bad.tally.count == 1
    assert records(chunks) == [{"a": 1.0, "s": "x", "b": True}] * 3


@given(data=st.lists(st.sampled_from(["null", " ", "\n", "\r", "\t", "}", '"', ":", "x", "{"]), max_size=8))
def test_the_quick_look_for_null_between_objects_misses_none(data):
    found = "".join(data).encode()
    assert _PERHAPS_LONE_NULL.search(found) or not _LONE_NULL.search(found)
    assert not _PERHAPS_LONE_NULL.search(b'{"a": null, "b":null, "c": [null,null], "d": "null and void"}\n' * 2)


STRINGS = pa.array(["a", "bc", "def"])
CODED = pa.DictionaryArray.from_arrays(pa.array([2, 0, 1, 2, 1], pa.int32()), STRINGS)
LYING = {  # an array, what the file holds of it, and what instead
    "offset beyond the text": (STRINGS, "<i4", [0, 1, 3, 6], [0, 1, 3, 4573]),
    "offset in between beyond the text": (STRINGS, "<i4", [0, 1, 3, 6], [0, 1, 4573, 6]),
    "negative offset": (STRINGS, "<i4", [0, 1, 3, 6], [0, -7, 3, 6]),
    "offsets that fall": (STRINGS.cast(pa.large_string()), "<i8", [0, 1, 3, 6], [0, 3, 1, 6]),
    "code beyond the dictionary": (CODED, "<i4", [2, 0, 1, 2, 1], [2, 0, 1, 99, 1]),
    "negative code": (CODED, "<i4", [2, 0, 1, 2, 1], [2, 0, -3, 2, 1]),
    "damaged dictionary": (CODED, "<i4", [0, 1, 3, 6], [0, 1, 9**9, 6]),
    "rows without numbers": (pa.array([0.5, 0.25, 4.0]), "<i8", [3, 0], [900, 0]),
    "wrong number of nulls": (pa.array([0.5, None, 4.0]), "<i8", [3, 1], [3, 2]),
}


@pytest.mark.parametrize("lie", LYING)
def test_arrays_that_reach_beyond_their_buffers_are_refused(tmp_path, lie):
    array, dtype, *numbers = LYING[lie]
    true, false = (np.array(some, dtype).tobytes() for some in numbers)
    path = tmp_path / "t.arrows"
    write(path, {"s": array})
    whole = path.read_bytes()
    assert true in whole and sum(c.data.num_rows for c in read_tables([str(path)])) == len(array)
    path.write_bytes(whole.replace(true, false))
    with pytest.raises(DataError, match=r"t.arrows: this is not a whole Arrow file \("):
        list(read_tables([str(path)]))


@pytest.mark.parametrize("suffix", [".feather", ".parquet"])
def test_bits_of_the_metadata_may_flip(tmp_path, suffix):
    """The sizes of columns in Parquet's metadata ended the process, and so did lengths and offsets in Arrow's."""
    whole, path, outcomes = corpus(suffix), tmp_path / f"t{suffix}", []
    first = whole.index(b"schema") if suffix == ".parquet" else 8
    for place in range(first, first + 50) if suffix == ".parquet" else range(first, len(whole), 16):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << place % 7
        path.write_bytes(damaged)
        outcomes.append(outcome(path))
    assert set(outcomes) == {"read", "refused"} and outcomes.count("refused") > len(outcomes) / 10


def test_text_that_is_not_utf8_is_refused(tmp_path):
    columns = {"s": pa.array([b"a", b"\xff", b"c"]).view(pa.string()), "y": pa.array([1.5, 2.5, 3.5])}
    with pytest.raises(DataError, match="not a whole Arrow file .*UTF8"):
        list(read_tables([write(tmp_path / "t.feather", columns)]))
    for table in (pa.record_batch(columns), columns):
        with pytest.raises(DataError, match="UTF8"):
            list(open_source(table).chunks())
