"""All members of a model, in groups: they learn the same rows, and predict side by side."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from tunefree.additive.features import AdditiveFeatures
from tunefree.core import threads
from tunefree.core.rows import n_rows
from tunefree.core.states import under
from tunefree.model import additive_bank
from tunefree.model.additive_bank import FEWEST_ROWS, AdditiveBank
from tunefree.model.feature_bank import BANKS, VIEWS
from tunefree.model.group import LabelledRows, MemberGroup, Read, WarmupPredictions
from tunefree.model.kernel_bank import KernelBank
from tunefree.model.linear_group import LinearGroup
from tunefree.model.meetings import FirstMeetings
from tunefree.model.members import Setting
from tunefree.model.options import ModelOptions
from tunefree.model.pool import is_kernel, waits
from tunefree.model.warmup import WarmupBank


class Ensemble:
    """The members of a model: a group of linear ones, then banks.

    Members are numbered group after group. Groups know their members by their places in the group; numbers are
    translated into places here, and nowhere else.

    Parameters
    ----------
    options : ModelOptions
    n_features, n_outputs, n_classes : int
    """

    def __init__(self, options: ModelOptions, n_features: int, n_outputs: int, n_classes: int) -> None:
        self.options = options
        linear = [setting for setting in options.member_settings if not waits(setting)]
        meetings = FirstMeetings() if options.replays_first_meetings else None
        objective = options.objective(n_outputs)
        self.linear = LinearGroup(linear, objective, n_features, n_outputs, options.average, meetings)
        self.banks = banks_of(options, n_outputs, n_classes)

    @property
    def groups(self) -> list[MemberGroup]:
        """The groups in the order of their members' numbers; that of the linear members may be empty."""
        return [self.linear, *self.banks]

    @property
    def kernel_banks(self) -> list[KernelBank]:
        """The banks of kernel members."""
        return [bank for bank in self.banks if isinstance(bank, KernelBank)]

    @property
    def additive(self) -> AdditiveFeatures | None:
        """The features of the additive members; None if there are none that have learned."""
        return next((group.additive for group in self.groups if group.additive is not None), None)

    @property
    def members(self) -> list[Any]:
        """All members in order."""
        return [member for group in self.groups for member in group.members]

    @property
    def n_support(self) -> int:
        """Support points of all kernel members."""
        return sum(bank.n_support for bank in self.kernel_banks)

    @property
    def switched(self) -> int | None:
        """Rows learned when kernel members first went on in Fourier features; None if none has."""
        return min((bank.switched for bank in self.kernel_banks if bank.switched is not None), default=None)

    @property
    def is_sparse(self) -> bool | None:
        """Whether the rows so far were sparse; None if there were none, or if it makes no difference."""
        return next((group.is_sparse for group in self.groups if group.is_sparse is not None), None)

    def idle(self, X: Any) -> np.ndarray:
        """Which members (N,) can learn nothing of rows like these, and never will."""
        return np.repeat([not group.suits(X) for group in self.groups], [len(group.members) for group in self.groups])

    def split(self, of_members: np.ndarray) -> list[np.ndarray]:
        """For each group the part (a view) of an array whose first axis runs over all members."""
        edges = accumulate((len(group.members) for group in self.groups), initial=0)
        return [of_members[start:stop] for start, stop in pairwise(edges)]

    def _places(self, members: list[int] | None) -> list[list[int]]:
        """For each group the places in it of some members, or of all."""
        numbers = np.arange(len(self.members))
        chosen = np.ones(len(numbers), bool) if members is None else np.isin(numbers, members)
        return [np.flatnonzero(part).tolist() for part in self.split(chosen)]

    def learn(self, rows: LabelledRows, again: bool, members: list[int] | None = None) -> np.ndarray:
        """Let some members learn rows, or all; returns what each predicted of a row before it learned it, (N, n, K)."""
        predictions = np.empty((len(self.members), len(rows.y), self.linear.n_outputs))

        def of_group(group: MemberGroup, written: np.ndarray, busy: list[int]) -> None:
            group.learn(rows, written, busy, again)

        groups = zip(self.groups, self.split(predictions), self._places(members), strict=True)
        _each(
            of_group,
            [(group, written, busy) for group, written, busy in groups if busy or members is None],
            len(rows.y),
        )
        return predictions

    def replay(self, X: Any, y: np.ndarray, weight: np.ndarray, members: list[int]) -> None:
        """Let some members learn rows again, on which they are not evaluated."""
        self.learn(LabelledRows(X, y, weight, np.zeros(len(y))), True, members)

    def predict(self, X: Any) -> np.ndarray:
        """What each member predicts of new rows, (N, n, K)."""
        groups = [group for group in self.groups if group.members]
        found: list[Any] = [None] * len(groups)

        def of_group(group: MemberGroup, place: int) -> None:
            found[place] = group.predict(X)

        _each(of_group, [(group, place) for place, group in enumerate(groups)], n_rows(X))
        return found[0] if len(found) == 1 else np.concatenate(found)

    def begin_pass(self, members: list[int] | None) -> None:
        """Rows that were learned come again, for some of the members or all."""
        for group, busy in zip(self.groups, self._places(members), strict=True):
            group.begin_pass(busy)

    def freeze(self) -> None:
        """Learn all rows that were kept back."""
        for group in self.groups:
            group.freeze()

    def take_warmup_predictions(self) -> WarmupPredictions | None:
        """Predictions of rows that all groups had kept back and have now learned; the same rows for all groups."""
        taken = [group.take_warmup_predictions() for group in self.groups if group.members]
        of_all = [own for own in taken if own is not None]
        if not of_all or len(of_all) < len(taken):
            return None
        return of_all[0]._replace(predictions=np.concatenate([own.predictions for own in of_all]))

    @property
    def n_unevaluated(self) -> int:
        """Rows that all groups keep back, on which the members will be evaluated once they learn them."""
        return min((group.n_unevaluated for group in self.groups if group.members), default=0)

    def take_curves(self) -> list[Any]:
        """The latest rows of the first pass as curves of their columns, if a group has them."""
        return [rows for group in self.groups for rows in group.take_curves()]

    def take_work(self) -> float:
        """Entries learned since this was asked for, once for each member and output."""
        total = sum(group.work for group in self.groups)
        for group in self.groups:
            group.work = 0.0
        return total

    def n_weights(self, n_features: int) -> int:
        """How many weights all members have, of the features as given the first so many."""
        return sum(group.n_weights(n_features) for group in self.groups)

    def reads(self, n_features: int) -> list[Read] | None:
        """The weights of all members, see :meth:`tunefree.model.group.MemberGroup.reads`."""
        reads = [group.reads(n_features) for group in self.groups if group.members]
        if any(own is None for own in reads):
            return None
        return [read for own in reads if own is not None for read in own]

    def recalibrate(self, X: Any, codes: np.ndarray, weight: np.ndarray, members: list[int] | None) -> None:
        """Fit the log-odds of some kernel members to the classes of rows that are never learned, or of all."""
        groups = zip(self.groups, self._places(members), strict=True)
        _each(
            lambda bank, chosen: bank.recalibrate(X, codes, weight, chosen),
            [(group, chosen) for group, chosen in groups if isinstance(group, KernelBank)],
            len(codes),
        )

    def reserve_features(self, n_features: int) -> None:
        """Have room for at least so many features."""
        for group in self.groups:
            group.reserve_features(n_features)

    def add_class(self, n_outputs: int, n_classes: int) -> None:
        """Know one more class, see :meth:`tunefree.model.group.MemberGroup.add_class`."""
        for group in self.groups:
            group.add_class(objective_of(self.options, group, n_outputs), n_outputs, n_classes)

    def prune(self, leaves: np.ndarray) -> None:
        """Drop the members for which ``leaves`` (N,) is True, and banks that are left without any."""
        if not leaves.any():
            return
        of_linear, *of_banks = self.split(leaves)
        left = [(bank, gone) for bank, gone in zip(self.banks, of_banks, strict=True) if not gone.all()]
        self.linear.keep(np.flatnonzero(~of_linear).tolist())
        for bank, gone in left:
            bank.keep(np.flatnonzero(~gone).tolist())
        self.banks = [bank for bank, _ in left]

    def save_state(self, n_features: int) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays and a header from which :meth:`restore` makes the same ensemble."""
        arrays, header = self.linear.save_state(n_features)
        header |= {"banks": [], "member_settings": [member.setting._asdict() for member in self.members]}
        for number, bank in enumerate(self.banks):
            own, own_header = bank.save_state(n_features)
            arrays |= {f"bank{number}.{name}": array for name, array in own.items()}
            header["banks"].append(own_header)
        return arrays, header

    def restore(self, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        """Take over what :meth:`save_state` wrote."""
        self.linear.restore(arrays, header)
        for number, (bank, saved) in enumerate(zip(self.banks, header.get("banks", []), strict=True)):
            bank.restore(under(f"bank{number}.", arrays), saved)


def banks_of(options: ModelOptions, n_outputs: int, n_classes: int) -> list[WarmupBank]:
    """A bank for the kernel members of each view, for the linear members of each view that is made of a kernel, and one
    for all linear members on curves or pairs.

    In a mixture kernel members always predict with averages; of classes they predict log-odds.
    """
    settings = [setting for setting in options.member_settings if waits(setting)]
    together: dict[tuple[bool, str], list[Setting]] = {}
    for setting in settings:
        view = "additive" if setting.view in additive_bank.VIEWS else setting.view
        together.setdefault((is_kernel(setting.learner), view), []).append(setting)
    classes = n_classes if options.is_mixed and options.task == "classification" else None
    average = options.average or options.is_mixed
    made: list[WarmupBank] = []
    for (of_kernels, view), own in together.items():
        if of_kernels:
            objective = options.objective_of_kernels(n_outputs)
            made.append(KernelBank(own, options.kernel_config, objective, n_outputs, classes, average))
        elif view == "additive":
            fewest = FEWEST_ROWS if len(settings) < len(options.member_settings) else 1
            objective = options.objective(n_outputs)
            made.append(AdditiveBank(own, objective, n_outputs, options.average, fewest, options.pairs))
        else:
            made.append(BANKS[VIEWS[view][0]](own, options.objective(n_outputs), n_outputs, options.average))
    return made


def objective_of(options: ModelOptions, group: MemberGroup, n_outputs: int) -> Any:
    """The objective of a group's members, from so many margins."""
    of_kernels = isinstance(group, KernelBank)
    return options.objective_of_kernels(n_outputs) if of_kernels else options.objective(n_outputs)


def _each(function: Callable[..., None], arguments: list[tuple[Any, ...]], rows: int) -> None:
    """Call a function for groups, one after another those that use threads themselves, the others side by side."""
    side_by_side = [argument for argument in arguments if not argument[0].uses_threads]
    threads.each(function, [argument for argument in arguments if argument[0].uses_threads], 0)
    threads.each(function, side_by_side, rows if len(side_by_side) > 1 else 0)
