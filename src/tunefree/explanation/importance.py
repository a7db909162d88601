"""Importance of columns: the increase of the loss where a column is permuted.

Breiman: Random forests (Machine Learning 2001), section 10; Fisher, Rudin, Dominici: All models are wrong, but many are
useful (JMLR 2019), eq. 3. With the loss l, the prediction f, and a permutation p of the rows, the importance of the
columns S is the mean over the rows of

    l(y_i, f(x_i with x_S of row p(i))) - l(y_i, f(x_i)).

The prediction is that of generations of trees as they were grown, and the rows are among those that a pool keeps and
these generations do not know. If S is independent of the other columns and of the target, permuted rows are as likely
as the rows themselves, so the expectation is 0, whatever the trees have learned.

Of a pair of columns, with another row x' that is drawn from the rows, the part of the margin f that needs both is the
mean over x' of

    f(x) - f(x with x'_1) - f(x with x'_2) + f(x with x'_1, x'_2),

which is 0 where f is a sum of functions of which none has both (Liu, Owen: Estimating mean dimension of analysis of
variance decompositions, JASA 2006; Hooker: Discovering additive structure in black box functions, KDD 2004). The
importance of their interaction is the rise of the loss where this part is subtracted from the margins.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from scipy.special import log_softmax

from tunefree.core.rows import n_rows, rows_at
from tunefree.explanation.decomposition import Decomposition
from tunefree.explanation.members import evenly_spaced
from tunefree.generations.generation import Birth, Generation
from tunefree.generations.reservoir import mixed
from tunefree.losses.rates import has_rates
from tunefree.mixing.bases import LEAST
from tunefree.pool.members import MemberRows
from tunefree.pool.slots import WHOLE

MOST_ROWS = 512  # whose contributions are looked at
CHANCE = 0.05  # that noise exceeds its line in any of the columns
MOST_PREDICTIONS = 2**18  # of rows, for all columns together, but
FEWEST_ROWS, MOST_JUDGED = 2**7, 2**12  # rows, if there are so many
ENOUGH = 2**11  # rows that judge; where there are fewer, trees are grown for them
THIRDS, FEW = 3, 2**12  # parts of the rows that judge in turn where there are at most so many rows
MOST_LEARNED = 2**13  # rows on which trees are grown for this
MOST_REPEATS = 8  # permutations of few rows
MOST_NUMBERS = 2**22  # that members predict of these rows
MOST_PAIRED = 6  # columns whose pairs are looked at: those that matter most
DRAWS, MOST_OF_PAIRS = 4, 2**10  # of another row, and rows that judge pairs
NEWEST, PREVIOUS = 0, 1  # ages of generations
NO_PLACES = np.zeros(0, np.intp)


class Importance(NamedTuple):
    """Columns, or pairs, by importance: first those beyond noise, each with the largest first."""

    terms: np.ndarray  # (t,) their places among all terms, or (t, 2)
    names: list[str]
    sizes: np.ndarray  # (t,) how much larger the loss is without them; or mean absolute contribution
    errors: np.ndarray  # (t,) its standard error over the rows
    noise: np.ndarray  # (t,) the size that a column without use hardly exceeds; 0 where it is not known
    rows: int
    judges: NewRows | None  # these rows where importance is a rise of the loss; None of contributions

    @property
    def n_beyond(self) -> int:
        """Columns that are more than noise."""
        return int(np.count_nonzero(self.sizes > self.noise))


def importance(decomposition: Decomposition, output: int | None = None) -> Importance:
    """The importance of columns, for one margin or for all.

    A pool that keeps rows tells how much larger the loss is where a column is permuted, on rows that its trees do not
    know. Other models have mean absolute contributions over the reference.
    """
    new = None if decomposition.pool is None else NewRows.of(decomposition.pool)
    return _by_contributions(decomposition, output) if new is None else _by_loss(decomposition, new, output)


def interactions(decomposition: Decomposition, ranked: Importance) -> Importance | None:
    """The pairs of the columns that matter most; None where there are none, or importance is no rise of a loss."""
    terms = ranked.terms[: min(ranked.n_beyond, MOST_PAIRED)]
    if ranked.judges is None or len(terms) < 2:
        return None
    pairs = np.array(list(combinations(range(len(terms)), 2)))
    new, names = ranked.judges.some(MOST_OF_PAIRS), [decomposition.names[term] for term in terms.tolist()]
    rises = new.rises_of_pairs(_places_of(decomposition, new, terms), pairs.tolist())
    return _ranked(terms[pairs], [f"{names[first]} x {names[second]}" for first, second in pairs], rises, new)


def _by_loss(decomposition: Decomposition, new: NewRows, output: int | None) -> Importance:
    terms = np.unique(decomposition.terms.of_keys(new.pool.members.growth.columns.keys))
    rises = new.rises(_places_of(decomposition, new, terms), output)
    ranked: Any = _ranked(terms, [decomposition.names[term] for term in terms.tolist()], rises, new)
    n = int(np.count_nonzero(ranked.errors))  # the others change no prediction, and are last
    return Importance(*(column[:n] for column in ranked[:5]), *ranked[5:])


def _places_of(decomposition: Decomposition, new: NewRows, terms: np.ndarray) -> list[np.ndarray]:
    """The places of each term's columns under the keys of the pool."""
    column_terms = decomposition.terms.of_keys(new.pool.members.growth.columns.keys)
    return [np.flatnonzero(column_terms == term) for term in terms.tolist()]


