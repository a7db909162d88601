"""Members on curves and pairs: nothing depends on cuts, they sleep, wake and leave, and what they learn."""

from __future__ import annotations

import copy
import json
import pickle
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from typer.testing import CliRunner

from tests.additive.contracts import altered, table_of, words_of
from tests.model.interrupted import check_that_training_goes_on_to_the_same_bytes
from tunefree import OnlineClassifier, OnlineRegressor
from tunefree.cli.app import app
from tunefree.core import storage
from tunefree.core.errors import ModelError
from tunefree.core.rows import dense, n_rows, part, reach, rows_at, sparse, table, together
from tunefree.model import additive_bank
from tunefree.model.additive_bank import FEWEST_ROWS, FIRST_ROWS, MOST_COLUMNS, PAIRED, REFINED, AdditiveBank
from tunefree.model.members import Setting
from tunefree.model.model import Model
from tunefree.model.pool import MEMBERS, waits
from tunefree.model.targets import Labels
from tunefree.workflows.training import Plan

few = settings(max_examples=6, deadline=None)
# Two learners only, one for each task, since each is compiled for each kind of rows.
LEARNERS = {"classification": "scinol2", "regression": "cocob"}
OTHERS = [setting for setting in MEMBERS if not waits(setting)]  # of the pool, which take rows as they are
EVENTS = sorted({FIRST_ROWS, *PAIRED[:3], *REFINED[:1]})  # rounds after which something joins
by_task = pytest.mark.parametrize("task", sorted(LEARNERS))


def settings_of(task, views=("steady", "curves", "pairs")):
    return [Setting(LEARNERS[task], {}, view) for view in views]


def mixed_rows(n, seed=0, p=12):
    """Columns of numbers, so many that not all pairs are learned, two columns of codes, and words; and targets."""
    rng = np.random.default_rng(seed)
    numbers = rng.normal(size=(n, p))
    numbers[:, 3], numbers[:, 4] = np.round(numbers[:, 3]), numbers[:, 4] > 0.5
    codes = np.column_stack([np.minimum(rng.geometric(0.08, n), 80), np.where(rng.random(n) < 0.1, 90, 0)])
    rows = table_of(numbers, codes, [0, 17], words_of(rng, n, 3, 30))
    score = np.sin(2.0 * numbers[:, 0]) + numbers[:, 1] * numbers[:, 2] + 0.5 * (codes[:, 0] % 3 - 1)
    return rows, score + 0.3 * rng.normal(size=n)


def targets_of(task, score, n_classes=2):
    edges = [0.0] if n_classes == 2 else [-0.5, 0.5]
    return score if task == "regression" else np.digitize(score, edges)


def model_of(task, rows, views=("steady", "curves", "pairs"), classes=(0, 1)):
    known = list(classes) if task == "classification" else []
    return Model(task, classes=known, n_features=reach(rows), member_settings=settings_of(task, views))


def learn(model, rows, y, cuts=(), weight=None, **options):
    """Let a model learn rows; returns what it predicted of each before."""
    weight = np.ones(len(y)) if weight is None else weight
    shown, edges = [], [0, *sorted(cuts), len(y)]
    for start, stop in zip(edges[:-1], edges[1:], strict=True):
        targets = Labels.of(y[start:stop]) if model.task == "classification" else y[start:stop]
        shown.append(model.learn(part(rows, start, stop), targets, weight[start:stop], **options)[0])
    return np.concatenate(shown)


def saved(model):
    arrays, header = model.save_state()
    return {name: np.asarray(array).tobytes() for name, array in arrays.items()}, json.dumps(header, sort_keys=True)


def bank_of(model):
    (bank,) = (bank for bank in model.ensemble.banks if isinstance(bank, AdditiveBank))
    return bank


def around(events, weight):
    """Places just before and behind the rows with weight above 0 after which something joins."""
    rounds = np.cumsum(weight > 0.0)
    places = [int(np.searchsorted(rounds, event)) + 1 + by for event in events for by in (-1, 0, 1)]
    return [place for place in places if place <= len(weight)]


