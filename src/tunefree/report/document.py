"""Blocks of commands' output and reports: facts, tables, charts and notes.

A fact and a cell of a table keep their values, and formats that make texts of them. Three renderers walk the blocks:
:mod:`tunefree.report.rendering` (terminal and JSON) and :mod:`tunefree.report.page`, so that all show the same numbers.
To show something new, add a fact or a column to a block; to add a kind of block, add it to each of the three.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from tunefree.report.formats import Format, text

Write = Callable[[Any], str]  # makes a text of a value
WIDE = 5.0, 3.3  # inches of a chart; those of more than 6 across are as wide as a page


class Fact(NamedTuple):
    """A name and a value."""

    name: str
    value: Any
    format: Write = text
    key: str = ""  # in JSON; by default the name

    def text(self) -> str:
        """The value for people."""
        return self.format(self.value)

    def interval(self) -> str:
        """The interval of the value for people; empty where it has none."""
        return self.format.interval(self.value) if isinstance(self.format, Format) else ""


def known(*facts: Fact) -> list[Fact]:
    """The facts that have a value: no None, 0 or nothing."""
    return [fact for fact in facts if fact.value]


class Facts(NamedTuple):
    """Names and values, some of them perhaps with intervals (:class:`tunefree.workflows.metrics.Measure`)."""

    facts: list[Fact]
    title: str = ""
    note: str = ""
    key: str = ""  # in JSON, under which they are; by default they stand for themselves


class Column(NamedTuple):
    """A column of a table."""

    title: str
    format: Write = text
    key: str = ""  # in JSON; by default the title
    is_shown: bool = True  # to people; programs get all
    has_words: bool = False  # whatever the format; else what has a format is set flush right

    @property
    def is_numeric(self) -> bool:
        """Whether it is set flush right."""
        return self.format is not text and not self.has_words


class Table(NamedTuple):
    """A table with a title."""

    title: str
    columns: list[Column]
    rows: Sequence[Sequence[Any]]
    note: str = ""
    key: str = ""  # in JSON; by default the title
    shown: Iterable[int] | None = None  # places of the rows for people; programs get all
    is_open: bool = True  # else a page shows it on demand, and not on paper
    is_wide: bool = False  # as wide as a page

    def columns_shown(self) -> list[Column]:
        """The columns for people."""
        return [column for column in self.columns if column.is_shown]

    def texts(self) -> list[list[str]]:
        """The cells for people."""
        rows = self.rows if self.shown is None else [self.rows[k] for k in self.shown if k < len(self.rows)]
        pairs = [zip(self.columns, row, strict=True) for row in rows]
        return [[column.format(value) for column, value in row if column.is_shown] for row in pairs]


class Chart(NamedTuple):
    """A chart, drawn by matplotlib."""

    title: str
    description: str  # for those who do not see it
    draw: Callable[[Any], Any]  # on a matplotlib figure
    caption: str
    inches: tuple[float, float] = WIDE
    key: str = ""  # of the data in JSON
    data: Any = None


class Note(NamedTuple):
    """A paragraph; ``tone`` is "plain", "note", "warning" or "fine"."""

    text: str
    tone: str = "plain"


class Code(NamedTuple):
    """A command or a program."""

    text: str


class Data(NamedTuple):
    """Data that only programs read."""

    key: str
    value: Any


Block = Facts | Table | Chart | Note | Code | Data


class Section(NamedTuple):
    """A part of a report."""

    id: str
    title: str
    blocks: Sequence[Block]
    folded: str = ""  # what a page shows of it; the blocks on demand, and not on paper


class Document(NamedTuple):
    """A report."""

    title: str
    subtitle: str
    summary: list[Fact]  # the few numbers that come first
    sections: list[Section]
    lead: str = ""  # what a colleague reads aloud
    about: str = ""  # date, files and version


def on_axes(draw: Callable[..., Any], *arguments: Any) -> Callable[[Any], Any]:
    """A function that draws on a figure by one that draws on its only axes."""
    return lambda figure: draw(figure.subplots(), *arguments)


def key_of(block: Any, name: str) -> str:
    """The key of a fact, a column or a table in JSON: the one it has, or its name in letters of identifiers.

    >>> key_of(Fact("rows learned", 7), "rows learned"), key_of(Column("±", text, "standard_error"), "±")
    ('rows_learned', 'standard_error')
    """
    return block.key or re.sub(r"\W+", "_", name.lower()).strip("_")
