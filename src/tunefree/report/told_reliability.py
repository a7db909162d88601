"""Whether the probabilities of classes are true, in tables and sentences, for what commands print and for reports."""

from __future__ import annotations

from typing import Any

from tunefree.report import charts
from tunefree.report.charts import Frame, Series
from tunefree.report.document import Note, Table
from tunefree.report.scales import LOG, Scale
from tunefree.workflows.evaluation import Evaluation
from tunefree.workflows.reliability import ClassReliability

WIDE = 20.0  # ratio of shares from which their axis is logarithmic


def reliability_blocks(tested: Evaluation, labels: list[Any], most: int = 1) -> list[Any]:
    """Classes that are never predicted; the rarest classes, of more than two; and tenths of the first of these.

    Parameters
    ----------
    tested : Evaluation
    labels : list of labels
        Of the classes of the model.
    most : int
        Classes whose tenths are shown.
    """
    blocks: list[Any] = [Note(line, "warning") for line in never_predicted(tested, labels)]
    if len(labels) > 2 and tested.classes:
        blocks.append(_table_of_classes(tested.classes, len(labels)))
    return blocks + [_table_of_tenths(known) for known in tested.classes[:most]]


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
        [
            str(known.label),
            f"{known.rows:,}",
            _percent(known.share),
            _percent(known.probability),
            f"{known.ratio:.2f}",
            f"{known.error:.2f}",
        ]
        for known in classes
    ]
    header = ["class", "rows", "share", "mean probability", "actual / expected", "calibration error / share"]
    title = "Classes, the rarest first" + ("" if len(rows) == n_classes else f": {len(rows)} of {n_classes:,}")
    return Table(title, header, rows)


def _table_of_tenths(known: ClassReliability) -> Table:
    rows = [
        [
            f"{own.probability:.3g}",
            f"{own.rows:,}",
            f"{own.probability * own.weight:,.1f}",
            f"{own.share * own.weight:,.6g}",
            f"{own.share / max(own.probability, 1e-300):.2f}",
            f"{own.low / max(own.probability, 1e-300):.2f} to {own.high / max(own.probability, 1e-300):.2f}",
        ]
        for own in known.tenths
    ]
    header = ["mean probability", "rows", "expected", "actual", "actual / expected", "95 % interval"]
    title = f"Class {known.label!r}, {_percent(known.share)} of the rows, by tenth of its probability"
    note = (
        f"In all, actual / expected is {known.ratio:.2f}. Actual and expected shares differ by {known.error:.2f} of the"
        " share of the class on the average. Intervals: Wilson's, if rows are independent."
    )
    return Table(title, header, rows, note, numeric_from=0)


def chart_of_tenths(known: ClassReliability) -> charts.Chart:
    """The shares of rows of a class, actual with their intervals and expected, by tenth of its probability.

    Parameters
    ----------
    known : ClassReliability
    """
    x = [k + 1.0 for k in range(len(known.tenths))]
    expected, actual, low, high = (
        [getattr(tenth, name) for tenth in known.tenths] for name in ("probability", "share", "low", "high")
    )
    most, least = max(*high, *expected), min(expected)
    is_wide = least > 0.0 and most > WIDE * least
    axis = Scale(min(least, *(end for end in low if end > 0.0), least) / 1.5, 1.2 * most, LOG) if is_wide else None
    series = [Series("expected", x, expected, 2), Series("actual", x, actual, 1)]
    titles = f"tenth of the rows, by probability of {charts.shortened(str(known.label))}", "share of the rows"
    frame = Frame(Scale(0.5, len(x) + 0.5), axis or Scale(0.0, min(1.05 * most, 1.0)), *titles, charts.room(series))
    frame.line(series[0])
    frame.dots(x, actual)
    frame.end_labels(series)
    described = "; ".join(
        f"tenth {k:.0f}: expected {mean:.3g}, actual {share:.3g}"
        for k, mean, share in zip(x, expected, actual, strict=True)
    )
    chart = charts.Chart(f"Class {known.label}: actual and expected", described, frame.marks)
    return charts.with_whiskers(chart, frame, x, low, high)


def _percent(share: float) -> str:
    return f"{100.0 * share:.3g} %"
