"""Importance: by permutation as by whole predictions; noise looks like noise, and what matters is seen."""

import numpy as np
import pandas as pd
import pytest

from tunefree import Plan, TuneFreeClassifier, TuneFreeRegressor, open_source, train
from tunefree.explanation.dependence import MONTHS, WEEKDAYS
from tunefree.explanation.importance import NewRows, importance
from tunefree.explanation.interactions import interactions
from tunefree.workflows.explanation import picture_of, terms_of


def rows(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return pd.DataFrame(X, columns=list("abcd")), X[:, 0] + 2.0 * X[:, 3] + 0.3 * rng.normal(size=n)


@pytest.mark.parametrize("kind", ["numbers", "classes"])
def test_rises_are_those_of_predictions_of_permuted_rows(kind):
    X, y = rows(700)
    estimator = TuneFreeRegressor() if kind == "numbers" else TuneFreeClassifier()
    estimator.fit(X, y if kind == "numbers" else np.digitize(y, [-1.0, 1.0]))
    new = NewRows.of(estimator.trained_.model.pool)
    members, mixture = new.pool.members, new.pool.context.mixture
    assert len(new.parts) == 3 and sorted(np.concatenate([part.rows for part in new.parts])) == list(range(700))

    def losses(matrix):
        predictions = members.asleep(len(matrix))
        for part in new.parts:
            as_born = [(*named[:3], named[3].as_born()) for named in part.generations]
            predictions[part.rows] = members.placed((), 0, as_born, matrix[part.rows])
        return members.losses(mixture.mean(predictions, True)[:, None], new.targets)[:, 0]

    expected, repeats = [], 8
    for place in range(4):
        draws, risen = np.random.default_rng(new.learned), 0.0
        for _ in range(repeats):
            matrix = new.matrix.copy()
            matrix[:, place] = matrix[new.order(draws), place]
            risen += np.average(losses(matrix) - losses(new.matrix), weights=new.weights) / repeats
        expected.append(risen)
    found = [mean for mean, _ in new.rises([np.array([place]) for place in range(4)])]
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_a_column_that_comes_late_has_an_importance():
    """It is missing in most of the rows that judge, so it matters less than its weight tells."""
    X, y = rows(1500)
    model = TuneFreeRegressor().partial_fit(X[["a", "b", "c"]][:900], y[:900])
    model.partial_fit(X[900:], y[900:])
    of_a, *others, of_d = model.feature_importances_
    assert of_d > of_a > 0.0 and max(others) < 0.05


def test_rows_of_a_group_judge_no_trees_that_know_it():
    X, y = rows(600)
    pool = TuneFreeRegressor().fit(X, y, groups=np.arange(600) // 20).trained_.model.pool
    parts, digests = NewRows.of(pool).parts, pool.members.growth.whole.kept()["digests"]
    unknown = [~generation.knows(digests) for part in parts for *_, generation in part.generations[:1]]
    assert np.sum(unknown, axis=0).tolist() == [1] * 600
    assert [np.count_nonzero(one) for one in unknown] == [len(part.rows) for part in parts]


SIX_MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun"]


def known_truth(kind, seed):
    """Thirteen columns and a target; the columns that matter, and the pairs that interact."""
    rng, n = np.random.default_rng(seed), 300 if kind == "few rows" else 2000
    columns = {f"x{j}": rng.normal(size=n) for j in range(10)}
    columns |= {"a": rng.choice(list("abcd"), n), "b": rng.choice([f"v{i}" for i in range(30)], n)}
    columns["month"] = rng.choice(SIX_MONTHS, n)
    x, is_a = [columns[f"x{j}"] for j in range(10)], columns["a"] == "a"
    mean, matter, pairs = {
        "none": (np.zeros(n), set(), []),
        "interactions": (
            1.5 * np.sign(x[0] * x[1]) + 1.5 * x[2] * is_a,
            {"x0", "x1", "x2", "a"},
            [{"x0", "x1"}, {"x2", "a"}],
        ),
        "few rows": (1.5 * x[0] + x[1], {"x0", "x1"}, []),
    }[kind]
    label = np.where(rng.random(n) < 1.0 / (1.0 + np.exp(-2.0 * (mean - mean.mean()))), "yes", "no")
    columns["target"] = label if seed % 2 else mean + rng.normal(size=n)
    return pd.DataFrame(columns), matter, pairs


def told(kind, seed):
    """Columns said to matter that do not, columns missed, and the pairs said to interact with those that do."""
    rows, matter, pairs = known_truth(kind, seed)
    decomposition = terms_of(train(open_source(rows), Plan(target="target")).trained_)
    ranked = importance(decomposition)
    beyond = set(ranked.names[: ranked.n_beyond])
    found = [set(pair.names) for pair in interactions(decomposition, ranked) if pair.size > pair.noise]
    return beyond - matter, matter - beyond, found, pairs


@pytest.mark.parametrize(("kind", "seed"), [("none", 1), ("few rows", 0), ("interactions", 1)])
def test_noise_is_below_its_line_and_the_rest_above(kind, seed):
    wrong, missed, found, pairs = told(kind, seed)
    assert not wrong and not missed
    assert all(pair in found[:2] for pair in pairs) and (pairs or not found)


def test_only_what_is_beyond_noise_is_drawn_and_months_in_their_order():
    rng = np.random.default_rng(0)
    n, month, day = 1200, rng.integers(0, 12, 1200), rng.integers(0, 7, 1200)
    when = np.datetime64("2024-01-01") + rng.integers(0, 700, n).astype("timedelta64[D]")
    weekday = (when.astype("datetime64[D]").astype(int) + 3) % 7
    table = {
        "month": np.array(MONTHS.split())[month],
        "size": rng.choice(["<10", "10-49", "50+"], n),
        "shop": rng.choice(list("CAB"), n),
        "day": np.array([name[:3] for name in WEEKDAYS.split()])[day],
        "when": when,
        "noise": rng.normal(size=n),
    }
    table["sales"] = 3.0 * (month > 5) + 4.0 * (day == 2) + 5.0 * (table["size"] == "50+") + 6.0 * (weekday == 5)
    table["sales"] += 4.0 * (table["shop"] == "A") + rng.normal(size=n)
    trained_ = train(open_source(pd.DataFrame(table)), Plan(target="sales")).trained_
    drawn = {curve.axis.name: curve.axis for curve in picture_of(trained_, terms_of(trained_)).curves}
    assert set(drawn) == {"month", "size", "shop", "day", "when[weekday]"}
    assert drawn["month"].labels == MONTHS.split()
    assert drawn["size"].labels == ["<10", "10-49", "50+"]
    assert drawn["day"].labels == drawn["when[weekday]"].labels == [name[:3] for name in WEEKDAYS.split()]
    assert [name for name, axis in drawn.items() if not axis.is_ordered] == ["shop"]
