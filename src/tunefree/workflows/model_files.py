"""Model files of all kinds: each is read by the class that wrote it, which the header's kind tells."""

from __future__ import annotations

import importlib
import os
from typing import Any

import numpy as np

from tunefree.core import storage
from tunefree.core.errors import ModelError

KINDS = {
    "linear": ("tunefree.workflows.training", "Trained"),
    "path": ("tunefree.workflows.stopped_model", "Descended"),
}
REMEDIES = {
    "linear": "it holds a regularization path, which is neither certified nor gone on with; train by another --method",
    "path": "it was learned row by row and has no path; train with --method early-stopping, or give the data",
}

Saved = tuple[dict[str, np.ndarray], dict[str, Any]]  # arrays, and a header


def save(path: str | os.PathLike[str], kind: str, parts: dict[str, Saved], header: dict[str, Any]) -> None:
    """Write a model's parts, each of them arrays and a header, and what else its header says."""
    named = {f"{part}.{name}": array for part, (arrays, _) in parts.items() for name, array in arrays.items()}
    storage.save(path, named, {"kind": kind, **{part: own for part, (_, own) in parts.items()}, **header})


def load(path: str | os.PathLike[str], kind: str | None = None) -> Any:
    """Read a model.

    Parameters
    ----------
    path : path
    kind : str, optional
        The one kind that will do.

    Returns
    -------
    tunefree.workflows.training.Trained or tunefree.workflows.stopped_model.Descended
        Both have a ``model`` that predicts, its ``encoder``, and the ``plan`` of its training.

    Raises
    ------
    ModelError
        If the file cannot be read, or its kind is unknown or another.
    """
    arrays, header = storage.load(path)
    found = header.get("kind")
    if found not in KINDS:
        raise ModelError(f"{path}: a model of kind {found!r}, which this tunefree does not know; upgrade tunefree")
    if found != (kind or found):
        raise ModelError(f"{path}: {REMEDIES[str(kind)]}")
    module, name = KINDS[found]
    parts: dict[str, dict[str, np.ndarray]] = {}
    for key, array in arrays.items():
        part, _, rest = key.partition(".")
        parts.setdefault(part, {})[rest] = array
    return getattr(importlib.import_module(module), name).restored(parts, header)
