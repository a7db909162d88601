"""What a report is made of: sections of facts, tables, figures and notes, whatever it is about."""

from __future__ import annotations

from typing import Any, NamedTuple

from tunefree.report.charts import Chart


class Facts(NamedTuple):
    """Names and values."""

    rows: list[tuple[str, str]]
    kind: str = "facts"


class Table(NamedTuple):
    """A table with a caption."""

    caption: str
    header: list[str]
    rows: list[list[str]]
    note: str = ""
    numeric_from: int = 1  # the first column of numbers, which are set flush right
    is_open: bool = True  # else it is shown on demand
    is_wide: bool = False  # as wide as the page
    kind: str = "table"


class Figure(NamedTuple):
    """A chart with a caption."""

    chart: Chart
    caption: str
    kind: str = "figure"


class Note(NamedTuple):
    """A paragraph; ``tone`` is "plain", "warning" or "fine"."""

    text: str
    tone: str = "plain"
    kind: str = "note"


class Code(NamedTuple):
    """A command or a program."""

    text: str
    kind: str = "code"


class Section(NamedTuple):
    """A part of a report."""

    id: str
    title: str
    blocks: list[Any]


class Document(NamedTuple):
    """A report."""

    title: str
    subtitle: str
    summary: list[tuple[str, str]]  # the few numbers that come first
    sections: list[Section]
    footer: str = ""
    refresh: int = 0  # seconds after which a page is loaded again; 0 for never
