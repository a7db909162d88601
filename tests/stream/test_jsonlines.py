"""JSON lines: what is read, and which lines are refused."""

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.stream.tabular import read_tables
from tunefree.core.errors import DataError
from tunefree.stream.batch import BadRows
from tunefree.stream.jsonlines import _LONE_NULL, _PERHAPS_LONE_NULL

from .tabular import numbers, records, skipped, text


def test_json_values(tmp_path):
    file = text(tmp_path / "t.json", '{"a": 1, "d": "2020-01-01"}\n\n{"d": null, "a": 2.5}\r\n{"later": 1}\n')
    chunks = list(read_tables([file]))
    assert records(chunks)[:2] == [{"a": 1.0, "d": "2020-01-01"} | records(chunks)[0], records(chunks)[1]]
    assert chunks[0].data.schema.field("d").type == pa.string()
    assert chunks[0].data.column("a").to_pylist() == [1.0, 2.5, None]


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


def test_what_is_no_object_where_objects_were_is_a_bad_row_and_null_is_none(tmp_path):
    rows = ['{"n": {"a": {"b": 1}}}', '{"n": {"a": null}}', '{"n": {"a": 6}}', '{"n": {"a": {"b": 2}}}', "{"]
    found = list(read_tables([text(tmp_path / "t.jsonl", "\n".join(rows))], bad=BadRows(skip=True)))
    assert [row["n.a.b"] for row in records(found)] == [1.0, None, 2.0]


@given(data=st.lists(st.sampled_from(["null", " ", "\n", "\r", "\t", "}", '"', ":", "x", "{"]), max_size=8))
def test_the_quick_look_for_null_between_objects_misses_none(data):
    found = "".join(data).encode()
    assert _PERHAPS_LONE_NULL.search(found) or not _LONE_NULL.search(found)
    assert not _PERHAPS_LONE_NULL.search(b'{"a": null, "b":null, "c": [null,null], "d": "null and void"}\n' * 2)
