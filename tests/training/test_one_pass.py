"""One pass: whatever door rows come through, the same rows in the same order make the same model."""

import copy

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import tunefree
from tests.distributed.data import learned
from tunefree.model_files.plan import Plan
from tunefree.model_files.trained import continued
from tunefree.pool.model import Model
from tunefree.stream.batch import BadRows
from tunefree.stream.source import open_source
from tunefree.training.one_pass import end
from tunefree.training.reading import chunks_of, encoded
from tunefree.training.training import learn_batch, learn_more, train

N = 600
KINDS = "two classes", "three classes", "numbers"


def rows_of(kind):
    random = np.random.default_rng(3)
    X = random.normal(size=(N, 4))
    score = X[:, 0] + X[:, 1] ** 2 + 0.5 * random.normal(size=N)
    if kind == "numbers":
        return X, score
    return X, np.digitize(score, [0.5] if kind == "two classes" else [0.2, 1.2])


def table_of(X, y):
    return pa.table({f"x{j}": X[:, j] for j in range(X.shape[1])} | {"y": y})


def estimator(kind, pool=True, **parameters):
    names = ("TuneFreeRegressor" if pool else "OnlineRegressor") if kind == "numbers" else None
    return getattr(tunefree, names or ("TuneFreeClassifier" if pool else "OnlineClassifier"))(**parameters)


def assert_same(trained, other):
    """Two trainings have learned the same, to the bit, and lost the same on the way."""
    assert trained.progress.progressive == other.progress.progressive
    (arrays, header), (expected, of_other) = trained.model.save_state(), other.model.save_state()
    # Files keep rows of features that occur once, and estimators name the loss that is usual.
    for state in (header, of_other):
        state["linear"]["meetings"] = state["replays"] = state["loss"] = None
    assert header == of_other
    expected = {name: array for name, array in expected.items() if not name.startswith("linear.meetings.")}
    arrays = {name: array for name, array in arrays.items() if not name.startswith("linear.meetings.")}
    assert arrays.keys() == expected.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, expected[name], name)


@pytest.fixture(params=KINDS, scope="module")
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def path(kind, tmp_path_factory):
    path = tmp_path_factory.mktemp("rows") / "rows.parquet"
    parquet.write_table(table_of(*rows_of(kind)), path, row_group_size=250)
    return path


@pytest.fixture(scope="module")
def trained(path):
    """What several tests compare with; none of them changes it."""
    return train(open_source(path), Plan(target="y"))


def test_fit_is_train(kind, trained):
    X, y = rows_of(kind)
    fitted = estimator(kind, shuffle=False).fit(X, y)
    assert_same(fitted.trained_, trained)
    assert fitted.trained_.progress.curve == trained.progress.curve


def test_partial_fit_and_the_end_are_train(kind, trained):
    X, y = rows_of(kind)
    model = estimator(kind)
    known = {} if kind == "numbers" else {"classes": np.unique(y)}
    for start, stop in ((0, 1), (1, 350), (350, N)):
        model.partial_fit(X[start:stop], y[start:stop], **known)
    end(model._learned)
    assert_same(model.trained_, trained)


def test_one_shard_is_train(path, trained):
    assert_same(learned(path, Plan(target="y")), trained)


def test_further_rows_are_learned_alike_from_files_and_by_partial_fit(kind, path, tmp_path):
    X, y = rows_of(kind)
    earlier = train(open_source(path), Plan(target="y"))
    earlier.save(tmp_path / "a.model")
    of_table = learn_more(earlier, open_source(table_of(X[:300], y[:300])))
    model = tunefree.load(tmp_path / "a.model").partial_fit(X[:300], y[:300])
    end(model._learned)
    assert_same(model.trained_, of_table)


@pytest.mark.parametrize("passes", [1, 3])
def test_single_learners_make_the_passes_of_train(kind, path, passes):
    X, y = rows_of(kind)
    fitted = estimator(kind, pool=False, passes=passes, shuffle=False).fit(X, y)
    trained = train(open_source(path), Plan(target="y", learner="scinol2", passes=passes))
    assert_same(fitted.trained_, trained)
    assert fitted.trained_.progress.number == trained.progress.number == passes


def test_a_fit_that_was_interrupted_in_a_further_pass_goes_on_with_the_first(kind, monkeypatch):
    X, y = rows_of(kind)
    model, begin_pass = estimator(kind, pool=False, passes=3), Model.begin_pass

    def interrupt(of_model):
        begin_pass(of_model)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Model, "begin_pass", interrupt)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, y)
    model.partial_fit(X[:10], y[:10])
    progress = model.trained_.progress
    assert (progress.number, len(progress.progressive), progress.progressive[0].rows) == (1, 1, N + 10)


def test_what_is_known_of_a_training_stays_as_rows_are_served(trained):
    trained = copy.deepcopy(trained)
    trained.progress.tally.count = 3
    going, (X, y) = continued(trained), (np.zeros((5, 4)), [0, 1, 0, 1, 1])
    chunks = chunks_of(open_source(table_of(X, y)), going.encoder, BadRows())
    for batch in encoded(going.encoder, chunks, BadRows(), True, True):
        learn_batch(going, batch)
    assert going.progress.tally.count == 3
    assert going.progress.rows == N + 5
