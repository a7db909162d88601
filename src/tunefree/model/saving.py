"""A model as arrays and a header, from which the same model is made again, to the last bit."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from tunefree.core.states import filled, flatten, under
from tunefree.model import views
from tunefree.model.kernel_bank import KernelConfig
from tunefree.model.members import Setting
from tunefree.model.targets import RunningMetrics
from tunefree.theory.risk import Progressive


def flat(model: Any, plain: tuple[str, ...]) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Arrays and a header; ``plain`` names the attributes that JSON holds as they are."""
    arrays, scalars = flatten("mixture", model.mixture, model.n_features)
    arrays |= flatten("evidence", model.evidence, model.n_features)[0]
    for name, view in model.views.items():
        arrays |= flatten(f"views.{name}", view, model.n_features)[0]
    if model.calibration is not None:
        more = flatten("calibration", model.calibration, len(model.calibration.learner.features))
        arrays, scalars = arrays | more[0], scalars | more[1]
    header: dict[str, Any] = {name: getattr(model, name) for name in plain}
    for kind, prefix, parts in _parts(model):
        header[kind] = []
        for number, part in enumerate(parts):
            own, own_header = part.save_state(model.n_features)
            arrays |= {f"{prefix}{number}.{name}": array for name, array in own.items()}
            header[kind].append(own_header)
    header["member_settings"] = [setting._asdict() for setting in model.member_settings]
    header["kernel_config"] = model.kernel_config._asdict()
    header["risks"] = {name: asdict(risk) for name, risk in model.risks.items()}
    return arrays, header | {"views": sorted(model.views), "scalars": scalars, "metrics": asdict(model.metrics)}


def constructor_arguments(header: dict[str, Any], plain: tuple[str, ...]) -> dict[str, Any]:
    """What a blank model like the one saved is made of."""
    made = {name: header[name] for name in plain if name in header}  # what older versions did not know is as it was
    made["member_settings"] = [Setting(**setting) for setting in header["member_settings"]]
    made["risks"] = {name: Progressive(**risk) for name, risk in header["risks"].items()}
    return made | {
        "metrics": RunningMetrics(**header["metrics"]),
        "kernel_config": KernelConfig.restored(header["kernel_config"]),
    }


def fill(model: Any, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> Any:
    """The blank model with what it had learned."""
    for kind, prefix, parts in _parts(model):
        for number, (part, saved) in enumerate(zip(parts, header.get(kind, []), strict=True)):
            part.restore(under(f"{prefix}{number}.", arrays), saved)
    model.mixture = filled("mixture", model.mixture, arrays, header["scalars"])
    model.evidence = filled("evidence", model.evidence, arrays, {})
    if model.calibration is not None:
        model.calibration = filled("calibration", model.calibration, arrays, header["scalars"])
    for name in header["views"]:
        own = f"views.{name}"
        n_columns = max(len(array) for key, array in arrays.items() if key.startswith(own) and key.endswith(".centres"))
        model.views[name] = filled(own, views.ALL[name].create(n_columns), arrays, {})
    return model


def _parts(model: Any) -> tuple[tuple[str, str, list[Any]], ...]:
    """What learns in a model: its name in the header, the beginning of its arrays' names, and the learners."""
    return ("members", "", model.linears), ("banks", "bank", model.banks)