@by_task
@few
@given(seed=st.integers(0, 2**32), data=st.data())
def test_cuts_of_batches_change_no_bit(task, seed, data):
    rows, score = mixed_rows(4700, seed)
    y, weight = (
        targets_of(task, score),
        np.random.default_rng(seed).choice([0.0, 0.5, 1.0, 2.0], 4700, p=[0.1, *[0.3] * 3]),
    )
    cuts = data.draw(st.lists(st.sampled_from(around(EVENTS, weight)) | st.integers(0, 4700), min_size=1, max_size=8))
    one, other = model_of(task, rows), model_of(task, rows)
    whole, pieces = learn(one, rows, y, (), weight), learn(other, rows, y, cuts, weight)
    assert bank_of(one).rounds > EVENTS[-1]
    assert whole.tobytes() == pieces.tobytes()
    assert saved(one) == saved(other)
    assert one.predict(rows).tobytes() == other.predict(rows).tobytes()


def test_batches_of_rows_of_weight_0_repeat_no_event():
    rows, score = mixed_rows(2500)
    y, weight = targets_of("classification", score), np.ones(2500)
    weight[2048:2200] = 0.0
    one, other = model_of("classification", rows), model_of("classification", rows)
    learn(one, rows, y, (), weight)
    learn(other, rows, y, (2048, 2060, 2100, 2200), weight)
    assert saved(one) == saved(other)


@by_task
def test_a_model_goes_on_from_its_file_at_every_stage(task, tmp_path):
    rows, score = mixed_rows(4300)
    y = targets_of(task, score)
    one, other = model_of(task, rows), model_of(task, rows)
    stages = [100, 255, *EVENTS[:1], 700, *EVENTS[1:2], 1500, *EVENTS[2:], 4200]
    unknown = altered(rows, codes=rows.codes + 5000)  # more memory for them is no part of a model
    shown = []
    for number, (start, stop) in enumerate(zip([0, *stages], [*stages, 4300], strict=True)):
        shown.append(learn(other, part(rows, start, stop), y[start:stop]))
        before = saved(other)
        predictions = other.predict(rows)
        other.predict(unknown)
        assert saved(other) == before
        if number % 3 == 0:
            storage.save(tmp_path / "model", *other.save_state())
            arrays, header = storage.load(tmp_path / "model")
            header.pop("format")
            other = Model.restore(arrays, header)
        else:
            other = copy.deepcopy(other) if number % 3 == 1 else pickle.loads(pickle.dumps(other))
        assert saved(other) == before
        assert other.predict(rows).tobytes() == predictions.tobytes()
        assert (bank_of(other).screening is not None) == (stop >= FIRST_ROWS)
    assert learn(one, rows, y).tobytes() == np.concatenate(shown).tobytes()
    assert saved(one) == saved(other)


@by_task
def test_rows_of_weight_0_teach_nothing(task):
    rows, score = mixed_rows(2500)
    spoilt, (other, _) = targets_of(task, score), mixed_rows(2500, seed=1)
    y, nothing = spoilt.copy(), np.arange(2500) % 7 == 3
    spoilt[nothing] = 1e3 if task == "regression" else 1 - spoilt[nothing]
    blocks = [part(other if out else rows, i, i + 1) for i, out in enumerate(nothing)]
    blocks = [altered(own, numbers=1e9 * own.numbers) if out else own for own, out in zip(blocks, nothing, strict=True)]
    one, two = model_of(task, rows), model_of(task, rows)
    kept = rows_at(rows, np.flatnonzero(~nothing))
    shown = learn(one, kept, y[~nothing]), learn(two, together(blocks), spoilt, (7,), np.where(nothing, 0.0, 1.0))
    np.testing.assert_array_equal(shown[0], shown[1][~nothing])
    np.testing.assert_allclose(one.predict(rows), two.predict(rows), rtol=1e-9, atol=1e-9)
    (features, header), others = (bank_of(model).features.save_state() for model in (one, two))
    assert header == others[1]
    assert len(features["pairs.first"]) > 0
    for name, array in features.items():
        np.testing.assert_array_equal(array, others[0][name])


