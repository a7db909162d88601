"""Learning from more rows than one machine holds: on Dask, whose workers learn shards that are merged."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_WHERE = {
    "train": "tunefree.distributed.estimators",
    "local_cluster": "tunefree.distributed.engines",
    "DaskTuneFreeClassifier": "tunefree.distributed.estimators",
    "DaskTuneFreeRegressor": "tunefree.distributed.estimators",
}

__all__ = [*_WHERE]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'tunefree.distributed' has no attribute {name!r}")
    return getattr(import_module(_WHERE[name]), name)


def __dir__() -> list[str]:
    return __all__
