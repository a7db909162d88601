"""Names of files: which ones a path means, and the format that a name promises."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence

from tunefree.core.errors import DataError

COMPRESSIONS = (".gz", ".bz2", ".zst", ".lz4", ".xz", ".br")
_FORMATS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".tab": "csv",
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".feather": "arrow",
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".ipc": "arrow",
}


def expand(paths: Sequence[str]) -> list[str]:
    """Files named by paths, patterns (``*``, ``**``) and directories, those of each in sorted order; "-" stays.

    Hidden files, and those that begin with an underscore (as cluster tools leave them), are not taken from a directory.
    """
    files: list[str] = []
    for path in paths:
        if path == "-" or os.path.isfile(path):
            files.append(path)
            continue
        if os.path.isdir(path):
            found = sorted(glob.glob(os.path.join(glob.escape(path), "**", "*"), recursive=True))
            found = [file for file in found if not os.path.basename(file).startswith(("_", "."))]
        else:
            found = sorted(glob.glob(path, recursive=True))
        found = [file for file in found if os.path.isfile(file)]
        if not found and os.path.exists(path):
            raise DataError("is a pipe or device", path, remedy="redirect it to standard input and name -")
        if not found:
            raise DataError("there is no such file", path, remedy="check the path")
        files += found
    return files


def format_of(file: str) -> str | None:
    """The format that a name promises: csv, json, parquet, arrow, or None for another."""
    name = file.lower()
    for extension in COMPRESSIONS:
        name = name.removesuffix(extension)
    return _FORMATS.get(os.path.splitext(name)[1])
