"""What is chosen of a model, before it has seen a row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tunefree.learners import family_of
from tunefree.losses import loss_of
from tunefree.losses.objectives import Objective
from tunefree.model import calibration
from tunefree.model.members import Setting
from tunefree.model.pool import POOL, can_replay, check_settings, linear_among, settings_of_members


@dataclass(frozen=True)
class ModelOptions:
    """Options of a :class:`tunefree.model.model.Model`, where they are described.

    Examples
    --------
    >>> options = ModelOptions.create("classification", loss="hinge", learner="nag")
    >>> options.is_mixed, options.is_calibrated, options.objective(3).is_softmax
    (False, True, False)
    """

    task: str
    learner: str
    loss: str | None
    average: bool
    settings: dict[str, float]
    view: str
    config: Any
    member_settings: tuple[Setting, ...]
    replays: bool = False  # whether first occurrences are replayed at the second, where all linear members can

    @classmethod
    def create(
        cls,
        task: str,
        learner: str = "pool",
        loss: str | None = None,
        average: bool = False,
        settings: dict[str, float] | None = None,
        view: str = "raw",
        config: Any = None,
        member_settings: list[Setting] | None = None,
        replays: bool = False,
    ) -> ModelOptions:
        """Options that can be combined, with the members that they stand for unless these are given.

        Raises
        ------
        ModelError
            See :func:`tunefree.model.pool.check_settings`.
        """
        settings = settings or {}
        check_settings(task, learner, loss, average, settings, view)
        family = family_of(learner)
        config = config or (None if family is None else family.config_of(None))
        members = tuple(member_settings or settings_of_members(learner, settings, view, config))
        return cls(task, learner, loss, average, settings, view, config, members, replays)

    @property
    def family(self) -> Any:
        """What is to be known of the learner if it is not linear, a :class:`tunefree.model.group.Family`; else None."""
        return family_of(self.learner)

    @property
    def is_pool(self) -> bool:
        """Whether generations predict too, see :mod:`tunefree.pool`."""
        return self.learner == POOL

    @property
    def is_mixed(self) -> bool:
        """Whether predictions are those of a mixture; the members then predict log-odds of classes."""
        return self.is_pool or len(self.member_settings) > 1

    @property
    def replays_first_meetings(self) -> bool:
        """Whether features get statistics after their first few occurrences (:mod:`tunefree.model.meetings`)."""
        linear = linear_among(self.member_settings)
        return self.replays and not self.average and all(can_replay(setting) for setting in linear)

    @property
    def is_calibrated(self) -> bool:
        """Whether predictions are margins that have to be calibrated to log-odds."""
        are_log_odds = self.is_mixed or calibration.are_log_odds(self.learner, self.loss)
        return self.task == "classification" and not are_log_odds

    def objective(self, n_outputs: int) -> Objective:
        """The objective of members, before any row."""
        return self._objective(self.loss, n_outputs)

    def objective_of_mixture(self, n_outputs: int) -> Objective:
        """The objective of mixed log-odds."""
        return self._objective("logistic", n_outputs)

    def _objective(self, name: str | None, n_outputs: int) -> Objective:
        is_softmax = n_outputs > 1 and (name or "logistic") == "logistic"
        return Objective(self.task, None if is_softmax else loss_of(self.task, name))
