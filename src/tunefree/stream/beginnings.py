"""Where the header of a table of delimited text begins: behind comments, blank lines, and a line for Excel."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import NamedTuple

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
DELIMITERS = ",;\t|"
_SEPARATOR = re.compile(rb'"?sep=(.)"?\r?\n')  # how Excel names the delimiter
_BLANK = b" \t\r,;|\"'"  # letters of lines that hold nothing
_QUOTED = re.compile(r'(?:^|(?<=[,;\t|]))"[^"]*"')
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")


class Start(NamedTuple):
    """What comes before the header."""

    size: int = 0  # bytes
    separator: str | None = None  # the delimiter that a line such as ``sep=;`` names
    comments: int = 0  # lines


def start_of(window: bytes) -> Start:
    """What comes before the header at the beginning of a text, which is long enough to hold the next two lines.

    Examples
    --------
    >>> start_of(b"# made by hand\\n\\nsep=;\\nage;job\\n39;cook\\n")
    Start(size=22, separator=';', comments=1)
    >>> start_of(b"# made by hand\\n#id,x\\n1,0.5\\n")  # the names of columns behind a # as well
    Start(size=15, separator=None, comments=1)
    """
    place = len(BYTE_ORDER_MARK) if window.startswith(BYTE_ORDER_MARK) else 0
    separator, comments = None, []
    while end := window.find(b"\n", place) + 1:
        line = window[place:end]
        named = _SEPARATOR.fullmatch(line)
        if named:
            separator = named[1].decode("latin-1")
        elif line.startswith(b"#"):
            comments.append(place)
        elif line.strip(_BLANK + b"\n"):
            break
        place = end
    lines = [line.decode(errors="replace").rstrip("\r") for line in window[place:].split(b"\n", 2)[:2]]
    if comments and _holds_names(window[comments[-1] :].split(b"\n", 1)[0].decode(errors="replace"), lines):
        place = comments.pop()
    return Start(place, separator, len(comments))


def _holds_names(comment: str, lines: list[str]) -> bool:
    """Whether a line that begins with # has the names of the columns, judged by the two lines that follow it."""
    counts = delimiter_counts(comment)
    delimiter = max(counts, key=counts.__getitem__)
    below, second = ([field.strip(' \t"') for field in line.split(delimiter)] for line in [*lines, ""][:2])
    if not lines[0] or len(below) != comment.count(delimiter) + 1:
        return not lines[0]
    numbers = [any(map(is_plain_number, fields)) for fields in (below, second)]
    return numbers[0] or (numbers[1] is False and len(below) > 1 and comment[1:2].isalpha())


def delimiter_counts(header: str) -> dict[str, int]:
    """How often a line has each delimiter, outside quotes.

    Examples
    --------
    >>> delimiter_counts('"price, EUR";"width, m";3.5" disk,weight')
    {',': 1, ';': 2, '\\t': 0, '|': 0}
    """
    bare = _QUOTED.sub("", header)
    return {delimiter: bare.count(delimiter) for delimiter in DELIMITERS}


def is_plain_number(text: str) -> bool:
    """Whether a text is a number in digits.

    Examples
    --------
    >>> is_plain_number("-1.5e3"), is_plain_number("nan")
    (True, False)
    """
    return _NUMBER.fullmatch(text) is not None


def look_like_values(fields: list[str]) -> bool:
    """Whether the fields of a header may be values of a row: half of them are numbers, and not 2019, 2020, ..., or
    most of them are empty.

    Examples
    --------
    >>> look_like_values(["5.1", "3.5", "setosa"]), look_like_values(["id", "2019", "2020"])
    (True, False)
    """
    numbers = [float(field) for field in fields if is_plain_number(field)]
    steps = {after - before for before, after in pairwise(numbers)}
    counting = steps <= {1.0} and all(number.is_integer() for number in numbers)
    return (2 * len(numbers) >= len(fields) and not counting) or 2 * fields.count("") > len(fields)
