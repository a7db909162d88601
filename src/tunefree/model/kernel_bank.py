"""Kernel learners of several widths on the same rows: one matrix product serves them all.

View and widths are fixed by the first rows (:mod:`tunefree.model.warmup`): a support point could not follow them.
"""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import numpy as np

from tunefree.core.errors import ModelError
from tunefree.core.numbers import CEILING
from tunefree.core.rows import numbers_alone
from tunefree.core.states import under
from tunefree.kernel import contract, feature_expansion, kernels
from tunefree.kernel.backends import at_hand, backend_of
from tunefree.kernel.expansion import Expansion
from tunefree.kernel.feature_expansion import FeatureExpansion
from tunefree.kernel.points import BLOCK, DensePoints, as_matrix, points
from tunefree.losses.objectives import OneAgainstAll
from tunefree.model.group import LabelledRows
from tunefree.model.kernel_member import KernelMember
from tunefree.model.members import Setting
from tunefree.model.starting import TRIED, largest_diagonal, starting_states
from tunefree.model.warmup import UNLIKE, WarmupBank

FEW_POINTS = 2**12  # support points for which a block is no work for several threads


class KernelConfig(NamedTuple):
    """The kernel of a bank; widths are settings of its members."""

    name: Any = "rbf"  # as scikit-learn calls it, or a function of two arrays
    gamma: float = 0.0  # 0 for the median rule's; the members' widths are multiples of it
    degree: int = 3
    constant: float = 1.0
    double: bool = False  # compute in double precision
    device: str | None = None  # where PyTorch computes ("cuda", "cpu"); None for compiled code on the processor
    max_support: int | None = None  # support points beyond which functions go on in random Fourier features

    @classmethod
    def restored(cls, saved: dict[str, Any]) -> KernelConfig:
        """The configuration that was saved, on a machine that may have other devices."""
        return cls(**{**saved, "device": at_hand(saved.get("device"))})


