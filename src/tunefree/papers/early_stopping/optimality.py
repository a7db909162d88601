"""Bounds on the optimisation error of the subgradient method: by its path, and by the lemmas of its paper."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tunefree.papers.early_stopping.stopping_times import largest_step, optimisation_bound
from tunefree.theory.bounds import Bound, no_bound

PAPER = "Lin, Rosasco, Zhou 2016"


def least_error(records: np.ndarray, radius: float) -> float:
    """A number that the empirical error of no f with ||f|| <= radius is below, from the recorded path of full steps.

    The error is convex, so it is at least the mean, with weights eta_t, of its tangents in f_1, ..., f_{T-1}; and the
    mean of the subgradients is -f_T / sum eta_t. Of all T the best bound is taken. Lemma 14 of the paper is this with
    the inner product <f_T, f> bounded by (||f_T||^2 + ||f||^2) / 2. No loss is below 0.
    """
    mass = np.cumsum(records["step"])[:-1]
    tangents = np.cumsum(records["step"] * (records["training_loss"] - records["inner"]))[:-1]
    bounds = (tangents - radius * records["norm"][1:]) / mass
    return float(max(bounds.max(initial=0.0), 0.0))


def descends(records: np.ndarray) -> bool:
    """Whether each step lowered the empirical error by half its squared length over eta_t: what Lemma 20 rests on."""
    step, norm, error = records["step"][:-1], records["norm"], records["training_loss"]
    length = np.maximum(norm[1:] ** 2 - norm[:-1] ** 2 + 2.0 * step * records["inner"][:-1], 0.0)
    return bool((np.diff(error) <= -0.5 * length / step + 1e-9 * (1.0 + error[:-1])).all())


def lemma_bound(
    records: np.ndarray, loss: Any, *, theta: float, kappa: float, radius: float, bound: float, output: str
) -> Bound:
    """The bound on the empirical error of an output minus that of functions of norm ``radius``: Lemmas 17, 19 and 20.

    Parameters
    ----------
    records : (T,) array
        Of the path up to the output.
    loss : loss
        Of one output.
    theta, kappa, radius, bound, output
        See :func:`tunefree.papers.early_stopping.stopping_times.optimisation_bound`.
    """
    if len(records) < 3:
        return no_bound("the lemmas are of at least 3 iterations")
    step, is_smooth = float(records["step"][0]), loss.smoothness < math.inf
    if loss.growth(bound).power == math.inf:
        return no_bound(f"no power bounds the slopes of the {type(loss).__name__} loss")
    largest = largest_step(loss, theta, kappa, bound)
    if step > largest * (1.0 + 1e-12) and not (is_smooth and descends(records)):
        return no_bound(f"the lemmas assume eta_1 <= {largest:.6g}, and it is {step:.6g}")
    value = optimisation_bound(
        len(records), loss, theta=theta, step=step, kappa=kappa, radius=radius, bound=bound, output=output
    )
    lemma = "Lemma 20" if is_smooth else "Lemma 17" if output == "last" else "Lemma 19"
    needs_norms = output == "average" if is_smooth else output == "last"
    assumes = "no iterate has a larger norm than the function" if needs_norms else ""
    return Bound(value, f"{PAPER}, {lemma}", assumes)
