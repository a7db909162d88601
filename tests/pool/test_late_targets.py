"""Targets that come late: a row that was predicted before it is learned is evidence as it was predicted then."""

import numpy as np

from tunefree import TuneFreeClassifier
from tunefree.core.rows import dense
from tunefree.pool.model import Model
from tunefree.pool.targets import Labels
from tunefree.pool.waiting import MOST_ROWS, Waiting

N = 400


def blocks(seed=0, n=N):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 3))
    return X, np.where(X[:, 0] + 0.5 * random.normal(size=n) > 0, "yes", "no")


def learned_late(predicts):
    """The mixture after rows were learned in blocks of 40, each of them predicted 80 rows before or not."""
    X, y = blocks()
    model = TuneFreeClassifier(n_jobs=1)
    for start in range(0, N, 40):
        if start >= 80:
            model.partial_fit(X[start - 80 : start - 40], y[start - 80 : start - 40], classes=["no", "yes"])
            if predicts:
                model.predict_proba(X[start : start + 40])
    return model


def test_evidence_is_the_prediction_at_the_time():
    late, at_once = (learned_late(predicts)._learned.model.pool for predicts in (True, False))
    assert late.rows == at_once.rows and late.contexts[0].mixture.base.rounds == at_once.contexts[0].mixture.base.rounds
    assert (late.contexts[0].mixture.base.weights != at_once.contexts[0].mixture.base.weights).any()
    name = "boosted, newest, nag"  # leaves learn the same, whatever is evidence
    X, _ = blocks(1)
    predictions = [pool.members.predict(dense(X)) for pool in (late, at_once)]
    place = late.members.names.index(name)
    np.testing.assert_array_equal(predictions[0][:, place], predictions[1][:, place])


def test_the_earliest_are_forgotten():
    waiting = Waiting()
    waiting.keep(np.arange(MOST_ROWS + 3, dtype=np.uint64), np.zeros((MOST_ROWS + 3, 1, 1)))
    assert len(waiting.rows) == MOST_ROWS and 2 not in waiting.rows and 3 in waiting.rows
    for digest in (3, MOST_ROWS + 3):  # of which the first comes again, and is then the latest
        waiting.keep(np.array([digest], np.uint64), np.ones((1, 1, 1)))
    assert len(waiting.rows) == MOST_ROWS and 3 in waiting.rows and 4 not in waiting.rows


def test_late_classes_make_waiting_evidence_worthless():
    X, y = blocks()
    model = Model("classification")
    rows = dense(X)
    model.learn(rows, Labels.of(y.tolist()), np.ones(N))
    model.predict(rows)
    assert model.pool.waiting.rows
    model.learn(rows, Labels.of(["perhaps"] * N), np.ones(N))
    assert not model.pool.waiting.rows
