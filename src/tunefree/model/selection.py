"""The number of passes of each member of a pool, found from rows that are held out.

Several passes over the same rows are early-stopped training, and each learner has its own time to stop. Losses on rows
that were learned before do not tell how good a member is, so the shares of the mixture come from the held-out rows too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tunefree.core.numbers import LARGEST
from tunefree.losses.objectives import measure
from tunefree.model.mixture import Mixture, mix, n_rounds
from tunefree.model.model import Model
from tunefree.model.patience import KERNEL_MEMBER, KERNEL_MEMBER_OF_MANY_ROWS, MEMBER
from tunefree.model.pool import is_kernel

HOPELESS = 1.1  # times the loss of the best, once patience with the first pass is over, is too much to go on
FAR_BEHIND = 2.0  # times the loss of the best is too much for a linear member beside kernels, at any time
MANY = 8_000  # rows


class Found(NamedTuple):
    """What the held-out rows tell of the members of a model."""

    passes: list[int]  # after which each member predicts best
    mixture: Mixture  # of the members, each after its passes
    scalings: list[Any]  # calibrations of kernel learners, each after its passes; None of others
    loss: float  # mean held-out loss of the mixture
    predictions: np.ndarray  # (N, n, K) of the held-out rows, of each member after its passes


def find_passes(
    model: Model,
    learn_pass: Callable[[int, list[int]], None],
    X: Any,
    y: Any,
    weight: np.ndarray,
    most: int,
    kernels_only: bool = False,
) -> Found:
    """Let members learn, pass after pass, each until its predictions of the held-out rows no longer improve.

    Parameters
    ----------
    model : Model
    learn_pass : function
        Called with the number of the pass, from 1, and the members (by number) that take part. All members take part
        in the first pass, during which some may be pruned.
    X, y, weight : block of rows, Labels or numbers, (n,) array
        Held-out rows.
    most : int
        Passes at most.
    kernels_only : bool, default False
        Whether only members with kernels make more than one pass.
    """
    learn_pass(1, list(range(len(model.members))))
    model.recalibrate(X, y, weight)
    targets = model.targets(y)
    kept = model.member_predictions(X)
    best, found = _losses(model, targets, weight, kept), [1] * len(model.members)
    of_kernels = [is_kernel(setting.learner) for setting in model.member_settings]
    kernel_patience = KERNEL_MEMBER if n_rounds(model.mixture) < MANY else KERNEL_MEMBER_OF_MANY_ROWS
    patience = [kernel_patience if kernel else MEMBER for kernel in of_kernels]
    scalings = [own.calibration if kernel else None for own, kernel in zip(model.members, of_kernels, strict=True)]
    may_repeat = [m for m, kernel in enumerate(of_kernels) if kernel or not kernels_only]
    busy = _hopeful(best, may_repeat, of_kernels, 1)
    for number in range(2, most + 1 if busy else 2):
        learn_pass(number, busy)
        model.recalibrate(X, y, weight, busy)
        predictions = model.member_predictions(X)
        for m, loss in enumerate(_losses(model, targets, weight, predictions)):
            if m in busy and patience[m].improves(loss, best[m]):
                best[m], found[m], kept[m] = loss, number, predictions[m]
                scalings[m] = model.members[m].calibration if of_kernels[m] else None
        busy = [m for m in _hopeful(best, busy, of_kernels, number) if number - found[m] < patience[m].passes]
        if not busy:
            break
    mixture = Mixture.for_task(model.task, len(kept))
    mixed = np.empty_like(kept[0])
    mix(mixture, model.objective, targets, weight, kept, mixed)
    return Found(found, mixture, scalings, _losses(model, targets, weight, mixed[None])[0], kept)


def _hopeful(best: list[float], busy: list[int], of_kernels: list[bool], number: int) -> list[int]:
    """The members whose loss is not too far behind the best, after so many passes."""
    least = min(best)
    bound_of_kernels = (1.0 + 0.5 / number) * least
    early = FAR_BEHIND * least if any(of_kernels) else np.inf
    bound_of_others = HOPELESS * least if number > MEMBER.passes else early
    return [m for m in busy if best[m] <= (bound_of_kernels if of_kernels[m] else bound_of_others)]


def _losses(model: Model, targets: np.ndarray, weight: np.ndarray, predictions: np.ndarray) -> list[float]:
    """Mean loss of each member."""
    means, row_losses = [], np.empty(len(targets))
    for prediction in predictions:
        measure(model.objective, targets, prediction, row_losses)
        with np.errstate(over="ignore"):
            mean = float(np.average(row_losses, weights=weight))
            means.append(mean if mean < LARGEST else LARGEST)  # also where a member sleeps, and predicts NaN
    return means
