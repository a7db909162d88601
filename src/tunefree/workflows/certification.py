"""Guarantees from one pass of a model: about every linear model, about given weights, and about future rows."""

from __future__ import annotations

import copy
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv

from tunefree.core.errors import DataError, ModelError, nearest
from tunefree.intervals.conformal_record import ConformalRecord
from tunefree.learners import ALL
from tunefree.mixing.mixture import Mixture
from tunefree.model_files.trained import Trained
from tunefree.theory.bounds import Bound, no_bound, paper_bound
from tunefree.theory.exchangeability import LEVEL
from tunefree.theory.mixing import mixing_excess

RADII = (0.3, 1.0, 3.0, 10.0, 30.0)
PROGRESSIVE = "each predicted before it was learned"
DELTA = 0.05  # probability that the bound on the risk fails


def certified(trained: Trained, weights: str | os.PathLike[str] | None = None) -> dict[str, Any]:
    """All guarantees that the sums kept during the pass prove, by name; those that do not apply are left out.

    ``weights``: a CSV file with a column ``feature``, of names as ``inspect`` writes them, ``(constant)`` for the
    intercept, and a column of weights: one, or one named after each class where there are more than two.

    ``lower_bounds`` has for each radius a lower bound on the mean loss of every linear model of that radius, and
    ``weights`` bounds for the given ones from the slopes, and by the learner's own theorem. ``mixing`` is by
    :mod:`tunefree.theory.mixing`, ``order`` by :func:`order_of`, and ``risk`` for rows that are independent and alike.
    Raises a ModelError if the model has seen no rows, and a DataError if the weights cannot be used.
    """
    model = trained.model
    certificate = model.certificate()
    if certificate.rounds == 0:
        raise ModelError("the model has seen no rows; train it first")
    evidence_loss = certificate.loss / certificate.weight
    # The evidence has other predictions of two kinds of rows: 0 of those that kernel learners keep back, and of a heavy
    # row that is learned in several rounds those before each of them.
    metrics = trained.progress.progressive[0]
    mean = metrics.mean_loss() if metrics.weight > 0.0 else evidence_loss
    proved: dict[str, Any] = {
        "rows": certificate.rounds,
        "loss": mean,
        "predictions": PROGRESSIVE,
        "lower_bounds": dict(certificate.table(RADII)),
    }
    if weights is not None:
        given = read_weights(trained, weights)
        at_least = (certificate.loss - certificate.regret(given)) / certificate.weight
        proved["weights"] = {"loss_at_least": at_least, "regret_at_most": mean - at_least}
        if (bound := theorem_of(trained, given).value) is not None:
            proved["weights"]["theorem"] = bound / certificate.weight
    proved |= _mixing_cost(model.predictor.mixtures)
    if model.pool is not None:
        proved |= _interval_coverage([context.conformal for context in model.pool.contexts])
    risks = {name: risk.bound(DELTA) for name, risk in model.record.risks.items() if risk.rows}
    proved |= order_of(trained)
    refuted = "order" in proved and proved["order"]["depends_on_rows"]
    if not refuted and any(bound is not None for bound in risks.values()):
        proved["risk"] = {"confidence": 1.0 - DELTA, "rows": model.record.risks["error"].rows, **risks}
    return proved


def order_of(trained: Trained) -> dict[str, Any]:
    """What the order of the rows tells about the targets, for JSON; empty where it is not known, as over shards.

    ``depends_on_rows``: whether a test refutes at ``level`` that rows are exchangeable; ``sorted``: whether rows are
    sorted by the target or grouped; the others as of :class:`tunefree.theory.exchangeability.Finding`.
    """
    if trained.order is None:
        return {}
    finding = trained.order.finding()
    order = {"depends_on_rows": finding.is_dependent, "sorted": finding.is_sorted, "level": LEVEL}
    return {"order": order | finding._asdict()}