def test_rows_of_weight_0_do_not_wait():
    rows, score = mixed_rows(900)
    y, model = targets_of("classification", score), model_of("classification", rows)
    learn(model, part(rows, 0, 400), y[:400], (), np.zeros(400))
    assert bank_of(model).n_warmup == 0
    learn(model, part(rows, 400, 900), y[400:], (), np.tile([0.0, 1.0], 250))
    assert bank_of(model).n_warmup == 250
    assert np.isfinite(model.predict(rows)).all()


@by_task
def test_rows_that_come_again_change_no_feature(task):
    rows, score = mixed_rows(1500)
    y, model = targets_of(task, score), model_of(task, rows)
    learn(model, rows, y)
    bank, before = bank_of(model), model.member_predictions(rows)

    def features():
        arrays, header = bank.features.save_state()
        return {name: np.asarray(array).tobytes() for name, array in arrays.items()}, header, bank.rounds

    was, sums = features(), copy.deepcopy(bank.screening)
    model.begin_pass()
    learn(model, mixed_rows(1500, seed=2)[0], y, again=True)
    model.replay(rows, Labels.of(y) if task == "classification" else y, np.ones(1500), [1])
    assert features() == was
    for one, other in zip(bank.screening, sums, strict=True):
        np.testing.assert_array_equal(one, other)
    assert (model.member_predictions(rows) != before).any(axis=(1, 2)).all()


@by_task
def test_an_array_is_learned_as_a_table_of_its_numbers(task):
    rows, score = mixed_rows(1500)
    y, numbers = targets_of(task, score), rows.numbers
    as_table = table(numbers, np.arange(1, 13), np.zeros((1500, 0)))
    one, other = model_of(task, dense(numbers)), model_of(task, as_table)
    assert learn(one, dense(numbers), y).tobytes() == learn(other, as_table, y, (300,)).tobytes()
    assert one.predict(dense(numbers)).tobytes() == other.predict(as_table).tobytes()


@pytest.mark.parametrize("at", [100, 700, 2200])
def test_a_third_class_may_come_at_any_row(at):
    rows, score = mixed_rows(4500, p=13)
    rows, y = dense(rows.numbers), targets_of("classification", score, 3)
    y[:at][y[:at] == 2] = 1
    model = model_of("classification", rows)
    first = part(rows, 0, at)
    learn(model, first, y[:at])
    before = model.probabilities(model.predict(rows))
    model.add_class(2)
    after = model.probabilities(model.predict(rows))
    if at >= FIRST_ROWS:  # what still waits learns with other objectives
        awake = model.mixture.shares > 0.0
        assert awake.all()
        assert (after[:, :2].argmax(axis=1) != before.argmax(axis=1)).mean() < 0.02
    other = copy.deepcopy(model)
    rest = part(rows, at, 4500)
    shown = learn(model, rest, y[at:])
    assert shown.shape[1] == 3
    assert shown.tobytes() == learn(other, rest, y[at:], (1, 500, 1999)).tobytes()
    assert saved(model) == saved(other)
    assert bank_of(model).screening.gradients.shape[-1] == 3
    errors = model.errors(Labels.of(y[at:]), shown)[-1500:].mean()
    assert errors < 0.75 * (1.0 - np.bincount(y[-1500:]).max() / 1500)


def test_categories_that_come_late_are_learned():
    rng = np.random.default_rng(0)
    codes = np.concatenate([rng.integers(1, 5, 1500), rng.integers(3, 9, 1500)])
    rows = table_of(rng.normal(size=(3000, 2)), codes[:, None], [16])
    y = np.where(codes > 4, 5.0, 0.0) + np.sin(rows.numbers[:, 0])
    model = model_of("regression", rows, ("curves",))
    shown = learn(model, rows, y)[:, 0]
    assert np.abs(shown - y)[1500:1510].max() > 2.0
    assert np.abs(shown - y)[2500:].mean() < 0.5


