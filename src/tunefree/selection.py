"""How many passes pay: found for each member of a pool from rows that are held out.

Several passes over the same rows are early-stopped training, and each learner has its own time to stop. Shares of a
mixture say nothing when members are judged by rows they have learned, so they come from the held-out rows too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tunefree import passes
from tunefree.learners.contract import LARGEST
from tunefree.model import Model
from tunefree.pool import Mixture

PATIENCE = 4  # passes a member goes on without an improvement that is worthwhile
HOPELESS = 1.1  # times the loss of the best, after these passes, is too much to go on
WORTHWHILE = 5e-4  # part of the held-out loss


class Found(NamedTuple):
    """What the held-out rows tell of the members of a model."""

    passes: list[int]  # after which each member predicts best
    mixture: Mixture  # of the members, each after its passes
    loss: float  # mean held-out loss of the mixture


def find_passes(
    model: Model, learn_pass: Callable[[int, list[int]], None], X: Any, y: Any, weight: np.ndarray, most: int
) -> Found:
    """Let members learn, pass after pass, each until the held-out rows are predicted no better.

    Parameters
    ----------
    model : Model
    learn_pass : function
        Called with the number of the pass, from 1, and the members (by number) that take part; the first pass is all
        members', and may let some go.
    X, y, weight : block of rows, Labels or numbers, (n,) array
        Held-out rows.
    most : int
        Passes at most.
    """
    learn_pass(1, list(range(len(model.members))))
    targets = model.targets(y)
    kept = model.member_predictions(X)
    best, found = _losses(model, targets, weight, kept), [1] * len(model.members)
    busy = list(range(len(model.members)))
    for number in range(2, most + 1):
        learn_pass(number, busy)
        predictions = model.member_predictions(X)
        for m, loss in enumerate(_losses(model, targets, weight, predictions)):
            if m in busy and loss < (1.0 - WORTHWHILE) * best[m]:
                best[m], found[m], kept[m] = loss, number, predictions[m]
        hopeless = HOPELESS * min(best) if number > PATIENCE else np.inf
        busy = [m for m in busy if number - found[m] < PATIENCE and best[m] <= hopeless]
        if not busy:
            break
    mixture = Mixture.create(len(kept), 1.0 if model.task == "classification" else np.inf)
    mixed = np.empty_like(kept[0])
    passes.mix(mixture, model.objective, targets, weight, kept, mixed)
    return Found(found, mixture, _losses(model, targets, weight, mixed[None])[0])


def _losses(model: Model, targets: np.ndarray, weight: np.ndarray, predictions: np.ndarray) -> list[float]:
    """Mean loss of each member."""
    means, suffered = [], np.empty(len(targets))
    for prediction in predictions:
        passes.measure(model.objective, targets, prediction, suffered)
        with np.errstate(over="ignore"):
            means.append(min(float(np.average(suffered, weights=weight)), LARGEST))
    return means
