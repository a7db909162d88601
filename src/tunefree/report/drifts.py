"""Where the loss rose along the stream, and which columns changed most there."""

from __future__ import annotations

from typing import Any

from tunefree.model_files.trained import Trained
from tunefree.report.document import Block, Column, Data, Fact, Table
from tunefree.report.formats import COUNT, FOUR
from tunefree.theory.column_changes import LEVEL as LEVEL_OF_COLUMNS
from tunefree.theory.rises import LATEST, LEVEL
from tunefree.training.rises import changed_most, drifts_of

MOST = 20  # rises that people see
NOTE = (
    f"A sequential test of level {LEVEL:g} for the whole stream, and anew after each rise, for independent rows. It"
    f" sees rises of the loss and nothing else. Columns are compared for the largest and the latest {LATEST} rises, by"
    f" tests of level {LEVEL_OF_COLUMNS:g} for all together."
)
FIELDS = {  # of a rise, for programs
    "row in file": None,
    "rows": COUNT,
    "rows before": COUNT,
    "rows compared": None,
    "columns compared": None,
    "changed": None,
}


def facts_of_drifts(trained: Trained) -> list[Fact]:
    """How often the loss rose; nothing where it is not known."""
    if trained.rises is None:
        return []
    return [Fact("rises of the loss", trained.rises.count, COUNT, "drift_count")]


def blocks_of_drifts(trained: Trained) -> list[Block]:
    """Where the loss rose; an empty list for programs where it did not, and nothing where it is not known."""
    known = drifts_of(trained)
    if not known:
        return [Data("drifts", [])] if trained.rises is not None else []
    columns = [Column("row", COUNT), Column("file"), Column("time")]
    columns += [Column("loss before", FOUR, "loss_before"), Column("loss after", FOUR, "loss"), Column("changed most")]
    columns += [Column(title, form or str, title.replace(" ", "_"), False) for title, form in FIELDS.items()]
    rows: list[list[Any]] = [
        [
            *(rise[key] for key in ("row", "file", "time", "loss_before", "loss")),
            changed_most(rise).removeprefix("changed most: "),
            *(rise[title.replace(" ", "_")] for title in FIELDS),
        ]
        for rise in known
    ]
    return [Table("Where the loss rose", columns, rows, NOTE, "drifts", range(MOST), is_wide=True)]
