"""The scikit-learn face: estimators that validate and delegate."""

from __future__ import annotations

from tunefree.estimators.kernel import KernelPiSTOLClassifier, KernelPiSTOLRegressor
from tunefree.estimators.linear import PiSTOLClassifier, PiSTOLRegressor, ScInOLClassifier, ScInOLRegressor
from tunefree.estimators.online import OnlineClassifier, OnlineRegressor
from tunefree.estimators.pool import TuneFreeClassifier, TuneFreeRegressor

__all__ = [
    "KernelPiSTOLClassifier",
    "KernelPiSTOLRegressor",
    "OnlineClassifier",
    "OnlineRegressor",
    "PiSTOLClassifier",
    "PiSTOLRegressor",
    "ScInOLClassifier",
    "ScInOLRegressor",
    "TuneFreeClassifier",
    "TuneFreeRegressor",
]
