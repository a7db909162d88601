"""Models that only predict: the weights that have a share in predictions, in single precision, and nothing else.

Where these are more than MANY they take a byte each: for each feature a member's weights are multiples of 1/127 of the
largest. Each member then has a stack of its own, whose units hold that factor.

What a model learns on with (statistics of its learners, certificates, frozen copies) is left out, so such a file cannot
be gone on with, explained or certified. Members on curves, pairs and kernels, and margins that have to be calibrated,
are more than weights: models that have them are kept whole.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tunefree.core.errors import ModelError
from tunefree.core.rows import n_rows, part
from tunefree.core.states import flatten, under
from tunefree.losses import loss_of, objectives
from tunefree.losses.objectives import predictions_of
from tunefree.model import calibration, passes, views
from tunefree.model.group import Read
from tunefree.model.linear_group import LinearGroup
from tunefree.model.meetings import MOST, FirstMeetings, with_room
from tunefree.model.members import Member, Setting, scored
from tunefree.model.mixture import Mixture, combine, predictive_shares
from tunefree.model.options import ModelOptions
from tunefree.model.standing import created
from tunefree.model.targets import ScoredModel
from tunefree.model.weights import common_units, in_units
from tunefree.stream.source import encoder_of
from tunefree.workflows import model_files
from tunefree.workflows.plan import Plan

PIECE = 2048  # rows that are predicted at a time
LEAST_SHARE = 1e-4  # of what predicts; what has less is left out
LEAST = 2e-38  # a number that single precision has in full
LARGEST = 3e38  # a weight in single precision, relative to the unit of its feature
MANY = 2**24  # weights; more are kept in 8 bits
TINY = float(np.finfo(np.float64).tiny)  # below numbers lose digits
LEVELS = 127  # of a weight in 8 bits, on each side of 0


class MoreThanWeightsError(ModelError):
    """What predicts is more than weights of the features."""


class Stack(NamedTuple):
    """Members, or averages of them, that see the rows in the same view."""

    view: str
    weights: np.ndarray  # (d, M * K) float32 or int8, relative to the units; features beyond have none
    units: np.ndarray  # (d,) of the features; 0 for one that was never met
    objectives: list[Any]  # (M,)
    shares: np.ndarray  # (M,)
    members: list[Member]  # (M,), whose logs tell of features that were met once; empty where there are none


@dataclass
class PredictionModel(ScoredModel):
    """What predicts, as :class:`tunefree.model.model.Model` does."""

    task: str
    classes: list[Any]
    loss: str | None
    stacks: list[Stack]
    views: dict[str, Any]  # by name
    temperature: float  # a factor of margins
    range: tuple[float, float]  # of the targets learned, in regression, to which predictions are clipped
    meetings: FirstMeetings | None = None  # by which features have slots, which are the rows of weights

    loss_is_log_loss = property(lambda self: self.task == "classification")

    def __post_init__(self) -> None:
        shares = np.concatenate([stack.shares for stack in self.stacks])
        mixture = Mixture.for_task(self.task, len(shares))
        lowest, highest = map(np.array, self.range)
        self._mixture = mixture._replace(means=shares / shares.sum(), lowest=lowest, highest=highest)
        self._rows = LinearGroup([], self.objective, 2, self.n_outputs, False, self.meetings)

    @property
    def objective(self) -> Any:
        """From predictions to losses."""
        if self.task == "regression":
            return self.stacks[0].objectives[0]
        return ModelOptions.create(self.task).objective_of_mixture(self.n_outputs)

    def log_odds(self, margins: np.ndarray) -> np.ndarray:
        """Logarithms (n, classes) of what is proportional to the probabilities."""
        return calibration.log_odds(None, margins)

    def predictor(self) -> Callable[[Any], np.ndarray]:
        """A function from blocks of rows to predictions."""
        return self.predict

    def predict(self, X: Any) -> np.ndarray:
        """Margins (n, K), or in regression the predicted targets (n, 1), of a block of rows."""
        edges = [*range(0, n_rows(X), PIECE), n_rows(X)]
        pieces = [self._predict(part(X, first, last)) for first, last in pairwise(edges)]
        return np.concatenate([np.empty((0, self.n_outputs)), *pieces])

    def _predict(self, X: Any) -> np.ndarray:
        shown, found = self._rows.shown(X, self.views, 2), []
        further = self._rows.further(X, self.views, (MOST, MOST))
        for stack in self.stacks:
            margins = np.empty((n_rows(X), stack.weights.shape[1]))
            passes.score(stack.weights, stack.units, shown[stack.view], margins)
            parts = np.split(margins, len(stack.objectives), axis=1)
            rests = [further(member) for member in stack.members] or [None] * len(parts)
            for objective, own, rest in zip(stack.objectives, parts, rests, strict=True):
                found.append(predictions_of(objective, own if rest is None else own + scored(rest.X, rest.read)))
        mixed = np.empty((n_rows(X), self.n_outputs))
        combine(self._mixture, self.objective, np.ascontiguousarray(found), mixed)
        return self.temperature * mixed


@dataclass
class ForPrediction:
    """A model that only predicts, with the encoder of its rows; a :class:`tunefree.workflows.prediction.Predictor`."""

    model: PredictionModel
    encoder: Any
    kind: str
    plan: Plan

    file_kind: ClassVar[str] = "prediction"
    other_kind: ClassVar[str] = "it is a whole model; give one that train --for-prediction wrote"
    refused: ClassVar[str] = (
        "it holds weights to predict with and nothing to learn on, explain or certify with (--for-prediction); give the"
        " model of a training without this option"
    )

    @classmethod
    def of(cls, trained: Any) -> ForPrediction:
        """What predicts of a model that was trained.

        Parameters
        ----------
        trained : tunefree.workflows.training.Trained

        Raises
        ------
        MoreThanWeightsError
            If what predicts is more than weights of the features.
        """
        model = trained.model
        if model.options.has_generations:
            raise MoreThanWeightsError("trees are more than weights")
        if any(bank.members for bank in model.ensemble.banks) or model.aggregation.calibration is not None:
            raise MoreThanWeightsError(
                "members on curves, pairs or kernels, and calibrated margins, are more than weights"
            )
        shares, temperature = predictive_shares(model.mixture), 1.0
        if model.deployment is not None and model.deployment.predicts:
            shares, temperature = model.deployment.shares(shares), model.deployment.temperature
        bounds = float(model.mixture.lowest[()]), float(model.mixture.highest[()])
        stacks = list(_stacks(model, shares))
        moving = {name: view for group in model.ensemble.groups for name, view in group.moving_views.items()}
        named = {name: moving[name] for name in {own.view for own in stacks} - {"raw"}}
        meetings = model.ensemble.linear.meetings
        meetings = meetings if meetings is not None and meetings.is_needed else None
        of_mixture = stacks, named, temperature, bounds, meetings
        made = PredictionModel(model.task, model.classes, model.options.loss, *of_mixture)
        return cls(made, trained.encoder, trained.kind, trained.plan)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file."""
        arrays: dict[str, np.ndarray] = {}
        header: dict[str, Any] = {
            name: getattr(self.model, name) for name in ("task", "classes", "loss", "temperature")
        }
        header["range"] = [end if np.isfinite(end) else None for end in self.model.range]
        header["views"], header["stacks"] = sorted(self.model.views), []
        for s, stack in enumerate(self.model.stacks):
            arrays |= {f"{s}.weights": stack.weights, f"{s}.units": stack.units}
            arrays |= {f"{s}.shares": stack.shares}
            scalars = [{k: v for k, v in own._asdict().items() if k != "loss"} for own in stack.objectives]
            header["stacks"].append({"view": stack.view, "objectives": scalars})
            for m, member in enumerate(stack.members):
                header["stacks"][-1].setdefault("members", []).append(member.setting._asdict())
                if member.log is not None and self.model.meetings is not None:
                    n_logged = self.model.meetings.n_logged
                    arrays[f"{s}.log.{m}"] = _in_single_precision(with_room(member.log, n_logged)[:n_logged])
        if self.model.meetings is not None:
            of_meetings, header["meetings"] = self.model.meetings.save_state(self.encoder.n_features)
            for name, array in of_meetings.items():
                arrays[f"meetings.{name}"] = _in_single_precision(array) if array.dtype == np.float64 else array
        for name, view in self.model.views.items():
            arrays |= flatten(f"views.{name}", view, 0)[0]
        parts = {"weights": (arrays, header), "encoder": self.encoder.state()}
        model_files.save(path, self.file_kind, parts, {"source": self.kind, "plan": self.plan.saved()})

    @classmethod
    def restore(cls, arrays: dict[str, dict[str, np.ndarray]], header: dict[str, Any]) -> ForPrediction:
        """The model that the parts of a file hold."""
        saved, own = header["weights"], arrays["weights"]
        encoder = encoder_of(header["source"]).restore(arrays.get("encoder", {}), header["encoder"])
        n_classes = len(saved["classes"]) if saved["task"] == "classification" else 0
        blank = _objective(saved["task"], saved["loss"], n_classes if n_classes > 2 else 1)
        stacks = []
        for s, told in enumerate(saved["stacks"]):
            stacks.append(_restored(told, under(f"{s}.", own), blank, n_classes if n_classes > 2 else 1))
        named = {name: views.restored(name, f"views.{name}", own) for name in saved["views"]}
        lowest, highest = saved["range"]
        bounds = np.inf if lowest is None else float(lowest), -np.inf if highest is None else float(highest)
        of_meetings = under("meetings.", own)
        meetings = FirstMeetings.restored(of_meetings, saved["meetings"]) if "meetings" in saved else None
        chosen = saved["task"], saved["classes"], saved["loss"], stacks, named, saved["temperature"], bounds, meetings
        return cls(PredictionModel(*chosen), encoder, header["source"], Plan.restore(header["plan"]))


