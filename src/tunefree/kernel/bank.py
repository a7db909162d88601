"""Kernel learners that learn together, of several widths on the same rows: one matrix product serves them all.

A bank looks at rows in its own way. Its view and its widths are settled on the first rows that it is given and then
stand still, since a support point could not follow them: a space whose kernel moved would be another space. Until then
rows wait, and its learners sleep: they predict nothing, and a mixture goes on without them.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tunefree import calibration, looking, views
from tunefree.errors import ModelError
from tunefree.kernel import contract, kernels
from tunefree.kernel.engine import at_hand, engine_of
from tunefree.kernel.expansion import Expansion
from tunefree.kernel.learners import ALL
from tunefree.kernel.points import BLOCK, as_matrix, points
from tunefree.learners.contract import CEILING
from tunefree.members import filled, flatten, name_of, responded
from tunefree.objectives import OneAgainstAll
from tunefree.pool import Setting
from tunefree.rows import n_rows, part, rebuilt

SETTLED = 1024  # rows after which view and widths stand still


class Choice(NamedTuple):
    """The kernel of a bank; widths are settings of its learners."""

    name: Any = "rbf"  # as scikit-learn calls it, or a function of two arrays
    gamma: float = 0.0  # 0 for the median rule's; learners' widths are multiples of it
    degree: int = 3
    constant: float = 1.0
    double: bool = False  # compute in double precision
    device: str | None = None  # where PyTorch computes ("cuda", "cpu"); None for compiled code on the processor

    @classmethod
    def restored(cls, saved: dict[str, Any]) -> Choice:
        """The choice that was saved, on a machine that may have other devices."""
        return cls(**{**saved, "device": at_hand(saved.get("device"))})


@dataclass
class Function:
    """One learner of a bank."""

    setting: Setting
    state: Any
    average: contract.Average
    record: contract.Record
    objective: Any
    calibration: Any  # None where margins are predicted as they are

    @classmethod
    def create(cls, setting: Setting, n_outputs: int, objective: Any, n_classes: int | None) -> Function:
        """A learner that has seen nothing; ``n_classes`` is None where margins are predicted as they are."""
        own = {name: value for name, value in setting.settings.items() if name not in ("width", "growth")}
        try:
            state = ALL[setting.learner].create(n_outputs, **own)
        except TypeError:
            raise ModelError(f"{setting.learner} has no setting among {', '.join(own)}") from None
        average = contract.Average.create(n_outputs, setting.settings.get("growth", 0.0))
        made = calibration.Calibration.create(n_classes) if n_classes is not None else None
        return cls(setting, state, average, contract.Record.create(n_outputs), objective, made)

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
        for name in ("state", "average", "record", "calibration"):
            if getattr(self, name) is not None:
                setattr(self, name, filled(name, getattr(self, name), arrays, saved["scalars"]))
        if "calibration.slopes" in arrays:
            self.calibration = calibration.Scaling(arrays["calibration.slopes"], arrays["calibration.offsets"])
        self.objective = self.objective._replace(**saved["objective"])

    @property
    def exponent(self) -> int:
        """log2 of the width's gamma over that of the bank."""
        return round(np.log2(self.setting.settings.get("width", 1.0)))


class Waiting(NamedTuple):
    """Rows to be learned once the bank is settled."""

    X: Any  # block of rows
    y: np.ndarray  # (n,)
    weight: np.ndarray  # (n,)
    counted: np.ndarray  # (n,) see Bank.learn


