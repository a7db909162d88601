"""How much each column matters to predictions, and what that means in words."""

from __future__ import annotations

from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from tunefree.core.rows import n_rows, rows_at
from tunefree.explanation.decomposition import Decomposition
from tunefree.explanation.members import unit_of
from tunefree.explanation.permutation import LaterRows
from tunefree.explanation.reference import evenly_spaced
from tunefree.losses.rates import has_rates

MOST_ROWS = 512  # whose contributions are looked at
CHANCE = 0.05  # that noise exceeds its line in any of the columns


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
    previous generations of trees were grown (:mod:`tunefree.explanation.permutation`). Other models have mean absolute
    contributions over the reference.
    """
    later = None if decomposition.pool is None else LaterRows.of(decomposition.pool)
    return _by_contributions(decomposition, output) if later is None else _by_loss(decomposition, later, output)


def _by_loss(decomposition: Decomposition, later: LaterRows, output: int | None) -> Importance:
    of_keys = decomposition.terms.of_keys(later.pool.members.growth.columns.keys)
    terms = np.unique(of_keys)
    rises = later.rises([np.flatnonzero(of_keys == term) for term in terms.tolist()], output)
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
