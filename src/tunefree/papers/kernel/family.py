"""Models of kernel learners: one learner alone, or several widths, mixed by the rule of the pool."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tunefree.core.errors import ModelError
from tunefree.core.part import LEARNED, argument, child, scratch
from tunefree.core.schema import FINITE, SIZE, Number, Text
from tunefree.losses import loss_of
from tunefree.losses.objectives import chosen, measured
from tunefree.mixing.mixture import Mixture
from tunefree.papers.kernel.kernel_bank import KernelBank, KernelConfig
from tunefree.papers.kernel.kernels import check_kernel, kernel_of
from tunefree.pool.contexts import RelativeWeights
from tunefree.pool.linear_group import LinearGroup, Setting
from tunefree.pool.options import ModelOptions, objective_of_mixture
from tunefree.pool.rows import Family, LabelledRows, LateLosses
from tunefree.pool.single import Single, finite


def _blank_mixture(kernels: Any, header: Any) -> Mixture:
    if kernels.mixture is None:
        raise ModelError("there is a mixture of one learner")
    mixture: Mixture = kernels.mixture
    return mixture


class Kernels(Single):
    """Kernel learners of a model.

    Parameters
    ----------
    options : ModelOptions
    linear : LinearGroup
        Without members; certificates of linear models take rows from it.
    bank : KernelBank
    n_classes : int
    """

    options = argument()
    bank: Any = child(KernelBank, LEARNED)
    mixture: Mixture | None = child(Mixture, LEARNED, may_be_none=True, make=_blank_mixture)
    relative = child(RelativeWeights, LEARNED)
    _late: LateLosses | None = scratch()

    def __init__(self, options: ModelOptions, linear: LinearGroup, bank: KernelBank, n_classes: int) -> None:
        super().__init__(linear, n_classes if options.is_calibrated else None)
        self.options, self.bank, self.relative, self._late = options, bank, RelativeWeights(), None
        is_numeric, self.mixture = options.task == "regression", None
        if options.is_mixed:
            loss = loss_of(options.task, options.loss) if is_numeric else None
            self.mixture = Mixture(len(bank.members), 0 if is_numeric else max(n_classes, 2), loss)

    @property
    def mixtures(self) -> list[Mixture]:
        """The mixture, if there is one."""
        return [] if self.mixture is None else [self.mixture]

    def learn(self, rows: LabelledRows, again: bool = False) -> Iterator[np.ndarray]:
        self._late = None
        for some in rows.pieces():
            self.linear.learn(some, again)
            has_one_margin = self.linear.has_classes and self.linear.n_outputs == 1
            y = np.where(some.y == 1.0, 1.0, -1.0) if has_one_margin else np.asarray(some.y, np.float64)
            predictions = np.empty((len(self.bank.members), len(some.y), self.linear.n_outputs))
            self.bank.learn(some._replace(y=y), predictions, again)
            self._judge_warmup()
            yield self._mixed(predictions, some.y, np.zeros(len(some.y)) if again else some.weight)

    def _mixed(self, predictions: np.ndarray, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Predictions (n, K) by those of members (M, n, K), which are then learned; NaN where all sleep."""
        asleep = np.isnan(predictions).all(axis=(0, 2))
        weight = np.where(asleep, 0.0, weight)
        if self.mixture is None:
            mixed = self._calibrated(predictions[0], y, weight)
        else:
            relative = self.relative.of(weight)
            learned = self.mixture.learn(self._as_mixed(predictions), np.asarray(y, np.float64), relative)
            mixed = self._as_margins(learned)
        return np.where(asleep[:, None], np.nan, mixed)

    def predict(self, X: Any) -> np.ndarray:
        predictions = self.bank.predict(X)
        if self.mixture is None:
            return finite(predictions[0])
        return self._as_margins(self.mixture.predict(self._as_mixed(predictions)))

    def _as_mixed(self, predictions: np.ndarray) -> np.ndarray:
        """Log-probabilities or numbers (n, M, C); NaN where a member sleeps, or predicts no finite number."""
        known = np.isfinite(predictions).all(axis=2, keepdims=True)
        rows = np.where(known, predictions, np.nan).transpose(1, 0, 2)
        if not self.linear.has_classes:
            return rows
        odds = np.concatenate([np.zeros_like(rows), rows], axis=2) if rows.shape[2] == 1 else rows
        with np.errstate(invalid="ignore"):
            return odds - np.logaddexp.reduce(odds, axis=2, keepdims=True)

    def _as_margins(self, mixed: np.ndarray) -> np.ndarray:
        """Margins (n, K) of log-probabilities: one of up to two classes."""
        is_of_two = self.linear.has_classes and self.linear.n_outputs == 1
        return mixed[:, 1:] - mixed[:, :1] if is_of_two else mixed

    def _judge_warmup(self) -> None:
        """Judge the members by rows that all of them had kept back, and of which there were no other predictions."""
        warmup, self.bank.warmup_predictions = self.bank.warmup_predictions, None
        if warmup is None:
            return
        n_outputs, weight = self.linear.n_outputs, warmup.weight
        codes = np.where(warmup.y > 0, 1.0, 0.0) if self.linear.has_classes and n_outputs == 1 else warmup.y
        mixed = np.nan_to_num(self._mixed(warmup.predictions, codes, weight))
        kept = weight > 0.0
        y, mixed = warmup.y[kept], np.ascontiguousarray(mixed[kept])
        objective = self.bank.members[0].objective
        if self.linear.has_classes and self.mixture is not None:
            objective = objective_of_mixture(n_outputs)
        row_losses = measured(objective, y, mixed)
        if self.linear.has_classes:
            errors = codes[kept] != chosen(mixed)
        else:
            with np.errstate(over="ignore"):
                row_losses[:1], errors = np.nan, np.abs(y - objective.loss.response(mixed[:, 0]))
        self._late = LateLosses(weight[kept], row_losses, errors.astype(np.float64))

    def take_late_losses(self) -> LateLosses | None:
        """Losses of rows that were kept back, handed out once they are learned; each was predicted before."""
        taken, self._late = self._late, None
        return taken

    def shares(self) -> dict[str, float]:
        means = [1.0] if self.mixture is None else self.mixture.base.means.tolist()
        return dict(zip((member.name for member in self.bank.members), means, strict=True))

    def add_class(self, objective: Any, n_outputs: int, n_classes: int) -> None:
        super().add_class(objective, n_outputs, n_classes)
        self.bank.add_class(objective, n_outputs, n_classes)
        if self.mixture is not None and n_classes > 2:
            self.mixture.add_class()

    def begin_pass(self) -> None:
        self.bank.begin_pass()
        self._judge_warmup()

    def finish(self) -> None:
        self.bank.freeze()
        self._judge_warmup()

    def check(self) -> None:
        """Raise a ModelError unless there is a mixture where there are several learners."""
        if (self.mixture is None) != (len(self.bank.members) == 1):
            raise ModelError("there are several learners and no mixture of them")


