"""Knots of piecewise linear functions: where they are at first, and where more of them are wanted.

Knots are quantiles, so that each interval holds about as many rows. A value that a large part of the rows have would be
several quantiles at once. It becomes one knot, and the other knots are quantiles of the other rows.
"""

from __future__ import annotations

import numpy as np

FEWEST = 16  # sampled values inside an interval from which on it is cut


def first_knots(values: np.ndarray, n_intervals: int) -> np.ndarray:
    """Ascending knots of a column.

    Parameters
    ----------
    values : (n,) array
        Finite numbers.
    n_intervals : int
        Intervals at most, if no values are frequent.

    Returns
    -------
    (m,) array
        All different values if there are at most ``n_intervals + 1``; the least and the greatest are always knots.

    Examples
    --------
    >>> first_knots(np.array([3.0, 1.0, 2.0, 1.0]), 4)
    array([1., 2., 3.])
    >>> first_knots(np.r_[np.zeros(900), np.arange(1.0, 101.0)], 4)
    array([  0.,   1.,  34.,  67., 100.])
    """
    different, counts = np.unique(values, return_counts=True)
    if len(different) <= n_intervals + 1:
        return different
    frequent = counts * n_intervals > len(values)
    others = np.repeat(different[~frequent], counts[~frequent])
    places = np.linspace(0, len(others) - 1, max(n_intervals + 1 - int(frequent.sum()), 2))
    return np.unique(np.concatenate([different[frequent], others[places.astype(np.int64)], different[[0, -1]]]))


def further_knots(knots: np.ndarray, values: np.ndarray) -> np.ndarray:
    """New knots, at most one in each interval and one beyond each end: medians of the values there.

    Examples
    --------
    >>> further_knots(np.array([0.0, 100.0]), np.arange(200.0))
    array([ 50., 199.])
    """
    inside = values[~np.isin(values, knots)]
    place = np.searchsorted(knots, inside)
    order = np.lexsort((inside, place))
    inside, place = inside[order], place[order]
    found = []
    for interval in range(len(knots) + 1):
        own = inside[np.searchsorted(place, interval) : np.searchsorted(place, interval, side="right")]
        if len(own) >= FEWEST:
            ends = {0: 0, len(knots): len(own) - 1}  # beyond an end the function goes on to the farthest value
            found.append(own[ends.get(interval, len(own) // 2)])
    return np.array(found)
