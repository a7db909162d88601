"""The house keeps its shape: imports point one way, files and functions stay small."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "tunefree"
FILES = sorted(SOURCE.rglob("*.py"))

# Each layer may import those that come before it, and its own.
LAYERS = [
    {"errors", "compiled", "threads"},
    {"generic", "storage"},
    {"modelfile"},
    {"rows", "losses"},
    {"growth", "links"},
    {"theory"},
    {"learners", "views"},
    {"objectives"},
    {"certificate", "pool"},
    {"passes"},
    {"members", "calibration", "looking"},
    {"targets"},
    {"kernel"},
    {"roster", "saving"},
    {"model"},
    {"selection", "stream"},
    {"training", "estimators"},
    {"evaluation", "comparison", "certification", "path_model"},
    {"predictions", "display", "picture", "descent"},
    {"inspection"},
    {"demonstration", "reproduce"},
    {"cli"},
]
ALLOWED_IN_STREAM = {"errors", "compiled", "rows", "storage", "stream"}


def part_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported(path: Path) -> set[str]:
    parts = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("tunefree"):
            names = node.module.split(".")[1:2] or [alias.name for alias in node.names]
            parts.update(names)
        elif isinstance(node, ast.Import):
            parts.update(alias.name.split(".")[1] for alias in node.names if alias.name.startswith("tunefree."))
    return parts


def layer(part: str) -> int:
    return next(i for i, parts in enumerate(LAYERS) if part in parts)


@pytest.mark.parametrize(
    "path", [p for p in FILES if part_of(p) != "__init__"], ids=lambda p: str(p.relative_to(SOURCE))
)
def test_imports_point_one_way(path):
    here = part_of(path)
    for part in imported(path):
        assert part == here or layer(part) < layer(here), f"{here} imports {part}"
        assert here != "stream" or part in ALLOWED_IN_STREAM, f"stream imports {part}"
        assert here != "learners" or part not in ("losses", "objectives", "stream"), f"a learner imports {part}"


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_files_and_functions_stay_small(path):
    text = path.read_text()
    assert len(text.splitlines()) <= 500
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            first = node.body[0]
            documented = isinstance(first, ast.Expr) and isinstance(getattr(first, "value", None), ast.Constant)
            start = node.body[1].lineno if documented and len(node.body) > 1 else first.lineno
            signature = first.lineno - node.lineno
            lines = (node.end_lineno or start) - start + 1 + (0 if documented else signature)
            assert lines <= 40 or node.name == "train", f"{node.name} has {lines} lines"


def test_nothing_is_pickled_or_evaluated():
    for path in FILES:
        names = {node.id for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Name)}
        assert not names & {"eval", "exec", "pickle"}, path
