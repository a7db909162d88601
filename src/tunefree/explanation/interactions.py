"""Which pairs of columns act together: how much larger the loss is where their joint effect is taken out.

With a row x, and another x' that is drawn from the rows, the part of the margin f that needs both columns of a pair is
the mean over x' of

    f(x) - f(x with x'_1) - f(x with x'_2) + f(x with x'_1, x'_2),

which is 0 where f is a sum of functions of which none has both (Liu, Owen: Estimating mean dimension of analysis of
variance decompositions, JASA 2006; Hooker: Discovering additive structure in black box functions, KDD 2004). This part
is subtracted from the margins of rows that the trees do not know. An interaction that the trees have made up
is a loss on these, so the loss rises beyond noise where the columns interact in the data, too.
"""

from __future__ import annotations

from itertools import combinations
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from scipy.special import log_softmax

from tunefree.explanation.decomposition import Decomposition
from tunefree.explanation.importance import CHANCE, Importance, NewRows, PermutedRows

MOST_COLUMNS = 6  # whose pairs are looked at: those that matter most
DRAWS = 4  # of another row
MOST_ROWS = 2**10  # that judge


class Interaction(NamedTuple):
    """A pair of columns, and how much larger the loss is without their joint effect."""

    names: tuple[str, str]
    size: float
    error: float  # its standard error over the rows
    noise: float  # the size that columns that do not interact hardly exceed


def interactions(decomposition: Decomposition, ranked: Importance) -> list[Interaction]:
    """The pairs of the columns that matter most, the largest size first; none where importance is no rise of a loss."""
    terms = ranked.terms[: min(ranked.n_beyond, MOST_COLUMNS)].tolist()
    if ranked.judges is None or len(terms) < 2:
        return []
    pairs = list(combinations(range(len(terms)), 2))
    new = ranked.judges.some(MOST_ROWS)
    column_terms = decomposition.terms.of_keys(new.pool.members.growth.columns.keys)
    rises = _rises(new, [np.flatnonzero(column_terms == term) for term in terms], pairs)
    deviates = NormalDist().inv_cdf(1.0 - CHANCE / len(pairs))
    names = [decomposition.names[term] for term in terms]
    measured = [
        Interaction((names[first], names[second]), size, error, deviates * error)
        for (first, second), (size, error) in zip(pairs, rises, strict=True)
    ]
    return sorted(measured, key=lambda pair: (pair.size <= pair.noise, -pair.size))


def _rises(new: NewRows, places: list[np.ndarray], pairs: list[tuple[int, int]]) -> list[tuple[float, float]]:
    """By how much the mean loss rises without the joint effect of each pair of columns, and its error."""
    permuted, draws = PermutedRows(new), np.random.default_rng(new.learned)
    margins = _centred(new, permuted.margins())
    joint = np.zeros((len(pairs), *margins.shape))
    for _ in range(DRAWS):
        order = new.order(draws)
        single = [_centred(new, permuted.margins(columns, order)) for columns in places]
        for effect, (first, second) in zip(joint, pairs, strict=True):
            both = _centred(new, permuted.margins(np.concatenate([places[first], places[second]]), order))
            effect += ((margins - single[first]) - (single[second] - both)) / DRAWS
    losses = new.losses(_normalised(new, margins))
    return [new.mean(new.losses(_normalised(new, margins - effect)) - losses) for effect in joint]


def _centred(new: NewRows, margins: np.ndarray) -> np.ndarray:
    """Numbers as they are, and logarithms of probabilities less their mean, which are additive where log-odds are."""
    return margins if new.pool.members.loss is not None else margins - margins.mean(axis=1, keepdims=True)


def _normalised(new: NewRows, margins: np.ndarray) -> np.ndarray:
    """Numbers as they are, and logarithms of probabilities that add up to 1."""
    return margins if new.pool.members.loss is not None else log_softmax(margins, axis=1)
