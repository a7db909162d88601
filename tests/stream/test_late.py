"""Columns that first come later in a stream, and columns of structs and lists."""

import json

import numpy as np
import pytest

from tests.stream.tabular import read_tables
from tunefree.stream.batch import BadRows
from tunefree.stream.encoder import TableEncoder

from .tabular import named_rows, text

LONG = "a text of more than forty characters, in which there are spaces"
ROWS = [
    {"x": 1.0},
    {"x": 2.0, "n": None, "s": "?"},
    {"x": 0.5, "s": "red", "n": 7},
    {"x": 3.0, "n": -2.5, "b": True, "day": "2024-01-31"},
    {"x": 4.0, "s": "blue", "day": "2024-03-02", "tags": ["a", "b", "a"], "v": [1.5, 0.0, 2]},
    {"x": 5.0, "o": {"p": 3, "q": {"r": "deep"}}, "note": LONG, "tags": ["b"]},
    {"x": 6.0, "s": "red", "o": {"q": {"r": "deep", "late": 4}}, "v": [0.5]},
]
EXPECTED = [
    {"x": 1.0},
    {"x": 2.0},
    {"x": 0.5, "s=red": 1.0, "n": 7.0},
    {"x": 3.0, "n": -2.5, "b=true": 1.0, "day[year=2024]": 1.0, "day[month=1]": 1.0, "day[weekday=3]": 1.0},
    {"x": 4.0, "s=blue": 1.0, "day[days]": 31.0, "day[year=2024]": 1.0, "day[month=3]": 1.0, "day[weekday=6]": 1.0}
    | {"tags=a": np.log2(3.0), "tags=b": 1.0, "v[0]": 1.5, "v[2]": 2.0},
    {"x": 5.0, "o.p": 3.0, "o.q.r=deep": 1.0, "tags=b": 1.0},
    {"x": 6.0, "s=red": 1.0, "o.q.r=deep": 1.0, "o.q.late": 4.0, "v[0]": 0.5},
]


def lines(rows):
    return "\n".join(map(json.dumps, rows)) + "\n"


def read(files, bad=None, encoder=None, **options):
    """The encoder of files, and the rows by the names of their features."""
    rows, bad = [], bad or BadRows()
    for chunk in read_tables(files, bad=bad, types=encoder.types() if encoder else {}, **options):
        encoder = encoder or TableEncoder.infer(
            chunk._replace(data=chunk.data.select(["x"])), typed=not files[0].endswith(".csv")
        )
        rows += named_rows(encoder, encoder.encode(chunk, True, bad))
    return encoder, rows


def without_words(rows):
    """Rows without the words of the text."""
    return [{name: value for name, value in row.items() if not name.startswith("note=")} for row in rows]


@pytest.fixture
def narrow(monkeypatch):
    """The columns of JSON are found from the first line alone."""
    from tunefree.stream import jsonlines, text

    monkeypatch.setattr(jsonlines, "read_sample", lambda file: text.read_sample(file).split(b"\n")[0] + b"\n")


def test_columns_that_come_later_are_features_from_their_first_value_on(tmp_path, narrow):
    encoder, rows = read([text(tmp_path / "t.jsonl", lines(ROWS))])
    assert without_words(rows) == EXPECTED
    assert any(name.startswith("note=") for name in rows[5])
    names = ["n", "s", "b", "day", "tags", "v", "note", "o.p", "o.q.r", "o.q.late"]
    assert [column.name for column in encoder.columns[1:]] == names
    assert [column.since for column in encoder.columns[1:]] == [3, 3, 4, 4, 5, 5, 6, 6, 6, 7]


@pytest.mark.parametrize("size", [10, 60, 200])
def test_where_a_stream_is_cut_makes_no_difference(tmp_path, narrow, size):
    file = text(tmp_path / "t.jsonl", lines(ROWS * 3))
    (whole, rows), (cut, of_cut) = read([file]), read([file], block_size=size)
    assert of_cut == rows
    (arrays, header), (of_whole, header_of_whole) = cut.state(), whole.state()
    assert header == header_of_whole and all((arrays[name] == of_whole[name]).all() for name in arrays)


def test_an_encoder_that_is_restored_goes_on(tmp_path, narrow):
    first, second = (text(tmp_path / f"{k}.jsonl", lines(ROWS[k:] if k else ROWS[:4])) for k in (0, 4))
    whole, rows = read([text(tmp_path / "t.jsonl", lines(ROWS))])
    half, before = read([first])
    arrays, header = half.state()
    restored = TableEncoder.restore(arrays, json.loads(json.dumps(header)))
    encoder, after = read([second], encoder=restored)
    assert [*before, *after] == rows and encoder.state()[1] == whole.state()[1]


def test_later_files_may_have_further_columns(tmp_path):
    files = [text(tmp_path / "a.csv", "x\n1\n2\n"), text(tmp_path / "b.csv", "n,x,s\n,3,\n5,4,red\n6,5,\n")]
    files.append(text(tmp_path / "c.csv", "x,s\n6,7\n"))
    encoder, rows = read(files)
    later = [{"x": 3.0}, {"x": 4.0, "n": 5.0, "s=red": 1.0}, {"x": 5.0, "n": 6.0}, {"x": 6.0, "s=7": 1.0}]
    assert rows == [{"x": 1.0}, {"x": 2.0}, *later]
    assert [(column.name, column.kind, column.since) for column in encoder.columns[1:]] == [
        ("n", "number", 4),
        ("s", "category", 4),
    ]
