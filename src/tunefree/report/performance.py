"""The performance of a model, along the stream and on test data, and compared with others on the same rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from tunefree.model_files.trained import Trained
from tunefree.plotting import charts
from tunefree.plotting.style import LEADER, shortened, span
from tunefree.report.document import Block, Chart, Column, Fact, Facts, Note, Section, Table, known, on_axes
from tunefree.report.formats import (
    ABSENT,
    COUNT,
    FIGURES,
    PERCENT,
    RATIO,
    SHARE,
    TENTHS_OF_PERCENT,
    WEIGHT,
    Format,
    text,
    weight,
    weights_named,
)
from tunefree.report.learned import blocks_of_drifts, losses, names_of_losses, tables_of_passes
from tunefree.workflows.evaluation import COVERAGE, WIDTH, Evaluation
from tunefree.workflows.metrics import PROPORTIONS, Measure, calibration_error, class_reliability, equal_parts, lift
from tunefree.workflows.paired import PairedComparison

SHARES = (*PROPORTIONS, "balanced_error")  # metrics in per cent
TITLES = {"log_loss": "log-loss", "auc": "area under ROC curve", "f1": "F1", "r2": "R2", "brier": "Brier score"}
TITLES |= {"interval_coverage": "covered by intervals", "interval_width": "mean width of intervals"}
TITLES |= {"d2": "D2", "gini": "Gini index", "actual_over_expected": "actual / expected"}
BRIEF_TITLES = {"auc": "ROC area", "mean_absolute_error": "absolute error", "root_mean_squared_error": "RMSE"}
OF_SLICES = ("error", "log_loss", "auc", "mean_absolute_error", "root_mean_squared_error", "coverage")
OF_INTERVALS = ("interval_coverage", "interval_width", "interval_score")
OF_SLICES_OF_COUNTS = ("deviance", "d2", "actual_over_expected", "gini")
INTERVALS = (
    "Intervals: 95 %, if {0} are independent; Wilson's for shares of rows, else a jackknife over 20 parts of them, "
    "which needs 40 {0}."
)
FEW_CLASSES = 12  # classes up to which text output has the confusion matrix
POINTS = 800  # residuals in a chart
PROGRESSIVE = "Progressive: each row is predicted before it is learned, by the model of the rows before it."
EARLY = 4.0  # largest ratio of the highest loss in the chart to the last
STREAM = "Each row is predicted before it is learned: mean over all rows so far."
RISES = "Triangles: where the loss rose, as a test says."
CALIBRATION = (
    "Tenths of the exposure in the order of the predicted rate; on the grey line rates are as predicted. In a tenth of"
    " few events, chance parts them."
)
OF_WIDTHS = "Rows in the order of the widths of their intervals: coverage should be as asked for in each part."
OF_PROBABILITIES = (
    "Tenths of the test data by this probability: the share should be as the mean probability. Intervals: 95 %,"
    " Wilson's, if {} are independent."
)
CLASSES = [
    Column("class", str, has_words=True),
    Column("rows", COUNT),
    Column("share", SHARE),
    Column("mean probability", SHARE),
    Column("actual / expected", RATIO, "actual_over_expected"),
    Column("is predicted", is_shown=False),
]
OF_PAIRS = (
    "More: the mean less the mean of the first model; intervals of 95 % for all differences together, if {0} are"
    " independent (Student's t and Bonferroni, with two {0} added as by Bonett and Price 2012). Better: by the loss,"
    " where its interval leaves 0 out."
)
OF_CLIPPING = " Probabilities below 1 / (2 x rows) count as this."
RESIDUALS = "Residuals on the test data: targets minus predictions, against predictions."


def performance(trained: Trained, tested: Evaluation | None) -> Section:
    """The section on performance, with results on test data first."""
    blocks = [] if tested is None else judged(trained, tested, "On the test data")
    drawn_blocks = [block for block in blocks if isinstance(block, Chart)] + _stream(trained)
    blocks = [*blocks[:1], *drawn_blocks, *(block for block in blocks[1:] if not isinstance(block, Chart))]
    blocks += [Facts(losses(trained), "While it learned", PROGRESSIVE)]
    return Section("performance", "How well it predicts", [*blocks, *tables_of_passes(trained)])


def unsure(trained: Trained, tested: Evaluation | None) -> Section | None:
    """The section on uncertainty: rows, and parts of the stream, that the model predicts less well."""
    blocks = [*([] if tested is None else sureness(tested)), *blocks_of_drifts(trained)]
    return Section("unsure", "Where it is unsure", blocks) if blocks else None


def evaluation(trained: Trained, tested: Evaluation, by: str | None = None) -> list[Block]:
    """Blocks of all metrics of an evaluation on rows with targets."""
    return [*judged(trained, tested), *sureness(tested), *([] if by is None else [_slices(tested, by)])]


def judged(trained: Trained, tested: Evaluation, title: str = "") -> list[Block]:
    """Losses, errors and calibration on known targets; ``title``: the title of the metrics."""
    scored, groups = tested.scored, tested.scored.groups
    facts = [Fact("rows", tested.rows, COUNT)]
    if column := weights_named(trained.plan, scored.weight):
        facts += [Fact("weighted by", column), Fact("sum of weights", float(scored.weight.sum()), WEIGHT)]
    facts += facts_of_measures(tested.measures, trained.model)
    if scored.codes is not None:
        facts.append(Fact("calibration error", calibration_error(scored), FIGURES))
    facts += known(Fact("rows of unseen classes", tested.unseen, COUNT))
    facts += known(Fact("groups", 0 if groups is None else len(np.unique(groups)), COUNT))
    has_intervals = any(measure.low is not None for measure in tested.measures.values())
    blocks: list[Block] = [Facts(facts, title, INTERVALS.format(_units(tested)) if has_intervals else "")]
    if scored.codes is not None:
        labels = trained.model.classes
        return [*blocks, _confusion(labels, tested), *_reliability(tested, labels)]
    rows_shown = np.unique(np.linspace(0, len(scored.targets) - 1, POINTS).astype(np.int64))
    x, y = scored.predictions[rows_shown], (scored.targets - scored.predictions)[rows_shown]
    described = f"{len(rows_shown):,} of the test rows, evenly spaced; residuals from {y.min():.4g} to {y.max():.4g}."
    draw = on_axes(charts.draw_scatter, x, y, ("prediction", "target - prediction"))
    caption = f"{RESIDUALS} {len(rows_shown):,} rows, evenly spaced."
    return [*blocks, *by_decile(tested), Chart("Residuals against predictions", described, draw, caption)]


def _stream(trained: Trained) -> list[Block]:
    """The progressive loss along the stream."""
    curve = trained.progress.points()
    if len(curve) < 3:
        return []
    rows, means = [point.rows for point in curve], [point.mean_loss() for point in curve]
    top = min(max(means), EARLY * means[-1]) if means[-1] > 0.0 else max(means)
    low, high = span([top, *means[2:]], 0.06)
    y_range = max(low, 0.0), min(high, 1.1 * top) if 1.1 * top > max(low, 0.0) else high
    described = f"The progressive loss goes from {means[0]:.4g} after {rows[0]:,} rows to {means[-1]:.4g}"
    described += f" after {rows[-1]:,}."
    rises = [] if trained.rises is None else [rise.row for rise in trained.rises.rises]
    described += f" It rose at row{'s' if len(rises) > 1 else ''} {', '.join(map(str, rises))}." if rises else ""
    marks = [row for row in rises if row >= rows[0]]
    loss = "log-loss (nats per row)" if trained.model.loss_is_log_loss else "mean loss per row"
    lines = [charts.Series("", rows, means, LEADER)]
    draw = on_axes(charts.draw_lines, lines, ("rows", loss), y_range, marks)
    data, caption = {"rows": rows, "loss": means}, f"{STREAM} {RISES}" if rises else STREAM
    return [Chart("Progressive loss along the stream", described, draw, caption, key="progressive_curve", data=data)]


def _confusion(classes: list[Any], tested: Evaluation) -> Table:
    """The confusion matrix by true and predicted class; text output has it only for few classes."""
    labels, matrix = [*classes, "(unseen)"], tested.scored.confusion(tested.scored.weight).tolist()
    rows = [[label, *row] for label, row in zip(labels, matrix, strict=True)]
    rows = rows if tested.unseen else rows[:-1]
    columns = [Column("class \\ predicted", text, "class")]
    columns += [Column(str(label), weight, f"predicted_{label}") for label in classes]
    shown = None if len(classes) <= FEW_CLASSES else ()
    return Table("Confusion matrix", columns, rows, key="confusion", shown=shown, is_wide=len(classes) > 4)


def _slices(tested: Evaluation, by: str) -> Table:
    """The metrics of each slice, with their intervals; text output has the main ones."""
    names = list(tested.measures)
    shown = (OF_SLICES if tested.scored.power is None else OF_SLICES_OF_COUNTS) + OF_INTERVALS
    value = Column(by, lambda value: "(missing)" if value is None else value, "value", has_words=True)
    titles = [(name, (TITLES | BRIEF_TITLES).get(name, name.replace("_", " "))) for name in names]
    columns = [value, Column("rows", COUNT)]
    columns += [Column(title, format_of(name).with_half, name, name in shown) for name, title in titles]
    rows = [[part.value, part.rows, *(part.measures.get(name) for name in names)] for part in tested.slices]
    return Table(f"By {by}", columns, rows, "±: half the width of the 95 % interval.", "slices")


def by_decile(tested: Evaluation) -> list[Block]:
    """Predicted and observed sums by decile of the predicted rate, as a table and a chart."""
    scored = tested.scored
    if scored.exposure is None:
        return []
    deciles = lift(scored.exposure, scored.targets, scored.predictions)
    columns = [Column("decile", COUNT), *(Column(title, FIGURES) for title in ("exposure", "predicted", "actual"))]
    columns.append(Column("actual / expected", FIGURES, "actual_over_expected"))
    rows = [[k, *decile] for k, decile in enumerate(deciles, 1)]
    expected, actual = [predicted for _, predicted, *_ in deciles], [Measure(rate) for _, _, rate, _ in deciles]
    titles = "predicted rate", "actual rate"
    return [
        Table("By decile of the prediction", columns, rows, key="lift"),
        _calibration("Calibration by decile", expected, actual, titles, CALIBRATION),
    ]


def blocks_of_pairs(comparison: PairedComparison) -> list[Block]:
    """The sentence, the facts of the comparison, and the table of models."""
    is_class, loss = comparison.task == "classification", comparison.loss
    facts = [
        Fact("target", comparison.target),
        Fact("task", comparison.task),
        Fact("loss", loss),
        Fact("rows", comparison.rows, COUNT),
        *known(Fact("groups", comparison.groups, COUNT)),
        Fact("compared", comparison.how, key="how"),
        *known(Fact("rows of unseen classes", comparison.unseen, COUNT)),
    ]
    more, more_error = (Format(f"+{FIGURES.spec_of(mean)}") for mean in (comparison.model.loss, comparison.model.error))
    error = Column("absolute error", FIGURES, "error"), Column("more", more_error.interval, "error_difference")
    if is_class:
        error = Column("error", PERCENT), Column("points more", Format("+.1f", 100.0).interval, "error_difference")
    has_seconds = any(one.seconds is not None for one in comparison.contenders)
    seconds = Column("seconds", lambda value: ABSENT if value is None else f"{value:.1f}", is_shown=has_seconds)
    columns = [Column("model", key="name"), Column(loss, FIGURES, "loss")]
    columns += [Column("more, 95 %", more.interval, "loss_difference"), *error, Column("better"), seconds]
    contenders = [
        [one.name, one.loss, one.loss_difference, one.error, one.error_difference, one.better, one.seconds]
        for one in comparison.contenders
    ]
    note = OF_PAIRS.format("groups" if comparison.groups else "rows") + (OF_CLIPPING if is_class else "")
    table = Table("Models on the same rows", columns, contenders, note, "models", is_wide=True)
    reason_columns = [Column("what"), Column("because")]
    left_out = Table("Left out, or unlike the model", reason_columns, list(comparison.left_out.items()), key="left_out")
    sentence = Facts([Fact("in a sentence", comparison.sentence, key="sentence")])
    return [sentence, Facts(facts), table, left_out]


def sureness(tested: Evaluation) -> list[Block]:
    """Accuracy by the probability of the predicted class, or coverage by the width of intervals."""
    scored = tested.scored
    if scored.probability is not None:
        parts = equal_parts(scored, scored.probability, scored.codes == scored.chosen)
        columns, note = _columns_of_parts("right", TENTHS_OF_PERCENT), OF_PROBABILITIES.format(_units(tested))
        return [Table("How sure, and how often right", columns, [part[:3] for part in parts], note, "by_sureness")]
    if WIDTH not in scored.means:
        return []
    parts = equal_parts(scored, scored.means[WIDTH], scored.means[COVERAGE])
    columns = [Column("mean width", FIGURES, "width"), Column("rows", COUNT), Column("covered", PERCENT.with_ends)]
    return [Table("Intervals by width", columns, [part[:3] for part in parts], OF_WIDTHS, "intervals_by_width")]


def _columns_of_parts(title: str, share: Format) -> list[Column]:
    """Columns of the mean probability, the number of rows, and a share with its interval."""
    return [Column("mean probability", share, "probability"), Column("rows", COUNT), Column(title, share.with_ends)]


def format_of(name: str) -> Format:
    """The format of a metric: shares of rows are in per cent."""
    return PERCENT if name in SHARES else FIGURES


def facts_of_measures(measures: dict[str, Measure], model: Any) -> list[Fact]:
    """Metrics of a model with their intervals."""
    titles = TITLES | {"loss": f"mean {names_of_losses(model)[0][0]}"}
    return [
        Fact(titles.get(name, name.replace("_", " ")), measure, format_of(name), name)
        for name, measure in measures.items()
    ]


def _reliability(tested: Evaluation, labels: list[Any]) -> list[Block]:
    """Blocks on classes that are never predicted, on the rarest classes, and on the calibration of the rarest."""
    classes = class_reliability(tested.scored, labels)
    rows = [reliability[:6] for reliability in classes]
    title = "Classes, the rarest first" + ("" if len(rows) == len(labels) else f": {len(rows)} of {len(labels):,}")
    blocks: list[Block] = [
        Table(title, CLASSES, rows, key="reliability", shown=None if len(labels) > 2 else (), is_wide=True)
    ]
    if never := [reliability for reliability in classes if not reliability.is_predicted]:
        others = f", nor {len(never) - 1} of the others shown" if len(never) > 1 else ""
        named = f"Class {never[0].label!r} is never predicted{others}, and has {PERCENT(never[0].share)} of the rows."
        weights = "`train --class-weight`"
        decide = f"{weights} decides"
        if len(labels) == 2:
            decide = f"`predict --threshold P`, the least probability of {labels[1]!r}, and {weights} decide"
        blocks.insert(0, Note(f"{named} {decide} when it is.", "warning"))
    for reliability in classes[:1]:
        title = f"Class {reliability.label!r}, {SHARE(reliability.share)} of the rows, by tenth of its probability"
        titles = f"probability of {shortened(str(reliability.label), charts.LONGEST)}", "share of the rows"
        expected, actual = [part.mean for part in reliability.tenths], [part.share for part in reliability.tenths]
        about, columns = OF_PROBABILITIES.format(_units(tested)), _columns_of_parts("share", SHARE)
        blocks += [
            _calibration(f"Class {reliability.label}: actual against expected", expected, actual, titles, about),
            Table(title, columns, [part[:3] for part in reliability.tenths], about, "tenths"),
        ]
    return blocks


def _calibration(
    title: str, expected: list[float], actual: list[Measure], titles: tuple[str, str], caption: str
) -> Chart:
    """A chart of actual shares or rates, with their intervals, against those expected."""
    pairs = zip(expected, actual, strict=True)
    described = "; ".join(f"expected {mean:.3g}, actual {measure.value:.3g}" for mean, measure in pairs)
    return Chart(title, described, on_axes(charts.draw_calibration, expected, actual, titles), caption)


def _units(tested: Evaluation) -> str:
    """The units that intervals assume to be independent: rows, or groups if there are any."""
    return "rows" if tested.scored.groups is None else "groups"
