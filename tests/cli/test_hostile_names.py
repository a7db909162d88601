"""Names of columns, classes, categories and files are shown as they are, whatever a console makes of such texts."""

import json

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from tests.workflows.test_training import people

NUMBER, CATEGORY, DATE, TARGET = "[/bold]age", ":heart:", "date[weekday=3]", "[link=$x_{$]"
CLASSES = {"no": "[/b]", "yes": "[bold red]:smile: $\\frac$"}
CATEGORIES = {"clerk": "[/]", "cook": "[cook]", "pilot": "[/red]\\[pilot]"}
LEARNER = ("--learner", "scinol2")


def shows(text, *names):
    """Whether a text has all names, which tables may fold."""
    whole = "".join(text.split())
    return all("".join(str(name).split()) in whole for name in names)


@pytest.fixture
def data(tmp_path):
    table = people(400)
    rows = {
        NUMBER: table["age"],
        CATEGORY: [CATEGORIES[job] for job in table["job"]],
        DATE: pa.array(np.datetime64("2024-01-01") + np.arange(400) % 40),
        TARGET: [CLASSES[rich] for rich in table["rich"]],
    }
    path = tmp_path / ":rows: [b" / "[/data].parquet"  # a folder ":rows: [b", and in it one "["
    path.parent.mkdir(parents=True)
    parquet.write_table(pa.table(rows), path)
    return path


@pytest.fixture
def model(run, data):
    path = data.parent / "[b]:rows:.model"
    status, out, err = run("train", data, "-t", TARGET, "-o", path, *LEARNER)
    assert status == 0, err
    assert shows(err, TARGET, *CLASSES.values())
    assert shows(out, path, *CLASSES.values())
    return path


def test_training(run, data, model, monkeypatch):
    status, _, err = run("train", data, "-t", TARGET, "-o", model, *LEARNER)
    assert status == 0 and shows(err, TARGET)
    monkeypatch.setenv("FORCE_COLOR", "1")  # as on a terminal: with a bar
    status, _, err = run("train", data, "-t", TARGET, "-o", model, *LEARNER)
    assert status == 0 and shows(err, TARGET, *CLASSES.values())


def test_predictions_and_their_explanations(run, data, model):
    output = data.parent / "[red]out.parquet"
    status, _, err = run("predict", model, data, "-o", output)
    assert status == 0 and str(output) in err
    names = parquet.read_table(output).column_names
    assert names == ["prediction", *(f"probability[{label}]" for label in CLASSES.values())]
    status, _, err = run("explain", model, data, "-o", output, "--class", CLASSES["no"])
    assert status == 0 and str(output) in err
    assert {NUMBER, CATEGORY, DATE} <= set(parquet.read_table(output).column_names)
    status, out, err = run("evaluate", model, data)
    assert status == 0 and "log-loss" in out, err


def test_what_a_model_has_learned(run, data, model):
    status, out, err = run("inspect", model, "--top", 0, "--class", CLASSES["no"], "--rows", data)
    assert status == 0, err
    names = [f"{DATE}[weekday=3]", NUMBER, *(f"{CATEGORY}={category}" for category in CATEGORIES.values())]
    assert shows(out, *names, TARGET, *CLASSES.values())
    status, out, err = run("certify", model)
    assert status == 0, err
    status, _, err = run("inspect", model, "--rows", data, "--class", "[/nobody]")
    assert status == 2 and "[/nobody]" in err


def test_pictures(run, data, model):
    pytest.importorskip("matplotlib")
    for arguments in (("learners", data, "-t", TARGET, *LEARNER), ("inspect", model, "--rows", data)):
        status, _, err = run(*arguments, "--plot", data.parent / "[i]plot.svg")
        assert status == 0, err
        assert (data.parent / "[i]plot.svg").read_bytes()


def test_comparison(run, data, monkeypatch):
    status, _, err = run("learners", data, "-t", TARGET, *LEARNER)
    assert status == 0 and f"'{TARGET}'" in err
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert run("learners", data, "-t", TARGET, *LEARNER)[0] == 0


def test_errors(run, data, model, tmp_path):
    status, _, err = run("train", data, "-t", "[/none]", "-o", model)
    assert status == 2 and "[/none]" in err and str(data) in err
    status, _, err = run("predict", model, tmp_path / "[/gone].csv")
    assert status == 2 and "[/gone].csv" in err
    assert run("inspect", model, "--top", "[/b]")[0] == 2
    table = parquet.read_table(data).drop_columns([CATEGORY])
    parquet.write_table(table, data)
    status, _, err = run("evaluate", model, data)
    assert status == 2 and repr(CATEGORY) in err


def test_columns_that_name_the_rows(run, data, model):
    table = parquet.read_table(data)
    rows = pa.array([f"[/row]{number}" for number in range(len(table))])
    parquet.write_table(table.append_column("[/id]", rows), data)
    status, out, err = run("train", data, "-t", TARGET, "-o", model, *LEARNER)
    assert status == 0 and "column '[/id]': 400 different" in out and "--ignore '[/id]'" in out, err


def test_json(run, data, model):
    status, out, err = run("inspect", model, "--json", "--top", 0)
    assert status == 0, err
    assert json.loads(out)["classes"] == list(CLASSES.values())
