"""How sure predictions are, in answers: intervals, quantiles and sets, where a request asks for them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from tunefree.core.errors import ModelError
from tunefree.core.rows import part
from tunefree.serving.journal import Row
from tunefree.stream.batch import Batch
from tunefree.workflows.prediction import CONFORMAL, OutputColumns, sureness

NAMES = (*CONFORMAL, "conditional")  # of what a request may ask for


def asked_for(parameters: Mapping[str, str]) -> OutputColumns:
    """What the parameters of a request ask for.

    Raises
    ------
    ModelError
        If a value makes no sense.

    Examples
    --------
    >>> asked_for({"interval": "0.5,0.9"}).interval
    (0.5, 0.9)
    """
    parts: dict[str, Any] = {}
    for name, text in parameters.items():
        try:
            parts[name] = tuple(map(float, text.split(","))) if name in CONFORMAL else text
        except ValueError:
            raise ModelError(f"`{name}` takes numbers with commas between them, not {text!r}") from None
    return OutputColumns(**parts)


def add_sureness(
    answers: list[Row], model: Any, batch: Batch, predictions: np.ndarray, rows: slice, layout: OutputColumns
) -> None:
    """Add to the answers of some rows of a batch what a layout has; an infinite end of an interval is null.

    Raises
    ------
    ModelError
        If the model has no such thing, or too little evidence for it.
    """
    layout.check(model)
    exposure = None if batch.exposure is None else batch.exposure[rows]
    of_rows = part(batch.rows, rows.start, rows.stop), predictions[rows], exposure
    for name, level, values in sureness(model, *of_rows, layout):
        for answer, value in zip(answers[rows], map(_finite, values), strict=True):
            answer.setdefault(name, {})[f"{level:g}"] = value


def _finite(value: Any) -> Any:
    """Numbers as JSON has them."""
    if isinstance(value, np.ndarray):
        return list(map(_finite, value.tolist()))
    return None if isinstance(value, float) and not math.isfinite(value) else value
