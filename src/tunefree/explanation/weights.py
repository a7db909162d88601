"""The weights of single linear learners, in the units of the data."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tunefree.core.errors import ModelError
from tunefree.explanation.members import unit_and_centre
from tunefree.pool.model import Model

LARGEST = np.finfo(np.float64).max


class Weights(NamedTuple):
    """A linear function of the features."""

    names: list[str]  # of the features, the constant first
    weights: np.ndarray  # (d, K): margin = weights[0] + sum of weights[j] * x_j


def linear_weights(model: Model, names: list[str]) -> Weights:
    """The weights of a model that is one linear learner on rows as they are.

    ``names``: of the features, without the constant.
    """
    group = model.linear
    if model.pool is not None or len(model.members) != 1 or not group.members or model.options.view != "raw":
        raise ModelError(
            "only single linear learners on raw rows have weights of features; explain tells what columns contribute,"
            " and feature_importances_ or inspect how much they matter"
        )
    weights, units = group.present().weights_by_feature(model.n_features)
    unit, centre = unit_and_centre(model.objective)
    with np.errstate(over="ignore", invalid="ignore"):
        relative = np.where(units[:, None] > 0.0, weights / np.where(units > 0.0, units, 1.0)[:, None], 0.0)
        relative = np.clip(relative, -LARGEST, LARGEST)
        relative[0] += centre
        relative = np.clip(relative * unit, -LARGEST, LARGEST)
    return Weights(["(constant)", *names], relative[: 1 + len(names)])
