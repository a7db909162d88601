"""Rows of tables with words: an observation is all of a row, also the words that trees do not see."""

import numpy as np
import pyarrow as pa

from tunefree import TuneFreeClassifier
from tunefree.pool.model import Model

N = 300
WORDS = [f"word{k}" for k in range(200)]


def texts(seed=0, n=N):
    rng = np.random.default_rng(seed)
    words = rng.integers(0, 200, (n, 12))
    y = (words < 60).sum(axis=1) + rng.normal(size=n) > 3.6
    return pa.table({"text": [" ".join(WORDS[k] for k in of_row) for of_row in words]}), np.where(y, "yes", "no")


def pool_of(model) -> Model:
    return model._learned.model


def test_texts_are_no_copies_of_one_another():
    X, y = texts()
    pool = pool_of(TuneFreeClassifier().partial_fit(X, y, classes=["no", "yes"])).pool
    assert pool.members.growth is not None and not pool.members.growth.columns.keys
    assert pool.n_known == 0 and pool.contexts[0].mixture.base.rounds[0] == N


def test_texts_that_are_copies_are_known():
    X, y = texts()
    twice = pa.concat_tables([X, X])
    model = TuneFreeClassifier().partial_fit(twice, np.concatenate([y, y]), classes=["no", "yes"])
    assert pool_of(model).pool.known_rows == (N, 2 * N) and pool_of(model).pool.contexts[0].mixture.base.rounds[0] == N


def test_what_was_predicted_of_a_text_is_not_taken_for_another_text():
    X, y = texts()
    first, second = (TuneFreeClassifier().partial_fit(X, y, classes=["no", "yes"]) for _ in range(2))
    first.predict_proba(X.slice(0, 1))  # a row whose target never comes
    rest, labels = texts(seed=1, n=40)
    for model in (first, second):
        model.partial_fit(rest, labels)
    np.testing.assert_array_equal(first.predict_proba(X), second.predict_proba(X))
