"""The members of a model: those of the pool, or one learner."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tunefree.core.errors import ModelError
from tunefree.learners import ALL, family_of
from tunefree.learners.contract import Traits, traits_of
from tunefree.losses import loss_of
from tunefree.model import views
from tunefree.model.members import Setting

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


def special_about(learner: str) -> Traits:
    """What is special about a learner of this name; nothing is about a pool."""
    if learner == POOL:
        return Traits()
    return traits_of(ALL[learner])


def usual_view(learner: str) -> str:
    """The view of a learner where none is asked for."""
    family = family_of(learner)
    return "raw" if family is None else family.view


def linear_among(settings: Iterable[Setting]) -> list[Setting]:
    """The settings of linear members."""
    return [setting for setting in settings if family_of(setting.learner) is None]


def can_replay(setting: Setting) -> bool:
    """Whether a linear member can learn features later than they are met."""
    return traits_of(ALL[setting.learner]).can_replay


def settings_of_members(learner: str, settings: dict[str, float], view: str, config: Any = None) -> list[Setting]:
    """The members of a model whose learner has this name.

    Parameters
    ----------
    learner, settings, view, config
        As in :class:`tunefree.pool.model.Model`.

    Examples
    --------
    >>> len(settings_of_members("pool", {}, "raw")), len(settings_of_members("nag", {}, "raw"))
    (8, 1)
    """
    if learner == POOL:
        return list(MEMBERS)
    family = family_of(learner)
    if family is None:
        return [Setting(learner, settings, view)]
    members: list[Setting] = family.settings_of_members(learner, settings, view, config)
    return members


def check_settings(task: str, learner: str, loss: str | None, average: bool, settings: Any, view: str) -> None:
    """Whether these can be combined.

    Raises
    ------
    ModelError
    """
    loss_of(task, loss)
    if learner != POOL and learner not in ALL:
        raise ModelError(f"unknown learner {learner!r}; choose one of {', '.join((POOL, *ALL.search()))}")
    if view not in ("raw", *views.ALL):
        raise ModelError(f"unknown view {view!r}; choose one of {', '.join(('raw', *views.ALL))}")
    if learner == POOL:
        if task == "classification" and (loss or "logistic") != "logistic":
            raise ModelError(f"the pool learns probabilities, with the logistic loss; name a learner for {loss}")
        if average or settings or view != "raw":
            raise ModelError("the pool chooses settings, views and averages by itself; name a learner to choose them")
    if special_about(learner).classifies_only and task == "regression":
        raise ModelError(f"{learner} learns classes only; name another learner for regression")
