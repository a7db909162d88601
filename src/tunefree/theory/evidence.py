"""Certificates: lower bounds on the loss of every linear model of a given size, from sums over one pass.

Losses are convex in the predictions. Let p_t (K,) be any predictions, s_t (K,) a subgradient of the loss at p_t, and
h_t the sample weight. Then every linear model u (d, K) satisfies

    sum_t h_t loss_t(p_t) - sum_t h_t loss_t(u x_t)  <=  sum_t h_t s_t . (p_t - u x_t)  =  C - sum_jk u_jk G_jk,

where C = sum h s . p and G_jk = sum h s_k x_j: one scalar, and one number for each weight. (The proofs of the regret
bounds of Orabona 2014 and of Kempka, Kotlowski, Warmuth 2019, equation (3), bound the right side. Here it is computed.)
For |u_jk| max_t |x_tj| <= U the right side is at most C + U sum_jk |G_jk| / max_t |x_tj|. The inequality says nothing
about other rows.

With L = sum h loss(p), the total loss of u is thus at least A = L - C + u G. Nonnegative losses with H-Lipschitz slopes
have a better bound. By Fenchel-Young loss(q) >= r s . q - loss*(r s) for any r in [0, 1]; loss* is 1/H-strongly
convex, loss*(0) <= 0 and loss*(s) = s . p - loss(p). So with Q = sum h |s|^2 / (2 H)

    sum_t h_t loss_t(u x_t)  >=  max_r r A + r (1 - r) Q  =  A if A >= Q, (A + Q)^2 / (4 Q) if |A| < Q, else 0.

A class may first appear during the stream. The loss of a model of all classes is at least the loss of its restriction
to the classes known at the time. The sums over earlier rows therefore remain valid, with G = 0 for the new class (see
:func:`widened`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike

from tunefree.compiled.functions import Compiled
from tunefree.core.fields import State, padded, per_coordinate, per_feature, single
from tunefree.core.numbers import LARGEST
from tunefree.core.rows import Rows, entries_of
from tunefree.learners.units import exceeds, new_unit
from tunefree.losses.contract import has_log_link
from tunefree.losses.functions import Functions, Loop
from tunefree.losses.objectives import Objective

_ROUNDING = 2.0**-52
_NOWHERE, _NO_LOG = np.zeros(0, np.int64), np.zeros((0, 0))
_OPERATIONS = 16.0  # upper bound on the number of roundings in the loss, the slopes and the products of a row


class Evidence(State):
    """Sums over rows that compare predictions with every linear model; :func:`record_evidence` adds rows."""

    inverse = per_feature("1 / unit_j, a power of two; 0 until the feature is first seen")
    largest = per_feature("M_j / unit_j, from 1 to 2, where M_j = max |x_j|")
    gradients = per_coordinate("G_jk / unit_j: sum of h s_k x_j")
    inner = single("C: sum of h s . p; infinite, so that no bound is claimed, once a sum overflows")
    loss = single("sum of h loss(p)")
    slopes = single("sum of h |s|, an upper bound on every |G_jk| / M_j")
    sizes = single("sum of h (loss(p) + sum |s_k p_k|), which bounds the rounding errors")
    bends = single("Q: sum of h |s|^2 / (2 H)")
    weight = single("sum of h")
    rounds = single("rows of positive weight")


def add_entry(evidence, j, value, slopes):
    """G_j <- G_j + s x_j, in units."""
    if exceeds(evidence, j, abs(value)):
        ratio = new_unit(evidence, j, abs(value))
        if ratio != 1.0:
            for k in range(evidence.gradients.shape[1]):
                evidence.gradients[j, k] *= ratio
    scaled = value * evidence.inverse[j]
    for k in range(len(slopes)):
        evidence.gradients[j, k] += slopes[k] * scaled


def add_row(evidence, indices, values, weight, slopes, bend, prediction, loss):
    """Add a row with its prediction (K,), the loss and its ``slopes`` there; ``bend`` is 1 / (2 H).

    The slopes are multiplied by the sample weight in place.
    """
    inner, steep, bends, sizes = 0.0, 0.0, 0.0, weight * loss
    for k in range(len(prediction)):
        weighted = weight * slopes[k]
        bends += bend * (weighted * slopes[k]) if bend > 0.0 else 0.0
        slopes[k] = weighted
        steep += abs(weighted)
        if slopes[k] != 0.0:  # a class not yet seen has the margin -inf and the slope 0
            inner += slopes[k] * prediction[k]
            sizes += abs(slopes[k] * prediction[k])
    sizes += evidence.sizes[0]
    bends, steep = evidence.bends[0] + bends, evidence.slopes[0] + steep
    if not (loss <= LARGEST and sizes <= LARGEST and bends <= LARGEST and steep <= LARGEST / 2.0):  # or not a number
        evidence.inner[0] = math.inf
        return
    evidence.inner[0] += inner
    evidence.loss[0] += weight * loss
    evidence.slopes[0], evidence.sizes[0], evidence.bends[0] = steep, sizes, bends
    evidence.weight[0] += weight
    evidence.rounds[0] += 1.0
    for e in range(len(indices)):
        if len(slopes) == 1 or values[e] != 0.0:
            add_entry(evidence, indices[e], values[e], slopes)


@Loop
def recording_of(functions: Functions) -> Callable[..., None]:
    """The loop over rows that adds their predictions and losses."""
    true_slope = functions.true_slope

    def record(
        evidence: Any,
        codes: Annotated[np.ndarray, "int64[2]"],
        numbers: Annotated[np.ndarray, "float64[facts]"],
        bend: float,
        rows: Rows,
        targets: Annotated[np.ndarray, "float64[rows]"],
        weights: Annotated[np.ndarray, "float64[rows]"],
        predictions: Annotated[np.ndarray, "float64[rows, outputs]"],
        losses: Annotated[np.ndarray, "float64[rows]"],
        places: Annotated[np.ndarray, "int64[placed]"],
        log: Annotated[np.ndarray, "float64[logged, log_columns]"],
        slopes: Annotated[np.ndarray, "float64[padded]"],
    ) -> None:
        n_outputs = predictions.shape[1]
        for i in range(len(targets)):
            if weights[i] > 0.0:
                true_slope(codes, numbers, targets[i], n_outputs, predictions[i], slopes)
                start, stop = rows.starts[i], rows.ends[i]
                indices, values = rows.indices[start:stop], rows.values[start:stop]
                add_row(evidence, indices, values, weights[i], slopes, bend, predictions[i], losses[i])
            if len(places) > 0 and places[i] >= 0:
                for k in range(n_outputs):
                    log[places[i], k] = slopes[k] if weights[i] > 0.0 else 0.0

    return record


def replay(
    evidence: Any,
    rows: Rows,
    sources: Annotated[np.ndarray, "int64[rows]"],
    log: Annotated[np.ndarray, "float64[logged, log_columns]"],
) -> None:
    """Add entries that were left out of earlier rows, given as rows of one entry each, by the slopes of those rows."""
    for i in range(len(sources)):
        for e in range(rows.starts[i], rows.ends[i]):
            add_entry(evidence, rows.indices[e], rows.values[e], log[sources[i]])


def recording(has_one_output: bool) -> Compiled:
    """The compiled function that adds rows, for one or several outputs and all registered losses."""
    name = f"theory.evidence.record.{'one' if has_one_output else 'several'}"
    lengths = {"padded": 1, "outputs": 1} if has_one_output else {}
    return recording_of.compiled(name=name, states={"evidence": Evidence}, lengths=lengths)


@cache
def replaying(has_one_output: bool) -> Compiled:
    """The compiled function that adds entries of earlier rows, for one or several outputs."""
    name = f"theory.evidence.replay.{'one' if has_one_output else 'several'}"
    return Compiled(replay, name, {"evidence": Evidence}, {"padded": 1} if has_one_output else {})


def all_compiled() -> list[Compiled]:
    """The compiled functions of this module that are compiled for a number of outputs."""
    return [factory(has_one_output) for factory in (recording, replaying) for has_one_output in (True, False)]


def replay_evidence(evidence: Evidence, X: Any, sources: np.ndarray, log: np.ndarray) -> None:
    """Add entries that were left out of earlier rows, given as rows of one entry each, by the slopes of those rows."""
    replaying(evidence.n_outputs == 1)(evidence, entries_of(X), sources, log)


def record_evidence(
    evidence: Evidence,
    objective: Objective,
    X: Any,
    y: np.ndarray,
    weight: np.ndarray,
    predictions: np.ndarray,
    losses: np.ndarray,
    places: np.ndarray = _NOWHERE,
    log: np.ndarray = _NO_LOG,
) -> None:
    """Add rows with their predictions (n, K) and losses (n,).

    Where entries are left out until :func:`replay_evidence` adds them, the weighted slopes (K,) of row i are written to
    row ``places[i]`` of ``log``, unless that is -1.
    """
    steepness = objective.smoothness
    bend = 0.5 / steepness if steepness > 0.0 else math.inf
    row_arguments = [np.ascontiguousarray(array, np.float64) for array in (y, weight, predictions, losses)]
    record, slopes = recording(evidence.n_outputs == 1), np.zeros(padded(evidence.n_outputs))
    record(evidence, *objective.arrays, bend, entries_of(X), *row_arguments, places, log, slopes)


def widened(evidence: Evidence, n_features: int, n_outputs: int, objective: Objective) -> Evidence:
    """Evidence with more features and outputs, for an objective with the same number of outputs.

    The sums remain valid for models with more classes: the loss of such a model is at least the loss of its restriction
    to the classes known at that row. If the single margin m of two classes becomes one margin for each class,

    - with the softmax m = u_1 x - u_0 x, since leaving out the other classes only lowers the loss, so G_0 = -G_1;
    - with one-against-all m = u_1 x, since the losses of the other classes are at least 0, so G_0 = 0.
    """
    split = evidence.n_outputs == 1 < n_outputs
    wide = evidence.grown(n_features, n_outputs, first=1 if split else 0)
    if split and objective.is_softmax:
        wide.gradients[:, 0] = 0.0 - wide.gradients[:, 1]  # 0, not -0, for unseen features
    return wide


def frame(objective: Objective) -> tuple[float, float]:
    """The centre of the weight of the constant feature, and the unit of the radius.

    In regression these are the running mean of the targets and the mean distance from it, both robust to outliers for
    losses with a Lipschitz constant (if the distance is 0, the absolute value of the mean). With a logarithmic link
    they are the logarithm of the mean, and 1.
    """
    if objective.task == "classification":
        return 0.0, 1.0
    if has_log_link(objective.loss):
        return objective.centre, 1.0
    centre, spread = objective.centre * objective.unit, objective.spread * objective.unit
    return min(max(centre, -LARGEST), LARGEST), min(spread, LARGEST) or min(abs(centre), LARGEST) or 1.0


@dataclass(frozen=True, repr=False)
class Certificate:
    """Lower bounds on the loss of every linear model on the rows of the evidence; made by :func:`certify`.

    The bounds do not hold for other rows or other kinds of models. A *radius* bounds the contribution of each feature
    to a prediction: the absolute weight of a feature times its largest absolute value, the constant feature included.
    The weight of the constant feature is measured from a centre, and a radius in a unit, see :func:`frame`.

    >>> from tunefree.core import rows
    >>> from tunefree.losses import Logistic
    >>> from tunefree.losses.objectives import measured
    >>> X, y = rows.dense([[0.0], [1.0], [2.0]] * 100), np.array([-1.0, 1.0, 1.0] * 100)
    >>> objective, margins = Objective("classification", Logistic()), np.array([[-2.0], [1.0], [4.0]] * 100)
    >>> evidence, row_losses = Evidence(2), measured(objective, y, margins)
    >>> record_evidence(evidence, objective, X, y, np.ones(300), margins, row_losses)
    >>> certificate = certify(evidence, objective)
    >>> round(certificate.loss / 300, 3), round(certificate.lower_bound(2.0), 3)
    (0.153, 0.132)
    """

    loss: float  # weighted sum of the losses of the predictions
    # C, with the weight of the constant feature measured from the centre, plus a bound on the rounding errors of C and
    # of the loss. It is infinite after an overflow, which makes all bounds trivial.
    inner: float
    weight: float  # sum of the sample weights
    rounds: int  # number of rows of positive weight
    pulls: np.ndarray  # (d, K) G_jk / M_j, up to rounding: gradient of the linearised total loss in the scaled weights
    largest: np.ndarray  # (d,) M_j, the largest absolute value of each feature; 0 if it was never seen
    bends: float = 0.0  # Q, 0 for losses that are not smooth
    centre: float = 0.0  # of the weight of the constant feature
    unit: float = 1.0  # of a radius
    n_partial: int = 0  # number of features for which ``pulls`` lacks one row
    steepest: float = 0.0  # bound on the change of a pull by that row

    def __repr__(self) -> str:
        mean = self.loss / self.weight if self.weight > 0.0 else 0.0
        return f"Certificate(rows={self.rounds:,}, features={len(self.largest):,}, mean_loss={mean:.6g})"

    def regret(self, weights: ArrayLike, units: ArrayLike | float = 1.0) -> float:
        """Upper bound on the total loss of the predictions minus the loss of the linear model sum(weight * x / unit).

        The weights are (d, K), or (d,) for one output. If the bound is negative, the model has a larger loss.
        """
        u = np.asarray(weights, np.float64).reshape(self.pulls.shape)
        with np.errstate(all="ignore"):
            reach = u * (self.largest / np.asarray(units, np.float64))[:, None]
            reach[0] -= self.centre * (self.largest[0] > 0.0)
            reach_of_all = np.where(self.largest[:, None] > 0.0, reach, 0.0)
            reach[self.pulls == 0.0] = 0.0
            linear = self.loss - self.inner + float((reach * self.pulls).sum())
            if self.n_partial:
                longest = np.sort(np.abs(reach_of_all).max(axis=1))[::-1]
                linear -= self.steepest * float(longest[: self.n_partial].sum())
        return self.loss - self._least(linear) if math.isfinite(self.inner) else math.inf

    def lower_bound(self, radius: float) -> float:
        """Lower bound on the mean loss of every linear model of this radius on the learned rows.

        >>> one = Certificate(50.0, -2.0, 100.0, 100, np.array([[1.0], [-3.0]]), np.ones(2))
        >>> one.lower_bound(1.0), one.lower_bound(100.0)
        (0.48, 0.0)
        """
        if not self.weight > 0.0:
            return 0.0
        # Sorted, because the rounding of a sum depends on the order.
        pull = float(np.sort(np.abs(self.pulls), axis=None)[::-1].sum()) + self.n_partial * self.steepest
        linear = self.loss - self.inner - radius * self.unit * pull
        return min(self._least(linear) / self.weight, LARGEST)

    def table(self, radii: Iterable[float] = (1.0, 3.0, 10.0, 30.0)) -> list[tuple[float, float]]:
        """Pairs of a radius and the lower bound on the mean loss."""
        return [(float(radius), self.lower_bound(radius)) for radius in radii]

    def _least(self, linear: float) -> float:
        """Lower bound on the total loss of a model whose linearised total loss is ``linear``."""
        if abs(linear) < self.bends:
            return (linear + self.bends) / self.bends * (linear + self.bends) / 4.0
        return linear if linear > 0.0 else 0.0


def certify(evidence: Evidence, objective: Objective) -> Certificate:
    """The certificate of the evidence so far; radii are relative to the objective's statistics of the targets."""
    centre, unit = frame(objective)
    is_seen = evidence.inverse > 0.0
    relative = np.where(is_seen, evidence.largest, 1.0)  # M_j / unit_j
    with np.errstate(over="ignore"):
        pulls = evidence["gradients"] / relative[:, None]
        largest = np.where(is_seen, evidence.largest / np.where(is_seen, evidence.inverse, 1.0), 0.0)
        inner = float(evidence.inner[0]) - centre * float(pulls[0].sum())
        sizes = float(evidence.sizes[0]) + abs(centre) * float(evidence.slopes[0])
        inner += (float(evidence.rounds[0]) + _OPERATIONS) * _ROUNDING * sizes
    has_overflow = not (abs(inner) <= LARGEST and abs(pulls).sum() * unit <= LARGEST)
    return Certificate(
        loss=float(evidence.loss[0]),
        inner=math.inf if has_overflow else inner,
        weight=float(evidence.weight[0]),
        rounds=int(evidence.rounds[0]),
        pulls=pulls,
        largest=largest,
        bends=float(evidence.bends[0]),
        centre=centre,
        unit=unit,
    )
