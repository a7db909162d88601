"""What decides how a pool predicts: its members' losses on evidence, and their weights in the mixture."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Selection(NamedTuple):
    """The members awake, those of the largest weight first.

    Rows judge a member if it may not have learned them before: see :mod:`tunefree.pool.members`. Members' losses are
    of different rows, since not all were awake from the first row on.
    """

    members: list[str]
    weights: np.ndarray  # (M,) in the base of the mixture that predicts rows to come; their sum is 1
    losses: np.ndarray  # (M,) weighted mean loss of the rows that judge; NaN where none did
    standard_errors: np.ndarray  # (M,) of these means; of groups, if there are any
    rows: np.ndarray  # (M,) that judge
    points: np.ndarray  # (T,) rows learned
    weights_at: np.ndarray  # (T, M) weights in the base of the mixture that follows the stream, after so many rows
