"""Linear members as they were: they predict rows while the members of their group learn on."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from tunefree.core.states import under
from tunefree.model import views
from tunefree.model.group import Read

State = tuple[dict[str, np.ndarray], dict[str, Any]]


class FrozenGroup:
    """The members of a group with the weights, views and slots that they had; see ``LinearGroup.frozen``.

    It asks the group about features that occurred once, so it is right as long as the group keeps its members and
    outputs, and of such features as long as the group has the rows in which they were met.

    Parameters
    ----------
    group : LinearGroup
    reads : list of Read
        Weights of each member, of which nobody else changes anything.

    Attributes
    ----------
    views : dict of str to view
        By name.
    objectives : list of objective
        Of each member.
    counts : (int, int)
        Slots of features, and rows in which some features were met first.
    """

    def __init__(self, group: Any, reads: list[Read]) -> None:
        self.group, self.reads = group, reads
        self.views = copy.deepcopy(group.views)
        self.objectives = [member.objective for member in group.members]
        self.counts: tuple[int, int] = group.counts

    def predict(self, X: Any) -> np.ndarray:
        """What each member predicted of rows, (M, n, K)."""
        return self.group.predict_as(X, self.views, self.reads, self.objectives, self.counts)

    def forget(self, features: np.ndarray) -> None:
        """Predict as if features had never been seen; see ``LinearGroup.forget``."""
        for weights, _ in self.reads:
            weights[features[features < len(weights)]] = 0.0

    @property
    def nbytes(self) -> int:
        """Bytes of the weights."""
        return sum(array.nbytes for read in self.reads for array in read)

    def save_state(self, n_features: int) -> State:
        """Arrays and a header from which :meth:`restored` makes the same."""
        arrays = {f"{m}.weights": weights for m, (weights, _) in enumerate(self.reads)}
        arrays |= {f"{m}.units": units for m, (_, units) in enumerate(self.reads)}
        for name, view in self.views.items():
            arrays |= views.saved(f"views.{name}", view)
        scalars = [
            {name: value for name, value in objective._asdict().items() if name != "loss"}
            for objective in self.objectives
        ]
        return arrays, {"views": sorted(self.views), "objectives": scalars, "counts": [*self.counts]}

    @classmethod
    def restored(cls, group: Any, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> FrozenGroup:
        """What :meth:`save_state` wrote; ``group`` is restored, and has the same members."""
        members = [under(f"{m}.", arrays) for m in range(len(group.members))]
        frozen = cls(group, [(of_member["weights"], of_member["units"]) for of_member in members])
        frozen.views = {name: views.restored(name, f"views.{name}", arrays) for name in header["views"]}
        objectives = zip(frozen.objectives, header["objectives"], strict=True)
        frozen.objectives = [objective._replace(**scalars) for objective, scalars in objectives]
        n_slots, n_first = header["counts"]
        frozen.counts = n_slots, n_first
        return frozen
