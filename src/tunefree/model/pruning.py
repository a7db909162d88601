"""Pruning: when the members' shares are reviewed, and which members are dropped.

Shares are reviewed after each power of two of rows. Members of a group that does not pay are dropped. So is a member
whose mean share is negligible, unless it is one of the two with the largest shares, or its kernel is the next narrower
one to that of the leader of its group, which may be needed once there are more rows, or it has a share in predictions
of a model that stands still. The leader of a group of kernels has more rows than others to show what it is worth: it
learns slowly, and often passes curves only after ten thousand rows.

Of wide rows, such as texts, of several classes the members of a pool take much memory. Some of them are dropped early,
whatever their shares. So are members on curves and pairs where there are hundreds of classes. Many dense columns of
several classes, such as images, take much time: there negligible members are dropped earlier.
"""

from __future__ import annotations

import numpy as np

from tunefree.model.additive_bank import FIRST_ROWS
from tunefree.model.additive_bank import VIEWS as ADDITIVE_VIEWS
from tunefree.model.ensemble import Ensemble
from tunefree.model.group import MemberGroup
from tunefree.model.pool import POOLS, is_kernel

FIRST_REVIEW = 64  # rows after which shares are first reviewed
FIRST_PRUNING = 2**17  # rows after which members may be dropped
FIRST_PRUNING_OF_KERNELS = 2**12  # their cost grows with the rows
FIRST_PRUNING_OF_COSTLY = 2**9  # members that change so many weights with each row:
COSTLY = 2**12
FIRST_PRUNING_OF_LEADERS = 2**14  # of groups of kernels
MANY_OUTPUTS = FIRST_ROWS  # each class has about one of the rows that fix the knots of curves
REVIEW_OF_WIDTH = 2**10  # rows after which more features than rows tell that rows are wide
NEGLIGIBLE = 0.01  # mean share below which one is
FEWEST_MEMBERS = 2  # never dropped: whatever comes, there is an alternative


def reviews(rounds: int, evaluation_weight: np.ndarray) -> set[int]:
    """How many of some rows to learn until each of the reviews that fall among them.

    Parameters
    ----------
    rounds : int
        Rows before these on which the members were evaluated.
    evaluation_weight : (n,) array
        Of these rows; those of weight 0 do not count.

    Examples
    --------
    >>> sorted(reviews(60, np.ones(100)))
    [4, 68]
    """
    counts = rounds + np.cumsum(evaluation_weight > 0)
    powers = [2**k for k in range(64) if max(rounds + 1, FIRST_REVIEW) <= 2**k <= counts[-1]]
    return {int(np.searchsorted(counts, power)) + 1 for power in powers}


def negligible_members(
    ensemble: Ensemble, shares: np.ndarray, standing: np.ndarray, rounds: int, first_pruning: int | None = None
) -> np.ndarray:
    """Which members (N,) to drop after so many rows.

    Parameters
    ----------
    ensemble : Ensemble
    shares : (N,) array
        Means over the stream.
    standing : (N,) array
        Those in predictions of a model that stands still; 0 where nothing is known.
    rounds : int
    first_pruning : int, optional
        Rows after which members may be dropped whose cost does not grow with the rows; by default FIRST_PRUNING.
    """
    least = np.sort(shares)[-min(FEWEST_MEMBERS, len(shares))]
    stays = (np.maximum(shares, standing) >= NEGLIGIBLE) | (shares >= least)
    of_kernels = np.array([is_kernel(member.setting.learner) for member in ensemble.members])
    split = map(ensemble.split, (stays, shares, of_kernels))
    for group, of_group, own, kernels in zip(ensemble.groups, *split, strict=True):
        if rounds < FIRST_PRUNING_OF_LEADERS and kernels.any():
            of_group[np.argmax(own)] = True
        if of_group.any():
            of_group |= next_narrower(group, own)
    pays = np.repeat([group.pays for group in ensemble.groups], [len(group.members) for group in ensemble.groups])
    idle = ~pays if pays.any() else np.zeros(len(pays), bool)
    usual = FIRST_PRUNING if first_pruning is None else first_pruning
    first = FIRST_PRUNING_OF_COSTLY if is_costly(ensemble) else usual
    return idle | ~stays & (rounds >= np.where(of_kernels, FIRST_PRUNING_OF_KERNELS, first))


def is_costly(ensemble: Ensemble) -> bool:
    """Whether each row changes many weights of a member, one for each dense column and each of several classes."""
    linear = ensemble.linear
    return linear.n_outputs > 1 and (linear.n_columns or 0) * linear.n_outputs >= COSTLY


def unsuited_members(ensemble: Ensemble, rounds: int) -> np.ndarray:
    """Which members (N,) of a pool to drop after so many rows, whatever their shares: they are not worth their cost."""
    if ensemble.options.learner not in POOLS:
        return np.zeros(len(ensemble.members), bool)
    left_out: tuple[Any, ...] = ()
    has_many = ensemble.linear.n_outputs >= MANY_OUTPUTS and bool(ensemble.linear.members)
    settings = [member.setting for member in ensemble.members]
    return np.array([own in left_out or (has_many and own.view in ADDITIVE_VIEWS) for own in settings])


def are_wide(ensemble: Ensemble, rounds: int) -> bool:
    """Whether it is time to ask, and rows are wide: sparse, with more features than there are rows, and with several
    outputs."""
    linear, is_due = ensemble.linear, REVIEW_OF_WIDTH <= rounds < 2 * REVIEW_OF_WIDTH
    return bool(is_due and linear.n_outputs > 1 and linear.is_sparse) and linear.n_met > rounds


def next_narrower(group: MemberGroup, shares: np.ndarray) -> np.ndarray:
    """Whether a member's kernel is half as wide as that of the group's leader; linear members have no width."""
    widths = np.array([member.setting.settings.get("width", np.nan) for member in group.members])
    return widths == 2.0 * widths[np.argmax(shares)]  # widths are factors of gamma
