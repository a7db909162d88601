"""How much each column matters to predictions: how much larger the loss is where it is permuted.

Breiman: Random forests (Machine Learning 2001), section 10; Fisher, Rudin, Dominici: All models are wrong, but many are
useful (JMLR 2019), eq. 3. With the loss l, the prediction f, and a permutation p of the rows, the importance of the
columns S is the mean over the rows of

    l(y_i, f(x_i with x_S of row p(i))) - l(y_i, f(x_i)).

The prediction is that of the previous generations of a pool as they were grown, and the rows are those kept that came
later. If S is independent of the other columns and of the target, permuted rows are as likely as the rows themselves,
so the expectation is exactly 0, whatever the trees have learned. On rows that they were grown on it is not.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from tunefree.core.rows import n_rows, rows_at
from tunefree.explanation.decomposition import Decomposition
from tunefree.explanation.members import evenly_spaced, unit_of
from tunefree.losses.rates import has_rates
from tunefree.mixing.bases import LEAST
from tunefree.pool.slots import WHOLE

MOST_ROWS = 512  # whose contributions are looked at
CHANCE = 0.05  # that noise exceeds its line in any of the columns
MOST_PREDICTIONS = 2**17  # of rows, for all columns together, and
MOST_CELLS = 2**24  # of these rows, but
FEWEST_LATER, MOST_LATER = 2**7, 2**12  # if there are so many
MOST_REPEATS = 8  # permutations of few rows
MOST_NUMBERS = 2**22  # that members predict of these rows
NEWEST, PREVIOUS = 0, 1  # ages of generations


class Importance(NamedTuple):
    """Columns by importance: first those beyond noise, each with the largest first."""

    terms: np.ndarray  # (t,) their places among all terms
    names: list[str]
    sizes: np.ndarray  # (t,) how much larger the loss is without them; or mean absolute contribution
    errors: np.ndarray  # (t,) its standard error over the rows
    noise: np.ndarray  # (t,) the size that a column without use hardly exceeds; 0 where it is not known
    rows: int
    learned: int | None  # rows on which the trees were grown that had not learned these; None of contributions

    @property
    def n_beyond(self) -> int:
        """Columns that are more than noise."""
        return int(np.count_nonzero(self.sizes > self.noise))


def importance(decomposition: Decomposition, output: int | None = None) -> Importance:
    """How much columns matter, to one margin or to all.

    A pool that keeps rows tells how much larger the loss is where a column is permuted, on rows that came after its
    previous generations of trees were grown. Other models have mean absolute
    contributions over the reference.
    """
    later = None if decomposition.pool is None else LaterRows.of(decomposition.pool)
    return _by_contributions(decomposition, output) if later is None else _by_loss(decomposition, later, output)


def _by_loss(decomposition: Decomposition, later: LaterRows, output: int | None) -> Importance:
    column_terms = decomposition.terms.of_keys(later.pool.members.growth.columns.keys)
    terms = np.unique(column_terms)
    rises = later.rises([np.flatnonzero(column_terms == term) for term in terms.tolist()], output)
    sizes, errors = np.array(list(rises)).reshape(-1, 2).T
    noise = NormalDist().inv_cdf(1.0 - CHANCE / len(terms)) * errors
    order = np.lexsort([-sizes, sizes <= noise])
    order = order[errors[order] > 0.0]
    names = [decomposition.names[term] for term in terms[order].tolist()]
    return Importance(terms[order], names, sizes[order], errors[order], noise[order], len(later.targets), later.learned)


def _by_contributions(decomposition: Decomposition, output: int | None) -> Importance:
    rows = decomposition.reference_rows
    rows = rows_at(rows, evenly_spaced(n_rows(rows), MOST_ROWS))
    outputs = slice(None) if output is None else slice(output, output + 1)
    sizes = np.abs(decomposition.contributions(rows)[:, 1:, outputs]).mean(axis=2)
    unit = unit_of([sizes])
    relative = sizes / unit
    means, errors = unit * relative.mean(axis=0), unit * (relative.std(axis=0) / np.sqrt(len(sizes)))
    order = np.argsort(-means, kind="stable")
    order = order[means[order] > 0.0]
    names = [decomposition.names[1 + k] for k in order.tolist()]
    return Importance(1 + order, names, means[order], errors[order], np.zeros(len(order)), len(sizes), None)


def describe_reference(decomposition: Decomposition) -> str:
    """What contributions are to, and relative to, as a sentence."""
    rows = decomposition.reference.matrix if decomposition.reference.rows is not None else ()
    relative = f"to their mean over {len(rows):,} rows" if len(rows) else "to a row of which nothing is known"
    return f"Contributions add up to the {margin_name(decomposition)}, and are relative {relative}."


def describe_importance(decomposition: Decomposition, columns: Importance) -> str:
    """What importance is, as a sentence."""
    if columns.learned is None:
        return (
            f"Importance: mean absolute contribution to the {margin_name(decomposition)}, over {columns.rows:,} rows;"
            " the standard error is that of this mean."
        )
    return (
        f"Importance: how much larger the mean loss is where the column is permuted, over {columns.rows:,} rows that"
        f" came after the trees were grown on {columns.learned:,} rows. Noise: the importance that a column without use"
        f" exceeds with a probability of {CHANCE:g} divided by the number of columns."
    )


def margin_name(decomposition: Decomposition) -> str:
    """What the model's margins are called."""
    if decomposition.model.task == "regression":
        return "logarithm of the prediction" if has_rates(decomposition.model.options.loss) else "prediction"
    return "log-odds" if decomposition.model.loss_is_log_loss else "margin"


