"""Banks: groups whose view and kernel are fixed by the first rows, before anything is learned.

What is learned in the space of a kernel is lost if the kernel changes. So a bank keeps its first rows back. After
WARMUP_ROWS of them, or as many as a bank needs, it is frozen: what depends on the data is fixed by the rows whose
weight is above 0, and all rows kept back are learned in order. Until then its members sleep: their predictions are NaN,
and the mixture is of the other members. A bank that has to predict earlier does so with a copy that is frozen on the
rows so far. A second pass freezes it too.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from tunefree.core.errors import ModelError
from tunefree.core.rows import n_rows, parts, rebuilt, together
from tunefree.core.states import filled, flatten, under
from tunefree.losses.objectives import labels_of
from tunefree.model import views
from tunefree.model.group import LabelledRows, MemberGroup, WarmupPredictions
from tunefree.model.mixture import failures
from tunefree.model.views import create_view, transform

UNLIKE = "rows are dense where they were sparse at first, or sparse where dense; give them alike"
WARMUP_ROWS = 1024  # rows after which view and kernel are fixed


class WarmupBank(MemberGroup):
    """A group that is frozen after its first rows; subclasses say what is fixed then, and how it learns.

    Parameters
    ----------
    members : list
        Their settings name one view.
    n_outputs : int
    """

    frozen_view: str  # name of the view through which rows are seen once the bank is frozen

    def __init__(self, members: list[Any], n_outputs: int) -> None:
        self.members, self.n_outputs = members, n_outputs
        self.view: Any = None  # once the bank is frozen, unless rows are taken as they are
        self.gamma = 0.0  # of width 1, once the bank is frozen
        self.waiting: list[LabelledRows] = []
        self.warmup_predictions: WarmupPredictions | None = None  # until they are taken
        self.n_columns: int | None = None  # dense columns of the rows so far
        self._read: Any = None  # what predicts, until a member changes

    @property
    def frozen(self) -> bool:
        """Whether view and kernel are fixed."""
        raise NotImplementedError

    @property
    def warmup_rows(self) -> int:
        """Rows after which it is frozen."""
        return WARMUP_ROWS

    @property
    def is_sparse(self) -> bool | None:
        return None if self.n_columns is None else self.n_columns == 0

    @property
    def name(self) -> str:
        return self.view_name

    @property
    def view_name(self) -> str:
        """The view that the members' settings name."""
        return self.members[0].setting.view

    @property
    def n_warmup(self) -> int:
        """Number of rows that are kept back."""
        return sum(len(rows.y) for rows in self.waiting)

    @property
    def n_unevaluated(self) -> int:
        return sum(int(np.count_nonzero(rows.evaluation_weight)) for rows in self.waiting)

    def learn(
        self, rows: LabelledRows, predictions: np.ndarray, busy: list[int] | None = None, again: bool = False
    ) -> None:
        predictions[:] = np.nan
        self._read = None
        self._check_kind(rows.X)
        n = len(rows.y)
        start = 0 if self.frozen else n if again else self._keep_back(rows)
        if start < n:
            chosen = list(range(len(self.members))) if busy is None else busy
            self.learn_frozen(rows.part(start, n), predictions[:, start:], chosen, again)
            for m in chosen:
                failures(predictions[m, start:])

    def _check_kind(self, X: Any) -> None:
        """Whether rows are like those before, which compiled code does not check."""
        n_columns = parts(X).numbers.shape[1]
        if self.waiting and type(self.waiting[0].X) is not type(X):
            raise ModelError(UNLIKE)
        if self.n_columns is not None and (self.n_columns == 0) != (n_columns == 0):
            raise ModelError(UNLIKE)
        if self.n_columns not in (None, n_columns):
            raise ModelError(f"rows of {n_columns} dense columns, where the model has learned {self.n_columns}")

    def _keep_back(self, rows: LabelledRows) -> int:
        """Keep rows back until there are enough, then freeze; returns how many rows were kept back."""
        stop = min(self.warmup_rows - self.n_warmup, len(rows.y))
        self._keep(rows.part(0, stop))
        return stop

    def _keep(self, rows: LabelledRows) -> None:
        """Keep all of some rows back, and freeze if there are enough."""
        self.n_columns = parts(rows.X).numbers.shape[1]
        self.waiting.append(LabelledRows(together([rows.X]), *(array.copy() for array in rows[1:])))
        if self.n_warmup == self.warmup_rows:
            self.freeze()

    def learn_frozen(self, rows: LabelledRows, predictions: np.ndarray, busy: list[int], again: bool) -> None:
        """Learn rows with view and kernel fixed; parameters as in :meth:`learn`."""
        raise NotImplementedError

    def freeze(self) -> None:
        """Fix view and kernel by the rows kept back, if there are any, and learn these.

        ``warmup_predictions`` then holds what was predicted of them: where all members of a model slept, the mixture
        is evaluated by these predictions.
        """
        if self.frozen or not self.waiting:
            return
        first = self._warmup_rows()
        self.waiting, self._read = [], None
        if self.frozen_view != "raw":
            self.view = create_view(self.frozen_view, first.X)
            transform(self.view, first.X, first.weight)
        usable = np.flatnonzero(first.weight)
        self._freeze(first, usable, labels_of(self.members[0].objective, first.y[usable]))
        predicted = np.empty((len(self.members), len(first.y), self.n_outputs))
        self.learn_frozen(first, predicted, list(range(len(self.members))), again=False)
        self.warmup_predictions = WarmupPredictions(first.y, first.evaluation_weight, predicted)

    def _freeze(self, first: LabelledRows, usable: np.ndarray, labels: np.ndarray) -> None:
        """Fix the kernel by the first rows; ``usable`` are those of weight above 0, which have these labels."""
        raise NotImplementedError

    def take_warmup_predictions(self) -> WarmupPredictions | None:
        taken, self.warmup_predictions = self.warmup_predictions, None
        return taken

    def _warmup_rows(self) -> LabelledRows:
        """The rows kept back, as one block."""
        blocks, *others = zip(*self.waiting, strict=True)
        return LabelledRows(together(list(blocks)), *(np.concatenate(arrays) for arrays in others))

    def _transformed(self, X: Any) -> Any:
        """Rows in the fixed view."""
        return X if self.view is None else transform(self.view, X, np.zeros(n_rows(X)))

    def predict(self, X: Any) -> np.ndarray:
        if self.frozen:
            return self._predict(X)
        if not self.waiting:
            return np.full((len(self.members), n_rows(X), self.n_outputs), np.nan)
        if self._read is None:
            self._read = copy.deepcopy(self)  # frozen on fewer rows than there will be; the bank itself is not
            self._read.freeze()
        return self._read.predict(X)

    def _predict(self, X: Any) -> np.ndarray:
        """What each member predicts of new rows, (M, n, K), with view and kernel fixed."""
        raise NotImplementedError

    def begin_pass(self, busy: list[int]) -> None:
        """Rows that were learned come again, for some of the members; those kept back are learned before."""
        self._read = None
        self.freeze()

    def keep(self, stays: list[int]) -> None:
        self._read = None
        self.members = [self.members[m] for m in stays]

    def add_class(self, objective: Any, n_outputs: int, n_classes: int) -> None:
        self._read = None
        if self.n_outputs == 1 < n_outputs:
            self.waiting = [rows._replace(y=np.where(rows.y > 0, 1.0, 0.0)) for rows in self.waiting]
        self.n_outputs = n_outputs

    def save_state(self, n_features: int) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
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
        self.gamma, self.n_columns = header["gamma"], header["n_columns"]
        if "waiting" in header:
            block = rebuilt(header["waiting"], under("waiting.X.", arrays))
            self.waiting = [
                LabelledRows(block, *(arrays[f"waiting.{name}"] for name in ("y", "weight", "evaluation_weight")))
            ]
        if header["frozen"] and self.frozen_view != "raw":
            self.view = filled("view", views.ALL[self.frozen_view].create(self.n_columns), arrays, {})
