"""Columns of two values of which a row has the rarer one in one column at most, such as the indicators of categories.

Ke et al.: LightGBM (NIPS 2017), Algorithm 3, exclusive feature bundling, without conflicts. The histogram of a bundle
has those of all its columns, so that the rows are summed up once. Splits are of single columns, with the same bits.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

MOST_MEMBERS = 255  # of a bundle; code 0 is that of rows without any of their rarer values
OPEN = 4  # bundles that a column may join, the latest ones: indicators of a category are neighbours
FIRST_ROWS = 4096  # which show most conflicts


class Exclusive(NamedTuple):
    """Bundles of columns that exclude each other."""

    codes: Annotated[np.ndarray, "uint8[bundles, all_rows]"]  # of the column whose rarer value a row has, or 0
    bundles: Annotated[np.ndarray, "int32[columns]"]  # of each column; -1 for none
    members: Annotated[np.ndarray, "uint8[columns]"]  # the code of each column in its bundle
    rarer: Annotated[np.ndarray, "uint8[columns]"]  # the code of its rarer value

    @property
    def n_filled(self) -> int:
        """Histograms that are filled instead of one for each column."""
        return int(np.count_nonzero(self.bundles < 0)) + len(self.codes)


def exclusive_of(codes: np.ndarray, n_codes: np.ndarray, is_categorical: np.ndarray) -> Exclusive:
    """The bundles of columns by the codes (c, n) of their rows.

    Examples
    --------
    >>> indicators = np.array([[1, 0, 0, 0], [0, 1, 0, 0], [0, 1, 1, 0]], np.uint8)
    >>> exclusive = exclusive_of(indicators, np.full(3, 2), np.zeros(3, bool))
    >>> exclusive.bundles.tolist(), exclusive.codes.tolist()
    ([0, 0, -1], [[1, 2, 0, 0]])
    """
    n_columns, n = codes.shape
    rarer, groups = np.zeros(n_columns, np.uint8), list[tuple[np.ndarray, list[int]]]()
    for j in np.flatnonzero((n_codes == 2) & ~is_categorical):
        if codes[j].max(initial=0) > 1:  # some are missing
            continue
        rarer[j] = 2 * np.count_nonzero(codes[j]) <= n
        has_rarer = codes[j] == rarer[j]
        for taken, members in groups[: -OPEN - 1 : -1]:
            if len(members) < MOST_MEMBERS and not any(
                (taken[rows] & has_rarer[rows]).any() for rows in (slice(FIRST_ROWS), slice(FIRST_ROWS, None))
            ):
                taken |= has_rarer
                members.append(int(j))
                break
        else:
            groups.append((has_rarer, [int(j)]))
    groups = [(taken, members) for taken, members in groups if len(members) > 1]
    bundled = Exclusive(
        np.zeros((len(groups), n), np.uint8), np.full(n_columns, -1, np.int32), np.zeros(n_columns, np.uint8), rarer
    )
    for b, (_, of_bundle) in enumerate(groups):
        bundled.bundles[of_bundle], bundled.members[of_bundle] = b, np.arange(1, len(of_bundle) + 1)
        for code, member in enumerate(of_bundle, 1):
            bundled.codes[b][codes[member] == rarer[member]] = code
    return bundled
