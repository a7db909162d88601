"""A model as arrays and a header, from which the same model is made again, to the last bit."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from tunefree.core.part import restored
from tunefree.learners import family_of
from tunefree.model.members import Setting

_OPTIONS = ("task", "learner", "loss", "average", "settings", "view", "replays")  # that JSON holds as they are
_OF_MODEL = ("classes", "n_features")  # attributes of the model likewise


def save_state(model: Any) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Arrays and a header of a :class:`tunefree.model.model.Model`."""
    header: dict[str, Any] = {name: getattr(model.options, name) for name in _OPTIONS}
    header |= {name: getattr(model, name) for name in _OF_MODEL}
    header |= {"config": None if model.options.config is None else model.options.config._asdict()}
    header |= {"member_settings": [member.setting._asdict() for member in model.members], "banks": []}
    model.ensemble.linear.n_known = model.n_features
    model.record.n_known = 0 if model.only_predicts else model.n_slots
    arrays: dict[str, np.ndarray] = {}
    for name, part in model.parts().items():
        of_part, header[name] = part.save_state()
        arrays |= {f"{name}.{key}": array for key, array in of_part.items()}
    for number, bank in enumerate(model.banks):
        of_bank, header_of_bank = bank.save_state()
        arrays |= {f"bank{number}.{name}": array for name, array in of_bank.items()}
        header["banks"].append(header_of_bank)
    return arrays, header


def constructor_arguments(header: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a model like the one saved that has seen no row."""
    family, config = family_of(header["learner"]), header["config"]
    return {name: copy.copy(header[name]) for name in (*_OPTIONS, *_OF_MODEL)} | {
        "member_settings": [Setting(**setting) for setting in header["member_settings"]],
        "config": None if family is None or config is None else family.restored_config(config),
    }


def restore(model: Any, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
    """Let a model that has seen no row have all that was learned."""
    for name, part in model.parts().items():
        restored(part, name, arrays, header[name])
    for number, (bank, saved) in enumerate(zip(model.banks, header["banks"], strict=True)):
        restored(bank, f"bank{number}", arrays, saved)
