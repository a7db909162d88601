"""Kernel learners that learn together, of several widths on the same rows: one matrix product serves them all.

View and widths are settled on the first rows and then stand still (:mod:`tunefree.model.warmup`): a support point
could not follow them.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tunefree.core.errors import ModelError
from tunefree.core.numbers import CEILING
from tunefree.core.states import filled, flatten, under
from tunefree.kernel import contract, feature_expansion, kernels
from tunefree.kernel.backends import at_hand, backend_of
from tunefree.kernel.expansion import Expansion
from tunefree.kernel.feature_expansion import FeatureExpansion
from tunefree.kernel.learners import ALL
from tunefree.kernel.points import BLOCK, as_matrix, points
from tunefree.losses.objectives import OneAgainstAll, predictions_of
from tunefree.model import calibration, starting
from tunefree.model.members import Setting, name_of
from tunefree.model.warmup import UNLIKE, WarmupBank, WarmupRows


class KernelConfig(NamedTuple):
    """The kernel of a bank; widths are settings of its learners."""

    name: Any = "rbf"  # as scikit-learn calls it, or a function of two arrays
    gamma: float = 0.0  # 0 for the median rule's; learners' widths are multiples of it
    degree: int = 3
    constant: float = 1.0
    double: bool = False  # compute in double precision
    device: str | None = None  # where PyTorch computes ("cuda", "cpu"); None for compiled code on the processor
    max_support: int | None = None  # support points beyond which functions go on in random Fourier features

    @classmethod
    def restored(cls, saved: dict[str, Any]) -> KernelConfig:
        """The choice that was saved, on a machine that may have other devices."""
        return cls(**{**saved, "device": at_hand(saved.get("device"))})


@dataclass
class KernelMember:
    """One learner of a bank."""

    setting: Setting
    state: Any
    average: contract.Average
    record: contract.Record
    objective: Any
    calibration: Any  # None where margins are predicted as they are

    @classmethod
    def create(cls, setting: Setting, n_outputs: int, objective: Any, n_classes: int | None) -> KernelMember:
        """A learner that has seen nothing; ``n_classes`` is None where margins are predicted as they are."""
        own = {name: value for name, value in setting.settings.items() if name not in ("width", "growth")}
        try:
            state = ALL[setting.learner].create(n_outputs, **own)
        except TypeError:
            raise ModelError(f"{setting.learner} has no setting among {', '.join(own)}") from None
        average = contract.Average.create(n_outputs, setting.settings.get("growth", 0.0))
        made = calibration.Calibration.create(n_classes) if n_classes is not None else None
        heeded = contract.heeded(state, objective)
        return cls(setting, state, average, contract.Record.create(n_outputs), heeded, made)

    @property
    def name(self) -> str:
        """Learner, parameters and view, in words."""
        return name_of(self.setting)

    def flat(self) -> tuple[dict[str, np.ndarray], dict[str, float]]:
        """Arrays and scalars of all that it knows."""
        arrays: dict[str, np.ndarray] = {}
        scalars: dict[str, float] = {}
        for name in ("state", "average", "record", "calibration"):
            if getattr(self, name) is not None:
                more = flatten(name, getattr(self, name), 2**31)
                arrays, scalars = arrays | more[0], scalars | more[1]
        return arrays, scalars

    def fill(self, arrays: dict[str, np.ndarray], saved: dict[str, Any]) -> None:
        """Know what was written down."""
        if "calibration.slopes" in arrays:
            self.calibration = calibration.Scaling(arrays["calibration.slopes"], arrays["calibration.offsets"])
        for name in ("state", "average", "record", "calibration"):
            if getattr(self, name) is not None:
                setattr(self, name, filled(name, getattr(self, name), arrays, saved["scalars"]))
        self.objective = self.objective._replace(**saved["objective"])

    @property
    def exponent(self) -> int:
        """log2 of the width's gamma over that of the bank."""
        return round(np.log2(self.setting.settings.get("width", 1.0)))


