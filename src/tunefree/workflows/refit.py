"""Short tables are gone through again once all rows were read, as ``fit`` does.

One pass learns knots and pairs while it learns weights. If a table ends after so few rows that all were kept, knots are
known from the beginning the second time, and a batch phase (:mod:`tunefree.model.batch_phase`) follows. A new model
learns the first nine tenths so. The last tenth tells whether it is worth it: the new model, which stands still there,
must predict these rows better than the first one did that learned them one by one. If so, it learns all rows. If not,
or if frozen copies showed that the stream drifts (:mod:`tunefree.model.deployment`), the model of the one pass stays.

Where several passes were asked for, the rows that these held out take the place of the last tenth. Then the model of
the passes stands still on them, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tunefree.core.rows import as_table, rows_at, together
from tunefree.model import additive_bank, batch_phase
from tunefree.model.batch_rows import PIECE
from tunefree.model.mixture import TOO_MUCH
from tunefree.model.model import Model
from tunefree.model.pool import settings_of_members
from tunefree.model.targets import Labels
from tunefree.workflows.plan import Plan
from tunefree.workflows.progress import Progress, Refit
from tunefree.workflows.watching import Step, Watcher

FEWEST_ROWS = 2**11  # of less, the last tenth tells little
MOST_NUMBERS = 2**22  # of all rows kept: entries of columns, codes and words
MOST_WEIGHTS = 2**25  # that all these change, one for each of several classes
ONE_OF = 10  # rows, of which the last tells whether the new model is better
BYTES = 12  # of an entry: its number and its place, once for all rows, and for nine tenths while these are judged


class KeptRows(Watcher):
    """Watches a first pass, and keeps its rows as long as they can be gone through again.

    Parameters
    ----------
    most : int
        Rows up to which they are kept; 0 for none.
    """

    def __init__(self, most: int) -> None:
        self.most, self.n_rows, self.n_numbers = most, 0, 0
        self.blocks: list[Any] = []
        self.held_out: list[np.ndarray] = []  # which rows were
        self.targets: list[Any] = []  # Labels, or numbers
        self.weights: list[np.ndarray] = []
        self.goes_on = most >= FEWEST_ROWS

    def step(self, trained: Any, step: Step) -> None:
        if trained.progress.number == 0:
            self.add(step.batch.rows, step.y, step.batch.weight, step.held_out)

    def suffices(self, model: Model) -> bool:
        """Whether there are enough rows to go through again, a batch phase for such a model, and no drift."""
        expected = None if model.deployment is None else model.deployment.expectation()
        drifts = expected is not None and expected.drifts
        is_short = self.goes_on and self.n_numbers * model.n_outputs <= MOST_WEIGHTS
        return is_short and self.n_rows >= FEWEST_ROWS and batch_phase.suits(model) and not drifts

    def add(self, X: Any, y: Any, weight: np.ndarray, held_out: np.ndarray) -> None:
        """Keep a block of rows, or none of all if they are too many or not for curves."""
        if not self.goes_on or not len(weight):
            return
        self.n_rows += len(weight)
        self.goes_on = self.n_rows <= self.most and additive_bank.suits(X)
        if self.goes_on:
            seen = as_table(X)
            self.n_numbers += seen.numbers.size + seen.codes.size + len(seen.features)
            self.goes_on = self.n_numbers <= MOST_NUMBERS
        if self.goes_on:
            self.blocks.append(X)
            self.targets.append(y)
            self.weights.append(weight)
            self.held_out.append(held_out)
        else:
            self.blocks, self.targets, self.weights, self.held_out = [], [], [], []


def is_for(plan: Plan) -> bool:
    """Whether a plan's rows may be gone through again: those of a pool that may learn all of them in the end. The last
    tenth tells nothing of a horizon that is named."""
    return plan.learner == "pool" and not plan.holdout and plan.horizon is None and plan.refit >= FEWEST_ROWS


def size_of(kept: KeptRows) -> int:
    """Bytes that the features of all rows take at most, which the batch phase holds."""
    seen = as_table(kept.blocks[0])
    columns = seen.numbers.shape[1] + seen.codes.shape[1]
    of_pairs = min(2 * columns * (columns - 1), additive_bank.resolution_for(kept.n_rows).pair_entries)
    return BYTES * (2 * columns * kept.n_rows + kept.n_numbers + of_pairs * kept.n_rows)


def refitted(model: Model, kept: KeptRows, progress: Progress) -> tuple[Refit | None, Model]:
    """Go through the rows of a model again.

    Parameters
    ----------
    model : Model
        It has learned the rows, in one pass or all but those that were held out in several.
    kept : KeptRows
    progress : Progress
        Of these passes.

    Returns
    -------
    (Refit, Model)
        How the rows that tell were predicted, None if they have no weight or curves are not for these rows; and the
        model that predicts from here on.
    """
    rows, (judged, before) = _Rows(model, kept), _judged(kept, progress)
    learns = ~judged
    if not (rows.weight[judged].any() and rows.weight[learns].any()):
        return None, model
    made = batch_phase.blank(model, batch_phase.settings_before(settings_of_members(model.learner, {}, "raw")))
    batch_phase.prepare(made, rows.sample(), rows.n)
    if made.ensemble.additive is None:
        return None, model
    for X, y, weight in rows.pieces(learns):
        made.learn(X, y, weight)
    made.freeze()
    learned, held = rows.labelled(learns), rows.labelled(judged)
    found = batch_phase.found(made, learned, held, names=[additive_bank.AdditiveBank.name])
    told = Refit(int(judged.sum()), min(before, TOO_MUCH), min(found.loss, TOO_MUCH))
    if not told.pays:
        return told, model
    for X, y, weight in rows.pieces(judged):
        made.learn(X, y, weight)
    batch_phase.join(made, found, rows.labelled(judged | learns))
    made.record.is_over = True
    return told, made


def _judged(kept: KeptRows, progress: Progress) -> tuple[np.ndarray, float]:
    """The rows (n,) that tell, and their mean loss as predicted by the model that there is.

    They are those that were held out, in the latest pass. If none were, they are the last tenth, or somewhat more: from
    a row on up to which sums of losses were kept, so that a training that was resumed knows them too.
    """
    held_out = np.concatenate(kept.held_out)
    if held_out.any():
        return held_out, progress.held_out[progress.number - 1].mean_loss()
    whole = progress.progressive[0]
    before = next(own for own in reversed(progress.curve) if own.rows <= whole.rows - whole.rows // ONE_OF)
    weight = whole.weight - before.weight
    is_last = np.arange(len(held_out)) >= before.rows
    return is_last, (whole.loss - before.loss) / weight if weight > 0.0 else 0.0


class _Rows:
    """Kept rows, one below the other."""

    def __init__(self, model: Model, kept: KeptRows) -> None:
        self.model, self.X, self.n = model, together(kept.blocks), kept.n_rows
        self.weight = np.concatenate(kept.weights)
        own = kept.targets if model.task == "regression" else [model.codes(y)[0] for y in kept.targets]
        self.y = np.concatenate(own)

    def sample(self) -> Any:
        """Those that fix knots."""
        return rows_at(self.X, np.arange(self.n)[batch_phase.sampled(self.n)])

    def pieces(self, chosen: np.ndarray) -> Iterator[tuple[Any, Any, np.ndarray]]:
        """Blocks of the rows that are chosen (n,), with raw targets."""
        places = np.flatnonzero(chosen)
        for first in range(0, len(places), PIECE):
            own = places[first : first + PIECE]
            raw = self.y[own] if self.model.task == "regression" else Labels(self.model.classes, self.y[own])
            yield rows_at(self.X, own), raw, self.weight[own]

    def labelled(self, chosen: np.ndarray) -> Iterator[batch_phase.Labelled]:
        """Blocks of these rows, with targets as the objective takes them."""
        for X, y, weight in self.pieces(chosen):
            yield X, self.model.targets(y), weight
