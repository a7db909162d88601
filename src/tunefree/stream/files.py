"""File names: expansion of paths and patterns, protection of inputs, and extensions of compressed files."""

from __future__ import annotations

import glob
import os
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import PurePath
from typing import Any, NamedTuple
from urllib.parse import unquote

from tunefree.core.errors import DataError

LONGEST_LINE = 1 << 26  # bytes; a longer line is an error, because it might exhaust the memory
COMPRESSIONS = {
    ".gz": "gzip",
    ".bz2": "bz2",
    ".zst": "zstd",
    ".lz4": "lz4",
    ".xz": "xz",
    ".br": "brotli",
    ".zip": "zip",
}  # compression method of each extension, by its name in Arrow
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,14})(?:\.\d+)?")  # other digits, such as 007, are codes
ESCAPES = ("backslash", "quote")  # before a double quote in a quoted value of CSV


class Partition(NamedTuple):
    """A folder whose name has the form ``column=value``."""

    name: str
    text: str | None  # the value; None where it is missing
    is_number: bool  # whether all values of this name are numbers
    varies: bool  # whether this name has several values


class TextFile(str):
    """The name of a text file, with options for reading it."""

    encoding: str | None = None  # None for UTF-8, or UTF-16 if the file begins with its byte-order mark
    longest_line: int = LONGEST_LINE  # bytes
    chunk_size: int | None = None  # bytes of each chunk after the first; None for the default
    escape: str | None = None  # one of ESCAPES; guessed if None
    end: int | None = None  # offset of a line end at which reading stops; None for the end of the file
    partitions: tuple[Partition, ...] = ()  # from the folders of its path

    def __new__(cls, name: str, **options: Any) -> TextFile:
        """Create the name, with values of some of these attributes."""
        path = super().__new__(cls, name)
        vars(path).update(options)
        return path

    def __getnewargs_ex__(self) -> tuple[Any, ...]:
        return (str(self),), vars(self)

    def but(self, **changes: Any) -> TextFile:
        """Return a copy with some options changed."""
        return TextFile(str(self), **vars(self) | changes)


def expand(paths: Sequence[str]) -> list[str]:
    """List the files of paths, patterns and directories (without ``.*``, ``_*``), sorted for each of them; keep "-"."""
    files: list[str] = []
    for path in paths:
        if path == "-" or os.path.isfile(path):
            files.append(path)
            continue
        if os.path.isdir(path):
            matches = sorted(glob.glob(os.path.join(glob.escape(path), "**", "*"), recursive=True))
            matches = [file for file in matches if not os.path.basename(file).startswith(("_", "."))]
        else:
            matches = sorted(glob.glob(path, recursive=True))
        matches = [file for file in matches if os.path.isfile(file)]
        if not matches and os.path.exists(path) and not os.path.isdir(path):
            raise DataError("is a pipe or device", path, remedy="redirect it to standard input and name -")
        if not matches:
            problem = "there is no file in it" if os.path.isdir(path) else "there is no such file"
            raise DataError(problem, path, remedy="check the path")
        files += matches
    return files


def partitions_of(files: Sequence[str]) -> list[tuple[Partition, ...]]:
    """Return the partitions of each file, by the folders of its path."""
    folders = [_named_folders(file) for file in files]
    texts: dict[str, set[str | None]] = {}
    for folder in folders:
        for name, text in folder.items():
            texts.setdefault(name, set()).add(text)
    numbers = {name for name, values in texts.items() if all(map(_NUMBER.fullmatch, values - {None}))}  # type: ignore[arg-type]
    return [
        tuple(Partition(name, text, name in numbers, len(texts[name]) > 1) for name, text in folder.items())
        for folder in folders
    ]


def _named_folders(file: str) -> dict[str, str | None]:
    pairs = (part.partition("=") for part in PurePath(file).parts[:-1])
    named = {unquote(name): unquote(text) for name, sign, text in pairs if sign and name and text}
    return {name: None if text == _NO_VALUE else text for name, text in named.items()}


def check_not_read(output: str | os.PathLike[str], files: Iterable[str]) -> None:
    """Raise a DataError if the output is the same file as one of the inputs, even by another path or link."""
    for file in files:
        if _is_same(output, file):
            raise DataError(f"would be written over {display_name(file)}", str(output), remedy="name another output")


def _is_same(output: str | os.PathLike[str], file: str) -> bool:
    try:
        read = os.fstat(sys.stdin.fileno()) if file == "-" else os.stat(file)
        return os.path.samestat(os.stat(output), read)
    except (OSError, ValueError, AttributeError):  # a file does not exist, or standard input is not a file
        return False


def display_name(file: str) -> str:
    """Return the name of a file in messages."""
    return "standard input" if file == "-" else file