class Bank:
    """Learners on one view of the rows.

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
        choice: Choice,
        objective: Any,
        n_outputs: int,
        n_classes: int | None,
        average: bool,
    ) -> None:
        self.choice, self.average, self.n_outputs = choice, average, n_outputs
        engine_of(choice.device)  # what is wrong with it shows now, not after the first rows
        self.functions = [Function.create(setting, n_outputs, objective, n_classes) for setting in settings]
        self.view: Any = None
        self.gamma = 0.0  # of width 1, once it is settled
        self.expansion: Any = None  # once it is settled
        self.waiting: list[Waiting] = []
        self.late: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None  # see :meth:`settle`
        self._read: Any = None  # coefficients for predicting, until the bank learns again

    @property
    def view_name(self) -> str:
        return self.functions[0].setting.view

    @property
    def n_support(self) -> int:
        """Rows that the functions are made of."""
        return 0 if self.expansion is None else self.expansion.n + self.expansion.filled

    @property
    def n_waiting(self) -> int:
        return sum(len(rows.y) for rows in self.waiting)

    def learn(
        self,
        X: Any,
        y: np.ndarray,
        weight: np.ndarray,
        counted: np.ndarray,
        predictions: np.ndarray,
        busy: list[int] | None = None,
    ) -> None:
        """Learn rows in order.

        Parameters
        ----------
        X : block of rows
        y, weight : (n,) arrays
        counted : (n,) array
            Weights with which rows teach calibration, and enter certificates if they are learned; 0 for rows learned
            before.
        predictions : (M, n, K) array
            Is written: what each learner predicted before it learned the row; NaN while the bank sleeps.
        busy : list of int, optional
            The learners that learn; the others predict 0.
        """
        predictions[:] = np.nan
        self._read = None
        start = 0
        if self.expansion is None:
            start = min(SETTLED - self.n_waiting, len(y))
            of_first = (array[:start].copy() for array in (y, weight, counted))
            self.waiting.append(Waiting(part(X, 0, start), *of_first))
            if self.n_waiting == SETTLED:
                self.settle()
        if self.expansion is not None and start < len(y):
            rest = self._points(part(X, start, n_rows(X)))
            chosen = list(range(len(self.functions))) if busy is None else busy
            self._learn(rest, y[start:], weight[start:], counted[start:], predictions[:, start:], chosen)

    def _learn(
        self,
        rows: Any,
        y: np.ndarray,
        weight: np.ndarray,
        counted: np.ndarray,
        predictions: np.ndarray,
        busy: list[int],
    ) -> None:
        """Learn points, block by block."""
        expansion = self.expansion
        margins = np.zeros((len(self.functions), len(y), self.n_outputs))
        start = 0
        while start < len(y):
            first = expansion.filled
            stop = min(start + BLOCK - first, len(y))
            here = slice(start, stop)
            known, values = expansion.open(rows, np.arange(start, stop), busy)
            for m in busy:
                own = self.functions[m]
                own.objective = contract.learn_rows(
                    own.state, own.average, own.record, own.objective, values[m], known[:, m], first,
                    y[here], weight[here], counted[here],
                    expansion.open_coefficients[m], expansion.open_lags[m], margins[m, here],
                )  # fmt: skip
            if expansion.filled == BLOCK:
                expansion.close()
            start = stop
        for m in busy:
            predictions[m] = self._calibrated(self.functions[m], margins[m], y, counted)

    def _calibrated(self, own: Function, margins: np.ndarray, y: np.ndarray, counted: np.ndarray) -> np.ndarray:
        """Margins as they are predicted, from which rows that count teach calibration."""
        if own.calibration is None:
            return margins
        codes = np.where(y > 0, 1, 0) if self.n_outputs == 1 else y
        return like_margins(calibration.learn(own.calibration, margins, codes, counted), self.n_outputs)

    def settle(self) -> None:
        """Fix the view and the widths, and learn the rows that wait.

        What is then predicted of them, before each is learned, is kept in ``late`` with their targets and the weights
        with which they count: a mixture of no other learners is judged by it.
        """
        if not self.waiting:
            return
        waiting, self.waiting = self.waiting, []
        if self.view_name != "raw":
            self.view = looking.blank(self.view_name, waiting[0].X)
            for rows in waiting:
                looking.look(self.view, rows.X, rows.weight)
        y, counted = (np.concatenate([getattr(rows, name) for rows in waiting]) for name in ("y", "counted"))
        self.gamma = self.choice.gamma or self._median([rows.X for rows in waiting], y)
        kernel, steps = self._ladder()
        self.expansion = Expansion(kernel, steps, self.n_outputs, self._points(waiting[0].X), self.choice.device)
        everyone, predicted = list(range(len(self.functions))), []
        for rows in waiting:
            predicted.append(np.empty((len(everyone), len(rows.y), self.n_outputs)))
            self._learn(self._points(rows.X), *rows[1:], predicted[-1], everyone)
        self.late = y, counted, np.concatenate(predicted, axis=1)

    def _median(self, waiting: list[Any], targets: np.ndarray) -> float:
        """gamma of the median rule; numbers count as two labels, those up to their median and those above."""
        if not kernels.is_ladder(self._kernel(1.0)):
            return 1.0
        matrices = [as_matrix(points(self._shown(X), self._kernel(1.0), np.float64)) for X in waiting]
        labels = targets > np.median(targets) if hasattr(self.functions[0].objective, "centre") else targets
        return kernels.median_gamma(stacked(matrices), labels)

    def _kernel(self, gamma: float) -> Any:
        return kernels.kernel_of(self.choice.name, gamma, self.choice.degree, self.choice.constant)

    def _ladder(self) -> tuple[Any, np.ndarray]:
        """The kernel of least gamma, and the learner at each step of the ladder of widths, or -1."""
        exponents = [function.exponent for function in self.functions]
        steps = np.full(max(exponents) - min(exponents) + 1, -1)
        steps[np.array(exponents) - min(exponents)] = np.arange(len(exponents))
        return self._kernel(self.gamma * 2.0 ** min(exponents)), steps

    def _shown(self, X: Any) -> Any:
        return X if self.view is None else looking.look(self.view, X, np.zeros(n_rows(X)))

    def _points(self, X: Any) -> Any:
        found = points(self._shown(X), self._kernel(1.0), np.float64 if self.choice.double else np.float32)
        if self.expansion is not None and type(found) is not type(self.expansion.store):
            raise ModelError("rows are dense where they were sparse at first, or sparse where dense; give them alike")
        return found

    def predict(self, X: Any) -> np.ndarray:
        """What each learner predicts of new rows, (M, n, K); NaN if there was nothing to learn yet."""
        if self.expansion is None:
            if not self.waiting:
                return np.full((len(self.functions), n_rows(X), self.n_outputs), np.nan)
            early = copy.deepcopy(self)  # settled on fewer rows than there will be; the bank itself goes on waiting
            early.settle()
            return early.predict(X)
        margins = self.margins(X)
        return np.array([self._answer(own, found) for own, found in zip(self.functions, margins, strict=True)])

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
        if not self.average:
            return self.expansion.scaled(
                np.array([[contract.factor(f.state, k) for k in outputs] for f in self.functions])
            )
        clocks = np.array([function.average.clocks for function in self.functions])
        return self.expansion.averaged(clocks, np.array([function.average.shares[()] for function in self.functions]))

    def _answer(self, own: Function, margins: np.ndarray) -> np.ndarray:
        """Margins as they are predicted."""
        if own.calibration is not None:
            return like_margins(calibration.log_odds(own.calibration, margins), self.n_outputs)
        return responded(own.objective, margins)

    def begin_pass(self, busy: list[int]) -> None:
        """Let averages of some learners begin anew: those of a later pass are of better functions."""
        self._read = None
        self.settle()
        own = [self.functions[m] for m in busy]
        self.expansion.restart_averages(busy, np.array([function.average.clocks for function in own]))
        for function in own:
            if hasattr(function.state, "norms") and np.isnan(function.record.norms).any():
                function.record.norms[:] = function.state.norms
            function.average.shares[()] = function.average.rounds[()] = 0.0

    def recalibrate(self, X: Any, codes: np.ndarray, weight: np.ndarray, chosen: list[int]) -> None:
        """Find the log-odds of some learners' margins from rows that are never learned."""
        self.settle()
        margins = self.margins(X)
        for m in chosen:
            own = self.functions[m]
            if own.calibration is not None:
                own.calibration = calibration.fitted(margins[m], codes, weight, own.calibration.n_classes)

    def next_widths(self, shares: np.ndarray) -> np.ndarray:
        """Whether a learner's kernel is the next narrower one to the leader's, which more rows may need."""
        exponents = np.array([function.exponent for function in self.functions])
        return exponents == exponents[np.argmax(shares)] + 1

    def move(self, device: str | None) -> None:
        """Compute elsewhere from now on; functions stay what they are."""
        self.choice = self.choice._replace(device=device)
        if self.expansion is not None:
            self.expansion.move(device)

    def keep(self, stays: list[int]) -> None:
        """Let go of all learners but some."""
        self._read = None
        self.functions = [self.functions[m] for m in stays]
        if self.expansion is not None:
            self.expansion.keep(stays, *self._ladder())

    def grow(self, objective: Any, before: int, n_outputs: int, n_classes: int) -> None:
        """Know one more class.

        Where one margin becomes one of each class, it was that of class 1; and minus that of class 0, if each class is
        learned against all others.
        """
        self._read = None
        placed = np.eye(n_outputs, before)
        if before == 1 < n_outputs:
            placed[:2, 0] = -1.0 if isinstance(objective, OneAgainstAll) else 0.0, 1.0
            self.waiting = [rows._replace(y=np.where(rows.y > 0, 1.0, 0.0)) for rows in self.waiting]
        self.n_outputs = n_outputs
        for function in self.functions:
            known = function.state, function.average, function.record
            function.state, function.average, function.record = (spread(state, np.abs(placed)) for state in known)
            function.objective = objective
            if function.calibration is not None:
                function.calibration = calibration.grown(function.calibration, n_classes)
        if self.expansion is not None:
            self.expansion.grow(placed)

    def save_state(self, n_features: int) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays and a header from which :meth:`restore` makes the same bank."""
        arrays: dict[str, np.ndarray] = {}
        header: dict[str, Any] = {"gamma": self.gamma, "settled": self.expansion is not None, "functions": []}
        for m, function in enumerate(self.functions):
            own, scalars = function.flat()
            arrays |= {f"{m}.{name}": array for name, array in own.items()}
            objective = {name: value for name, value in function.objective._asdict().items() if name != "loss"}
            header["functions"].append({"scalars": scalars, "objective": objective})
        if self.view is not None:
            arrays |= flatten("view", self.view, n_features)[0]
        if self.expansion is not None:
            arrays |= {f"expansion.{name}": array for name, array in self.expansion.save_state().items()}
        header["waiting"] = [type(rows.X).__name__ for rows in self.waiting]
        for i, rows in enumerate(self.waiting):
            arrays |= {f"waiting{i}.{name}": getattr(rows, name) for name in ("y", "weight", "counted")}
            arrays |= {f"waiting{i}.X.{name}": np.asarray(value) for name, value in rows.X._asdict().items()}
        return arrays, header

    def restore(self, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        """Become the bank that :meth:`save_state` wrote down."""
        self.gamma = header["gamma"]
        for m, (function, saved) in enumerate(zip(self.functions, header["functions"], strict=True)):
            function.fill(
                {name.removeprefix(f"{m}."): a for name, a in arrays.items() if name.startswith(f"{m}.")}, saved
            )
        for i, kind in enumerate(header["waiting"]):
            prefix = f"waiting{i}.X."
            fields = {name.removeprefix(prefix): a for name, a in arrays.items() if name.startswith(prefix)}
            others = (arrays[f"waiting{i}.{name}"] for name in ("y", "weight", "counted"))
            self.waiting.append(Waiting(rebuilt(kind, fields), *others))
        if header["settled"]:
            if self.view_name != "raw":
                n_columns = len(
                    arrays[next(name for name in arrays if name.startswith("view.") and name.endswith("centres"))]
                )
                self.view = filled("view", views.ALL[self.view_name].create(n_columns), arrays, {})
            own = {name.removeprefix("expansion."): a for name, a in arrays.items() if name.startswith("expansion.")}
            self.expansion = Expansion.restore(*self._ladder(), own, self.choice.device)


def spread(state: Any, placed: np.ndarray) -> Any:
    """The state with what is known of each output moved to the outputs that are made of it."""
    return type(state)(*(placed @ value if getattr(value, "ndim", 0) == 1 else value for value in state))


def like_margins(log_odds: np.ndarray, n_outputs: int) -> np.ndarray:
    """Log-odds (n, classes) in the shape of margins (n, K)."""
    return log_odds[:, 1:2] - log_odds[:, :1] if n_outputs == 1 else log_odds


def stacked(matrices: list[Any]) -> Any:
    """Matrices, dense or sparse, below each other."""
    if all(isinstance(matrix, np.ndarray) for matrix in matrices):
        return np.concatenate(matrices)
    from scipy.sparse import vstack

    width = max(matrix.shape[1] for matrix in matrices)
    for matrix in matrices:
        matrix.resize((matrix.shape[0], width))
    return vstack(matrices, format="csr")
