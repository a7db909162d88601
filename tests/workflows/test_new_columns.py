"""Columns that come later: in the command line, in Python, in checkpoints, and in models that go on."""

import json

import pytest
from pyarrow import csv

from tests.interruptions import Stop
from tunefree import Plan, open_source
from tunefree.model_files.trained import Trained
from tunefree.stream import jsonlines
from tunefree.training.training import learn_more, train

PLAN = Plan(target="y", learner="scinol2")


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


def test_new_columns_are_learned_said_and_shown(run, days, tmp_path):
    model = tmp_path / "m"
    status, out, err = run("train", *days, "-t", "y", "--learner", "scinol2", "-o", model)
    assert status == 0, err
    words = " ".join(out.split())
    assert "new columns late (from row 801 on), o.city (from row 801 on), tags (from row 901 on)" in words
    status, out, _ = run("predict", model, days[0])  # which lacks these columns
    assert status == 0 and len(out.splitlines()) == 701
    status, out, _ = run("inspect", model, "--json")
    columns = {column["name"]: column for column in json.loads(out)["columns"]}
    assert columns["tags"]["kind"] == "bag" and columns["tags"]["since"] == 901 and columns["x"]["since"] is None
    status, out, err = run("explain", model, days[1])
    assert status == 0 and "late" in out and "o.city" in out, err
    weights = tmp_path / "w.csv"
    assert run("inspect", model, "--weights", weights)[0] == 0
    assert {"late", "v[1]", "tags=t4"} <= set(csv.read_csv(weights)["feature"].to_pylist())


@pytest.mark.parametrize("learner", ["scinol2", "nag"])
def test_going_on_with_new_columns_equals_one_stream(days, tmp_path, learner):
    plan = Plan(target="y", learner=learner)
    train(open_source(days), plan).save(tmp_path / "whole")
    train(open_source(days[0]), plan).save(tmp_path / "m")
    learn_more(Trained.load(tmp_path / "m"), open_source(days[1])).save(tmp_path / "more")
    assert (tmp_path / "more").read_bytes() == (tmp_path / "whole").read_bytes()
    assert [column.name for column in Trained.load(tmp_path / "more").encoder.columns][:3] == ["x", "late", "o.city"]


@pytest.mark.parametrize("stop", [500, 1000])
def test_training_with_new_columns_is_resumed_to_the_byte(days, tmp_path, stop):
    train(open_source(days), PLAN).save(tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        train(open_source(days), PLAN, [Stop(stop)], tmp_path / "c", 50)
    train(open_source(days), PLAN, None, tmp_path / "c", 50, resume=True).save(tmp_path / "resumed")
    assert (tmp_path / "resumed").read_bytes() == (tmp_path / "whole").read_bytes()
