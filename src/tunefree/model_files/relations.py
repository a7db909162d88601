"""Whether the parts of a model that was read fit together, where compiled code, or whoever predicts, relies on it."""

from __future__ import annotations

from typing import Any

import numpy as np

from tunefree.core.errors import ModelError
from tunefree.core.rows import n_rows, reach
from tunefree.generations.leaves import FrozenLeaves
from tunefree.pool.contexts import N_CONTEXTS
from tunefree.pool.frozen import N_CHOICES
from tunefree.pool.slots import LINEAR, TREES, WHOLE, kinds_in
from tunefree.pool.windows import LENGTHS


def check(trained: Any) -> None:
    """Raise a ModelError if the parts of a model do not fit together.

    Parameters
    ----------
    trained : Trained

    Raises
    ------
    ModelError
    """
    model, encoder = trained.model, trained.encoder
    _fit(encoder.n_features <= model.n_features, "the encoder has features that the model does not have")
    _check_samples(trained)
    n_columns = _dense_columns(encoder)
    if trained.held is not None:
        _fit(reach(trained.held.rows) <= model.n_features, "rows that wait have features that the model does not have")
        _fit(trained.held.rows.numbers.shape[1] == n_columns, "rows that wait have other columns than the encoder")
    for view in model.linear.views.values():
        _fit(len(view.centres) == n_columns, "a view has other columns than the encoder")
    if model.bank is not None:
        _fit(model.bank.n_columns in (None, n_columns), "a bank has other columns than the encoder")
        model.bank.check_fit(model)
    if model.pool is not None:
        _check_pool(model.pool)
        _check_balance(model.pool.balance, model)
    is_fixed = [member.fixed is not None for member in model.linear.members]
    _fit(
        is_fixed == [model.only_predicts] * len(is_fixed),
        "members learn in a model that only predicts, or the other way",
    )
    for part in [model.predictor, *model.members]:
        calibration = getattr(part, "calibration", None)
        n_classes = 2 if calibration is None else calibration.n_classes
        _fit(n_classes == max(len(model.classes), 2) or calibration is None, "a calibration has other classes")


def _fit(holds: Any, problem: str) -> None:
    if not holds:
        raise ModelError(problem)


def _check_samples(trained: Any) -> None:
    rises, samples = trained.rises, trained.samples
    _fit((rises is None) == (samples is None), "rises of the loss and samples of the columns go together")
    if samples is not None:
        rows = {rise.row for rise in rises.rises}
        _fit(rows.issuperset(one.row for one in samples.waiting), "a rise is to be compared that is not there")


def _check_pool(pool: Any) -> None:
    """Members have places in the mixture, and generations the columns of the rows that are kept."""
    members = pool.members
    n_online, n_classes = len(members.names) - len(members.slots), members.width
    _fit(len(members.online_places) == len(members.linear.members), "online members have not a place each")
    _fit(all(place < n_online for place in members.online_places), "a place of an online member is that of another")
    _fit(members.loss is not None or pool.unit == 1.0, "classes have no unit")
    copy = pool.copies.copy
    shape = len(members.names), max(n_classes, 1)
    _fit(all(of_row.shape == shape for of_row in pool.waiting.rows.values()), "rows that wait have other members")
    for rows in pool.copies.predicted:
        n_predicted = len(members.places_as_born) + 2
        _fit(rows.predicted.shape[1:] == (n_predicted, shape[1]), "a copy predicted for other members")
        _fit(int(rows.contexts.max(initial=0)) < len(pool.contexts), "rows that judge a copy are of no context")
    _fit(copy is None or len(copy.mixtures) <= len(pool.contexts), "a copy has more contexts than the pool")
    _fit(0 < len(pool.contexts) <= N_CONTEXTS, "there are not as many contexts as there can be")
    for context in pool.contexts:
        _check_conformal(context, pool)
    if members.growth is not None:
        _check_growth(members.growth, pool, n_classes)


def _check_balance(balance: Any, model: Any) -> None:
    """Rows of the sample have weights, and columns and features that the model has."""
    for X, weights in balance.parts if balance is not None else ():
        _fit(n_rows(X) == len(weights) and len(weights), "rows of a sample have not a weight each")
        _fit(reach(X) <= model.n_features, "rows of a sample have features that the model does not have")
        views = model.linear.views.values()
        _fit(all(len(view.centres) == X.numbers.shape[1] for view in views), "rows of a sample have other columns")


