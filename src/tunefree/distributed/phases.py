"""Learning over shards, from the first rows to a model: what is done where, in which order.

An engine (:mod:`tunefree.distributed.engines`) calls functions for each shard and adds up what they return by a fixed
tree over the shards' numbers. Everything here depends on the shards alone, not on who computed what, when or how often.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from tunefree.core.errors import DataError
from tunefree.core.states import size_of
from tunefree.distributed import contacts, encoded, evidence, last_rows, last_step, pool_round
from tunefree.distributed.common_model import common_model, labelled, with_true_mass
from tunefree.distributed.encoded import Encoded, Strides, gathered
from tunefree.distributed.engines import Engine
from tunefree.distributed.journal import Journal
from tunefree.distributed.local_rows import Beginning, United, begun, read, survey, united
from tunefree.distributed.shards import Shard
from tunefree.losses.objectives import measured
from tunefree.model import batch_phase
from tunefree.model.batch_rows import inverses
from tunefree.model.mixture import Mixture, joined, mix
from tunefree.model.model import Model
from tunefree.model.patience import Patience
from tunefree.model.standing import LEARNER, StandingMember
from tunefree.model.targets import RunningMetrics
from tunefree.workflows import class_weights
from tunefree.workflows.plan import Plan
from tunefree.workflows.progress import Progress
from tunefree.workflows.training import Trained

FEWEST_ROWS = 40  # of all shards
MOST_CONTACTS = 8
EARLY_CONTACTS = 2  # without the last rows
ENOUGH_EARLY = 2**16  # rows that early contacts ask of, since all that they tell is whether later rows differ
PATIENCE = Patience(2, 1e-3)


class Parts(NamedTuple):
    """The data, cut into shards."""

    shards: list[Shard]
    frames: list[list[Any]]  # handles of the tables of each shard; none of shards of files


Tell = Callable[[str], None]


def learn(
    engine: Engine, parts: Parts, plan: Plan, tell: Tell, skips: bool = False, journal: Journal | None = None
) -> Trained:
    """Learn a model from shards.

    Parameters
    ----------
    engine : Engine
    parts : Parts
    plan : Plan
    tell : function
        Called with a line after each round.
    skips : bool
        Whether shards that cannot be read are left out.
    journal : Journal, optional
        Keeps the sums of each round.
    """
    check(plan)
    journal = journal or Journal()
    beginning, local, found = _read(engine, parts, plan, skips, tell)
    rules = last_rows.LAST_OF, ENOUGH_EARLY, pool_round.FIRST_PRUNING, contacts.RIDGES, contacts.FROM_ZERO
    journal.begin(plan.saved(), parts.shards, found.offsets, found.classes, found.encoder.n_features, rules)
    rows, n_early, tastes = _prepare(engine, parts, beginning, local, found)
    del local
    model = common_model(plan, beginning.task, found.classes, found.encoder, tastes)
    rounds = Rounds(engine, journal, rows, tell)
    *early, merged = _pool_round(rounds, model, n_early)
    dates = last_rows.dates_of(found.encoder)
    foreseen = _foreseen(rounds._replace(rows=rows[:n_early]), model, early[0], tastes, dates) if early else None
    pool_round.merge_members(model, merged)
    sample, steering, mixing = _apart(tastes)
    views = _batch_phase(rounds, model, merged, sample, steering)
    held_out = _mix(model, mixing, tastes)
    if foreseen is not None:
        held_out = foreseen.held_out
        last_rows.take(model, foreseen.shares)
    evidence.into(model, evidence.Proved(*rounds.summed("evidence", evidence.gathered, model)))
    _last_step(model, views, steering, mixing)
    with_true_mass(model, merged.metrics["weight"])
    return _trained(model, found, beginning, merged, held_out)


class Rounds(NamedTuple):
    """What each round needs."""

    engine: Engine
    journal: Journal
    rows: list[Any]  # handles of the rows of each shard
    tell: Tell

    def summed(self, stage: str, function: Callable[..., Any], model: Model, *more: Any) -> Any:
        """The sum over the shards of what a function returns of their rows, a model, and more."""
        return self.journal.summed(stage, lambda: self._sum(stage, self._each(stage, function, model, *more)))

    def summed_up_to(self, counts: Sequence[int], stage: str, function: Callable[..., Any], model: Model) -> list[Any]:
        """The sums over the first shards, each time so many, of what a function returns of their rows and a model."""

        def make() -> list[Any]:
            handles = self._each(stage, function, model)
            return [self._sum(stage, handles[:count]) for count in counts]

        return list(self.journal.summed(stage, make))

    def _each(self, stage: str, function: Callable[..., Any], model: Model, *more: Any) -> list[Any]:
        given = [self.engine.hold(f"{stage}-{place}", own) for place, own in enumerate((model.save_state(), *more))]
        return self.engine.each(stage, function, [(own, *given) for own in self.rows])

    def _sum(self, stage: str, handles: Sequence[Any]) -> Any:
        return self.engine.value(self.engine.total(stage, pool_round.plus, handles))


def check(plan: Plan) -> None:
    """Raise a ModelError if a plan asks for what is not learned over shards."""
    plan.refuse(
        [
            *("learner", "average", "settings", "view", "passes", "max_support", "device", "shuffle", "holdout"),
            *("horizon", "classes"),
        ],
        "is for one machine; leave it out to learn over shards",
    )
    class_weights.is_balanced(plan)


def _read(engine: Engine, parts: Parts, plan: Plan, skips: bool, tell: Tell) -> tuple[Beginning, list[Any], United]:
    """Let workers read their shards, and unite what they found."""
    beginning = None
    for shard, frames in zip(parts.shards, parts.frames, strict=True):
        beginning = engine.value(engine.each("begin", begun, [(shard, plan, frames)])[0])
        if beginning is not None:
            break
    if beginning is None:
        raise DataError("there are no rows", remedy="check that it is the data you mean")
    given = engine.hold("beginning", beginning)
    items = [(shard, given, skips, frames) for shard, frames in zip(parts.shards, parts.frames, strict=True)]
    local = engine.each("read", read, items)
    surveys = engine.values(engine.each("survey", survey, [(own,) for own in local]))
    found = united(beginning, surveys)
    for problem in found.problems:
        tell(f"skipped: {problem}")
    if found.offsets[-1] < FEWEST_ROWS:
        raise DataError(f"there are {found.offsets[-1]} rows", remedy="train on one machine")
    if beginning.task == "classification" and len(found.classes) < 2:
        raise DataError(f"the target has one class only, {found.classes[0]!r}", remedy="give data with two classes")
    class_weights.check_task(plan, beginning.task)
    if class_weights.is_balanced(plan):
        weights = class_weights.balancing(found.totals)
        beginning = beginning._replace(plan=replace(beginning.plan, class_weight=weights))
    tell(f"read {found.offsets[-1]:,} rows in {len(local)} shards: {found.encoder.n_features:,} features")
    return beginning, local, found


def _prepare(
    engine: Engine, parts: Parts, beginning: Beginning, local: list[Any], found: United
) -> tuple[list[Any], int, list[encoded.Taste]]:
    """Let workers number features as all shards do, and set rows apart.

    Returns handles of the rows to learn, of how many the last rows are not part, and what the coordinator is sent.
    """
    given = engine.hold("beginning2", beginning._replace(encoder=found.encoder.state()))
    offsets = found.offsets

    def prepared(places: Sequence[int], until: int) -> tuple[list[Any], list[encoded.Taste]]:
        strides = Strides.of(offsets[-1], until)
        items = [
            (local[own], given, found.classes, offsets[own], strides, parts.shards[own], parts.frames[own])
            for own in places
        ]
        made = engine.each("prepare", encoded.prepared, items)
        return made, engine.values(engine.each("taste", encoded.taste_of, [(own,) for own in made]))

    until, every = last_rows.first_of_last(offsets), range(len(local))
    made, tastes = prepared(every, until)
    late = [own for own in every if offsets[own + 1] > until]
    if late and not _resemble(tastes, beginning.task):
        until = offsets[-1]
        for place, *again in zip(late, *prepared(late, until), strict=True):
            made[place], tastes[place] = again
        late = []
    early = [own for own in every if offsets[own] < until or own not in late]
    rows = engine.each("rows", encoded.early_of, [(made[own],) for own in early])
    return rows + engine.each("rows", encoded.late_of, [(made[own],) for own in late]), len(early), tastes


def _resemble(tastes: Sequence[encoded.Taste], task: str) -> bool:
    """Whether targets of the last rows are about as frequent as among the earlier ones at the coordinator."""
    last = np.concatenate([taste.last.y for taste in tastes])
    return last_rows.resemble(last, np.concatenate([own.y for taste in tastes for own in taste.early]), task)


def _pool_round(rounds: Rounds, model: Model, n_early: int) -> list[pool_round.Merged]:
    """Let fresh members learn all shards, and merge them: those before the last rows, if there are any, and all."""
    counts = sorted({n_early, len(rounds.rows)})
    found = [pool_round.Merged(*own) for own in rounds.summed_up_to(counts, "pool", pool_round.learned, model)]
    merged = found[-1]
    loss = merged.metrics["loss"] / max(merged.metrics["weight"], 1e-300)
    rounds.tell(f"pool round: {merged.rows:,} rows, loss before each was learned {loss:.5g}, {_bytes(merged)} a shard")
    return found


def _apart(tastes: Sequence[encoded.Taste], early: bool = False) -> tuple[Encoded, Encoded, Encoded]:
    """Rows that show the curvature, that steer, and that only weigh members: of all rows, or of those before the last
    ones."""
    parts = [own for taste in tastes for own in ((taste.early,) if early else (taste.early, taste.late))]
    jury = gathered([own.jury for own in parts])
    steers = np.arange(len(jury.y)) % 2 == 0
    return gathered([own.sample for own in parts]), jury.at(steers), jury.at(~steers)


class _View(NamedTuple):
    """One view of the batch phase."""

    group: Any
    objective: Any
    inverse: np.ndarray  # (d,) 1 / unit of each column
    sample: contacts.Sample  # rows that show the curvature
    jury: contacts.Sample  # the half that steers
    paths: list[list[contacts.Descent]]  # from each start, on several ridges

    @property
    def descents(self) -> list[contacts.Descent]:
        """Those of all paths, in the order in which contacts ask for them."""
        return [own for path in self.paths for own in path]

    @property
    def points(self) -> list[np.ndarray]:
        """The points to ask of next; at first all descents from a start ask of it."""
        return list({id(own.asked): own.asked for own in self.descents}.values())

    @property
    def expected(self) -> float:
        """The least loss of the jury at these points, which is known before anyone is asked."""
        return min(_loss(self.jury, point) for point in self.points)

    def member(self, model: Model, point: np.ndarray) -> StandingMember:
        """A member with the weights of a point."""
        setting = batch_phase.setting_of(self.group)
        made = StandingMember(setting, len(self.inverse), model.n_outputs, self.objective)
        made.take(point, inverses(self.inverse))
        return made


def _batch_phase(
    rounds: Rounds,
    model: Model,
    merged: pool_round.Merged,
    sample: Encoded,
    steering: Encoded,
    stage: str = "contact",
    most: int = MOST_CONTACTS,
    stride: int = 1,
) -> list[tuple[_View, list[last_step.Stopped]]]:
    """Descend by exact gradients of all shards until the jury stops improving; the best points of the descents from
    each start join as members.

    With a stride, gradients are of one of so many rows.
    """
    groups = pool_round.batch_groups(model)
    if not groups:
        return []
    views = [_view(model, group, merged, number, sample, steering) for number, group in enumerate(groups)]
    slim = _slim(model, groups)
    best = [[last_step.Stopped()] * len(view.paths) for view in views]
    history: list[list[float]] = [[] for _ in views]
    for contact in range(1 + most):
        if all(map(_is_over, history, views)):
            break
        asked = [contacts.Asked(np.array(view.points), view.inverse) for view in views]
        answer = contacts.Answer(*rounds.summed(f"{stage}{contact}", contacts.answered, slim, asked, stride))
        for number, view in enumerate(views):
            best[number] = _told(view, answer, number, merged.rows, best[number])
            history[number].append(min(own.loss for own in best[number]))
        losses = ", ".join(f"{view.group.name} {own[-1]:.5g}" for view, own in zip(views, history, strict=True))
        rounds.tell(f"{stage} {contact}: loss on rows set apart {losses}, {_bytes(answer)} a shard")
        if contact == contacts.CHOSEN:
            for path in (path for view in views for path in view.paths):
                path[:] = [min(path, key=lambda own: own.of_jury)]
    for view, stopped in zip(views, best, strict=True):
        for own in stopped:
            view.group.add(view.member(model, own.point))
    return list(zip(views, best, strict=True))


def _last_step(
    model: Model, views: list[tuple[_View, list[last_step.Stopped]]], steering: Encoded, mixing: Encoded
) -> None:
    """Let the members of exact gradients learn the rows that were set apart, which have weighed them."""
    jury = gathered([steering, mixing])
    for view, stopped in views:
        blocks = (list(contacts.batch_blocks(model, view.group, rows)) for rows in (jury, mixing))
        every, last = map(view.sample.beside, blocks)
        view.group.members = view.group.members[: -len(stopped)]
        for own in stopped:
            point = last_step.moved(own, view.sample, every, (view.jury, last))
            view.group.add(view.member(model, point))


def _view(
    model: Model, group: Any, merged: pool_round.Merged, number: int, sample: Encoded, steering: Encoded
) -> _View:
    objective = group.members[0].objective
    largest, means = merged.largest[number], merged.means[number] / merged.rows
    inverse = inverses(np.sqrt(largest) * means**0.25)
    inverse[0] = 1.0
    blocks = list(contacts.batch_blocks(model, group, sample))
    own = contacts.Sample(blocks, objective, inverse, means * inverse**2, merged.rows)
    of_jury = own.beside(list(contacts.batch_blocks(model, group, steering)))
    start = _start(model, group, of_jury)
    zero = np.zeros_like(start)
    starts = [(start, contacts.RIDGES)] + [(zero, contacts.FROM_ZERO)] * bool(start.any())
    paths = [[contacts.Descent(own, of_jury, ridge, begin) for ridge in ridges] for begin, ridges in starts]
    return _View(group, objective, inverse, own, of_jury, paths)


def _start(model: Model, group: Any, jury: contacts.Sample) -> np.ndarray:
    """The weights of the merged member on the view that predicts the jury best, or 0 if that is better."""
    start = np.zeros((len(jury.inverse), model.n_outputs))
    least = _loss(jury, start)
    for member in group.members:
        if member.setting.view == batch_phase.VIEWS[group.name]:
            weights, units = member.weights(len(start), model.n_outputs)
            own = weights * (inverses(units) * inverses(jury.inverse))[:, None]
            loss = _loss(jury, own)
            if loss < least:
                start, least = own, loss
    return start


def _loss(rows: contacts.Sample, weights: np.ndarray) -> float:
    """The mean loss of rows."""
    of_blocks = (b.loss(rows.objective, weights, rows.inverse, rows.limits) * b.weight for b in rows.blocks if b.weight)
    return sum(of_blocks) / max(rows.weight, 1e-300)


def _is_over(history: list[float], view: _View) -> bool:
    """Whether a contact is not worth it: the best point is kept, and what is asked of next is no better to the jury."""
    return PATIENCE.is_over(history) or PATIENCE.is_over([*history, view.expected])


def _told(
    view: _View, answer: contacts.Answer, number: int, rows: int, best: list[last_step.Stopped]
) -> list[last_step.Stopped]:
    """Hand the sums of a contact to the descents of a view; the best point from each start so far, by the jury."""
    places = {id(point): place for place, point in enumerate(view.points)}
    found = list(best)
    for start, path in enumerate(view.paths):
        for descent in path:
            point, weight, place = descent.asked, answer.weight, places[id(descent.asked)]
            loss, gradient = float(answer.losses[number][place]), answer.gradients[number][place]
            if descent.told(loss, gradient, weight, rows):
                descent.of_jury = _loss(view.jury, point)
                mean = gradient / weight / view.sample.steepest
                made = last_step.Stopped(descent.of_jury, point, mean, weight, descent.ridge / rows)
                found[start] = min(found[start], made, key=lambda own: own.loss)
    return found


def _slim(model: Model, groups: list[Any]) -> Model:
    """A model with the views of another, and one member in each of some groups."""
    other = Model.restore(*model.save_state())
    names = [group.name for group in groups]
    stays: list[bool] = []
    for group in other.ensemble.groups:
        stays += [group.name in names and place == 0 for place, _ in enumerate(group.members)]
    other.prune(~np.array(stays))
    return other


def _mix(model: Model, mixing: Encoded, tastes: Sequence[encoded.Taste]) -> RunningMetrics:
    """Weigh all members by rows of the jury that steered nothing; the losses of the mixture before it saw each."""
    rows = labelled(model, mixing)
    predictions = model.member_predictions(rows.X)
    is_exact = np.array([member.setting.learner == LEARNER for member in model.members])
    mixture = joined(Mixture.for_task(model.task, int((~is_exact).sum())), is_exact)  # exact members have half at first
    if model.task == "regression":
        mixture.lowest[()] = min(taste.target.lowest for taste in tastes)
        mixture.highest[()] = max(taste.target.highest for taste in tastes)
    mixed = np.empty_like(predictions[0])
    mix(mixture, model.objective, rows.y, rows.weight, predictions, mixed)
    model.mixture = mixture
    return _metrics(model, mixing, mixed)


def _metrics(model: Model, given: Encoded, predictions: np.ndarray) -> RunningMetrics:
    """The losses and errors of what is predicted (n, K) of rows."""
    rows, metrics = labelled(model, given), RunningMetrics()
    losses = measured(model.objective, rows.y, predictions)
    metrics.add(rows.weight, losses, pool_round.errors(model, given.y, predictions))
    return metrics


class _Foreseen(NamedTuple):
    """How members that have not learned the last rows predict them."""

    shares: np.ndarray  # (N,) of the members
    held_out: RunningMetrics  # of the last rows


def _foreseen(
    rounds: Rounds,
    common: Model,
    merged: pool_round.Merged,
    tastes: Sequence[encoded.Taste],
    dates: Sequence[int],
) -> _Foreseen | None:
    """Learn the rows before the last ones, and weigh members by these; None where the jury weighs them as well."""
    model = Model.restore(*common.save_state())
    pool_round.merge_members(model, merged)
    sample, steering, mixing = _apart(tastes, early=True)
    stride = max(1, merged.rows // ENOUGH_EARLY)
    _batch_phase(rounds, model, merged, sample, steering, "early contact", EARLY_CONTACTS, stride)
    _mix(model, mixing, tastes)
    last = gathered([taste.last for taste in tastes])
    found = last_rows.judged(model, last, gathered([own for taste in tastes for own in taste.early]), dates)
    if found is None:
        return None
    drift = "they drift" if found.drifts else "no drift"
    losses = f"loss {found.of_jury:.5g} as rows of all times weigh members, {found.loss:.5g} as these do"
    rounds.tell(f"last rows: {losses}, {drift}")
    if not found.drifts:
        return None
    last_rows.take(model, found.shares)
    return _Foreseen(found.shares, _metrics(model, last, model.predict(last.X)))


def _trained(
    model: Model, found: United, beginning: Beginning, merged: pool_round.Merged, held_out: RunningMetrics
) -> Trained:
    sums = (merged.metrics[name] for name in ("weight", "loss", "errors"))
    progressive = RunningMetrics(int(merged.metrics["rows"]), *sums)
    progress = Progress(complete=True, number=1, progressive=[progressive], held_out=[held_out])
    progress.tally = found.skipped
    return Trained(model, found.encoder, beginning.kind, beginning.plan, progress)


def _bytes(part: Any) -> str:
    """The size of arrays, in words."""
    return f"{size_of(tuple(part)) / 1e6:.3g} MB"
