"""Kernel learners of several widths on the same rows: one matrix product serves them all.

A support point could not follow a view or a width that changes, so the first rows fix both. A bank keeps WARMUP_ROWS
rows back. Then it is frozen: the rows whose weight is above 0 fix the view and the kernel, and all rows kept back are
learned in order. Until then the members sleep: they predict NaN. A bank that has to predict earlier does so with a copy
that is frozen on the rows so far. The end of a pass freezes it, too.
"""

from __future__ import annotations

import copy
import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from tunefree.core.errors import ModelError
from tunefree.core.fields import FEATURE, OUTPUT
from tunefree.core.numbers import CEILING
from tunefree.core.part import LEARNED, Part, argument, child, children, number, scratch
from tunefree.core.rows import Block, Rows, n_rows, reach, together
from tunefree.core.schema import FROM_ZERO, SIZE, Number
from tunefree.losses.objectives import Objective, measured
from tunefree.model_files.schemas import MOST_FEATURES
from tunefree.papers.kernel import kernels
from tunefree.papers.kernel.expansion import Expansion
from tunefree.papers.kernel.kernel_certificates import KernelCertificate, certificate_of
from tunefree.papers.kernel.pistol import KernelPiSTOL, factor_of, learning
from tunefree.papers.kernel.points import BLOCK, Points, as_csr, points
from tunefree.pool import calibration
from tunefree.pool.linear_group import Setting
from tunefree.pool.rows import LabelledRows
from tunefree.pool.views import Steady, transform
from tunefree.theory.evidence import Evidence, record_evidence, widened