def _ranked(terms: np.ndarray, names: list[str], rises: Iterable[tuple[float, float]], new: NewRows) -> Importance:
    """Importances by rises of the loss and their errors, with the noise of so many."""
    sizes, errors = np.array(list(rises)).reshape(-1, 2).T
    noise = NormalDist().inv_cdf(1.0 - CHANCE / len(terms)) * errors
    order = np.lexsort([-sizes, sizes <= noise, errors == 0.0])
    columns = sizes[order], errors[order], noise[order]
    return Importance(terms[order], [names[k] for k in order.tolist()], *columns, len(new.targets), new)


def _by_contributions(decomposition: Decomposition, output: int | None) -> Importance:
    rows = decomposition.reference_rows
    rows = rows_at(rows, evenly_spaced(n_rows(rows), MOST_ROWS))
    outputs = slice(None) if output is None else slice(output, output + 1)
    sizes = np.abs(decomposition.contributions(rows)[:, 1:, outputs]).mean(axis=2)
    with np.errstate(over="ignore"):
        means, errors = sizes.mean(axis=0), sizes.std(axis=0) / np.sqrt(len(sizes))
    order = np.argsort(-means, kind="stable")
    order = order[means[order] > 0.0]
    names = [decomposition.names[1 + k] for k in order.tolist()]
    return Importance(1 + order, names, means[order], errors[order], np.zeros(len(order)), len(sizes), None)


def describe_reference(decomposition: Decomposition) -> str:
    """A sentence on contributions: the prediction they add up to, and the rows they are relative to."""
    rows = decomposition.reference.matrix if decomposition.reference.rows is not None else ()
    relative = f"to their mean over {len(rows):,} rows" if len(rows) else "to a row of which nothing is known"
    return f"Contributions add up to the {margin_name(decomposition)}, and are relative {relative}."


def describe_importance(decomposition: Decomposition, columns: Importance) -> str:
    """A sentence on importance: the quantity that is measured, and its standard error or noise."""
    if columns.judges is None:
        return (
            f"Importance: mean absolute contribution to the {margin_name(decomposition)}, over {columns.rows:,} rows;"
            " the standard error is that of this mean."
        )
    return (
        f"Importance: how much larger the mean loss is where the column is permuted, over {columns.rows:,} rows that"
        f" trees grown on {columns.judges.learned:,} others do not know. Noise: the importance that one without use"
        f" exceeds with a probability of {CHANCE:g} divided by the number of columns."
    )


def margin_name(decomposition: Decomposition) -> str:
    """The name of the model's margins, such as log-odds."""
    if decomposition.model.task == "regression":
        return "logarithm of the prediction" if has_rates(decomposition.model.options.loss) else "prediction"
    if not decomposition.model.loss_is_log_loss:
        return "margin"
    return "log-odds" if decomposition.model.n_outputs == 1 else "centred log-probability"


class Judged(NamedTuple):
    """Some generations of a pool, and rows that these do not know."""

    generations: list[tuple[int, str, int, Any]]  # clock, kind, age, and generation as it was born
    rows: np.ndarray  # (n,) places among those kept, or among those that judge