def _in_single_precision(numbers: np.ndarray) -> np.ndarray:
    """Numbers in single precision; none becomes 0, since steps of normalized learners do not depend on the size of a
    slope."""
    sizes = np.clip(np.abs(numbers), LEAST, LARGEST)
    return np.where(numbers == 0.0, 0.0, np.copysign(sizes, numbers)).astype(np.float32)


def _objective(task: str, loss: str | None, n_outputs: int) -> Any:
    if task == "regression":
        return objectives.regression(loss_of(task, loss))
    return ModelOptions.create(task).objective_of_mixture(n_outputs)


def _restored(told: dict[str, Any], arrays: dict[str, np.ndarray], blank: Any, n_outputs: int) -> Stack:
    """A stack that was saved."""
    members = [created(Setting(**own), False, 2, n_outputs, blank) for own in told.get("members", [])]
    for m, member in enumerate(members):
        member.log = np.array(arrays[f"log.{m}"], np.float64) if f"log.{m}" in arrays else None
    weights = np.ascontiguousarray(arrays["weights"])
    own = [blank._replace(**objective) for objective in told["objectives"]]
    return Stack(told["view"], weights, arrays["units"], own, arrays["shares"], members)


def _read(model: Any, place: int) -> Read:
    """The weights of a linear member, or behind all members of the average of one."""
    n_members = len(model.members)
    if place >= n_members:
        return model.deployment.averages[place - n_members]
    return model.members[place].weights(model.n_slots, model.n_outputs)


