"""Digests of the files that results are made of: code and data. A result in the cache has that of its own."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable
from functools import cache
from importlib.util import find_spec
from pathlib import Path

PACKAGE = "tunefree"


@cache
def code_digest(module: str) -> str:
    """A digest of a module and of all modules of the package that it imports, directly or not.

    Examples
    --------
    >>> code_digest("tunefree.core.errors") == code_digest("tunefree.core.errors") != code_digest("builtins")
    True
    """
    known, waiting = dict[str, bytes](), [module]
    while waiting:
        name = waiting.pop()
        path = _file_of(name)
        if name not in known and path is not None:
            known[name] = path.read_bytes()
            waiting += imported(known[name])
    digest = hashlib.sha256()
    for name in sorted(known):
        digest.update(name.encode() + b"\0" + known[name] + b"\0")
    return digest.hexdigest()[:16]


def imported(source: bytes) -> set[str]:
    """The modules of the package that source code imports, anywhere in it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == PACKAGE:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names if alias.name.split(".")[0] == PACKAGE}
    return names


def _file_of(module: str) -> Path | None:
    """The source file of a module; None for a name that is no module, or has none."""
    try:
        spec = find_spec(module)
    except (ModuleNotFoundError, ValueError):
        return None
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        return None
    return Path(spec.origin)


@cache
def file_digest(path: Path) -> str:
    """A digest of the content of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def digest_of(module: str, files: Iterable[Path]) -> str:
    """A digest of a module's code and of data files."""
    return "-".join([code_digest(module), *(file_digest(path) for path in files)])
