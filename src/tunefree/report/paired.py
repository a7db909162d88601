"""A model beside others on the same rows, as facts and a table."""

from __future__ import annotations

from tunefree.report.document import Block, Column, Fact, Facts, Table, known
from tunefree.report.formats import ABSENT, COUNT, FIGURES, PERCENT, in_figures
from tunefree.workflows.metrics import Measure
from tunefree.workflows.paired import PairedComparison

NOTE = (
    "Differences: the mean of the other less that of the first, on the same rows; intervals of 95 % for all differences"
    " together, if {} are independent (Student's t, clustered). Better: by the loss, where its interval leaves 0 out."
)
OF_CLIPPING = " No probability counts as less than half a row of those compared."


def _points(measure: Measure | None) -> str:
    return _difference(measure, 100.0, "+.2f")


def _numbers(measure: Measure | None) -> str:
    return _difference(measure, 1.0, "+.4g")


def _difference(measure: Measure | None, scale: float, spec: str) -> str:
    """A difference and its interval; that of the model itself is absent."""
    if measure is None:
        return ABSENT
    value, *ends = (None if number is None else f"{scale * number:{spec}}" for number in measure)
    return f"{value}" if None in ends else f"{value} ({ends[0]} to {ends[1]})"


def blocks_of_pairs(comparison: PairedComparison) -> list[Block]:
    """The sentence, what was compared, and the models."""
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
    if comparison.calibration is not None:
        facts.append(Fact("calibration error", comparison.calibration.error, FIGURES))
        facts.append(Fact("in 1 % of samples by chance above", comparison.calibration.by_chance, FIGURES, "by_chance"))
    columns = [
        Column("model", key="name"),
        Column(loss, in_figures, "loss"),
        Column("error" if is_class else "absolute error", PERCENT if is_class else in_figures, "error"),
        Column(f"difference of {loss}", _numbers, "loss_difference"),
        Column("of error, points" if is_class else "of error", _points if is_class else _numbers, "error_difference"),
        Column("better"),
        Column("seconds", lambda seconds: ABSENT if seconds is None else f"{seconds:.2f}"),
    ]
    note = NOTE.format("groups" if comparison.groups else "rows") + (OF_CLIPPING if is_class else "")
    table = Table("Models on the same rows", columns, comparison.contenders, note, "models", is_wide=True)
    left_out = Table("Left out", [Column("what"), Column("because")], list(comparison.left_out.items()), key="left_out")
    sentence = Facts([Fact("in a sentence", comparison.sentence, key="sentence")])
    return [sentence, Facts(facts), table, left_out]
