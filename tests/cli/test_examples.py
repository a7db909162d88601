"""The examples in the help of commands and the lines of the page of everyday things, run as they stand there."""

import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.serving.model import Server
from tests.workflows.test_training import people
from tunefree.cli import app as cli

N = 300
PAGE = (Path(__file__).parents[2] / "docs" / "everyday.md").read_text()
LINES = re.findall(r"^\|.*\| `([^`]+)` \|$", PAGE, re.MULTILINE)
RUN_APART = ("serve", "reproduce", "export")  # whose examples need a server, minutes, or a model without texts


def frame(n, seed):
    rng = np.random.default_rng(seed)
    table = {name: values for name, values in people(n, seed).items() if name != "pay"}
    return pd.DataFrame(table).assign(city=rng.choice(["Bath", "York"], n), weight=rng.uniform(0.5, 2.0, n))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for seed, name in enumerate(("people", "test", "new", "next", "more")):
        rows = frame(N, seed).rename(columns={"city": "education", "rich": "income"})
        rows = rows.assign(name=[f"person {i}" for i in range(N)], zip=np.arange(N) % 20 + 10_000)
        rows.to_csv(tmp_path / f"{name}.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def command(done):
    return lambda line: done(*shlex.split(line)[1:])


def examples(name):
    """The commands in the help of a command."""
    lines = [line.strip() for line in (cli.COMMANDS[name].__doc__ or "").splitlines()]
    return [line for line in lines if re.match(r"(tunefree|curl) \S", line)]


@pytest.mark.slow
def test_examples_run(command, folder):
    command("tunefree train people.csv --target income --learner scinol2 -o linear.model -q")
    command("tunefree train people.csv --target age -o ages.model -q")
    for learner, name in (("scinol2", "first"), ("adagrad", "second")):
        command(f"tunefree train people.csv --target income --learner {learner} -o {name}.model -q")
    for name in ("claims", "other"):
        command(f"tunefree train people.csv --target age --loss poisson --learner scinol2 -o {name}.model -q")
    lines = [line for name in ("train", *cli.COMMANDS.search()) if name not in RUN_APART for line in examples(name)]
    for line in dict.fromkeys(lines):
        command(line)
    written = "people.model people.png predictions.csv why.csv weights.csv curves.png people.html"
    for name in written.split():
        assert (folder / name).stat().st_size


def test_examples_of_the_server_run(command, folder):
    pytest.importorskip("starlette")
    frame(N, 9)[["age", "job", "rich"]].to_csv("r.csv", index=False)
    command("tunefree train r.csv --target rich --learner scinol2 -o people.model -q")
    line, *requests = examples("serve")
    server = Server(*shlex.split(line)[2:])
    try:
        sent = [re.search(r"--json '(.*)' localhost:8000(/\w+)", line).groups() for line in requests]
        (first, predicted), second = (server.ask("POST", path, body.encode()) for body, path in sent)
    finally:
        server.kill()
    assert first == 200 and "probabilities" in predicted and second == (200, {"learned": 1, "unknown": []})
    assert (folder / "people.store" / "current.model").exists()


@pytest.mark.slow
def test_every_line_runs(tmp_path, monkeypatch, run, done):
    monkeypatch.chdir(tmp_path)
    names = {"people": frame(600, 0), "new": frame(200, 1)}
    later = frame(300, 2)
    files = {**names, "later": later.assign(height=later["age"] + 100.0)}
    for name, table in files.items():
        table.to_csv(f"{name}.csv", index=False)
    exec(re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)[1], names)
    rows = Path("new.csv").read_bytes()
    assert len(LINES) >= 30
    for line in LINES:
        if line.startswith("tunefree "):
            status, _, errors = run(*shlex.split(line)[1:], stdin=rows)
            assert status == 0, f"{line}\n{errors}"
        else:
            exec(line, names)
    for name in ("predictions.csv", "named.csv", "careful.csv", "answers.csv", "why.csv"):
        assert len(Path(name).read_text().splitlines()) == 201
    done("predict", "python.model", "new.csv")
    inspected = [run("inspect", f"{name}.model")[1] for name in ("later", "wider")]
    assert all("from row 601 on" in text for text in inspected)
    assert (names["alone"].predict_proba(names["X"]) == names["model"].predict_proba(names["X"])).all()
