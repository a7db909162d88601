"""PiSTOL, parameter-free stochastic online learning, and its coordinate-wise version.

Orabona: Simultaneous model selection and optimization through parameter-free stochastic learning (NIPS 2014),
Algorithm 3 and, in arXiv:1406.3816, Appendix A. As printed, alpha_0 = a L, and ||k(x_t, .)|| <= 1 is assumed.

``normalised`` removes this assumption. M_t = max ||k(x_s, .)||, s <= t, is updated before the prediction, and the
algorithm runs on k(x_t, .) / M_t. When M grows, the statistics are converted to units of the larger M:

    alpha_{t-1} = a M_t (L M_t + sum_{s<t} |s_s| ||k(x_s, .)||),    f_t = g_{t-1} b / alpha_{t-1} exp(..).

If the largest norm is 1 from the first round on, this is the printed algorithm. Its bound is proved in
:func:`tunefree.papers.pistol_bound.growing_pistol_bound`: a growing M lowers the potential.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tunefree.papers.algorithm import Algorithm, Stream, over
from tunefree.papers.pistol_bound import growing_pistol_bound, log_phi
from tunefree.papers.pistol_risk import pistol_bound, pistol_parameter
from tunefree.papers.spaces import KernelAlgorithm
from tunefree.theory.bounds import Bound, no_bound

PAPER = "Orabona 2014"
LARGEST_NORM = 1.0 + 1e-12  # bound on norms, with a tolerance for rounding


class PiSTOLParameters(Algorithm):
    """The parameters a, b and L of the paper."""

    a: float | None
    L: float | None

    def take_parameters(self, stream: Stream) -> None:
        """Set a and L, with defaults for parameters that are None."""
        self.lipschitz = stream.lipschitz if self.L is None else self.L
        if not self.lipschitz < math.inf:
            raise ValueError("PiSTOL needs the Lipschitz constant of the loss, and this loss has none: pass L")
        self.a_used = pistol_parameter() * self.lipschitz if self.a is None else self.a

    def reason_against(self, result: Any, largest: float, most: float, of_rows: str) -> Bound | None:
        """Return the reason why the theorem does not apply, or None if it does."""
        if np.abs(result.slopes).max(initial=0.0) > self.lipschitz * LARGEST_NORM:
            return no_bound(f"a slope exceeds L = {self.lipschitz:g}")
        if largest > most:
            return no_bound(f"the theorem assumes {of_rows} <= 1, and the largest is {largest:.6g}")
        if log_phi(self.lipschitz / self.a_used) == math.inf:
            return no_bound(f"the theorem assumes a >= 2.25 L, and a / L is {self.a_used / self.lipschitz:g}")
        return None


class PiSTOL(PiSTOLParameters, KernelAlgorithm):
    """PiSTOL (Algorithm 3), for any kernel.

    Parameters
    ----------
    a : float, optional
        At least 2.25 L for the theorem, in units of the slopes, as in the paper. By default the value with the least
        bound, :func:`tunefree.papers.pistol_risk.pistol_parameter` times L.
    b : float or {"horizon"}, default 1
        ``"horizon"`` is sqrt(2 a L T), as in the paper's experiments, where T is known.
    L : float, optional
        Bound on the slopes; by default the Lipschitz constant of the loss.
    normalised : bool, default False
        Whether to normalise by the largest norm so far. The paper assumes norms of at most 1.
    **kernel
        As for :class:`tunefree.papers.spaces.KernelAlgorithm`.

    Examples
    --------
    >>> from tunefree.papers import play
    >>> X, y = [[0.5, 0.5], [0.5, -0.5], [-0.5, 0.5]], [1, 1, -1]
    >>> result = play(PiSTOL(kernel="gaussian", gamma=0.5), X, y)
    >>> result.predictions.round(4).tolist()
    [0.0, 0.0671, 0.0835]
    >>> print(play(PiSTOL(a=4.0), X, y).bound([1.0, 0.0]))
    at most 6.93802 (Orabona 2014, Theorem 1)
    """

    parameters = ("a", "b", "kernel", "gamma", "normalised")

    def __init__(
        self,
        a: float | None = None,
        b: float | str = 1.0,
        L: float | None = None,
        normalised: bool = False,
        **kernel: Any,
    ) -> None:
        super().__init__(**kernel)
        self.a, self.b, self.L, self.normalised = a, b, L, normalised

    @classmethod
    def in_experiments(cls, **kernel: Any) -> PiSTOL:
        """Return PiSTOL with the parameters of Appendix C: a = 0.25, L = 2 (smoothed hinge), b = sqrt(2 a L T)."""
        return cls(a=0.25, b="horizon", **kernel)

    def begin(self, stream: Stream) -> None:
        super().begin(stream)  # f is g
        self.take_parameters(stream)
        L, a = self.lipschitz, self.a_used
        self.b_used = math.sqrt(2.0 * a * L * stream.rounds) if self.b == "horizon" else float(self.b)
        # line 2: g_0 = 0, alpha_0 = a L; alpha = a (L + path)
        self.squared_norm, self.path = np.zeros(stream.n_outputs), np.zeros(stream.n_outputs)
        self.M = 0.0 if self.normalised else 1.0

    @property
    def scale(self) -> np.ndarray:  # type: ignore[override]
        """Line 4: b / alpha exp(||g||^2 / (2 alpha))."""
        if self.M == 0.0:
            return np.zeros_like(self.path)
        alpha = self.a_used * self.M * (self.lipschitz * self.M + self.path)
        return self.b_used / alpha * np.exp(self.squared_norm / (2.0 * alpha))

    def predict(self, x: np.ndarray) -> np.ndarray:
        self.size = math.sqrt(self.f.squared_size(x))  # ||k(x_t, .)||
        if self.normalised:
            self.M = max(self.M, self.size)
        self.value = self.f.at(x)  # g_{t-1}(x_t)
        return self.scale * self.value

    def update(self, x: np.ndarray, slope: np.ndarray) -> None:
        # line 8: g_t = g_{t-1} - s_t k(x_t, .),  alpha_t = alpha_{t-1} + a |s_t| ||k(x_t, .)||
        change = slope * (slope * self.size**2 - 2.0 * self.value)  # ||g_t||^2 - ||g_{t-1}||^2
        self.squared_norm = np.maximum(self.squared_norm + change, 0.0)
        self.f.add(x, -slope)
        self.path = self.path + np.abs(slope) * self.size

    def bound(self, result: Any, comparator: Any) -> Bound:
        """Theorem 1, for each output.

        The theorem prints the sum of |s_t| up to T - 1, but its proof bounds the regret by alpha_T, which includes s_T.
        Here the sum is up to T, as in the proof.
        """
        sizes = result.sizes
        reason = self.reason_against(result, sizes.max(), math.inf if self.normalised else LARGEST_NORM, "||k(x, .)||")
        if reason:
            return reason
        L, a, T = self.lipschitz, self.a_used / self.lipschitz, result.rounds
        b = (math.sqrt(2.0 * self.a_used * L * result.stream.rounds) if self.b == "horizon" else float(self.b)) / L
        slopes = np.abs(result.slopes.reshape(T, -1)) / L
        if not self.normalised:
            pairs = zip(comparator.norms, slopes.sum(axis=0), strict=True)
            return Bound(
                float(L * sum(pistol_bound(norm, total, T, a, b) for norm, total in pairs)), f"{PAPER}, Theorem 1"
            )
        learned, paths = sizes[sizes > 0.0], slopes.T @ sizes
        if not len(learned):
            return Bound(0.0, f"{PAPER}, Theorem 1")
        first, last = learned[0], learned.max()
        bounds = growing_pistol_bound(comparator.norms * last, paths / last, paths / first, a, b)
        return Bound(L * float(bounds.sum()), f"{PAPER}, Theorem 1 with a growing norm of the rows")


class CoordinatePiSTOL(PiSTOLParameters):
    """One copy of PiSTOL for each coordinate (Appendix A).

    Parameters
    ----------
    a, L
        As for :class:`PiSTOL`.
    b : float, optional
        By default the paper's 1 / d.

    Examples
    --------
    >>> from tunefree.papers import play
    >>> result = play(CoordinatePiSTOL(a=4.0), [[0.5, 0.5], [0.5, -0.5], [-0.5, 0.5]], [1, 1, -1])
    >>> print(result.bound([1.0, 0.0]))
    at most 12.2377 (Orabona 2014, Corollary 3)
    """

    parameters = ("a", "b")

    def __init__(self, a: float | None = None, b: float | None = None, L: float | None = None) -> None:
        self.a, self.b, self.L = a, b, L

    def begin(self, stream: Stream) -> None:
        self.take_parameters(stream)
        self.b_used = 1.0 / stream.n_features if self.b is None else float(self.b)
        self.g = np.zeros((stream.n_features, stream.n_outputs))
        self.alpha = np.full_like(self.g, self.a_used * self.lipschitz)

    @property
    def weights(self) -> np.ndarray:
        """w_{t,i} = g_{t-1,i} b / alpha_{t-1,i} exp(g_{t-1,i}^2 / (2 alpha_{t-1,i}))."""
        return self.g * over(self.b_used, self.alpha) * np.exp(self.g**2 / (2.0 * self.alpha))

    def predict(self, x: np.ndarray) -> np.ndarray:
        return x @ self.weights

    def update(self, x: np.ndarray, slope: np.ndarray) -> None:
        gradient = np.outer(x, slope)  # s_{i,t}
        self.g, self.alpha = self.g - gradient, self.alpha + self.a_used * np.abs(gradient)

    def bound(self, result: Any, comparator: Any) -> Bound:
        """Corollary 3 of Appendix A, with sums up to T as in :meth:`PiSTOL.bound`."""
        reason = self.reason_against(result, float(np.abs(result.X).max()), LARGEST_NORM, "|x_i|")
        if reason:
            return reason
        L, T = self.lipschitz, result.rounds
        paths = np.abs(result.X).T @ np.abs(result.slopes.reshape(T, -1)) / L
        largest = np.broadcast_to(np.abs(comparator.weights).max(axis=0), paths.shape)
        a, b = self.a_used / L, (1.0 / result.stream.n_features if self.b is None else self.b) / L
        bounds = [pistol_bound(u, path, T, a, b) for u, path in zip(largest.flat, paths.flat, strict=True)]
        return Bound(float(L * sum(bounds)), f"{PAPER}, Corollary 3")
