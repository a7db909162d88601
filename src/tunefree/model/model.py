"""A model while it is learned: its members, how they are mixed, the classes found so far, and its losses.

This is what the command line, the streaming fit and the estimators share. It takes rows and raw targets, finds
new classes at the very row where they first appear, and makes room for new features. A learner that is named is a pool
of one.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from tunefree.core import threads
from tunefree.core.errors import ModelError
from tunefree.core.rows import n_rows, part
from tunefree.losses import loss_of, objectives
from tunefree.losses.objectives import chosen, measured
from tunefree.model import calibration, saving
from tunefree.model.kernel_bank import KernelConfig
from tunefree.model.members import Member, Setting, joined
from tunefree.model.mixture import Mixture, combine, mix, without
from tunefree.model.pool import (
    FOLLOW_THE_LEADER,
    POOLS,
    banks_of,
    check_settings,
    is_kernel,
    settings_of_members,
    waits,
)
from tunefree.model.targets import RunningMetrics, ScoredModel
from tunefree.model.views import create_view, transform
from tunefree.model.warmup import WarmupBank, each_bank, within
from tunefree.theory.evidence import Certificate, Evidence, certify, record_evidence, widened
from tunefree.theory.risk import Progressive

PIECE = 2048  # rows learned at a time by the members of a pool: what they predict is kept until it is mixed
FIRST_REVIEW = 64  # judged rows after which shares are first written down; then at each power of two
FIRST_PRUNING = 2**17  # judged rows after which members may be let go
MOST_NATS = 10.0  # log-losses are cut there where the risk of predictions is bounded
FIRST_PRUNING_OF_KERNELS = 2**12  # their cost grows with the rows
NEGLIGIBLE = 0.01  # mean share below which one is
FEWEST_MEMBERS = 2  # never let go: whatever comes, there is an alternative


@dataclass
class Model(ScoredModel):
    """A model that learns.

    Parameters
    ----------
    task : {"classification", "regression"}
    learner : str, default "pool"
        ``"pool"``, ``"kernel-pool"`` (with kernels of many widths), or a name in ``learners.ALL`` or
        ``kernel.learners.ALL``.
    loss : str, optional
        See :func:`loss_of`. The pool learns classes with the logistic loss only.
    average : bool, default False
        Predict with the average of the iterates instead of the last one; not for the pool.
    settings : dict
        Parameters of the learner (its ``epsilon``, ``a`` or ``b``); none for the pool.
    view : str, default "raw"
        A name in ``views.ALL`` or ``kernel.feature_bank.VIEWS``; the pool's members have views of their own.
    choice : Choice
        The kernel, for learners that have one.
    classes : list
        Labels known beforehand, in the order of the outputs; others are appended as they appear.
    n_features : int
        Features known beforehand, the constant included.

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

    task: str
    learner: str = "pool"
    loss: str | None = None
    average: bool = False
    settings: dict[str, float] = field(default_factory=dict)
    view: str = "raw"
    classes: list[Any] = field(default_factory=list)
    n_features: int = 2  # never less: the constant and one more
    kernel_config: KernelConfig = field(default_factory=KernelConfig)
    metrics: RunningMetrics = field(default_factory=RunningMetrics)
    member_settings: list[Setting] = field(default_factory=list)  # the members that are left
    history: list[dict[str, Any]] = field(default_factory=list)  # rows judged, and each member's share after them
    members: list[Any] = field(default_factory=list)  # linear ones, then those of the banks
    banks: list[WarmupBank] = field(default_factory=list)  # learners with a kernel, those that learn together in one
    mixture: Any = None
    views: dict[str, Any] = field(default_factory=dict)  # those that members look through, once they have seen rows
    evidence: Any = None  # of the first pass, for certificates
    risks: dict[str, Progressive] = field(default_factory=dict)  # of errors and log-losses in the first pass
    calibration: Any = None  # for classes, where margins are no log-odds
    may_prune: bool = True  # whether members may be let go

    def __post_init__(self) -> None:
        check_settings(self.task, self.learner, self.loss, self.average, self.settings, self.view)
        self.n_features = max(self.n_features, 2)
        self.member_settings = self.member_settings or settings_of_members(
            self.learner, self.settings, self.view, self.kernel_config.name
        )
        linear = [setting for setting in self.member_settings if not waits(setting)]
        self.members = [
            Member.create(setting, self.average, self.n_features, self.n_outputs, self._objective(self.loss))
            for setting in linear
        ]
        n_classes = len(self.classes) if self._is_mixed() and self.task == "classification" else None
        of_all = self._objective_of, (self.n_outputs, n_classes), self.average, self._is_mixed()
        self.banks = banks_of(
            [setting for setting in self.member_settings if waits(setting)], self.kernel_config, *of_all
        )
        self.members += [function for bank in self.banks for function in bank.members]
        self.member_settings = [member.setting for member in self.members]
        mixable = 1.0 if self.task == "classification" else math.inf
        self.mixture = Mixture.create(len(self.members), mixable, follows=self.learner == FOLLOW_THE_LEADER)
        self.may_prune = self.may_prune and self.learner != FOLLOW_THE_LEADER
        self.evidence = Evidence.create(self.n_features, self.n_outputs)
        self.risks = self.risks or {"error": Progressive(), "log_loss": Progressive(MOST_NATS)}
        if self._is_calibrated():
            self.calibration = calibration.Calibration.create(len(self.classes))

    def _is_mixed(self) -> bool:
        """Whether predictions are those of a mixture; of classes its members then predict log-odds."""
        return (len(self.member_settings) > 1 or self.learner in POOLS) and self.learner != FOLLOW_THE_LEADER

    def _is_calibrated(self) -> bool:
        """Whether predictions are margins that are no log-odds."""
        are_log_odds = self._is_mixed() or calibration.are_log_odds(self.learner, self.loss)
        return self.task == "classification" and not are_log_odds

    def _objective_of(self, setting: Setting) -> Any:
        """A pool's kernel learners have the loss of their paper, for which few rows become support points."""
        own = self.task == "classification" and self.learner in POOLS and is_kernel(setting.learner)
        return self._objective("smoothed-hinge" if own else self.loss)

    @property
    def linears(self) -> list[Member]:
        """The members that are linear in the features as they are given; they come first."""
        return self.members[: len(self.members) - sum(len(bank.members) for bank in self.banks)]

    @property
    def objective(self) -> Any:
        """From predictions to losses; members differ only in how steep a slope they have met."""
        if self.task == "classification" and self._is_mixed():
            return self._objective("logistic")
        return self.members[0].objective

    def _objective(self, name: str | None, steepest: float = 0.0) -> Any:
        loss = loss_of(self.task, name)
        if self.task == "regression":
            return objectives.regression(loss)
        if self.n_outputs == 1:
            return objectives.Binary(loss, steepest)
        if (name or "logistic") == "logistic":
            return objectives.Multinomial(1.0)
        return objectives.OneAgainstAll(loss, steepest)

    def make_room(self, n_features: int) -> None:
        """Know at least this many features; capacity doubles, so that growing costs little."""
        self.n_features = max(self.n_features, n_features)
        for member in self.linears:
            if self.n_features > member.room:
                member.grow(max(self.n_features, 2 * member.room), self.n_outputs)
        if self.n_features > len(self.evidence.coordinates):
            room = max(self.n_features, 2 * len(self.evidence.coordinates))
            self.evidence = widened(self.evidence, room, self.n_outputs, self.objective)

    def learn(
        self, X: Any, y: Any, weight: np.ndarray, evaluation_weight: np.ndarray | None = None, again: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        """Learn a block of rows in order.

        Parameters
        ----------
        X : block of rows
            Its features are below ``n_features`` (see :meth:`make_room`).
        y : Labels, or (n,) array of numbers in regression
        weight : (n,) array
            Sample weights; a row of weight 0 is predicted but not learned.
        judged : (n,) array, optional
            Weights with which members are judged and probabilities calibrated, ``weight`` if None; 0 for rows that
            were learned before.
        again : bool, default False
            Whether the rows were learned before: they then tell nothing new to views and to certificates.

        Returns
        -------
        predictions : (n, K) array
            Predictions made before each row was learned: margins for classification.
        row_losses : (n,) array
            The loss of each.
        """
        evaluation_weight = weight if evaluation_weight is None else evaluation_weight
        codes, new = (np.asarray(y, np.float64), []) if self.task == "regression" else self.codes(y)
        later = threads.later if n_rows(X) >= threads.FEW else threads.now
        pieces: list[Future[tuple[np.ndarray, np.ndarray]]] = []
        start = 0
        for stop, label in [*new, (n_rows(X), None)]:
            for first, last, review in self._pieces(evaluation_weight, start, stop):
                targets = codes[first:last] if self.task == "regression" else self.targets_of(codes[first:last])
                targets = np.ascontiguousarray(targets)
                own, judging = (
                    np.ascontiguousarray(weight[first:last]),
                    np.ascontiguousarray(evaluation_weight[first:last]),
                )
                pieces.append(self._piece(part(X, first, last), targets, own, judging, again, later))
                if review:
                    pieces[-1].result()
                    self._review()
            if label is not None:
                wait(pieces)
                self.add_class(label)
            start = stop
        done = [piece.result() for piece in pieces]
        row_losses = [losses_of_piece for _, losses_of_piece in done]
        return joined([margins for margins, _ in done], self.n_outputs), np.concatenate([np.empty(0), *row_losses])

    def _pieces(self, evaluation_weight: np.ndarray, start: int, stop: int) -> list[tuple[int, int, bool]]:
        """Cut rows so that what members predict is never much at a time, and where shares are reviewed."""
        if start == stop:
            return []
        before = int(self.mixture.rounds[()])
        counts = before + np.cumsum(evaluation_weight[start:stop] > 0)
        powers = [2**k for k in range(64) if max(before + 1, FIRST_REVIEW) <= 2**k <= counts[-1]]
        reviews = {start + int(np.searchsorted(counts, power)) + 1 for power in powers if len(self.members) > 1}
        cuts = set(range(start, stop, PIECE)) | {stop} | reviews
        return [(first, last, last in reviews) for first, last in pairwise(sorted(cuts))]

    def _piece(
        self,
        X: Any,
        y: np.ndarray,
        weight: np.ndarray,
        evaluation_weight: np.ndarray,
        again: bool,
        later: Callable[..., Any],
    ) -> Future[tuple[np.ndarray, np.ndarray]]:
        """Let the members learn rows; they are mixed and judged while they learn the next ones."""
        seen = self._look(X, np.zeros(len(y)) if again else weight)
        predictions = np.empty((len(self.members), len(y), self.n_outputs))
        threads.each(
            lambda member, written: member.learn(seen[member.setting.view], y, weight, written),
            zip(self.linears, predictions, strict=False),
            len(y),
        )
        each_bank(
            lambda bank, span: bank.learn(X, y, weight, evaluation_weight, predictions[span]), self._spans(), len(y)
        )
        self._mix_warmup_predictions(later)
        return later(self._judge, self.objective, X, y, evaluation_weight, predictions, again)

    def _spans(self) -> list[tuple[WarmupBank, slice]]:
        """The banks, and where their learners stand among the members."""
        edges = list(accumulate((len(bank.members) for bank in self.banks), initial=len(self.linears)))
        return [(bank, slice(*span)) for bank, span in zip(self.banks, pairwise(edges), strict=True)]

    def freeze(self) -> None:
        """No more rows are to be waited for: banks that wait for more learn those they have."""
        for bank in self.banks:
            bank.freeze()
        self._mix_warmup_predictions(threads.now)

    def _mix_warmup_predictions(self, later: Callable[..., Any]) -> None:
        """Judge the learners of banks by the rows that waited for these to settle, if there were no others."""
        warmup_predictions = [bank.warmup_predictions for bank in self.banks if bank.warmup_predictions is not None]
        if warmup_predictions and len(warmup_predictions) == len(self.banks) and not self.linears:
            predictions = np.concatenate([predicted for _, _, predicted in warmup_predictions])
            later(self._mix, self.objective, *warmup_predictions[0][:2], predictions)
        for bank in self.banks:
            bank.warmup_predictions = None

    @property
    def is_sparse(self) -> bool | None:
        """Whether the rows that views and banks have seen were sparse; None where they have seen none."""
        widths = [len(view.centres) for view in self.views.values()] + [bank.n_columns for bank in self.banks]
        return next((width == 0 for width in widths if width is not None), None)

    @property
    def switched(self) -> int | None:
        """Rows learned when kernel learners first went on in features; None if none has."""
        return min((bank.switched for bank in self.banks if bank.switched is not None), default=None)

    def begin_pass(self, members: list[int] | None = None) -> None:
        """Rows that were learned come again, for some of the members or all."""
        for bank, span in self._spans():
            bank.begin_pass(within(span, members))

    def recalibrate(self, X: Any, y: Any, weight: np.ndarray, members: list[int] | None = None) -> None:
        """Let kernel learners find the probabilities of their margins anew, from rows that are never learned."""
        if self.task == "classification":
            codes = self.codes(y)[0]
            each_bank(
                lambda bank, span: bank.recalibrate(X, codes, weight, within(span, members)), self._spans(), len(codes)
            )

    def _judge(
        self, objective: Any, X: Any, y: np.ndarray, evaluation_weight: np.ndarray, predictions: np.ndarray, again: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        """Mix what members predicted, judge them by the targets, and keep what certificates are made of."""
        mixed = self._mix(objective, y, evaluation_weight, predictions)
        row_losses = measured(objective, y, mixed)
        if not again:
            self._witness(objective, X, y, evaluation_weight, mixed, row_losses)
        return mixed, row_losses

    def _mix(self, objective: Any, y: np.ndarray, evaluation_weight: np.ndarray, predictions: np.ndarray) -> np.ndarray:
        """Mix what members predicted, and judge them; rows of which all slept teach calibration nothing."""
        told = (
            np.where(np.isnan(predictions).all(axis=(0, 2)), 0.0, evaluation_weight)
            if self.banks
            else evaluation_weight
        )
        mixed = np.nan_to_num(predictions[0], copy=False) if len(predictions) == 1 else np.empty_like(predictions[0])
        if len(predictions) > 1:
            mix(self.mixture, objective, y, evaluation_weight, predictions, mixed)
        if self.calibration is not None:
            calibration.learn(self.calibration, mixed, y > 0 if self.n_outputs == 1 else y, told)
        return mixed

    def _witness(
        self, objective: Any, X: Any, y: np.ndarray, weight: np.ndarray, predictions: np.ndarray, row_losses: np.ndarray
    ) -> None:
        """Gather what certificates are made of."""
        record_evidence(self.evidence, objective, X, y, weight, predictions, row_losses)
        if self.task == "classification":
            codes = np.where(y > 0, 1, 0) if self.n_outputs == 1 else y
            kept = weight > 0
            self.risks["error"].add(weight[kept], (chosen(predictions) != codes)[kept])
            if self.calibration is None:
                self.risks["log_loss"].add(weight[kept], row_losses[kept])

    def certificate(self) -> Certificate:
        """What is known of every linear model on the rows of the first pass."""
        known = self.evidence._replace(
            features=self.evidence.features[: self.n_features], coordinates=self.evidence.coordinates[: self.n_features]
        )
        return certify(known, self.objective)

    def _look(self, X: Any, learns: np.ndarray) -> dict[str, Any]:
        """The rows as each view shows them; the views learn from rows of weights above 0."""
        seen = {"raw": X}
        for name in {member.setting.view for member in self.linears} - {"raw"}:
            if name not in self.views:
                self.views[name] = create_view(name, X)
            seen[name] = transform(self.views[name], X, learns)
        return seen

    def _review(self) -> None:
        """At each power of two rows: write shares down, and let members go that have not earned any for long."""
        rounds = int(self.mixture.rounds[()])
        means = self.mixture.means
        shares = {member.name: float(share) for member, share in zip(self.members, means, strict=True)}
        self.history.append({"rows": rounds, "shares": shares})
        stays = (means >= NEGLIGIBLE) | (means >= np.sort(means)[-min(FEWEST_MEMBERS, len(means))])
        for bank, span in self._spans():
            stays[span] |= bank.next_widths(means[span]) & stays[span].any()
        first = np.where(
            [is_kernel(setting.learner) for setting in self.member_settings], FIRST_PRUNING_OF_KERNELS, FIRST_PRUNING
        )
        if self.may_prune:
            self.prune(~stays & (rounds >= first))

    def prune(self, leaves: np.ndarray) -> None:
        """Go on without some of the members."""
        if not leaves.any():
            return
        linear = [member for member, gone in zip(self.linears, leaves, strict=False) if not gone]
        spans, self.banks = self._spans(), []
        for bank, span in spans:
            if not leaves[span].all():
                bank.keep(np.flatnonzero(~leaves[span]).tolist())
                self.banks.append(bank)
        self.members = [*linear, *(function for bank in self.banks for function in bank.members)]
        self.member_settings = [member.setting for member in self.members]
        self.mixture = without(self.mixture, ~leaves)

    def add_class(self, label: Any) -> None:
        """A class is new: a third one turns one margin into three, in which the old margin is that of class 1."""
        self.check_room_for_a_class()
        before = self.n_outputs
        self.classes.append(label)
        for bank in self.banks:
            bank.grow(self._objective_of(bank.members[0].setting), before, self.n_outputs, len(self.classes))
        if self.calibration is not None:
            self.calibration = calibration.grown(self.calibration, len(self.classes))
        if self.n_outputs > before:
            for member in self.linears:
                member.grow(member.room, self.n_outputs, first=1 if before == 1 else 0)
                member.objective = self._objective(self.loss, getattr(member.objective, "steepest", 0.0))
            self.evidence = widened(self.evidence, len(self.evidence.coordinates), self.n_outputs, self.objective)

    def linear(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """For each member its weights (d, K) relative to the units (d,) of the features as it sees them."""
        return [member.linear(self.n_features, self.n_outputs) for member in self.linears]

    def mean_weights(self) -> np.ndarray:
        """Weights (d, K) of features in units of their size, averaged over the linear members by their shares."""
        weights = [weights for weights, _ in self.linear()]
        if not weights:
            raise ModelError("learners with a kernel have no weights of features")
        return np.tensordot(self.mixture.means[: len(weights)], np.array(weights), axes=1)

    def predict(self, X: Any, linear: list[tuple[np.ndarray, np.ndarray]] | None = None) -> np.ndarray:
        """Margins (n, K), or in regression the predicted targets (n, 1), of a block of rows."""
        linear = self.linear() if linear is None else linear
        edges = [*range(0, n_rows(X), PIECE), n_rows(X)]
        pieces = [self._predict_piece(part(X, first, last), linear) for first, last in pairwise(edges)]
        return np.concatenate([np.empty((0, self.n_outputs)), *pieces])

    def _predict_piece(self, X: Any, linear: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
        predictions = self.member_predictions(X, linear)
        if len(self.members) == 1:
            return np.nan_to_num(predictions[0], copy=False)
        mixed = np.empty_like(predictions[0])
        combine(self.mixture, self.objective, predictions, mixed)
        return mixed

    def member_predictions(self, X: Any, linear: list[tuple[np.ndarray, np.ndarray]] | None = None) -> np.ndarray:
        """What each member predicts, (N, n, K)."""
        linear, seen = self.linear() if linear is None else linear, self._look(X, np.zeros(n_rows(X)))
        predictions = np.empty((len(self.members), n_rows(X), self.n_outputs))

        def of_member(member: Member, weights: Any, written: np.ndarray) -> None:
            written[:] = member.predict(seen[member.setting.view], weights)

        threads.each(of_member, zip(self.linears, linear, predictions, strict=False), n_rows(X))
        each_bank(lambda bank, span: np.copyto(predictions[span], bank.predict(X)), self._spans(), n_rows(X))
        return predictions

    def replay(self, X: Any, y: Any, weight: np.ndarray, members: list[int]) -> None:
        """Let some members learn rows again, by which they are not judged; views stay as they are."""
        targets, seen = self.targets(y), self._look(X, np.zeros(n_rows(X)))
        linear = [self.linears[m] for m in members if m < len(self.linears)]
        scratch = np.empty((max(len(self.members), 1), len(targets), self.n_outputs))
        threads.each(
            lambda member, written: member.learn(seen[member.setting.view], targets, weight, written),
            zip(linear, scratch, strict=False),
            len(targets),
        )

        def of_bank(bank: WarmupBank, span: slice) -> None:
            if busy := within(span, members):
                bank.learn(X, targets, weight, np.zeros(len(targets)), scratch[span], busy)

        each_bank(of_bank, self._spans(), len(targets))

    def log_odds(self, margins: np.ndarray) -> np.ndarray:
        """Logarithms (n, classes) of what is proportional to the probabilities, calibrated where margins are not."""
        return calibration.log_odds(self.calibration, margins)

    def predictor(self) -> Callable[[Any], np.ndarray]:
        """A function from blocks of rows to what the model, as it is now, predicts of them."""
        return partial(self.predict, linear=self.linear())

    @property
    def has_weights(self) -> bool:
        """Whether features as they are given have weights."""
        return bool(self.linears)

    @property
    def loss_is_log_loss(self) -> bool:
        """Whether what classes suffer is minus the logarithm of their probability."""
        return self.task == "classification" and self.calibration is None

    @property
    def n_support(self) -> int:
        """Rows that its kernel learners are made of."""
        return sum(bank.n_support for bank in self.banks)

    def save_state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays and a header from which :meth:`restore` makes the same model, to the last bit."""
        return saving.flat(self, _PLAIN)

    @classmethod
    def restore(cls, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> Model:
        """The model that :meth:`save_state` wrote down."""
        return saving.fill(cls(**saving.constructor_arguments(header, _PLAIN)), arrays, header)

    def __getstate__(self) -> dict[str, Any]:
        return dict(zip(("arrays", "header"), self.save_state(), strict=True))

    def __setstate__(self, saved: dict[str, Any]) -> None:
        self.__dict__.update(Model.restore(**copy.deepcopy(saved)).__dict__)


_PLAIN = ("task", "learner", "loss", "average", "settings", "view", "classes", "n_features", "history", "may_prune")
