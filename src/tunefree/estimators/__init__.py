"""The scikit-learn face: estimators that validate and delegate."""

from __future__ import annotations

from tunefree.estimators.generations_display import GenerationsDisplay
from tunefree.estimators.kernel import KernelPiSTOLClassifier, KernelPiSTOLRegressor
from tunefree.estimators.kernel_sgd import KernelSGDClassifier
from tunefree.estimators.learning_curve import LearningCurveDisplay
from tunefree.estimators.online import OnlineClassifier, OnlineRegressor
from tunefree.estimators.path import IterativeRegularizationClassifier, IterativeRegularizationRegressor
from tunefree.estimators.path_display import PathDisplay
from tunefree.estimators.pistol import PiSTOLClassifier, PiSTOLRegressor
from tunefree.estimators.pool import TuneFreeClassifier, TuneFreeRegressor
from tunefree.estimators.scinol import ScInOLClassifier, ScInOLRegressor

__all__ = [
    "GenerationsDisplay",
    "IterativeRegularizationClassifier",
    "IterativeRegularizationRegressor",
    "KernelPiSTOLClassifier",
    "KernelPiSTOLRegressor",
    "KernelSGDClassifier",
    "LearningCurveDisplay",
    "OnlineClassifier",
    "OnlineRegressor",
    "PathDisplay",
    "PiSTOLClassifier",
    "PiSTOLRegressor",
    "ScInOLClassifier",
    "ScInOLRegressor",
    "TuneFreeClassifier",
    "TuneFreeRegressor",
]
