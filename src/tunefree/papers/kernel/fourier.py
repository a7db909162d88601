"""Random Fourier features: rows on which a linear learner learns what it would with a Gaussian kernel.

Rahimi, Recht: Random features for large-scale kernel machines (NIPS 2007), Algorithm 1 with both cosine and sine,

    phi(x) = sqrt(1 / h) [cos(w_1 x), ..., cos(w_h x), sin(w_1 x), ..., sin(w_h x)],    w_i ~ N(0, 2 gamma I),

so that phi(x) phi(z) is the mean of h cosines of w_i (x - z), whose expectation is exp(-gamma ||x - z||^2): it is off
by about sqrt(1 / h) at most. As many features with one cosine and a random phase each are worse for near rows
(Sutherland, Schneider: On the error of random Fourier features, UAI 2015). One set of directions serves all widths:
w_i x for gamma is sqrt(2 gamma) times that of standard normal directions, which is the costly part.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from tunefree.core.kernels import kernel
from tunefree.core.numbers import clip
from tunefree.core.registry import Registry
from tunefree.papers.kernel.projection import TILE, products_with, tiles_of

N_FREQUENCIES = 4096  # h
MOST_NUMBERS = 2**23  # of directions
FASTEST = 1e9  # angles beyond have lost their digits
# pi / 2 in three parts, the first two of which are exact in products with integers below 2^20, and Taylor's series
# between -pi / 4 and pi / 4 with the last coefficients moved, both from FreeBSD's msun.
PARTS = (1.57079632673412561417e00, 6.07710050630396597660e-11, 2.02226624879595063154e-21)
S = (-1.66666666666666324348e-01, 8.33333333332248946124e-03, -1.98412698298579493134e-04, 2.75573137070700676789e-06)
S_LAST = (-2.50507602534068634195e-08, 1.58969099521155010221e-10)
C = (4.16666666666666019037e-02, -1.38888888888741095749e-03, 2.48015872894767294178e-05, -2.75573143513906633035e-07)
C_LAST = (2.08757232129817482790e-09, -1.13596475577881948265e-11)


SPECTRAL_DISTRIBUTIONS = Registry(
    "spectral distribution",
    {"normal": "tunefree.papers.kernel.fourier:normal", "cauchy": "tunefree.papers.kernel.fourier:cauchy"},
)


class Fourier(NamedTuple):
    """Directions, and which features share them."""

    directions: np.ndarray  # (h / TILE, rows, TILE) of the features met, up to the limit; never changed
    limit: int  # features from here on are hashed
    seed: int
    spectral_distribution: str = "normal"  # of the directions: a name in SPECTRAL_DISTRIBUTIONS

    @classmethod
    def create(
        cls, n_features: int, n_frequencies: int = N_FREQUENCIES, seed: int = 0, spectral_distribution: str = "normal"
    ) -> Fourier:
        """Directions for features below ``n_features``; they are multiples of TILE."""
        tiles = tiles_of(n_frequencies)
        blank = cls(np.zeros((tiles, 0, TILE)), MOST_NUMBERS // (tiles * TILE), seed, spectral_distribution)
        return extended(blank, n_features)


def extended(fourier: Fourier, n_features: int) -> Fourier:
    """The same directions, of more features. A feature's own depend on the seed and on itself only."""
    tiles, held, _ = fourier.directions.shape
    wanted = min(n_features, fourier.limit)
    if wanted <= held:
        return fourier
    room = min(max(wanted, 2 * held), fourier.limit)
    directions = np.empty((tiles, room, TILE))
    directions[:, :held] = fourier.directions
    draw = SPECTRAL_DISTRIBUTIONS[fourier.spectral_distribution]
    for j in range(held, room):
        directions[:, j] = draw(fourier.seed, j, tiles * TILE).reshape(tiles, TILE)
    return fourier._replace(directions=directions)


def normal(seed: int, feature: int, n: int) -> np.ndarray:
    """Standard normal numbers (n,) of a feature; the first of them do not depend on ``n``.

    They come from the counter-based generator Philox (Salmon, Moraes, Dror, Shaw: Parallel random numbers, SC 2011) by
    Box and Muller's transformation: what NumPy makes of its generators' bits may change with its version, the bits not.
    """
    uniform = between_0_and_1(seed, feature, n + n % 2)
    radius, angle = np.sqrt(-2.0 * np.log(uniform[::2])), 2.0 * math.pi * uniform[1::2]
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1).ravel()[:n]


def cauchy(seed: int, feature: int, n: int) -> np.ndarray:
    """Numbers (n,) of a feature with a Cauchy distribution, whose characteristic function is exp(-|t|)."""
    return np.tan(math.pi * (between_0_and_1(seed, feature, n) - 0.5))


def between_0_and_1(seed: int, feature: int, n: int) -> np.ndarray:
    """Uniform numbers (n,) of a feature, never 0 or 1."""
    bits = np.random.Philox(key=np.array([seed, feature], np.uint64)).random_raw(n) >> np.uint64(11)
    return (bits.astype(np.float64) + 0.5) * 2.0**-53


def angles(fourier: Fourier, X: Any) -> np.ndarray:
    """Products (n, h) of rows with the directions, for all widths."""
    return products_with(X, fourier.directions, fourier.limit)


@kernel
def turn(
    angles: Annotated[np.ndarray, "float64[rows, frequencies]"],
    frequency_scale: float,
    length: float,
    written: Annotated[np.ndarray, "float64[rows, features]"],
) -> None:
    """Write cosines, then sines, of angles, which are multiplied by a scale; of twice as many features."""
    h = angles.shape[1]
    for i in range(len(angles)):
        cosines, sines = written[i, :h], written[i, h:]
        for m in range(h):
            cosine, sine = cosine_and_sine(clip(frequency_scale * angles[i, m], FASTEST))
            cosines[m], sines[m] = length * cosine, length * sine


def cosine_and_sine(angle):
    """Both at once, without branches: ten times as fast as the library's, which do one number at a time."""
    turns = math.floor(angle * (2.0 / math.pi) + 0.5)
    rest = ((angle - turns * PARTS[0]) - turns * PARTS[1]) - turns * PARTS[2]
    z = rest * rest
    high, low = S_LAST[0] + z * S_LAST[1], C_LAST[0] + z * C_LAST[1]
    s = rest + rest * z * (S[0] + z * (S[1] + z * (S[2] + z * (S[3] + z * high))))
    c = 1.0 - 0.5 * z + z * z * (C[0] + z * (C[1] + z * (C[2] + z * (C[3] + z * low))))
    quarter = turns - 4.0 * math.floor(0.25 * turns)
    odd = quarter == 1.0 or quarter == 3.0
    cosine, sine = s if odd else c, c if odd else s
    return (-cosine if 0.5 < quarter < 2.5 else cosine), (-sine if quarter > 1.5 else sine)
