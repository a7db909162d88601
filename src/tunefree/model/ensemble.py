"""All members of a model, in groups: they learn the same rows, and predict side by side."""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from tunefree.core import threads
from tunefree.core.rows import n_rows
from tunefree.model.group import LabelledRows, WarmupPredictions
from tunefree.model.linear_group import LinearGroup
from tunefree.model.meetings import FirstMeetings
from tunefree.model.options import ModelOptions
from tunefree.model.pool import linear_among

Group = Any  # a LinearGroup, or a bank


class Ensemble:
    """The members of a model: a group of linear ones, or a bank of others.

    Parameters
    ----------
    options : ModelOptions
    n_features, n_outputs, n_classes : int
    """

    def __init__(self, options: ModelOptions, n_features: int, n_outputs: int, n_classes: int) -> None:
        self.options = options
        linear = linear_among(options.member_settings)
        meetings = FirstMeetings() if options.replays_first_meetings else None
        objective = options.objective(n_outputs)
        self.linear = LinearGroup(linear, objective, n_features, n_outputs, options.average, meetings)
        self.banks = [] if options.family is None else options.family.banks(options, n_outputs, n_classes)

    @property
    def groups(self) -> list[Group]:
        """The groups in the order of the members; that of the linear ones may be empty."""
        return [self.linear, *self.banks]

    @property
    def members(self) -> list[Any]:
        """All members in order."""
        return [member for group in self.groups for member in group.members]

    @property
    def n_support(self) -> int:
        """Rows that all banks are made of."""
        return sum(bank.n_support for bank in self.banks)

    @property
    def is_sparse(self) -> bool | None:
        """Whether the rows so far were sparse; None if there were none, or if it makes no difference."""
        return next((group.is_sparse for group in self.groups if group.is_sparse is not None), None)

    def learn(self, rows: LabelledRows, again: bool = False) -> np.ndarray:
        """Let all members learn rows; returns what each predicted of a row before it learned it, (N, n, K)."""
        predictions = np.empty((len(self.members), len(rows.y), self.linear.n_outputs))
        parts = zip(self.groups, self._parts(predictions), strict=True)
        for some, n in _in_turn(list(parts), len(rows.y)):
            threads.each(lambda group, written: group.learn(rows, written, again), some, n)
        return predictions

    def predict(self, X: Any) -> np.ndarray:
        """What each member predicts of new rows, (N, n, K).

        Members that keep rows back predict as if they had learned these.
        """
        predictions = np.full((len(self.members), n_rows(X), self.linear.n_outputs), np.nan)

        def of_group(group: Group, written: np.ndarray) -> None:
            written[:] = group.predict(X)

        parts = zip(self.groups, self._parts(predictions), strict=True)
        for some, n in _in_turn([(group, part) for group, part in parts if group.members], n_rows(X)):
            threads.each(of_group, some, n)
        return predictions

    def _parts(self, of_members: np.ndarray) -> list[np.ndarray]:
        """For each group the part (a view) of an array whose first axis runs over all members."""
        edges = accumulate((len(group.members) for group in self.groups), initial=0)
        return [of_members[start:stop] for start, stop in pairwise(edges)]

    def begin_pass(self) -> None:
        """Prepare for rows that were learned and come again."""
        for bank in self.banks:
            bank.begin_pass()

    def freeze(self) -> None:
        """Learn all rows that were kept back."""
        for bank in self.banks:
            bank.freeze()

    def take_warmup_predictions(self) -> WarmupPredictions | None:
        """Predictions of rows that all members had kept back and have now learned; linear members keep none back."""
        return next((bank.take_warmup_predictions() for bank in self.banks), None)

    def keep(self, stays: list[int]) -> None:
        """Go on with some of the linear members; no others are ever left out."""
        self.linear.keep(stays)

    def add_class(self, n_outputs: int, n_classes: int) -> None:
        """Know one more class, of so many margins.

        A second class needs no further margin. A third one turns one into three, in which the old one is that of class
        1.
        """
        self.linear.add_class(self.options.objective(n_outputs), n_outputs, n_classes)
        for bank in self.banks:
            bank.add_class(self.options.objective(n_outputs), n_outputs, n_classes)


def _in_turn(arguments: list[tuple[Any, ...]], rows: int) -> list[tuple[list[tuple[Any, ...]], int]]:
    """Arguments for groups that use threads themselves, which come one after another, and for the others, which come
    side by side; each with the rows by which threads pay."""
    of_groups: dict[bool, list[tuple[Any, ...]]] = {True: [], False: []}
    for argument in arguments:
        of_groups[argument[0].uses_threads].append(argument)
    return [(of_groups[True], 0), (of_groups[False], rows if len(of_groups[False]) > 1 else 0)]
