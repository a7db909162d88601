"""The states with which kernel learners start, once their kernel is fixed; offsets are chosen by trial.

Nitanda, Suzuki (see :mod:`.regularized_sgd`) tune the offset gamma of the rates on 1000 iterations. Here
these are of the first rows, which are learned from the start afterwards. Every candidate learns them, and the one with
the least progressive loss is taken. Candidates differ by their first rates, which are powers of four over the largest
k(x, x).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tunefree.core.numbers import CEILING
from tunefree.papers.kernel.points import Points
from tunefree.papers.kernel.regularized_sgd import LEAST_OFFSET, TUNED

TRIED = 1000  # rows on which candidates are tried
FIRST_RATES = tuple(4.0**exponent for exponent in range(-3, 4))  # over the largest k(x, x)

Losses = Callable[[list[tuple[int, Any]]], list[float]]


def starting_states(members: list[Any], is_averaged: bool, largest: float, losses_of: Losses) -> list[Any]:
    """The members' states with all that depends on the kernel.

    Parameters
    ----------
    members : list
        Each has a ``state`` and an ``objective``.
    is_averaged : bool
        Whether averages of their functions are to predict.
    largest : float
        Bound on k(x, x), see :func:`largest_diagonal`.
    losses_of : function
        The progressive losses of candidates on the first TRIED rows. A candidate is the place of a member, and a state
        for it.
    """
    states = [member.state.with_kernel_bound(member.objective, largest, is_averaged) for member in members]
    tuned = [m for m, state in enumerate(states) if state.settings.get("offset") == TUNED]
    candidates = [(m, offset) for m in tuned for offset in offsets(states[m].settings["penalty"], largest)]
    states_of = [(m, states[m].with_settings(offset=offset)) for m, offset in candidates]
    row_losses = losses_of(states_of) if candidates else []
    for place in tuned:
        best = min((loss, offset) for loss, (m, offset) in zip(row_losses, candidates, strict=True) if m == place)
        states[place] = states[place].with_settings(offset=best[1])
    return states


def largest_diagonal(kernel: Any, rows: Points) -> float:
    """The largest k(x, x) of some points; 1 if none is above 0.

    Examples
    --------
    >>> from tunefree.core.rows import dense
    >>> from tunefree.papers.kernel.points import points
    >>> from tunefree.papers.kernel.polynomial import LINEAR
    >>> largest_diagonal(LINEAR, points(dense([[3.0, 4.0], [1.0, 0.0]]), LINEAR))
    25.0
    """
    most = float(kernel.diagonal(rows.as_matrix()).max())
    return min(most, CEILING) if most > 0.0 else 1.0


def offsets(penalty: float, largest: float) -> list[float]:
    """Candidates for gamma, 2 / (lambda eta_1) - 1 for each first rate eta_1, at least what the theorems allow.

    Examples
    --------
    >>> offsets(0.1, 1.0)
    [3.0, 4.0, 19.0, 79.0, 319.0, 1279.0]
    """
    distinct = {max(2.0 * largest / (penalty * rate) - 1.0, LEAST_OFFSET) for rate in FIRST_RATES}
    return sorted(min(offset, CEILING) for offset in distinct)
