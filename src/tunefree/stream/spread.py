"""A sample of the lines of a file from places all over it, so that what its columns are does not hang on its start."""

from __future__ import annotations

from tunefree.stream.lines import SAMPLE, holds_line_ends, open_text

PLACES = 16  # which take the bytes of the second half of a sample


def spread_lines(file: str, beginning: bytes, delimiters: str, escaped: bool = False) -> bytes:
    """The first half of a sample, and whole lines from places all over the rest of a delimited file.

    The sample itself, of a file that is no longer or cannot be read from anywhere, such as compressed text, and where
    quotes hold line ends: there nothing shows where a line begins.

    Parameters
    ----------
    file : str
    beginning : bytes
        The first lines of the file, as a sample has them.
    delimiters : str
        Between fields.
    escaped : bool, default False
        As :func:`tunefree.stream.lines.read_lines` takes it.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "a.csv"
    ...     _ = path.write_text("".join(f"{k:07d}\\n" for k in range(SAMPLE)))
    ...     lines = spread_lines(str(path), path.read_bytes()[:SAMPLE], ",").split()
    >>> len(lines) * 8 <= SAMPLE, lines[0], lines[-1]
    (True, b'0000000', b'2097151')
    """
    text = open_text(file)
    text.escaped = escaped
    try:
        size, place, start = text.size or 0, SAMPLE // 2 // PLACES, SAMPLE - SAMPLE // 2
        if size <= SAMPLE or holds_line_ends(beginning, delimiters):
            return beginning
        pieces = [beginning[: beginning.rfind(b"\n", 0, start) + 1]]
        for number in range(PLACES):
            text.skip_to(start + (size - start - place) * number // (PLACES - 1))
            window = text.peek(place).tobytes()
            lines = window[window.find(b"\n") + 1 : window.rfind(b"\n") + 1]
            pieces.append(b"" if holds_line_ends(lines, delimiters) else lines)
        return b"".join(pieces)
    finally:
        text.close()
