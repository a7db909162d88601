"""How many passes pay: found for each member of a pool from rows that are held out.

Several passes over the same rows are early-stopped training, and each learner has its own time to stop. Shares of a
mixture say nothing when members are judged by rows they have learned, so they come from the held-out rows too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tunefree.core.numbers import LARGEST
from tunefree.losses.objectives import measure
from tunefree.model import pool as member_settings
from tunefree.model.mixture import Mixture, mix
from tunefree.model.model import Model

PATIENCE = 4  # passes a member goes on without an improvement that is worthwhile
HOPELESS = 1.1  # times the loss of the best, after these passes, is too much to go on
FAR_BEHIND = 2.0  # times the loss of the best is too much for a linear member beside kernels, at any time
WORTHWHILE = 5e-4  # part of the held-out loss
# A pass of a kernel learner costs more, and does more.
KERNEL_PATIENCE = 2  # 1 where there are MANY rows, of which a pass takes long and leaves little to learn
MANY = 8_000
KERNEL_WORTHWHILE = 2e-3


class Found(NamedTuple):
    """What the held-out rows tell of the members of a model."""

    passes: list[int]  # after which each member predicts best
    mixture: Mixture  # of the members, each after its passes
    scalings: list[Any]  # of kernel learners, each after its passes; None of others
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
    model.recalibrate(X, y, weight)
    targets = model.targets(y)
    kept = model.member_predictions(X)
    best, found = _losses(model, targets, weight, kept), [1] * len(model.members)
    is_kernel = [member_settings.is_kernel(setting.learner) for setting in model.member_settings]
    rows = model.mixture.rounds[()]
    patience = np.where(is_kernel, KERNEL_PATIENCE if rows < MANY else 1, PATIENCE)
    worthwhile = np.where(is_kernel, KERNEL_WORTHWHILE, WORTHWHILE)
    scalings = [member.calibration if kernel else None for member, kernel in zip(model.members, is_kernel, strict=True)]
    busy = _hopeful(best, list(range(len(best))), is_kernel, 1)
    for number in range(2, most + 1):
        learn_pass(number, busy)
        model.recalibrate(X, y, weight, busy)
        predictions = model.member_predictions(X)
        for m, loss in enumerate(_losses(model, targets, weight, predictions)):
            if m in busy and loss < (1.0 - worthwhile[m]) * best[m]:
                best[m], found[m], kept[m] = loss, number, predictions[m]
                scalings[m] = model.members[m].calibration if is_kernel[m] else None
        busy = [m for m in _hopeful(best, busy, is_kernel, number) if number - found[m] < patience[m]]
        if not busy:
            break
    mixture = Mixture.create(len(kept), 1.0 if model.task == "classification" else np.inf)
    mixed = np.empty_like(kept[0])
    mix(mixture, model.objective, targets, weight, kept, mixed)
    return Found(found, mixture, scalings, _losses(model, targets, weight, mixed[None])[0])


def _hopeful(best: list[float], busy: list[int], is_kernel: list[bool], number: int) -> list[int]:
    """Who may still become good, after so many passes."""
    least = min(best)
    of_kernels = (1.0 + 0.5 / number) * least
    early = FAR_BEHIND * least if any(is_kernel) else np.inf
    of_others = HOPELESS * least if number > PATIENCE else early
    return [m for m in busy if best[m] <= (of_kernels if is_kernel[m] else of_others)]


def _losses(model: Model, targets: np.ndarray, weight: np.ndarray, predictions: np.ndarray) -> list[float]:
    """Mean loss of each member."""
    means, row_losses = [], np.empty(len(targets))
    for prediction in predictions:
        measure(model.objective, targets, prediction, row_losses)
        with np.errstate(over="ignore"):
            means.append(min(float(np.average(row_losses, weights=weight)), LARGEST))
    return means