class Coded(NamedTuple):
    """Rows as the model of a generation takes them."""

    named: tuple[int, str, int, Any]  # clock, kind, age, and generation
    entries: np.ndarray  # (n, e)
    columns: np.ndarray  # (e,) places of the columns that these are of; -1 where they change no prediction


class LaterRows(NamedTuple):
    """Rows that were learned after the previous generations of a pool were grown."""

    pool: Any
    generations: list[tuple[int, str, int, Any]]  # clock, kind, age, and generation as it was born
    matrix: np.ndarray  # (n, c) their columns, under the keys of the pool
    targets: np.ndarray  # (n,)
    weights: np.ndarray  # (n,)

    @classmethod
    def of(cls, pool: Any) -> LaterRows | None:
        """Those of a pool; None if there are none.

        The newest generations take the place of the previous ones if a column of a table came between their births,
        and there are none if it came later. Rows count whose observation the generations do not know. Where rows to
        come are known for the most part, all later rows do.
        """
        growth = pool.members.growth
        if growth is None or not growth.whole.rows:
            return None
        chosen_anew = len(growth.columns.bundles.counts) > 0  # at each birth, from features of sparse rows
        table_keys = [] if chosen_anew else growth.columns.keys
        candidates = [
            [
                (clock, kind, age, one.as_born())
                for clock, kind, age, one in growth.generations()
                if clock == WHOLE and age == at
            ]
            for at in (PREVIOUS, NEWEST)
        ]
        know_all = (some for some in candidates if some and np.isin(table_keys, some[0][3].keys).all())
        generations = next(know_all, None)
        if generations is None:
            return None
        kept = growth.whole.kept()
        is_later = ~np.any([generation.knows(kept["digests"]) for *_, generation in generations], axis=0)
        if pool.known_share > 0.5 and growth.whole.rows == len(is_later):  # all are kept, in their order
            is_later = np.arange(len(is_later)) >= max(generation.rows for *_, generation in generations)
        rows, columns = np.flatnonzero(is_later), growth.columns
        if not len(rows):
            return None
        n_columns, members = len(columns.keys), pool.members
        most = min(MOST_PREDICTIONS // n_columns, MOST_CELLS // n_columns**2)
        most = min(most, MOST_NUMBERS // (len(members.names) * max(members.width, 1)))
        most = int(np.clip(most, FEWEST_LATER, MOST_LATER))
        rows = rows[np.unique(np.linspace(0, len(rows) - 1, min(len(rows), most)).astype(np.int64))]
        matrix = np.tile(columns.fills, (len(rows), 1))
        matrix[:, : kept["columns"].shape[1]] = columns.features(kept["columns"][rows])
        return cls(pool, generations, matrix, kept["targets"][rows], kept["weights"][rows])

    @property
    def learned(self) -> int:
        """Rows that the generations were grown on."""
        return max(generation.rows for *_, generation in self.generations)

    def rises(self, columns: list[np.ndarray], output: int | None = None) -> Iterator[tuple[float, float]]:
        """By how much the mean loss rises where columns under the keys in these places are permuted, and its error.

        ``output`` is a class: then the loss is that of this class against the others. Few rows are permuted several
        times. The standard error is over the rows.
        """
        n, seed = len(self.targets), self.learned
        weights = self.weights / self.weights.max()
        weights = weights / weights.sum()
        generations = list(self._coded())
        predictions = self.pool.members.asleep(n)
        for coded in generations:
            self._write(coded, coded.entries, predictions)
        losses = self._losses(predictions, output)
        repeats = int(np.clip(MOST_PREDICTIONS // (4 * n * max(len(columns), 1)), 1, MOST_REPEATS))
        for places in columns:
            draws, risen = np.random.default_rng(seed), np.zeros(n)
            changed = [(coded, np.flatnonzero(np.isin(coded.columns, places))) for coded in generations]
            changed = [(coded, some) for coded, some in changed if len(some)]
            for _ in range(repeats if changed else 0):
                order, permuted = draws.permutation(n), predictions.copy()
                for coded, some in changed:
                    entries = coded.entries.copy()
                    entries[:, some] = coded.entries[order[:, None], some]
                    self._write(coded, entries, permuted)
                risen += (self._losses(permuted, output) - losses) / repeats
            unit = float(np.abs(risen).max()) or 1.0  # squares are finite
            mean = float(weights @ (risen / unit))
            yield unit * mean, unit * float(np.sqrt((weights**2) @ (risen / unit - mean) ** 2))

    def _coded(self) -> Iterator[Coded]:
        """The rows as the models of the generations take them, so that permutations need not code them anew."""
        for named in self.generations:
            *_, generation = named
            model, known = generation.model, self.pool.members.growth.columns
            places = np.array(known.places(generation.keys), np.intp)
            entries = model.entries(np.ascontiguousarray(self.matrix[:, places]))
            columns = np.full(entries.shape[1], -1)
            columns[entries.shape[1] - len(model.sources) :] = np.where(model.tested, places[model.sources], -1)
            yield Coded(named, entries, columns)

    def _write(self, coded: Coded, entries: np.ndarray, predictions: np.ndarray) -> None:
        """Write what a generation predicts to the places (n, M, K) of its members."""
        clock, kind, age, generation = coded.named
        _, born = generation.predict_as_born(entries)
        self.pool.members.place_generation(predictions, clock, kind, age, born, generation.rows)

    def _losses(self, predictions: np.ndarray, output: int | None) -> np.ndarray:
        """The losses (n,) of the base mixture of such predictions (n, M, K)."""
        members, targets = self.pool.members, self.targets
        mixed = self.pool.context.mixture.mean(predictions, self.pool.has_finished)
        if output is None or members.width < 3:
            losses: np.ndarray = members.losses(mixed[:, None], targets)[:, 0]
            return losses
        shares = np.clip(np.exp(mixed[:, output]), LEAST, 1.0 - np.finfo(np.float64).eps)
        return -np.where(targets == output, np.log(shares), np.log1p(-shares))
