"""Lines that a stranger may have written cost their row, or end in one line that says where they are."""

import numpy as np
import pyarrow as pa
import pytest

from tunefree.core.errors import DataError
from tunefree.stream.batch import BadRows
from tunefree.stream.jsonlines import read_objects
from tunefree.stream.source import open_source

LONG = b"9" * 400
CASES = {
    "a point in an exponent.svm": (b"1 1:7e30.8\n1 2:3\n", 1, "row 1: the value of '1:7e30.8' is not a number"),
    "a label with two points.svm": (b"7e30.8 1:7\n1 2:3\n", 1, "row 1: the label '7e30.8' is not a number"),
    "many digits and two points.svm": (b"1 1:" + LONG[:30] + b".8.8\n1 2:3\n", 1, "is not a number"),
    "a point in an exponent.vw": (
        b"1 |f a:7e30.8 b:2\n1 |f a:1\n",
        1,
        "row 1: the value of 'a:7e30.8' is not a number",
    ),
    "a weight with two points.vw": (b"1 7e30.8 |f a:1\n1 |f a\n", 1, "row 1: '7e30.8' before the first bar"),
    "deep.jsonl": (b'{"x":1,"y":1}\n{"x":' + b"[" * 9000 + b"]" * 9000 + b',"y":1}\n', 1, "row 2: the line is nested"),
    **{
        f"{n} deep at first.jsonl": (
            b'{"x":' + b"[" * n + b"]" * n + b',"y":1}\n{"x":1,"y":1}\n',
            1,
            "row 1: the line is nested",
        )
        for n in (70, 900)  # between what is read and where Python's recursion ends was a traceback
    },
    "texts of brackets.jsonl": (b'{"x":"' + b"[" * 99 + b'","y":1}\n{"x":"a","y":2,"y":3}\n' * 2, 1, "twice"),
    "deep at first.jsonl": (b'{"x":' + b"[" * 9000 + b'}\n{"x":1,"y":1}\n', 1, "row 1: the line is "),
    "400 digits.jsonl": (b'{"x":1,"y":1}\n{"x":' + LONG + b',"y":1}\n', 1, "row 2, column 'x': the number is infinite"),
    "400 digits, bad row.jsonl": (b'{"x":1,"y":1}\n{"x":-' + LONG + b',"y":1}\n{\n', 1, "row 3: the line is not JSON"),
    "half a pair.jsonl": (b'{"x":"a","y":1}\n{"x":"\\ud800","y":1}\n', 1, "row 2, column 'x': half of a surrogate"),
    "half a pair at first.jsonl": (b'{"x":"\\ud800","y":1}\n{"x":"b","y":1}\n', 1, "row 1, column 'x': half of"),
    "a count and no text.csv": (b"x,y\n1,2\n\xff,2,3\n3,4\n", 2, "row 2: the row has 3 fields, the header 2"),
    "no text and a count.csv": (b"x,y\na\xff,2\nb,2,3\nc,4\n", 1, "row 1, column 'x': 'a�' is not text in"),
    "no text.csv": (b"x,y\na\xff,2\nb,3\n", 1, "row 1, column 'x': 'a�' is not text in UTF-8"),
}


def encoded(path, **options):
    source, bad = open_source(str(path), **options), BadRows(skip=True)
    chunks = source.chunks(bad=bad)
    first = next(chunks)
    encoder = source.encoder(first, "y" if source.kind == "table" else None)
    return sum(len(encoder.encode(chunk, True, bad).numbers) for chunk in (first, *chunks)), bad


@pytest.mark.parametrize("case", CASES)
def test_odd_lines_cost_their_row(tmp_path, case):
    content, good, problem = CASES[case]
    path = tmp_path / case
    path.write_bytes(content)
    found, bad = encoded(path)
    assert found == good and any(problem in message for message in bad.tally.first), bad.tally.first


def test_what_is_nested_has_one_type(tmp_path):
    path = tmp_path / "nested.jsonl"
    path.write_bytes(b'{"n":{"a":1},"y":1}\n{"n":{"a":"s"},"y":1}\n{"n":[1],"y":1}\n{"n":{"a":2},"y":0}\n')
    bad = BadRows(skip=True)
    rows = [row for chunk in open_source(str(path)).chunks(bad=bad) for row in chunk.data.to_pylist()]
    assert [row["n.a"] for row in rows] == [1, 2]
    assert "row 2, column 'n': 's' is not a number" in bad.tally.first[0]
    assert "row 3, column 'n': [1] is not as in the rows before" in bad.tally.first[1] and bad.tally.count == 2


def test_long_numbers_are_read_to_the_last_bit(tmp_path):
    path = tmp_path / "a.svm"
    path.write_bytes(b"1 1:0.1000000000000000055511151231257827021181583404541015625e0 2:7e30\n")
    source = open_source(str(path))
    chunk = next(source.chunks())
    values = source.encoder(chunk, None).encode(chunk, True, BadRows()).rows.values
    assert np.array_equal(values, [0.1, 7e30])


@pytest.mark.parametrize("row", [{"x": "\ud800"}, {"new": "\ud800"}, {"\ud800": 1.0}])
def test_half_a_surrogate_pair_in_an_object_is_named(row):
    with pytest.raises(DataError, match=r"the request, row 1, column .*: half of a surrogate pair"):
        read_objects([row], {"x": pa.string()}, "the request")
