"""Sources in a random order: the same rows, every order, and nothing left on the disk."""

import tempfile
from collections import Counter
from unittest.mock import Mock

import numpy as np
import pyarrow as pa
import pytest

from tests.stream.tabular import records, text, write
from tunefree.core.errors import DataError
from tunefree.stream import shuffle
from tunefree.stream.batch import BadRows
from tunefree.stream.shuffle import shuffled
from tunefree.stream.source import open_source
from tunefree.training.reading import encoded

N = 2000


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The folder of temporary files, which is empty at the end of each test."""
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    yield place
    assert list(place.iterdir()) == []


@pytest.fixture
def buckets(monkeypatch):
    """Small buckets, as if the data were larger than the memory."""
    monkeypatch.setattr(shuffle, "MOST_IN_MEMORY", 4_000)
    monkeypatch.setattr(shuffle, "BUCKETS", 8)


def people():
    rng = np.random.default_rng(0)
    jobs = pa.array(rng.choice(["cook", "pilot", None], N)).dictionary_encode()
    return pa.table({"row": np.arange(N), "job": jobs, "pay": rng.normal(size=N)})


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".feather", ".jsonl"])
def test_the_rows_stay_the_same_and_their_order_does_not(tmp_path, buckets, suffix):
    parts = people().slice(0, 1500), people().slice(1500)
    source = open_source([write(tmp_path / f"{number}{suffix}", part) for number, part in enumerate(parts)])
    orders = []
    for seed in (0, 0, 1):
        with shuffled(source, seed) as found:
            assert len(found.files) > 2
            rows = records(found.chunks())
        orders.append([int(row["row"]) for row in rows])
        assert sorted(rows, key=lambda row: int(row["row"])) == records(source.chunks())
    assert orders[0] == orders[1] != orders[2]
    assert abs(np.corrcoef(orders[0], np.arange(N))[0, 1]) < 0.1


def test_lines_stay_whole(tmp_path, buckets):
    lines = [f"{i % 2} {1 + i}:0.5" for i in range(N)]
    (tmp_path / "a.svm").write_text("\n".join(lines))  # the last line has no end
    with shuffled(open_source(tmp_path / "a.svm"), 0) as found:
        read = b"".join(chunk.data.tobytes() for chunk in found.chunks()).decode().splitlines()
    assert sorted(read) == sorted(lines) != read


def test_every_order_is_equally_likely(monkeypatch):
    monkeypatch.setattr(shuffle, "MOST_IN_MEMORY", 0)
    monkeypatch.setattr(shuffle, "BUCKETS", 2)
    source, counts = open_source({"x": [0.0, 1.0, 2.0]}), Counter()
    for seed in range(90):
        with shuffled(source, seed) as found:
            counts[tuple(row["x"] for row in records(found.chunks()))] += 1
    assert len(counts) == 6
    chi_square = sum((count - 15) ** 2 / 15 for count in counts.values())
    assert chi_square < 20.5  # of 5 degrees of freedom: exceeded with probability 0.001


def test_errors_name_the_row_of_the_file_that_was_given(tmp_path, buckets):
    values = [*range(1699), "inf", *range(300)]
    files = [write(tmp_path / f"{k}.csv", {"x": values[k : k + 1000], "y": [1] * 1000}) for k in (0, 1000)]
    source = open_source(files)
    encoder = source.encoder(next(source.chunks()), "y")
    with pytest.raises(DataError) as caught, shuffled(source, 0, known=encoder) as found:
        list(encoded(encoder, found.chunks(), BadRows(), True, True))
    assert (caught.value.file, caught.value.row, caught.value.column) == (files[1], 700, "x")
    assert "`on_bad_row='skip'`" in str(caught.value)


def test_a_full_disk_and_errors_of_other_files_are_named(tmp_path, monkeypatch):
    source = open_source({"x": [0.0, 1.0]})
    with pytest.raises(DataError) as caught, shuffled(source, 0):
        raise DataError("the number is infinite", "other.csv", 3)
    assert (caught.value.file, caught.value.row) == ("other.csv", 3)
    monkeypatch.setattr(np, "save", Mock(side_effect=OSError(28, "No space left on device")))
    with pytest.raises(DataError, match="in their new order .No space left on device.; make room"), shuffled(source, 0):
        pass


def test_errors_of_the_first_pass_and_interruptions_leave_nothing(tmp_path, buckets):
    source = open_source(text(tmp_path / "bad.csv", "x,y\n" + "1,2\n" * 3000 + "1,2,3\n"))
    with pytest.raises(DataError, match=r"bad\.csv, row 3001"), shuffled(source, 0):
        pass
    bad = BadRows(skip=True)
    with shuffled(source, 0, bad) as found:
        assert (len(records(found.chunks())), bad.tally.count) == (3000, 1)
    with pytest.raises(KeyboardInterrupt), shuffled(source, 0, bad):
        raise KeyboardInterrupt