WIDTHS = tuple(2.0**exponent for exponent in range(-2, 7))  # times the median rule's gamma

CONFIG = {
    "name": Text(),
    "gamma": SIZE,
    "degree": Number(1, 100, whole=True),
    "constant": FINITE,
}


def config_of(plan: Any) -> KernelConfig:
    """The kernel that a plan names, or the usual one."""
    if plan is None:
        return KernelConfig()
    if plan.kernel is not None:
        check_kernel(plan.kernel)
    return KernelConfig(plan.kernel or "rbf")


def settings_of_members(
    learner: str, settings: dict[str, float], view: str, config: KernelConfig | None = None
) -> list[Setting]:
    """The members of a model whose learner has this name: one for each width, if none is chosen.

    Examples
    --------
    >>> len(settings_of_members("kernel-pistol", {}, "steady"))
    9
    """
    if "width" in settings:
        return [Setting(learner, settings, view)]
    widths = WIDTHS if kernel_of((config or KernelConfig()).name, 1.0).is_ladder else (1.0,)
    return [Setting(learner, {**settings, "width": width}, view) for width in widths]


def predictor(options: ModelOptions, linear: LinearGroup, n_outputs: int, n_classes: int) -> Kernels:
    """All members in a bank; in a mixture they predict with averages, and of classes they predict log-odds."""
    classes = n_classes if options.is_mixed and options.task == "classification" else None
    members, objective, averages = list(options.member_settings), options.objective(n_outputs), options.average
    bank = KernelBank(members, options.config, objective, n_outputs, classes, averages or options.is_mixed)
    return Kernels(options, linear, bank, n_classes)


FAMILY = Family(
    view="steady",  # kernels compare features, so these have to be of like size
    config_of=config_of,
    restored_config=lambda saved: KernelConfig(**saved),
    config_header=CONFIG,
    settings_of_members=settings_of_members,
    predictor=predictor,
    predictor_class=Kernels,
)
