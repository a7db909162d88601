"""Predicted rows that wait for their targets.

Where targets come late, a prediction made at the moment a row is learned is too good: members that follow the latest
targets have learned later ones by then. So the evidence from a row is its earlier prediction, if there is one.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np

from tunefree.core.part import RECORD, Part, child
from tunefree.core.schema import ANY

MOST_ROWS = 4096  # the largest number of waiting rows; the earliest ones are dropped
MOST_BYTES = 2**26  # likewise of their predictions


class Remembered(NamedTuple):
    """Predictions by members for a row that waits for its target."""

    digest: int  # digest of the observation
    predictions: np.ndarray  # (M, K)


class _Rows(NamedTuple):
    digests: Annotated[np.ndarray, "uint64[n]"]
    predictions: Annotated[np.ndarray, "float64[n, members, outputs]", ANY]


class Waiting(Part):
    """Predictions by members for the latest rows, by the digest of their observation.

    >>> waiting = Waiting()
    >>> waiting.keep(np.array([7], np.uint64), np.array([[[0.25]]]))
    >>> later = np.array([[[0.5]], [[0.75]]])
    >>> waiting.put_back(np.array([6, 7], np.uint64), later)
    >>> later[:, 0, 0]
    array([0.5 , 0.25])
    """

    rows: dict[int, np.ndarray] = child(  # (M, K) of each
        _Rows,
        RECORD,
        blank=lambda _: {},
        make=lambda *_: _Rows,
        read=lambda waiting: waiting._arrays(),
        write=lambda waiting, saved: waiting.rows.update(zip(saved.digests.tolist(), saved.predictions, strict=True)),
    )

    def __init__(self) -> None:
        self.rows = {}

    def keep(self, digests: np.ndarray, predictions: np.ndarray) -> None:
        """Keep the predictions (n, M, K) of rows."""
        most = max(min(MOST_ROWS, MOST_BYTES // max(predictions[:1].nbytes, 1)), 1)
        for digest, row_predictions in zip(digests[-most:].tolist(), predictions[-most:], strict=True):
            self.rows.pop(digest, None)
            self.rows[digest] = row_predictions.copy()
        if len(self.rows) > most:
            for digest in list(self.rows)[: len(self.rows) - most]:
                self.rows.pop(digest, None)  # another thread may have put it back

    def put_back(self, digests: np.ndarray, predictions: np.ndarray) -> None:
        """Replace the present predictions (n, M, K) of rows by the kept ones, if any; these rows no longer wait."""
        for index, digest in enumerate(digests.tolist() if self.rows else ()):
            predictions[index] = self.rows.pop(digest, predictions[index])

    def _arrays(self) -> _Rows:
        predictions = np.stack([*self.rows.values()]) if self.rows else np.empty((0, 0, 0))
        return _Rows(np.array([*self.rows], np.uint64), predictions)


def remembered(model: Any, X: Any) -> list[Remembered | None]:
    """The latest predictions by members of a published model, for the rows that it has just predicted.

    None for each row without kept predictions: the evidence is then its prediction at the moment it is learned.
    """
    if model.pool is None or not model.pool.waiting.rows or model.pool.members.growth is None:
        return [None] * len(X.pointers[1:])
    waiting, model.pool.waiting = model.pool.waiting, Waiting()
    columns = model.pool.members.growth.columns
    digests = columns.digests(X, columns.matrix(X)).tolist()
    kept = ((digest, waiting.rows.get(digest)) for digest in digests)
    return [None if predictions is None else Remembered(digest, predictions) for digest, predictions in kept]


def remember(model: Any, rows: list[Remembered]) -> None:
    """Give a model earlier predictions of rows that it learns next; predictions of another shape are left out."""
    if model.pool is not None:
        members = model.pool.members
        shape = len(members.names), max(members.width, 1)
        for digest, predictions in rows:
            if predictions.shape == shape:
                model.pool.waiting.keep(np.array([digest], np.uint64), predictions[None])
