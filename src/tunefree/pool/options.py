"""Options of a model, before it has seen a row: a learner with its members, or the pool with members for tables and
texts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from tunefree.core.errors import ModelError
from tunefree.generations import kinds
from tunefree.learners import ALL, family_of
from tunefree.learners.contract import Traits
from tunefree.losses import loss_of
from tunefree.losses.objectives import Objective
from tunefree.pool import calibration, views
from tunefree.pool.linear_group import Setting

# The linear members of the pool (see tunefree.pool), some of them for tables or for texts alone.
OF_TABLES: tuple[Setting, ...] = (Setting("nag", {"eta": 0.5}, "steady"), Setting("nag", {"eta": 10.0}, "steady"))
OF_TEXTS: tuple[Setting, ...] = (
    Setting("adagrad", {"eta": 0.02}, "steady"),
    Setting("adagrad", {"eta": 0.1}, "steady"),
)
MEMBERS: tuple[Setting, ...] = (
    Setting("newton", {"variance": 1.0}, "steady"),
    Setting("scinol2", {"epsilon": 1.0}, "steady"),
    Setting("cocob", {"alpha": 100.0}, "raw"),
    Setting("nag", {"eta": 2.0}, "steady"),
    *OF_TABLES,
    *OF_TEXTS,
)
POOL = "pool"


class Monotone(NamedTuple):
    """A column with which predictions rise, or fall: numbers, or the log-odds of the second of the sorted classes."""

    name: str
    feature: int  # of dense numbers
    sign: int  # 1 or -1


def special_about(learner: str) -> Traits:
    """The special requirements of a learner of this name; a pool has none."""
    return Traits() if learner == POOL else ALL[learner].traits


def usual_view(learner: str) -> str:
    """The view of a learner where none is asked for."""
    family = family_of(learner)
    return "raw" if family is None else family.view


def check_settings(task: str, learner: str, loss: str | None, average: bool, settings: Any, view: str) -> None:
    """Raise a ModelError unless these can be combined."""
    loss_of(task, loss)
    if learner != POOL and learner not in ALL:
        raise ModelError(f"unknown learner {learner!r}; choose one of {', '.join((POOL, *ALL.search()))}")
    if view not in views.NAMES:
        raise ModelError(f"unknown view {view!r}; choose one of {', '.join(views.NAMES)}")
    if learner == POOL:
        if task == "classification" and (loss or "logistic") != "logistic":
            raise ModelError(f"the pool learns probabilities, with the logistic loss; name a learner for {loss}")
        if average or settings or view != "raw":
            raise ModelError("the pool chooses settings, views and averages by itself; name a learner to choose them")
    if special_about(learner).classifies_only and task == "regression":
        raise ModelError(f"{learner} learns classes only; name another learner for regression")


@dataclass(frozen=True)
class ModelOptions:
    """Options of a model, which raise a ModelError if they cannot be combined.

    >>> options = ModelOptions("classification", loss="hinge", learner="nag")
    >>> options.is_mixed, options.is_calibrated, options.objective(3).is_softmax
    (False, True, False)
    >>> len(options.member_settings), len(ModelOptions("regression").member_settings)
    (1, 8)
    """

    task: str  # "classification" or "regression"
    learner: str = POOL  # or a name in learners.ALL
    loss: str | None = None  # see tunefree.losses.loss_of; the pool learns classes with the logistic loss only
    average: bool = False  # whether the average of the iterates predicts instead of the last one; not for the pool
    settings: Any = None  # parameters of the learner by their names (epsilon, a or b); none for the pool
    view: str = "raw"  # one of views.NAMES; the pool's members have views of their own
    config: Any = None  # what the family of a learner that is not linear chooses, such as a kernel
    member_settings: Any = None  # a tuple of Setting, instead of the members that a learner of this name usually has
    # Whether features from number 1024 on get statistics when they are met a second time, and then learn the first
    # meeting too, where all linear members can (tunefree.pool.occurrences).
    replays: bool = False
    kinds: Any = None  # of trees in a pool beside those of this package; by default those registered by now
    monotone: Any = ()  # columns with which predictions of a pool rise or fall; for numbers, and two classes

    def __post_init__(self) -> None:
        """Check the options, and add those that follow from others."""
        settings, family = self.settings or {}, self.family
        check_settings(self.task, self.learner, self.loss, self.average, settings, self.view)
        config, members = self.config, self.member_settings
        if family is not None:
            config = config or family.config_of(None)
            members = members or family.settings_of_members(self.learner, settings, self.view, config)
        members = members or (MEMBERS if self.is_pool else [Setting(self.learner, settings, self.view)])
        is_open = self.kinds is None and self.is_pool
        registered = kinds.registered(bool(self.monotone)) if is_open else tuple(self.kinds or ())
        values = {"settings": settings, "config": config, "member_settings": tuple(members), "kinds": registered}
        values["monotone"] = tuple(self.monotone)
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def family(self) -> Any:
        """The :class:`tunefree.pool.rows.Family` of a learner that is not linear; None of others."""
        return None if self.is_pool else family_of(self.learner)

    @property
    def is_pool(self) -> bool:
        """Whether generations predict too, see :mod:`tunefree.pool`."""
        return self.learner == POOL

    @property
    def is_mixed(self) -> bool:
        """Whether a mixture predicts; the members then predict log-odds of classes."""
        return self.is_pool or len(self.member_settings) > 1

    @property
    def linear_settings(self) -> list[Setting]:
        """The linear members."""
        return list(self.member_settings) if self.family is None else []

    @property
    def replays_first_meetings(self) -> bool:
        """Whether features get statistics after their first few occurrences (:mod:`tunefree.pool.occurrences`)."""
        can_replay = (ALL[setting.learner].traits.can_replay for setting in self.linear_settings)
        return self.replays and not self.average and all(can_replay)

    @property
    def is_calibrated(self) -> bool:
        """Whether predictions are margins that have to be calibrated to log-odds."""
        are_log_odds = self.is_mixed or calibration.are_log_odds(self.learner, self.loss)
        return self.task == "classification" and not are_log_odds

    def objective(self, n_outputs: int) -> Objective:
        """The objective of members, before any row."""
        is_softmax = n_outputs > 1 and (self.loss or "logistic") == "logistic"
        return Objective(self.task, None if is_softmax else loss_of(self.task, self.loss))


LOG_ODDS, SOFTMAX = Objective("classification", loss_of("classification", None)), Objective("classification")


def objective_of_mixture(n_outputs: int) -> Objective:
    """The objective of mixed log-odds, of one margin or of one for each class; none learns by it."""
    return LOG_ODDS if n_outputs == 1 else SOFTMAX
