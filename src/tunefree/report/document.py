"""Blocks of commands' output and reports: facts, tables, charts and notes.

Facts and cells of tables store a value and a format that converts it to text. Three renderers use the blocks, in
:mod:`tunefree.report.rendering` (terminal and JSON) and :mod:`tunefree.report.page`, so that all show the same numbers.
To show something new, add a fact or a column to a block; a new kind of block must be added to all renderers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from tunefree.report.formats import Format, text

Write = Callable[[Any], str]  # converts a value to text
WIDE = 5.0, 3.3  # size of a chart in inches; charts wider than 6 inches span the page


class Fact(NamedTuple):
    """A name and a value."""

    name: str
    value: Any
    format: Write = text
    key: str = ""  # in JSON; by default the name

    def text(self) -> str:
        """The formatted value."""
        return self.format(self.value)

    def interval(self) -> str:
        """The formatted interval of the value; empty if it has none."""
        return self.format.interval(self.value) if isinstance(self.format, Format) else ""


def known(*facts: Fact) -> list[Fact]:
    """The facts with a value that is not None, 0 or empty."""
    return [fact for fact in facts if fact.value]


class Facts(NamedTuple):
    """Names and values, some of them perhaps with intervals (:class:`tunefree.workflows.metrics.Measure`)."""

    facts: list[Fact]
    title: str = ""
    note: str = ""
    key: str = ""  # in JSON; by default the facts are at the top level


class Column(NamedTuple):
    """A column of a table."""

    title: str
    format: Write = text
    key: str = ""  # in JSON; by default the title
    is_shown: bool = True  # in text output; JSON has all columns
    has_words: bool = False  # left-aligned; other columns with a format are right-aligned

    @property
    def is_numeric(self) -> bool:
        """Whether the column is right-aligned."""
        return self.format is not text and not self.has_words


class Table(NamedTuple):
    """A table with a title."""

    title: str
    columns: list[Column]
    rows: Sequence[Sequence[Any]]
    note: str = ""
    key: str = ""  # in JSON; by default the title
    shown: Iterable[int] | None = None  # indices of the rows in text output; JSON has all rows
    is_open: bool = True  # otherwise folded on a page, and omitted in print
    is_wide: bool = False  # spans the page

    def columns_shown(self) -> list[Column]:
        """The columns in text output."""
        return [column for column in self.columns if column.is_shown]

    def texts(self) -> list[list[str]]:
        """The cells in text output."""
        rows = self.rows if self.shown is None else [self.rows[k] for k in self.shown if k < len(self.rows)]
        pairs = [zip(self.columns, row, strict=True) for row in rows]
        return [[column.format(value) for column, value in row if column.is_shown] for row in pairs]


class Chart(NamedTuple):
    """A chart, drawn by matplotlib."""

    title: str
    description: str  # alternative text
    draw: Callable[[Any], Any]  # draws on a matplotlib figure
    caption: str
    inches: tuple[float, float] = WIDE
    key: str = ""  # key of the data in JSON
    data: Any = None


class Note(NamedTuple):
    """A paragraph; ``tone`` is "plain", "note", "warning" or "fine"."""

    text: str
    tone: str = "plain"


class Code(NamedTuple):
    """A command or a program."""

    text: str


class Data(NamedTuple):
    """Data for JSON only."""

    key: str
    value: Any


Block = Facts | Table | Chart | Note | Code | Data


class Section(NamedTuple):
    """A part of a report."""

    id: str
    title: str
    blocks: Sequence[Block]
    folded: str = ""  # the visible line if blocks are folded on a page, and omitted in print


def on_axes(draw: Callable[..., Any], *arguments: Any) -> Callable[[Any], Any]:
    """Convert a function that draws on axes to one that draws on a figure."""
    return lambda figure: draw(figure.subplots(), *arguments)


def key_of(block: Any, name: str) -> str:
    """The key of a fact, a column or a table in JSON: its own key, or its name as an identifier.

    >>> key_of(Fact("rows learned", 7), "rows learned"), key_of(Column("±", text, "standard_error"), "±")
    ('rows_learned', 'standard_error')
    """
    return block.key or re.sub(r"\W+", "_", name.lower()).strip("_")
