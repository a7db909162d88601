"""Rows without a label, and columns that come later: skipped and counted, learned and shown."""

import json
import re

import pytest
from pyarrow import csv

from tests.interruptions import assert_resumed
from tests.pool.rows import differences
from tunefree import Plan, open_source
from tunefree.model_files.trained import Trained
from tunefree.stream import jsonlines, shuffle
from tunefree.training.training import learn_more, train

N = 300
LABELS = ["no" if i % 50 < 20 else "yes" for i in range(N)]
WITHOUT = [i % 7 == 3 or 100 <= i < 130 for i in range(N)]
KINDS = {
    "csv": ("age,job,y", lambda i, label: f"{20 + i % 50},{'cook' if i % 3 else 'clerk'},{label}"),
    "jsonl": (None, lambda i, label: json.dumps({"age": 20 + i % 50, "y": label or None})),
    "vw": (None, lambda i, label: f"{({'yes': '1 ', 'no': '-1 '}).get(label, '')}| age:{20 + i % 50} n{i % 11}"),
}


def write(folder, kind, skipped, name):
    """A file in which the rows WITHOUT have no label, or from which they are left out."""
    header, line = KINDS[kind]
    rows = [line(i, "" if none else label) for i, (label, none) in enumerate(zip(LABELS, WITHOUT, strict=True))]
    kept = [row for row, none in zip(rows, WITHOUT, strict=True) if not (skipped and none)]
    (folder / f"{name}.{kind}").write_text("\n".join([header, *kept] if header else kept) + "\n")
    return folder / f"{name}.{kind}"


@pytest.mark.parametrize("kind", KINDS)
def test_skipped_rows_leave_the_model_as_if_they_had_not_been_there(done, tmp_path, kind):
    given, without = write(tmp_path, kind, False, "given"), write(tmp_path, kind, True, "without")
    options = [*([] if kind == "vw" else ["-t", "y"]), "--learner", "scinol2"]
    _, err = done("train", given, *options, "-o", tmp_path / "m", status=2)
    assert "row 4" in err and "--unlabelled skip" in err
    out, err = done("train", given, *options, "-o", tmp_path / "m", "--unlabelled", "skip")
    assert re.search(rf"without a label, skipped +{sum(WITHOUT)}\s", out) and "it starts with" not in err
    done("train", without, *options, "-o", tmp_path / "n")
    models = [Trained.load(tmp_path / name) for name in "mn"]
    assert differences(models[0].model, models[1].model) == []
    assert models[0].encoder.names() == models[1].encoder.names()
    assert [own.progress.tally.count for own in models] == [0, 0]


def test_the_count_is_resumed(tmp_path, monkeypatch):
    monkeypatch.setattr(shuffle, "CHUNK_ROWS", 50)
    source = open_source(write(tmp_path, "csv", False, "given"))
    plan = Plan(target="y", learner="scinol2", unlabelled="skip", shuffle=True)
    assert assert_resumed(source, plan, tmp_path, 20)[0].progress.tally.unlabelled == sum(WITHOUT)


def row(i):
    """A row; what `late` and `o.city` say of the target is not in the other columns."""
    own = {"x": i % 7, "y": ["no", "yes"][(i * i % 11) > 5]}
    if i >= 800:
        own |= {"late": 1000.0 * (i * i % 11 > 5) + i % 3, "o": {"city": f"c{i * i % 11}"}}
    if i >= 900:
        own |= {"tags": [f"t{i % 3}", f"t{i % 5}"], "v": [i % 2, i % 3]}
    return own


@pytest.fixture
def days(tmp_path, monkeypatch):
    """Two files of JSON lines, read in small blocks; the second has columns that the first has not."""
    for day, places in enumerate((range(700), range(700, 1500))):
        (tmp_path / f"{day}.jsonl").write_text("".join(json.dumps(row(i)) + "\n" for i in places))
    read_lines = jsonlines.read_lines
    monkeypatch.setattr(jsonlines, "read_lines", lambda files, start, size: read_lines(files, start, 4000))
    return [str(tmp_path / f"{day}.jsonl") for day in range(2)]


def test_new_columns_are_learned_said_and_shown(done, days, tmp_path):
    model = tmp_path / "m"
    out, err = done("train", *days, "-t", "y", "--learner", "scinol2", "-o", model)
    words = " ".join(out.split())
    assert "new columns late (from row 801 on), o.city (from row 801 on), tags (from row 901 on)" in words
    assert len(done("predict", model, days[0])[0].splitlines()) == 701  # which lacks these columns
    columns = {column["name"]: column for column in json.loads(done("inspect", model, "--json")[0])["columns"]}
    assert columns["tags"]["kind"] == "bag" and columns["tags"]["since"] == 901 and columns["x"]["since"] is None
    out, _ = done("explain", model, days[1])
    assert "late" in out and "o.city" in out
    weights = tmp_path / "w.csv"
    done("inspect", model, "--weights", weights)
    assert {"late", "v[1]", "tags=t4"} <= set(csv.read_csv(weights)["feature"].to_pylist())


def test_an_ignored_column_of_a_further_file_is_known_and_a_misspelt_one_is_an_error(done, tmp_path):
    for name, header, cells in (("a", "x,y", "{},{}"), ("b", "x,y,note", "{},{},7")):
        lines = [cells.format(i % 7, ("no", "yes")[i % 2]) for i in range(40)]
        (tmp_path / f"{name}.csv").write_text("\n".join([header, *lines]) + "\n")
    command = ("train", tmp_path / "a.csv", tmp_path / "b.csv", "-t", "y", "--learner", "scinol2", "-o", tmp_path / "m")
    assert "note" not in "".join(done(*command, "--ignore", "note"))
    assert "no ignored column 'noet'; did you mean 'note'?" in done(*command, "--ignore", "noet", status=2)[1]


@pytest.mark.parametrize("learner", ["scinol2", "nag"])
def test_going_on_with_new_columns_or_resuming_equals_one_stream(days, tmp_path, learner):
    plan = Plan(target="y", learner=learner)
    train(open_source(days), plan).save(tmp_path / "whole")
    train(open_source(days[0]), plan).save(tmp_path / "m")
    learn_more(Trained.load(tmp_path / "m"), open_source(days[1])).save(tmp_path / "more")
    assert (tmp_path / "more").read_bytes() == (tmp_path / "whole").read_bytes()
    assert [column.name for column in Trained.load(tmp_path / "more").encoder.columns][:3] == ["x", "late", "o.city"]
    if learner == "scinol2":
        assert_resumed(open_source(days), plan, tmp_path, 50)
