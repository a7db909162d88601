"""Rows as a view shows them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tunefree.core.rows import parts, with_parts
from tunefree.model import passes, views


def blank(name: str, X: Any) -> Any:
    """A view that has seen nothing, of rows like these."""
    return views.ALL[name].create(parts(X).numbers.shape[1])


def look(view: Any, X: Any, learns: np.ndarray) -> Any:
    """The rows as the view shows them; it learns from rows of weights above 0, each before it shows it."""
    numbers, pointers, entries = parts(X)
    views.check_width(view, numbers.shape[1])
    shown = np.empty_like(numbers), np.empty_like(entries)
    passes.look(view, learns, numbers, pointers, entries, *shown)
    return with_parts(X, *shown)
