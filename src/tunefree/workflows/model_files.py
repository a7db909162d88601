"""Model files of all kinds: the header of a file names its kind, and the class of that kind reads it."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from tunefree.core import storage
from tunefree.core.errors import ModelError, TunefreeError
from tunefree.core.registry import Registry
from tunefree.workflows import relations, schemas

# A class of models has ``file_kind``, its name here, and ``other_kind``, what to tell of a file of another kind. It
# makes a model from the parts of a file with ``restore(arrays, header)``.
KINDS = Registry(
    "kind of model",
    {
        "linear": "tunefree.workflows.training:Trained",
        "path": "tunefree.workflows.stopped_model:StoppedModel",
    },
)

MOST_SHOWN = 500  # letters of what is wrong: a file could fill the screen
_WHAT_LIES_RAISE = (ArithmeticError, AttributeError, AssertionError, LookupError, MemoryError, TypeError, ValueError)

Saved = tuple[dict[str, np.ndarray], dict[str, Any]]  # arrays, and a header


def save(path: str | os.PathLike[str], kind: str, parts: dict[str, Saved], header: dict[str, Any]) -> None:
    """Write a model to a file.

    Parameters
    ----------
    path : path
    kind : str
        A name in ``KINDS``.
    parts : dict of str to (dict of arrays, dict)
        For each part its arrays, and what the header says of it.
    header : dict
        What else the header says.
    """
    storage.save_parts(path, parts, {"kind": kind, **header})


def load(path: str | os.PathLike[str], kind: str | None = None) -> Any:
    """Read a model.

    Parameters
    ----------
    path : path
    kind : str, optional
        The only kind that is accepted; all kinds by default.

    Returns
    -------
    tunefree.workflows.training.Trained or tunefree.workflows.stopped_model.StoppedModel
        Both are a :class:`tunefree.workflows.prediction.Predictor`.

    Raises
    ------
    ModelError
        If the file cannot be read, or its kind is unknown or not accepted.
    """
    arrays, header = storage.load(path)
    written = header.get("kind")
    if not isinstance(written, str) or written not in KINDS:
        raise ModelError(f"{path}: a model of kind {written!r}, which this tunefree does not know; upgrade tunefree")
    if written != (kind or written):
        raise ModelError(f"{path}: {KINDS[str(kind)].other_kind}")
    return _checked(path, written, arrays, header)


def _checked(path: Any, kind: str, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> Any:
    """The model of a file that may have been made to mislead: a checksum can be computed of anything."""
    parts: dict[str, dict[str, np.ndarray]] = {}
    for key, array in arrays.items():
        part, _, rest = key.partition(".")
        parts.setdefault(part, {})[rest] = array
    remedy = "train again or restore it from a backup"
    try:
        schemas.check(kind, arrays, header)
        made = KINDS[kind].restore(parts, header)
        relations.check(made)
        return made
    except TunefreeError as error:
        raise ModelError(f"{path}: {str(error)[:MOST_SHOWN]}; {remedy}") from None
    except _WHAT_LIES_RAISE as error:
        raise ModelError(f"{path}: its parts do not fit together ({repr(error)[:MOST_SHOWN]}); {remedy}") from None