def _stacks(model: Any, shares: np.ndarray) -> Iterator[Stack]:
    """The members, and averages of them, that have a share in predictions: those on one view together, or one by one
    where weights are kept in 8 bits; one after the other, since all weights together may take much memory."""
    members = model.members
    chosen = np.flatnonzero(shares >= LEAST_SHARE * shares.sum()).tolist()
    has_logs = any(member.log is not None for member in members)
    view_of = {c: members[c % len(members)].setting.view for c in chosen}
    together = [[c for c in chosen if view_of[c] == view] for view in dict.fromkeys(view_of.values())]
    shorten = len(chosen) * model.n_slots * model.n_outputs > MANY
    for own in ([c] for c in chosen) if shorten else together:
        reads = [_read(model, c) for c in own]
        units = common_units(reads)
        weights = np.empty((len(units), len(own) * model.n_outputs), np.float32)
        for place, read in enumerate(reads):
            clipped = np.clip(in_units(read, units), -LARGEST, LARGEST)
            weights[:, place * model.n_outputs : (place + 1) * model.n_outputs] = clipped
        of_members = [members[c % len(members)] for c in own]
        objectives_of = [member.objective for member in of_members]
        if shorten:
            weights, units = in_eight_bits(weights, units)
        yield Stack(view_of[own[0]], weights, units, objectives_of, shares[own], of_members if has_logs else [])


def in_eight_bits(weights: np.ndarray, units: np.ndarray) -> Read:
    """Weights (d, K) in 8 bits, for each feature relative to the largest, and the units in which they are so.

    Features behind the last one with a weight are left out. Where a unit would leave the range of numbers, weights stay
    in single precision.

    Examples
    --------
    >>> in_eight_bits(np.array([[2.0, -1.0], [0.0, 0.0], [0.5, 0.5], [0.0, 0.0]], np.float32), np.ones(4))
    (array([[127, -64],
           [  0,   0],
           [127, 127]], dtype=int8), array([ 63.5,   0. , 254. ]))
    """
    largest = np.abs(weights).max(axis=1, initial=0.0).astype(np.float64)
    n_features = 1 + int(np.flatnonzero(largest).max(initial=-1))
    weights, units, largest = weights[:n_features], units[:n_features], largest[:n_features]
    with np.errstate(over="ignore"):
        factors = np.divide(LEVELS, largest, out=np.zeros(n_features), where=largest > 0.0)
        of_levels = units * factors
    if not np.isfinite(of_levels).all() or np.any((of_levels < TINY) & (units > 0.0) & (largest > 0.0)):
        return weights, units
    levels = np.rint(weights * factors[:, None])
    return levels.astype(np.int8), of_levels
