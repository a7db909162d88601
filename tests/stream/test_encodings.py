"""Texts as people have them: encodings, zip archives, Excel's line with the delimiter."""

import zipfile

import pytest

from tunefree.stream.batch import Position
from tunefree.stream.source import open_source

ROWS = "name;price\nJosé;1\nZoë;2\nŁukasz;3\n"
PLAIN = {"name": ["José", "Zoë", "Łukasz"], "price": ["1", "2", "3"]}


def read(source, start=None):
    chunks = list(source.chunks(*([] if start is None else [start])))
    return {name: [value for chunk in chunks for value in chunk.data[name].to_pylist()] for name in PLAIN}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "cp1250"])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("first", ["", "sep=;\r\n", '"sep=;"\n'])
def test_encodings_archives_and_named_delimiters(tmp_path, encoding, packed, first):
    rows = ROWS if encoding != "cp1250" else ROWS.replace("ë", "e")
    plain = PLAIN if encoding != "cp1250" else PLAIN | {"name": ["José", "Zoe", "Łukasz"]}
    data = (first + rows).encode(encoding)
    path = tmp_path / ("people.csv.zip" if packed else "people.csv")
    if packed:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("__MACOSX/._people.csv", b"")
            archive.writestr("folder/people.csv", data)
    else:
        path.write_bytes(data)
    told = None if encoding in ("utf-8", "utf-8-sig", "utf-16") else encoding
    source = open_source(path, encoding=told)
    assert source.format == "csv"
    assert read(source) == plain
    assert read(open_source(path, encoding=told, delimiter=";")) == plain
    share = source.progress()
    assert share(Position(0, len(data), 3)) in (None, 1.0) or encoding.startswith("utf-8") or encoding == "utf-16"


def test_reading_goes_on_in_the_middle_of_what_is_turned_into_utf_8(tmp_path):
    lines = [f"Zoë {k};{k}" for k in range(400_000)]
    (tmp_path / "t.csv").write_text("\n".join(["sep=;", "name;price", *lines]) + "\n", encoding="utf-16")
    source = open_source(tmp_path / "t.csv")
    first, *rest = source.chunks()
    assert len(rest) > 1
    again = list(source.chunks(first.position))
    assert [chunk.data for chunk in again] == [chunk.data for chunk in rest]
    assert sum(chunk.data.num_rows for chunk in [first, *again]) == 400_000
