"""How sure predictions are, in answers: intervals, quantiles and sets, where a request asks for them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import groupby
from typing import Any

import numpy as np

from tunefree.core.errors import ModelError
from tunefree.core.rows import part
from tunefree.serving.journal import Row
from tunefree.stream.batch import Batch
from tunefree.workflows.prediction import CONFORMAL, PLAIN, OutputColumns

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
    answers: list[Row], model: Any, batch: Batch, predictions: np.ndarray, layouts: list[OutputColumns]
) -> None:
    """Add to the answer of each row of a batch what its layout has; an infinite end of an interval is null.

    Raises
    ------
    ModelError
        If the model has no such thing, or too little evidence for it.
    """
    start = 0
    for layout, group in groupby(layouts):
        stop = start + len(list(group))
        if layout != PLAIN:
            further = _of_rows(model, batch, predictions, slice(start, stop), layout)
            for answer, of_row in zip(answers[start:stop], further, strict=True):
                answer.update(of_row)
        start = stop


def _of_rows(model: Any, batch: Batch, predictions: np.ndarray, rows: slice, layout: OutputColumns) -> list[Row]:
    layout.check(model)
    exposure = None if batch.exposure is None else batch.exposure[rows]
    of_rows = part(batch.rows, rows.start, rows.stop), predictions[rows]
    answers: list[Row] = [{} for _ in range(rows.stop - rows.start)]
    if layout.interval:
        _add(answers, "interval", layout.interval, model.intervals(*of_rows, np.array(layout.interval), exposure))
    if layout.quantiles:
        _add(answers, "quantiles", layout.quantiles, model.quantiles(*of_rows, np.array(layout.quantiles), exposure))
    if layout.set:
        sets = model.sets(*of_rows, np.array(layout.set), layout.conditional is not None)
        order = np.argsort(-model.probabilities(predictions[rows]), axis=1, kind="stable").tolist()
        for answer, of_row, codes in zip(answers, sets.tolist(), order, strict=True):
            labels = [[model.classes[k] for k in codes if in_set[k]] for in_set in of_row]
            answer["set"] = dict(zip(map(_name, layout.set), labels, strict=True))
    return answers


def _add(answers: list[Row], name: str, levels: tuple[float, ...], numbers: np.ndarray) -> None:
    """Add numbers (n, L, ...) of levels to answers."""
    names = list(map(_name, levels))
    for answer, of_row in zip(answers, numbers.tolist(), strict=True):
        answer[name] = dict(zip(names, map(_finite, of_row), strict=True))


def _name(level: float) -> str:
    return f"{level:g}"


def _finite(number: Any) -> Any:
    """Numbers as JSON has them."""
    if isinstance(number, list):
        return list(map(_finite, number))
    return number if math.isfinite(number) else None
