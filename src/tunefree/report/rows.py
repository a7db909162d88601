"""Rows that could not be used, and rows that were used but are odd."""

from __future__ import annotations

from dataclasses import asdict

from tunefree.core.parameters import as_options
from tunefree.report.document import Block, Column, Data, Fact, Facts, Table
from tunefree.report.formats import COUNT
from tunefree.stream.batch import BadRows, Reason


def tables_of_reasons(reasons: list[Reason], where: str = "") -> list[Table]:
    """Why rows were skipped: for each reason where the first row is, and how many there are; empty if none were.

    ``where``: what the rows are of.

    >>> tables_of_reasons([Reason("… is not a number", "age", 1200, "a.csv", 7)])[0].texts()
    [['… is not a number', "a.csv, row 7, column 'age'", '1,200']]
    """
    columns = [Column("reason"), Column("first row"), Column("rows", COUNT)]
    rows = [[as_options(reason.problem), reason.place, reason.rows] for reason in reasons]
    title = "Why rows were skipped" + (f": {where}" if where else "")
    return [Table(title, columns, rows, key="reasons" if not where else "")] if rows else []


def rows_of(bad: BadRows) -> list[Block]:
    """How many rows were skipped, why, and what is odd about those that were used, for programs."""
    blocks: list[Block] = [Facts([Fact("rows skipped", bad.tally.count, COUNT, "skipped")])]
    for name, reasons in (("reasons", bad.tally.reasons()), ("oddities", bad.tally.oddities())):
        texts = [{name: as_options(getattr(reason, name)) for name in ("problem", "remedy")} for reason in reasons]
        blocks.append(Data(name, [asdict(reason) | text for reason, text in zip(reasons, texts, strict=True)]))
    return blocks
