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
def model(done, data):
    path = data.parent / "[b]:rows:.model"
    out, err = done("train", data, "-t", TARGET, "-o", path, *LEARNER)
    assert shows(err, TARGET, *CLASSES.values())
    assert shows(out, path, *CLASSES.values())
    return path


@pytest.mark.parametrize("is_terminal", [False, True])  # which has a bar
def test_training_and_comparing(done, data, model, monkeypatch, is_terminal):
    if is_terminal:
        monkeypatch.setenv("FORCE_COLOR", "1")
    assert shows(done("train", data, "-t", TARGET, "-o", model, *LEARNER)[1], TARGET, *CLASSES.values())
    plot = data.parent / "[i]plot.svg"
    _, err = done("learners", data, "-t", TARGET, *LEARNER, "--plot", plot)
    assert (is_terminal or f"'{TARGET}'" in err) and plot.read_bytes()


def test_predictions_and_their_explanations(done, data, model):
    output = data.parent / "[red]out.parquet"
    assert str(output) in done("predict", model, data, "-o", output)[1]
    names = parquet.read_table(output).column_names
    assert names == ["prediction", *(f"probability[{label}]" for label in CLASSES.values())]
    assert str(output) in done("explain", model, data, "-o", output, "--class", CLASSES["no"])[1]
    assert {NUMBER, CATEGORY, DATE} <= set(parquet.read_table(output).column_names)
    for words in (("evaluate", model, data), ("certify", model)):
        done(*words)


def test_what_a_model_has_learned(run, done, data, model):
    out, _ = done("inspect", model, "--top", 0, "--class", CLASSES["no"])
    names = [f"{DATE}[weekday=3]", NUMBER, *(f"{CATEGORY}={category}" for category in CATEGORIES.values())]
    assert shows(out, *names, TARGET, *CLASSES.values())
    assert json.loads(run("inspect", model, "--json", "--top", 0)[1])["classes"] == list(CLASSES.values())


def test_errors(done, data, model, tmp_path):
    lacking = data.parent / "lacking.parquet"
    parquet.write_table(parquet.read_table(data).drop_columns([CATEGORY]), lacking)
    for words, *names in (
        (("train", data, "-t", "[/none]", "-o", model), "[/none]", str(data)),
        (("predict", model, tmp_path / "[/gone].csv"), "[/gone].csv"),
        (("inspect", model, "--top", "[/b]"), "[/b]"),
        (("inspect", model, "--class", "[/nobody]"), "[/nobody]"),
        (("evaluate", model, lacking), repr(CATEGORY)),
    ):
        assert shows(done(*words, status=2)[1], *names)