@by_task
def test_blocks_may_lack_columns_of_codes_of_which_all_are_unknown(task):
    rows, score = mixed_rows(2600)
    y, weight = targets_of(task, score), np.ones(2600)
    known = np.arange(2600) % 1300 < 650  # in blocks where nothing is missing, and again
    rows = altered(rows, codes=np.where(known[:, None] & [[False, True]], 0, rows.codes))
    one, other = model_of(task, rows), model_of(task, rows)
    whole, pieces = learn(one, rows, y, (650, 1300, 1950)), []
    for start in range(0, 2600, 650):
        block = part(rows, start, start + 650)
        if start % 1300 == 0:
            block = altered(block, codes=block.codes[:, :1], code_columns=block.code_columns[:1])
        pieces.append(learn(other, block, y[start : start + 650], (), weight[start : start + 650]))
    assert whole.tobytes() == np.concatenate(pieces).tobytes()
    assert saved(one) == saved(other)


def hard(kind, rows, y):
    """Rows, targets and weights that are hard to bear."""
    rng, numbers, weight = np.random.default_rng(1), rows.numbers.copy(), np.ones(len(y))
    if kind == "heavy tails":
        numbers = rng.standard_cauchy(numbers.shape) ** 3
    elif kind == "of all sizes":
        numbers *= 10.0 ** rng.uniform(-300, 300, numbers.shape)
    elif kind == "ends":
        numbers = rng.choice([-1.7e308, 1.7e308, 5e-324, 0.0, 1.0], numbers.shape)
    elif kind == "large rows":
        numbers[[0, 255, 256, 1500]] *= 1e6
    elif kind == "large targets":
        y = y * 1e300 if y.dtype == float else y
    elif kind == "weights":
        weight = 10.0 ** rng.uniform(-300, 300, len(y))
    elif kind == "constant":
        numbers[:1000], y = 1.0, y.copy()
        y[:1000] = y[0]
    return altered(rows, numbers=numbers), y, weight


@by_task
@pytest.mark.parametrize(
    "kind", ["heavy tails", "of all sizes", "ends", "large rows", "large targets", "weights", "constant"]
)
def test_any_finite_rows_are_borne(task, kind):
    rows, score = mixed_rows(2200)
    rows, y, weight = hard(kind, rows, targets_of(task, score))
    model = model_of(task, rows)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        shown = learn(model, rows, y, (), weight)
        predictions = model.member_predictions(rows)
    assert np.isfinite(shown).all()
    assert np.isfinite(predictions).all()
    assert np.isfinite(model.predict(rows)).all()


def test_one_row_a_million_times_too_large_spoils_little():
    rows, score = mixed_rows(6000)
    y, numbers = targets_of("classification", score), rows.numbers.copy()
    numbers[200] *= 1e6
    errors = []
    for own in (rows, altered(rows, numbers=numbers)):
        model = model_of("classification", rows, ("curves", "pairs"))
        learn(model, part(own, 0, 4000), y[:4000])
        errors.append(model.errors(Labels.of(y[4000:]), model.predict(part(rows, 4000, 6000))).mean())
    assert errors[1] < 1.25 * errors[0]  # the outermost functions are of no use until there are more knots
    assert errors[0] < 0.15


@by_task
@pytest.mark.parametrize("events", ["REFINED", "PAIRED"])
def test_what_joins_changes_no_prediction(task, events, monkeypatch):
    """Knots, and pairs, after the last row: predictions of new rows are the same without them."""
    rows, score = mixed_rows(1200)
    models = []
    for joins in (False, True):
        last = (1200,) if joins else ()
        monkeypatch.setattr(additive_bank, "REFINED", (700, *last) if events == "REFINED" else (700,))
        monkeypatch.setattr(additive_bank, "PAIRED", (600, 5000) if events == "REFINED" else (*last, 5000))
        models.append(model_of(task, rows))
        learn(models[-1], rows, targets_of(task, score))
    without, with_them = (bank_of(model).features.n_features for model in models)
    assert with_them > without + 12
    before, after = (model.member_predictions(rows) for model in models)
    np.testing.assert_allclose(after, before, rtol=1e-9, atol=1e-9 * np.ptp(before))


