"""The batch phase of a model: a member for each view that is worth it, whose weights are found by all rows at once.

A model that has made one pass over nine tenths of the rows goes on so: rows that are held out tell where the path of
each view (:mod:`tunefree.model.batch`) is to be stopped, and the shares of all members. Then the members learn the rows
held out, and the paths are followed on all rows. The weights found join as members that stand still
(:mod:`tunefree.model.standing`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from tunefree.losses.objectives import measured
from tunefree.model import batch
from tunefree.model.additive_bank import AdditiveBank
from tunefree.model.batch_rows import BatchRows, inverses
from tunefree.model.group import MemberGroup
from tunefree.model.members import Setting
from tunefree.model.mixture import Mixture, joined, mix, predictive_shares, with_means_since, without
from tunefree.model.model import Model
from tunefree.model.pool import special_about
from tunefree.model.standing import LEARNER, StandingMember

VIEWS = {"linear": "steady", "additive": "pairs"}  # of the groups that get a member
SAMPLED = 2**14  # rows that fix knots
MOST_WEIGHTS = 2**23  # of a member; L-BFGS keeps two dozen times as many numbers

Labelled = tuple[Any, np.ndarray, np.ndarray]  # a block of rows, targets as the objective takes them, sample weights


class Found(NamedTuple):
    """What rows held out tell."""

    of_views: dict[str, batch.Stopped]  # by the names of groups, where their path was stopped
    settings: list[Setting]  # of all members, those of the batch phase last in each group
    mixture: Mixture  # of these members
    level: int  # highest of the knots of curves
    loss: float  # mean loss of what the mixture predicts of the rows held out


def settings_before(settings: list[Setting]) -> list[Setting]:
    """The members of a pool that a batch phase follows: those of the second order would do the same at more cost."""
    return [own for own in settings if not special_about(own.learner).quadratic_cost]


def suits(model: Model) -> bool:
    """Whether a model like this can have a batch phase: its loss is curved, and its weights are not too many."""
    return batch.is_curved(model.objective) and model.n_features * model.n_outputs <= MOST_WEIGHTS


def blank(model: Model, settings: list[Setting], **more: Any) -> Model:
    """A model like another, of these members, that has seen nothing. It gathers no evidence of how they predict new
    rows, which rows held out will be."""
    names = ("task", "learner", "loss", "kernel_config", "pairs")
    options = {name: getattr(model.options, name) for name in names}
    made = Model(**options, n_features=model.n_features, classes=model.classes, member_settings=settings, **more)
    made.deployment = None
    return made


def sampled(n_rows: int) -> slice:
    """Evenly spaced ones of so many rows, by which knots are fixed."""
    return slice(0, n_rows, 1 + (n_rows - 1) // SAMPLED)


def prepare(model: Model, X: Any, n_rows_to_come: int) -> None:
    """Let a model that has seen nothing know a sample of the rows that it will learn."""
    for bank in model.ensemble.banks:
        if isinstance(bank, AdditiveBank) and bank.suits(X):
            bank.fix_knots(X, n_rows_to_come)


def found(
    model: Model,
    blocks: Iterable[Labelled],
    held_blocks: Iterable[Labelled],
    predictions: np.ndarray | None = None,
    names: Iterable[str] = tuple(VIEWS),
) -> Found:
    """Follow the path of each view on rows that the model has learned, and stop by rows that it has not.

    Parameters
    ----------
    model : Model
    blocks, held_blocks : iterable of (block of rows, targets, sample weights)
        Rows that were learned, and rows held out.
    predictions : (N, n, K) array, optional
        Those of the members of the rows held out; by default as the members are now.
    names : iterable of str
        Of the groups that may get a member.
    """
    model.settle()
    learned, held = list(blocks), list(held_blocks)
    y, weight = (np.concatenate([block[field] for block in held]) for field in (1, 2))
    begun = model.mixture if predictions is None else None
    if predictions is None:
        predictions = np.concatenate([model.member_predictions(X) for X, _, _ in held], axis=1)
    before, _ = _mixed(model, y, weight, predictions.copy(), begun, [])
    shares = model.ensemble.split(predictive_shares(before))
    of_views, of_members, settings, level = {}, [], [], 0
    for group, own, of_group in zip(model.ensemble.groups, shares, model.ensemble.split(predictions), strict=True):
        of_members.append(of_group)
        settings += [member.setting for member in group.members]
        if group.name in names and is_worth(group, model):
            if isinstance(group, AdditiveBank):
                level = group.refine()
            objective = group.members[0].objective
            rows, others = (_rows(model, group, some) for some in (learned, held))
            stopped = batch.stopped(rows, others, objective, _start(model, group, own))
            of_views[group.name] = stopped
            of_members.append(others.predictions(objective, stopped.weights, inverses(stopped.units))[None])
            settings.append(setting_of(group))
    mixture, mixed = _mixed(model, y, weight, np.concatenate(of_members), begun, settings)
    return Found(of_views, settings, mixture, level, mean_of(measured(model.objective, y, mixed), weight))


def join(model: Model, found: Found, blocks: Iterable[Labelled]) -> None:
    """Follow the paths on all rows, and let the weights found join the model as members.

    Parameters
    ----------
    model : Model
        The model of which these things were found, or one of the same members.
    found : Found
    blocks : iterable of (block of rows, targets, sample weights)
        All rows.
    """
    model.settle()
    learned = list(blocks)
    shares = dict(zip(map(repr, found.settings), predictive_shares(found.mixture).tolist(), strict=True))
    for group in model.ensemble.groups:
        if group.name in found.of_views and group.members:
            if isinstance(group, AdditiveBank):
                group.refine(found.level)
            own = np.array([shares.get(repr(member.setting), 0.0) for member in group.members])
            stages = found.of_views[group.name].stages
            objective, rows = group.members[0].objective, _rows(model, group, learned)
            read = batch.followed(rows, objective, _start(model, group, own), stages)
            member = StandingMember(setting_of(group), rows.n_features, model.n_outputs, objective)
            member.take(*read)
            group.add(member)
    stays = np.array([setting in model.member_settings for setting in found.settings])
    model.mixture = found.mixture if stays.all() else without(found.mixture, stays)


def iterations(found: Found, model: Model, passes: list[int]) -> list[int]:
    """For each member its passes over the rows: those of the others as given, of the batch phase its iterations."""
    others, counts = iter(passes), []
    for group in model.ensemble.groups:
        for member in group.members:
            is_batch = member.setting.learner == LEARNER
            counts.append(found.of_views[group.name].iterations if is_batch else next(others))
    return counts


def setting_of(group: MemberGroup) -> Setting:
    """The setting of the member that a group gets."""
    return Setting(LEARNER, {}, VIEWS[group.name])


def is_worth(group: MemberGroup, model: Model) -> bool:
    """Whether a group gets a member: there is one that sees what it would see, and weights are not too many."""
    if group.name not in VIEWS or not group.members or not group.has_weights:
        return False
    return batch.suits(group.members[0].objective) and width_of(model, group) * model.n_outputs <= MOST_WEIGHTS


def width_of(model: Model, group: MemberGroup) -> int:
    """Features of a group's view, as its members number them."""
    if group.additive is not None:
        return group.additive.n_features
    return model.n_slots