def _check_conformal(context: Any, pool: Any) -> None:
    """Widths have columns that rows have, and scores follow levels that are followed."""
    growth, conformal, frozen = pool.members.growth, context.conformal, context.frozen
    n_columns = 0 if growth is None else len(growth.columns.keys)
    widths = conformal.widths
    _fit(widths is None or widths.n_columns <= n_columns + 1, "widths have other columns than the rows")
    _fit(conformal.residuals.columns.shape[1] <= n_columns + 1, "residuals kept have other columns")
    _fit(conformal.rows <= pool.rows, "there are scores of more rows than were learned")
    n_choices = frozen.scores.columns.shape[1]  # each with its drift, and with the opposite one
    _fit(n_choices == 2 * N_CHOICES or not len(frozen.scores.columns), "scores are not of all choices")
    adaptive = conformal.adaptive
    expected = type(conformal)(conformal.loss).adaptive.targets
    _fit(np.array_equal(adaptive.targets, expected), "levels are followed that are not those of the targets")
    _fit(np.isfinite(adaptive.rows).all() and adaptive.rows[0] <= pool.rows, "more scores than rows")
    _fit(np.allclose(adaptive.weights.sum(axis=1), 1.0), "weights of levels do not add up to 1")
    n_columns_of_scores = conformal.scores.columns.shape[1]
    _fit(n_columns_of_scores == 1 or not len(conformal.scores.columns), "scores lack their units or classes")
    n = adaptive.n_latest
    _fit((np.diff(adaptive.ordered[:n]) >= 0.0).all(), "the latest scores are not in order")
    _fit(np.array_equal(np.sort(adaptive.latest[:n]), adaptive.ordered[:n]), "the latest scores differ in two places")


def _check_growth(growth: Any, pool: Any, n_classes: int) -> None:
    keys = set(growth.columns.keys)
    pending = [generation for birth in growth.pending for generation in birth.generations.values()]
    together = kinds_in(pool.members.slots), TREES[:1]
    _fit(growth.kinds in together, "trees of some kinds are grown that are not grown together")
    _fit(all(len(of_kind) <= growth.n_ages for of_kind in growth.awake.values()), "more generations than may be awake")
    kinds = {kind for _, kind in growth.awake} - {LINEAR}
    lengths = {clock for clock, _ in growth.awake} - {WHOLE}
    _fit(kinds <= {*growth.kinds}, "a generation is of a kind that is not grown")
    _fit(lengths <= {window.length for window in growth.windows}, "a generation is of a window that is not there")
    for window in growth.windows:
        _fit(window.length in LENGTHS, "a window is of a length that is not there")
    _fit(growth.event() > pool.rows or pool.only_predicts, "what is due lies behind the rows learned")
    awake = [generation for *_, generation in growth.generations()]
    of_copy = [] if pool.copies.copy is None else pool.copies.copy.generations
    for generation in [*awake, *of_copy, *pending]:
        _fit(keys >= set(generation.keys.tolist()), "a generation has other columns than the rows")
        _fit(generation.kind in (*together[0], LINEAR), "a generation is of a kind that the pool has not")
        known, born = generation.n_classes, generation.n_classes - generation.n_late
        _fit(min(n_classes, 2) <= born <= known <= n_classes, "a generation has other classes than the model")
        _fit(generation.model.n_outputs == (born if born > 2 else 1), "a generation has not a margin of each class")
        for levels in (leaves.levels for leaves in generation.living if isinstance(leaves, FrozenLeaves)):
            is_whole = len(levels) in (0, generation.model.n_leaves)
            _fit(is_whole and levels.shape[1:] == (known if known > 2 else 1,), "leaves have not a weight each")
    for kept in (growth.whole, growth.recent):
        _fit(kept.columns.shape[1] <= len(keys), "rows kept have other columns")
        _fit(not n_classes or np.isin(kept.targets, np.arange(n_classes)).all(), "rows kept have classes that are none")


def _dense_columns(encoder: Any) -> int:
    return sum(len(column.dense_names()) for column in getattr(encoder, "columns", []))
