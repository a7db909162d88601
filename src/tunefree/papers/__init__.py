"""The five papers on which the package is based: their algorithms as printed, regret bounds, and experiments.

>>> from tunefree.papers import ScInOL2, play
>>> result = play(ScInOL2(), [[1.0, 0.0], [1.0, 2.0], [-1.0, 1.0]], [1, 1, -1], loss="logistic")
>>> round(result.regret([1.0, 0.0]), 4), str(result.bound([1.0, 0.0]))
(0.9218, 'at most 4.15783 (Kempka, Kotlowski, Warmuth 2019, Theorem 3.2)')

No other part of the package depends on this one.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_MODULES = {  # modules have other names than functions, since importing a module sets an attribute of its name
    "play": "playing",
    "Result": "playing",
    "check": "checking",
    "RegretDisplay": "display",
    "PaperClassifier": "estimators",
    "PaperRegressor": "estimators",
    "Algorithm": "algorithm",
    "Bound": "algorithm",
    "no_bound": "algorithm",
    "PiSTOL": "pistol",
    "CoordinatePiSTOL": "pistol",
    "AveragedSGD": "averaged_sgd",
    "Perceptron": "perceptron",
    "ScInOL1": "scinol",
    "ScInOL2": "scinol",
    "OGD": "gradient_descent",
    "FixedRates": "gradient_descent",
    "oracle": "gradient_descent",
    "AdaGrad": "adagrad",
    "Adam": "adam",
    "NAG": "nag",
    "SFMD": "sfmd",
    "CoCoB": "cocob",
    "CoCoBOriginal": "cocob",
    "Kotlowski": "kotlowski",
    "RegularizedSGD": "regularized_sgd",
    "OnlineRegularized": "regularized_sgd",
    "SubgradientMethod": "subgradient",
}
__all__ = list(_MODULES)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'tunefree.papers' has no attribute {name!r}")
    return getattr(import_module(f"tunefree.papers.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return list(_MODULES)
