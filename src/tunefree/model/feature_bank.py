"""Linear learners on features of a Gaussian kernel: kernel learners whose memory does not grow.

A view is called ``fourier`` or ``nystroem``, after the features it has, with the width relative to that of the
median rule as a power of two: ``fourier+4`` is exp(-16 gamma_0 ||x - z||^2). The features are of rows in the steady
view. Centres, scales, gamma_0 and landmarks are fixed by the first rows (:mod:`tunefree.model.warmup`): if they moved
on, the features of every row would change, and weights that were learned would belong to other features.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tunefree.core.rows import reach
from tunefree.core.states import under
from tunefree.kernel import fourier, kernels, nystroem
from tunefree.kernel.fourier import Fourier
from tunefree.kernel.gaussian import Gaussian
from tunefree.kernel.nystroem import Nystroem
from tunefree.kernel.points import as_matrix, points
from tunefree.model.group import LabelledRows
from tunefree.model.linear_bank import CHUNK, LinearBank
from tunefree.model.members import Setting

EXPONENTS = range(-6, 9)  # widths are these powers of two times gamma_0


class FeatureBank(LinearBank):
    """Linear learners on the same features of a kernel; a subclass for each kind of features.

    Parameters
    ----------
    settings : list of Setting
        The members, one view for all.
    objective : objective
    n_outputs : int
    average : bool
        Whether the members' weights are the averages of their iterates.
    """

    frozen_view = "steady"
    uses_threads = False
    n_features: int

    def __init__(self, settings: list[Setting], objective: Any, n_outputs: int, average: bool) -> None:
        super().__init__(settings, objective, n_outputs, average)
        self.width = VIEWS[self.view_name][1]

    @property
    def n_member_features(self) -> int:
        return 1 + self.n_features

    @property
    def frozen(self) -> bool:
        return self.gamma > 0.0

    def _freeze(self, first: LabelledRows, usable: np.ndarray, labels: np.ndarray) -> None:
        rows = as_matrix(points(self._transformed(first.X), Gaussian(1.0), np.float64))[usable]
        self.gamma = kernels.median_gamma(rows, labels)
        self._make(self._transformed(first.X), usable)

    def _make(self, X: Any, usable: np.ndarray) -> None:
        """Fix the features by rows in the steady view, those that are usable."""
        raise NotImplementedError

    def _features(self, X: Any) -> Any:
        """Features of rows in the steady view."""
        raise NotImplementedError

    def _seen(self, X: Any, members: list[int]) -> dict[str, Any]:
        return {self.view_name: self._features(self._transformed(X))}

    def learn_frozen(self, rows: LabelledRows, predictions: np.ndarray, busy: list[int], again: bool) -> None:
        for start in range(0, len(rows.y), CHUNK):
            chunk = rows.part(start, min(start + CHUNK, len(rows.y)))
            self._learn_seen(self._seen(chunk.X, busy), chunk, predictions[:, start : start + CHUNK], busy)


class FourierBank(FeatureBank):
    """Random Fourier features; a feature's direction is drawn when the feature is first met."""

    n_features = 2 * fourier.N_FREQUENCIES

    def __init__(self, settings: list[Setting], objective: Any, n_outputs: int, average: bool) -> None:
        super().__init__(settings, objective, n_outputs, average)
        self.directions = Fourier.create(1)

    def _make(self, X: Any, usable: np.ndarray) -> None:
        pass  # they do not depend on the rows

    def _features(self, X: Any) -> Any:
        self.directions = fourier.extended(self.directions, reach(X))
        return fourier.features(fourier.angles(self.directions, X), self.gamma * self.width, X.constant)


class NystroemBank(FeatureBank):
    """Nyström's features; landmarks are among the first rows."""

    n_features = nystroem.N_LANDMARKS

    def __init__(self, settings: list[Setting], objective: Any, n_outputs: int, average: bool) -> None:
        super().__init__(settings, objective, n_outputs, average)
        self.landmarks: Any = None  # once the bank is frozen

    def _make(self, X: Any, usable: np.ndarray) -> None:
        self.landmarks = Nystroem.create(X, reach(X), self.gamma * self.width, usable)

    def _features(self, X: Any) -> Any:
        return nystroem.features(self.landmarks, X, X.constant)

    def save_state(self, n_features: int) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        arrays, header = super().save_state(n_features)
        known = {} if self.landmarks is None else self.landmarks._asdict()
        arrays |= {f"landmarks.{name}": np.asarray(value) for name, value in known.items()}
        return arrays, header

    def restore(self, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        super().restore(arrays, header)
        known: dict[str, Any] = under("landmarks.", arrays)
        if known:
            self.landmarks = Nystroem(**{**known, "limit": int(known["limit"])})


BANKS: dict[str, type[FeatureBank]] = {"fourier": FourierBank, "nystroem": NystroemBank}
VIEWS = {f"{kind}{f'{j:+d}' if j else ''}": (kind, 2.0**j) for kind in BANKS for j in EXPONENTS}
