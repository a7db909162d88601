"""The pages on MLflow, DVC and containers, whose tools are not among the requirements."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from documentation.execution import census_files, executed

from tunefree.cli.app import COMMANDS

GUIDE = Path(__file__).parents[2] / "docs" / "guide"
RETRAINING = (GUIDE / "retraining.md").read_text()
OPERATION = (GUIDE / "operation.md").read_text()


@pytest.mark.slow
def test_a_model_is_logged_and_loaded_by_mlflow(tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"file:{tmp_path / 'runs'}")
    section = re.search(r"^## MLflow\n.*?(?=^## )", RETRAINING, re.M | re.S)
    served, logging = re.findall(r"^<!-- not executed[^\n]*\n```python\n(.*?)^```$", section[0], re.M | re.S)
    (tmp_path / "served.py").write_text(served)
    checked = "bool((probabilities == model.predict_proba(X_test)).all())"
    page = executed(f"```python\n{logging}{checked}\n```\n", tmp_path, names=census_files(tmp_path, 300, 100))
    assert page.rpartition("```text")[2].startswith("\nTrue")
    [run] = mlflow.MlflowClient().search_runs(["0"])
    assert 0.0 < run.data.metrics["test loss"] < 1.0
    mlflow.sklearn.autolog()
    try:
        from tunefree import TuneFreeClassifier

        TuneFreeClassifier().fit([[0.0], [1.0]] * 20, ["no", "yes"] * 20)
        assert len(mlflow.MlflowClient().search_runs(["0"])) == 1  # autologging logs nothing
    finally:
        mlflow.sklearn.autolog(disable=True)


@pytest.mark.slow
def test_stages_of_dvc_run_in_order(tmp_path):
    yaml = pytest.importorskip("yaml")
    census_files(tmp_path, 300, 100)
    stages = yaml.safe_load(re.search(r"```yaml\n(.*?)```", RETRAINING, re.S)[1])["stages"]
    for stage in stages.values():
        command, _, output = stage["cmd"].partition(" > ")
        assert all((tmp_path / name).exists() for name in stage["deps"])
        shown = executed(f"```console\n$ {command}\n```\n", tmp_path)
        if output:
            (tmp_path / output).write_text(shown.partition("```text\n")[2].rpartition("```")[0])
        assert all((tmp_path / name).exists() for name in [*stage.get("outs", []), *stage.get("metrics", [])])


def test_the_container_starts_a_command_that_exists():
    lines = re.search(r"```dockerfile\n(.*?)```", OPERATION, re.S)[1].replace("\\\n", " ").splitlines()
    instructions = [line.split()[0] for line in lines if line]
    assert instructions.count("FROM") == 2 and instructions[0] == "FROM" and instructions[-1] == "ENTRYPOINT"
    assert set(instructions) <= {"FROM", "WORKDIR", "COPY", "RUN", "USER", "EXPOSE", "ENTRYPOINT"}
    clone = Path(__file__).parents[2]
    for line in (line for line in lines if line.startswith("COPY")):
        assert all((clone / name).exists() for name in line.split()[1:-1])
    program, command, *_ = re.findall(r'"([^"]*)"', lines[-1])
    assert program == "tunefree" and command in COMMANDS
