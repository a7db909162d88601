"""Rows that were predicted, and whose targets are still to come.

Where targets come late, members that follow the latest ones are worse than they look when a row is learned. So a row
that was predicted before it is learned is evidence as it was predicted then.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

MOST_ROWS = 4096  # that wait; the earliest predicted are forgotten,
MOST_BYTES = 2**26  # of what was predicted of them likewise


class Waiting:
    """What members predicted of the latest rows, by the digest of their observation.

    Examples
    --------
    >>> waiting = Waiting()
    >>> waiting.keep(np.array([7], np.uint64), np.array([[[0.25]]]))
    >>> later = np.array([[[0.5]], [[0.75]]])
    >>> waiting.put_back(np.array([6, 7], np.uint64), later)
    >>> later[:, 0, 0]
    array([0.5 , 0.25])
    """

    def __init__(self) -> None:
        self.rows: dict[int, np.ndarray] = {}  # (M, K) of each
        self.row_bytes = 0  # of the latest

    def keep(self, digests: np.ndarray, predictions: np.ndarray) -> None:
        """Keep predictions (n, M, K) of rows."""
        self.row_bytes = predictions[:1].nbytes or self.row_bytes
        most = max(min(MOST_ROWS, MOST_BYTES // max(self.row_bytes, 1)), 1)
        for digest, of_row in zip(digests[-most:].tolist(), predictions[-most:], strict=True):
            self.rows.pop(digest, None)
            self.rows[digest] = of_row.copy()
        if len(self.rows) > most:
            for digest in list(self.rows)[: len(self.rows) - most]:
                self.rows.pop(digest, None)  # another thread may have put it back

    def put_back(self, digests: np.ndarray, predictions: np.ndarray) -> None:
        """Write the predictions that were kept of rows over those (n, M, K) of now; these rows no longer wait."""
        for number, of_row in enumerate(self.taken(digests) if self.rows else ()):
            if of_row is not None:
                predictions[number] = of_row

    def taken(self, digests: np.ndarray) -> Iterator[np.ndarray | None]:
        """The predictions (M, K) that were kept of each row, if there are any; it no longer waits."""
        return (self.rows.pop(digest, None) for digest in digests.tolist())

    @property
    def nbytes(self) -> int:
        """Bytes of the predictions."""
        return self.row_bytes * len(self.rows)

    def save_state(self) -> dict[str, np.ndarray]:
        """Arrays from which :meth:`restore` makes the same; none where no row waits."""
        if not self.rows:
            return {}
        return {"digests": np.array(list(self.rows), np.uint64), "predictions": np.stack(list(self.rows.values()))}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Take over what :meth:`save_state` gave."""
        if arrays:
            self.keep(np.array(arrays["digests"]), np.array(arrays["predictions"]))