def test_members_sleep_until_the_first_knots_are_fixed():
    rows, score = mixed_rows(400)
    rows, y = dense(rows.numbers), targets_of("classification", score)
    pool, others = (Model("classification", n_features=reach(rows), classes=[0, 1], **own) for own in
                    ({}, {"member_settings": OTHERS}))  # fmt: skip
    fewer = FEWEST_ROWS - 1
    shown = [learn(own, part(rows, 0, fewer), y[:fewer]) for own in (pool, others)]
    np.testing.assert_allclose(*shown, rtol=1e-9)
    for _ in range(2):
        np.testing.assert_allclose(pool.predict(rows), others.predict(rows), rtol=1e-9)
        assert np.isnan(pool.member_predictions(rows)[len(OTHERS) :]).all()
        pool.freeze()
    learn(pool, part(rows, fewer, 400), y[fewer:])
    assert np.isfinite(pool.member_predictions(rows)).all()


def test_a_shorter_stream_ends_with_their_first_predictions():
    rows, score = mixed_rows(FEWEST_ROWS)
    y = targets_of("classification", score)
    model = model_of("classification", rows)
    learn(model, rows, y)
    assert not bank_of(model).frozen
    before = model.predict(rows)
    assert not bank_of(model).frozen
    model.freeze()
    assert bank_of(model).frozen
    assert model.predict(rows).tobytes() == before.tobytes()
    assert np.isfinite(model.member_predictions(rows)).all()


@pytest.mark.parametrize(
    ("kind", "task"), [("sparse", "classification"), ("pixels", "classification"), ("pixels", "regression")]
)
def test_rows_that_are_not_for_them_are_learned_as_if_there_were_no_such_members(task, kind):
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(300, 20 if kind == "sparse" else MOST_COLUMNS + 1)) * (rng.random((300, 1)) < 0.8)
    y = targets_of(task, numbers[:, 0] * numbers[:, 1])
    rows = dense(numbers)
    if kind == "sparse":
        X = csr_matrix(numbers)
        rows = sparse(X.indptr, X.indices + 1, X.data)
    classes = [0, 1] if task == "classification" else []
    pool = Model(task, n_features=reach(rows), classes=classes)
    others = Model(task, n_features=reach(rows), classes=classes, member_settings=OTHERS)
    assert len(pool.members) == len(MEMBERS)
    assert learn(pool, rows, y).tobytes() == learn(others, rows, y, (7,)).tobytes()
    assert saved(pool) == saved(others)
    assert pool.member_settings == OTHERS


def test_as_many_columns_as_may_be_have_curves():
    numbers = np.random.default_rng(0).normal(size=(300, MOST_COLUMNS))
    model = model_of("classification", dense(numbers))
    learn(model, dense(numbers), (numbers[:, 0] > 0).astype(int))
    assert bank_of(model).features.n_curves == MOST_COLUMNS


@pytest.mark.parametrize("kind", ["texts", "two values"])
def test_rows_that_do_not_pay_are_dropped_at_the_next_review(kind):
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(300, 2)) if kind == "texts" else (rng.random((300, 3)) < 0.5).astype(float)
    words = words_of(rng, 300, 200, 400) if kind == "texts" else None
    rows = table_of(numbers, None, None, words)
    model = model_of("classification", rows, ("steady", "raw", "curves", "pairs"))
    shown = learn(model, rows, (numbers[:, 0] > numbers[:, 1]).astype(int))
    assert [member.setting.view for member in model.members] == ["steady", "raw"]
    assert model.history[-1]["rows"] == FIRST_ROWS
    assert len(model.history[-1]["shares"]) == 4
    assert np.isfinite(shown).all()