class Bank(WarmupBank):
    """Kernel learners on one view of the rows.

    Parameters
    ----------
    settings : list of Setting
        Learners, each with its ``width``: a power of two by which the bank's gamma is multiplied; one view for all.
    choice : Choice
    objective : objective
    n_outputs, n_classes : int
        ``n_classes`` is None where margins are predicted as they are, else they are calibrated to log-odds.
    average : bool
        Whether new rows are predicted with averages of the learners' functions, or with the last ones.
    """

    def __init__(
        self,
        settings: list[Setting],
        kernel_config: KernelConfig,
        objective: Any,
        n_outputs: int,
        n_classes: int | None,
        average: bool,
    ) -> None:
        super().__init__([KernelMember.create(own, n_outputs, objective, n_classes) for own in settings], n_outputs)
        self.frozen_view = self.view_name
        self.kernel_config, self.average = kernel_config, average
        backend_of(kernel_config.device)  # what is wrong with it shows now, not after the first rows
        self.expansion: Any = None  # once it is settled
        self.max_support = kernel_config.max_support
        self.rows = 0  # learned, those learned again included
        self.switched: int | None = None  # how many had been learned when functions went on in Fourier features
        self._check()

    def _check(self) -> None:
        widths = [function.setting.settings.get("width", 1.0) for function in self.members]
        if not all(width > 0.0 and np.frexp(width)[0] == 0.5 for width in widths):
            raise ModelError(f"widths are powers of two, not {', '.join(map(str, widths))}")
        if self.kernel_config.name == "precomputed" and self.view_name != "raw":
            raise ModelError(f"a matrix of kernel values is seen as it is; choose the view raw, not {self.view_name}")
        if len(set(widths)) > 1 and not kernels.is_ladder(self._kernel(1.0)):
            raise ModelError(f"the kernel {self.kernel_config.name} has one width only; give one")
        if self.max_support is not None:
            feature_expansion.check(self._kernel(1.0), self.max_support)

    @property
    def frozen(self) -> bool:
        return self.expansion is not None

    @property
    def n_support(self) -> int:
        """Rows that the functions are made of."""
        return 0 if self.expansion is None else self.expansion.n_support

    def learn_frozen(
        self,
        X: Any,
        y: np.ndarray,
        weight: np.ndarray,
        evaluation_weight: np.ndarray,
        predictions: np.ndarray,
        busy: list[int],
    ) -> None:
        """Learn rows, block by block."""
        expansion, rows = self.expansion, self._points(X)
        margins = np.zeros((len(self.members), len(y), self.n_outputs))
        start = 0
        while start < len(y):
            first = expansion.filled
            stop = min(start + BLOCK - first, len(y))
            here = slice(start, stop)
            known, values = expansion.open(rows, np.arange(start, stop), busy)
            for m in busy:
                own = self.members[m]
                own.objective = contract.learn_rows(
                    own.state, own.average, own.record, own.objective, values[expansion.steps[m]], known[:, m], first,
                    y[here], weight[here], evaluation_weight[here],
                    expansion.open_coefficients[m], expansion.open_lags[m], margins[m, here],
                )  # fmt: skip
            self.rows += stop - start
            if expansion.filled == BLOCK:
                expansion = self._closed(busy)
            start = stop
        for m in busy:
            predictions[m] = self._calibrated(self.members[m], margins[m], y, evaluation_weight)

    def _closed(self, busy: list[int]) -> Any:
        """Close the open block; functions of too many points go on in Fourier features."""
        self.expansion.close()
        self._take_factors(busy)
        most = self.max_support
        if most is not None and self.switched is None and self.expansion.n > most:
            n_features = feature_expansion.affordable(most)
            self.expansion, self.switched = FeatureExpansion.of(self.expansion, n_features), self.rows
        return self.expansion

    def _take_factors(self, busy: list[int]) -> None:
        """Take factors that have become small into the coefficients, before their numbers leave the range."""
        for m in busy:
            own = self.members[m]
            factors = contract.give_up(own.state)
            if factors is not None:
                self.expansion.fold(m, factors, own.average.clocks)
                own.average.clocks[:] = 0.0

    def _calibrated(
        self, own: KernelMember, margins: np.ndarray, y: np.ndarray, evaluation_weight: np.ndarray
    ) -> np.ndarray:
        """Margins as they are predicted, from which rows that count teach calibration."""
        if own.calibration is None:
            return margins
        codes = np.where(y > 0, 1, 0) if self.n_outputs == 1 else y
        return like_margins(calibration.learn(own.calibration, margins, codes, evaluation_weight), self.n_outputs)

    def _freeze(self, first: WarmupRows, usable: np.ndarray, labels: np.ndarray) -> None:
        rows = as_matrix(points(self._shown(first.X), self._kernel(1.0), np.float64))[usable]
        has_width = kernels.distance_of(self._kernel(1.0)) is not None
        self.gamma = self.kernel_config.gamma or (kernels.median_gamma(rows, labels) if has_width else 1.0)
        kernel, steps = self._ladder()
        seen = self._points(first.X)
        self.expansion = Expansion(kernel, steps, self.n_outputs, seen, self.kernel_config.device)
        starting.initialise_members(self, first, seen)

    def _kernel(self, gamma: float) -> Any:
        return kernels.kernel_of(self.kernel_config.name, gamma, self.kernel_config.degree, self.kernel_config.constant)

    def _ladder(self) -> tuple[Any, np.ndarray]:
        """The kernel of least gamma, and the step of each learner on the ladder of widths."""
        exponents = np.array([function.exponent for function in self.members])
        return self._kernel(self.gamma * 2.0 ** float(exponents.min())), exponents - exponents.min()

    def _points(self, X: Any) -> Any:
        found = points(self._shown(X), self._kernel(1.0), np.float64 if self.kernel_config.double else np.float32)
        if self.expansion is not None and type(found) is not type(self.expansion.block):
            raise ModelError(UNLIKE)
        return found

    def _predict(self, X: Any) -> np.ndarray:
        margins = self.margins(X)
        return np.array([self._answer(own, found) for own, found in zip(self.members, margins, strict=True)])

    def margins(self, X: Any) -> np.ndarray:
        """Values (M, n, K) of the functions at new rows."""
        if self._read is None:
            self._read = self._coefficients()
        return np.clip(self.expansion.values(self._points(X), self._read), -CEILING, CEILING)

    def reading(self, average: bool) -> Bank:
        """The same functions, to be predicted with as averages or as they were last, until the bank learns again."""
        other = copy.copy(self)
        other.average, other._read = average, None
        return other

    def _coefficients(self) -> tuple[np.ndarray, np.ndarray]:
        outputs = range(self.n_outputs)
        factors = np.array([[contract.factor(f.state, k) for k in outputs] for f in self.members])
        if not self.average:
            return self.expansion.scaled(factors)
        to_come = np.array([contract.share_to_come(function.state) for function in self.members])
        clocks = np.array([function.average.clocks for function in self.members]) + factors * to_come[:, None]
        shares = np.array([function.average.shares[()] for function in self.members]) + to_come
        return self.expansion.averaged(np.minimum(clocks, CEILING), np.minimum(shares, CEILING))

    def _answer(self, own: KernelMember, margins: np.ndarray) -> np.ndarray:
        """Margins as they are predicted."""
        if own.calibration is not None:
            return like_margins(calibration.log_odds(own.calibration, margins), self.n_outputs)
        return predictions_of(own.objective, margins)

    def begin_pass(self, busy: list[int]) -> None:
        """Let averages of some learners begin anew: those of a later pass are of better functions."""
        super().begin_pass(busy)
        own = [self.members[m] for m in busy]
        if self.frozen:
            self.expansion.restart_averages(busy, np.array([function.average.clocks for function in own]))
        for function in own:
            if hasattr(function.state, "norms") and (function.record.norms < 0.0).any():
                function.record.norms[:] = function.state.norms
            function.average.shares[()] = function.average.rounds[()] = 0.0

    def recalibrate(self, X: Any, codes: np.ndarray, weight: np.ndarray, chosen: list[int]) -> None:
        if not chosen:
            return
        self.freeze()
        if not self.frozen:
            return
        margins = self.margins(X)
        for m in chosen:
            own = self.members[m]
            if own.calibration is not None:
                own.calibration = calibration.fitted(margins[m], codes, weight, own.calibration.n_classes)

    def next_widths(self, shares: np.ndarray) -> np.ndarray:
        """Whether a learner's kernel is the next narrower one to the leader's, which more rows may need."""
        exponents = np.array([function.exponent for function in self.members])
        return exponents == exponents[np.argmax(shares)] + 1

    def move(self, device: str | None) -> None:
        """Compute elsewhere from now on; functions stay what they are."""
        self.kernel_config = self.kernel_config._replace(device=device)
        if self.expansion is not None:
            self.expansion.move(device)

    def keep(self, stays: list[int]) -> None:
        super().keep(stays)
        if self.expansion is not None:
            self.expansion.keep(stays, *self._ladder())

    def grow(self, objective: Any, before: int, n_outputs: int, n_classes: int) -> None:
        """Know one more class.

        Where one margin becomes one of each class, it was that of class 1; and minus that of class 0, if each class is
        learned against all others.
        """
        super().grow(objective, before, n_outputs, n_classes)
        placed = np.eye(n_outputs, before)
        if before == 1 < n_outputs:
            placed[:2, 0] = -1.0 if isinstance(objective, OneAgainstAll) else 0.0, 1.0
        for function in self.members:
            known = function.state, function.average, function.record
            function.state, function.average, function.record = (spread(state, np.abs(placed)) for state in known)
            heeded = contract.heeded(function.state, objective)
            function.objective = heeded._replace(steepest=max(heeded.steepest, function.objective.steepest))
            if function.calibration is not None:
                function.calibration = calibration.grown(function.calibration, n_classes)
        if self.expansion is not None:
            self.expansion.remap_outputs(placed)

    def save_state(self, n_features: int) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        arrays, header = super().save_state(n_features)
        header |= {"members": [], "rows": self.rows, "switched": self.switched}
        for m, function in enumerate(self.members):
            own, scalars = function.flat()
            arrays |= {f"{m}.{name}": array for name, array in own.items()}
            objective = {name: value for name, value in function.objective._asdict().items() if name != "loss"}
            header["members"].append({"scalars": scalars, "objective": objective})
        if self.expansion is not None:
            arrays |= {f"expansion.{name}": array for name, array in self.expansion.save_state().items()}
        return arrays, header

    def restore(self, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        super().restore(arrays, header)
        for m, (function, saved) in enumerate(zip(self.members, header["members"], strict=True)):
            function.fill(under(f"{m}.", arrays), saved)
        self.rows, self.switched = header["rows"], header["switched"]
        if header["frozen"]:
            kind = Expansion if self.switched is None else FeatureExpansion
            self.expansion = kind.restore(*self._ladder(), under("expansion.", arrays), self.kernel_config.device)


def spread(state: Any, placed: np.ndarray) -> Any:
    """The state with what is known of each output moved to the outputs that are made of it."""
    return type(state)(*(placed @ value if getattr(value, "ndim", 0) == 1 else value for value in state))


def like_margins(log_odds: np.ndarray, n_outputs: int) -> np.ndarray:
    """Log-odds (n, classes) in the shape of margins (n, K)."""
    return log_odds[:, 1:2] - log_odds[:, :1] if n_outputs == 1 else log_odds
