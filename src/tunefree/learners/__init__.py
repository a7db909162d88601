"""The online learners, one algorithm (or family) a file, and ALL: the list that tests and the command line read."""

from __future__ import annotations

from typing import Any

from tunefree.learners.adam import Adam
from tunefree.learners.averaged import Averaged
from tunefree.learners.gradient import AdaGrad, AveragedSGD, CoordinateGradientDescent, GradientDescent, oracle_rates
from tunefree.learners.perceptron import Perceptron
from tunefree.learners.pistol import CoordinatePiSTOL, PiSTOL
from tunefree.learners.scinol import ScInOL1, ScInOL2

ALL: dict[str, Any] = {
    "scinol1": ScInOL1,
    "scinol2": ScInOL2,
    "pistol": PiSTOL,
    "coordinate-pistol": CoordinatePiSTOL,
    "ogd": GradientDescent,
    "coordinate-ogd": CoordinateGradientDescent,
    "averaged-sgd": AveragedSGD,
    "adagrad": AdaGrad,
    "adam": Adam,
    "perceptron": Perceptron,
}

__all__ = [
    "ALL",
    "AdaGrad",
    "Adam",
    "Averaged",
    "AveragedSGD",
    "CoordinateGradientDescent",
    "CoordinatePiSTOL",
    "GradientDescent",
    "Perceptron",
    "PiSTOL",
    "ScInOL1",
    "ScInOL2",
    "oracle_rates",
]
