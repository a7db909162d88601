"""Functions of a kernel's space that go on in random Fourier features once they are sums over too many points.

In features (:mod:`.fourier`), sum_i c_i k_m(x_i, .) has the weights sum_i c_i phi_m(x_i). The lags that
averages need are transformed likewise. From then on a row adds its coefficient times its features to the weights, in
memory that does not grow. The learner goes on as the same algorithm, with the kernel phi_m(x) phi_m(z). Predictions
change by the error of this approximation alone. At any row the mean of its square, over draws of h directions, is at
most ||f||^2 / h: it is the error of a mean of h numbers, none larger than |sum_i c_i exp(i w x_i)|, whose square is
||f||^2 on average.

All widths share one set of directions. They are drawn from the kernel's spectral distribution: the normal distribution
for the Gaussian kernel, the Cauchy distribution for the Laplacian (Rahimi, Recht 2007, Figure 1).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tunefree.core.errors import ModelError
from tunefree.core.rows import reach
from tunefree.core.threads import one_for_products
from tunefree.papers.kernel import fourier
from tunefree.papers.kernel.expansion import Expansion
from tunefree.papers.kernel.fourier import Fourier
from tunefree.papers.kernel.kernels import names_of
from tunefree.papers.kernel.points import BLOCK, selected, unpacked
from tunefree.papers.kernel.projection import TILE as DIRECTIONS

SWITCHED = "after {:,} rows kernel learners have more than max_support points and go on in random Fourier features"
LEAST, MOST = 2**12, 2**14  # features: fewer lose much and save little, more are slow


def check(kernel: Any, max_support: int) -> None:
    """Whether functions with this kernel can go on in features beyond so many points.

    Raises
    ------
    ModelError
        If the kernel has no random Fourier features, or ``max_support`` is below 1.
    """
    if kernel.spectral_distribution is None:
        raise ModelError(
            "max_support goes on in random Fourier features, which the kernel "
            f"{type(kernel).__name__.lower()} does not have; choose the kernel "
            f"{' or '.join(names_of('spectral_distribution'))}, or no max_support"
        )
    if max_support < 1:
        raise ModelError(f"max_support must be a whole number above 0, or None, not {max_support}")


def affordable(max_support: int) -> int:
    """Features that take about the memory of so many points, but not so few that much is lost.

    A point of d numbers in single precision, with two coefficients for each function and output, takes as much as a
    feature: half a direction of d numbers in double precision, and two weights.

    Examples
    --------
    >>> affordable(100), affordable(5000), affordable(10**6)
    (4096, 5120, 16384)
    """
    pair = 2 * DIRECTIONS
    return min(max(-(-max_support // pair) * pair, LEAST), MOST)


class FeatureExpansion(Expansion):
    """Weights of features in the place of coefficients of support points; the open block is as before.

    Parameters
    ----------
    kernel, steps, n_outputs, like
        See :class:`tunefree.papers.kernel.expansion.Expansion`.
    n_features : int
        A multiple of twice the directions in a tile.
    """

    def __init__(self, kernel: Any, steps: np.ndarray, n_outputs: int, like: Any, n_features: int) -> None:
        super().__init__(kernel, steps, n_outputs, like)
        self.n = n_features
        shape = (self.n_functions, n_outputs, n_features)
        self.coefficients, self.lags = np.zeros(shape), np.zeros(shape)
        self.directions = Fourier.create(1, n_features // 2, spectral_distribution=kernel.spectral_distribution)
        self.angles = np.zeros((BLOCK, n_features // 2))  # of the open block

    @classmethod
    def of(cls, expansion: Expansion, n_features: int) -> FeatureExpansion:
        """The same functions, whose open block is empty, in features."""
        in_features = cls(expansion.kernel, expansion.steps, expansion.n_outputs, expansion.block, n_features)
        for start in range(0, expansion.n, BLOCK):
            stop = min(start + BLOCK, expansion.n)
            angles = in_features._angles(expansion.store, np.arange(start, stop))
            in_features._add(angles, expansion.coefficients[:, :, start:stop], expansion.lags[:, :, start:stop])
        return in_features

    @property
    def n_support(self) -> int:
        return self.filled

    def open(self, rows: Any, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        first, self.filled = self.filled, self.filled + len(which)
        self.block = self.block.joined(first, rows, which)
        self.angles[first : self.filled] = self._angles(rows, which)[: len(which)]
        known = np.zeros((self.n_functions, BLOCK, self.n_outputs))
        for step, functions in self._by_width():
            features = self._features(self.angles, step)
            with one_for_products():
                self.open_values[step] = features @ features.T
                for m in functions:
                    known[m] = features @ self.coefficients[m].T
        return known, self.open_values

    def close(self) -> None:
        """Add what the rows of the open block have learned to the weights."""
        self._add(self.angles[: self.filled], self.open_coefficients, self.open_lags)
        self.open_coefficients[:], self.open_lags[:], self.angles[:] = 0.0, 0.0, 0.0
        self.block, self.filled = selected(self.block, np.arange(0)), 0

    def _add(self, angles: np.ndarray, coefficients: np.ndarray, lags: np.ndarray) -> None:
        for step, functions in self._by_width():
            features = self._features(angles, step)
            with one_for_products():
                for m in functions:
                    self.coefficients[m] += coefficients[m, :, : len(angles)] @ features
                    self.lags[m] += lags[m, :, : len(angles)] @ features

    def _angles(self, points: Any, which: np.ndarray) -> np.ndarray:
        """Products of some points with the directions."""
        rows = selected(points, which, self.kernel).cut(0, len(which)).as_rows()
        self.directions = fourier.extended(self.directions, reach(rows))
        return fourier.angles(self.directions, rows)

    def _by_width(self) -> list[tuple[int, list[int]]]:
        """The functions, those together that share a step of the grid."""
        functions: dict[int, list[int]] = {}
        for m, step in enumerate(self.steps.tolist()):
            functions.setdefault(step, []).append(m)
        return list(functions.items())

    def _features(self, angles: np.ndarray, step: int) -> np.ndarray:
        """Features (n, D) of which the products are nearly the kernel at a step of the grid."""
        kernel = self.kernel._replace(gamma=self.kernel.gamma * 2.0**step)
        features = np.empty((len(angles), 2 * angles.shape[1]))
        fourier.turn(angles, kernel.frequency_scale(), 1.0 / math.sqrt(angles.shape[1]), features)
        return features

    def values(self, rows: Any, coefficients: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
        values = np.zeros((self.n_functions, rows.size, self.n_outputs))
        weights = coefficients[0].copy()
        widths = self._by_width()
        for step, functions in widths:
            features = self._features(self.angles, step)
            with one_for_products():
                for m in functions:
                    weights[m] += coefficients[1][m] @ features
        angles = np.zeros_like(self.angles)
        for start in range(0, rows.size, BLOCK):
            which = np.arange(start, min(start + BLOCK, rows.size))
            angles[: len(which)] = self._angles(rows, which)
            for step, functions in widths:
                features = self._features(angles, step)
                with one_for_products():
                    for m in functions:
                        values[m, which] = (features @ weights[m].T)[: len(which)]
        return values

    def compact(self) -> None:
        """There are no points to drop."""

    def save_state(self) -> dict[str, np.ndarray]:
        """Arrays from which :meth:`restore` makes the same functions; directions are drawn anew."""
        arrays = {f"open.{name}": value for name, value in self.block.packed(self.filled).items()}
        arrays |= {"coefficients": self.coefficients, "lags": self.lags}
        arrays |= {
            f"open_{name}": getattr(self, f"open_{name}")[:, :, : self.filled] for name in ("coefficients", "lags")
        }
        return arrays

    @classmethod
    def restore(
        cls, kernel: Any, steps: np.ndarray, arrays: dict[str, np.ndarray], device: str | None = None
    ) -> FeatureExpansion:
        """The functions that :meth:`save_state` wrote down; features are always computed on the processor."""
        block = unpacked(arrays, "open.")
        n_outputs, n_features = arrays["coefficients"].shape[1:]
        restored = cls(kernel, steps, n_outputs, block, n_features)
        restored.filled = block.size
        restored.block = restored.block.joined(0, block, np.arange(restored.filled))
        if restored.filled:
            restored.angles[: restored.filled] = restored._angles(block, np.arange(restored.filled))
        for name in ("coefficients", "lags"):
            getattr(restored, name)[:] = arrays[name]
            getattr(restored, f"open_{name}")[:, :, : restored.filled] = arrays[f"open_{name}"]
        return restored
