"""A model that was fitted in Python is one of files, commands and servers, and comes back to Python."""

import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file

import tunefree
from tunefree.cli.serve import opened
from tunefree.core.errors import DataError
from tunefree.serving.service import Service

pytestmark = pytest.mark.usefixtures("no_pictures")
N = 120
X = np.random.default_rng(0).normal(size=(N, 3))
NUMBERS = X[:, 0] - 2.0 * X[:, 1]
LABELS = np.where(NUMBERS > 0.0, "yes", "no")
TARGETS = {"classification": LABELS, "regression": NUMBERS}
FRAME = pd.DataFrame(X, columns=["a", "b", "c"]).assign(job=np.where(X[:, 2] > 0.0, "cook", "clerk"))
ARRAY = pd.DataFrame(X, columns=["x0", "x1", "x2"])  # as files have the columns of an array
KINDS = {
    "pool": (tunefree.TuneFreeClassifier, tunefree.TuneFreeRegressor, {"n_jobs": 1}),
    "single learner": (tunefree.ScInOLClassifier, tunefree.ScInOLRegressor, {}),
    "kernel": (tunefree.KernelPiSTOLClassifier, tunefree.ScInOLRegressor, {}),
    "path": (tunefree.IterativeRegularizationClassifier, tunefree.IterativeRegularizationRegressor, {"max_iter": 20}),
}


def fitted(kind, task, form):
    """An estimator, and the rows and the name of the target that go with it."""
    *classes, parameters = KINDS[kind]
    estimator = classes[task == "regression"](**parameters)
    if form == "frame":
        target, rows, y = "goal", FRAME, pd.Series(TARGETS[task], name="goal")
    else:
        target, rows, y = "target", ARRAY, TARGETS[task]
    learned = rows if form == "frame" else X
    return SimpleNamespace(model=estimator.fit(learned, y), rows=rows, target=target, X=learned, y=TARGETS[task])


COMMANDS = (
    "predict py.model {} -o predictions.csv",
    "evaluate py.model {}",
    "inspect py.model",
    "explain py.model {} -o why.csv",
    "report py.model {} -o py.html",
    "certify py.model",
    "train {} --from py.model -o more.model -q",
)


def predicted():
    """The predictions that a command has written."""
    return pd.read_csv("predictions.csv", float_precision="round_trip")["prediction"].to_numpy()


def test_how_a_target_is_named_is_told_where_data_have_no_such_column():
    model = tunefree.ScInOLClassifier().fit(X, LABELS)
    with pytest.raises(DataError, match="no target column 'target'.*; estimators name it by `save"):
        model.report(ARRAY.assign(goal=LABELS))


