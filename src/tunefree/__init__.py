"""tunefree: trees and linear models from streams and tables, with nothing to tune.

The estimators are loaded when they are first asked for, so that importing the package costs nothing. Further ones come
as entry points of the group ``tunefree.estimators``, as estimators of the papers do.
"""

from __future__ import annotations

from typing import Any

from tunefree.core.registry import Registry

__version__ = "0.1.0"

MODULES = {  # in which each public name is
    "TuneFreeClassifier": "tunefree.estimators.pool",
    "TuneFreeRegressor": "tunefree.estimators.pool",
    "OnlineClassifier": "tunefree.estimators.linear",
    "OnlineRegressor": "tunefree.estimators.linear",
    "CurveDisplay": "tunefree.estimators.displays",
    "GenerationsDisplay": "tunefree.estimators.displays",
    "Plan": "tunefree.model_files.plan",
    "train": "tunefree.estimators.training",
    "load": "tunefree.estimators.training",
    "columns": "tunefree.workflows.columns",
    "compare": "tunefree.estimators.comparing",
    "open_source": "tunefree.estimators.training",
    "DataError": "tunefree.core.errors",
    "DataWarning": "tunefree.core.errors",
    "ModelError": "tunefree.core.errors",
    "TunefreeError": "tunefree.core.errors",
}

PUBLIC = Registry("public name", {name: f"{module}:{name}" for name, module in MODULES.items()}, "tunefree.estimators")

__all__ = [*MODULES, "__version__"]


def __getattr__(name: str) -> Any:
    if name.startswith("_") or name not in PUBLIC:
        raise AttributeError(f"module 'tunefree' has no attribute {name!r}")
    return PUBLIC[name]


def __dir__() -> list[str]:
    return __all__
