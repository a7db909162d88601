"""The hinge loss."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tunefree.losses.contract import curvature, left_slope, link, slope, value


class Hinge(NamedTuple):
    """max(0, 1 - y p).

    Examples
    --------
    >>> value(Hinge(), 1.0, 0.25), value(Hinge(), -1.0, 0.25)
    (0.75, 1.25)
    """

    lipschitz: float = 1.0
    smoothness: float = math.inf


@value.register(Hinge)
def value_hinge(loss, y, prediction):
    return max(0.0, 1.0 - y * prediction)


@slope.register(Hinge)
def slope_hinge(loss, y, prediction):
    return -y if y * prediction <= 1.0 else 0.0


@curvature.register(Hinge)
def curvature_hinge(loss, y, prediction):
    return 0.0


@left_slope.register(Hinge)
def left_slope_hinge(loss, y, prediction):
    margin = y * prediction
    return -y if margin < 1.0 or (margin == 1.0 and y > 0.0) else 0.0


@link.register(Hinge)
def link_hinge(loss, probability):
    return float(np.sign(probability - 0.5))
