"""The members of the pool: online learners and generations, each with positions in the mixture."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate, chain, pairwise
from operator import methodcaller
from typing import Any

import numpy as np

from tunefree.compiled.functions import Call, Program
from tunefree.core import threads
from tunefree.core.part import LEARNED, Part, argument, child, number
from tunefree.core.rows import Block, n_rows
from tunefree.core.schema import COUNT, Flag, Sequence
from tunefree.generations import bins, linear, trees
from tunefree.generations.generation import Generation
from tunefree.generations.leaves import LivingLeaves, finite_sum, log_probabilities
from tunefree.generations.linear import STRENGTHS, Linear
from tunefree.generations.seen import Seen
from tunefree.losses.contract import has_log_link
from tunefree.losses.objectives import Objective, measured
from tunefree.pool.groups import starts_of_runs
from tunefree.pool.growth import Growth
from tunefree.pool.linear_group import LinearGroup
from tunefree.pool.options import MEMBERS, OF_TABLES, OF_TEXTS
from tunefree.pool.rows import LabelledRows
from tunefree.pool.slots import LINEAR, WHOLE, Slot, slots_of
from tunefree.pool.windows import LENGTHS

LARGEST_LOSS = 1e300
MOST_MEMBERS = 1000


class Members(Part):
    """Online learners (a group of linear learners) and generations, whose trees are of several kinds.

    ``n_classes`` are known from the start; it is 0 for numbers, which have a ``loss``. ``names`` are in the order of
    positions in the mixture, and ``slots`` maps each slot to its position. ``growth`` becomes None at the first birth
    that finds rows to be texts. ``seen`` has the latest learned observations or groups. ``signs`` of monotone columns,
    by feature, are 1 where predictions rise and -1 where they fall. With monotone columns, nothing learns on leaves,
    and the mixture keeps the order of its members.
    """

    linear, n_classes, loss, signs = argument(), argument(), argument(), argument()
    slots, names = argument(), argument()
    online_places: list[int] = number(LEARNED, Sequence(COUNT, MOST_MEMBERS))
    has_groups = number(LEARNED, Flag())
    seen = child(Seen, LEARNED)
    growth: Growth | None = child(Growth, LEARNED, may_be_none=True)

    def __init__(
        self, linear: LinearGroup, n_classes: int, loss: Any, kinds: tuple[str, ...], signs: dict[int, int]
    ) -> None:
        self.linear, self.n_classes, self.loss, self.signs = linear, n_classes, loss, signs
        self.slots = {slot: place for place, slot in enumerate(slots_of(LENGTHS, kinds, not signs), len(MEMBERS))}
        self.names = [*(setting.name for setting in MEMBERS), *(slot.name for slot in self.slots)]
        self.online_places = [MEMBERS.index(member.setting) for member in linear.members]
        self.seen, self.has_groups = Seen(), False
        self.growth = Growth(self.width, loss, self.slots, signs)

    @property
    def width(self) -> int:
        """The number of classes of the mixture, at least two; 0 for numbers."""
        return 0 if self.loss is not None else max(self.n_classes, 2)

    @property
    def predicts_logarithms(self) -> bool:
        """Whether predictions are logarithms of numbers."""
        return has_log_link(self.loss)

    def begin(self, X: Block, has_groups: bool) -> None:
        """Keep only the linear members for rows like ``X``: some are only for words, others only for columns."""
        self.has_groups = has_groups
        others = OF_TEXTS if X.numbers.shape[1] or X.codes.shape[1] else OF_TABLES
        self.keep([m for m, member in enumerate(self.linear.members) if member.setting not in others])

    def keep(self, stays: list[int]) -> None:
        """Keep only the online members with these indices; the positions of the others in the mixture sleep."""
        self.linear.keep(stays)
        self.online_places = [self.online_places[m] for m in stays]

    @property
    def places_as_born(self) -> list[int]:
        """Positions in the mixture of the generations of all rows as they were born."""
        slots = [slot for slot in self.slots if slot.clock == WHOLE and (slot.kind == LINEAR or slot.version == 0)]
        return [self.slots[slot] for slot in slots]

    @property
    def places_awake(self) -> list[int]:
        """Positions in the mixture of the members that predict."""
        awake = {tuple(named[:3]) for named in self.generations()}
        return [*self.online_places, *(place for slot, place in self.slots.items() if slot[:3] in awake)]

    def add_class(self, objective: Any, n_outputs: int) -> None:
        """Add a class; online members then have ``n_outputs`` outputs and this objective."""
        self.n_classes += 1
        self.linear.add_class(objective, n_outputs)
        if self.growth is not None:
            self.growth.n_classes = self.width
            for *_, generation in self.generations():
                generation.know(self.width)

    def known(self, digests: np.ndarray, weight: np.ndarray | None = None) -> np.ndarray:
        """A mask (n,) of known observations or groups; then remembers those of a weight above 0."""
        is_known = self.seen.knows(digests) if weight is None else self.seen.add(digests, weight)
        return is_known if self.growth is None else is_known | self.growth.remembers(digests)

    def known_groups(self, weight: np.ndarray, groups: np.ndarray) -> np.ndarray:
        """A mask (n,) of rows whose groups are known; then remembers the groups of rows of a weight above 0."""
        starts = starts_of_runs(groups)
        is_known = self.known(groups[starts], np.maximum.reduceat(weight, starts))
        return np.repeat(is_known, np.diff(np.append(starts, len(groups))))

    def observe(self, rows: LabelledRows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Observe the rows to be learned next.

        Returns their values (n, c) in the columns of generations, digests (n,) of observations or of groups, and a mask
        (n,) of known rows.
        """
        n, growth = len(rows.weight), self.growth
        matrix = np.empty((n, 0)) if growth is None else growth.columns.matrix(rows.X, rows.weight > 0.0)
        if rows.groups is not None and rows.is_known is not None:
            return matrix, rows.groups, rows.is_known
        if growth is None:
            return matrix, np.zeros(n, np.uint64), np.zeros(n, bool)
        digests = growth.columns.digests(rows.X, matrix)
        return matrix, digests, self.known(digests, rows.weight)

    def predict(self, X: Any, matrix: np.ndarray | None = None) -> np.ndarray:
        """Predictions (n, M, K) of future rows; generations see ``matrix``."""
        matrix = self.matrix(X) if matrix is None else matrix
        return predictions_of(self, self.linear.present().predict(X), self.generations(), matrix)

    def generations(self) -> Iterable[tuple[int, str, int, Generation]]:
        """Clock, kind, age and generation, for each generation awake."""
        return () if self.growth is None else self.growth.generations()

    def reduce(self) -> None:
        """Keep only the state for predictions; the newest generation takes over the digests of all known rows."""
        super().reduce()
        for *_, newest in list(self.generations())[:1]:
            newest.observations = np.union1d(newest.observations, self.seen.digests)
            self.seen.put(self.seen.digests[:0])

    def matrix(self, X: Any) -> np.ndarray:
        """Future rows (n, c) as generations see them; without generations there are no columns."""
        return np.empty((n_rows(X), 0)) if self.growth is None else self.growth.columns.matrix(X)

    def asleep(self, n: int) -> np.ndarray:
        """Predictions (n, M, K) where all members sleep."""
        return np.full((n, len(self.names), max(self.width, 1)), np.nan)

    def losses(self, predictions: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Losses (n, M) of predictions (n, M, K); NaN for members asleep."""
        if self.loss is None:
            return -np.take_along_axis(predictions, y.astype(np.int64)[:, None, None], axis=2)[:, :, 0]
        n, n_members, _ = predictions.shape
        targets = np.ascontiguousarray(np.repeat(y, n_members))
        losses = measured(Objective("regression", self.loss), targets, np.nan_to_num(predictions).reshape(-1, 1))
        asleep = np.isnan(predictions[:, :, 0])
        return np.where(asleep, np.nan, np.minimum(losses, LARGEST_LOSS).reshape(n, n_members))


class MemberRows:
    """Arrays for the values of n rows in the columns that generations use, and for the predictions of members.

    Compiled functions compute little for one row: most of the time would be spent on allocating arrays, and on checking
    them in some thirty calls. So these calls are combined into a few programs (:mod:`tunefree.compiled.functions`) on
    arrays for n rows, with NumPy functions between them. One row and many rows take the same path. With enough rows for
    threads, each generation has its own program.

    Online members write their predictions to ``online`` (m, n, K); one that is not finite counts as missing.
    Generations as they were born write ``margins`` (trees) and ``scores`` (linear models); learners on leaves write
    ``added``. ``written`` (n, M, classes) has all predictions at their positions in the mixture.
    """

    def __init__(
        self, members: Any, generations: Iterable[tuple[int, str, int, Generation]], n: int, n_columns: int
    ) -> None:
        awake = [(named[:3], named[3]) for named in generations]
        linear = [(key, generation) for key, generation in awake if isinstance(generation.model, Linear)]
        grown = [(key, generation) for key, generation in awake if not isinstance(generation.model, Linear)]
        grown.sort(key=lambda pair: bool(pair[1].model.is_averaged))
        versions = [(key, 0) for key, _ in grown]
        versions += [(key, version) for key, _ in linear for version in range(len(STRENGTHS))]
        versions += [(key, version) for key, generation in grown for version, _ in enumerate(generation.living, 1)]
        places = [*members.online_places, *(members.slots.get(Slot._make([*key, one])) for key, one in versions)]
        kept = [(version, place) for version, place in enumerate(places) if place is not None]
        # Versions and their positions in the mixture: all in one step for few rows, else in a step for each version.
        pairs = np.array(kept, np.intp).reshape(-1, 2)
        self.kept: list[Any] = [pairs.T.copy()] if n < threads.FEW else list(pairs[:, :, None])
        self.members, self.n, n_outputs = members, n, members.linear.n_outputs
        self.has_two = members.loss is None and n_outputs == 1
        self.written = np.empty((n, len(members.names), max(members.width, 1)))
        self.by_place = self.written.swapaxes(0, 1)
        self.predicted = np.full((len(places), n, n_outputs), np.nan)
        ends = np.cumsum([len(members.online_places), len(grown), len(linear) * len(STRENGTHS)])
        self.online, self.margins, self.scores, self.added = np.split(self.predicted, ends)
        self.generations = [generation for _, generation in (*grown, *linear)]
        self.born = [*self.margins[:, None], *self.scores.reshape(len(linear), len(STRENGTHS), n, n_outputs)]
        self.leaves = [np.empty((n, len(generation.model.roots)), np.int32) for _, generation in grown]
        self.are_late = any(generation.n_late for generation in self.generations)
        self._prepare_trees([generation for _, generation in grown])
        self._set_sources(n_columns)
        self.walk_programs = self._programs(self._walk_calls())
        self.follow_programs = self._programs(self._follow_calls())

    def _prepare_trees(self, grown: list[Generation]) -> None:
        """Prepare the start margins of trees, which of them are averaged, and the learners on their leaves."""
        self.starts = np.zeros((len(grown), 1, self.margins.shape[2]))
        for start, generation in zip(self.starts, grown, strict=True):
            start[:] = 0.0 if generation.n_late else generation.model.start
        averaged = [generation.model for generation in grown if generation.model.is_averaged]
        self.trees, self.means = averaged[-1:], self.margins[len(grown) - len(averaged) :]
        self.n_averaged = np.array([max(len(model.roots), 1) for model in averaged])[:, None, None]
        self.least = np.array([model.least for model in averaged])[:, None, None]
        self.living = [(part, tree) for tree, generation in enumerate(grown) for part in generation.living]
        self.trees_of_living = [tree for _, tree in self.living]
        self.are_living = all(isinstance(part, LivingLeaves) for part, _ in self.living)
        self.predict_rest = self.are_living and any(part.predicts_rest for part, _ in self.living)
        self.weight, self.targets = np.zeros(self.n), np.zeros((len(self.living), self.n))

    def _set_sources(self, n_columns: int) -> None:
        """Compute the indices, in rows of so many columns, of the columns that generations read."""
        growth = self.members.growth
        places = [np.array(growth.columns.places(g.keys), np.intp)[g.model.sources] for g in self.generations]
        starts = n_columns * np.arange(self.n)[:, None]
        self.sources = np.concatenate([np.zeros(0, np.intp), *((starts + some).reshape(-1) for some in places)])
        edges = accumulate((self.n * len(some) for some in places), initial=0)
        self.gathered = np.empty(len(self.sources))
        self.columns = [self.gathered[start:stop].reshape(self.n, -1) for start, stop in pairwise(edges)]

    def _programs(self, calls: Iterator[list[Call]]) -> list[tuple[Program]]:
        """One program for few rows, else one for each generation, as arguments for threads."""
        together = [[*chain(*calls)]] if self.n < threads.FEW else calls
        return [(Program(some),) for some in together]

    def _walk_calls(self) -> Iterator[list[Call]]:
        """The calls in which generations predict as they were born, except those born before some class appeared."""
        for k, (generation, columns, born) in enumerate(zip(self.generations, self.columns, self.born, strict=True)):
            if generation.n_late:
                continue
            if isinstance(generation.model, Linear):
                features = np.ones((1 + columns.shape[1], self.n))
                write = linear.write_features, columns, *generation.model[1:4], features
                yield [write, (linear.write_margins, features, np.ascontiguousarray(generation.model.weights), born)]
            else:
                codes = np.empty(columns.shape, np.uint8)
                walk = trees.calls_on(generation.model, codes, self.leaves[k], born[0])
                yield [(bins.write_codes, generation.model.bins, columns, codes), *walk]

    def _follow_calls(self) -> Iterator[list[Call]]:
        """The calls in which learners on leaves predict and learn."""
        rest = np.zeros(self.margins.shape[1:])
        for (part, tree), targets, written in zip(self.living, self.targets, self.added, strict=True):
            if isinstance(part, LivingLeaves):
                offsets = rest if part.predicts_rest else self.margins[tree]
                yield [part.call_on(self.leaves[tree], offsets, targets, self.weight, written)]
            elif len(part.levels):
                yield [(trees.add_singles, part.levels, self.leaves[tree], written)]

    def walk(self, matrix: np.ndarray) -> None:
        """Let the generations as they were born predict rows (n, c)."""
        matrix.take(self.sources, out=self.gathered, mode="clip")
        self.margins[:], self.scores[:] = self.starts, 0.0
        threads.each(methodcaller("run"), self.walk_programs, self.n)
        for averaged in self.trees:
            self.means[:] = trees.margins_of_means(averaged, self.means / self.n_averaged, self.least)
        for k, generation in enumerate(self.generations if self.are_late else ()):
            if generation.n_late:
                columns = np.ascontiguousarray(matrix[:, self.members.growth.columns.places(generation.keys)])
                leaves, self.born[k][:] = generation.predict_as_born(columns)
                for tree_leaves in self.leaves[k : k + 1]:  # empty for linear models
                    tree_leaves[:] = leaves

    def follow(self, y: Any = None, weight: Any = 0.0) -> None:
        """Let learners on leaves predict the rows of :meth:`walk`, and then learn each row of a weight above 0.

        ``y`` are the classes or numbers of the rows; None if none is to be learned.
        """
        self.weight[:] = weight
        if y is not None:
            if self.predict_rest:
                with np.errstate(over="ignore"):
                    self.targets[:] = np.clip(y - self.margins[self.trees_of_living, :, 0], -1e300, 1e300)
            else:
                self.targets[:] = np.where(y == 1.0, 1.0, -1.0) if self.has_two else y
        self.added[:] = 0.0
        threads.each(methodcaller("run"), self.follow_programs, self.n)
        if not self.are_living:
            for (part, tree), sums in zip(self.living, self.added, strict=True):
                sums[:] = part.corrected(self.margins[tree], sums)
        elif self.predict_rest:
            self.added[:] = finite_sum(self.added, self.margins[self.trees_of_living])

    def write(self) -> None:
        """Write the predictions of all members to their positions."""
        self.written.fill(np.nan)
        if not np.isfinite(self.online).all():
            self.online[~np.isfinite(self.online).all(axis=2)] = np.nan
        threads.each(self._write_versions, self.kept, self.n)

    def _write_versions(self, versions: Any, places: Any) -> None:
        predictions = self.predicted[versions]
        if self.members.loss is None:
            margins = predictions.reshape(-1, predictions.shape[2])
            predictions = log_probabilities(margins, self.members.width, 0).reshape(len(places), self.n, -1)
        self.by_place[places] = predictions


def predictions_of(
    members: Any,
    online: np.ndarray | float,
    generations: Iterable[tuple[int, str, int, Generation]],
    matrix: np.ndarray,
    y: Any = None,
    weight: Any = 0.0,
) -> np.ndarray:
    """Predictions (n, M, K): those of online members (m, n, K), and of generations for rows in a matrix (n, c).

    Generations then learn rows of a weight above 0, if their classes or numbers ``y`` are given.
    """
    rows = MemberRows(members, generations, *matrix.shape)
    rows.online[:] = online
    rows.walk(matrix)
    rows.follow(y, weight)
    rows.write()
    return rows.written
