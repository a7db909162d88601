"""The command line, as a user types it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from tests.workflows.test_training import people


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "people.csv"
    csv.write_csv(pa.table(people()).drop_columns("pay"), path)
    return path


FILES = {}  # models that several tests read, as they were written


@pytest.fixture
def model(run, data, tmp_path):
    path = tmp_path / "people.model"
    if "pool" not in FILES:
        status, out, err = run("train", data, "--target", "rich", "-o", path)
        assert status == 0, err
        assert "classification of 'rich'" in err
        assert "progressive log-loss" in out
        FILES["pool"] = path.read_bytes()
    path.write_bytes(FILES["pool"])
    return path


def test_train_predict_evaluate_inspect(run, data, model, tmp_path):
    status, out, _ = run("evaluate", model, data, "--json")
    figures = json.loads(out)
    assert status == 0
    assert figures["rows"] == 2000
    assert figures["error"] < 0.3
    for name, read in (("out.csv", csv.read_csv), ("out.parquet", parquet.read_table)):
        status, out, err = run("predict", model, data, "-o", tmp_path / name)
        assert (status, out) == (0, "")
        assert "2000 predictions" in err
        table = read(tmp_path / name)
        assert table.column_names == ["prediction", "probability[no]", "probability[yes]"]
        probabilities = np.column_stack([table[1], table[2]])
        np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
        wrong = np.mean(np.array(table["prediction"].to_pylist()) != np.array(people()["rich"]))
        assert wrong == pytest.approx(figures["error"])
    status, out, _ = run("inspect", model, "--json", "--top", "1")
    assert status == 0
    assert [len(json.loads(out)["terms"]), json.loads(out)["classes"]] == [1, ["no", "yes"]]
    status, out, _ = run("inspect", model, "--top", "0")
    assert re.search(r"job +[-\d.e]+ +[\d.e-]+ +[\d.e-]+$", out, re.MULTILINE) and "Members by weight" in out
    single = tmp_path / "single.model"
    assert run("train", data, "-t", "rich", "-o", single, "--learner", "nag", "-q")[0] == 0
    status, out, _ = run("inspect", single, "--json", "--top", "2")
    assert status == 0 and len(json.loads(out)["features"]) == 2
    assert "job=pilot" in run("inspect", single)[1]


LABELS = {
    "zero and one": lambda yes: yes.astype(int),
    "minus one and one": lambda yes: 2 * yes - 1,
    "booleans": lambda yes: yes,
    "strings": lambda yes: np.where(yes, "ja", "nein"),
    "floats": lambda yes: yes.astype(float),
}


# The formats agree on classes, which are then learned alike.
@pytest.mark.parametrize(
    ("kind", "suffix", "learner"),
    [
        *((kind, suffix, "scinol2") for kind in LABELS for suffix in ("csv", "jsonl")),
        ("booleans", "parquet", "pool"),
        ("strings", "feather", "scinol2"),
    ],
)
def test_labels_of_every_kind_in_every_format(run, tmp_path, kind, suffix, learner):
    yes = np.array(people(400)["rich"]) == "yes"
    table = pa.table({"age": people(400)["age"], "job": people(400)["job"], "y": LABELS[kind](yes)})
    path = tmp_path / f"data.{suffix}"
    write_table(table, path)
    assert run("train", path, "-t", "y", "-o", tmp_path / "m", "--learner", learner)[0] == 0
    status, out, err = run("predict", tmp_path / "m", path)
    assert status == 0, err
    labels = {line.split(",")[0].strip('"') for line in out.splitlines()[1:]}
    assert (
        labels
        <= {
            "zero and one": {"0", "1"},
            "minus one and one": {"-1", "1"},
            "booleans": {"true", "false"},
            "strings": {"ja", "nein"},
            "floats": {"0", "1"},
        }[kind]
    )


def write_table(table, path):
    from pyarrow import feather

    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    else:
        {".csv": csv.write_csv, ".parquet": parquet.write_table, ".feather": feather.write_feather}[path.suffix](
            table, str(path)
        )


BAD = {
    "no such file": ("none.csv", None, "no such file"),
    "unknown column": ("a.csv", b"x,z\n1,a\n2,b\n", "'y'"),
    "empty file": ("a.csv", b"", "no rows|empty"),
    "header only": ("a.csv", b"x,y\n", "no rows"),
    "garbage": ("a.csv", bytes(range(256)) * 10, "a.csv"),
    "garbage parquet": ("a.parquet", b"PAR1 this is not parquet", "a.parquet"),
    "fields": ("a.csv", b"x,y\n1,a\n2,b,3\n", "row 2"),
    "target null": ("a.csv", b"x,y\n1,a\n2,\n", "row 2, column 'y'"),
    "one class": ("a.csv", b"x,y\n1,a\n2,a\n", "one class only"),
    "infinite": ("a.csv", b"x,y\n1,a\ninf,b\n", "row 2, column 'x'"),
    "svm colon": ("a.svm", b"1 1:2\n-1 3\n", "row 2"),
    "svm twice": ("a.svm", b"1 1:2\n-1 1:3 1:4\n", "row 2"),
    "svm overflow": ("a.svm", b"1 1:2\n-1 99999999999:3\n", "row 2"),
    "svm nan": ("a.svm", b"1 1:2\n-1 1:nan\n", "row 2"),
    "svm cut": ("a.svm", b"1 1:2\n-1 1:", "row 2"),
    "vw weight": ("a.vw", b"1 | a\n-1 -2 | b\n", "row 2"),
    "vw number": ("a.vw", b"1 | a\n-1 | b:x\n", "row 2"),
    "vw label": ("a.vw", b"1 | a\n| b\n", "row 2"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_named_and_nothing_is_touched(run, tmp_path, case):
    name, content, message = BAD[case]
    if content is not None:
        (tmp_path / name).write_bytes(content)
    (tmp_path / "m").write_text("an earlier model")
    target = [] if name.endswith(("svm", "vw")) else ["--target", "y"]
    status, _, err = run("train", tmp_path / name, *target, "-o", tmp_path / "m")
    assert status == 2
    assert name.split(".")[0] in err
    assert re.search(message, err), err
    assert (tmp_path / "m").read_text() == "an earlier model"
    assert sorted(path.name for path in tmp_path.iterdir() if path.name not in (name, "m")) == []


def test_damaged_model(run, data, model):
    model.write_bytes(model.read_bytes()[:-1])
    status, _, err = run("predict", model, data)
    assert status == 2
    assert "damaged" in err


def test_a_prediction_that_fails_leaves_the_earlier_file(run, model, tmp_path):
    (tmp_path / "out.csv").write_text("earlier")
    (tmp_path / "bad.csv").write_text("age,job\n1,cook\ninf,cook\n")
    assert run("predict", model, tmp_path / "bad.csv", "-o", tmp_path / "out.csv")[0] == 2
    assert (tmp_path / "out.csv").read_text() == "earlier"
    assert run("predict", model, tmp_path / "bad.csv", "-o", tmp_path / "out.xlsx")[0] == 2


def test_training_from_a_file_imports_neither_pandas_nor_scikit_learn(data, tmp_path):
    code = (
        "import sys; from tunefree.cli import app as cli\n"
        f"sys.argv = ['tunefree', 'train', {str(data)!r}, '-t', 'rich', '-o', {str(tmp_path / 'm')!r}, '-q']\n"
        "try: cli.main()\nexcept SystemExit: pass\n"
        "print([m for m in ('pandas', 'sklearn', 'polars', 'numba', 'tunefree.cli.serve') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_uncompiled_code_writes_the_same_model(run, data, tmp_path):
    """NUMBA_DISABLE_JIT=1, for debugging: every compiled function also runs as plain Python."""
    few = tmp_path / "few.csv"
    few.write_text("".join(data.read_text().splitlines(keepends=True)[:40]))
    (tmp_path / "few.vw").write_text("".join(f"{1 - 2 * (i % 2)} |n a:{i % 7} b{i % 3}\n" for i in range(20)))
    options = ["--learner", "scinol2", "-q"]
    commands = [["train", str(few), "-t", "rich", *options], ["train", str(tmp_path / "few.vw"), *options]]
    for number, command in enumerate(commands):
        assert run(*command, "-o", tmp_path / f"compiled{number}")[0] == 0
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
