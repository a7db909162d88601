"""A model: it predicts each row of a stream before it learns it.

The command line, the streaming fit and the estimators share it. It takes rows and raw targets, finds new classes at the
very row where they first appear, and reserves room for new features. Its parts are its members
(:mod:`tunefree.model.ensemble`), the aggregation of their predictions (:mod:`tunefree.model.aggregation`), and the
record of the first pass (:mod:`tunefree.model.record`). A single learner is a pool of one.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from concurrent.futures import Future, wait
from itertools import pairwise
from typing import Any

import numpy as np

from tunefree.core import threads
from tunefree.core.errors import ModelError
from tunefree.core.rows import n_rows, part, reach
from tunefree.losses.objectives import measured
from tunefree.model import pruning, saving, snapshots
from tunefree.model.additive_bank import UNSUITED
from tunefree.model.aggregation import Aggregation
from tunefree.model.deployment import Deployment
from tunefree.model.ensemble import Ensemble
from tunefree.model.group import LabelledRows, MemberGroup
from tunefree.model.kernel_bank import KernelBank, KernelConfig
from tunefree.model.meetings import Met
from tunefree.model.members import Setting
from tunefree.model.mixture import Mixture, has_failed, n_rounds, predictive_shares, summary, weighted_sum
from tunefree.model.options import ModelOptions
from tunefree.model.record import FirstPassRecord
from tunefree.model.snapshots import Snapshot
from tunefree.model.targets import RunningMetrics, ScoredModel, join_margins
from tunefree.theory.evidence import Certificate

PIECE = 2048  # rows that the members learn at a time: their predictions are kept until they are aggregated


class Model(ScoredModel):
    """A model that learns.

    Parameters
    ----------
    task : {"classification", "regression"}
    learner : str, default "pool"
        ``"pool"``, ``"kernel-pool"`` (with kernels of many widths), or a name in ``learners.ALL`` or
        ``kernel.learners.ALL``.
    loss : str, optional
        See :func:`tunefree.losses.loss_of`. The pool learns classes with the logistic loss only.
    average : bool, default False
        Predict with the average of the iterates instead of the last one; not for the pool.
    settings : dict, optional
        Parameters of the learner (its ``epsilon``, ``a`` or ``b``); none for the pool.
    view : str, default "raw"
        ``"raw"``, a name in ``views.ALL``, or that of a bank (``pool.VIEWS``); the pool's members have views of their
        own.
    classes : sequence, optional
        Labels known beforehand, in the order of the outputs; others are appended as they appear.
    n_features : int, default 2
        Features known beforehand, the constant included.
    kernel_config : KernelConfig, optional
        The kernel, for learners that have one.
    member_settings : list of Setting, optional
        The members of a pool, instead of those that it usually has.
    may_prune : bool, default True
        Whether members with a negligible share may be dropped.
    pairs : list of (int, int), optional
        Pairs of columns whose products the members on the view ``pairs`` learn: a dense column by its place from 0, a
        column of codes as -1 - its number in ``code_columns``. By default they are found.
    horizon : int, optional
        Rows that will be predicted after the last one learned, for which evidence is gathered. By default as many as
        were learned.
    replays : bool, default False
        Whether features from number 1024 on get statistics when they are met a second time, and then learn the first
        meeting too, where all linear members can (:mod:`tunefree.model.meetings`).

    Attributes
    ----------
    options : ModelOptions
        What was chosen.
    ensemble : Ensemble
        The members.
    aggregation : Aggregation
    record : FirstPassRecord
    deployment : Deployment or None
        What predicts new rows after one pass of the pool; None if the mixture does.
    history : list of dict
        ``rows`` on which the members were evaluated, and each member's ``shares`` and mean ``losses`` after them.
    metrics : RunningMetrics
        For whoever counts losses; the model itself does not.

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
        kernel_config: KernelConfig | None = None,
        member_settings: list[Setting] | None = None,
        may_prune: bool = True,
        pairs: list[tuple[int, int]] | None = None,
        horizon: int | None = None,
        replays: bool = False,
    ) -> None:
        chosen = task, learner, loss, average, settings, view, kernel_config, may_prune, member_settings, pairs, horizon
        self.options = ModelOptions.create(*chosen, replays)
        self.task, self.classes = task, list(classes)
        self.n_features = max(n_features, 2)  # never less: the constant and one more
        self.ensemble = Ensemble(self.options, self.n_features, self.n_outputs, len(self.classes))
        self.aggregation = Aggregation.create(self.options, len(self.members), len(self.classes))
        self.record = FirstPassRecord(self.options, self.n_slots, self.n_outputs)
        self.deployment = self._new_deployment()
        self.history: list[dict[str, Any]] = []
        self.metrics = RunningMetrics()
        self._told: set[str] = set()  # members of whose failure somebody was told
        self._deployed: Snapshot | None = None  # until the model learns on

    def _new_deployment(self) -> Deployment | None:
        return Deployment(self.task, len(self.members), self.options.horizon) if self.options.is_deployed else None

    @property
    def learner(self) -> str:
        """The name of the learner or pool."""
        return self.options.learner

    @property
    def members(self) -> list[Any]:
        """The members, linear ones first."""
        return self.ensemble.members

    @property
    def member_settings(self) -> list[Setting]:
        """The settings of the members."""
        return [member.setting for member in self.members]

    @property
    def kernel_banks(self) -> list[KernelBank]:
        """The banks of kernel members, see :mod:`tunefree.model.kernel_bank`."""
        return self.ensemble.kernel_banks

    @property
    def mixture(self) -> Mixture:
        """The mixture of the members."""
        return self.aggregation.mixture

    @mixture.setter
    def mixture(self, mixture: Mixture) -> None:
        """Take over a mixture that was found by rows held out, which are evidence of how the members predict."""
        self.aggregation.mixture, self.deployment = mixture, None

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
        """Have room for at least so many features."""
        self.n_features = max(self.n_features, n_features)
        self.ensemble.reserve_features(self.n_features)
        self.reserve_slots(self.n_slots)

    def reserve_slots(self, n_slots: int) -> None:
        """Have room for so many statistics, so that none are copied while rows are learned, see `n_slots_after`."""
        self.ensemble.linear.reserve_slots(n_slots)
        self.record.reserve_features(n_slots, self.n_outputs, self.objective)

    def learn(
        self, X: Any, y: Any, weight: np.ndarray, evaluation_weight: np.ndarray | None = None, again: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        """Learn a block of rows in order.

        Parameters
        ----------
        X : block of rows
            The model gets room for its features, if :meth:`reserve_features` was not called before.
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
            of the size of targets.
        """
        evaluation_weight = weight if evaluation_weight is None else evaluation_weight
        if reach(X) > self.n_features:  # compiled passes would write beyond the end of what members know
            self.reserve_features(reach(X))
        self._deployed = None
        codes, new = (np.asarray(y, np.float64), []) if self.task == "regression" else self.codes(y)
        if n_rounds(self.mixture) == 0:
            self._begin(X)
        later = threads.later if n_rows(X) >= threads.FEW else threads.now
        pieces: list[Future[tuple[np.ndarray, np.ndarray]]] = []
        start = 0
        for stop, label in [*new, (n_rows(X), None)]:
            for first, last, is_review in self._pieces(evaluation_weight, start, stop):
                targets = codes[first:last] if self.task == "regression" else self.targets_of(codes[first:last])
                of_piece = targets, weight[first:last], evaluation_weight[first:last]
                targets, own, evaluated = map(np.ascontiguousarray, of_piece)
                rows = LabelledRows(part(X, first, last), targets, own, evaluated)
                pieces.append(self._learn_piece(rows, again, later))
                if is_review:
                    pieces[-1].result()
                    self._judge_copies(later)
                    self._review()
            if label is not None:
                wait(pieces)
                self._judge_copies(later)
                self.add_class(label)
            start = stop
        done = [piece.result() for piece in pieces]
        self._judge_copies(later)
        self._tell_failures()
        row_losses = [losses_of_piece for _, losses_of_piece in done]
        return join_margins([margins for margins, _ in done], self.n_outputs), np.concatenate(
            [np.empty(0), *row_losses]
        )

    def _begin(self, X: Any) -> None:
        """Go on without members that rows like these are not for, as if there had never been any."""
        idle = self.ensemble.idle(X)
        if idle.all():
            raise ModelError(UNSUITED)
        if idle.any():
            self.ensemble.prune(idle)
            self.aggregation = Aggregation.create(self.options, len(self.members), len(self.classes))
            self.deployment = None if self.deployment is None else self._new_deployment()

    def _pieces(self, evaluation_weight: np.ndarray, start: int, stop: int) -> list[tuple[int, int, bool]]:
        """Cut rows into pieces of at most PIECE rows, and at reviews; tells after which pieces these are."""
        if start == stop:
            return []
        rounds = n_rounds(self.mixture) + self.ensemble.n_unevaluated
        ends = pruning.reviews(rounds, evaluation_weight[start:stop]) if len(self.members) > 1 else set()
        reviews = {start + end for end in ends}
        cuts = {start, stop} | reviews
        if self.deployment is not None:
            cuts |= {start + cut for cut in self.deployment.cuts(evaluation_weight[start:stop])}
        edges = [edge for first, last in pairwise(sorted(cuts)) for edge in range(first, last, PIECE)]
        return [(first, last, last in reviews) for first, last in pairwise([*edges, stop])]

    def _learn_piece(
        self, rows: LabelledRows, again: bool, later: Callable[..., Any]
    ) -> Future[tuple[np.ndarray, np.ndarray]]:
        """Let the members learn rows; their predictions are aggregated while the members learn the next rows."""
        if self.deployment is not None:
            self.deployment.meet(self.ensemble, rows)
        predictions = self.ensemble.learn(rows, again)
        self._aggregate_warmup(later)
        of_rows = self.ensemble.take_curves(), self.ensemble.linear.take_met()
        mixed = later(self._aggregate, self.objective, rows, again, predictions, *of_rows)
        if self.deployment is not None:
            self.deployment.follow(self.ensemble, self.objective, rows, mixed, later)
            if self.deployment.is_due(self.ensemble):
                mixed.result()
                self.deployment.capture(self.ensemble, self.mixture)
        return mixed

    def _judge_copies(self, later: Callable[..., Any]) -> None:
        """Have all evidence that there is."""
        if self.deployment is not None:
            self.deployment.judge(self.ensemble, self.objective, later)
            self.deployment.wait()

    def _aggregate(
        self,
        objective: Any,
        rows: LabelledRows,
        again: bool,
        predictions: np.ndarray,
        curves: list[Any],
        met: Met | None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Aggregate the members' predictions, and record what certificates are made of; predictions and losses."""
        mean = None if again or self.task == "classification" else self.record.targets.add(rows.weight, rows.y)
        otherwise = None if mean is None else np.nan_to_num(mean)
        mixed = self.aggregation.update(objective, rows.y, rows.evaluation_weight, predictions, otherwise)
        row_losses = measured(objective, rows.y, mixed)
        if mean is not None:  # rows before the first target count nowhere: the loss of 0 tells nothing of the model
            row_losses[np.isnan(mean)] = np.nan
            rows = rows._replace(evaluation_weight=np.where(np.isnan(mean), 0.0, rows.evaluation_weight))
        if again:
            self.record.is_over = True
        else:
            counted = np.nan_to_num(row_losses, posinf=np.inf)
            self.record.add(objective, rows, mixed, counted, met)
            self.record.add_curves(objective, curves, rows, mixed, counted)
        return mixed, row_losses

    def _aggregate_warmup(self, later: Callable[..., Any]) -> None:
        """Evaluate the members by rows that all of them had kept back, and of which there were no other predictions."""
        warmup = self.ensemble.take_warmup_predictions()
        if warmup is not None:
            later(self.aggregation.update, self.objective, *warmup)

    def freeze(self) -> None:
        """No more rows are expected: members learn those that they kept back."""
        self._deployed = None
        self.ensemble.freeze()
        self._aggregate_warmup(threads.now)

    def begin_pass(self, members: list[int] | None = None) -> None:
        """Rows that were learned come again, for some of the members or all. From here on the mixture is judged by rows
        that are held out, and predicts."""
        self.deployment = self._deployed = None
        self.settle()
        self.ensemble.begin_pass(members)
        self._aggregate_warmup(threads.now)

    def settle(self) -> None:
        """Replay all first meetings, and learn features when they are first met from now on: rows come again."""
        self.record.replay(*self.ensemble.linear.settle(), self.objective)

    def replay(self, X: Any, y: Any, weight: np.ndarray, members: list[int]) -> None:
        """Let some members learn rows again; shares and views stay as they are."""
        self.settle()
        self.ensemble.replay(X, self.targets(y), weight, members)

    def recalibrate(self, X: Any, y: Any, weight: np.ndarray, members: list[int] | None = None) -> None:
        """Fit the log-odds of some kernel members, or all, to the classes of rows that are never learned."""
        if self.task == "classification":
            self.ensemble.recalibrate(X, self.codes(y)[0], weight, members)

    def _review(self) -> None:
        """Write the shares down, and prune, if the members have been evaluated."""
        rounds = n_rounds(self.mixture)
        if rounds == 0:
            return
        self.history.append(summary(self.mixture, self.members))
        if self.options.may_prune:
            shares = predictive_shares(self.mixture)
            failed = has_failed(self.mixture)
            self._tell_failures()
            standing = np.zeros(len(shares)) if self.deployment is None else self.deployment.shares_of_members()
            leaves = pruning.negligible_members(self.ensemble, shares, standing, rounds) | failed
            leaves |= pruning.unsuited_members(self.ensemble, rounds)
            if not leaves.all():
                self.prune(leaves)

    def _tell_failures(self) -> None:
        """Warn once of each member whose predictions were not finite."""
        for member, failed in zip(self.members, has_failed(self.mixture).tolist(), strict=True):
            if failed and member.name not in self._told:
                self._told.add(member.name)
                warnings.warn(
                    f"{member.name} no longer takes part: it predicted what is no finite number", stacklevel=3
                )

    def prune(self, leaves: np.ndarray) -> None:
        """Go on without the members for which ``leaves`` (N,) is True."""
        self._deployed = None
        self.ensemble.prune(leaves)
        self.aggregation.prune(leaves)
        if self.deployment is not None:
            self.deployment.prune(leaves)

    def add_class(self, label: Any) -> None:
        """Know one more class; a third one turns one margin into three, in which the old margin is that of class 1."""
        self.check_room_for_a_class()
        before, self._deployed = self.n_outputs, None
        self.classes.append(label)
        self.ensemble.add_class(self.n_outputs, len(self.classes))
        self.aggregation.add_class(len(self.classes))
        if self.n_outputs > before:
            self.record.add_outputs(self.n_outputs, self.objective)
            if self.deployment is not None:
                self.deployment.add_outputs(self.ensemble)

    def predict(self, X: Any) -> np.ndarray:
        """Margins (n, K), or in regression the predicted targets (n, 1), of a block of rows."""
        edges = [*range(0, n_rows(X), PIECE), n_rows(X)]
        pieces = [self._predict(part(X, first, last)) for first, last in pairwise(edges)]
        return np.concatenate([np.empty((0, self.n_outputs)), *pieces])

    def _predict(self, X: Any) -> np.ndarray:
        deployment = self.deployment
        if deployment is not None and self._deployed is None:
            self._deployed = deployment.snapshot(self.ensemble)
        if deployment is None or self._deployed is None:
            return self.aggregation.predict(self.objective, self.ensemble.predict(X))
        predictions = snapshots.predict([self._deployed], self.ensemble.groups, X)[0]
        shares = deployment.shares(predictive_shares(self.mixture))
        return deployment.temperature * self.aggregation.predict(self.objective, predictions, shares)

    def member_predictions(self, X: Any) -> np.ndarray:
        """What each member predicts of a block of rows, (N, n, K)."""
        return self.ensemble.predict(X)

    def predictor(self) -> Callable[[Any], np.ndarray]:
        """A function from blocks of rows to predictions, for as long as the model does not change."""
        return self.predict

    def log_odds(self, margins: np.ndarray) -> np.ndarray:
        """Logarithms (n, classes) of what is proportional to the probabilities, calibrated where margins are not."""
        return self.aggregation.log_odds(margins)

    def predictive_groups(self) -> list[tuple[MemberGroup, np.ndarray]]:
        """The groups with the weights that predict new rows, and the share of each member in predictions; none where
        predictions are no weighted means of members."""
        if self.options.has_generations:
            return []
        groups, shares = self.ensemble.groups, predictive_shares(self.mixture)
        found = None if self.deployment is None else self.deployment.blended(self.ensemble, shares)
        groups, shares = found or (groups, shares)
        return list(zip(groups, self.ensemble.split(shares), strict=True))

    def shares_by_member(self) -> dict[str, float]:
        """Each member's share in predictions of new rows, by its name."""
        shares = np.concatenate([own for _, own in self.predictive_groups()])
        return {member.name: share for member, share in zip(self.members, shares.tolist(), strict=True)}

    def certificate(self) -> Certificate:
        """What is known of every linear model on the rows of the first pass."""
        return self.record.certificate(self.n_features, self.objective, self.ensemble.linear.meetings)

    def additive_certificate(self) -> Certificate | None:
        """What is known of every additive model of the first knots, on the rows after these; None without curves."""
        return self.record.additive_certificate(self.objective)

    def mean_weights(self) -> np.ndarray:
        """Weights (d, K) of features in units of their size, averaged over the linear members by their shares."""
        if not self.has_weights:
            raise ModelError("kernels, curves, pairs and trees have no weights of features as given")
        linear, shares = self.predictive_groups()[0]
        found = weighted_sum(shares, [weights for weights, _ in linear.reads(self.n_features) or []])
        return self.ensemble.linear.by_feature(found, self.n_features)

    @property
    def has_weights(self) -> bool:
        """Whether some members are linear in the features as they are given, and predictions are means of members."""
        return bool(self.ensemble.linear.members) and not self.options.has_generations

    @property
    def loss_is_log_loss(self) -> bool:
        """Whether the loss of a class is minus the logarithm of its probability."""
        return self.task == "classification" and not self.options.is_calibrated

    @property
    def n_support(self) -> int:
        """Support points of its kernel members."""
        return self.ensemble.n_support

    @property
    def switched(self) -> int | None:
        """Rows learned when kernel members first went on in Fourier features; None if none has."""
        return self.ensemble.switched

    def save_state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays and a header from which :meth:`restore` makes the same model, to the last bit."""
        return saving.save_state(self)

    @classmethod
    def restore(cls, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> Model:
        """The model that :meth:`save_state` wrote down."""
        return saving.restore(cls(**saving.constructor_arguments(header)), arrays, header)

    def __getstate__(self) -> dict[str, Any]:
        return dict(zip(("arrays", "header"), self.save_state(), strict=True))

    def __setstate__(self, saved: dict[str, Any]) -> None:
        self.__dict__.update(type(self).restore(**copy.deepcopy(saved)).__dict__)
