"""A model beside others on the same rows, as facts and a table."""

from __future__ import annotations

from tunefree.report.document import Block, Column, Fact, Facts, Table, known
from tunefree.report.formats import ABSENT, COUNT, FIGURES, PERCENT, Format
from tunefree.workflows.paired import PairedComparison

NOTE = (
    "More: the mean less that of the first model; intervals of 95 % for all differences together, if {} are"
    " independent (Student's t). Better: by the loss, where its interval leaves 0 out."
)
POINTS = Format("+.1f", 100.0)
OF_CLIPPING = " No probability counts as less than half a row of those compared."


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
    if comparison.calibration is not None:
        facts.append(Fact("calibration error", comparison.calibration.error, FIGURES))
        facts.append(Fact("in 1 % of samples by chance above", comparison.calibration.by_chance, FIGURES, "by_chance"))
    more, more_error = (Format(f"+{FIGURES.spec_of(mean)}") for mean in (comparison.model.loss, comparison.model.error))
    has_seconds = any(one.seconds is not None for one in comparison.contenders)
    columns = [
        Column("model", key="name"),
        Column(loss, FIGURES, "loss"),
        Column("more, 95 %", more.interval, "loss_difference"),
        Column("error" if is_class else "absolute error", PERCENT if is_class else FIGURES, "error"),
        Column(
            "points more" if is_class else "more", (POINTS if is_class else more_error).interval, "error_difference"
        ),
        Column("better"),
        Column("seconds", lambda seconds: ABSENT if seconds is None else f"{seconds:.1f}", is_shown=has_seconds),
    ]
    contenders = [
        [one.name, one.loss, one.loss_difference, one.error, one.error_difference, one.better, one.seconds]
        for one in comparison.contenders
    ]
    note = NOTE.format("groups" if comparison.groups else "rows") + (OF_CLIPPING if is_class else "")
    table = Table("Models on the same rows", columns, contenders, note, "models", is_wide=True)
    left_out = Table(
        "Left out, or unlike the model",
        [Column("what"), Column("because")],
        list(comparison.left_out.items()),
        key="left_out",
    )
    sentence = Facts([Fact("in a sentence", comparison.sentence, key="sentence")])
    return [sentence, Facts(facts), table, left_out]