def _rows(model: Model, group: MemberGroup, blocks: list[Labelled]) -> BatchRows:
    """Rows as the view of a group shows them."""
    seen = ((group.in_view(X, VIEWS[group.name]), y, weight) for X, y, weight in blocks)
    return BatchRows(seen, width_of(model, group), model.n_outputs)


def _start(model: Model, group: MemberGroup, shares: np.ndarray) -> np.ndarray:
    """The weights (d, K), per unit of the features, of the members on like views, averaged by their shares."""
    width = width_of(model, group)
    total = np.zeros((width, model.n_outputs))
    like = [group.additive is not None or member.setting.view == VIEWS[group.name] for member in group.members]
    mass = float(shares[like].sum())
    for (weights, units), share, fits in zip(group.reads(width) or [], shares, like, strict=True):
        if fits and mass > 0.0:
            total[: len(units)] += share / mass * weights * inverses(units)[:, None]
    return total


def _mixed(
    model: Model, y: np.ndarray, weight: np.ndarray, predictions: np.ndarray, begun: Mixture | None, settings: Any
) -> tuple[Mixture, np.ndarray]:
    """The mixture of members by their predictions (N, n, K) of rows that they have not learned, and what it predicts.

    It goes on from one that has ``begun`` without the members of the batch phase, where there is one: what is known of
    the others from all rows before counts too.
    """
    is_new = np.array([setting.learner == LEARNER for setting in settings] or [False] * len(predictions))
    before = Mixture.for_task(model.task, len(predictions)) if begun is None else joined(begun, is_new)
    mixture = joined(before, np.zeros(len(predictions), bool))
    mixed = np.empty_like(predictions[0])
    mix(mixture, model.objective, y, weight, predictions, mixed)
    return mixture if begun is None else with_means_since(mixture, before), mixed


def mean_of(losses: np.ndarray, weight: np.ndarray) -> float:
    """The mean of losses, however large; infinite if no row counts."""
    total = float(weight.sum())
    with np.errstate(over="ignore"):  # the largest numbers there are, whose rounded shares may be one too many
        return float((losses * (weight / total)).sum()) if total > 0.0 else np.inf