@dataclass
class NewRows:
    """Rows of a pool that judge generations of trees which do not know them."""

    pool: Any
    parts: list[Judged]
    matrix: np.ndarray  # (n, c) their columns, under the keys of the pool
    targets: np.ndarray  # (n,)
    weights: np.ndarray  # (n,)

    @classmethod
    def of(cls, pool: Any) -> NewRows | None:
        """The rows that came after the previous generations were grown; where they are few, all rows in turn.

        Of few rows each third judges trees that are grown on the others, of many one third does. None if there are no
        rows, or no trees.
        """
        growth, members = pool.members.growth, pool.members
        if growth is None or not growth.whole.rows:
            return None
        kept, n_columns = growth.whole.kept(), len(growth.columns.keys)
        kept["columns"] = growth.columns.completed(growth.columns.features(kept["columns"]))
        parts = _later(pool, kept["digests"])
        if sum(len(part.rows) for part in parts) < min(len(kept["targets"]) // 2, ENOUGH):
            parts = _thirds(growth, kept) or parts
        parts = [part for part in parts if len(part.rows)]
        if not parts:
            return None
        most = min(MOST_PREDICTIONS // n_columns, MOST_NUMBERS // (len(members.names) * max(members.width, 1)))
        rows = np.concatenate([part.rows for part in parts])
        all_rows = cls(pool, parts, kept["columns"][rows], kept["targets"][rows], kept["weights"][rows])
        return all_rows.some(int(np.clip(most, FEWEST_ROWS, MOST_JUDGED)))

    def some(self, most: int) -> NewRows:
        """At most so many of the rows, evenly spaced."""
        counts = [len(part.rows) for part in self.parts]
        starts = np.cumsum([0, *counts])
        chosen = [evenly_spaced(count, max(most * count // starts[-1], 1)) for count in counts]
        places = np.concatenate([start + rows for start, rows in zip(starts, chosen, strict=False)])
        ends = np.cumsum([0, *map(len, chosen)])
        parts = [part._replace(rows=np.arange(*ends[k : k + 2])) for k, part in enumerate(self.parts)]
        return NewRows(self.pool, parts, self.matrix[places], self.targets[places], self.weights[places])

    @cached_property
    def _walks(self) -> list[MemberRows]:
        """The members' predictions of each part, those of online members unknown."""
        walks = [
            MemberRows(self.pool.members, part.generations, len(part.rows), self.matrix.shape[1]) for part in self.parts
        ]
        for walk in walks:
            walk.online[:] = np.nan
        return walks

    def margins(self, places: np.ndarray = NO_PLACES, order: Any = None) -> np.ndarray:
        """Predictions (n, K) of the base mixture, with the columns at ``places`` taken from the rows in this order."""
        matrix = self.matrix.copy()
        if len(places):
            matrix[:, places] = matrix[order][:, places]
        predictions = self.pool.members.asleep(len(matrix))
        for part, walk in zip(self.parts, self._walks, strict=True):
            walk.walk(matrix[part.rows])
            walk.follow()
            walk.write()
            predictions[part.rows] = walk.written
        margins: np.ndarray = self.pool.context.mixture.mean(predictions, self.pool.has_finished)
        return margins

    @property
    def learned(self) -> int:
        """Rows that the generations were grown on."""
        return max(generation.rows for part in self.parts for *_, generation in part.generations)

    def rises(self, columns: list[np.ndarray], output: int | None = None) -> Iterator[tuple[float, float]]:
        """Increases of the mean loss where columns under the keys at these places are permuted, and standard errors.

        ``output`` is a class: then the loss is that of this class against the others. Few rows are permuted several
        times. The standard error is over the rows.
        """
        n, losses = len(self.targets), self.losses(self.margins(), output)
        repeats = int(np.clip(MOST_PREDICTIONS // (8 * n * max(len(columns), 1)), 1, MOST_REPEATS))
        for places in columns:
            draws, risen = np.random.default_rng(self.learned), np.zeros(n)
            for _ in range(repeats):
                risen += (self.losses(self.margins(places, self.order(draws)), output) - losses) / repeats
            yield self.mean(risen)

    def rises_of_pairs(self, columns: list[np.ndarray], pairs: list[tuple[int, int]]) -> Iterator[tuple[float, float]]:
        """Increases of the mean loss without the joint effect of each pair of columns, and standard errors."""
        draws, margins = np.random.default_rng(self.learned), self._centred(self.margins())
        joint = np.zeros((len(pairs), *margins.shape))
        for _ in range(DRAWS):
            order = self.order(draws)
            single = [self._centred(self.margins(places, order)) for places in columns]
            for effect, (first, second) in zip(joint, pairs, strict=True):
                places = np.concatenate([columns[first], columns[second]])
                both = self._centred(self.margins(places, order))
                effect += ((margins - single[first]) - (single[second] - both)) / DRAWS
        losses = self.losses(self._normalised(margins))
        return (self.mean(self.losses(self._normalised(margins - effect)) - losses) for effect in joint)

    def _centred(self, margins: np.ndarray) -> np.ndarray:
        """Numbers as they are; logarithms of probabilities less their mean, which are additive where log-odds are."""
        return margins if self.pool.members.loss is not None else margins - margins.mean(axis=1, keepdims=True)

    def _normalised(self, margins: np.ndarray) -> np.ndarray:
        """Numbers as they are, and logarithms of probabilities that add up to 1."""
        return margins if self.pool.members.loss is not None else log_softmax(margins, axis=1)

    def order(self, draws: np.random.Generator) -> np.ndarray:
        """The rows (n,), in a random order within each part."""
        return np.concatenate([draws.permutation(part.rows) for part in self.parts])

    def mean(self, risen: np.ndarray) -> tuple[float, float]:
        """The weighted mean over the rows of a number (n,), and its standard error.

        Where parts judge trees that are grown on one another, what chance lets two of them have in common counts twice.
        """
        weights = self.weights / self.weights.max()
        weights = weights / weights.sum()
        unit = float(np.abs(risen).max()) or 1.0  # squares are finite
        mean, times = float(weights @ (risen / unit)), min(len(self.parts), 2)
        return unit * mean, unit * float(np.sqrt(times * (weights**2) @ (risen / unit - mean) ** 2))

    def losses(self, margins: np.ndarray, output: int | None = None) -> np.ndarray:
        """The losses (n,) of predictions (n, K): of numbers, or of logarithms of probabilities."""
        if output is None or self.pool.members.width < 3:
            losses: np.ndarray = self.pool.members.losses(margins[:, None], self.targets)[:, 0]
            return losses
        shares = np.clip(np.exp(margins[:, output]), LEAST, 1.0 - np.finfo(np.float64).eps)
        return -np.where(self.targets == output, np.log(shares), np.log1p(-shares))


def _later(pool: Any, digests: np.ndarray) -> list[Judged]:
    """The previous generations, and the rows kept whose observation these do not know.

    The newest generations take the place of the previous ones if a column of a table came between their births, and
    there are none if it came later. Where rows to come are known for the most part, all later rows count.
    """
    growth = pool.members.growth
    chosen_anew = len(growth.columns.bundles.counts) > 0  # at each birth, from features of sparse rows
    table_keys = [] if chosen_anew else growth.columns.keys
    candidates = (_born(growth, age) for age in (PREVIOUS, NEWEST))
    know_all = (some for some in candidates if some and np.isin(table_keys, some[0][3].keys).all())
    generations = next(know_all, None)
    if generations is None:
        return []
    is_later = ~np.any([generation.knows(digests) for *_, generation in generations], axis=0)
    if pool.known_share > 0.5 and growth.whole.rows == len(is_later):  # all are kept, in their order
        is_later = np.arange(len(is_later)) >= max(generation.rows for *_, generation in generations)
    return [Judged(generations, np.flatnonzero(is_later))]


def _born(growth: Any, age: int) -> list[tuple[int, str, int, Any]]:
    """The generations of all rows that are of this age, as they were born."""
    named = (one for one in growth.generations() if one[0] == WHOLE and one[2] == age)
    return [(clock, kind, age, generation.as_born()) for clock, kind, age, generation in named]


def _thirds(growth: Any, kept: dict[str, np.ndarray]) -> list[Judged]:
    """Thirds of the rows kept, and generations like the newest ones that are grown on the others.

    Rows of one observation, or group, are in the same third.
    """
    third = mixed(kept["digests"]) % np.uint64(THIRDS)
    parts, newest = list[Judged](), _born(growth, NEWEST)
    is_table = len(growth.columns.bundles.counts) == 0
    keys = np.sort(np.array(growth.columns.keys if is_table or not newest else newest[0][3].keys, np.int64))
    for turn in range(THIRDS if len(third) <= FEW else 1):
        learned = np.flatnonzero(third != turn)
        if not len(learned):  # all rows are one observation, or of one group
            continue
        learned = learned[evenly_spaced(len(learned), MOST_LEARNED)]
        columns = np.ascontiguousarray(kept["columns"][learned][:, growth.columns.places(keys)])
        rows = {name: kept[name][learned] for name in ("targets", "weights", "digests")} | {"columns": columns}
        birth = Birth(len(learned), WHOLE, keys, rows, growth.n_classes, growth.loss, growth.signs)
        grown = [(kind, Generation.grown(birth, kind, one.inherited, False)) for _, kind, _, one in newest]
        generations = [(WHOLE, kind, NEWEST, one.as_born()) for kind, one in grown if one is not None]
        parts += [Judged(generations, np.flatnonzero(third == turn))] if generations else []
    return parts
