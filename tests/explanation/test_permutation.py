"""Importance: by permutation as by whole predictions; noise looks like noise, and what matters is seen."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import log_softmax

from tunefree import TuneFreeClassifier, TuneFreeRegressor
from tunefree.explanation.importance import DRAWS, NewRows
from tunefree.pool.members import predictions_of


def rows(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return pd.DataFrame(X, columns=list("abcd")), X[:, 0] + 2.0 * X[:, 3] + 0.3 * rng.normal(size=n)


@pytest.mark.parametrize("kind", ["numbers", "classes"])
def test_rises_equal_losses_of_permuted_rows(kind):
    X, y = rows(700)
    estimator = TuneFreeRegressor() if kind == "numbers" else TuneFreeClassifier()
    estimator.fit(X, y if kind == "numbers" else np.digitize(y, [-1.0, 1.0]))
    new = NewRows.of(estimator.trained_.model.pool)
    members, mixture = new.pool.members, new.pool.context.mixture
    assert len(new.parts) == 3 and sorted(np.concatenate([part.rows for part in new.parts])) == list(range(700))

    def margins(order, places):
        matrix, predictions = new.matrix.copy(), members.asleep(len(new.matrix))
        matrix[:, places] = matrix[order][:, places]
        for part, start, end in zip(new.parts, new.ends, new.ends[1:], strict=False):
            as_born = [(*named[:3], named[3].as_born()) for named in part.generations]
            predictions[start:end] = predictions_of(members, np.nan, as_born, matrix[start:end])
        return mixture.predict(predictions, is_base=True)

    def rise(changed):
        losses = [members.losses(part[:, None], new.targets)[:, 0] for part in (changed, whole)]
        return np.average(losses[0] - losses[1], weights=new.weights)

    whole, expected, repeats = margins(np.arange(700), []), [], 8
    for place in range(4):
        draws = np.random.default_rng(new.learned)
        expected.append(np.mean([rise(margins(new.order(draws), [place])) for _ in range(repeats)]))
    rises = [mean for mean, _ in new.rises([np.array([place]) for place in range(4)])]
    np.testing.assert_allclose(rises, expected, rtol=1e-9, atol=1e-12)
    draws, joint = np.random.default_rng(new.learned), 0.0
    for _ in range(DRAWS):
        order = new.order(draws)
        first, second, both = (margins(order, places) for places in ([0], [3], [0, 3]))
        joint = joint + (whole - first - second + both) / DRAWS
    changed = whole - joint if kind == "numbers" else log_softmax(whole - joint, axis=1)
    [(risen, _)] = new.rises_of_pairs([np.array([0]), np.array([3])], [(0, 1)])
    assert risen == pytest.approx(rise(changed), rel=1e-9)


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


def test_later_rows_judge_trees_unless_these_lack_a_column_or_all_are_of_a_group():
    X, y = rows(723)
    late = TuneFreeRegressor().partial_fit(X[["a", "b", "c"]][:720], y[:720]).partial_fit(X[720:], y[720:])
    copies = TuneFreeRegressor().partial_fit(X.iloc[np.arange(723) % 200], y[np.arange(723) % 200])
    group = TuneFreeRegressor().partial_fit(X[:60], y[:60], groups=np.ones(60))
    models = TuneFreeRegressor().partial_fit(X, y), copies, late, group
    new, later, cross_validated, nothing = (NewRows.of(model.trained_.model.pool) for model in models)
    for part, targets in ((new, y), (later, y[np.arange(723) % 200])):
        assert (len(part.parts), part.learned, part.targets.tolist()) == (1, 362, targets[362:].tolist())
    np.testing.assert_array_equal(new.matrix, X[362:])
    assert (len(cross_validated.parts), len(cross_validated.targets)) == (3, 723)
    assert nothing is None and group.feature_importances_.argmax() in (0, 3)
