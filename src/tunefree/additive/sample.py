"""A sample of the rows of a stream: for medians between knots, and for a look at what was learned."""

from __future__ import annotations

from typing import Any

import numpy as np

from tunefree.core.rows import Table, read_only, rebuilt, rows_at, together
from tunefree.core.states import under

SAMPLED = 4096  # rows at most
MOST_BLOCKS = 64  # in which the rows lie before they are joined


class Sample:
    """Every so manyth row of a stream; when it is full every second one is dropped.

    Parameters
    ----------
    like : Table
        Rows with the columns of the stream's; they are not in the sample.

    Examples
    --------
    >>> from tunefree.core.rows import part, table
    >>> stream = table(np.arange(9000.0).reshape(-1, 1), [1], np.zeros((9000, 0)))
    >>> sample = Sample(stream)
    >>> for start in range(0, 9000, 1000):
    ...     sample.add(part(stream, start, start + 1000))
    >>> sample.values[:3, 0], len(sample.values)
    (array([0., 4., 8.]), 2250)
    """

    def __init__(self, like: Table) -> None:
        self._blocks = [rows_at(like, np.arange(0))]
        self._filled, self._stride, self._seen = 0, 1, 0

    def add(self, rows: Table) -> None:
        """See more rows."""
        n, start = len(rows.numbers), 0
        while start < n:
            places = np.arange(start + -self._seen % self._stride, n, self._stride)[: SAMPLED - self._filled]
            if len(places):
                self._blocks.append(rows_at(rows, places))
            self._filled += len(places)
            used = min(-self._seen % self._stride + len(places) * self._stride, n - start)
            start, self._seen = start + used, self._seen + used
            if self._filled == SAMPLED:
                self._blocks = [rows_at(self.rows, np.arange(0, SAMPLED, 2))]
                self._filled, self._stride = SAMPLED // 2, 2 * self._stride
        if len(self._blocks) > MOST_BLOCKS:
            self._blocks = [self.rows]

    @property
    def rows(self) -> Table:
        """The sampled rows; columns of codes that none of them has are left out."""
        joined = together(self._blocks)
        present = (joined.codes > 0).any(axis=0)
        return joined._replace(
            codes=read_only(joined.codes[:, present], np.int32),
            code_columns=read_only(joined.code_columns[present], np.int32),
        )

    @property
    def values(self) -> np.ndarray:
        """(m, p) numbers of the sampled rows."""
        return np.concatenate([block.numbers for block in self._blocks])

    def save_state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays and a header from which :meth:`restore` makes the same sample."""
        arrays = {f"rows.{name}": np.asarray(value) for name, value in self.rows._asdict().items()}
        return arrays, {"stride": self._stride, "seen": self._seen}

    @classmethod
    def restore(cls, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> Sample:
        """The sample that was saved."""
        rows = rebuilt("Table", under("rows.", arrays))
        made = cls(rows)
        made._blocks.append(rows)
        made._filled, made._stride, made._seen = len(made.values), header["stride"], header["seen"]
        return made
