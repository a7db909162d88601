"""How much larger the loss is where a column is permuted, on rows that the trees had not learned.

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
from typing import Any, NamedTuple

import numpy as np

from tunefree.mixing.bases import LEAST
from tunefree.pool.slots import WHOLE

MOST_PREDICTIONS = 2**17  # of rows, for all columns together, and
MOST_CELLS = 2**24  # of these rows, but
FEWEST_ROWS, MOST_ROWS = 2**7, 2**12  # if there are so many
MOST_REPEATS = 8  # permutations of few rows
MOST_NUMBERS = 2**22  # that members predict of a piece of the rows
PREVIOUS = 1  # age of generations


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

        Rows count whose observation the generations do not know. Where rows to come are known for the most part, all
        later rows do.
        """
        growth = pool.members.growth
        awake = [] if growth is None else growth.generations()
        previous = [
            (clock, kind, age, generation.as_born())
            for clock, kind, age, generation in awake
            if clock == WHOLE and age == PREVIOUS
        ]
        if growth is None or not previous or not growth.whole.rows:
            return None
        kept = growth.whole.kept()
        is_later = ~np.any([generation.knows(kept["digests"]) for *_, generation in previous], axis=0)
        if pool.known_share > 0.5 and growth.whole.rows == len(is_later):  # all are kept, in their order
            is_later = np.arange(len(is_later)) >= max(generation.rows for *_, generation in previous)
        rows, columns = np.flatnonzero(is_later), growth.columns
        if not len(rows):
            return None
        n_columns = len(columns.keys)
        most = min(MOST_PREDICTIONS // n_columns, MOST_CELLS // n_columns**2)
        most = int(np.clip(most, FEWEST_ROWS, MOST_ROWS))
        rows = rows[np.unique(np.linspace(0, len(rows) - 1, min(len(rows), most)).astype(np.int64))]
        matrix = np.tile(columns.fills, (len(rows), 1))
        matrix[:, : kept["columns"].shape[1]] = columns.features(kept["columns"][rows])
        return cls(pool, previous, matrix, kept["targets"][rows], kept["weights"][rows])

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
        losses = self._losses(self.matrix, output)
        repeats = int(np.clip(MOST_PREDICTIONS // (4 * n * max(len(columns), 1)), 1, MOST_REPEATS))
        for places in columns:
            draws, risen = np.random.default_rng(seed), np.zeros(n)
            for _ in range(repeats):
                matrix = self.matrix.copy()
                matrix[:, places] = self.matrix[draws.permutation(n)][:, places]
                risen += (self._losses(matrix, output) - losses) / repeats
            unit = float(np.abs(risen).max()) or 1.0  # squares are finite
            mean = float(weights @ (risen / unit))
            yield unit * mean, unit * float(np.sqrt((weights**2) @ (risen / unit - mean) ** 2))

    def _losses(self, matrix: np.ndarray, output: int | None) -> np.ndarray:
        """The losses (n,) of the generations' base mixture on rows with these columns."""
        members = self.pool.members
        step = max(MOST_NUMBERS // (len(members.names) * max(members.width, 1)), 1)
        pieces = [slice(start, start + step) for start in range(0, len(matrix), step)]
        return np.concatenate([self._losses_of(matrix[piece], self.targets[piece], output) for piece in pieces])

    def _losses_of(self, matrix: np.ndarray, targets: np.ndarray, output: int | None) -> np.ndarray:
        members, nothing = self.pool.members, np.zeros(len(matrix))
        predictions = members.asleep(len(matrix))
        members.follow(self.generations, matrix, nothing, nothing, predictions)
        mixed = self.pool.context.mixture.mean(predictions, self.pool.has_finished)
        if output is None or members.width < 3:
            losses: np.ndarray = members.losses(mixed[:, None], targets)[:, 0]
            return losses
        shares = np.clip(np.exp(mixed[:, output]), LEAST, 1.0 - np.finfo(np.float64).eps)
        return -np.where(targets == output, np.log(shares), np.log1p(-shares))
