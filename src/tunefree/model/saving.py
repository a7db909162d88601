"""A model as arrays and a header, from which the same model is made again, to the last bit."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from tunefree.core.states import under
from tunefree.model.kernel_bank import KernelConfig
from tunefree.model.members import Setting
from tunefree.model.targets import RunningMetrics

_OPTIONS = (
    "task",
    "learner",
    "loss",
    "average",
    "settings",
    "view",
    "may_prune",
    "pairs",
    "horizon",
    "replays",
)  # that JSON holds as they are
_BOOKKEEPING = ("classes", "n_features", "history")  # attributes of the model likewise


def save_state(model: Any) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Arrays and a header of a :class:`tunefree.model.model.Model`."""
    arrays: dict[str, np.ndarray] = {}
    header: dict[str, Any] = {name: getattr(model.options, name) for name in _OPTIONS}
    header |= {name: getattr(model, name) for name in _BOOKKEEPING}
    header |= {"kernel_config": model.options.kernel_config._asdict(), "metrics": asdict(model.metrics)}
    parts = (model.aggregation, model.n_features), (model.record, model.n_slots), (model.ensemble, model.n_features)
    for part, n_features in parts:
        own, own_header = part.save_state(n_features)
        arrays, header = arrays | own, header | own_header
    if model.deployment is not None:
        own, header["deployment"] = model.deployment.save_state()
        arrays |= {f"deployment.{name}": array for name, array in own.items()}
    return arrays, header


def constructor_arguments(header: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a model like the one saved that has seen no row."""
    names = (*_OPTIONS, "classes", "n_features")
    made = {name: header[name] for name in names if name in header}  # what older versions did not know has defaults
    return made | {
        "member_settings": [Setting(**setting) for setting in header["member_settings"]],
        "kernel_config": KernelConfig.restored(header["kernel_config"]),
    }


def restore(model: Any, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> Any:
    """The model that has seen no row, with all that was learned."""
    model.metrics = RunningMetrics(**header["metrics"])
    model.history = header.get("history", [])
    for part in (model.aggregation, model.record, model.ensemble):
        part.restore(arrays, header)
    if "deployment" not in header:  # learned in several passes, or saved by an older version
        model.deployment = None
    if model.deployment is not None:
        objectives = [member.objective for member in model.members]
        model.deployment.restore(under("deployment.", arrays), header["deployment"], objectives)
    return model