def _mixing_cost(mixtures: Sequence[Mixture]) -> dict[str, Any]:
    """The cost of mixing, summed over the contexts; empty where no row was mixed, or one member predicts alone."""
    mixtures = [mixture for mixture in mixtures if mixture.top.rounds[0] > 0]
    if not mixtures:
        return {}
    accounts = [(mixture.account, int(mixture.top.rounds[0])) for mixture in mixtures]
    weight = sum(float(account.weight[0]) for account, _ in accounts)
    base, loss = (sum(float(account.losses[level]) for account, _ in accounts) / weight for level in range(2))
    at_most = base + sum(mixing_excess(account, rounds) for account, rounds in accounts) / weight
    rounds = sum(rounds for _, rounds in accounts)
    return {"mixing": {"rows": rounds, "loss": loss, "base": base, "loss_at_most": at_most}}


def _interval_coverage(records: Sequence[ConformalRecord]) -> dict[str, Any]:
    """How often intervals, or sets, that followed the stream covered the next row, over all contexts.

    Empty where no row has a score.
    """
    rows = sum(int(record.adaptive.rows[0]) for record in records)
    if not rows:
        return {}
    coverages: dict[float, dict[str, float]] = {}
    for record in records:
        share = int(record.adaptive.rows[0]) / rows
        for level, coverage in record.followed().items():
            sums = coverages.setdefault(level, {"covered": 0, "at_least": 0})
            for name, part in zip(sums, coverage, strict=True):
                sums[name] += share * part
    return {"coverage": {"rows": rows, "asked": coverages}}


def theorem_of(trained: Trained, weights: np.ndarray) -> Bound:
    """The bound of the learner's own theorem on the regret of the first pass, or why there is none.

    ``weights`` (d, K): of the features in the order of the model, the constant first.
    """
    model = trained.model
    if not model.has_weights or model.options.view != "raw":
        return no_bound("theorems are of one linear learner on the columns as they are")
    learner = model.linear.members[0].setting.learner
    if not (theorem := ALL[learner].traits.theorem):
        return no_bound(f"no theorem of the papers bounds the regret of {learner}")
    if model.record.is_over:
        return no_bound("the theorems are of one pass, and rows were learned again: pass passes=1")
    linear = copy.deepcopy(model.linear)
    linear.settle()
    if linear.meetings is not None and linear.meetings.n_partial:
        return no_bound("some first occurrences of features are not known any more")
    (member,), by_slot = linear.members, linear.present().by_slot(weights)
    if member.offsets is not None:
        return no_bound("a class that came late began with more than the learner's rounds")
    room = np.zeros((member.room, model.n_outputs))
    kept = min(len(room), len(by_slot))  # features beyond the room were never met
    room[:kept] = by_slot[:kept]
    bound = paper_bound(member.state, member.objective, room)
    if bound == math.inf:
        return no_bound("no theorem covers this loss with these parameters, or its bound is beyond all numbers")
    return Bound(bound, theorem)


def read_weights(trained: Trained, path: str | os.PathLike[str]) -> np.ndarray:
    """Weights (d, K) of a linear model from a CSV file.

    Raises a DataError if the file cannot be read, or names features or classes that the model does not have.
    """
    model, outputs = trained.model, ["weight"]
    if model.n_outputs > 1:
        outputs = [str(label) for label in model.classes]
    try:
        table = csv.read_csv(Path(path))
        features, *columns = table.column_names
        if features != "feature" or (columns != outputs if model.n_outputs > 1 else len(columns) != 1):
            wanted = ", ".join(["feature", *outputs])
            raise DataError(f"the columns are {', '.join(table.column_names)}", str(path), remedy=f"write {wanted}")
        given = np.column_stack([table[column].cast(pa.float64()).to_numpy() for column in columns])
    except (OSError, pa.ArrowInvalid) as error:
        raise DataError(f"cannot be read as CSV ({error})", str(path), remedy="columns feature and weight") from None
    names = {name: j for j, name in enumerate(trained.encoder.names())}
    weights = np.zeros((model.n_features, model.n_outputs))
    for row, name in enumerate(map(str, table[features].to_pylist())):
        if name not in names:
            remedy = nearest(name, [*names], "features")
            raise DataError(f"there is no feature {name!r}", str(path), row + 1, "feature", remedy)
        if not np.isfinite(given[row]).all():
            raise DataError(f"the weight of {name!r} is not a finite number", str(path), row + 1)
        weights[names[name]] = given[row]
    return weights
