"""The command line, as a user types it."""

import json
import os
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

import tunefree
from tests.extending import as_before, run_page
from tests.workflows.test_training import people, written
from tunefree import learners
from tunefree.cli import app as cli


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("labels", [(0, 1), (-1, 1), (False, True), ("nein", "ja"), (0.0, 1.0)], ids=str)
def test_labels_of_every_kind_in_every_format(done, tmp_path, labels, suffix):
    table = people(400)
    y = np.array(labels)[(np.array(table["rich"]) == "yes").astype(int)]
    path = written(pa.table({"age": table["age"], "job": table["job"], "y": y}), tmp_path / f"data.{suffix}")
    done("train", path, "-t", "y", "-o", tmp_path / "m", "--learner", "scinol2")
    out, _ = done("predict", tmp_path / "m", path)
    predicted = {line.split(",")[0].strip('"') for line in out.splitlines()[1:]}
    assert predicted == {json.dumps(label).strip('"').removesuffix(".0") for label in labels}


def test_a_prediction_that_fails_leaves_the_earlier_file(run, done, data, tmp_path):
    model = tmp_path / "people.model"
    out, err = done("train", data, "--target", "rich", "--learner", "scinol2", "-o", model)
    assert "classification of 'rich'" in err and "progressive log-loss" in out
    (tmp_path / "out.csv").write_text("earlier")
    (tmp_path / "bad.csv").write_text("age,job\n1,cook\ninf,cook\n")
    assert run("predict", model, tmp_path / "bad.csv", "-o", tmp_path / "out.csv")[0] == 2
    assert (tmp_path / "out.csv").read_text() == "earlier"
    assert run("predict", model, tmp_path / "bad.csv", "-o", tmp_path / "out.xlsx")[0] == 2
    model.write_bytes(model.read_bytes()[:-1])
    assert "damaged" in done("predict", model, data, status=2)[1]


def test_training_and_evaluation_of_files_import_neither_pandas_nor_scikit_learn(data, tmp_path):
    few = "".join(data.read_text().splitlines(keepends=True)[:200])
    data.write_text(few)
    code = (
        "import sys, tunefree.report.decisions, tunefree.workflows.evaluation; from tunefree.cli import app as cli\n"
        f"sys.argv = ['tunefree', 'train', {str(data)!r}, '-t', 'rich', '-o', {str(tmp_path / 'm')!r}, '-q']\n"
        "try: cli.main()\nexcept SystemExit: pass\n"
        "print([m for m in ('pandas', 'sklearn', 'polars', 'numba', 'tunefree.cli.serve') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_uncompiled_code_writes_the_same_model(done, data, tmp_path):
    """NUMBA_DISABLE_JIT=1, for debugging: every compiled function also runs as plain Python."""
    few = tmp_path / "few.csv"
    few.write_text("".join(data.read_text().splitlines(keepends=True)[:40]))
    (tmp_path / "few.vw").write_text("".join(f"{1 - 2 * (i % 2)} |n a:{i % 7} b{i % 3}\n" for i in range(20)))
    options = ["--learner", "scinol2", "-q"]
    commands = [["train", str(few), "-t", "rich", *options], ["train", str(tmp_path / "few.vw"), *options]]
    for number, command in enumerate(commands):
        done(*command, "-o", tmp_path / f"compiled{number}")
        command += ["-o", str(tmp_path / f"plain{number}")]
    code = (
        "import sys; from tunefree.cli import app\n"
        f"for command in {commands}:\n"
        "    sys.argv = ['tunefree', *command]\n"
        "    try: app.main()\n    except SystemExit as end: assert not end.code\n"
    )
    subprocess.run([sys.executable, "-c", code], env=os.environ | {"NUMBA_DISABLE_JIT": "1"}, check=True)
    for number in range(len(commands)):
        assert (tmp_path / f"plain{number}").read_bytes() == (tmp_path / f"compiled{number}").read_bytes()


@as_before(cli.COMMANDS)
def test_the_page_on_adding_a_command():
    assert "balance" not in cli.COMMANDS
    page = run_page("command.md")
    assert cli.COMMANDS["balance"] is page["balance"]


@as_before(cli.COMMANDS)
@as_before(learners.ALL)
def test_names_of_installed_packages_are_found(run, done, tmp_path, monkeypatch):
    """A learner from outside: without its package the message says what is missing, with it all commands take it."""
    X = np.random.default_rng(0).normal(size=(200, 2))
    model, data = tmp_path / "outside.model", tmp_path / "rows.csv"
    data.write_text("x0,x1,target\n" + "".join(f"{a},{b},{a > b}\n" for a, b in X))
    with monkeypatch.context() as here:
        outside = {"outside": "tunefree.learners.adagrad:AdaGrad"}
        here.setattr(learners.ALL, "_entries", learners.ALL._entries | outside)
        tunefree.OnlineClassifier("outside").fit(X, X[:, 0] > X[:, 1]).save(model)
    _, err = done("evaluate", model, data, status=2)
    assert "unknown learner 'outside'" in err
    assert "if another package adds it, install that here, or register it in Python before" in err
    assert run("moon", model)[0] == 2
    package = tmp_path / "outside-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: outside\nVersion: 1.0\n")
    points = "[tunefree.learners]\noutside = tunefree.learners.adagrad:AdaGrad\n"
    (package / "entry_points.txt").write_text(points + "[tunefree.commands]\nmoon = tunefree.cli.models:inspect\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    done("evaluate", model, data)
    done("train", data, "-t", "target", "--learner", "outside", "-o", tmp_path / "more.model", "-q")
    assert run("moon", model)[0] == 0 and "outside" not in run("--help")[1]
