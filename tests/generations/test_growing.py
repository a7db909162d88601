"""What holds for each kind of generation."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tests.extending import as_before, run_page
from tests.generations.problems import KINDS, TASKS, TREES, arrays_in_file, columns, from_file, grow, numbers, problem
from tunefree.compiled import functions
from tunefree.core.errors import ModelError
from tunefree.generations import kinds, linear, trees
from tunefree.generations.columns import digests_of
from tunefree.generations.linear import STRENGTHS
from tunefree.generations.problem import FAR, Problem, scaled_targets
from tunefree.generations.seen import Seen
from tunefree.losses import Absolute, Square

N = len(columns())
OUTSIDE = "category-means"  # of docs/extending/member.md
each_kind, each_task = pytest.mark.parametrize("kind", KINDS), pytest.mark.parametrize("task", TASKS)
any_kind = pytest.mark.parametrize("kind", [*KINDS, OUTSIDE])

pytestmark = pytest.mark.all_trees


@pytest.fixture(scope="module", autouse=True)
def _outside():
    page = run_page("member.md", until=f'register("{OUTSIDE}"')
    with as_before(kinds.KINDS):
        kinds.KINDS.register(OUTSIDE, kinds.Kind(page["grow_means"]))
        yield


def margins(kind, rows, X=None):
    return grow(kind, rows, 3).apply(rows.columns if X is None else X)[1][0]


@any_kind
@each_task
def test_weights_are_relative(kind, task):
    weights = np.random.default_rng(4).random(N) + 0.1
    expected = margins(kind, problem(task, weights=weights))
    for unit in (2.0, 2.0**-40, 2.0**900):
        assert (margins(kind, problem(task, weights=weights * unit)) == expected).all()


def test_the_centre_of_targets_is_weighted_and_robust_losses_clip_outliers():
    y, weights = np.array([0.0, 1.0, 2.0, 1e6]), np.array([1.0, 1.0, 2.0, 1.0])
    rows = problem(X=columns(4), y=y, weights=weights)
    assert scaled_targets(rows).centre == pytest.approx(np.average(y, weights=weights))
    assert scaled_targets(rows._replace(loss=Absolute())).targets.max() == FAR


@each_kind
@each_task
def test_rows_are_predicted_better_than_by_a_constant(kind, task):
    rows, fresh = problem(task), columns(300, seed=12)
    truth = problem(task, X=fresh, y=numbers(fresh, seed=13)).targets
    predicted = margins(kind, rows, fresh)
    if task == "numbers":
        assert np.var(truth - predicted[:, 0]) < 0.6 * np.var(truth)
    else:
        classes = (predicted[:, 0] > 0) * 1.0 if task == "two" else predicted.argmax(axis=1)
        assert (classes == truth).mean() > np.bincount(truth.astype(int)).max() / 300 + 0.05


@any_kind
def test_the_seed_and_nothing_else_decides(kind):
    rows, before = problem("three"), np.random.get_state()[1].copy()
    with ThreadPoolExecutor(3) as executor:
        results = list(executor.map(lambda _: margins(kind, rows), range(3)))
    assert all((result == results[0]).all() for result in results)
    assert (np.random.get_state()[1] == before).all()
    if kind in TREES:
        of_seeds = [grow(kind, rows, seed).apply(columns(seed=15))[1] for seed in (3, 4)]
        assert (of_seeds[0] != of_seeds[1]).any()


def extremes():
    X = columns()
    huge = X.copy()
    huge[:, :4] *= 1e307
    huge[:2, 1] = 1.7e308, -1.7e308
    yield "huge", huge
    yield "denormal", np.nan_to_num(X) * 1e-320
    yield "constant", np.ones(X.shape)
    yield "missing", np.full(X.shape, np.nan)
    yield "no columns", np.empty((N, 0))


@pytest.mark.filterwarnings("error")
@each_kind
@each_task
@pytest.mark.parametrize(("name", "X"), list(extremes()), ids=[name for name, _ in extremes()])
def test_margins_are_finite_on_extreme_columns(kind, task, name, X):
    predicted = margins(kind, problem(task, X=X))
    assert np.isfinite(predicted).all()
    if name in ("constant", "missing", "no columns"):
        assert (predicted == predicted[0]).all()


@any_kind
@each_task
def test_a_file_gives_the_same_model(kind, task):
    model, X = grow(kind, problem(task), 0), columns(30, seed=14)
    again = from_file(type(model), arrays_in_file(model), 5)
    assert (again.apply(X)[1] == model.apply(X)[1]).all()
    assert again.n_outputs == model.n_outputs and again.n_leaves == model.n_leaves
    if kind == "linear":
        with pytest.raises(ModelError, match="a linear generation in the file is damaged"):
            from_file(type(model), arrays_in_file(model), 4)


def test_linear_models_of_too_many_weights_are_not_grown(monkeypatch):
    monkeypatch.setattr(linear, "MOST_WEIGHTS", 5)
    assert grow("linear", problem("numbers"), 0) is None and grow("linear", problem("two"), 0) is not None
    monkeypatch.setattr(linear, "MOST_PRODUCTS", 5)
    assert grow("linear", problem("two"), 0) is None


@pytest.mark.parametrize("strength", [0.1, 10.0])
def test_linear_models_minimise_the_penalised_loss(strength):
    X = np.random.default_rng(6).normal(size=(80, 3))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    y = X @ [1.0, -2.0, 0.5] + np.random.default_rng(7).normal(size=80)
    place = STRENGTHS.index(strength)
    model = grow("linear", Problem(X, np.zeros(3, bool), y, np.ones(80), 0, Square()), 0)
    expected = np.linalg.solve(X.T @ X + np.eye(3) / strength, X.T @ (y - y.mean()))
    assert np.allclose(model.weights[place, 1:, 0], expected) and np.allclose(model.weights[place, 0, 0], y.mean())
    classes = Problem(X, np.zeros(3, bool), (y > 0) * 1.0, np.ones(80), 2, None)
    model = grow("linear", classes, 0)
    shares = 1.0 / (1.0 + np.exp(-model.apply(X)[1][place, :, 0]))
    slope = X.T @ (shares - classes.targets) + model.weights[place, 1:, 0] / strength
    assert np.abs(slope).max() < 1e-3 and abs(np.sum(shares - classes.targets)) < 1e-3


@pytest.mark.parametrize("kind", TREES)
def test_a_category_that_is_new_is_predicted_as_the_average_of_those_known(kind):
    random = np.random.default_rng(5)
    categories, x = random.integers(0, 12, 3000), random.random(3000)
    shares = 0.05 + 0.7 * (categories / 11.0) ** 2
    y = (random.random(3000) < shares) * 1.0
    rows = Problem(np.column_stack([x, categories]), np.array([False, True]), y, np.ones(3000), 2, None)
    models = [grow(kind, rows, seed) for seed in range(6)]
    probability = lambda category: np.mean(  # noqa: E731
        [1.0 / (1.0 + np.exp(-model.apply(np.column_stack([x, np.full(3000, category)]))[1][0])) for model in models]
    )
    known = np.average([probability(float(k)) for k in range(12)], weights=np.bincount(categories))
    assert abs(known - y.mean()) < 0.03
    assert abs(probability(99.0) / known - 1.0) < 0.3


@pytest.mark.parametrize("kind", TREES)
@pytest.mark.parametrize("is_categorical", [False, True])
def test_known_is_split_from_missing(kind, is_categorical):
    y = np.random.default_rng(6).integers(0, 2, 200) * 1.0
    X = np.where(y == 1.0, 1.0, np.nan)[:, None]
    predicted = margins(kind, Problem(X, np.array([is_categorical]), y, np.ones(200), 2, None))[:, 0]
    assert np.logaddexp(0.0, np.where(y == 1.0, -predicted, predicted)).mean() < 0.01


def grown(kind, task):
    """All arrays of a model, and what it says of rows."""
    rows = problem(task, X=columns(40, seed=2))
    model = grow(kind, rows._replace(weights=np.linspace(0.5, 1.5, 40)), 1)
    fresh = columns(7, seed=3)
    arrays = [*arrays_in_file(model).values(), *model.apply(fresh)]
    if kind != "linear":
        means = trees.node_means(model, rows.columns, model.values.astype(float))
        terms = np.zeros((7, 5, means.shape[1]))
        trees.add_paths(model, means, fresh, np.arange(5), terms)
        arrays += [means, terms]
    return arrays


def seen():
    """Digests of rows, and which of them came before."""
    digests, observations = digests_of(columns(40), [1, 2, 3, 4, -1]), Seen()
    again = np.concatenate([digests, np.repeat(digests[:3], 40)])
    return [digests, observations.add(again, np.arange(len(again)) % 5 * 1.0), observations.table]


def bytes_of(arrays):
    return [(array.dtype, array.shape, array.tobytes()) for array in arrays]


@pytest.mark.filterwarnings("ignore:overflow encountered")  # of whole numbers without a sign, which wrap around
@pytest.mark.parametrize("arguments", [(kind, task) for kind in KINDS for task in TASKS] + [()], ids="-".join)
def test_plain_python_gives_the_same_bits(arguments, monkeypatch):
    arrays_of = grown if arguments else seen
    compiled = bytes_of(arrays_of(*arguments))
    monkeypatch.setattr(functions, "IS_COMPILED", False)
    assert bytes_of(arrays_of(*arguments)) == compiled
