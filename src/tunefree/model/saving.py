"""A model as arrays and a header, from which the same model is made again, to the last bit."""

from __future__ import annotations

from typing import Any

import numpy as np

from tunefree.core.states import under
from tunefree.learners import family_of
from tunefree.model.members import Setting

_OPTIONS = ("task", "learner", "loss", "average", "settings", "view", "replays")  # that JSON holds as they are
_OF_MODEL = ("classes", "n_features")  # attributes of the model likewise


def save_state(model: Any) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Arrays and a header of a :class:`tunefree.model.model.Model`."""
    header: dict[str, Any] = {name: getattr(model.options, name) for name in _OPTIONS}
    header |= {name: getattr(model, name) for name in _OF_MODEL}
    header |= {"config": None if model.options.config is None else model.options.config._asdict()}
    of_aggregation, header["aggregation"] = model.aggregation.save_state()
    arrays = {f"aggregation.{name}": array for name, array in of_aggregation.items()}
    for part, n_features in ((model.record, model.n_slots), (model.ensemble, model.n_features)):
        of_part, header_of_part = part.save_state(n_features)
        arrays, header = arrays | of_part, header | header_of_part
    return arrays, header


def constructor_arguments(header: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a model like the one saved that has seen no row."""
    family, config = family_of(header["learner"]), header["config"]
    return {name: header[name] for name in (*_OPTIONS, *_OF_MODEL)} | {
        "member_settings": [Setting(**setting) for setting in header["member_settings"]],
        "config": None if family is None or config is None else family.restored_config(config),
    }


def restore(model: Any, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> Any:
    """The model that has seen no row, with all that was learned."""
    model.aggregation.restore(under("aggregation.", arrays), header["aggregation"])
    for part in (model.record, model.ensemble):
        part.restore(arrays, header)
    return model
