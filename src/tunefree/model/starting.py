"""What kernel learners are told when their bank is settled, and the choice of an offset by trial.

Nitanda, Suzuki (see :mod:`tunefree.kernel.regularized_sgd`) tune the offset gamma of the rates on 1000 iterations. Here
these are of the first rows, which then are learned from the start: every candidate learns them, and the one with the
least progressive loss is taken. Candidates differ by their first rates, which are powers of four over the largest
k(x, x).
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from tunefree.core.numbers import CEILING
from tunefree.core.rows import part
from tunefree.kernel import contract, kernel_sums
from tunefree.kernel.expansion import Expansion
from tunefree.kernel.points import BLOCK, cut, joined, nothing, size
from tunefree.kernel.regularized_sgd import LEAST_OFFSET

TRIED = 1000  # rows on which candidates are tried
FIRST_RATES = tuple(4.0**exponent for exponent in range(-3, 4))  # over the largest k(x, x)


def initialise_members(bank: Any, first: Any, rows: Any) -> None:
    """Tell the learners of a bank how large k(x, x) is, and find the offsets of those that ask for it.

    Parameters
    ----------
    bank : Bank
        With an expansion that has seen nothing.
    first : Waiting
        The first rows.
    rows : points
        The same, as the bank's kernel takes them.
    """
    kernel = bank.expansion.kernel
    largest = largest_own(kernel, rows)
    for function in bank.members:
        function.state = contract.with_kernel_bound(function.state, function.objective, largest, bank.average)
    asking = [m for m, function in enumerate(bank.members) if getattr(function.state, "offset", 0.0) < 0.0]
    if asking:
        _tune(bank, first, rows, asking, largest)


def largest_own(kernel: Any, rows: Any) -> float:
    """The largest k(x, x) of some points; 1 where it is 0 or no number.

    Examples
    --------
    >>> from tunefree.kernel.polynomial import LINEAR
    >>> from tunefree.kernel.points import dense_points
    >>> largest_own(LINEAR, dense_points(np.array([[3.0, 4.0], [1.0, 0.0]]), LINEAR, np.float64))
    25.0
    """
    found = 0.0
    for start in range(0, size(rows), BLOCK):
        which = np.arange(start, min(start + BLOCK, size(rows)))
        block = cut(joined(nothing(rows, None), 0, rows, which), 0, BLOCK)
        own = np.diagonal(kernel_sums.values_within(kernel, 1, block, (0, len(which)))[0])[: len(which)]
        found = max(found, float(own.max()))
    return min(found, CEILING) if found > 0.0 else 1.0


def offsets(penalty: float, largest: float) -> list[float]:
    """Candidates for gamma, 2 / (lambda eta_1) - 1 for each first rate eta_1, at least what the theorems allow.

    Examples
    --------
    >>> offsets(0.1, 1.0)
    [3.0, 4.0, 19.0, 79.0, 319.0, 1279.0]
    """
    found = {max(2.0 * largest / (penalty * rate) - 1.0, LEAST_OFFSET) for rate in FIRST_RATES}
    return sorted(min(offset, CEILING) for offset in found)


def _tune(bank: Any, first: Any, rows: Any, asking: list[int], largest: float) -> None:
    candidates = [(m, offset) for m in asking for offset in offsets(float(bank.members[m].state.penalty), largest)]
    trial = copy.copy(bank)
    trial.max_support = None
    trial.members = [copy.deepcopy(bank.members[m]) for m, _ in candidates]
    for function, (_, offset) in zip(trial.members, candidates, strict=True):
        function.state = function.state._replace(offset=offset)
    steps = bank.expansion.steps[[m for m, _ in candidates]]
    trial.expansion = Expansion(bank.expansion.kernel, steps, bank.n_outputs, rows)
    n = min(TRIED, len(first.y))
    y, weight = first.y[:n], first.weight[:n]
    predictions, everyone = np.empty((len(candidates), n, bank.n_outputs)), list(range(len(candidates)))
    trial.learn_frozen(part(first.X, 0, n), y, weight, weight, predictions, everyone)
    row_losses = [float(function.record.loss[()]) for function in trial.members]
    for asked in asking:
        best = min((loss, offset) for loss, (m, offset) in zip(row_losses, candidates, strict=True) if m == asked)
        bank.members[asked].state = bank.members[asked].state._replace(offset=best[1])
