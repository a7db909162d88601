"""What the recorded path proves of the optimisation error: a lower bound on the empirical error of all predictors."""

from __future__ import annotations

import numpy as np


def least_error(path: np.ndarray, radius: float) -> float:
    """A number that the empirical error of no f with ||f|| <= radius is below, from the recorded path of full steps.

    The error is convex, so it is at least the mean, with weights eta_t, of its tangents in f_1, ..., f_{T-1}; and the
    mean of the subgradients is -f_T / sum eta_t. Of all T the best bound is taken. Lemma 14 of the paper is this with
    the inner product <f_T, f> bounded by (||f_T||^2 + ||f||^2) / 2. No loss is below 0.
    """
    mass = np.cumsum(path["step"])[:-1]
    tangents = np.cumsum(path["step"] * (path["training_loss"] - path["inner"]))[:-1]
    bounds = (tangents - radius * path["norm"][1:]) / mass
    return float(max(bounds.max(initial=0.0), 0.0))


def descends(path: np.ndarray) -> bool:
    """Whether each step lowered the empirical error by half its squared length over eta_t: what Lemma 20 rests on."""
    step, norm, error = path["step"][:-1], path["norm"], path["training_loss"]
    length = np.maximum(norm[1:] ** 2 - norm[:-1] ** 2 + 2.0 * step * path["inner"][:-1], 0.0)
    return bool((np.diff(error) <= -0.5 * length / step + 1e-9 * (1.0 + error[:-1])).all())
