"""Section of a report: how well a model predicts, along the stream and on test data."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np

from tunefree.model.targets import RunningMetrics
from tunefree.model_files.trained import Trained
from tunefree.report import charts
from tunefree.report.charts import Series
from tunefree.report.document import Facts, Figure, Section, Table
from tunefree.report.scales import LOG, Scale, spanning
from tunefree.report.told import losses_of, sentence, weighed_by
from tunefree.report.told_metrics import INTERVALS, shown, title_of
from tunefree.report.told_reliability import chart_of_tenths, reliability_blocks
from tunefree.workflows.evaluation import Evaluation

FEW_CLASSES = 12  # of a confusion matrix that is shown
DRAWN = 3  # classes whose reliability is drawn
POINTS = 800  # of residuals
STEPS = 200  # of a gain curve
LATELY = 4  # cuts: half an octave of rows
EARLY = 4.0  # the highest loss shown is at most so many times the last


def performance(trained: Trained, tested: Evaluation | None) -> Section:
    """How well the model predicts.

    Parameters
    ----------
    trained : Trained
    tested : Evaluation, optional
        On test data.
    """
    blocks: list[Any] = [Facts(progressive_facts(trained)), *_stream(trained)]
    if tested is not None:
        blocks.append(_measures(trained, tested))
        blocks += _classes(trained, tested) if tested.confusion is not None else _numbers(tested)
    return Section("performance", "How well it predicts", blocks)


def progressive_facts(trained: Trained) -> list[tuple[str, str]]:
    """Losses and errors of the passes, as `train` prints them."""
    model, progress = trained.model, trained.progress
    counted = " (after the first row)" if model.task == "regression" else ""
    facts = [
        (f"progressive {title}", value + counted) for title, value in losses_of(model, progress.progressive[0]).items()
    ]
    for number, metrics in enumerate(progress.held_out):
        if metrics.rows:
            passes = f" (pass {number + 1})" if trained.plan.passes > 1 else ""
            facts += [(f"held-out {title}{passes}", value) for title, value in losses_of(model, metrics).items()]
    return facts


def loss_title(trained: Any) -> str:
    """What the loss is called, with its unit."""
    return "log-loss (nats per row)" if trained.model.loss_is_log_loss else "mean loss per row"


def _stream(trained: Trained) -> list[Any]:
    """The progressive loss along the stream."""
    first, curve = trained.progress.progressive[0], list(trained.progress.curve)
    if not curve or curve[-1].rows < first.rows:
        curve.append(first)
    if len(curve) < 3:
        return []
    whole = Series("all of it", [point.rows for point in curve], [point.mean_loss() for point in curve], 0)
    doublings = [point for k, point in enumerate(curve) if (len(curve) - 1 - k) % LATELY == 0]
    lately = Series(
        "lately", [point.rows for point in doublings[1:]], [_between(a, b) for a, b in pairwise(doublings)], 1
    )
    series = [line for line in (whole, lately) if len(line.y)]  # few rows have no rows lately
    top = min(max(whole.y), EARLY * whole.y[-1]) if whole.y[-1] > 0.0 else max(whole.y)
    low, high = spanning(np.array([top, *(line.y[-1] for line in series), *whole.y[2:]]), 0.06)
    low = max(low, 0.0)
    axes = Scale(whole.x[0], whole.x[-1], LOG), Scale(low, min(high, 1.1 * top) if high > low else high)
    described = (
        f"The progressive loss falls from {whole.y[0]:.4g} after {whole.x[0]:,} rows to {whole.y[-1]:.4g} after"
        f" {whole.x[-1]:,}."
    )
    chart = charts.lines("Progressive loss along the stream", described, series, axes, ("rows", loss_title(trained)))
    caption = "Each row is predicted before it is learned. Thick line: mean over all rows so far. Lately:"
    caption += " mean over the latest rows, about 30 % of them."
    return [Figure(chart, caption)]


def _between(before: RunningMetrics, after: RunningMetrics) -> float:
    weight = after.weight - before.weight
    return (after.loss - before.loss) / weight if weight > 0.0 else math.nan


def _measures(trained: Trained, tested: Evaluation) -> Table:
    rows = [["rows", f"{tested.metrics.rows:,}", ""]]
    column = weighed_by(trained.plan, tested.scored.weight)
    rows += [["weighted by", column, ""]] if column else []
    rows += [[title_of(name), *shown(name, measure)] for name, measure in tested.measures.items()]
    if tested.confusion is not None:
        rows.append(["calibration error", f"{tested.calibration_error:.6g}", ""])
    rows += [["rows of unseen classes", f"{tested.unseen:,}", ""]] if tested.unseen else []
    note = sentence(INTERVALS.removesuffix("; ± is half the width"))
    return Table("On the test data", ["metric", "value", "95 % interval"], rows, f"{note}.")


def _classes(trained: Trained, tested: Evaluation) -> list[Any]:
    """Reliability, confusion and gain."""
    classes = trained.model.classes
    blocks: list[Any] = [Figure(chart_of_tenths(known), RELIABILITY) for known in tested.classes[:DRAWN]]
    blocks += reliability_blocks(tested, classes)
    gain = gain_of(tested, str(classes[-1])) if len(classes) == 2 else None
    blocks += [] if gain is None else [Figure(gain, GAIN)]
    if len(classes) <= FEW_CLASSES and tested.confusion is not None:
        labels = [*map(str, classes), "(unseen)"] if tested.unseen else list(map(str, classes))
        rows = [
            [label, *(f"{count:,.6g}" if count % 1 else f"{count:,.0f}" for count in counts)]
            for label, counts in zip(labels, tested.confusion.tolist(), strict=False)
        ]
        blocks.append(Table("Confusion matrix of the test data", ["class \\ predicted", *map(str, classes)], rows))
    return blocks


RELIABILITY = (
    "Actual and expected shares of rows of a class in the test data, by tenth of its probability:"
    " dots on the dashed line are as expected. Whiskers: 95 % intervals, for independent rows."
)
GAIN = (
    "Gain on the test data: the share of all rows of the class that is among the rows of the highest probabilities of"
    " it. Grey: rows in a random order."
)
RESIDUALS = "Residuals on the test data: targets minus predictions, against predictions."


def gain_of(tested: Evaluation, label: str) -> charts.Chart | None:
    """The share of rows of the second class that is found, by the share of rows looked at in the order of scores.

    Parameters
    ----------
    tested : Evaluation
        Of two classes.
    label : str
        The second one.
    """
    scored = tested.scored
    if scored.scores is None or scored.codes is None or scored.scores.shape[1] != 1:
        return None
    order = np.argsort(-scored.scores[:, 0], kind="stable")
    weight = scored.weight[order]
    hits = np.cumsum(np.where(scored.codes[order] == 1, weight, 0.0))
    if not hits[-1] > 0.0:
        return None
    looked = np.cumsum(weight) / weight.sum()
    places = np.unique(np.linspace(0, len(order) - 1, STEPS).astype(np.int64))
    series = Series(label, [0.0, *looked[places].tolist()], [0.0, *(hits[places] / hits[-1]).tolist()], 1)
    tenth = float(np.interp(0.1, looked, hits / hits[-1]))
    described = f"The tenth of the rows with the highest probabilities of {label} holds {tenth:.1%} of its rows."
    return charts.unit_square(
        "Gain", described, [series], ("share of rows", f"share of {charts.shortened(label)} found")
    )[0]


def _numbers(tested: Evaluation) -> list[Any]:
    """Residuals against predictions."""
    scored = tested.scored
    assert scored.targets is not None
    assert scored.predictions is not None
    places = np.unique(np.linspace(0, len(scored.targets) - 1, POINTS).astype(np.int64))
    x, y = scored.predictions[places], (scored.targets - scored.predictions)[places]
    axes = Scale(*spanning(x)), Scale(*spanning(y, zero=True))
    described = f"{len(places):,} of the test rows, evenly spaced; residuals from {y.min():.4g} to {y.max():.4g}."
    chart = charts.points("Residuals against predictions", described, x, y, axes, ("prediction", "target - prediction"))
    return [Figure(chart, f"{RESIDUALS} {len(places):,} rows, evenly spaced.")]
