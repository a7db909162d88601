"""Options of a model before its first row: one learner, or the pool, which has members for tables and texts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from tunefree.core.errors import ModelError, nearest
from tunefree.generations import kinds
from tunefree.learners import ALL, POOL, family_of
from tunefree.learners.contract import Traits
from tunefree.losses import loss_of
from tunefree.losses.objectives import Objective
from tunefree.pool import calibration, views
from tunefree.pool.linear_group import Setting

# The linear members of the pool (see tunefree.pool); OF_TABLES and OF_TEXTS are for tables or for texts only.
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


class Monotone(NamedTuple):
    """A column in which predictions are monotone: numbers, or the log-odds of the second of two sorted classes."""

    name: str
    feature: int  # number of its feature, a dense column
    sign: int  # 1 if predictions rise, -1 if they fall


def special_about(learner: str) -> Traits:
    """The traits of a learner of this name; the pool has the default traits."""
    return Traits() if learner == POOL else ALL[learner].traits


def usual_view(learner: str) -> str:
    """The default view of a learner."""
    family = family_of(learner)
    return "raw" if family is None else family.view


def check_settings(task: str, learner: str, loss: str | None, average: bool, settings: Any, view: str) -> None:
    """Raise a ModelError unless these options can be combined."""
    loss_of(task, loss)
    if learner != POOL and learner not in ALL:
        names = [POOL, *ALL.search()]
        raise ModelError(f"unknown learner {learner!r}; {nearest(learner, names, 'learners', len(names))}")
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
    """Options of a model; a ModelError is raised if they cannot be combined.

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
    view: str = "raw"  # one of views.NAMES; each member of the pool has its own view
    config: Any = None  # configuration of a learner that is not linear, such as a kernel
    member_settings: Any = None  # a tuple of Setting that replaces the default members of the learner
    # Whether features from number 1024 on get statistics at a later occurrence only, at which the earlier ones are
    # replayed, if all linear members can replay (tunefree.pool.occurrences).
    replays: bool = False
    kinds: Any = None  # further kinds of trees in a pool; by default all that are registered by now
    monotone: Any = ()  # columns in which predictions of a pool are monotone; for numbers and two classes

    def __post_init__(self) -> None:
        """Check the options, and fill in defaults that depend on other options."""
        settings, family = self.settings or {}, self.family
        check_settings(self.task, self.learner, self.loss, self.average, settings, self.view)
        config, members = self.config, self.member_settings
        if family is not None:
            config = config or family.config_of(None)
            members = members or family.settings_of_members(self.learner, settings, self.view, config)
        members = members or (MEMBERS if self.is_pool else [Setting(self.learner, settings, self.view)])
        is_open = self.kinds is None and self.is_pool
        registered = kinds.registered(bool(self.monotone)) if is_open else tuple(self.kinds or ())
        self.__dict__.update(settings=settings, config=config, member_settings=tuple(members))
        self.__dict__.update(kinds=registered, monotone=tuple(self.monotone))

    @property
    def family(self) -> Any:
        """The :class:`tunefree.pool.rows.Family` of a learner that is not linear; None for other learners."""
        return family_of(self.learner)

    @property
    def is_pool(self) -> bool:
        """Whether the model is a pool, in which generations predict too, see :mod:`tunefree.pool`."""
        return self.learner == POOL

    @property
    def is_mixed(self) -> bool:
        """Whether a mixture predicts; its members then predict log-odds of classes."""
        return self.is_pool or len(self.member_settings) > 1

    @property
    def linear_settings(self) -> list[Setting]:
        """The settings of the linear members."""
        return list(self.member_settings) if self.family is None else []

    @property
    def replays_first_meetings(self) -> bool:
        """Whether features get statistics after their first few occurrences (:mod:`tunefree.pool.occurrences`)."""
        can_replay = (ALL[setting.learner].traits.can_replay for setting in self.linear_settings)
        return self.replays and not self.average and all(can_replay)

    @property
    def is_calibrated(self) -> bool:
        """Whether predictions are margins that must be calibrated to log-odds."""
        are_log_odds = self.is_mixed or calibration.are_log_odds(self.learner, self.loss)
        return self.task == "classification" and not are_log_odds

    def objective(self, n_outputs: int) -> Objective:
        """The objective of members before the first row."""
        is_softmax = n_outputs > 1 and (self.loss or "logistic") == "logistic"
        return Objective(self.task, None if is_softmax else loss_of(self.task, self.loss))


LOG_ODDS = Objective("classification", loss_of("classification", None))


def objective_of_mixture(n_outputs: int) -> Objective:
    """The objective for mixed log-odds, with one margin or one for each class; it is not used for learning."""
    return LOG_ODDS if n_outputs == 1 else calibration.LOG_LOSS
