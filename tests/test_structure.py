"""The house keeps its shape: imports point one way, functions stay small."""

import ast
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "tunefree"
FILES = sorted(SOURCE.rglob("*.py"))

# Rooms from the ground up: each may import those below it, and itself.
FLOORS = [
    {"core"},
    {"compiled"},
    {"stream", "learners"},
    {"losses"},
    {"theory", "mixing", "generations"},
    {"intervals"},
    {"pool"},
    {"explanation"},
    {"plotting"},
    {"model_files"},
    {"training"},
    {"workflows", "export", "prediction"},
    {"estimators", "river"},
    {"report", "serving", "distributed"},
    {"cli"},
    {"papers"},
]


@cache
def nodes_of(path: Path) -> list[ast.AST]:
    return list(ast.walk(ast.parse(path.read_text())))


def room_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


@cache
def imported(path: Path) -> set[str]:
    """The modules of the package that a file imports, anywhere in it, as dotted names without ``tunefree.``."""
    modules = set()
    for node in nodes_of(path):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "tunefree":
            module = node.module.split(".")[1:]
            modules.update(".".join([*module, alias.name]) for alias in node.names)
        elif isinstance(node, ast.Import):
            modules.update(alias.name.split(".", 1)[1] for alias in node.names if alias.name.startswith("tunefree."))
    return modules


def floor(room: str) -> int:
    return next(i for i, rooms in enumerate(FLOORS) if room in rooms)


def test_nothing_but_rooms_stands_at_the_root():
    rooms = {room for rooms in FLOORS for room in rooms}
    names = {room_of(path) for path in SOURCE.iterdir() if path.name != "__pycache__"}
    assert names == rooms | {"__init__", "__main__", "data"}


def test_imports_point_one_way():
    for path in [path for path in FILES if room_of(path) not in ("__init__", "__main__")]:
        here = room_of(path)
        for module in imported(path):
            room = module.split(".")[0]
            assert room == here or floor(room) < floor(here), f"{path} imports {module}"


def test_no_files_import_each_other():
    modules = {".".join(p.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__"): p for p in FILES}
    arrows = {
        module: {name if name in modules else name.rpartition(".")[0] for name in imported(path)} - {module}
        for module, path in modules.items()
    }
    for start in arrows:
        seen, waiting = set(), [start]
        while waiting:
            for target in arrows.get(waiting.pop(), set()) - seen:
                assert target != start, f"{start} imports itself through {sorted(seen)}"
                seen.add(target)
                waiting.append(target)


def test_functions_stay_small():
    for path in FILES:
        for node in nodes_of(path):
            if isinstance(node, ast.FunctionDef):
                lines = lines_of(node)
                assert lines <= 40 or node.name == "train", f"{node.name} of {path} has {lines} lines"


def lines_of(function: ast.FunctionDef) -> int:
    """Lines of a function without its docstring."""
    first, body = function.body[0], function.body
    documented = isinstance(first, ast.Expr) and isinstance(getattr(first, "value", None), ast.Constant)
    start = body[1].lineno if documented and len(body) > 1 else first.lineno
    return (function.end_lineno or start) - start + 1 + (0 if documented else first.lineno - function.lineno)


def test_nothing_is_pickled_or_evaluated():
    for path in FILES:
        names = {node.id for node in nodes_of(path) if isinstance(node, ast.Name)}
        allowed = {"exec"} if path.name == "exporting.py" else set()  # of what they write of declarations
        assert not (names - allowed) & {"eval", "exec", "pickle"}, path


def test_the_product_names_nothing_of_the_papers():
    for path in FILES:
        if room_of(path) != "papers":
            assert "tunefree.papers." not in path.read_text(), path  # but by entry points
