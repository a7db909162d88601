"""CSV: which rows are refused, wherever blocks are cut."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.stream.tabular import read_tables
from tunefree.core.errors import DataError
from tunefree.stream.delimited import csv_header
from tunefree.stream.encoder import TableEncoder
from tunefree.stream.kinds import Boolean, Category, Number
from tunefree.stream.tables import Options

from .tabular import numbers, records, skipped, text

BAD = "x,y,b\n1,a,true\n2,b\n3,c,false\nfour,d,true\n5,e,true,1\n6,f,maybe\n7,g,true\n"


def test_bad_rows_of_csv_are_left_out_and_counted(tmp_path):
    file = text(tmp_path / "t.csv", BAD)
    columns = [Number("x"), Category("y"), Boolean("b")]
    for block in (8, 30, 1000):
        chunks, bad = skipped([file], block_size=block)
        encoder = TableEncoder(columns, typed=False)
        batches = [encoder.encode(chunk, True, bad) for chunk in chunks]
        assert [int(number) for batch in batches for number in batch.numbers] == [1, 3, 7]
        assert [float(row[0]) for batch in batches for row in batch.rows.numbers] == [1, 3, 7]
        assert bad.tally.count == 4
        assert sorted(message.split(": ", 1)[1].split(";")[0] for message in bad.tally.first) == [
            "'four' is not a number (`na_values` says what stands for a missing one)",
            "'maybe' is neither true nor false",
            "the row has 2 fields, the header 3",
            "the row has 4 fields, the header 3",
        ]
        for k, chunk in enumerate(chunks):
            rest, _ = skipped([file], block_size=block, start=chunk.position)
            assert numbers(rest) == numbers(chunks[k + 1 :])


@pytest.mark.parametrize(
    ("content", "row", "column", "problem"),
    [
        ("x,y\n1,2\n3\n", 2, None, "the row has 1 field, the header 2"),
        ("x,y\n1,2\n\n3,4,5\n", 2, None, "the row has 3 fields, the header 2"),
        ('x,y\n1,"2\n3,4\n', 1, None, "a double quote is never closed"),
        ('x,y\n"1,2\n3,4\n', 1, None, "a double quote is never closed"),
        (b"x,y\n1,2\n\xff,4\n", 2, "x", "is not text in UTF-8"),
    ],
)
@pytest.mark.parametrize("block", [6, 1000])
def test_the_first_bad_row_of_csv_is_named(tmp_path, content, row, column, problem, block):
    file = text(tmp_path / "t.csv", content)
    with pytest.raises(DataError, match=problem) as caught:
        list(read_tables([file], block_size=block))
    assert (caught.value.file, caught.value.row, caught.value.column) == (file, row, column)
    assert "`on_bad_row='skip'`" in str(caught.value)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(["1,a", "2", "x,b", "3,c,d", ",e", ""]), min_size=1, max_size=20), st.integers(1, 40))
def test_bad_rows_are_the_same_however_blocks_are_cut(tmp_path, lines, block):
    lines = [*lines, "1,a"]
    file = text(tmp_path / "t.csv", "\n".join(["n,s", *lines]) + "\n")
    chunks, bad = skipped([file], block_size=block)
    held = [line for line in lines if line]
    good = [place for place, line in enumerate(held, 1) if line in ("1,a", "x,b", ",e")]
    assert numbers(chunks) == good and bad.tally.count == len(held) - len(good)


@pytest.mark.parametrize("block", [5, 9, 1000])
def test_comments_and_headers_again_are_counted_once_however_blocks_are_cut(tmp_path, block):
    lines = ["# one", "", "# two", "n,s", "1,a", "n,s", "2,b", '"n","s"', "\ufeffn,s", "3,s"]
    file = text(tmp_path / "t.csv", "\n".join(lines) + "\n")
    chunks, bad = skipped([file], block_size=block)
    assert [record["s"] for record in records(chunks)] == ["a", "b", "s"] and numbers(chunks) == [1, 3, 6]
    assert bad.tally.count == 0
    assert [(oddity.problem, oddity.rows, oddity.row) for oddity in bad.tally.oddities()] == [
        ("comments before the header are left out", 2, 0),
        ("a line that repeats the header is left out", 3, 2),
    ]
    for k, chunk in enumerate(chunks):
        rest, left = skipped([file], block_size=block, start=chunk.position)
        assert numbers(rest) == numbers(chunks[k + 1 :])
        assert "comments before the header are left out" not in {oddity.problem for oddity in left.tally.oddities()}


@pytest.mark.parametrize(
    ("content", "names", "comments"),
    [
        ("# a,b\n1,2\n3,4\n", ["# a", "b"], 0),  # as numpy.savetxt writes names
        ("#chrom,pos\nx,1\ny,2\n", ["#chrom", "pos"], 0),
        ("#name,job\nbob,cook\nann,clerk\n", ["#name", "job"], 0),
        ("## one, two\n#name,job\nbob,3\n", ["#name", "job"], 1),
        ("# made by hand, in May\nname,age\nbob,3\n", ["name", "age"], 1),
        ("#made by hand, in May\nname,age\nbob,3\n", ["name", "age"], 1),
        ('# 5" pipes\nname,age\nbob,3\n', ["name", "age"], 1),
        ("#" + "-" * 9000 + "\nname,age\nbob,3\n", ["name", "age"], 1),
        ("#" + "-" * 8180 + "\nname,age\nbob,3\n", ["name", "age"], 1),  # cut within the header by the first window
        ("#name\n", ["#name"], 0),
        ("#name\nbob\n", ["bob"], 1),
        ("#x\n1\n2\n", ["#x"], 0),
    ],
)
def test_the_names_of_columns_are_found_behind_comments(tmp_path, content, names, comments):
    header = csv_header(text(tmp_path / "t.csv", content), Options())
    assert (header.names, header.comments) == (names, comments)
