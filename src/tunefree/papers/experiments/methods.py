"""The learners of Kempka, Kotlowski, Warmuth 2019, Section 4, with the settings of that paper, and ours."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from tunefree import learners, losses
from tunefree.core.rows import Block
from tunefree.losses.objectives import Objective, measured
from tunefree.papers.experiments import drawing
from tunefree.papers.experiments.drawing import Style
from tunefree.pool import passes
from tunefree.pool.linear_group import Member, Setting
from tunefree.pool.model import Model
from tunefree.pool.targets import Labels


class Method(NamedTuple):
    """A learner in an experiment."""

    title: str  # in figures and tables
    learner: str  # a name in learners.ALL, or pool; empty where only the printed algorithm is run
    style: Style
    has_rate: bool = False
    view: str = "raw"
    is_ours: bool = False  # not in the paper


class Sample(NamedTuple):
    """Rows of a stream that are learned before margins are evaluated."""

    rows: Block
    codes: np.ndarray  # (n,) int64 classes
    again: bool = False  # whether the rows were learned before
    ends_pass: bool = False


SGD = Method("SGD", "ogd", Style(drawing.BLUE), True)
ADAGRAD = Method("AdaGrad", "adagrad", Style(drawing.SKY, (6, 2)), True)
ADAM = Method("Adam", "adam", Style(drawing.GREEN, (6, 2, 1.5, 2)), True)
NAG = Method("NAG", "nag", Style(drawing.ORANGE), True)
SFMD = Method("SFMD", "", Style(drawing.BROWN, (6, 2)), True)
COCOB = Method("CoCoB", "cocob", Style(drawing.BROWN, (2, 1.5)))
KOTLOWSKI = Method("Alg1-K17", "kotlowski", Style(drawing.GREY, (6, 2, 1.5, 2)))
SCINOL1 = Method("ScInOL1", "scinol1", Style(drawing.PURPLE, (6, 2)))
SCINOL2 = Method("ScInOL2", "scinol2", Style(drawing.VERMILLION, (), 2.0))
STEADY = Method("steady ScInOL2 (ours)", "scinol2", Style(drawing.BLACK, (1.2, 1.2), 1.6), False, "steady", True)
POOL = Method("pool (ours)", "pool", Style(drawing.BLACK, (), 2.2), is_ours=True)
OURS = (STEADY, POOL)
ALL = {method.title: method for method in (SGD, ADAGRAD, ADAM, NAG, SFMD, COCOB, KOTLOWSKI, SCINOL1, SCINOL2, *OURS)}
NAG_OF_THE_AUTHORS = (
    "The rate of NAG in the authors' published code has a further factor sqrt(d), so its nine curves are not at the "
    "paper's rates; here it is as Ross, Mineiro and Langford print it."
)


def margins_along(
    method: Method, rate: float | None, stream: Iterable[Sample], test: Block, labels: list[str], n_features: int
) -> Iterator[np.ndarray]:
    """Margins (n, K) of test rows after each sample of a stream; the constant, if there is one, is feature 0.

    As in the paper, the classes are known in advance.
    """
    n_outputs = 1 if len(labels) == 2 else len(labels)
    if method.is_ours:
        model = Model("classification", method.learner, view=method.view, n_features=n_features, classes=list(labels))
        for rows, codes, again, ends_pass in stream:
            model.learn(rows, Labels(labels, codes), np.ones(len(codes)), again=again)
            if ends_pass and method is POOL:  # the pass ends as that of `fit` and `train`: last trees are grown
                model.freeze()
            yield model.predict(test)
        return
    settings = {} if rate is None else {"eta": rate}
    dimension = learners.ALL[method.learner].traits.dimension
    if dimension is not None:
        settings[dimension] = float(n_features)  # the paper's number of features
    setting = Setting(method.learner, settings, "raw")
    member = Member(setting, False, n_features, n_outputs, objective_of(n_outputs))
    for rows, codes, *_ in stream:
        n = len(codes)
        member.learn(rows, targets_of(codes, n_outputs), np.ones(n), np.empty((n, n_outputs)))
        yield passes.score(*member.weights(n_features), test)


def objective_of(n_outputs: int) -> Objective:
    """Cross-entropy, with one margin for two classes, else with one margin for each class (Appendix G)."""
    return Objective("classification", losses.Logistic() if n_outputs == 1 else None)


def targets_of(codes: np.ndarray, n_outputs: int) -> np.ndarray:
    """Classes in the form that objectives take: -1 and +1 for one margin."""
    return 2.0 * codes - 1.0 if n_outputs == 1 else codes.astype(np.float64)


def cross_entropy(margins: np.ndarray, codes: np.ndarray) -> float:
    """The mean cross-entropy of rows with these margins (n, K), in nats."""
    n_outputs = margins.shape[1]
    return float(np.mean(measured(objective_of(n_outputs), targets_of(codes, n_outputs), margins)))


def rates_of(method: Method, rates: tuple[float, ...]) -> tuple[float | None, ...]:
    """The learning rates that a learner is run with; None for one without."""
    return rates if method.has_rate else (None,)


def with_rate(method: Method, rate: float | None) -> str:
    """Label with title and learning rate.

    Examples
    --------
    >>> with_rate(NAG, 0.1), with_rate(SCINOL2, None)
    ('NAG 0.1', 'ScInOL2')
    """
    return method.title if rate is None else f"{method.title} {rate:g}"
