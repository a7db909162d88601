"""The pool as a model of the commands and estimators."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from tunefree.core.errors import ModelError
from tunefree.core.part import Part
from tunefree.core.rows import n_rows, reach
from tunefree.intervals.sets import class_scores, draws_of
from tunefree.losses import loss_of
from tunefree.losses.objectives import measured
from tunefree.mixing.bases import LEAST
from tunefree.model.group import LabelledRows
from tunefree.model.model import Model, whole
from tunefree.model.pool import POOL
from tunefree.model.record import FirstPassRecord
from tunefree.model.targets import join_margins
from tunefree.pool.contexts import by_context
from tunefree.pool.estimated_loss import EstimatedLoss, estimated_loss
from tunefree.pool.members import Members
from tunefree.pool.pool import Pool
from tunefree.pool.quantiles import quantile, quantiles
from tunefree.pool.weights_record import Selection
from tunefree.theory.evidence import Certificate

FEWEST_FEATURES = 2  # of a record of no row


class PoolModel(Model):
    """A model that is a pool; see :class:`tunefree.model.model.Model`.

    Parameters
    ----------
    task : {"classification", "regression"}
    learner, loss, *further, **options
        Of :class:`tunefree.model.model.Model`.

    Examples
    --------
    >>> from tunefree.core.rows import dense
    >>> from tunefree.model.targets import Labels
    >>> model = PoolModel("classification")
    >>> X = dense(np.array([[0.0], [1.0], [0.0], [1.0]] * 50))
    >>> _ = model.learn(X, Labels.of(["no", "yes", "no", "yes"] * 50), np.ones(200))
    >>> model.freeze()
    >>> model.classes, model.predict(X)[:2, 0] > 0
    (['no', 'yes'], array([False,  True]))
    """

    def __init__(self, task: str, learner: str = "pool", loss: str | None = None, *further: Any, **options: Any):
        super().__init__(task, learner, loss, *further, **options)
        of_numbers = loss_of(task, loss) if task == "regression" else None
        self._pool = Pool(Members(self.ensemble, len(self.classes), of_numbers))

    @property
    def pool(self) -> Pool:
        """The pool, after all rows that were learned are recorded."""
        self._pool.settle()
        return self._pool

    @whole
    def learn(
        self,
        X: Any,
        y: Any,
        weight: np.ndarray,
        evaluation_weight: np.ndarray | None = None,
        again: bool = False,
        groups: np.ndarray | None = None,
        mass: np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Learn a block of rows in order, see :meth:`tunefree.model.model.Model.learn`.

        ``groups`` (n,) are digests of the rows' groups (:mod:`tunefree.pool.groups`). Runs of rows of one group must
        not be cut between two calls. ``mass`` (n,) is the total weight of a row and its copies, if it is known.
        """
        if again:
            raise ModelError("the pool makes one pass; name a learner to make several")
        self._check_learns()
        evaluation_weight = weight if evaluation_weight is None else evaluation_weight
        if reach(X) > self.n_features:
            self.reserve_features(reach(X))
        codes, new = (np.asarray(y, np.float64), []) if self.task == "regression" else self.codes(y)
        margins, row_losses = [], [np.empty(0)]
        starts = [0, *(first for first, _ in new), n_rows(X)]
        for (start, stop), (_, label) in zip(pairwise(starts), [*new, (0, None)], strict=True):
            rows = LabelledRows(X, codes, weight, evaluation_weight).part(start, stop)
            some_groups, some_mass = (None if array is None else array[start:stop] for array in (groups, mass))
            for piece, mixed in self._pool.learn(*rows[:3], some_groups, some_mass):
                predictions, losses = self._record(rows.part(piece.start, piece.stop), mixed)
                margins.append(predictions)
                row_losses.append(losses)
            if label is not None:
                self.add_class(label)
        return join_margins(margins, self.n_outputs), np.concatenate(row_losses)

    def forget(self, features: np.ndarray) -> None:
        self.pool.forget(features)
        super().forget(features)

    def reserve_slots(self, n_slots: int) -> None:
        self._check_learns()
        super().reserve_slots(n_slots)

    def _check_learns(self) -> None:
        if self._pool.only_predicts:
            raise ModelError("what learning needs was left out of this model; go on from the one before")

    def _record(self, rows: LabelledRows, mixed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Margins and losses of rows that were predicted, which are evidence for certificates."""
        margins, objective = self._margins(mixed), self.objective
        targets = rows.y if self.task == "regression" else self.targets_of(rows.y)
        losses = measured(objective, targets, margins)
        counted = np.where(np.isnan(losses), 0.0, losses)
        if self.task == "regression":
            unknown = np.isnan(self.record.targets.add(rows.weight, rows.y))
            losses = np.where(unknown, np.nan, losses)
            rows = rows._replace(evaluation_weight=np.where(unknown, 0.0, rows.evaluation_weight))
        entries, met = self.ensemble.linear.take_latest()
        arrays = map(np.ascontiguousarray, (targets, *rows[2:]))
        self.record.add(objective, LabelledRows(entries, *arrays), margins, counted, met)
        return margins, losses

    def _margins(self, mixed: np.ndarray) -> np.ndarray:
        """Margins (n, K) of log-probabilities: one of up to two classes."""
        return mixed[:, 1:] - mixed[:, :1] if self.task == "classification" and self.n_outputs == 1 else mixed

    def predict(self, X: Any) -> np.ndarray:
        self.check_whole()
        return self._margins(self._pool.predict(X))

    def quantiles(
        self, X: Any, predictions: np.ndarray, levels: np.ndarray, exposure: np.ndarray | None = None
    ) -> np.ndarray:
        """Quantiles (n, L) of the targets, which are numbers, of rows of which (n, 1) is predicted.

        With the losses of counts and amounts rows may have exposures (n,).

        Raises
        ------
        ModelError
            If there is too little evidence for a level.
        """
        asked = [f"the quantile {level:g}" for level in levels.tolist()]
        return quantiles(self.pool, X, predictions[:, 0], levels, asked, exposure)

    def intervals(
        self, X: Any, predictions: np.ndarray, coverages: np.ndarray, exposure: np.ndarray | None = None
    ) -> np.ndarray:
        """Intervals (n, c, 2) for the targets of such rows: quantiles with as much below as above.

        They contain the prediction, for which there is less on one side where necessary, unless the loss is that of
        another quantile than the median.

        Raises
        ------
        ModelError
            If there is too little evidence for a coverage.
        """
        levels = np.stack([(1.0 - coverages) / 2.0, (1.0 + coverages) / 2.0], axis=1).ravel()
        asked = [f"coverage {coverage:g}" for coverage in np.repeat(coverages, 2).tolist()]
        is_middle = getattr(self._pool.members.loss, "tau", 0.5) == 0.5  # else the prediction is a quantile
        bounds = quantiles(self.pool, X, predictions[:, 0], levels, asked, exposure, are_ends=is_middle)
        bounds = bounds.reshape(len(predictions), -1, 2)
        if not is_middle:
            return bounds
        middles = predictions[:, 0] if exposure is None else predictions[:, 0] + np.log(exposure)
        middles = np.asarray(self._pool.members.loss.response(middles))[:, None]
        return np.stack([np.minimum(bounds[:, :, 0], middles), np.maximum(bounds[:, :, 1], middles)], axis=2)

    def has_intervals(self, coverage: float) -> bool:
        """Whether there are intervals of this coverage: targets are numbers, and there is evidence enough."""
        if self.task != "regression":
            return False
        try:
            for level in ((1.0 - coverage) / 2.0, (1.0 + coverage) / 2.0):
                quantile(self.pool, level, f"the quantile {level:g}")
        except ModelError:
            return False
        return True

    def sets(self, X: Any, margins: np.ndarray, coverages: np.ndarray, by_class: bool = False) -> np.ndarray:
        """Which classes (n, c, K) are in the sets of rows with these margins.

        ``by_class`` covers the rows of each class as often as asked for, not only all rows together.

        Raises
        ------
        ModelError
            If there is too little evidence for a coverage.
        """
        if len(self.classes) < 2:
            return np.ones((len(margins), len(coverages), len(self.classes)), bool)
        scores = class_scores(np.log(np.maximum(self.probabilities(margins), LEAST)), draws_of(X))
        codes: list[int | None] = [*range(len(self.classes))] if by_class else [None]
        members = self.pool.members
        contexts = members.contexts_of(members.digests(X, members.matrix(X)), n_rows(X))

        def bounds(number: int, rows: Any) -> np.ndarray:
            """The largest scores (n, c, K or 1) of classes in the sets of rows of a context."""
            asked = [f"coverage {coverage:g}" for coverage in coverages.tolist()]
            quantiles = [
                [quantile(self.pool, coverage, name + self._of_class(code), code, number) for code in codes]
                for coverage, name in zip(coverages.tolist(), asked, strict=True)
            ]
            return np.tile(np.array(quantiles), (len(contexts[rows]), 1, 1))

        return scores[:, None] <= by_context(contexts, bounds)

    def _of_class(self, code: int | None) -> str:
        return "" if code is None else f" of class {self.classes[code]!r}"

    @whole
    def freeze(self) -> None:
        self.pool.finish()

    def begin_pass(self) -> None:
        raise ModelError("the pool makes one pass; name a learner to make several")

    def add_class(self, label: Any) -> None:
        self.check_room_for_a_class()
        before = self.n_outputs
        self.classes.append(label)
        self.pool.add_class(self.n_outputs)
        if self.n_outputs > before:
            self.record.add_outputs(self.n_outputs, self.objective)

    def shares_by_member(self) -> dict[str, float]:
        return self.pool.shares()

    def selection(self) -> Selection:
        """What decided how it predicts."""
        return self.pool.selection()

    def estimated_loss(self) -> EstimatedLoss | None:
        """The mean loss to expect of rows to come; None if there is too little evidence."""
        return estimated_loss(self.pool)

    def known_rows(self) -> tuple[int, int]:
        """Rows learned whose observation, or group, was known; and all rows learned."""
        return self.pool.n_known, self.pool.rows

    def kept_rows(self) -> tuple[int, int]:
        """Rows that trees to be born would be grown on; and all rows learned, of which these are a sample."""
        growth = self.pool.members.growth
        return (0, 0) if growth is None else (growth.whole.n_kept, growth.whole.rows)

    def unseen(self) -> list[str]:
        """A line where trees do not see all columns; none where rows have no columns at all."""
        growth = self.pool.members.growth
        n = 0 if growth is None else growth.columns.n_unseen
        return [f"{n:,} columns are too many for trees, and are for linear learners only"] if n else []

    def reduce(self) -> None:
        """Keep what predicts, and leave out all that learning, certificates and what decided need."""
        self.pool.reduce()
        self.ensemble.linear.reduce()
        self.record = FirstPassRecord(self.options, FEWEST_FEATURES, self.n_outputs)

    def certificate(self) -> Certificate:
        if self.pool.only_predicts:
            raise ModelError("what certificates are made of was left out of this model; certify the one before")
        return super().certificate()

    @property
    def only_predicts(self) -> bool:
        return self._pool.only_predicts

    @property
    def nbytes(self) -> int:
        """Bytes of all but the online members and the evidence for certificates."""
        return self.pool.nbytes

    def put_to_sleep(self) -> str | None:
        """Give up what takes memory and predicts least; returns its name, None if one linear member is left.

        Half of the rows that trees are grown on go first, again and again, then windows, the previous generations,
        the randomised trees, all trees, and then the linear members of the least weight, one at a time.
        """
        growth = self.pool.members.growth
        if growth is None:
            return self._give_up_member()
        name = growth.put_to_sleep()
        if name is None:
            self.pool.give_up_trees()
            name = "all trees"
        return name

    def _give_up_member(self) -> str | None:
        """Go on without the member of the least weight; returns its name, None if it is the last one."""
        if len(self.members) < 2:
            return None
        least = int(np.argmin(self.pool.context.mixture.base.weights[self.pool.members.online_places]))
        name: str = self.members[least].name
        self.pool.members.keep([m for m in range(len(self.members)) if m != least])
        return name

    def parts(self) -> dict[str, Part]:
        return super().parts() | {"pool": self.pool}


def class_of(learner: str) -> type[Model]:
    """The class of a model whose learner has this name.

    Examples
    --------
    >>> class_of("pool").__name__, class_of("nag").__name__
    ('PoolModel', 'Model')
    """
    return PoolModel if learner == POOL else Model


def restored(arrays: dict[str, np.ndarray], header: dict[str, Any]) -> Model:
    """The model of a file, from its arrays and the header of the file."""
    return class_of(header["model"]["learner"]).restore(arrays, header["model"])