def test_members_that_are_alone_stay_whether_they_pay_or_not():
    numbers = (np.random.default_rng(0).random((1200, 3)) < 0.5).astype(float)
    y = (numbers[:, 0] != numbers[:, 1]).astype(int)
    model = model_of("classification", dense(numbers), ("curves", "pairs"))
    learn(model, dense(numbers), y)
    assert not bank_of(model).pays
    assert len(model.members) == 2
    assert model.errors(Labels.of(y), model.predict(dense(numbers))).mean() == 0.0


def test_the_pair_that_matters_is_found_among_many(monkeypatch):
    monkeypatch.setattr(additive_bank, "PAIRED", (512, 1024))
    rng = np.random.default_rng(0)
    X = rng.uniform(-2.0, 2.0, (1100, 12))
    y = np.sin(2.0 * X[:, 0]) + np.abs(X[:, 1]) + 2.0 * X[:, 2] * X[:, 5] + rng.normal(size=1100)
    model = model_of("regression", dense(X))
    learn(model, dense(X[:511]), y[:511])
    bank = bank_of(model)
    assert bank.screening is not None
    assert len(bank.features.pairs.first) == 0
    learn(model, dense(X[511:1023]), y[511:1023])
    assert (bank.features.pairs.first[0], bank.features.pairs.second[0]) == (2, 5)
    assert bank.screening is not None
    learn(model, dense(X[1023:]), y[1023:])
    assert bank.screening is None
    assert len(bank.features.pairs.first) < 10


def test_all_pairs_of_few_columns_are_learned():
    X = np.random.default_rng(0).normal(size=(300, 11))
    model = model_of("regression", dense(X))
    learn(model, dense(X), X[:, 0])
    assert bank_of(model).screening is None
    assert len(bank_of(model).features.pairs.first) == 55


def test_the_pool_learns_curves_and_surfaces():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2.0, 2.0, (20_000, 3))
    y = np.sin(3.0 * X[:, 0]) + X[:, 1] * X[:, 2] + rng.normal(size=20_000)
    errors = {}
    for name, own in (("pool", {}), ("others", {"member_settings": OTHERS})):
        model = Model("regression", n_features=4, **own)
        errors[name] = np.sqrt(np.mean((learn(model, dense(X), y)[:, 0] - y) ** 2))
    assert errors["pool"] < 1.15  # the noise's is 1
    assert errors["others"] > 1.6


def test_the_pool_learns_exclusive_or():
    X = np.random.default_rng(0).normal(size=(8000, 3))
    y = (X[:, 0] * X[:, 1] > 0.0).astype(int)
    model = Model("classification", n_features=4, classes=[0, 1])
    shown = learn(model, dense(X), y)
    assert model.errors(Labels.of(y), shown)[4000:].mean() < 0.02


def test_rows_of_another_width_are_refused():
    rows, score = mixed_rows(300)
    y = targets_of("classification", score)
    model = model_of("classification", rows, ("curves",))
    learn(model, rows, y)
    fewer = table_of(rows.numbers[:, :5])
    for act in (lambda: learn(model, fewer, y), lambda: model.predict(fewer)):
        with pytest.raises(ModelError, match="rows of 5 dense columns, where the model has learned 12"):
            act()
    with pytest.raises(ModelError, match="give them alike"):
        model.predict(sparse([0, 1], [1], [1.0]))


def test_rows_that_a_view_is_not_for_are_refused():
    X = np.random.default_rng(0).normal(size=(40, MOST_COLUMNS + 1))
    y = (X[:, 0] > 0.0).astype(int)
    for rows in (X, csr_matrix(X[:, :3])):
        with pytest.raises(ModelError, match="at most 128 columns of numbers, and not for sparse rows; choose another"):
            OnlineClassifier("scinol2", view="curves").fit(rows, y)


