"""The registry of file formats. To add a format, write one file that reads it and one entry here.

An entry names the code that reads the format as ``"module:attribute"``. That module is imported when a file of the
format is first opened, so that the command line can list all formats without importing any reader.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from tunefree.core.errors import DataError
from tunefree.core.registry import load
from tunefree.stream.files import COMPRESSIONS

TABLE = "table"  # the kind of all table formats


class Format(NamedTuple):
    """A file format: its name, how its files are recognised, and the code that reads them.

    A format is of one of two kinds. A *table* has a ``reader``, which converts files to record batches; one encoder
    for all tables converts these to features. Any other format is *text whose lines are rows*, and has its own
    ``encoder``, which converts lines to features.

    Parameters
    ----------
    name, title : str
        The name for ``--format`` and ``open_source``, and the name in help texts.
    extensions : tuple of str, default=()
        File name extensions, in lower case and with their dot. An extension of a compression may follow.
    recognise : callable or str, optional
        Function from the first line of a text, stripped of white space, to whether it is of this format; called if the
        extension is unknown. If None, the format is recognised by the extension only.
    reader : TableReader or str, optional
        For tables: see :class:`tunefree.stream.tables.TableReader`.
    encoder : type or str, optional
        For lines: a class such as :class:`tunefree.stream.feature_lines.LineEncoder`.
    text : bool, default=True
        Whether files are text, which may be compressed and may come from standard input.
    typed : bool, default=True
        For tables: whether values have types. If False, all columns are strings, and their types are inferred.

    Examples
    --------
    >>> named("csv").extensions, named("csv").kind, named("svmlight").kind
    (('.csv', '.tsv', '.tab'), 'table', 'svmlight')
    """

    name: str
    title: str
    extensions: tuple[str, ...] = ()
    recognise: Callable[[str], bool] | str | None = None
    reader: Any = None
    encoder: Any = None
    text: bool = True
    typed: bool = True

    @property
    def kind(self) -> str:
        """The kind of encoder for its rows: "table", or the name of the format. Model files record it."""
        return TABLE if self.encoder is None else self.name


# The formats are asked in this order to recognise a first line, so a format that accepts many lines comes late.
_HERE = "tunefree.stream"
_JSON, _CSV, _LINES = (f"{_HERE}.{module}" for module in ("jsonlines", "delimited", "feature_lines"))
_SVM_EXTENSIONS, _ARROW_EXTENSIONS = (".svm", ".svmlight", ".libsvm"), (".feather", ".arrow", ".arrows", ".ipc")
_formats: tuple[Format, ...] = (
    Format("json", "JSON lines", (".jsonl", ".ndjson", ".json"), f"{_JSON}:is_json", f"{_JSON}:JSON_LINES"),
    Format("svmlight", "svmlight", _SVM_EXTENSIONS, f"{_LINES}:is_svmlight", encoder=f"{_LINES}:SvmlightEncoder"),
    Format("vw", "Vowpal Wabbit", (".vw",), f"{_LINES}:is_vw", encoder=f"{_LINES}:VWEncoder"),
    Format("csv", "CSV", (".csv", ".tsv", ".tab"), f"{_CSV}:is_delimited", f"{_CSV}:DELIMITED", typed=False),
    Format("parquet", "Parquet", (".parquet", ".pq"), None, f"{_HERE}.columnar:PARQUET", text=False),
    Format("arrow", "Arrow/Feather", _ARROW_EXTENSIONS, None, f"{_HERE}.columnar:ARROW", text=False),
)


def register(format: Format) -> None:
    """Add a format for ``open_source``, the command line and model files of this process.

    A format registered later is asked earlier to recognise a file. A format of the same name is replaced. A ValueError
    is raised if the format has both or neither of reader and encoder, or an invalid extension.

    Examples
    --------
    >>> register(Format("tuples", "tuples", ("tpl",), reader="tuples:READER"))
    Traceback (most recent call last):
    ...
    ValueError: format 'tuples': 'tpl' is not an extension such as .csv, in lower case
    """
    global _formats
    if (format.reader is None) == (format.encoder is None):
        raise ValueError(f"format {format.name!r}: give a reader (of tables) or an encoder (of lines)")
    if format.encoder is not None and (format.name == TABLE or not format.text):
        raise ValueError(f"format {format.name!r}: only a format of text has an encoder, and its name is not {TABLE!r}")
    for extension in format.extensions:
        if Path("x" + extension).suffixes != [extension] or extension != extension.lower():
            raise ValueError(f"format {format.name!r}: {extension!r} is not an extension such as .csv, in lower case")
    _formats = (format, *(known for known in _formats if known.name != format.name))


def named(name: str) -> Format:
    """Return the format of a name; if there is none, raise a DataError that lists all names."""
    format = next((format for format in _formats if format.name == name), None)
    if format is None:
        raise DataError(f"there is no format {name!r}", remedy=f"choose one of {', '.join(names())}")
    return format


def names() -> list[str]:
    """Return the names of all formats, in alphabetical order."""
    return sorted(format.name for format in _formats)


def titles() -> list[str]:
    """Return the names of the formats in help texts, in alphabetical order."""
    return sorted((format.title for format in _formats), key=str.lower)


def by_extension(file: str) -> Format | None:
    """Return the format of a file name's extension, or None; extensions of compressions are ignored."""
    extensions = [extension.lower() for extension in Path(file).suffixes if extension.lower() not in COMPRESSIONS]
    return next((format for format in _formats if extensions and extensions[-1] in format.extensions), None)


def by_line(line: str) -> Format | None:
    """Return the first format that recognises a line, or None."""
    return next((format for format in _formats if format.recognise and load(format.recognise)(line)), None)
