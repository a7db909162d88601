"""Models that go on with further rows, and checkpoints of data that have changed since."""

import gzip
from dataclasses import replace

import pyarrow as pa
import pytest
from pyarrow import csv

from tests.interruptions import Stop, assert_resumed
from tests.workflows.test_training import people, written
from tunefree import Plan, open_source
from tunefree.core.errors import DataError, ModelError
from tunefree.model_files.trained import Trained
from tunefree.stream import delimited
from tunefree.stream.text import read_lines
from tunefree.training.training import learn_more, train

QUICK = ("--learner", "scinol2")


@pytest.fixture
def days(tmp_path):
    """Three files of the same columns; the second and third have new categories and classes."""
    rows = pa.table(people(1500)).drop_columns("pay").to_pylist()
    for i, row in enumerate(rows):
        row["job"] = f"{row['job']} {i // 400}"
        row["rich"] = "perhaps" if i > 900 and i % 11 == 0 else row["rich"]
    for day in range(3):
        csv.write_csv(pa.Table.from_pylist(rows[500 * day : 500 * day + 500]), tmp_path / f"{day}.csv")
    return [tmp_path / f"{day}.csv" for day in range(3)]


@pytest.mark.parametrize("options", [QUICK, (*QUICK, "--hash-bits", "6")], ids=" ".join)
def test_further_rows_are_learned_as_if_they_had_come_in_one_stream(done, days, tmp_path, options):
    done("train", *days, "-t", "rich", "-o", tmp_path / "whole", *options)
    model = tmp_path / "m"
    done("train", days[0], "-t", "rich", "-o", model, *options)
    for day in days[1:]:  # into a file of its own, and into the model's own
        out, _ = done("train", day, "--from", model, "-o", tmp_path / ("n" if day == days[1] else "m"))
        model = tmp_path / "n"
    more, whole = Trained.load(tmp_path / "m"), Trained.load(tmp_path / "whole")
    for trained in (more, whole):  # a model forgets in which file a rise may have begun
        trained.rises.rises = [replace(rise, file="", row_in_file=0) for rise in trained.rises.rises]
        trained.save(tmp_path / f"{trained is whole}")
    assert (tmp_path / "False").read_bytes() == (tmp_path / "True").read_bytes()
    assert more.model.classes == ["no", "yes", "perhaps"]
    assert "1,500" in out


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(delimited, "read_lines", lambda *a, **o: read_lines(*a[:2], 1000, **o))


def test_further_rows_are_resumed_to_the_byte(days, tmp_path, small_blocks):
    plan = Plan(target="rich", learner="scinol2")
    train(open_source(days[0]), plan).save(tmp_path / "m")
    learn = lambda *arguments, **options: learn_more(Trained.load(tmp_path / "m"), *arguments, **options)  # noqa: E731
    assert_resumed(open_source(days[1:]), plan, tmp_path, 250, learn=learn)


def test_a_checkpoint_of_files_that_have_changed(days, tmp_path, small_blocks):
    source = open_source([str(day) for day in days])
    plan, checkpoint = Plan(target="rich", learner="scinol2"), tmp_path / "c"
    with pytest.raises(KeyboardInterrupt):
        train(source, plan, [Stop(700)], checkpoint, 100)
    with open(days[1], "a") as file:
        file.write("33,cook 9,yes\n" * 40)
    told = []
    assert train(source, plan, (), checkpoint, resume=True, tell=told.append).progress.progressive[0].rows == 1540
    assert len(told) == 1 and "1.csv has 560 bytes more than at the checkpoint" in told[0]
    lines = days[2].read_text().splitlines(keepends=True)
    days[2].write_text("".join(lines[:-1]))  # as where a row that could not be used was corrected
    told.clear()
    assert train(source, plan, (), checkpoint, resume=True, tell=told.append).progress.progressive[0].rows == 1539
    assert any("2.csv has 17 bytes less" in line for line in told), told
    with open(days[0], "a") as file:
        file.write("33,cook 9,yes\n")
    with pytest.raises(ModelError, match="have changed"):  # rows that the checkpoint has passed would be ignored
        train(source, plan, None, checkpoint, resume=True)


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "parquet"])
def test_any_byte_that_was_read_and_has_changed_is_noticed(tmp_path, small_blocks, monkeypatch, suffix):
    table = pa.table({"age": [float(i % 50) for i in range(3000)], "rich": ["no", "no", "yes"] * 1000})
    path = written(table, tmp_path / f"days.{suffix.removesuffix('.gz')}")
    if suffix == "csv.gz":
        path = path.rename(tmp_path / "days.csv.gz")
        path.write_bytes(gzip.compress(path.read_bytes()))
    monkeypatch.setattr("tunefree.stream.tables.CHUNK_ROWS", 200)
    monkeypatch.setattr("tunefree.training.resuming.PIECE", 64)  # files have many such pieces
    source, plan, checkpoint = open_source(path), Plan(target="rich", learner="scinol2"), tmp_path / "c"
    with pytest.raises(KeyboardInterrupt):
        train(source, plan, [Stop(700)], checkpoint, 200)
    before, kept = path.read_bytes(), Trained.load(checkpoint).progress
    assert kept.read[0] == len(before) if suffix != "csv" else 0 < kept.read[0] < len(before)
    changed = bytearray(before)
    changed[kept.read[0] // 2] ^= 1
    path.write_bytes(changed)
    with pytest.raises(ModelError, match="the data have changed since it was made"):
        train(source, plan, None, checkpoint, resume=True)
    path.write_bytes(before)
    assert train(source, plan, None, checkpoint, 200, resume=True).progress.read == []


def test_a_complete_model_is_no_checkpoint_and_a_checkpoint_no_model(days, tmp_path, small_blocks):
    source, plan = open_source(days[0]), Plan(target="rich", learner="scinol2")
    train(source, plan).save(tmp_path / "c")
    with pytest.raises(ModelError, match="`earlier`"):  # or new rows would be ignored in silence
        train(source, plan, None, tmp_path / "c", resume=True)
    with pytest.raises(KeyboardInterrupt):
        train(source, plan, [Stop(300)], tmp_path / "c", 100)
    assert learn_more(Trained.load(tmp_path / "c"), source).progress.complete  # as the rows that follow
    with pytest.raises(DataError, match="missing"):
        learn_more(train(source, plan), open_source({"age": [1.0], "rich": ["yes"]}))
