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
        "prediction": "tunefree.workflows.prediction_model:ForPrediction",
    },
)

# New names of what files of format 1 call otherwise: parts of the names of arrays, and keys of headers.
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


def load(path: str | os.PathLike[str], kind: str | None = None, whole: bool = False) -> Any:
    """Read a model.

    Parameters
    ----------
    path : path
    kind : str, optional
        The only kind that is accepted; all kinds by default.
    whole : bool, default False
        Whether a model that only predicts is refused.

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
    if header["format"] == 1:
        arrays, header = _from_format_1(arrays, header)
    found = header.get("kind")
    if not isinstance(found, str) or found not in KINDS:
        raise ModelError(f"{path}: a model of kind {found!r}, which this tunefree does not know; upgrade tunefree")
    refused = getattr(KINDS[found], "refused", None)
    if refused is not None and (whole or found != (kind or found)):
        raise ModelError(f"{path}: {refused}")
    if found != (kind or found):
        raise ModelError(f"{path}: {KINDS[str(kind)].other_kind}")
    return _checked(path, found, arrays, header)


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


def _from_format_1(arrays: dict[str, np.ndarray], header: dict[str, Any]) -> Saved:
    """Arrays and header by the names they have now. Names in an encoder are columns of a user, and stay."""
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
