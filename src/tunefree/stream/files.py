"""File names: which files a path or pattern stands for, and the extensions of compressed files."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence

from tunefree.core.errors import DataError

COMPRESSIONS = {
    ".gz": "gzip",
    ".bz2": "bz2",
    ".zst": "zstd",
    ".lz4": "lz4",
    ".xz": "xz",
    ".br": "brotli",
    ".zip": "zip",
}  # the method of each extension, as Arrow calls it


class EncodedFile(str):
    """The name of a file whose text is in an encoding other than UTF-8.

    Examples
    --------
    >>> EncodedFile("people.csv", "latin-1").encoding
    'latin-1'
    """

    encoding: str

    def __new__(cls, name: str, encoding: str) -> EncodedFile:
        """The name with the encoding."""
        made = super().__new__(cls, name)
        made.encoding = encoding
        return made


def expand(paths: Sequence[str]) -> list[str]:
    """Files that paths, patterns (``*``, ``**``) and directories stand for, those of each in sorted order; "-" stays.

    Hidden files of a directory are left out, and so are those that begin with an underscore, which cluster tools write.
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


def display_name(file: str) -> str:
    """What messages call a file."""
    return "standard input" if file == "-" else file
