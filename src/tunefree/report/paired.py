"""A model beside others on the same rows, as facts and a table."""

from __future__ import annotations

from tunefree.report.document import Block, Column, Fact, Facts, Table, known
from tunefree.report.formats import ABSENT, COUNT, FIGURES, PERCENT, SIGNED, Format
from tunefree.workflows.paired import PairedComparison

NOTE = (
    "Differences: the mean of the other less that of the first, on the same rows; intervals of 95 % for all differences"
    " together, if {} are independent (Student's t, clustered). Better: by the loss, where its interval leaves 0 out."
)
POINTS = Format("+.2f", 100.0)
OF_CLIPPING = " No probability counts as less than half a row of those compared."


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
    has_seconds = any(one.seconds is not None for one in comparison.contenders)
    columns = [
        Column("model", key="name"),
        Column(loss, FIGURES, "loss"),
        Column("error" if is_class else "absolute error", PERCENT if is_class else FIGURES, "error"),
        Column(f"difference of {loss}", SIGNED.with_ends, "loss_difference"),
        Column(
            "of error, points" if is_class else "of error",
            POINTS.with_ends if is_class else SIGNED.with_ends,
            "error_difference",
        ),
        Column("better"),
        Column("seconds", lambda seconds: ABSENT if seconds is None else f"{seconds:.2f}", is_shown=has_seconds),
    ]
    note = NOTE.format("groups" if comparison.groups else "rows") + (OF_CLIPPING if is_class else "")
    table = Table("Models on the same rows", columns, comparison.contenders, note, "models", is_wide=True)
    left_out = Table("Left out", [Column("what"), Column("because")], list(comparison.left_out.items()), key="left_out")
    sentence = Facts([Fact("in a sentence", comparison.sentence, key="sentence")])
    return [sentence, Facts(facts), table, left_out]
