"""The page of everyday things: every line of it runs."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from tests.workflows.test_training import people

PAGE = (Path(__file__).parents[2] / "docs" / "everyday.md").read_text()
LINES = re.findall(r"^\|.*\| `([^`]+)` \|$", PAGE, re.MULTILINE)


def frame(n, seed):
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(seed)
    table = {name: values for name, values in people(n, seed).items() if name != "pay"}
    return pandas.DataFrame(table).assign(city=rng.choice(["Bath", "York"], n), weight=rng.uniform(0.5, 2.0, n))


def test_there_are_thirty_things():
    assert len(LINES) >= 30
    assert len([row for row in PAGE.splitlines() if row.startswith("| ")]) == len(LINES) + 3  # of the heads


@pytest.mark.slow
def test_every_line_runs(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    names = {"people": frame(600, 0), "new": frame(200, 1)}
    later = frame(300, 2)
    files = {**names, "later": later.assign(height=later["age"] + 100.0)}
    for name, table in files.items():
        table.to_csv(f"{name}.csv", index=False)
    exec(re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)[1], names)
    rows = Path("new.csv").read_bytes()
    for line in LINES:
        if line.startswith("tunefree "):
            status, _, errors = run(*shlex.split(line)[1:], stdin=rows)
            assert status == 0, f"{line}\n{errors}"
        else:
            exec(line, names)
    for name in ("predictions.csv", "named.csv", "careful.csv", "answers.csv", "why.csv"):
        assert len(Path(name).read_text().splitlines()) == 201
    assert run("predict", "python.model", "new.csv")[0] == 0
    inspected = [run("inspect", f"{name}.model")[1] for name in ("later", "wider")]
    assert all("from row 601 on" in text for text in inspected)
    assert (names["alone"].predict_proba(names["X"]) == names["model"].predict_proba(names["X"])).all()