@pytest.mark.parametrize("view", ["curves", "pairs"])
@pytest.mark.parametrize("n", [60, 700])
def test_a_learner_alone_learns_few_rows_too(view, n):
    X = np.random.default_rng(0).normal(size=(n + 500, 2))
    inside = (np.hypot(X[:, 0], X[:, 1]) < 1.0).astype(int)
    model = OnlineClassifier("scinol2", view=view, epochs=20).fit(X[:n], inside[:n])
    assert model.score(X[n:], inside[n:]) > (0.75 if n == 60 else 0.93)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict_proba(X), model.predict_proba(X))
    stream = OnlineClassifier("scinol2", view=view)
    for start in range(0, n, 50):
        stream.partial_fit(X[start : start + 50], inside[start : start + 50], classes=[0, 1])
    assert len(set(stream.predict(X[n:]).tolist())) == 2
    regressor = OnlineRegressor("cocob", view=view, epochs=5).fit(X[:n], X[:n, 0] ** 2)
    assert regressor.score(X[n:], X[n:, 0] ** 2) > (0.2 if n == 60 else 0.8)


def written(tmp_path, n):
    """A file of two classes, inside and outside of a circle."""
    X = np.random.default_rng(0).normal(size=(n, 2))
    lines = [f"{a!r},{b!r},{'in' if np.hypot(a, b) < 1.2 else 'out'}" for a, b in X.tolist()]
    (tmp_path / "rings.csv").write_text("\n".join(["a,b,goal", *lines]))
    return tmp_path / "rings.csv"


@pytest.mark.parametrize("view", ["curves", "pairs"])
def test_the_command_line_trains_a_learner_on_a_view(view, tmp_path):
    data, model = str(written(tmp_path, 1500)), str(tmp_path / "model")
    run = CliRunner().invoke
    arguments = ["train", data, "-t", "goal", "-o", model, "--learner", "scinol2", "--view", view, "-q"]
    assert run(app, arguments).exit_code == 0
    assert "have no weights" in run(app, ["inspect", model]).output
    found = json.loads(run(app, ["evaluate", model, data, "--json"]).output)
    assert found["error"] < 0.05
    assert run(app, ["certify", model]).exit_code == 0


def test_the_command_line_refuses_a_view_that_sparse_rows_are_not_for(tmp_path):
    (tmp_path / "rows.svm").write_text("1 1:1 3:2\n-1 2:1\n" * 20)
    arguments = ["train", str(tmp_path / "rows.svm"), "-o", str(tmp_path / "m"), "--learner", "scinol2"]
    shown = CliRunner().invoke(app, [*arguments, "--view", "pairs"])
    assert shown.exit_code != 0
    assert isinstance(shown.exception, ModelError)  # which `main` prints
    assert "not for sparse rows" in str(shown.exception)


def test_interrupted_training_goes_on_to_the_same_bytes(tmp_path):
    plan = Plan(target="goal", learner="scinol2", view="pairs")
    check_that_training_goes_on_to_the_same_bytes(written(tmp_path, 20_000), plan, tmp_path)


def test_predictions_do_not_depend_on_the_rows_that_they_are_asked_with():
    rows, score = mixed_rows(1200)
    model = model_of("classification", rows)
    learn(model, rows, targets_of("classification", score))
    whole = model.predict(rows)
    pieces = [model.predict(part(rows, start, start + 175)) for start in range(0, n_rows(rows), 175)]
    assert whole.tobytes() == np.concatenate(pieces).tobytes()


def test_multiplying_a_column_by_a_power_of_two_changes_no_bit():
    rows, score = mixed_rows(2200)
    y = targets_of("classification", score)
    exponents = np.random.default_rng(0).integers(-300, 300, rows.numbers.shape[1])
    scaled = altered(rows, numbers=np.ldexp(rows.numbers, exponents))
    one, other = (model_of("classification", rows, ("curves", "pairs")) for _ in range(2))
    assert learn(one, rows, y).tobytes() == learn(other, scaled, y).tobytes()
    assert one.predict(rows).tobytes() == other.predict(scaled).tobytes()
