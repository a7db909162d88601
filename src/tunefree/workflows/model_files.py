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
    "path": ("tunefree.workflows.stopped_model", "StoppedModel"),
}
REMEDIES = {
    "linear": "it holds a regularization path, which is neither certified nor gone on with; train by another --method",
    "path": "it was learned row by row and has no path; train with --method early-stopping, or give the data",
}

# What files of format 1 called otherwise: parts of the names of arrays, and keys of headers.
ARRAYS_OF_FORMAT_1 = {
    "counted": "evaluation_weight",
    "dealt": "fixed_share_cost",
    "endowed": "wealth_scale",
    "gaps": "mixability_gap",
    "missed": "clipping_cost",
}
KEYS_OF_FORMAT_1 = {
    "_sharpness": "_temperature",
    "choice": "kernel_config",
    "farewells": "may_prune",
    "functions": "members",
    "roster": "member_settings",
    "settled": "frozen",
    "tally": "metrics",
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
    tunefree.workflows.training.Trained or tunefree.workflows.stopped_model.StoppedModel
        Both have a ``model`` that predicts, its ``encoder``, and the ``plan`` of its training.

    Raises
    ------
    ModelError
        If the file cannot be read, or its kind is unknown or another.
    """
    arrays, header = storage.load(path)
    if header["format"] == 1:
        arrays, header = _from_format_1(arrays, header)
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


def _from_format_1(arrays: dict[str, np.ndarray], header: dict[str, Any]) -> Saved:
    """Arrays and header by the names they have now; an encoder's are a user's columns and stay."""
    learned = ("model", "estimator")
    renamed = {_renamed(name) if name.startswith(learned) else name: array for name, array in arrays.items()}
    return renamed, {key: _with_new_keys(part) if key in learned else part for key, part in header.items()}


def _renamed(name: str) -> str:
    return ".".join(ARRAYS_OF_FORMAT_1.get(word, word) for word in name.split("."))


def _with_new_keys(saved: Any) -> Any:
    if isinstance(saved, list):
        return [_with_new_keys(part) for part in saved]
    if not isinstance(saved, dict):
        return saved
    return {KEYS_OF_FORMAT_1.get(key, key): _with_new_keys(part) for key, part in saved.items()}
