"""A model: it predicts each row of a stream before it learns it.

The command line, the streaming fit and the estimators share it. It takes rows and raw targets, notices new classes at
the very row where they first appear, and reserves room for new features. Its parts are its members
(:mod:`tunefree.model.ensemble`), the aggregation of their predictions (:mod:`tunefree.model.aggregation`), and the
record of the first pass (:mod:`tunefree.model.record`). The pool with its generations is a model, too
(:class:`tunefree.pool.PoolModel`).
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import wraps
from itertools import pairwise
from typing import Any, Self

import numpy as np

from tunefree.core.errors import ModelError, TunefreeError
from tunefree.core.part import Part
from tunefree.core.rows import n_rows, part, reach
from tunefree.losses.objectives import chosen, measured
from tunefree.model import saving
from tunefree.model.aggregation import aggregation_of, asleep
from tunefree.model.ensemble import Ensemble
from tunefree.model.group import LabelledRows, LateLosses
from tunefree.model.members import Setting
from tunefree.model.options import ModelOptions
from tunefree.model.record import FirstPassRecord
from tunefree.model.targets import ScoredModel, join_margins
from tunefree.theory.evidence import Certificate

PIECE = 2048  # rows that the members learn at a time: their predictions are kept until they are aggregated


def whole(change: Callable[..., Any]) -> Callable[..., Any]:
    """A method that changes a model: one that was left in the middle of it refuses to go on.

    Errors of the package are raised between pieces, where a model can go on.
    """

    @wraps(change)
    def changed(model: Any, *arguments: Any, **options: Any) -> Any:
        model.check_whole()
        try:
            return change(model, *arguments, **options)
        except TunefreeError:
            raise
        except BaseException as error:
            model.ended_by = type(error).__name__
            raise

    return changed


class Model(ScoredModel):
    """A model that learns.

    Parameters
    ----------
    task : {"classification", "regression"}
    learner : str, default "pool"
        A name in ``learners.ALL``; of ``"pool"`` there is
        :class:`tunefree.pool.PoolModel`.
    loss : str, optional
        See :func:`tunefree.losses.loss_of`. The pool learns classes with the logistic loss only.
    average : bool, default False
        Predict with the average of the iterates instead of the last one; not for the pool.
    settings : dict, optional
        Parameters of the learner (its ``epsilon``, ``a`` or ``b``); none for the pool.
    view : str, default "raw"
        ``"raw"``, or a name in ``views.ALL``; the pool's members have views of their own.
    classes : sequence, optional
        Labels known beforehand, in the order of the outputs; others are appended as they appear.
    n_features : int, default 2
        Features known beforehand, the constant included.
    config : optional
        What the family of a learner that is not linear chooses for its banks, such as a kernel.
    member_settings : list of Setting, optional
        The members, instead of those that a learner of this name usually has.
    replays : bool, default False
        Whether features from number 1024 on get statistics when they are met a second time, and then learn the first
        meeting too, where all linear members can (:mod:`tunefree.model.meetings`).

    Attributes
    ----------
    options : ModelOptions
        What was chosen.
    ensemble : Ensemble
        The members.
    aggregation : Leader or Mixed
    record : FirstPassRecord
    ended_by : str or None
        The type of the error that left it in the middle of rows, if one has.

    Examples
    --------
    >>> from tunefree.core.rows import dense
    >>> from tunefree.model.targets import Labels
    >>> model = Model("classification", "scinol2")
    >>> X = dense(np.array([[0.0], [1.0], [0.0], [1.0]] * 50))
    >>> _ = model.learn(X, Labels.of(["no", "yes", "no", "yes"] * 50), np.ones(200))
    >>> model.classes, model.predict(X)[:2, 0].round()
    (['no', 'yes'], array([-2.,  4.]))
    """

    kind = "linear"  # of models, see tunefree.model_files.trained

    def __init__(
        self,
        task: str,
        learner: str = "pool",
        loss: str | None = None,
        average: bool = False,
        settings: dict[str, float] | None = None,
        view: str = "raw",
        classes: Any = (),
        n_features: int = 2,
        config: Any = None,
        member_settings: list[Setting] | None = None,
        replays: bool = False,
    ) -> None:
        chosen = task, learner, loss, average, settings, view, config, member_settings, replays
        self.options = ModelOptions.create(*chosen)
        self.task, self.classes = task, list(classes)
        self.n_features = max(n_features, 2)  # never less: the constant and one more
        self.ensemble = Ensemble(self.options, self.n_features, self.n_outputs, len(self.classes))
        self.aggregation = aggregation_of(self.options, len(self.members), len(self.classes))
        self.record = FirstPassRecord(self.options, self.n_slots, self.n_outputs)
        self.ended_by: str | None = None
        self._late: LateLosses | None = None

    def parts(self) -> dict[str, Part]:
        """What was learned, by the names that files have for it."""
        return {"linear": self.ensemble.linear, "aggregation": self.aggregation, "record": self.record}

    def check_whole(self) -> None:
        """Raise an error if the model was left in the middle of rows."""
        if self.ended_by is not None:
            problem = f"{self.ended_by} was raised while the model learned, and left it in the middle of rows"
            raise ModelError(f"{problem}; fit it anew, or load it from a file")

    @property
    def only_predicts(self) -> bool:
        """Whether what learning needs was left out."""
        return False

    @property
    def learner(self) -> str:
        """The name of the learner or pool."""
        return self.options.learner

    @property
    def members(self) -> list[Any]:
        """The members, linear ones first."""
        return self.ensemble.members

    @property
    def banks(self) -> list[Any]:
        """The banks of members that are not linear."""
        return self.ensemble.banks

    @property
    def objective(self) -> Any:
        """From predictions to losses."""
        if self.task == "classification" and self.options.is_mixed:
            return self.options.objective_of_mixture(self.n_outputs)
        return self.members[0].objective

    @property
    def n_slots(self) -> int:
        """Features that have statistics, or may get them when they are first met."""
        return self.ensemble.linear.n_slots(self.n_features)

    def n_slots_after(self, X: Any) -> int:
        """What :attr:`n_slots` will be at most once the rows of a block are learned."""
        meetings = self.ensemble.linear.meetings
        return max(self.n_features, reach(X)) if meetings is None else meetings.n_slots_after(X)

    def reserve_features(self, n_features: int) -> None:
        """Reserve capacity for at least so many features."""
        self.n_features = max(self.n_features, n_features)
        self.ensemble.linear.reserve_features(self.n_features)
        self.reserve_slots(self.n_slots)

    def reserve_exactly(self, n_slots: int) -> None:
        """Reserve capacity for so many statistics, and no more."""
        for member in self.ensemble.linear.members:
            if n_slots > member.room:
                member.resize(n_slots, self.n_outputs)
        self.record.reserve_exactly(n_slots, self.n_outputs, self.objective)

    def reserve_slots(self, n_slots: int) -> None:
        """Reserve capacity for so many statistics: none are copied while rows are learned, see `n_slots_after`."""
        self.ensemble.linear.reserve_slots(n_slots)
        self.record.reserve_features(n_slots, self.n_outputs, self.objective)

    @property
    def can_forget(self) -> bool:
        """Whether features can be forgotten: their statistics have the places of their own numbers, and no bank keeps
        rows."""
        return self.ensemble.linear.meetings is None and not self.banks

    def forget(self, features: np.ndarray) -> None:
        """Know nothing of some features (f,), whose numbers others may have from here on.

        Certificates are then of linear models in the features as they are known: in the rows before, those that were
        forgotten had the value 0.
        """
        self.ensemble.linear.forget(features)
        self.record.evidence.forget(features[features < self.record.evidence.n_features])

    @whole
    def learn(
        self, X: Any, y: Any, weight: np.ndarray, evaluation_weight: np.ndarray | None = None, again: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        """Learn a block of rows in order.

        Parameters
        ----------
        X : block of rows
            The model gets capacity for its features, if :meth:`reserve_features` was not called before.
        y : Labels, or (n,) array of numbers in regression
        weight : (n,) array
            Sample weights; a row of weight 0 is predicted but not learned.
        evaluation_weight : (n,) array, optional
            Weights with which members are evaluated and probabilities calibrated, ``weight`` if None; 0 for rows that
            were learned before.
        again : bool, default False
            Whether the rows were learned before; then views and certificates learn nothing from them.

        Returns
        -------
        predictions : (n, K) array
            Predictions made before each row was learned: margins for classification.
        row_losses : (n,) array
            The loss of each. In regression NaN for rows before which no target was learned, so that nothing was known
            of the size of targets. NaN for rows that all members keep back, see :meth:`take_late_losses`.
        """
        evaluation_weight, self._late = weight if evaluation_weight is None else evaluation_weight, None
        if reach(X) > self.n_features:  # compiled passes would write beyond the end of what members know
            self.reserve_features(reach(X))
        codes, new = (np.asarray(y, np.float64), []) if self.task == "regression" else self.codes(y)
        rows, pieces = LabelledRows(X, codes, weight, evaluation_weight), []
        starts = [0, *(first for first, _ in new), n_rows(X)]
        for (start, stop), (_, label) in zip(pairwise(starts), [*new, (0, None)], strict=True):
            pieces += [self._learn(rows.part(*edges), again) for edges in _cut(start, stop)]
            if label is not None:
                self.add_class(label)
        margins = join_margins([predictions for predictions, _ in pieces], self.n_outputs)
        return margins, np.concatenate([np.empty(0), *(row_losses for _, row_losses in pieces)])

    def take_late_losses(self) -> LateLosses | None:
        """Losses of the first rows of weights above 0, handed out once members that kept them back have learned them.

        Each row was predicted before it was learned.
        """
        taken, self._late = self._late, None
        return taken

    def _learn(self, rows: LabelledRows, again: bool) -> tuple[np.ndarray, np.ndarray]:
        """Learn a piece of rows, whose targets are numbers or numbers of classes; see :meth:`learn`."""
        targets = rows.y if self.task == "regression" else self.targets_of(rows.y)
        arrays = (np.ascontiguousarray(array) for array in (targets, *rows[2:]))
        rows = LabelledRows(rows.X, *arrays)
        predictions = self.ensemble.learn(rows, again)
        self._evaluate_warmup()
        mixed = self.aggregation.learn(self.objective, rows.y, rows.evaluation_weight, predictions)
        return self._recorded(rows, again, predictions, mixed)

    def _recorded(
        self, rows: LabelledRows, again: bool, of_members: np.ndarray, mixed: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Predictions and losses of rows, which certificates are made of unless the rows were learned before."""
        (entries, met), is_known = self.ensemble.linear.take_latest(), np.ones(len(rows.y), bool)
        sleeping = asleep(of_members) & (not again)
        if self.task == "regression" and not again:
            means = self.record.targets.add(rows.weight, rows.y)
            mixed[sleeping, 0] = self.objective.loss.prediction_of(np.nan_to_num(means))[sleeping]
            is_known = ~np.isnan(means)
        row_losses = measured(self.objective, rows.y, mixed)
        if again:
            self.record.is_over = True
        else:
            evaluation_weight = np.where(is_known, rows.evaluation_weight, 0.0)
            rows = LabelledRows(entries, rows.y, np.where(sleeping, 0.0, rows.weight), evaluation_weight)
            self.record.add(self.objective, rows, mixed, np.nan_to_num(row_losses, posinf=np.inf), met)
        keeps_back = not self.ensemble.linear.members  # as kernel learners do, which are evaluated later
        is_late = sleeping & keeps_back & (rows.evaluation_weight > 0.0)
        return mixed, np.where(is_known & ~is_late, row_losses, np.nan)

    def _evaluate_warmup(self) -> None:
        """Evaluate the members by rows that all of them had kept back, and of which there were no other predictions."""
        warmup = self.ensemble.take_warmup_predictions()
        if warmup is None:
            return
        mixed, kept = self.aggregation.learn(self.objective, *warmup), warmup.evaluation_weight > 0.0
        y, mixed = warmup.y[kept], np.ascontiguousarray(mixed[kept])
        row_losses = measured(self.objective, y, mixed)
        if self.task == "regression":
            with np.errstate(over="ignore"):
                row_losses[:1], errors = np.nan, np.abs(y - self.responses(mixed))
        else:
            errors = (np.where(y > 0, 1, 0) if self.n_outputs == 1 else y) != chosen(mixed)
        self._late = LateLosses(warmup.evaluation_weight[kept], row_losses, errors.astype(np.float64))

    @whole
    def freeze(self) -> None:
        """No more rows are expected: members learn those that they kept back."""
        self.ensemble.freeze()
        self._evaluate_warmup()

    @whole
    def begin_pass(self) -> None:
        """Rows that were learned come again; features are learned from now on when they are first met."""
        self.record.replay(*self.ensemble.linear.settle(), self.objective)
        self.ensemble.begin_pass()
        self._evaluate_warmup()

    def add_class(self, label: Any) -> None:
        """Know one more class; a third one turns one margin into three, in which the old margin is that of class 1."""
        self.check_room_for_a_class()
        before = self.n_outputs
        self.classes.append(label)
        self.ensemble.add_class(self.n_outputs, len(self.classes))
        self.aggregation.add_class(len(self.classes))
        if self.n_outputs > before:
            self.record.add_outputs(self.n_outputs, self.objective)

    def predict(self, X: Any) -> np.ndarray:
        """Margins (n, K), or in regression the predicted targets (n, 1), of a block of rows."""
        self.check_whole()
        pieces = [self.ensemble.predict(part(X, *edges)) for edges in _cut(0, n_rows(X))]
        return np.concatenate([np.empty((0, self.n_outputs)), *map(self.aggregation.predict, pieces)])

    def log_odds(self, margins: np.ndarray) -> np.ndarray:
        """Logarithms (n, classes) of what is proportional to the probabilities, calibrated where margins are not."""
        return self.aggregation.log_odds(margins)

    @property
    def leader(self) -> int:
        """The place of the member with the largest share in predictions of new rows, the first of several."""
        return int(self.aggregation.shares.argmax())

    def shares_by_member(self) -> dict[str, float]:
        """Each member's share in predictions of new rows, by its name."""
        names = (member.name for member in self.members)
        return dict(zip(names, self.aggregation.shares.tolist(), strict=True))

    def certificate(self) -> Certificate:
        """What is known of every linear model on the rows of the first pass."""
        return self.record.certificate(self.n_features, self.objective, self.ensemble.linear.meetings)

    def mean_weights(self) -> np.ndarray:
        """Weights (d, K) of features in units of their size."""
        if not self.has_weights:
            raise ModelError("kernels and trees have no weights of features; choose a linear learner for them")
        return self.ensemble.linear.weights_by_feature(self.n_features)[0]

    @property
    def has_weights(self) -> bool:
        """Whether predictions are those of one learner that is linear in the features of its view."""
        return bool(self.ensemble.linear.members) and not self.options.is_pool

    @property
    def loss_is_log_loss(self) -> bool:
        """Whether the loss of a class is minus the logarithm of its probability."""
        return self.task == "classification" and not self.options.is_calibrated

    @property
    def n_support(self) -> int:
        """Rows that its banks are made of."""
        return self.ensemble.n_support

    def reduce(self) -> None:
        """Keep what predicts; see :meth:`tunefree.pool.model.PoolModel.reduce`."""
        raise ModelError("the model of a single learner predicts as it is; leave only_for_prediction out")

    def save_state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays and a header from which :meth:`restore` makes the same model, to the last bit."""
        self.check_whole()
        return saving.save_state(self)

    @classmethod
    def restore(cls, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> Self:
        """The model that :meth:`save_state` wrote down."""
        model = cls(**saving.constructor_arguments(header))
        saving.restore(model, arrays, header)
        return model

    def __getstate__(self) -> dict[str, Any]:
        return dict(zip(("arrays", "header"), self.save_state(), strict=True))

    def __setstate__(self, saved: dict[str, Any]) -> None:
        self.__dict__.update(type(self).restore(**copy.deepcopy(saved)).__dict__)


def _cut(start: int, stop: int) -> list[tuple[int, int]]:
    """Edges of pieces of at most PIECE rows."""
    return list(pairwise([*range(start, stop, PIECE), stop]))
