"""The protocol: play, comparators, contract tests of a stranger's learner, and the display of regret."""

import numpy as np
import pytest
from scipy.optimize import minimize

from tests.papers.test_twins import ALL, KERNEL_ALGORITHMS
from tunefree import papers
from tunefree.papers import RegretDisplay, check, play


class Strangers:
    """Somebody's learner, in twenty lines, without a base class."""

    def __init__(self, rate=0.5):
        self.rate = rate

    def begin(self, stream):
        self.weights = np.zeros(stream.n_features)
        self.t = 0

    def predict(self, x):
        return x @ self.weights

    def update(self, x, slope):
        self.t += 1
        self.weights = self.weights - self.rate / self.t**0.5 * slope * x


def data(seed=0, n=80, d=3):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d))
    return X, np.where(X[:, 0] + random.normal(size=n) > 0, 1, -1)


def test_a_strangers_learner_is_played_checked_and_drawn():
    X, y = data()
    result = play(Strangers(), X, y)
    same = play(papers.OGD(0.5), X, y)
    np.testing.assert_allclose(result.predictions, same.predictions, rtol=1e-12)
    assert result.regret("best", radius=2.0) > 0.0
    assert str(result.bound([1.0, 0.0, 0.0])) == "no bound: Strangers has no method bound"
    doubling = {"update": lambda self, x, slope: setattr(self, "rate", 2 * self.rate)}
    assert len(check(Strangers)) == len(check(type("Doubling", (Strangers,), doubling))) == 6
    display = RegretDisplay.from_result(result, same, radius=2.0)
    assert len(display.lines_) == 2 and len(display.notes_) == 2


@pytest.mark.parametrize(
    ("broken", "complaint"),
    [
        ({"weights": property(lambda self: np.zeros(7), lambda self, w: None)}, "."),
        ({"predict": lambda self, x: np.inf}, "not finite"),
        ({"update": None}, r"Broken has no method update\(\)"),
        ({"begin": lambda self, stream: None}, "no weights after begin"),
        ({"begin": lambda self, stream: None, "weights": np.zeros(3), "t": 0}, "forget"),
        ({"bound": lambda self, result, u: papers.Bound(-1e9, "none")}, "its bound is"),
    ],
)
def test_broken_learners_do_not_pass(broken, complaint):
    kind = type("Broken", (Strangers,), broken)
    with pytest.raises((AssertionError, ValueError), match=complaint):
        check(kind)


@pytest.mark.parametrize(
    "algorithm",
    [
        papers.PiSTOL(),
        papers.CoordinatePiSTOL(),
        *(algorithm for algorithm, *_ in ALL.values()),
        *(make(kernel="gaussian", gamma=1.0) for make, *_ in KERNEL_ALGORITHMS.values()),
    ],
    ids=str,
)
def test_all_algorithms_keep_the_contract(algorithm):
    for classes in (2,) if isinstance(algorithm, papers.Perceptron) else (2, 3):
        assert len(check(algorithm, classes=classes)) == 6


@pytest.mark.parametrize(
    ("y", "loss", "problem"),
    [
        ([1.0, -1.0, np.nan], "logistic", "row 2 of y holds a number that is not finite"),
        ([1.0, 2.0, None], "absolute", "row 2 of y"),
        (["a", "b"], "logistic", "X has 3 rows and y has 2"),
        (["a", "b", "c"], "hinge", "of two classes, and there are 3"),
        (["a", "a", "a"], "logistic", "there are 1 classes"),
        ([1, None, 1], "logistic", "labels of y have several types, or some are missing"),
        ([1, -1, 1], "hing", "there is no loss 'hing'; choose one of logistic, hinge"),
        ([[1], [2], [3]], "absolute", "the targets have shape"),
        ([1.0, 2.0, 3.0], "square", "slopes of known bound, and this loss has none"),  # as coin betting assumes
    ],
)
def test_targets_that_cannot_be_learned(y, loss, problem):
    algorithm = papers.CoCoBOriginal() if loss == "square" else papers.ScInOL2()
    with pytest.raises(ValueError, match=problem):
        play(algorithm, np.eye(3), y, loss)


def test_orders_of_rows_and_comparators_that_fit_no_rows():
    X, y = data()
    for order in ("sideways", [0, 1]):
        with pytest.raises(ValueError, match="order must be 'cyclic' or have a row for each of the 3 steps"):
            papers.SubgradientMethod(order=order).run(X, y, 3)
    result = play(papers.ScInOL2(), X, y)
    assert result.regret("best", radius=0.0) == pytest.approx(result.losses.sum() - 80 * np.log(2.0))
    with pytest.raises(ValueError, match="has 3 weights, one a feature, not"):
        result.comparator([1.0, 2.0])


@pytest.mark.parametrize("loss", ["logistic", "smoothed-hinge", "square"])
@pytest.mark.parametrize("radius", [0.5, 3.0, None])
def test_the_best_comparator_is_the_best(loss, radius):
    X, y = data(3)
    result = play(papers.OGD(0.1), X, y, loss)
    best = result.comparator("best", radius)
    limit = np.inf if radius is None else radius
    assert np.linalg.norm(best.weights) <= limit * (1 + 1e-9)
    other = minimize(
        lambda u: result.comparator(u).losses.sum(),
        np.zeros(3),
        method="SLSQP",
        constraints=[] if radius is None else [{"type": "ineq", "fun": lambda u: radius**2 - u @ u}],
        options={"ftol": 1e-12, "maxiter": 500},
    )
    assert best.losses.sum() <= other.fun + 1e-4


def test_regret_over_rows_has_the_bound_beside_it():
    X, y = data()
    results = [play(made, X, y) for made in (papers.ScInOL1(), papers.ScInOL2(), papers.Adam())]
    display = RegretDisplay.from_result(*results, u=[1.0, 0.0, 0.0])
    names = [line.get_label() for line in display.lines_]
    assert names == ["ScInOL1", "ScInOL1, Theorem 3.1", "ScInOL2", "ScInOL2, Theorem 3.2", "Adam, no bound"]
    assert display.notes_ == ["Adam: no theorem of the papers bounds the regret of Adam"]
    regrets, bounds = display.lines_[0].get_ydata(), display.lines_[1].get_ydata()
    assert regrets[-1] == pytest.approx(results[0].regret([1.0, 0.0, 0.0]))
    assert bounds[-1] == pytest.approx(results[0].bound([1.0, 0.0, 0.0]).value)
    assert (np.asarray(bounds)[:, None] >= 0).all() and display.ax_.get_xlabel() == "rounds (rows)"
