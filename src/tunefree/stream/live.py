"""Standard input whose rows are used as they come, for answers line by line."""

from __future__ import annotations

import os
import select
import stat
import sys
from contextlib import suppress
from typing import Any

import numpy as np

from tunefree.stream.lines import BLOCK_SIZE, ByteStream, standard_input

_LINE_END = b"\n"


class LiveStream(ByteStream):
    """A stream of text that has no more than the whole lines that have come; it waits only where there is none.

    Examples
    --------
    >>> import io
    >>> text = LiveStream(io.BytesIO(b"one\\ntwo"), "example")
    >>> bytes(text.peek(100)), bytes(text.take(4)), bytes(text.peek(100))
    (b'one\\ntwo', b'one\\n', b'two')
    """

    whole = 0  # bytes of whole lines among those read but not taken
    ended = False

    def peek(self, size: int) -> np.ndarray:
        """The next ``size`` bytes, or fewer where the lines that have come end."""
        while self.whole == 0 and not self.ended:
            self._receive()
        while self.whole < size and not self.ended and self._has_more():
            self._receive()
        return self._ahead[: min(size, self.whole)]

    def take(self, size: int) -> np.ndarray:
        """The next ``size`` bytes, which :meth:`peek` must have returned before."""
        taken = super().take(size)
        self.whole -= len(taken)
        return taken

    def _receive(self) -> None:
        """Wait for bytes, and take what there is."""
        with self._errors():
            block = getattr(self.stream, "read1", self.stream.read)(
                BLOCK_SIZE
            )  # what there is, of a file without a buffer too
        before, last = len(self._ahead), block.rfind(_LINE_END)
        self.ended = not block
        self._ahead = np.concatenate([self._ahead, np.frombuffer(block, np.uint8)])
        if self.ended:
            self.whole = before
        elif last >= 0:
            self.whole = before + last + 1

    def _has_more(self) -> bool:
        """Whether there are more bytes without waiting for them."""
        with suppress(OSError, ValueError):  # neither a file nor a socket
            return bool(select.select([self.stream.fileno()], [], [], 0.0)[0])
        return True


def answer_at_once() -> bool:
    """Read standard input as it comes, unless it is a file; returns whether it is."""
    stream: Any = getattr(sys.stdin, "buffer", None)
    with suppress(OSError, ValueError, AttributeError):
        if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
            return isinstance(standard_input(LiveStream), LiveStream)
    return False
