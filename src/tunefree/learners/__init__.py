"""The online learners, one algorithm (or family) a file, and ALL: the list that tests and the command line read."""

from __future__ import annotations

from typing import Any

from tunefree.learners.adam import Adam
from tunefree.learners.averaged import Averaged
from tunefree.learners.cocob import CoCoB, CoCoBOriginal
from tunefree.learners.gradient import AdaGrad, AveragedSGD, CoordinateGradientDescent, GradientDescent, oracle_rates
from tunefree.learners.kotlowski import Kotlowski
from tunefree.learners.nag import NAG
from tunefree.learners.newton import Newton
from tunefree.learners.perceptron import Perceptron
from tunefree.learners.pistol import CoordinatePiSTOL, PiSTOL
from tunefree.learners.scinol import ScInOL1, ScInOL2
from tunefree.learners.sfmd import SFMD

ALL: dict[str, Any] = {
    "scinol1": ScInOL1,
    "scinol2": ScInOL2,
    "pistol": PiSTOL,
    "coordinate-pistol": CoordinatePiSTOL,
    "nag": NAG,
    "sfmd": SFMD,
    "cocob": CoCoB,
    "cocob-original": CoCoBOriginal,
    "kotlowski": Kotlowski,
    "newton": Newton,
    "ogd": GradientDescent,
    "coordinate-ogd": CoordinateGradientDescent,
    "averaged-sgd": AveragedSGD,
    "adagrad": AdaGrad,
    "adam": Adam,
    "perceptron": Perceptron,
}

__all__ = [
    "ALL",
    "NAG",
    "SFMD",
    "AdaGrad",
    "Adam",
    "Averaged",
    "AveragedSGD",
    "CoCoB",
    "CoCoBOriginal",
    "CoordinateGradientDescent",
    "CoordinatePiSTOL",
    "GradientDescent",
    "Kotlowski",
    "Newton",
    "Perceptron",
    "PiSTOL",
    "ScInOL1",
    "ScInOL2",
    "oracle_rates",
]
