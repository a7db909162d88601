"""Importance of columns: the increase of the loss when a column is permuted.

Breiman: Random forests (Machine Learning 2001), section 10; Fisher, Rudin, Dominici: All models are wrong, but many are
useful (JMLR 2019), eq. 3. With the loss l, the prediction f, and a permutation p of the rows, the importance of the
columns S is the mean over the rows of

    l(y_i, f(x_i with x_S of row p(i))) - l(y_i, f(x_i)).

The prediction uses generations of trees as they were grown, and the rows are kept rows of the pool that these
generations have not learned. If S is independent of the other columns and of the target, permuted rows have the same
distribution as the rows themselves, so the expectation is 0, whatever the trees have learned.

The joint effect of a pair of columns on the margin f is the mean, over another row x' drawn from the rows, of

    f(x) - f(x with x'_1) - f(x with x'_2) + f(x with x'_1, x'_2).

It is 0 if f is a sum of functions that depend on at most one of the two columns (Liu, Owen: Estimating mean dimension
of analysis of variance decompositions, JASA 2006; Hooker: Discovering additive structure in black box functions, KDD
2004). The importance of an interaction is the increase of the loss when the joint effect is subtracted from the margin.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations, pairwise
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from scipy.special import log_softmax

from tunefree.explanation.decomposition import Decomposition
from tunefree.explanation.members import evenly_spaced
from tunefree.generations.generation import Birth, Generation
from tunefree.generations.reservoir import hashed, mixed
from tunefree.losses.rates import has_rates
from tunefree.mixing.bases import LEAST
from tunefree.pool.contexts import NEW
from tunefree.pool.members import predictions_of
from tunefree.pool.slots import WHOLE

MOST_ROWS = 512  # rows for importances by contributions
ERROR_RATE = 0.05  # probability that the importance of any useless column exceeds its noise
MOST_PREDICTIONS = 2**18  # limit on the number of predicted rows, for all columns together
FEWEST_TEST_ROWS, MOST_TEST_ROWS = 2**7, 2**12  # bounds on test rows; the lower one overrides MOST_PREDICTIONS
ENOUGH_ROWS = 2**11  # test rows; if there are fewer, trees are grown for cross-validation
N_FOLDS, FEW_ROWS = 3, 2**12  # folds of the rows; with more rows than FEW_ROWS only the first fold is tested
MOST_TRAINING_ROWS = 2**13  # training rows of cross-validation
MOST_REPEATS = 8  # maximum number of permutations
MOST_NUMBERS = 2**22  # limit on the size of the members' predictions
MOST_PAIRED = 6  # number of most important columns whose pairs are examined
DRAWS, MOST_PAIR_ROWS = 4, 2**10  # draws of another row, and maximum number of test rows, for pairs
NEWEST, PREVIOUS = 0, 1  # ages of generations
NO_INDICES = np.zeros(0, np.intp)


class Importance(NamedTuple):
    """Columns or pairs in descending importance; columns beyond noise come first."""

    terms: np.ndarray  # (t,) indices of terms, or (t, 2) for pairs
    names: list[str]
    sizes: np.ndarray  # (t,) increase of the loss, or mean absolute contribution
    errors: np.ndarray  # (t,) standard error of the size over the rows
    noise: np.ndarray  # (t,) size that a useless column rarely exceeds; 0 if unknown
    rows: int
    judges: NewRows | None  # test rows, if importance is an increase of the loss; None for contributions

    @property
    def n_beyond(self) -> int:
        """Number of columns whose importance exceeds noise."""
        return int(np.count_nonzero(self.sizes > self.noise))


def importance(decomposition: Decomposition, output: int | None = None) -> Importance:
    """Compute the importance of columns, for one margin or for all.

    For a pool that keeps rows, it is the increase of the loss when a column is permuted, on rows that the trees have
    not learned. For other models it is the mean absolute contribution over the reference.
    """
    new = None if decomposition.pool is None else NewRows.of(decomposition.pool)
    return _by_contributions(decomposition, output) if new is None else _by_loss(decomposition, new, output)


def interactions(decomposition: Decomposition, ranked: Importance) -> Importance | None:
    """Compute the importance of pairs of the most important columns; None if there are no pairs or no test rows."""
    terms = ranked.terms[: min(ranked.n_beyond, MOST_PAIRED)]
    if ranked.judges is None or len(terms) < 2:
        return None
    pairs = np.array(list(combinations(range(len(terms)), 2)))
    new, names = ranked.judges.some(MOST_PAIR_ROWS), [decomposition.names[term] for term in terms.tolist()]
    columns = _columns_of_terms(decomposition, new.pool)
    rises = new.rises_of_pairs([columns[term] for term in terms.tolist()], pairs.tolist())
    return _ranked(terms[pairs], [f"{names[first]} x {names[second]}" for first, second in pairs], rises, new)


def _by_loss(decomposition: Decomposition, new: NewRows, output: int | None) -> Importance:
    columns = _columns_of_terms(decomposition, new.pool)
    rises = new.rises([*columns.values()], output)
    ranked: Any = _ranked(np.array([*columns]), [decomposition.names[term] for term in columns], rises, new)
    n = int(np.count_nonzero(ranked.errors))  # columns that change no prediction come last, and are dropped
    return Importance(*(column[:n] for column in ranked[:5]), *ranked[5:])


def _columns_of_terms(decomposition: Decomposition, pool: Any) -> dict[int, np.ndarray]:
    """Return the indices of the columns of each term among the keys of the pool."""
    terms = decomposition.terms.term_indices(pool.members.growth.columns.keys)
    return {term: np.flatnonzero(terms == term) for term in np.unique(terms).tolist()}


def _ranked(terms: np.ndarray, names: list[str], rises: Iterable[tuple[float, float]], new: NewRows) -> Importance:
    """Return importances from increases of the loss and standard errors; noise is corrected for multiple testing."""
    sizes, errors = np.array(list(rises)).reshape(-1, 2).T
    noise = NormalDist().inv_cdf(1.0 - ERROR_RATE / len(terms)) * errors
    order = np.lexsort([-sizes, sizes <= noise, errors == 0.0])
    columns = sizes[order], errors[order], noise[order]
    return Importance(terms[order], [names[k] for k in order.tolist()], *columns, len(new.targets), new)


def _by_contributions(decomposition: Decomposition, output: int | None) -> Importance:
    rows = decomposition.reference_rows(MOST_ROWS)
    outputs = slice(None) if output is None else slice(output, output + 1)
    sizes = np.abs(decomposition.contributions(rows)[:, 1:, outputs]).mean(axis=2)
    with np.errstate(over="ignore"):
        means, errors = sizes.mean(axis=0), sizes.std(axis=0) / np.sqrt(len(sizes))
    order = np.argsort(-means, kind="stable")
    order = order[means[order] > 0.0]
    names = [decomposition.names[1 + k] for k in order.tolist()]
    return Importance(1 + order, names, means[order], errors[order], np.zeros(len(order)), len(sizes), None)


def describe_reference(decomposition: Decomposition) -> str:
    """Return a sentence on contributions: the prediction they add up to, and the rows they are relative to."""
    rows = decomposition.reference.matrix if decomposition.reference.rows is not None else ()
    relative = f"to their mean over {len(rows):,} rows" if len(rows) else "to a row without known values"
    return f"Contributions add up to the {margin_name(decomposition)}, and are relative {relative}."


def describe_importance(decomposition: Decomposition, columns: Importance) -> str:
    """Return a sentence on importance: the measured quantity, and its standard error or noise."""
    if columns.judges is None:
        return (
            f"Importance: mean absolute contribution to the {margin_name(decomposition)}, over {columns.rows:,} rows;"
            " the standard error is for this mean."
        )
    return (
        f"Importance: how much larger the mean loss is where the column is permuted, over {columns.rows:,} rows that"
        f" trees grown on {columns.judges.learned:,} others do not know. Noise: the importance that one without use"
        f" exceeds with a probability of {ERROR_RATE:g} divided by the number of columns."
    )


def margin_name(decomposition: Decomposition) -> str:
    """Return the name of the model's margins, such as log-odds."""
    if decomposition.model.task == "regression":
        return "logarithm of the prediction" if has_rates(decomposition.model.options.loss) else "prediction"
    if not decomposition.model.loss_is_log_loss:
        return "margin"
    return "log-odds" if decomposition.model.n_outputs == 1 else "centred log-probability"


