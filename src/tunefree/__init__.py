"""tunefree: linear and kernel predictors from streams and tables, with nothing to tune.

The estimators are loaded when they are first asked for, so that importing the package costs nothing.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

PUBLIC = {  # in which module each public name is
    "TuneFreeClassifier": "tunefree.estimators.pool",
    "TuneFreeRegressor": "tunefree.estimators.pool",
    "ScInOLClassifier": "tunefree.papers.linear_estimators",
    "ScInOLRegressor": "tunefree.papers.linear_estimators",
    "PiSTOLClassifier": "tunefree.papers.linear_estimators",
    "PiSTOLRegressor": "tunefree.papers.linear_estimators",
    "OnlineClassifier": "tunefree.estimators.linear",
    "OnlineRegressor": "tunefree.estimators.linear",
    "KernelPiSTOLClassifier": "tunefree.papers.kernel_estimators",
    "KernelPiSTOLRegressor": "tunefree.papers.kernel_estimators",
    "KernelSGDClassifier": "tunefree.papers.kernel_estimators",
    "IterativeRegularizationClassifier": "tunefree.estimators.path",
    "IterativeRegularizationRegressor": "tunefree.estimators.path",
    "PathDisplay": "tunefree.estimators.path_display",
    "CurveDisplay": "tunefree.estimators.curve_display",
    "GenerationsDisplay": "tunefree.estimators.generations_display",
    "LearningCurveDisplay": "tunefree.estimators.learning_curve",
    "Plan": "tunefree.model_files.plan",
    "train": "tunefree.estimators.training",
    "load": "tunefree.estimators.training",
    "columns": "tunefree.workflows.columns",
    "open_source": "tunefree.estimators.training",
    "DataError": "tunefree.core.errors",
    "DataWarning": "tunefree.core.errors",
    "ModelError": "tunefree.core.errors",
    "TunefreeError": "tunefree.core.errors",
}

__all__ = [*PUBLIC, "__version__"]


def __getattr__(name: str) -> Any:
    if name not in PUBLIC:
        raise AttributeError(f"module 'tunefree' has no attribute {name!r}")
    return getattr(importlib.import_module(PUBLIC[name]), name)


def __dir__() -> list[str]:
    return __all__