class KernelMember(Part):
    """One learner of a bank of kernel learners.

    Parameters
    ----------
    setting : Setting
    n_outputs : int
    objective : Objective
    n_classes : int or None
        None where margins are predicted as they are.
    """

    setting = argument()
    objective = child(Objective, LEARNED)
    state = child(KernelPiSTOL, LEARNED, axes={OUTPUT: "K"})
    calibration: calibration.Calibration | None = child(calibration.Calibration, LEARNED, may_be_none=True)
    evidence: Any = child(Evidence, LEARNED, may_be_none=True, axes={FEATURE: 1, OUTPUT: "K"})

    def __init__(self, setting: Setting, n_outputs: int, objective: Objective, n_classes: int | None) -> None:
        self.setting = setting
        settings = {name: value for name, value in setting.settings.items() if name != "width"}
        try:
            self.state = KernelPiSTOL(0, n_outputs, **settings)
        except TypeError:
            raise ModelError(f"{setting.learner} has no setting among {', '.join(settings)}") from None
        self.calibration = None if n_classes is None else calibration.Calibration.create(n_classes)
        self.objective = objective.copied()
        self.evidence = Evidence(1, n_outputs) if objective.task == "classification" else None

    @property
    def name(self) -> str:
        """Learner, parameters and view, in words."""
        return self.setting.name

    @property
    def exponent(self) -> int:
        """log2 of the width: of the gamma of its kernel over that of the bank."""
        return round(np.log2(self.setting.settings.get("width", 1.0)))

    def judged(self, margins: np.ndarray, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Predictions of margins (n, K), each before the calibration learns its row; evidence records the margins."""
        if self.evidence is not None:
            # Of a function in a kernel's space evidence has no sums for features but the constant.
            nowhere = np.zeros(len(y), np.int64)
            no_entries = Rows(nowhere, nowhere, np.zeros(0, np.uint32), np.zeros(0))
            losses = measured(self.objective, y, margins)
            record_evidence(self.evidence, self.objective, no_entries, y, weight, margins, losses)
        if self.calibration is None:
            return margins
        n_outputs = margins.shape[1]
        codes = np.where(y > 0, 1, 0) if n_outputs == 1 else y
        return like_margins(calibration.learn(self.calibration, margins, codes, weight), n_outputs)

    def predict(self, margins: np.ndarray) -> np.ndarray:
        """Predictions of the margins (n, K) of new rows."""
        if self.calibration is None:
            return self.objective.predictions_of(margins)
        return like_margins(calibration.log_odds(self.calibration, margins), margins.shape[1])

    def begin_pass(self) -> None:
        """Average from here on: later functions are better than those of the first pass, whose certificate ends."""
        if self.evidence is not None:
            self.evidence.inner[0] = math.inf
        self.state.average_weight[0] = 0.0

    def add_class(self, objective: Objective, placed: np.ndarray, n_classes: int) -> None:
        """Know one more class; new margins are ``placed`` (new K, old K) times the old ones.

        Where the margin of two classes becomes that of class 1 under a softmax, the gradients of the rows before are
        those of class 0 too, with the other sign, which nothing has kept: no certificate holds any more.
        """
        was_one = placed.shape[1] == 1 < len(placed)
        steepest, rows = self.objective.steepest, self.evidence.rounds[0]
        if was_one and placed[0, 0] == 0.0 and rows > 0.0:
            self.evidence.inner[0] = math.inf
        self.evidence = widened(self.evidence, 1, len(placed), objective)
        self.state = self.state.with_outputs(len(placed), copies=was_one and placed[0, 0] != 0.0)
        self.objective = objective.copied()
        self.objective.steepest = max(objective.steepest, steepest)
        if self.calibration is not None:
            self.calibration = calibration.add_classes(self.calibration, n_classes, int(rows))


def like_margins(log_odds: np.ndarray, n_outputs: int) -> np.ndarray:
    """Log-odds (n, classes) in the shape of margins (n, K)."""
    return log_odds[:, 1:2] - log_odds[:, :1] if n_outputs == 1 else log_odds


WARMUP_ROWS = 1024  # rows after which view and kernel are fixed


class KernelConfig(NamedTuple):
    """The kernel of a bank; widths are settings of its members."""

    name: str = "rbf"  # in :data:`tunefree.papers.kernel.kernels.ALL`
    gamma: float = 0.0  # 0 for the median rule's; the members' widths are multiples of it
    degree: int = 3
    constant: float = 1.0


class WarmupRows(NamedTuple):
    """Labelled rows that are kept back, see :class:`tunefree.pool.rows.LabelledRows`."""

    X: Block
    y: Annotated[np.ndarray, "float64[n]"]
    weight: Annotated[np.ndarray, "float64[n]", FROM_ZERO]
    evaluation_weight: Annotated[np.ndarray, "float64[n]", FROM_ZERO]  # the same, in files


class WarmupPredictions(NamedTuple):
    """Predictions of members for rows that were kept back, each before it was learned."""

    y: np.ndarray  # (n,) targets
    weight: np.ndarray  # (n,)
    predictions: np.ndarray  # (M, n, K)


class KernelBank(Part):
    """Kernel learners on one view of the rows.

    Parameters
    ----------
    settings : list of Setting
        The members, each with its ``width``: a power of two by which the bank's gamma is multiplied; one view for all.
    kernel_config : KernelConfig
    objective : Objective
    n_outputs, n_classes : int
        ``n_classes`` is None where margins are predicted as they are, else they are calibrated to log-odds.
    average : bool
        Whether new rows are predicted with averages of the members' functions, or with the last ones.
    """

    kernel_config, n_outputs, average = argument(), argument(), argument()
    gamma = number(LEARNED, SIZE)  # of width 1, once the bank is frozen
    n_columns: int | None = number(LEARNED, Number(0, MOST_FEATURES, whole=True, may_be_none=True))  # of rows so far
    members: list[KernelMember] = children(KernelMember, LEARNED)
    views: dict[str, Steady] = children(Steady, LEARNED)
    # Views, by name, and expansion are there once the bank is frozen; raw rows have no view.
    waiting: WarmupRows | None = child(WarmupRows, LEARNED, may_be_none=True)
    expansion: Expansion | None = child(
        Expansion, LEARNED, may_be_none=True, make=lambda bank, _: bank._without_points()
    )
    warmup_predictions: WarmupPredictions | None = scratch()  # until they are taken
    _read: Any = scratch()  # the functions that predict, until a member changes

    def __init__(
        self,
        settings: list[Setting],
        kernel_config: KernelConfig,
        objective: Objective,
        n_outputs: int,
        n_classes: int | None,
        average: bool,
    ) -> None:
        self.members = [KernelMember(setting, n_outputs, objective, n_classes) for setting in settings]
        self.n_outputs, self.kernel_config, self.average = n_outputs, kernel_config, average
        self.gamma, self.views = 0.0, {}
        self.n_columns = self.waiting = self.expansion = self.warmup_predictions = self._read = None
        widths = [member.setting.settings.get("width", 1.0) for member in self.members]
        if not all(width > 0.0 and np.frexp(width)[0] == 0.5 for width in widths):
            raise ModelError(f"widths are powers of two, not {', '.join(map(str, widths))}")
        if len(set(widths)) > 1 and not self._kernel(1.0).is_ladder:
            raise ModelError(f"the kernel {self.kernel_config.name} has one width only; give one")

    @property
    def frozen(self) -> bool:
        """Whether view and kernel are fixed."""
        return self.expansion is not None

    @property
    def view_name(self) -> str:
        """The view that the members' settings name."""
        return self.members[0].setting.view

    @property
    def n_support(self) -> int:
        """Number of support points."""
        return 0 if self.expansion is None else self.expansion.n_support

    def check_fit(self, model: Any) -> None:
        """Raise a ModelError if the restored parts do not fit together, or do not fit their model."""
        has_view = self.frozen and self.view_name != "raw"
        _fit(list(self.views) == [self.view_name] * has_view, "a kernel learner has other views than its members")
        if self.waiting is not None:  # they are learned later, with targets as places of outputs
            rows = self.waiting
            _fit(n_rows(rows.X) == len(rows.y) and len(rows.y), "rows that wait have not a target each")
            _fit(reach(rows.X) <= model.n_features, "rows that wait have features that the model does not have")
            if model.task == "classification":
                known = [-1.0, 1.0] if model.n_outputs == 1 else np.arange(model.n_outputs)
                _fit(np.isin(rows.y, known).all(), "rows that wait have classes that are none")
            _fit(not self.frozen and len(rows.y) < WARMUP_ROWS, "more rows wait than there can be")
        if self.expansion is None:
            return
        _fit(np.isfinite(self._factors()).all(), "a kernel learner has no finite factor")

    def certificates(self) -> list[tuple[KernelMember, KernelCertificate]]:
        """Members that have a certificate, and it."""
        gammas = [self.gamma * member.setting.settings.get("width", 1.0) for member in self.members]
        pairs = [(m, certificate_of(m, gamma)) for m, gamma in zip(self.members, gammas, strict=True)]
        return [(member, certificate) for member, certificate in pairs if certificate is not None]

    def learn(self, rows: LabelledRows, predictions: np.ndarray, again: bool = False) -> None:
        """Learn rows in order; writes the prediction of each member before it learned a row, NaN while it sleeps."""
        predictions[:], self._read = np.nan, None
        n_columns = rows.X.numbers.shape[1]
        if self.n_columns not in (None, n_columns):  # which compiled code does not check
            raise ModelError(f"rows of {n_columns} dense columns, where the model has learned {self.n_columns}")
        n = len(rows.y)
        start = 0 if self.frozen else n if again else self._keep_back(rows)
        if start < n:
            self._learn(rows.part(start, n), predictions[:, start:], again)

    def _keep_back(self, rows: LabelledRows) -> int:
        """Keep rows back until there are enough, then freeze; returns how many rows were kept back."""
        stop = min(WARMUP_ROWS - (0 if self.waiting is None else len(self.waiting.y)), len(rows.y))
        kept = rows.part(0, stop)
        self.n_columns = rows.X.numbers.shape[1]
        before = [] if self.waiting is None else [self.waiting]
        blocks, *others = zip(*before, (*kept[:3], kept.weight), strict=True)
        self.waiting = WarmupRows(together(list(blocks)), *(np.concatenate(arrays, dtype=float) for arrays in others))
        if len(self.waiting.y) == WARMUP_ROWS:
            self.freeze()
        return stop

    def _learn(self, rows: LabelledRows, predictions: np.ndarray, again: bool = False) -> None:
        """Learn rows with view and kernel fixed; writes their predictions (M, n, K)."""
        expansion: Any = self.expansion
        seen = self._points(rows.X)
        targets, weights = (np.ascontiguousarray(array, np.float64) for array in (rows.y, rows.weight))
        margins = np.zeros((len(self.members), len(targets), self.n_outputs))
        learn = learning(self.n_outputs == 1)
        start = 0
        while start < len(targets):
            first = expansion.block.points.size
            stop = min(start + BLOCK - first, len(targets))
            here = slice(start, stop)
            known, values = expansion.open(seen, start, stop)
            for m, member in enumerate(self.members):
                row_arguments = values[expansion.steps[m]], known[m], first, targets[here], weights[here]
                written = expansion.block.coefficients[m], expansion.block.lags[m], margins[m, here]
                learn(member.state, *member.objective.arrays, *row_arguments, *written)
            if expansion.block.points.size == BLOCK:
                expansion.close()
            start = stop
        for m, member in enumerate(self.members):
            predictions[m] = member.judged(margins[m], targets, np.zeros(len(targets)) if again else weights)

    def freeze(self) -> None:
        """Fix view and kernel by the rows kept back, if there are any, and learn these.

        ``warmup_predictions`` then has their predictions, for a mixture of members that all slept.
        """
        if self.frozen or self.waiting is None:
            return
        first, self.waiting, self._read = LabelledRows(*self.waiting[:3]), None, None
        if self.view_name != "raw":
            self.views[self.view_name] = Steady.create(first.X.numbers.shape[1])
            transform(self.views[self.view_name], first.X, first.weight)
        self._fix_kernel(first)
        predicted = np.empty((len(self.members), len(first.y), self.n_outputs))
        self._learn(first, predicted)
        self.warmup_predictions = WarmupPredictions(first.y, first.weight, predicted)

    def _fix_kernel(self, first: LabelledRows) -> None:
        """Fix the kernel by the first rows, and the members' first states."""
        usable = np.flatnonzero(first.weight)
        labels = first.y[usable] if self.members[0].objective.task == "classification" else halves(first.y[usable])
        rows = as_csr(self._seen(first.X))[usable]
        has_widths = self._kernel(1.0).distance is not None
        self.gamma = self.kernel_config.gamma or (kernels.median_gamma(rows, labels) if has_widths else 1.0)
        self.expansion = self._without_points()

    def _kernel(self, gamma: float) -> Any:
        return kernels.kernel_of(self.kernel_config.name, gamma, self.kernel_config.degree, self.kernel_config.constant)

    def _without_points(self) -> Expansion:
        """Functions 0, of the kernel of least gamma and of how often gamma is doubled from there for each member."""
        exponents = np.array([member.exponent for member in self.members])
        kernel = self._kernel(self.gamma * 2.0 ** float(exponents.min()))
        return Expansion(kernel, exponents - exponents.min(), self.n_outputs)

    def _points(self, X: Block) -> Points:
        """Rows in the fixed view, as points."""
        return points(self._seen(X), self._kernel(1.0))

    def _seen(self, X: Block) -> Block:
        """Rows in the fixed view."""
        return transform(self.views[self.view_name], X, np.zeros(n_rows(X))) if self.views else X

    def predict(self, X: Any) -> np.ndarray:
        """Predictions of the members for new rows, (M, n, K); NaN where it has had no rows to learn from."""
        if self.frozen:
            expansion: Any = self.expansion
            if self._read is None:
                self._read = self._coefficients()
            margins = np.clip(expansion.values(self._points(X), self._read), -CEILING, CEILING)
            pairs = zip(self.members, margins, strict=True)
            return np.array([member.predict(of_member) for member, of_member in pairs])
        if self.waiting is None:
            return np.full((len(self.members), n_rows(X), self.n_outputs), np.nan)
        if self._read is None:
            read = copy.deepcopy(self)  # frozen on fewer rows than there will be; the bank itself is not
            read.freeze()
            self._read = read
        return self._read.predict(X)

    def reading(self, average: bool) -> KernelBank:
        """The same functions, predicting with averages or as they were last, until the bank learns again."""
        other = copy.copy(self)
        other.average, other._read = average, None
        return other

    def _coefficients(self) -> tuple[np.ndarray, np.ndarray]:
        expansion: Any = self.expansion
        if not self.average:
            return expansion.scaled(self._factors())
        return expansion.averaged(self._clocks(), np.array([member.state.average_weight[0] for member in self.members]))

    def _clocks(self) -> np.ndarray:
        """W (M, K)."""
        return np.array([member.state["average_clocks"] for member in self.members])

    def _factors(self) -> np.ndarray:
        """Factors of the sums of the members, (M, K)."""
        return np.array([[factor_of(member.state, k) for k in range(self.n_outputs)] for member in self.members])

    def begin_pass(self) -> None:
        """Learn the rows kept back, and let averages start again."""
        self._read = None
        self.freeze()
        if self.expansion is not None:
            self.expansion.restart_averages(self._clocks())
        for member in self.members:
            member.begin_pass()

    def add_class(self, objective: Objective, n_outputs: int, n_classes: int) -> None:
        """Know one more class.

        Where one margin becomes one of each class, it was that of class 1; and minus that of class 0, if each class is
        learned against all others.
        """
        placed = np.eye(n_outputs, self.n_outputs)
        if self.n_outputs == 1 < n_outputs:
            placed[:2, 0] = 0.0 if objective.is_softmax else -1.0, 1.0
            if self.waiting is not None:
                self.waiting = self.waiting._replace(y=np.where(self.waiting.y > 0, 1.0, 0.0))
        self.n_outputs, self._read = n_outputs, None
        for member in self.members:
            member.add_class(objective, placed, n_classes)
        if self.expansion is not None:
            self.expansion.remap_outputs(placed)


def halves(targets: np.ndarray) -> np.ndarray:
    """Numbers as two labels: up to their median and above."""
    if not len(targets):
        return targets
    halves = np.sort(targets)[[(len(targets) - 1) // 2, len(targets) // 2]] / 2.0
    return targets > halves.sum()  # the median; a sum of the two halves cannot overflow


def _fit(holds: Any, problem: str) -> None:
    if not holds:
        raise ModelError(problem)
