"""Running the Python blocks of a page of the documentation, in order, in one namespace."""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tunefree.core.registry import Registry

DOCS = Path(__file__).parents[1] / "docs" / "extending"
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def run_page(name: str, until: str | None = None) -> dict[str, Any]:
    """Run the blocks of a page in ``docs/extending``, or those before the first that holds the text ``until``.

    Returns the names that they define. Errors tell the line in the page.
    """
    path = DOCS / name
    page = path.read_text()
    module = ModuleType(path.stem.replace("-", "_"))
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # classes are found by their module's name
    for block in _BLOCK.finditer(page):
        if until is not None and until in block[1]:
            break
        line = page.count("\n", 0, block.start(1))
        exec(compile("\n" * line + block[1], str(path), "exec"), module.__dict__)
    return module.__dict__


@contextmanager
def as_before(registry: Registry) -> Iterator[None]:
    """What is registered here is forgotten."""
    with pytest.MonkeyPatch.context() as patch:
        for table in ("_entries", "_of_others"):
            patch.setattr(registry, table, dict(getattr(registry, table)))
        yield
