"""Whether the probabilities of classes are true, in tables, charts and sentences."""

from __future__ import annotations

from typing import Any

from tunefree.plotting import charts
from tunefree.report.document import Block, Chart, Column, Note, Table, on_axes
from tunefree.report.formats import COUNT, RATIO, SHARE, THREE, WEIGHT, Format
from tunefree.workflows.evaluation import Evaluation
from tunefree.workflows.reliability import ClassReliability

DRAWN = 3  # classes whose tenths are drawn
CAPTION = (
    "Actual and expected shares of rows of a class in the test data, by tenth of its probability:"
    " dots on the dashed line are as expected. Whiskers: 95 % intervals, for independent rows."
)
TENTHS = [
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


def reliability(tested: Evaluation, labels: list[Any]) -> list[Block]:
    """Classes that are never predicted; the rarest classes, of more than two; and tenths of the first of these."""
    blocks: list[Block] = [Note(line, "warning") for line in never_predicted(tested, labels)]
    blocks += [_chart_of_tenths(known) for known in tested.classes[:DRAWN]]
    blocks.append(_table_of_classes(tested.classes, len(labels)))
    return blocks + [_table_of_tenths(known, rank) for rank, known in enumerate(tested.classes)]


def never_predicted(tested: Evaluation, labels: list[Any]) -> list[str]:
    """A line where classes that rows have are predicted for none of them."""
    never = [known for known in tested.classes if not known.is_predicted]
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


def _table_of_classes(classes: list[ClassReliability], n_classes: int) -> Table:
    rows = [
        [known.label, known.rows, known.share, known.probability, known.ratio, known.error, known.is_predicted]
        for known in classes
    ]
    title = "Classes, the rarest first" + ("" if len(rows) == n_classes else f": {len(rows)} of {n_classes:,}")
    return Table(title, CLASSES, rows, key="reliability", shown=None if n_classes > 2 else ())


def _table_of_tenths(known: ClassReliability, rank: int) -> Table:
    rows = []
    for tenth in known.tenths:
        over = max(tenth.probability, 1e-300)
        expected, actual = tenth.probability * tenth.weight, tenth.share * tenth.weight
        ratios = [tenth.share / over, (tenth.low / over, tenth.high / over)]
        shares = [tenth.share, tenth.low, tenth.high]
        rows.append([known.label, tenth.probability, tenth.rows, expected, actual, *ratios, *shares])
    title = f"Class {known.label!r}, {SHARE(known.share)} of the rows, by tenth of its probability"
    note = (
        f"In all, actual / expected is {known.ratio:.2f}. Actual and expected shares differ by {known.error:.2f} of the"
        " share of the class on the average. Intervals: Wilson's, if rows are independent."
    )
    return Table(title, TENTHS, rows, note, "tenths", None if rank == 0 else ())


def _chart_of_tenths(known: ClassReliability) -> Chart:
    """The shares of rows of a class, actual with their intervals and expected."""
    names = ("probability", "share", "low", "high")
    expected, actual, low, high = ([getattr(tenth, name) for tenth in known.tenths] for name in names)
    described = "; ".join(
        f"tenth {k}: expected {mean:.3g}, actual {share:.3g}"
        for k, (mean, share) in enumerate(zip(expected, actual, strict=True), 1)
    )
    draw = on_axes(charts.draw_shares, expected, actual, low, high, str(known.label))
    return Chart(f"Class {known.label}: actual and expected", described, draw, CAPTION)
