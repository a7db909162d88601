"""Benchmarks run: each script in benchmarks/, with the few rows of --quick. Their types are checked by `make check`."""

import importlib
import re
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "benchmarks"
SCRIPTS = sorted(path.stem for path in FOLDER.glob("*.py") if "__main__" in path.read_text())
EXTRAS = ("catboost", "distributed", "lightgbm", "river", "vowpalwabbit")  # which need not be installed
PARTS = {  # of scripts that measure several things
    "generations": ("tables", "tables --door fit", "streams", "late", "frozen", "small", "texts", "copies", "time"),
    "intervals": ("", "--part streams", "--part time"),
    "scale_out": ("losses", "speed", "plan"),
}
CALLS = [f"{name} {part}".strip() for name in SCRIPTS for part in PARTS.get(name, ("",))]
FAST = ("generations late", "growers", "learning_pass", "presets", "row_picture", "tokenizer")


@contextmanager
def with_extras():
    """Skip a test where what is in it imports an extra that is not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name not in EXTRAS:
            raise
        pytest.skip(f"{error.name} is not installed")


@pytest.fixture
def script(tmp_path, monkeypatch):
    """Imports a script, which keeps its files in a folder of the test."""
    monkeypatch.syspath_prepend(FOLDER)
    monkeypatch.setattr(importlib.import_module("common"), "FOLDER", tmp_path)

    def imported(name):
        with with_extras():
            return importlib.import_module(name)

    yield imported
    for name, module in list(sys.modules.items()):
        if Path(getattr(module, "__file__", None) or "/").parent == FOLDER:
            del sys.modules[name]


def test_documents_name_all_scripts_and_no_others():
    texts = [path.read_text() for path in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md"))]
    assert {name for text in texts for name in re.findall(r"benchmarks/(\w+)\.py", text)} <= set(SCRIPTS)
    assert set(SCRIPTS) <= set(re.findall(r"(\w+)\.py", (ROOT / "docs" / "results.md").read_text()))


@pytest.mark.parametrize("call", [pytest.param(c, marks=() if c in FAST else pytest.mark.slow) for c in CALLS])
def test_it_runs(call, script, capsys):
    name, *arguments = call.split()
    with with_extras():
        script(name).main([*arguments, "--quick"])
    assert not re.search(r"\bnan\b", capsys.readouterr().out, re.IGNORECASE)
