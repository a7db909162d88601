"""Findings about the data, and rows that could not be used: as notes, tables and a section of a report."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict

from tunefree.core.parameters import as_options
from tunefree.model_files.trained import Trained
from tunefree.report.document import Block, Column, Data, Fact, Facts, Note, Section, Table
from tunefree.report.formats import COUNT, sentence
from tunefree.stream.batch import BadRows, Reason, Tally
from tunefree.training.roles import Finding
from tunefree.workflows.findings import ODD, findings, oddity_findings

NOT_SEEN = "A leak that is spread over several columns, or in words of texts, is not seen."


def tables_of_reasons(reasons: list[Reason], where: str = "") -> list[Table]:
    """A table of the reasons for skipped rows, with first row and number of rows; empty if no row was skipped.

    ``where``: the source of the rows, for the title.

    >>> tables_of_reasons([Reason("… is not a number", "age", 1200, "a.csv", 7)])[0].texts()
    [['… is not a number', "a.csv, row 7, column 'age'", '1,200']]
    """
    columns = [Column("reason"), Column("first row"), Column("rows", COUNT)]
    rows = [[as_options(reason.problem), reason.place, reason.rows] for reason in reasons]
    title = "Why rows were skipped" + (f": {where}" if where else "")
    return [Table(title, columns, rows, key="reasons" if not where else "")] if rows else []


def rows_of(bad: BadRows) -> list[Block]:
    """Counts and reasons of skipped rows, and oddities of used rows, for JSON."""
    blocks: list[Block] = [Facts([Fact("rows skipped", bad.tally.count, COUNT, "skipped")])]
    for name, reasons in (("reasons", bad.tally.reasons), ("oddities", bad.tally.oddities)):
        texts = [{name: as_options(getattr(reason, name)) for name in ("problem", "remedy")} for reason in reasons]
        blocks.append(Data(name, [asdict(reason) | text for reason, text in zip(reasons, texts, strict=True)]))
    return blocks


def notes_of(items: Iterable[Finding], has_sentences: bool = False) -> list[Block]:
    """Findings about rows and classes as warnings, and findings about columns as notes.

    ``has_sentences``: whether notes end in a full stop.
    """
    end = "." if has_sentences else ""
    notes: list[Block] = []
    for finding in items:
        is_note = bool(finding.column) or finding.kind == ODD
        text = str(finding) if is_note else sentence(str(finding))
        notes.append(Note(text + (end if text[-1] != "." else ""), "note" if is_note else "warning"))
    return notes


def suspicions(trained: Trained, skipped: dict[str, Tally]) -> Section:
    """The section on findings; ``skipped``: the tally of unusable rows of each source."""
    blocks = notes_of(findings(trained), has_sentences=True)
    for where, tally in skipped.items():
        lines = [] if where == "Training data" else [f"{finding}." for finding in oddity_findings(tally.oddities)]
        lines += [f"{tally.count:,} rows were skipped."] if tally.count else []
        blocks += [Note(f"{where}: {line}", "warning") for line in lines]
    for where, tally in skipped.items():
        blocks += tables_of_reasons(tally.reasons, where.lower())
    return Section("suspicions", "What looks wrong with the data", [*blocks, Note(NOT_SEEN)])