@pytest.mark.parametrize(
    ("task", "form"), [("classification", "frame"), pytest.param("regression", "array", marks=pytest.mark.slow)]
)
def test_a_model_goes_from_a_notebook_to_the_command_line_to_a_server_and_back(task, form, done, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    of = fitted("pool", task, form)
    of.rows.assign(**{of.target: of.y}).to_csv("rows.csv", index=False)
    of.model.save("py.model")
    assert of.target in of.model.report("rows.csv").html
    for command in COMMANDS:
        done(*command.format("rows.csv").split())
    assert (predicted() == of.model.predict(of.X)).all()
    back = tunefree.load("more.model")
    assert back.t_ == 2 * N and back.trained_.plan.target == of.target
    back.save("back.model")
    trained, folder = opened(Path("back.model"), Path("store"))
    rows, targets = of.rows.to_dict("records")[:3], of.y[:3].tolist()
    with Service(trained, folder) as service:
        answers = service.predict([{**row, "id": place} for place, row in enumerate(rows)])
        assert [answer["prediction"] for answer in answers] == back.predict(of.X[:3]).tolist()
        assert service.learn([{**row, of.target: y} for row, y in zip(rows, targets, strict=True)])["learned"] == 3
        assert service.label([{"id": id, of.target: y} for id, y in enumerate(targets)])["learned"] == 3
        service.save()
        saved = service.store.file(service.store.versions[-1].number)
    again = tunefree.load(saved)
    assert again.t_ == 2 * N + 6 and again.partial_fit(of.X[:1], of.y[:1]).t_ == 2 * N + 7
    assert again.trained_.plan.target == of.target


@pytest.mark.parametrize(
    ("kind", "form"),
    [
        pytest.param("pool", "sparse", marks=pytest.mark.slow),
        ("single learner", "frame"),
        ("single learner", "sparse"),
        ("kernel", "array"),
        ("path", "frame"),
    ],
)
def test_each_command_takes_each_kind_of_model_or_says_why_not(kind, form, run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if form == "sparse":
        rows, y = sparse.csr_array(np.where(np.abs(X) > 0.3, X.round(3), 0.0)), (NUMBERS > 0.0).astype(int)
        classes, _, parameters = KINDS[kind]
        model = classes(**parameters).fit(rows, y)
        model.save("py.model")
        data = "rows.svm"
        dump_svmlight_file(sparse.csr_matrix(rows), y, data, zero_based=False)
    else:
        of, data = fitted(kind, "classification", form), "rows.csv"
        model, rows, target = of.model, of.X, "label" if form == "array" else of.target
        model.save("py.model", target=target)
        of.rows.assign(**{target: of.y}).to_csv(data, index=False)
    expected = {"predict", "evaluate", "report", "certify", "train", "inspect", "explain"}
    if kind == "kernel":
        expected -= {"explain"}
    if kind == "path":
        expected = {"predict", "evaluate", "inspect"}
    assert working(run, data, serves=form == "sparse") == expected
    assert (predicted() == model.predict(rows)).all()


def working(run, data, serves=False):
    """The commands that take a model and these rows; of the others each says why not in one line."""
    works = set()
    for command in (*COMMANDS, "serve py.model"):
        words = command.format(data).split()
        if words[0] == "serve" and "train" in works and not serves:
            continue  # it would not end
        status, _, said = run(*words)
        works |= {words[0]} if status == 0 else set()
        assert status == 0 or (status == 2 and said.startswith("tunefree: ") and said.count("\n") == 1), (words, said)
    return works


GROUPS = np.arange(N) // 4
YEARS = np.random.default_rng(1).uniform(0.5, 2.0, N)
COUNTS = np.random.default_rng(2).poisson(YEARS * np.exp(0.5 * X[:, 0]))


@pytest.mark.parametrize(("role", "name"), [("group", "patient"), ("exposure", "exposure")])
def test_groups_and_exposures_go_with_the_model(role, name, done, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    values, y = {"group": (GROUPS, LABELS), "exposure": (YEARS, COUNTS)}[role]
    if role == "group":
        model, given = tunefree.TuneFreeClassifier(n_jobs=1), {"groups": pd.Series(values, name=name)}
    else:
        model, given = tunefree.TuneFreeRegressor(loss="poisson", n_jobs=1), {"exposure": values}
    model.fit(FRAME, pd.Series(y, name="goal"), **given).save("py.model")
    rows = FRAME.assign(**{name: values, "goal": y})
    rows.to_csv("rows.csv", index=False)
    for words in (
        ["train", "rows.csv", "--from", "py.model", "-o", "more.model", "-q"],
        ["evaluate", "more.model", "rows.csv", "--progressive"],
        ["predict", "py.model", "rows.csv", "-o", "predictions.csv"],
    ):
        done(*words)
    expected = model.predict(FRAME, **(given if role == "exposure" else {}))
    assert (predicted() == expected).all()
    back = tunefree.load("more.model")
    assert getattr(back.trained_.plan, {"group": "groups"}.get(role, role)) == name
    with warnings.catch_warnings(action="error"):  # on a column that the table lacks
        assert back.partial_fit(FRAME, y, **given).t_ == 3 * N
        back.predict(FRAME, **(given if role == "exposure" else {}))
    back.save("back.model")
    with Service(*opened(Path("back.model"), Path("store"))) as service:
        assert service.learn(rows[:3].to_dict("records"))["learned"] == 3
