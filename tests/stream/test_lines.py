"""Texts of any encoding and compression are cut into whole lines, whatever the block size, and read on anywhere."""

import bz2
import gzip
import lzma
import zipfile
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.stream.tabular import standard_input
from tests.stream.tabular import text as written
from tunefree.core.errors import DataError
from tunefree.stream.batch import Position
from tunefree.stream.files import TextFile
from tunefree.stream.source import open_source
from tunefree.stream.text import read_beginning, read_lines

TEXTS = st.text(st.sampled_from('a,"\r\n é'), max_size=60).map(str.encode)


def together(chunks) -> bytes:
    return b"".join(chunk.data.tobytes() for chunk in chunks)


@given(st.lists(TEXTS, max_size=3), st.integers(1, 40))
def test_chunks_are_whole_lines_and_can_be_read_on_from_every_place(tmp_path_factory, texts, block_size):
    folder = tmp_path_factory.mktemp("texts")
    files = [written(folder / f"{i}.txt", text) for i, text in enumerate(texts)]
    chunks = list(read_lines(files, block_size=block_size))
    for file, expected in zip(files, texts, strict=True):
        own = [chunk for chunk in chunks if chunk.file == file]
        assert together(own) == expected
        seen = 0
        for chunk in own:
            assert chunk.row == seen + 1
            seen += chunk.data.tobytes().count(b"\n") + (chunk.data[-1] != 10)
            assert chunk is own[-1] or chunk.data[-1] == 10
    for i, chunk in enumerate(chunks):
        again = list(read_lines(files, chunk.position, block_size))
        assert [(c.data.tobytes(), *c[1:]) for c in again] == [(c.data.tobytes(), *c[1:]) for c in chunks[i + 1 :]]


def ends_outside_quotes(text: bytes) -> tuple[list[int], bool]:
    """Where lines end that are not within quotes, letter by letter as RFC 4180 has it; whether a quote stays open."""
    ends, inside, is_start, place = [], False, True, 0
    while place < len(text):
        letter = text[place : place + 1]
        if inside and text[place : place + 2] == b'""':
            place += 1
        elif inside:
            inside = letter != b'"'
        elif letter == b'"' and is_start:
            inside = True
        elif letter == b"\n":
            ends.append(place)
        is_start = letter in b",\r\n" and not inside
        place += 1
    return ends, inside


@given(st.text('",\nab', max_size=40).map(str.encode), st.integers(1, 20))
def test_quoted_line_ends_do_not_cut(tmp_path_factory, text, block_size):
    file = written(tmp_path_factory.mktemp("texts") / "a.csv", text)
    chunks = list(read_lines([file], block_size=block_size, delimiters=","))
    assert together(chunks) == text
    for chunk in chunks[:-1]:
        assert chunk.data[-1] == 10
    ends, stays_open = ends_outside_quotes(text)
    if chunks and not stays_open:
        assert chunks[-1].position.row == len(ends) + (not text.endswith(b"\n"))
        assert all(not ends_outside_quotes(chunk.data.tobytes())[1] for chunk in chunks)


def compress(name: str, content: bytes) -> bytes:
    by_library: dict[str, Any] = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}
    if name in by_library:
        return by_library[name](content)
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, {".zst": "zstd", ".lz4": "lz4", ".br": "brotli"}[name]) as stream:
        stream.write(content)
    return sink.getvalue().to_pybytes()


@pytest.mark.parametrize("extension", [".gz", ".bz2", ".xz", ".zst", ".lz4", ".br"])
def test_compressed(tmp_path, monkeypatch, extension):
    text = b"".join(b"%d one\n" % i for i in range(3000))
    packed = compress(extension, text)
    file = written(tmp_path / ("a.txt" + extension), packed)
    chunks = list(read_lines([file], block_size=1000))
    assert together(chunks) == text
    assert together(read_lines([file], chunks[4].position, 1000)) == together(chunks[5:])
    empty = written(tmp_path / ("b.txt" + extension), compress(extension, b""))
    assert list(read_lines([empty])) == []
    cut = written(tmp_path / ("c.txt" + extension), packed[:-9])
    with pytest.raises(DataError, match=r"damaged.*get the file again"):
        list(read_lines([cut]))
    if extension != ".br":  # the one that cannot be told by its bytes
        standard_input(monkeypatch, packed)
        assert together(read_lines(["-"])) == text


def test_standard_input_is_looked_at_and_then_read(monkeypatch):
    standard_input(monkeypatch, b"x,y\n1,2\n3,4\n")
    beginning = read_beginning("-")
    assert beginning.header == b"x,y"
    chunks = read_lines(["-"], Position(0, beginning.end), block_size=4)
    read = [(chunk.data.tobytes(), chunk.row, chunk.file) for chunk in chunks]
    assert read == [(b"1,2\n", 1, "standard input"), (b"3,4\n", 2, "standard input")]


def test_a_line_too_long(tmp_path):
    def lines_of(name, data, **options):
        return list(read_lines([TextFile(written(tmp_path / name, data), longest_line=64)], block_size=8, **options))

    assert len(lines_of("a", b"x" * 63 + b"\nshort\n")) == 2
    with pytest.raises(DataError, match="a line is longer than 64 bytes"):
        lines_of("b", b"x" * 64 + b"\n")
    lines = lines_of("c", b'"' + b"x\n" * 64, delimiters=",")
    assert lines[0].data.tobytes() == b'"x\n' and together(lines) == b'"' + b"x\n" * 64
    with pytest.raises(DataError, match="`max_line_bytes` must lie between 1 and 1,073,741,824, not 0"):
        open_source(written(tmp_path / "d", b"x,y\n1,2\n"), max_line_bytes=0)


PEOPLE = "name;price\nJosé;1\nZoë;2\nŁukasz;3\n"
PLAIN = {"name": ["José", "Zoë", "Łukasz"], "price": ["1", "2", "3"]}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "cp1250"])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("first", ["", "sep=;\r\n", '"sep=;"\n'])
def test_encodings_archives_and_named_delimiters(tmp_path, encoding, packed, first):
    rows = PEOPLE if encoding != "cp1250" else PEOPLE.replace("ë", "e")
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
    for options in ({}, {"delimiter": ";"}):
        source = open_source(path, encoding=told, **options)
        (chunk,) = source.chunks()
        assert source.format == "csv" and chunk.data.to_pydict() == plain


def test_reading_goes_on_in_the_middle_of_text_turned_into_utf_8(tmp_path):
    lines = [f"Zoë {k};{k}" for k in range(400_000)]
    (tmp_path / "t.csv").write_text("\n".join(["sep=;", "name;price", *lines]) + "\n", encoding="utf-16")
    source = open_source(tmp_path / "t.csv")
    first, *rest = source.chunks()
    assert len(rest) > 1
    again = list(source.chunks(first.position))
    assert [chunk.data for chunk in again] == [chunk.data for chunk in rest]
    assert sum(chunk.data.num_rows for chunk in [first, *again]) == 400_000
