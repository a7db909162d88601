"""The page on adding a command: its code runs as it stands."""

import numpy as np

import tunefree
from tests.extending import as_before, run_page
from tunefree import learners
from tunefree.cli import app as cli


def test_the_page_on_adding_a_command():
    with as_before(cli.COMMANDS):
        assert "balance" not in cli.COMMANDS
        page = run_page("command.md")
        assert cli.COMMANDS["balance"] is page["balance"]


def test_names_of_installed_packages_are_found(run, tmp_path, monkeypatch):
    """A learner from outside: without its package the message says what is missing, with it all commands take it."""
    for registry in (cli.COMMANDS, learners.ALL):
        for table in ("_places", "_of_others", "_loaded"):
            monkeypatch.setattr(registry, table, dict(getattr(registry, table)))
    X = np.random.default_rng(0).normal(size=(200, 2))
    model, data = tmp_path / "outside.model", tmp_path / "rows.csv"
    data.write_text("x0,x1,target\n" + "".join(f"{a},{b},{a > b}\n" for a, b in X))
    with monkeypatch.context() as here:
        here.setattr(learners.ALL, "_places", {**learners.ALL._places, "outside": "tunefree.learners.adagrad:AdaGrad"})
        here.setattr(learners.ALL, "_loaded", dict(learners.ALL._loaded))
        tunefree.OnlineClassifier("outside").fit(X, X[:, 0] > X[:, 1]).save(model)
    status, _, err = run("evaluate", model, data)
    assert status == 2 and "unknown learner 'outside'" in err
    assert "if another package adds it, install that here, or register it in Python before" in err
    assert run("moon", model)[0] == 2
    package = tmp_path / "outside-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: outside\nVersion: 1.0\n")
    points = "[tunefree.learners]\noutside = tunefree.learners.adagrad:AdaGrad\n"
    (package / "entry_points.txt").write_text(points + "[tunefree.commands]\nmoon = tunefree.cli.inspect:inspect\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert run("evaluate", model, data)[0] == 0
    assert run("train", data, "-t", "target", "--learner", "outside", "-o", tmp_path / "more.model", "-q")[0] == 0
    assert run("moon", model)[0] == 0 and "outside" not in run("--help")[1]
