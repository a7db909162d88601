"""Kernel learners of several widths on the same rows: one matrix product serves them all.

A support point could not follow a view or a width that changes, so the first rows fix both. A bank keeps WARMUP_ROWS
rows back. Then it is frozen: the rows whose weight is above 0 fix the view and the kernel, and all rows kept back are
learned in order. Until then the members sleep: they predict NaN. A bank that has to predict earlier does so with a copy
that is frozen on the rows so far. The end of a pass freezes it, too.
"""

from __future__ import annotations

import copy
import math
from typing import Any, NamedTuple

import numpy as np

from tunefree.core.errors import ModelError
from tunefree.core.numbers import CEILING
from tunefree.core.part import restored, size_of, under
from tunefree.core.rows import Block, n_rows, reach, together
from tunefree.core.rows import restored as restored_block
from tunefree.core.rows import saved as saved_block
from tunefree.losses.objectives import Objective
from tunefree.model import views
from tunefree.model.group import LabelledRows, WarmupPredictions
from tunefree.model.members import Setting
from tunefree.model.views import create_view, transform
from tunefree.papers.kernel import kernels
from tunefree.papers.kernel.expansion import Expansion
from tunefree.papers.kernel.kernel_certificates import certificate_of
from tunefree.papers.kernel.kernel_member import KernelMember
from tunefree.papers.kernel.pistol import factor_of, learning
from tunefree.papers.kernel.points import BLOCK, Points, points

WARMUP_ROWS = 1024  # rows after which view and kernel are fixed


class KernelConfig(NamedTuple):
    """The kernel of a bank; widths are settings of its members."""

    name: str = "rbf"  # in :data:`tunefree.papers.kernel.kernels.ALL`
    gamma: float = 0.0  # 0 for the median rule's; the members' widths are multiples of it
    degree: int = 3
    constant: float = 1.0