class KernelBank(WarmupBank):
    """Kernel learners on one view of the rows.

    Parameters
    ----------
    settings : list of Setting
        The members, each with its ``width``: a power of two by which the bank's gamma is multiplied; one view for all.
    kernel_config : KernelConfig
    objective : objective
    n_outputs, n_classes : int
        ``n_classes`` is None where margins are predicted as they are, else they are calibrated to log-odds.
    average : bool
        Whether new rows are predicted with averages of the members' functions, or with the last ones.
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
        self.expansion: Any = None  # once the bank is frozen
        self.max_support = kernel_config.max_support
        self.rows = 0  # learned, those learned again included
        self.switched: int | None = None  # rows learned when functions went on in Fourier features, if they have
        self._check()

    def _check(self) -> None:
        widths = [member.setting.settings.get("width", 1.0) for member in self.members]
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
    def uses_threads(self) -> bool:
        return self.n_support >= FEW_POINTS

    @property
    def n_support(self) -> int:
        """Number of support points."""
        return 0 if self.expansion is None else self.expansion.n_support

    def gamma_of(self, member: KernelMember) -> float:
        """gamma of a member's kernel."""
        return self.gamma * member.setting.settings.get("width", 1.0)

    def learn_frozen(self, rows: LabelledRows, predictions: np.ndarray, busy: list[int], again: bool) -> None:
        X, y, weight, evaluation_weight = rows
        expansion, seen = self.expansion, self._points(X)
        margins = np.zeros((len(self.members), len(y), self.n_outputs))
        start = 0
        while start < len(y):
            first = expansion.filled
            stop = min(start + BLOCK - first, len(y))
            here = slice(start, stop)
            known, values = expansion.open(seen, np.arange(start, stop), busy)
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
            predictions[m] = self.members[m].calibrated(margins[m], y, evaluation_weight)

    def _closed(self, busy: list[int]) -> Any:
        """Close the open block; functions of too many points go on in Fourier features."""
        self.expansion.close()
        self._fold_factors(busy)
        most = self.max_support
        if most is not None and self.switched is None and self.expansion.n > most:
            n_features = feature_expansion.affordable(most)
            self.expansion, self.switched = FeatureExpansion.of(self.expansion, n_features), self.rows
            for member in self.members:
                member.close_record()
        return self.expansion

    def _fold_factors(self, busy: list[int]) -> None:
        """Multiply factors that have become small into the coefficients, before their numbers leave the range."""
        for m in busy:
            own = self.members[m]
            factors = contract.give_up(own.state)
            if factors is not None:
                self.expansion.fold(m, factors, own.average.clocks)
                own.average.clocks[:] = 0.0

    def _freeze(self, first: LabelledRows, usable: np.ndarray, labels: np.ndarray) -> None:
        rows = as_matrix(points(self._transformed(first.X), self._kernel(1.0), np.float64))[usable]
        has_widths = kernels.distance_of(self._kernel(1.0)) is not None
        self.gamma = self.kernel_config.gamma or (kernels.median_gamma(rows, labels) if has_widths else 1.0)
        kernel, steps = self._kernel_and_steps()
        seen = self._points(first.X)
        self.expansion = Expansion(kernel, steps, self.n_outputs, seen, self.kernel_config.device)
        states = starting_states(
            self.members, self.average, largest_diagonal(kernel, seen), lambda tried: self._losses(tried, first, seen)
        )
        for member, state in zip(self.members, states, strict=True):
            member.state = state

    def _losses(self, candidates: list[tuple[int, Any]], first: LabelledRows, seen: Any) -> list[float]:
        """Progressive losses of members with other states on some of the first rows; the bank stays as it is."""
        trial = copy.copy(self)
        trial.max_support = None
        trial.members = [copy.deepcopy(self.members[m]) for m, _ in candidates]
        for member, (_, state) in zip(trial.members, candidates, strict=True):
            member.state = copy.deepcopy(state)
        steps = self.expansion.steps[[m for m, _ in candidates]]
        trial.expansion = Expansion(self.expansion.kernel, steps, self.n_outputs, seen)
        n = min(TRIED, len(first.y))
        rows = first.part(0, n)._replace(evaluation_weight=first.weight[:n])
        every = list(range(len(candidates)))
        trial.learn_frozen(rows, np.empty((len(candidates), n, self.n_outputs)), every, again=False)
        return [float(member.record.loss[()]) for member in trial.members]

    def _kernel(self, gamma: float) -> Any:
        return kernels.kernel_of(self.kernel_config.name, gamma, self.kernel_config.degree, self.kernel_config.constant)

    def _kernel_and_steps(self) -> tuple[Any, np.ndarray]:
        """The kernel of least gamma, and how often gamma is doubled from there for each member."""
        exponents = np.array([member.exponent for member in self.members])
        return self._kernel(self.gamma * 2.0 ** float(exponents.min())), exponents - exponents.min()

    def _points(self, X: Any) -> Any:
        precision = np.float64 if self.kernel_config.double else np.float32
        seen = self._transformed(X)
        found = points(seen, self._kernel(1.0), precision)
        if self.expansion is not None and type(found) is not type(self.expansion.block):
            numbers = numbers_alone(seen)
            if numbers is None or isinstance(found, DensePoints):
                raise ModelError(UNLIKE)
            found = points(numbers, self._kernel(1.0), precision)
        return found

    def _predict(self, X: Any) -> np.ndarray:
        margins = self.margins(X)
        return np.array([member.predict(own) for member, own in zip(self.members, margins, strict=True)])

    def margins(self, X: Any) -> np.ndarray:
        """Values (M, n, K) of the functions at new rows."""
        if self._read is None:
            self._read = self._coefficients()
        return np.clip(self.expansion.values(self._points(X), self._read), -CEILING, CEILING)

    def reading(self, average: bool) -> KernelBank:
        """The same functions, predicting with averages or as they were last, until the bank learns again."""
        other = copy.copy(self)
        other.average, other._read = average, None
        return other

    def _coefficients(self) -> tuple[np.ndarray, np.ndarray]:
        outputs = range(self.n_outputs)
        factors = np.array([[contract.factor(member.state, k) for k in outputs] for member in self.members])
        if not self.average:
            return self.expansion.scaled(factors)
        to_come = np.array([contract.share_to_come(member.state) for member in self.members])
        clocks = np.array([member.average.clocks for member in self.members]) + factors * to_come[:, None]
        shares = np.array([member.average.shares[()] for member in self.members]) + to_come
        return self.expansion.averaged(np.minimum(clocks, CEILING), np.minimum(shares, CEILING))

    def begin_pass(self, busy: list[int]) -> None:
        """Let the averages of some members start again."""
        super().begin_pass(busy)
        own = [self.members[m] for m in busy]
        if self.frozen:
            self.expansion.restart_averages(busy, np.array([member.average.clocks for member in own]))
        for member in own:
            member.restart_average()

    def recalibrate(self, X: Any, codes: np.ndarray, weight: np.ndarray, chosen: list[int]) -> None:
        """Fit the log-odds of some members' margins to the classes of rows that are never learned."""
        if not chosen:
            return
        self.freeze()
        if not self.frozen:
            return
        margins = self.margins(X)
        for m in chosen:
            self.members[m].recalibrate(margins[m], codes, weight)

    def move(self, device: str | None) -> None:
        """Compute on another device from now on; the functions stay what they are."""
        self.kernel_config = self.kernel_config._replace(device=device)
        if self.expansion is not None:
            self.expansion.move(device)

    def keep(self, stays: list[int]) -> None:
        super().keep(stays)
        if self.expansion is not None:
            self.expansion.keep(stays, *self._kernel_and_steps())

    def add_class(self, objective: Any, n_outputs: int, n_classes: int) -> None:
        """Know one more class.

        Where one margin becomes one of each class, it was that of class 1; and minus that of class 0, if each class is
        learned against all others.
        """
        placed = np.eye(n_outputs, self.n_outputs)
        if self.n_outputs == 1 < n_outputs:
            placed[:2, 0] = -1.0 if isinstance(objective, OneAgainstAll) else 0.0, 1.0
        super().add_class(objective, n_outputs, n_classes)
        for member in self.members:
            member.add_class(objective, placed, n_classes)
        if self.expansion is not None:
            self.expansion.remap_outputs(placed)

    def save_state(self, n_features: int) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        arrays, header = super().save_state(n_features)
        header |= {"members": [], "rows": self.rows, "switched": self.switched}
        for m, member in enumerate(self.members):
            own, own_header = member.save_state()
            arrays |= {f"{m}.{name}": array for name, array in own.items()}
            header["members"].append(own_header)
        if self.expansion is not None:
            arrays |= {f"expansion.{name}": array for name, array in self.expansion.save_state().items()}
        return arrays, header

    def restore(self, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        super().restore(arrays, header)
        for m, (member, saved) in enumerate(zip(self.members, header["members"], strict=True)):
            member.restore(under(f"{m}.", arrays), saved)
        self.rows, self.switched = header["rows"], header["switched"]
        if header["frozen"]:
            kind = Expansion if self.switched is None else FeatureExpansion
            arrays_of_points = under("expansion.", arrays)
            self.expansion = kind.restore(*self._kernel_and_steps(), arrays_of_points, self.kernel_config.device)
