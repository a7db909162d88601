"""How well a model predicts, along the stream and on test data."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from tunefree.model_files.trained import Trained
from tunefree.plotting import charts
from tunefree.plotting.style import BLUE, LEADER, shortened, span
from tunefree.report.document import Block, Chart, Column, Fact, Facts, Note, Section, Table, known, on_axes
from tunefree.report.formats import COUNT, MEASURE, PERCENT, RATIO, SHARE, SIX, THREE, WEIGHT, Format, text, weight
from tunefree.report.learned import blocks_of_drifts, facts_of_drifts, losses, tables_of_passes
from tunefree.report.words import weights_named
from tunefree.workflows.calibration import ClassReliability, tenths_of
from tunefree.workflows.comparison import Point
from tunefree.workflows.evaluation import Evaluation
from tunefree.workflows.metrics import Measure

SHARES = ("error", "balanced_error", "coverage", "interval_coverage")  # written in per cent
TITLES = {"log_loss": "log-loss", "auc": "area under ROC curve", "f1": "F1", "r2": "R2", "brier": "Brier score"}
TITLES |= {"interval_coverage": "covered by intervals", "interval_width": "mean width of intervals"}
TITLES |= {"d2": "D2", "gini": "Gini index", "actual_over_expected": "actual / expected"}
BRIEF_TITLES = {"auc": "ROC area", "mean_absolute_error": "absolute error", "root_mean_squared_error": "RMSE"}
OF_SLICES = ("error", "log_loss", "auc", "mean_absolute_error", "root_mean_squared_error", "coverage")
OF_INTERVALS = ("interval_coverage", "interval_width", "interval_score")
OF_SLICES_OF_COUNTS = ("deviance", "d2", "actual_over_expected", "gini")
INTERVALS = (
    "Intervals: 95 %, if rows are independent; Wilson's for shares of rows, else by a jackknife over 20 parts of them."
)
INTERVALS_OF_GROUPS = "Intervals: 95 %, if groups are independent; by a jackknife over 20 parts of whole groups."
FEW_CLASSES = 12  # of a confusion matrix that people see
POINTS = 800  # of residuals
STEPS = 200  # of a gain curve
LATELY = 4  # cuts: half a doubling of rows
EARLY = 4.0  # the highest loss shown is at most so many times the last
STREAM = (
    "Each row is predicted before it is learned. Thick line: mean over all rows so far. Lately: mean over the latest"
    " rows, about 30 % of them."
)
RISES = "Triangles: where the loss rose, as a test says."
GAIN = (
    "Gain on the test data: the share of all rows of the class that is among the rows of the highest probabilities of"
    " it. Grey: rows in a random order."
)
CALIBRATION = (
    "Rates on the test data, by tenths of the exposure in the order of the predicted rate. Where the lines part, the"
    " rates of such rows are predicted too high or too low; in a tenth of few events, chance parts them as well."
)
DOUBLE_LIFT = (
    "Tenths of the exposure in the order of the ratio of the two predicted rates: where the models differ most, the"
    " better one is nearer to what happened."
)
COVERAGE = (
    "Rows that intervals hold, less those asked for. Grey: what chance explains in 95 % of samples of so many"
    " independent rows; above it intervals are too wide, and below too narrow."
)
OF_WIDTHS = (
    "By tenth of the rows, in the order of the widths of their intervals: coverage should be as asked for in each."
)
PARTS = [
    Column("coverage asked for", Format("g"), "asked"),
    Column("covered", THREE),
    Column("chance explains from", THREE, "low"),
    Column("to", THREE, "high"),
]
TENTHS = [
    Column("mean width", SIX, "width"),
    Column("rows", COUNT),
    Column("covered", THREE),
    Column("95 % interval", lambda ends: f"{ends[0]:.3f} to {ends[1]:.3f}", "interval"),
]
DRAWN = 3  # classes whose tenths are drawn
ACTUAL_AND_EXPECTED = (
    "Actual and expected shares of rows of a class in the test data, by tenth of its probability:"
    " dots on the dashed line are as expected. Whiskers: 95 % intervals, for independent rows."
)
TENTHS_OF_CLASSES = [
    Column("class", is_shown=False),
    Column("mean probability", THREE, "probability"),
    Column("rows", COUNT),
    Column("expected", Format(",.1f")),
    Column("actual", WEIGHT),
    Column("actual / expected", RATIO, "actual_over_expected"),
    Column("95 % interval", lambda ends: f"{ends[0]:.2f} to {ends[1]:.2f}", "ratio_interval"),
    *(Column(name, is_shown=False) for name in ("share", "low", "high")),
]
CLASSES = [
    Column("class", str, has_words=True),
    Column("rows", COUNT),
    Column("share", SHARE),
    Column("mean probability", SHARE),
    Column("actual / expected", RATIO, "actual_over_expected"),
    Column("calibration error / share", RATIO, "relative_calibration_error"),
    Column("is predicted", is_shown=False),
]
RESIDUALS = "Residuals on the test data: targets minus predictions, against predictions."


def performance(trained: Trained, tested: Evaluation | None) -> Section:
    """How well the model predicts."""
    facts = [*losses(trained), *facts_of_drifts(trained)]
    blocks: list[Block] = [Facts(facts), *tables_of_passes(trained), *_stream(trained), *blocks_of_drifts(trained)]
    blocks += [] if tested is None else evaluation(trained, tested, None, "On the test data")
    return Section("performance", "How well it predicts", blocks)


def evaluation(trained: Trained, tested: Evaluation, by: str | None = None, title: str = "") -> list[Block]:
    """Losses, errors and calibration on known targets; the metrics have a title."""
    facts, groups = [Fact("rows", tested.metrics.rows, COUNT)], tested.scored.groups
    if column := weights_named(trained.plan, tested.scored.weight):
        facts += [Fact("weighted by", column), Fact("sum of weights", tested.metrics.weight, SIX)]
    facts += facts_of_measures(tested.measures)
    if tested.confusion is not None:
        facts.append(Fact("calibration error", tested.calibration.error, SIX))
    facts += known(Fact("rows of unseen classes", tested.unseen, COUNT))
    facts += known(Fact("groups", 0 if groups is None else len(np.unique(groups)), COUNT))
    has_intervals = any(measure.low is not None for measure in tested.measures.values())
    note = INTERVALS if groups is None else INTERVALS_OF_GROUPS
    blocks: list[Block] = [Facts(facts, title, note if has_intervals else ""), *by_decile(tested)]
    if tested.confusion is None:
        blocks += [_residuals(tested), *_intervals(tested)]
    else:
        labels = trained.model.classes
        blocks += [_confusion(labels, tested), *_reliability(tested, labels), *_gain(labels, tested)]
    return blocks + ([] if by is None else [_slices(tested, by)])


def _stream(trained: Trained) -> list[Block]:
    """The progressive loss along the stream."""
    curve = trained.progress.points()
    if len(curve) < 3:
        return []
    rows, means = [point.rows for point in curve], [point.mean_loss() for point in curve]
    doublings = [point for k, point in enumerate(curve) if (len(curve) - 1 - k) % LATELY == 0]
    late = [point.rows for point in doublings[1:]]
    recent = [Point.between(*pair).recent for pair in pairwise(doublings)]
    lines = [charts.Series("all of it", rows, means, LEADER)]
    if late:  # few rows have no rows lately
        lines.insert(0, charts.Series("lately", late, recent, {"color": BLUE, "linewidth": 1.7}))
    top = min(max(means), EARLY * means[-1]) if means[-1] > 0.0 else max(means)
    low, high = span([top, *(line.y[-1] for line in lines), *means[2:]], 0.06)
    y_range = max(low, 0.0), min(high, 1.1 * top) if 1.1 * top > max(low, 0.0) else high
    described = f"The progressive loss falls from {means[0]:.4g} after {rows[0]:,} rows to {means[-1]:.4g}"
    described += f" after {rows[-1]:,}."
    rises = [] if trained.rises is None else [rise.row for rise in trained.rises.rises]
    described += f" It rose at row{'s' if len(rises) > 1 else ''} {', '.join(map(str, rises))}." if rises else ""
    marks = [row for row in rises if row >= rows[0]]
    loss = "log-loss (nats per row)" if trained.model.loss_is_log_loss else "mean loss per row"
    draw = on_axes(charts.draw_lines, lines, ("rows", loss), y_range, True, marks)
    data, caption = {"rows": rows, "loss": means}, f"{STREAM} {RISES}" if rises else STREAM
    return [Chart("Progressive loss along the stream", described, draw, caption, key="progressive_curve", data=data)]


def _confusion(classes: list[Any], tested: Evaluation) -> Table:
    """The rows of each class by the class predicted; people see that of few classes."""
    labels = [*classes, "(unseen)"] if tested.unseen else classes
    matrix = tested.confusion.tolist() if tested.confusion is not None else []
    rows = [[label, *row] for label, row in zip(labels, matrix, strict=False)]
    columns = [Column("class \\ predicted", text, "class")]
    columns += [Column(str(label), weight, f"predicted_{label}") for label in classes]
    shown = None if len(classes) <= FEW_CLASSES else ()
    return Table("Confusion matrix", columns, rows, key="confusion", shown=shown, is_wide=len(classes) > 4)


def _slices(tested: Evaluation, by: str) -> Table:
    """The metrics of each slice, with their intervals; people see the main ones."""
    names = list(tested.measures)
    shown = (OF_SLICES if tested.scored.power is None else OF_SLICES_OF_COUNTS) + OF_INTERVALS
    value = Column(by, lambda value: "(missing)" if value is None else value, "value", has_words=True)
    titles = [(name, BRIEF_TITLES.get(name) or title_of(name)) for name in names]
    columns = [value, Column("rows", COUNT)]
    columns += [Column(title, format_of(name).with_half, name, name in shown) for name, title in titles]
    rows = [[part.value, part.rows, *(part.measures.get(name) for name in names)] for part in tested.slices]
    return Table(f"By {by}", columns, rows, "±: half the width of the 95 % interval.", "slices")


def gain_of(tested: Evaluation) -> tuple[np.ndarray, np.ndarray] | None:
    """Of two classes the share of rows looked at in the order of scores, and of rows of the second class among them."""
    scored = tested.scored
    if scored.scores is None or scored.codes is None or scored.scores.shape[1] != 1:
        return None
    order = np.argsort(-scored.scores[:, 0], kind="stable")
    weight = scored.weight[order]
    hits = np.cumsum(np.where(scored.codes[order] == 1, weight, 0.0))
    if not hits[-1] > 0.0:
        return None
    return np.append(0.0, np.cumsum(weight) / weight.sum()), np.append(0.0, hits / hits[-1])


def _gain(classes: list[Any], tested: Evaluation) -> list[Block]:
    """The gain curve of the second of two classes."""
    gain = gain_of(tested) if len(classes) == 2 else None
    if gain is None:
        return []
    places = np.unique(np.linspace(0, len(gain[0]) - 1, STEPS).astype(np.int64))
    looked, hits = (values[places] for values in gain)
    label, tenth = str(classes[-1]), float(np.interp(0.1, *gain))
    described = f"The tenth of the rows with the highest probabilities of {label} holds {tenth:.1%} of its rows."
    titles = "share of rows", f"share of the rows of {shortened(label, charts.LONGEST)}"
    data = {"share_of_rows": looked, "share_of_class": hits}
    return [Chart("Gain", described, on_axes(charts.draw_gain, looked, hits, titles), GAIN, data=data)]


def _residuals(tested: Evaluation) -> Chart:
    """Residuals against predictions."""
    scored = tested.scored
    assert scored.targets is not None
    assert scored.predictions is not None
    places = np.unique(np.linspace(0, len(scored.targets) - 1, POINTS).astype(np.int64))
    x, y = scored.predictions[places], (scored.targets - scored.predictions)[places]
    described = f"{len(places):,} of the test rows, evenly spaced; residuals from {y.min():.4g} to {y.max():.4g}."
    titles = "prediction", "target - prediction"
    caption = f"{RESIDUALS} {len(places):,} rows, evenly spaced."
    return Chart("Residuals against predictions", described, on_axes(charts.draw_scatter, x, y, titles), caption)


def by_decile(tested: Evaluation) -> list[Block]:
    """What was predicted and what happened, by decile of the predicted rate of counts, as a table and as a picture."""
    deciles = tested.lift
    if not deciles:
        return []
    titles = "exposure", "predicted", "actual", "actual / expected"
    keys = "", "", "", "actual_over_expected"
    columns = [Column("decile", COUNT), *(Column(title, SIX, key) for title, key in zip(titles, keys, strict=True))]
    rows = [[k, *decile] for k, decile in enumerate(deciles, 1)]
    lines = {name: [getattr(decile, name) for decile in deciles] for name in ("predicted", "actual")}
    ends = [f"{name} {rates[0]:.4g} in the lowest and {rates[-1]:.4g} in the highest" for name, rates in lines.items()]
    described, draw = f"Rates: {'; '.join(ends)}.", on_axes(charts.draw_rates, lines)
    return [
        Table("By decile of the prediction", columns, rows, key="lift"),
        Chart("Calibration by decile", described, draw, CALIBRATION),
    ]


def double_lift(deciles: list[list[float]], names: tuple[str, str]) -> Table:
    """What two models of these names predict and what happened, by decile of the ratio of the two."""
    columns = [Column("decile", COUNT), Column("exposure", SIX), Column(names[0], SIX, "first")]
    columns += [Column(names[1], SIX, "second"), Column("actual", SIX)]
    rows = [[k, *decile] for k, decile in enumerate(deciles, 1)]
    return Table("By decile of the ratio of the two models", columns, rows, DOUBLE_LIFT, "double_lift")


def _intervals(tested: Evaluation) -> list[Block]:
    """Coverage against what was asked for, and by width; none where no intervals were measured."""
    covered = tested.covered
    if not covered:
        return []
    worst = max(covered, key=lambda part: abs(part.covered - part.asked))
    described = f"Coverage is off most at {worst.asked:g}: {worst.covered:.3f}."
    draw = on_axes(charts.draw_coverage, *map(list, zip(*covered, strict=True)))
    tenths = [[tenth.mean, tenth.rows, tenth.share, [tenth.low, tenth.high]] for tenth in tenths_of(tested.scored)]
    return [
        Chart("Coverage against what was asked for", described, draw, COVERAGE),
        Table("Coverage of intervals", PARTS, [list(part) for part in covered], key="coverage_of_intervals"),
        Table("Intervals by width", TENTHS, tenths, OF_WIDTHS, "intervals_by_width"),
    ]


def title_of(name: str) -> str:
    """The title of a metric."""
    return TITLES.get(name, name.replace("_", " "))


def format_of(name: str) -> Format:
    """The format of a metric: shares of rows are in per cent."""
    return PERCENT if name in SHARES else MEASURE


def facts_of_measures(measures: dict[str, Measure]) -> list[Fact]:
    """Metrics with their intervals."""
    return [Fact(title_of(name), measure, format_of(name), name) for name, measure in measures.items()]


def _reliability(tested: Evaluation, labels: list[Any]) -> list[Block]:
    """Classes that are never predicted; the rarest classes, of more than two; and tenths of the first of these."""
    classes = tested.classes
    rows = [
        [one.label, one.rows, one.share, one.probability, one.ratio, one.error, one.is_predicted] for one in classes
    ]
    title = "Classes, the rarest first" + ("" if len(rows) == len(labels) else f": {len(rows)} of {len(labels):,}")
    blocks: list[Block] = [Note(line, "warning") for line in never_predicted(tested, labels)]
    blocks += [_chart_of_tenths(one) for one in classes[:DRAWN]]
    blocks.append(Table(title, CLASSES, rows, key="reliability", shown=None if len(labels) > 2 else ()))
    return blocks + [_table_of_tenths(one, rank) for rank, one in enumerate(classes)]


def never_predicted(tested: Evaluation, labels: list[Any]) -> list[str]:
    """A line where classes that rows have are predicted for none of them."""
    never = [one for one in tested.classes if not one.is_predicted]
    if not never:
        return []
    rarest, share = never[0], f"{100 * never[0].share:.2f} %"
    named = f"class {rarest.label!r} is never predicted"
    at_most = f"its probability is {rarest.highest:.3g} at most"
    if len(labels) == 2:
        decides = f"`predict --threshold P`, the least probability of {labels[1]!r}, and `train --class-weight` decide"
        return [f"{named}: the error is its share of the rows, {share}, and {at_most}. {decides} when it is."]
    others = f", nor {len(never) - 1} of the others shown" if len(never) > 1 else ""
    return [f"{named}{others}: it has {share} of the rows, and {at_most}. `train --class-weight` decides when it is."]


def _table_of_tenths(one: ClassReliability, rank: int) -> Table:
    rows = []
    for tenth in one.tenths:
        over = max(tenth.mean, 1e-300)
        expected, actual = tenth.mean * tenth.weight, tenth.share * tenth.weight
        ratios = [tenth.share / over, ((tenth.low or 0.0) / over, (tenth.high or 0.0) / over)]
        shares = [tenth.share, tenth.low, tenth.high]
        rows.append([one.label, tenth.mean, tenth.rows, expected, actual, *ratios, *shares])
    title = f"Class {one.label!r}, {SHARE(one.share)} of the rows, by tenth of its probability"
    note = (
        f"In all, actual / expected is {one.ratio:.2f}. Actual and expected shares differ by {one.error:.2f} of the"
        " share of the class on the average. Intervals: Wilson's, if rows are independent."
    )
    return Table(title, TENTHS_OF_CLASSES, rows, note, "tenths", None if rank == 0 else ())


def _chart_of_tenths(one: ClassReliability) -> Chart:
    """The shares of rows of a class, actual with their intervals and expected."""
    names = ("mean", "share", "low", "high")
    expected, actual, low, high = ([getattr(tenth, name) for tenth in one.tenths] for name in names)
    described = "; ".join(
        f"tenth {k}: expected {mean:.3g}, actual {share:.3g}"
        for k, (mean, share) in enumerate(zip(expected, actual, strict=True), 1)
    )
    draw = on_axes(charts.draw_shares, expected, actual, low, high, str(one.label))
    return Chart(f"Class {one.label}: actual and expected", described, draw, ACTUAL_AND_EXPECTED)