class KernelBank:
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
        self.expansion: Any = None  # once the bank is frozen
        self.view: Any = None  # once the bank is frozen, unless rows are taken as they are
        self.gamma = 0.0  # of width 1, once the bank is frozen
        self.waiting: list[LabelledRows] = []
        self.warmup_predictions: WarmupPredictions | None = None  # until they are taken
        self.n_columns: int | None = None  # dense columns of the rows so far
        self._read: Any = None  # what predicts, until a member changes
        self._check()

    def _check(self) -> None:
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
    def is_sparse(self) -> bool | None:
        """Whether the rows so far were sparse; None if there were none."""
        return None if self.n_columns is None else self.n_columns == 0

    @property
    def view_name(self) -> str:
        """The view that the members' settings name."""
        return self.members[0].setting.view

    @property
    def n_warmup(self) -> int:
        """Number of rows that are kept back."""
        return sum(len(rows.y) for rows in self.waiting)

    @property
    def nbytes(self) -> int:
        """Bytes of the functions, of what the members know, and of the rows kept back."""
        states = [member.state for member in self.members]
        expansion = {} if self.expansion is None else dict(vars(self.expansion))
        return size_of([states, expansion, self.waiting])

    uses_threads = False

    @property
    def n_support(self) -> int:
        """Number of support points."""
        return 0 if self.expansion is None else self.expansion.n_support

    def check(self, model: Any) -> None:
        """Raise a ModelError if what was restored does not fit together."""
        for rows in self.waiting:  # they are learned later, with targets as places of outputs
            _fit(n_rows(rows.X) == len(rows.y) and len(rows.y), "rows that wait have not a target each")
            _fit(reach(rows.X) <= model.n_features, "rows that wait have features that the model does not have")
            if model.task == "classification":
                known = [-1.0, 1.0] if model.n_outputs == 1 else np.arange(model.n_outputs)
                _fit(np.isin(rows.y, known).all(), "rows that wait have classes that are none")
            _fit(not self.frozen and len(rows.y) < WARMUP_ROWS, "more rows wait than there can be")
        if self.expansion is None:
            return
        _fit(self.expansion.filled < BLOCK, "the open block of support points is full")
        _fit(self.expansion.n_functions == len(self.members), "there are not as many functions as members")
        _fit(np.isfinite(self._factors()).all(), "a kernel learner has no finite factor")
        for stored in (self.expansion.store.packed(self.expansion.n), self.expansion.block):
            highest = stored.features.max(initial=0)
            _fit(highest < model.n_features, "support points have features that the model does not have")

    def certified(self, norms: tuple[float, ...]) -> list[dict[str, Any]]:
        """Bounds of each learner on the functions of its space, for JSON."""
        certificates = [certificate_of(member, self.gamma_of(member)) for member in self.members if self.frozen]
        known = []
        for member, certificate in zip(self.members, certificates, strict=False):
            if certificate is not None:
                mean, bounds = certificate.loss / certificate.weight, dict(certificate.table(norms))
                known.append({"learner": member.name, "gamma": certificate.gamma, "loss": mean, "lower_bounds": bounds})
                theorem = {norm: certificate.theorem(norm) / certificate.weight for norm in norms}
                known[-1] |= {"theorem": theorem} if theorem[norms[0]] < math.inf else {}
        return known

    def gamma_of(self, member: KernelMember) -> float:
        """gamma of a member's kernel."""
        return self.gamma * member.setting.settings.get("width", 1.0)

    def learn(self, rows: LabelledRows, predictions: np.ndarray, again: bool = False) -> None:
        """Learn rows in order; writes what each member predicted before it learned a row, NaN while it sleeps."""
        predictions[:], self._read = np.nan, None
        self._check_kind(rows.X)
        n = len(rows.y)
        start = 0 if self.frozen else n if again else self._keep_back(rows)
        if start < n:
            self._learn(rows.part(start, n), predictions[:, start:])

    def _check_kind(self, X: Block) -> None:
        """Whether rows have as many dense columns as those before, which compiled code does not check."""
        n_columns = X.numbers.shape[1]
        if self.n_columns not in (None, n_columns):
            raise ModelError(f"rows of {n_columns} dense columns, where the model has learned {self.n_columns}")

    def _keep_back(self, rows: LabelledRows) -> int:
        """Keep rows back until there are enough, then freeze; returns how many rows were kept back."""
        stop = min(WARMUP_ROWS - self.n_warmup, len(rows.y))
        kept = rows.part(0, stop)
        self.n_columns = rows.X.numbers.shape[1]
        self.waiting.append(LabelledRows(together([kept.X]), *(array.copy() for array in kept[1:])))
        if self.n_warmup == WARMUP_ROWS:
            self.freeze()
        return stop

    def _learn(self, rows: LabelledRows, predictions: np.ndarray) -> None:
        """Learn rows with view and kernel fixed; writes what was predicted of them (M, n, K)."""
        expansion, seen = self.expansion, self._points(rows.X)
        targets, weights = (np.ascontiguousarray(array, np.float64) for array in (rows.y, rows.weight))
        margins = np.zeros((len(self.members), len(targets), self.n_outputs))
        learn = learning(self.n_outputs == 1)
        start = 0
        while start < len(targets):
            first = expansion.filled
            stop = min(start + BLOCK - first, len(targets))
            here = slice(start, stop)
            known, values = expansion.open(seen, start, stop)
            for m, member in enumerate(self.members):
                of_rows = values[expansion.steps[m]], known[m], first, targets[here], weights[here]
                written = expansion.open_coefficients[m], expansion.open_lags[m], margins[m, here]
                learn(member.state, *member.objective.arrays, *of_rows, *written)
            if expansion.filled == BLOCK:
                expansion.close()
            start = stop
        for m, member in enumerate(self.members):
            predictions[m] = member.judged(margins[m], rows)

    def freeze(self) -> None:
        """Fix view and kernel by the rows kept back, if there are any, and learn these.

        ``warmup_predictions`` then holds what was predicted of them, for a mixture of members that all slept.
        """
        if self.frozen or not self.waiting:
            return
        first = self._warmup_rows()
        self.waiting, self._read = [], None
        if self.view_name != "raw":
            self.view = create_view(self.view_name, first.X)
            transform(self.view, first.X, first.weight)
        self._fix_kernel(first)
        predicted = np.empty((len(self.members), len(first.y), self.n_outputs))
        self._learn(first, predicted)
        self.warmup_predictions = WarmupPredictions(first.y, first.evaluation_weight, predicted)

    def take_warmup_predictions(self) -> WarmupPredictions | None:
        """Predictions of rows that were kept back and have now been learned, handed out once."""
        taken, self.warmup_predictions = self.warmup_predictions, None
        return taken

    def _warmup_rows(self) -> LabelledRows:
        """The rows kept back, as one block."""
        blocks, *others = zip(*self.waiting, strict=True)
        return LabelledRows(together(list(blocks)), *(np.concatenate(arrays) for arrays in others))

    def _fix_kernel(self, first: LabelledRows) -> None:
        """Fix the kernel by the first rows, and the members' first states."""
        usable = np.flatnonzero(first.weight)
        labels = first.y[usable] if self.members[0].objective.task == "classification" else halves(first.y[usable])
        seen = self._points(first.X)
        rows = seen.as_matrix()[usable]
        has_widths = self._kernel(1.0).distance is not None
        self.gamma = self.kernel_config.gamma or (kernels.median_gamma(rows, labels) if has_widths else 1.0)
        kernel, steps = self._kernel_and_steps()
        self.expansion = Expansion(kernel, steps, self.n_outputs)

    def _kernel(self, gamma: float) -> Any:
        return kernels.kernel_of(self.kernel_config.name, gamma, self.kernel_config.degree, self.kernel_config.constant)

    def _kernel_and_steps(self) -> tuple[Any, np.ndarray]:
        """The kernel of least gamma, and how often gamma is doubled from there for each member."""
        exponents = np.array([member.exponent for member in self.members])
        return self._kernel(self.gamma * 2.0 ** float(exponents.min())), exponents - exponents.min()

    def _points(self, X: Block) -> Points:
        """Rows in the fixed view, as points."""
        seen = X if self.view is None else transform(self.view, X, np.zeros(n_rows(X)))
        return points(seen, self._kernel(1.0))

    def predict(self, X: Any) -> np.ndarray:
        """What each member predicts of new rows, (M, n, K); NaN where it has had no rows to learn from."""
        if self.frozen:
            margins = self.margins(X)
            pairs = zip(self.members, margins, strict=True)
            return np.array([member.predict(of_member) for member, of_member in pairs])
        if not self.waiting:
            return np.full((len(self.members), n_rows(X), self.n_outputs), np.nan)
        if self._read is None:
            read = copy.deepcopy(self)  # frozen on fewer rows than there will be; the bank itself is not
            read.freeze()
            self._read = read
        return self._read.predict(X)

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
        states = [member.state for member in self.members]
        if not self.average:
            return self.expansion.scaled(self._factors())
        clocks = np.array([state["average_clocks"] for state in states])
        return self.expansion.averaged(clocks, np.array([state.average_weight[0] for state in states]))

    def _factors(self) -> np.ndarray:
        """What the sums of the members are multiplied by, (M, K)."""
        return np.array([[factor_of(member.state, k) for k in range(self.n_outputs)] for member in self.members])

    def begin_pass(self) -> None:
        """Learn the rows kept back, and let averages start again."""
        self._read = None
        self.freeze()
        if self.frozen:
            self.expansion.restart_averages(np.array([member.state["average_clocks"] for member in self.members]))
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
            self.waiting = [rows._replace(y=np.where(rows.y > 0, 1.0, 0.0)) for rows in self.waiting]
        self.n_outputs, self._read = n_outputs, None
        for member in self.members:
            member.add_class(objective, placed, n_classes)
        if self.expansion is not None:
            self.expansion.remap_outputs(placed)

    def save_state(self, n_features: int) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        header: dict[str, Any] = {"gamma": self.gamma, "frozen": self.frozen, "n_columns": self.n_columns}
        header["members"] = []
        arrays = {} if self.view is None else views.saved("view", self.view)
        if self.waiting:
            rows = self._warmup_rows()
            header["waiting"] = True
            arrays |= {f"waiting.{name}": getattr(rows, name) for name in ("y", "weight", "evaluation_weight")}
            arrays |= {f"waiting.X.{name}": array for name, array in saved_block(rows.X).items()}
        for m, member in enumerate(self.members):
            of_member, header_of_member = member.save_state()
            arrays |= {f"{m}.{name}": array for name, array in of_member.items()}
            header["members"].append(header_of_member)
        if self.expansion is not None:
            arrays |= {f"expansion.{name}": array for name, array in self.expansion.save_state().items()}
        return arrays, header

    def restore(self, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        self.gamma, self.n_columns = header["gamma"], header["n_columns"]
        if "waiting" in header:
            others = (arrays[f"waiting.{name}"] for name in ("y", "weight", "evaluation_weight"))
            self.waiting = [LabelledRows(restored_block(under("waiting.X.", arrays)), *others)]
        for m, (member, saved) in enumerate(zip(self.members, header["members"], strict=True)):
            member.take_over(under(f"{m}.", arrays), saved)
        if header["frozen"]:
            self.expansion = Expansion.restore(*self._kernel_and_steps(), under("expansion.", arrays))
            if self.view_name != "raw":
                self.view = restored(views.ALL[self.view_name], "view", arrays, {})


def halves(targets: np.ndarray) -> np.ndarray:
    """Numbers as two labels: up to their median and above."""
    if not len(targets):
        return targets
    halves = np.sort(targets)[[(len(targets) - 1) // 2, len(targets) // 2]] / 2.0
    return targets > halves.sum()  # the median; a sum of the two halves cannot overflow


def _fit(holds: Any, problem: str) -> None:
    if not holds:
        raise ModelError(problem)
