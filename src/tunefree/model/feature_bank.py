"""Linear learners on features of a Gaussian kernel: kernel learners whose memory does not grow.

A view is called ``fourier`` or ``nystroem``, after the features it has, with the width relative to that of the
median rule as a power of two: ``fourier+4`` is exp(-16 gamma_0 ||x - z||^2). The features are of rows in the steady
view. Centres, scales, gamma_0 and landmarks are fixed by the first rows (:mod:`tunefree.model.warmup`): if they moved
on, the features of every row would change, and weights that were learned would belong to other features.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from tunefree.core import threads
from tunefree.core.rows import n_rows, part, reach
from tunefree.core.states import under
from tunefree.kernel import fourier, kernels, nystroem
from tunefree.kernel.fourier import Fourier
from tunefree.kernel.gaussian import Gaussian
from tunefree.kernel.nystroem import Nystroem
from tunefree.kernel.points import as_matrix, points
from tunefree.model.group import LabelledRows
from tunefree.model.members import Member, Setting
from tunefree.model.warmup import WarmupBank

EXPONENTS = range(-6, 9)  # widths are these powers of two times gamma_0
CHUNK = 512  # rows whose features are known at a time


class FeatureBank(WarmupBank):
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
        members = [Member.create(own, average, 1 + self.n_features, n_outputs, objective) for own in settings]
        super().__init__(members, n_outputs)
        self.width = VIEWS[self.view_name][1]

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

    def learn_frozen(self, rows: LabelledRows, predictions: np.ndarray, busy: list[int], again: bool) -> None:
        X, y, weight, _ = rows
        for start in range(0, len(y), CHUNK):
            here = slice(start, min(start + CHUNK, len(y)))
            features = self._features(self._transformed(part(X, here.start, here.stop)))

            def of_member(m: int, features: Any = features, here: slice = here) -> None:
                self.members[m].learn(features, y[here], weight[here], predictions[m, here])

            threads.each(of_member, [(m,) for m in busy], here.stop - here.start)

    def _predict(self, X: Any) -> np.ndarray:
        if self._read is None:
            self._read = [member.weights(1 + self.n_features, self.n_outputs) for member in self.members]
        predictions = np.empty((len(self.members), n_rows(X), self.n_outputs))
        for start in range(0, n_rows(X), CHUNK):
            stop = min(start + CHUNK, n_rows(X))
            features = self._features(self._transformed(part(X, start, stop)))
            for member, read, written in zip(self.members, self._read, predictions, strict=True):
                written[start:stop] = member.predict(features, read)
        return predictions

    def add_class(self, objective: Any, n_outputs: int, n_classes: int) -> None:
        before = self.n_outputs
        super().add_class(objective, n_outputs, n_classes)
        if n_outputs > before:
            for member in self.members:
                member.add_outputs(objective, before, n_outputs)

    def save_state(self, n_features: int) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        arrays, header = super().save_state(n_features)
        header["members"] = []
        for m, member in enumerate(self.members):
            own, own_header = member.save_state(1 + self.n_features)
            arrays |= {f"{m}.{name}": array for name, array in own.items()}
            header["members"].append(own_header)
        return arrays, header

    def restore(self, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        super().restore(arrays, header)
        for m, (member, saved) in enumerate(zip(self.members, header["members"], strict=True)):
            member.restore(under(f"{m}.", arrays), saved)

    def __deepcopy__(self, memo: dict[int, Any]) -> FeatureBank:
        """A copy that learns apart from this bank; states of linear learners have a layout of their own."""
        made = copy.copy(self)
        made.members = [copy.copy(member) for member in self.members]
        for member in made.members:
            member.resize(member.room, self.n_outputs)
        return made


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
