"""The learners of Kempka, Kotlowski, Warmuth 2019, Section 4, with the settings of that paper, and ours."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tunefree import losses
from tunefree.learners import ALL
from tunefree.learners.contract import traits_of
from tunefree.losses import objectives
from tunefree.losses.objectives import measured
from tunefree.model.members import Member, Setting
from tunefree.model.model import Model
from tunefree.papers.experiments import drawing
from tunefree.papers.experiments.drawing import Style
from tunefree.pool.model import class_of


class Method(NamedTuple):
    """A learner in an experiment."""

    title: str  # in figures and tables
    learner: str  # a name in learners.ALL, or pool
    style: Style
    has_rate: bool = False
    view: str = "raw"
    is_ours: bool = False  # not in the paper


SGD = Method("SGD", "ogd", Style(drawing.BLUE), True)
ADAGRAD = Method("AdaGrad", "adagrad", Style(drawing.SKY, (6, 2)), True)
ADAM = Method("Adam", "adam", Style(drawing.GREEN, (6, 2, 1.5, 2)), True)
NAG = Method("NAG", "nag", Style(drawing.ORANGE), True)
SFMD = Method("SFMD", "sfmd", Style(drawing.BROWN, (6, 2)), True)
COCOB = Method("CoCoB", "cocob", Style(drawing.BROWN, (2, 1.5)))
KOTLOWSKI = Method("Alg1-K17", "kotlowski", Style(drawing.GREY, (6, 2, 1.5, 2)))
SCINOL1 = Method("ScInOL1", "scinol1", Style(drawing.PURPLE, (6, 2)))
SCINOL2 = Method("ScInOL2", "scinol2", Style(drawing.VERMILLION, (), 2.0))
STEADY = Method("steady ScInOL2 (ours)", "scinol2", Style(drawing.BLACK, (1.2, 1.2), 1.6), False, "steady", True)
NAG_OF_THE_AUTHORS = (
    "The rate of NAG in the authors' published code has a further factor sqrt(d), so its nine curves are not at the "
    "paper's rates; here it is as Ross, Mineiro and Langford print it."
)
POOL = Method("pool (ours)", "pool", Style(drawing.BLACK, (), 2.2), is_ours=True)


def objective_of(n_outputs: int) -> Any:
    """Cross-entropy, with one margin for two classes, else with one margin for each class (Appendix G)."""
    return objectives.Binary(losses.Logistic(), 0.0) if n_outputs == 1 else objectives.Multinomial(1.0)


def member_of(learner: str, rate: float | None, n_features: int, n_outputs: int, d: int | None = None) -> Member:
    """A learner of the paper in its initial state; d is the paper's number of features, by default all."""
    settings = {} if rate is None else {"eta": rate}
    dimension = traits_of(ALL[learner]).dimension
    if dimension is not None:
        settings[dimension] = float(n_features if d is None else d)
    return Member.create(Setting(learner, settings, "raw"), False, n_features, n_outputs, objective_of(n_outputs))


def model_of(learner: str, view: str, n_features: int, labels: list[str]) -> Model:
    """One of our models in its initial state. As in the paper, the classes are known in advance."""
    return class_of(learner)("classification", learner, view=view, n_features=n_features, classes=list(labels))


def cross_entropies(margins: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """The cross-entropy of each row, in nats."""
    return measured(objective_of(margins.shape[1]), targets, margins)


def with_rate(method: Method, rate: float) -> str:
    """Label with title and learning rate; the rate is NaN for learners without one.

    Examples
    --------
    >>> with_rate(NAG, 0.1), with_rate(SCINOL2, float("nan"))
    ('NAG 0.1', 'ScInOL2')
    """
    return method.title if np.isnan(rate) else f"{method.title} {rate:g}"
