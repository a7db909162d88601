"""Quotes at each place of a CSV file: each row is read, or counted and named."""

import pytest

import tunefree
from tunefree.core.errors import DataError
from tunefree.stream.batch import BadRows
from tunefree.stream.files import TextFile
from tunefree.stream.tables import read_tables

N = 40
ROWS = [f"{k}.5,part {k % 7},{'no' if k % 3 else 'yes'}" for k in range(N)]
HEADER = "size,part,ok"


def read(folder, lines, skip=False, **options):
    """The records of a file of some lines, and what is said of its rows."""
    path, bad = folder / "a.csv", BadRows(skip=skip)
    path.write_text("\n".join(lines) + "\n")
    chunks = read_tables([TextFile(str(path), longest_line=1 << 12)], "csv", bad=bad, **options)
    return [tuple(record.values()) for chunk in chunks for record in chunk.data.to_pylist()], bad.tally


def with_row(number, line):
    return [HEADER, *ROWS[: number - 1], line, *ROWS[number:]]


@pytest.mark.parametrize("block_size", [30, 1 << 20])
@pytest.mark.parametrize(
    ("line", "field"),
    [
        ('3.5,2" pipe,no', '2" pipe'),
        ('3.5,pipe 2",no', 'pipe 2"'),
        ('3.5,2"" pipe,no', '2"" pipe'),
        ('3.5,"2"" pipe",no', '2" pipe'),
        ('3.5,"2"", pipe",no', '2", pipe'),
        ('3.5,"",no', ""),
        ('3.5,"""",no', '"'),
        ('3.5, "pipe",no', ' "pipe"'),
        ('3.5,"pipe" old,no', "pipe old"),
        ('3.5,"two\nlines",no', "two\nlines"),
        ('3.5,"2"" x\n4"" y",no', '2" x\n4" y'),
    ],
)
@pytest.mark.parametrize("number", [1, 20, N])
def test_a_quote_in_a_row_costs_no_row(tmp_path, line, field, number, block_size):
    records, tally = read(tmp_path, with_row(number, line), block_size=block_size)
    assert len(records) == N and records[number - 1] == ("3.5", field or None, "no")
    assert not tally.count and not tally.oddities


@pytest.mark.parametrize("name", ['width (in ")', 'width 5"', '"width, ""in"""', '"two\nlines"', 'a "b" c'])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_quote_in_the_header_costs_no_row(tmp_path, name, place):
    names = HEADER.split(",")
    names[place] = name
    records, tally = read(tmp_path, [",".join(names), *ROWS[:-1], '3.5,2" pipe,no'])
    assert len(records) == N and records[-1] == ("3.5", '2" pipe', "no") and not tally.count


@pytest.mark.parametrize("line", ['3.5,"pipe,no', '"3.5,pipe,no', '3.5,pipe,"no'])
@pytest.mark.parametrize("number", [1, 20, N])
@pytest.mark.parametrize("block_size", [30, 1 << 20])
def test_a_quote_that_is_never_closed_costs_its_own_row(tmp_path, line, number, block_size):
    lines = with_row(number, line)
    records, tally = read(tmp_path, lines, skip=True, block_size=block_size)
    assert len(records) == N - 1 and tally.count == 1
    assert tally.first[0].split(": ", 1)[1].startswith("a double quote is never closed")
    with pytest.raises(DataError, match=f"row {number}: a double quote is never closed"):
        read(tmp_path, lines, block_size=block_size)


def test_a_quote_that_stays_open_longer_than_a_line_may_be_ends_nothing(tmp_path):
    """The file is longer than the longest line, which stands for 64 MiB here."""
    rows = [f"{k}.5,part {k % 7},no" for k in range(1000)]
    rows[100], rows[200] = '1.5,5" pipe,no', '1.5,"pipe,no'
    records, tally = read(tmp_path, [HEADER, *rows], skip=True)
    assert (len(records), tally.count) == (999, 1)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_rows_between_two_stray_quotes_are_told(tmp_path, place):
    rows = [line.split(",") for line in ROWS]
    rows[5][place] = '"' + rows[5][place]
    rows[25][place] = '"' + rows[25][place]
    records, tally = read(tmp_path, [HEADER, *map(",".join, rows)], skip=True)
    assert len(records) == N - 20 or tally.count
    oddities = [(oddity.rows, oddity.row) for oddity in tally.oddities]
    assert oddities == [(20, 6)] or (place == 0 and tally.count)


@pytest.mark.parametrize("part", ["Dear all, this is\nthe letter, of the day", "C:\\parts\\"])
def test_texts_of_several_lines_are_not_taken_for_rows_and_paths_that_end_in_a_backslash_for_escapes(tmp_path, part):
    records, tally = read(tmp_path, [HEADER, *(f'"{k}.5","{part}","no"' for k in range(N))])
    assert [record[1] for record in records] == [part] * N and not tally.oddities


@pytest.mark.parametrize("field", [r"say \"yes\"", r"\"yes\", he said", r"6\", 7\"", r"a \\"])
def test_backslashes_before_quotes_keep_them(tmp_path, field):
    lines = [HEADER, *(f'{k}.5,"{field}",no' for k in range(N))]
    records, tally = read(tmp_path, lines)
    expected = field.replace(r"\"", '"')
    assert [record[1] for record in records] == [expected] * N
    assert bool(tally.oddities) == (r"\"" in field)


@pytest.mark.parametrize(("escape", "part"), [(None, '6" pipe'), ("backslash", '6" pipe'), ("quote", '6\\ pipe"')])
def test_the_escape_of_quotes_is_guessed_and_told_or_named(tmp_path, run, escape, part):
    path, bad = tmp_path / "a.csv", BadRows()
    lines = [HEADER, *(f'{k}.5,"6\\" pipe",{"no" if k % 3 else "yes"}' for k in range(N))]
    path.write_text("\n".join(lines) + "\n")
    (chunk,) = tunefree.open_source(path, escape=escape).chunks(bad=bad)
    assert set(chunk.data["part"].to_pylist()) == {part}
    remedies = [note.remedy for note in bad.tally.oddities]
    assert remedies == ([] if escape else ["`escape='quote'` reads backslashes as letters"])
    options = ["--escape", escape] if escape else []
    status, output, errors = run("train", path, "-t", "ok", "-o", tmp_path / "m", *options)
    assert not status and ("--escape quote reads backslashes as letters" in output + errors) == (escape is None)
