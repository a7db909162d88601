"""What banks share: learners on one view of the rows that wait until it is settled.

A bank looks at rows in its own way. Its view and its kernel are settled on the first SETTLED rows (by those of a weight
above 0) and then stand still: what was learned in the space of a kernel that moved would be of another space. Until
then rows wait, and its learners sleep: they predict nothing, and a mixture goes on without them. A bank that has to
predict before does so with a copy that settles for the rows there are; a second pass settles too.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tunefree.core import threads
from tunefree.core.errors import ModelError
from tunefree.core.rows import n_rows, part, parts, rebuilt, together
from tunefree.core.states import filled, flatten, under
from tunefree.losses.objectives import labels_of
from tunefree.model import views
from tunefree.model.views import create_view, transform

UNLIKE = "rows are dense where they were sparse at first, or sparse where dense; give them alike"
FEW_POINTS = 2**12  # support points for which a block is no work for several threads
WARMUP_ROWS = 1024  # rows after which view and kernel stand still


class WarmupRows(NamedTuple):
    """Rows to be learned once a bank is settled."""

    X: Any  # block of rows
    y: np.ndarray  # (n,)
    weight: np.ndarray  # (n,)
    evaluation_weight: np.ndarray  # (n,) see WaitingBank.learn


class WarmupBank:
    """A bank of learners; subclasses say what they learn once it is settled.

    Parameters
    ----------
    functions : list
        The learners, each with its ``setting``, which name one view, and its ``objective``.
    n_outputs : int
    """

    frozen_view: str  # name of the view that is settled
    max_support: int | None = 0  # support points at most; None for any number
    switched: int | None = None  # rows learned when kernel learners went on in features, if they have

    def __init__(self, members: list[Any], n_outputs: int) -> None:
        self.members, self.n_outputs = members, n_outputs
        self.view: Any = None  # once it is settled, unless rows are taken as they are
        self.gamma = 0.0  # of width 1, once it is settled
        self.waiting: list[WarmupRows] = []
        self.warmup_predictions: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None  # see :meth:`settle`
        self.n_columns: int | None = None  # dense columns of the rows met
        self._read: Any = None  # what predicts, until the bank learns again

    @property
    def frozen(self) -> bool:
        """Whether view and kernel stand still."""
        raise NotImplementedError

    @property
    def view_name(self) -> str:
        """The view that the learners name."""
        return self.members[0].setting.view

    @property
    def n_warmup(self) -> int:
        """Rows that wait."""
        return sum(len(rows.y) for rows in self.waiting)

    @property
    def n_support(self) -> int:
        """Rows that the functions are made of, where they are made of rows."""
        return 0

    def learn(
        self,
        X: Any,
        y: np.ndarray,
        weight: np.ndarray,
        evaluation_weight: np.ndarray,
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
            The learners that learn; the others predict nothing.
        """
        predictions[:] = np.nan
        self._read = None
        start = 0 if self.frozen else self._wait(X, y, weight, evaluation_weight)
        if start < len(y):
            chosen = list(range(len(self.members))) if busy is None else busy
            rest = part(X, start, n_rows(X))
            self.learn_frozen(
                rest, y[start:], weight[start:], evaluation_weight[start:], predictions[:, start:], chosen
            )

    def _wait(self, X: Any, y: np.ndarray, weight: np.ndarray, evaluation_weight: np.ndarray) -> int:
        """Let rows wait until there are enough, and then settle; returns how many waited."""
        stop, n_columns = min(WARMUP_ROWS - self.n_warmup, len(y)), parts(X).numbers.shape[1]
        if self.waiting and type(self.waiting[0].X) is not type(X):
            raise ModelError(UNLIKE)
        if self.n_columns not in (None, n_columns):
            raise ModelError(f"rows of {n_columns} dense columns, where the model has learned {self.n_columns}")
        self.n_columns = n_columns
        of_first = (array[:stop].copy() for array in (y, weight, evaluation_weight))
        self.waiting.append(WarmupRows(together([part(X, 0, stop)]), *of_first))
        if self.n_warmup == WARMUP_ROWS:
            self.freeze()
        return stop

    def learn_frozen(
        self,
        X: Any,
        y: np.ndarray,
        weight: np.ndarray,
        evaluation_weight: np.ndarray,
        predictions: np.ndarray,
        busy: list[int],
    ) -> None:
        """Learn rows, settled."""
        raise NotImplementedError

    def freeze(self) -> None:
        """Fix view and kernel by the rows that wait, if there are any, and learn them.

        ``warmup_predictions`` then holds their targets, their evaluation weights, and the predictions made before each
        was learned: a mixture of no other learners is evaluated by them.
        """
        if self.frozen or not self.waiting:
            return
        first = X, y, weight, evaluation_weight = self._warmup_rows()
        self.waiting = []
        if self.frozen_view != "raw":
            self.view = create_view(self.frozen_view, X)
            transform(self.view, X, weight)
        usable = np.flatnonzero(weight)
        self._freeze(first, usable, labels_of(self.members[0].objective, y[usable]))
        predicted = np.empty((len(self.members), len(y), self.n_outputs))
        self.learn_frozen(X, y, weight, evaluation_weight, predicted, list(range(len(self.members))))
        self.warmup_predictions = y, evaluation_weight, predicted

    def _freeze(self, first: WarmupRows, usable: np.ndarray, labels: np.ndarray) -> None:
        """Fix the kernel by the first rows; ``usable`` are those of weight above 0, which have these labels."""
        raise NotImplementedError

    def _warmup_rows(self) -> WarmupRows:
        """The rows that wait, as one block."""
        blocks, *others = zip(*self.waiting, strict=True)
        return WarmupRows(together(list(blocks)), *(np.concatenate(arrays) for arrays in others))

    def _shown(self, X: Any) -> Any:
        """Rows as the view shows them."""
        return X if self.view is None else transform(self.view, X, np.zeros(n_rows(X)))

    def predict(self, X: Any) -> np.ndarray:
        """What each learner predicts of new rows, (M, n, K); NaN if there was nothing to learn yet."""
        if self.frozen:
            return self._predict(X)
        if not self.waiting:
            return np.full((len(self.members), n_rows(X), self.n_outputs), np.nan)
        if self._read is None:
            self._read = copy.deepcopy(self)  # settled on fewer rows than there will be; the bank itself waits on
            self._read.freeze()
        return self._read.predict(X)

    def _predict(self, X: Any) -> np.ndarray:
        """What each learner predicts of new rows, settled."""
        raise NotImplementedError

    def begin_pass(self, busy: list[int]) -> None:
        """Rows that were learned come again, for some of the learners."""
        self._read = None
        self.freeze()

    def recalibrate(self, X: Any, codes: np.ndarray, weight: np.ndarray, chosen: list[int]) -> None:
        """Find the log-odds of some learners' margins from rows that are never learned."""

    def next_widths(self, shares: np.ndarray) -> np.ndarray:
        """Whether a learner's kernel is the next narrower one to the leader's, which more rows may need."""
        return np.zeros(len(self.members), bool)

    def move(self, device: str | None) -> None:
        """Compute elsewhere from now on; functions stay what they are."""

    def keep(self, stays: list[int]) -> None:
        """Let go of all learners but some."""
        self._read = None
        self.members = [self.members[m] for m in stays]

    def grow(self, objective: Any, before: int, n_outputs: int, n_classes: int) -> None:
        """Know one more class; ``before`` is how many margins there were. Some of them may be new."""
        self._read = None
        if before == 1 < n_outputs:
            self.waiting = [rows._replace(y=np.where(rows.y > 0, 1.0, 0.0)) for rows in self.waiting]
        self.n_outputs = n_outputs

    def save_state(self, n_features: int) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays and a header from which :meth:`restore` makes the same bank."""
        arrays: dict[str, np.ndarray] = {}
        header: dict[str, Any] = {"gamma": self.gamma, "frozen": self.frozen, "n_columns": self.n_columns}
        if self.view is not None:
            arrays |= flatten("view", self.view, n_features)[0]
        if self.waiting:
            rows = self._warmup_rows()
            header["waiting"] = type(rows.X).__name__
            arrays |= {f"waiting.{name}": getattr(rows, name) for name in ("y", "weight", "evaluation_weight")}
            arrays |= {f"waiting.X.{name}": np.asarray(value) for name, value in rows.X._asdict().items()}
        return arrays, header

    def restore(self, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        """Become the bank that :meth:`save_state` wrote down."""
        self.gamma, self.n_columns = header["gamma"], header["n_columns"]
        if "waiting" in header:
            block = rebuilt(header["waiting"], under("waiting.X.", arrays))
            self.waiting = [
                WarmupRows(block, *(arrays[f"waiting.{name}"] for name in ("y", "weight", "evaluation_weight")))
            ]
        if header["frozen"] and self.frozen_view != "raw":
            self.view = filled("view", views.ALL[self.frozen_view].create(self.n_columns), arrays, {})


def within(span: slice, members: list[int] | None) -> list[int]:
    """Which learners of a bank that stands there among the members of a model are among some of them, or all."""
    return [m - span.start for m in range(span.start, span.stop) if members is None or m in members]


def each_bank(function: Callable[[WarmupBank, slice], None], spans: list[tuple[WarmupBank, slice]], rows: int) -> None:
    """Call a function for each bank and its place; in threads, unless banks are large enough to use those themselves.

    Parameters
    ----------
    function : function of a bank and a slice
    spans : list
        The banks, each with where its learners stand.
    rows : int
        How many there are to be learned or predicted.
    """
    few = len(spans) > 1 and all(bank.n_support < FEW_POINTS for bank, _ in spans)
    threads.each(function, spans, rows if few else 0)