class Fold(NamedTuple):
    """Generations of a pool, and test rows that these have not learned."""

    generations: list[tuple[int, str, int, Any]]  # clock, kind, age, and generation without later corrections
    rows: np.ndarray  # (n,) indices among the kept rows


class NewRows:
    """Test rows of a pool, which the generations of trees in each part have not learned, part after part."""

    def __init__(self, pool: Any, kept: dict[str, np.ndarray], parts: list[Fold]) -> None:
        self.pool, self.kept, self.parts = pool, kept, parts
        self.ends = np.cumsum([0, *(len(part.rows) for part in parts)])
        rows = np.concatenate([part.rows for part in parts])
        self.matrix, self.targets, self.weights = (kept[name][rows] for name in ("columns", "targets", "weights"))

    @classmethod
    def of(cls, pool: Any) -> NewRows | None:
        """Return the rows that came after the previous generations were grown, or if these are few, cross-validate.

        Cross-validation tests each third of the rows, or one third of many rows, by trees grown on the others. Returns
        None if there are no rows, or no trees.
        """
        growth, members = pool.members.growth, pool.members
        if growth is None or not growth.whole.rows:
            return None
        kept, n_columns = growth.whole.kept(), len(growth.columns.keys)
        kept["columns"] = growth.columns.completed(kept["columns"])
        repeats = pool.context is not pool.contexts[NEW]  # whether most rows to come repeat known ones
        parts = _later_rows(pool, kept["digests"], repeats)
        if sum(len(part.rows) for part in parts) < min(len(kept["targets"]) // 2, ENOUGH_ROWS):
            parts = _cross_validation(growth, kept, repeats) or parts
        parts = [part for part in parts if len(part.rows)]
        if not parts:
            return None
        most = min(MOST_PREDICTIONS // n_columns, MOST_NUMBERS // (len(members.names) * max(members.width, 1)))
        return cls(pool, kept, parts).some(int(np.clip(most, FEWEST_TEST_ROWS, MOST_TEST_ROWS)))

    def some(self, most: int) -> NewRows:
        """Return at most ``most`` of the rows, evenly spaced."""
        shares = [max(most * len(part.rows) // len(self.targets), 1) for part in self.parts]
        rows = [part.rows[evenly_spaced(len(part.rows), n)] for part, n in zip(self.parts, shares, strict=True)]
        parts = [Fold(part.generations, some) for part, some in zip(self.parts, rows, strict=True)]
        return NewRows(self.pool, self.kept, parts)

    def margins(self, indices: np.ndarray = NO_INDICES, order: Any = None) -> np.ndarray:
        """Return predictions (n, K) of the base mixture, with the columns at ``indices`` permuted by ``order``."""
        matrix = self.matrix.copy()
        if len(indices):
            matrix[:, indices] = matrix[order][:, indices]
        predictions = self.pool.members.asleep(len(matrix))
        for part, ends in zip(self.parts, pairwise(self.ends), strict=True):  # online members sleep
            rows = slice(*ends)
            predictions[rows] = predictions_of(self.pool.members, np.nan, part.generations, matrix[rows])
        margins: np.ndarray = self.pool.context.mixture.predict(predictions, self.pool.has_finished, is_base=True)
        return margins

    @property
    def learned(self) -> int:
        """Maximum number of rows on which a generation was grown."""
        return max(generation.rows for part in self.parts for *_, generation in part.generations)

    def rises(self, columns: list[np.ndarray], output: int | None = None) -> Iterator[tuple[float, float]]:
        """Yield the increase of the mean loss when each set of columns is permuted, and its standard error.

        ``columns``: arrays of indices among the pool's keys.
        ``output``: a class; the loss is then of this class against the others. Few rows are permuted several times.
        """
        n, losses = len(self.targets), self.losses(self.margins(), output)
        repeats = int(np.clip(MOST_PREDICTIONS // (8 * n * max(len(columns), 1)), 1, MOST_REPEATS))
        for indices in columns:
            draws, increases = np.random.default_rng(self.learned), np.zeros(n)
            for _ in range(repeats):
                increases += (self.losses(self.margins(indices, self.order(draws)), output) - losses) / repeats
            yield self.mean(increases)

    def rises_of_pairs(self, columns: list[np.ndarray], pairs: list[tuple[int, int]]) -> Iterator[tuple[float, float]]:
        """Return the increase of the mean loss without the joint effect of each pair, and its standard error."""
        draws, margins = np.random.default_rng(self.learned), self._centred(self.margins())
        joint = np.zeros((len(pairs), *margins.shape))
        for _ in range(DRAWS):
            order = self.order(draws)
            single = [self._centred(self.margins(indices, order)) for indices in columns]
            for effect, (first, second) in zip(joint, pairs, strict=True):
                indices = np.concatenate([columns[first], columns[second]])
                both = self._centred(self.margins(indices, order))
                effect += ((margins - single[first]) - (single[second] - both)) / DRAWS
        losses = self.losses(self._normalised(margins))
        return (self.mean(self.losses(self._normalised(margins - effect)) - losses) for effect in joint)

    def _centred(self, margins: np.ndarray) -> np.ndarray:
        """Subtract the mean from log-probabilities, which makes them additive if log-odds are; keep numbers."""
        return margins if self.pool.members.loss is not None else margins - margins.mean(axis=1, keepdims=True)

    def _normalised(self, margins: np.ndarray) -> np.ndarray:
        """Normalise log-probabilities to probabilities of sum 1; keep numbers."""
        return margins if self.pool.members.loss is not None else log_softmax(margins, axis=1)

    def order(self, draws: np.random.Generator) -> np.ndarray:
        """Return row numbers (n,), permuted within each part."""
        return np.concatenate([start + draws.permutation(end - start) for start, end in pairwise(self.ends)])

    def mean(self, increases: np.ndarray) -> tuple[float, float]:
        """Return the weighted mean of a quantity (n,) over the rows, and its standard error.

        The variance is doubled in cross-validation, where the training rows of the parts overlap.
        """
        weights = self.weights / self.weights.max()
        weights = weights / weights.sum()
        unit = float(np.abs(increases).max()) or 1.0  # squares are finite
        mean, times = float(weights @ (increases / unit)), min(len(self.parts), 2)
        return unit * mean, unit * float(np.sqrt(times * (weights**2) @ (increases / unit - mean) ** 2))

    def losses(self, margins: np.ndarray, output: int | None = None) -> np.ndarray:
        """Return the losses (n,) of predictions (n, K), which are numbers or log-probabilities."""
        if output is None or self.pool.members.width < 3:
            losses: np.ndarray = self.pool.members.losses(margins[:, None], self.targets)[:, 0]
            return losses
        shares = np.clip(np.exp(margins[:, output]), LEAST, 1.0 - np.finfo(np.float64).eps)
        return -np.where(self.targets == output, np.log(shares), np.log1p(-shares))


def _later_rows(pool: Any, digests: np.ndarray, repeats: bool) -> list[Fold]:
    """Return the previous generations, and the kept rows with observations that these have not learned.

    If a column of the table appeared after the previous generations, the newest ones are used; if it appeared after
    those, the result is empty. If most rows to come repeat known ones (``repeats``), all later rows are used.
    """
    growth = pool.members.growth
    chosen_anew = len(growth.columns.bundles.counts) > 0  # each generation selects its columns from sparse features
    table_keys = [] if chosen_anew else growth.columns.keys
    candidates = (_newborn(growth, age) for age in (PREVIOUS, NEWEST))
    complete = (entries for entries in candidates if entries and np.isin(table_keys, entries[0][3].keys).all())
    generations = next(complete, None)
    if generations is None:
        return []
    is_later = ~np.any([generation.knows(digests) for *_, generation in generations], axis=0)
    if repeats and growth.whole.rows == len(is_later):  # all rows are kept, in order
        is_later = np.arange(len(is_later)) >= max(generation.rows for *_, generation in generations)
    return [Fold(generations, np.flatnonzero(is_later))]


def _newborn(growth: Any, age: int) -> list[tuple[int, str, int, Any]]:
    """Return the generations of this age that were grown on all rows, without later corrections."""
    entries = (entry for entry in growth.generations() if entry[0] == WHOLE and entry[2] == age)
    return [(clock, kind, age, generation.as_born()) for clock, kind, age, generation in entries]


def _cross_validation(growth: Any, kept: dict[str, np.ndarray], repeats: bool) -> list[Fold]:
    """Split the kept rows into thirds, and grow generations like the newest ones on the other two thirds.

    Rows of the same observation, or group, are in the same third, unless most repeat known ones (``repeats``): few
    observations, such as those of one column of categories, would leave a third with categories that no tree has seen.
    """
    third = (hashed(np.arange(len(kept["digests"]))) if repeats else mixed(kept["digests"])) % np.uint64(N_FOLDS)
    parts, newest = list[Fold](), _newborn(growth, NEWEST)
    is_table = len(growth.columns.bundles.counts) == 0
    keys = np.sort(np.array(growth.columns.keys if is_table or not newest else newest[0][3].keys, np.int64))
    for turn in range(N_FOLDS if len(third) <= FEW_ROWS else 1):
        learned = np.flatnonzero(third != turn)
        if not len(learned):  # all rows have the same observation or group
            continue
        learned = learned[evenly_spaced(len(learned), MOST_TRAINING_ROWS)]
        columns = np.ascontiguousarray(kept["columns"][learned][:, growth.columns.places(keys)])
        rows = {name: kept[name][learned] for name in ("targets", "weights", "digests")} | {"columns": columns}
        birth = Birth(len(learned), WHOLE, keys, rows, growth.n_classes, growth.loss, growth.signs)
        grown = [(kind, Generation.grown(birth, kind, old.inherited, False)) for _, kind, _, old in newest]
        generations = [(WHOLE, kind, NEWEST, new.as_born()) for kind, new in grown if new is not None]
        parts += [Fold(generations, np.flatnonzero(third == turn))] if generations else []
    return parts
