"""The terms of a model: they add up to its members' margins, and each depends on its own columns only."""

from __future__ import annotations

import numpy as np
import pytest

from tests.explanation.models import TARGETS, features, rows_of, share_weighted, trained
from tunefree.core.errors import ModelError
from tunefree.core.rows import dense, sparse
from tunefree.explanation.decomposition import Decomposition, contributions
from tunefree.model.members import Setting
from tunefree.model.mixture import predictive_shares
from tunefree.model.model import Model
from tunefree.model.targets import Labels
from tunefree.stream.layout import Layout
from tunefree.stream.source import open_source
from tunefree.workflows.explanation import decomposition_of
from tunefree.workflows.plan import Plan
from tunefree.workflows.training import Trained, train

COLUMNS = ["age", "income", "flag", "job", "day"]


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9 * np.abs(expected).max())


def unseen(target, n=300):
    """Rows that were not learned, with a category that is new."""
    columns = features(n, seed=1, target=target)
    columns["job"][:10] = ["juggler"] * 10
    columns["income"][10] = 1e9
    return columns


@pytest.mark.parametrize("target", TARGETS)
def test_terms_add_up_to_the_share_weighted_margins(target):
    model = trained(target)
    rows, found = rows_of(model, unseen(target)), decomposition_of(model)
    expected = share_weighted(model.model, rows)
    assert found.n_members > 2 and 0.9 < found.share <= 1.0
    close(found.contributions(rows).sum(axis=1), expected)
    names, by_column = contributions(model.model, model.encoder, rows)
    assert names[: 1 + len(COLUMNS)] == ["(constant)", *COLUMNS] and len(names) > 1 + len(COLUMNS)
    assert by_column.shape == (300, len(names), model.model.n_outputs)
    close(by_column.sum(axis=1), expected)


@pytest.mark.parametrize("target", TARGETS)
def test_a_term_depends_on_its_own_columns_only(target):
    model, columns = trained(target), features(300, seed=1, target=target)
    found = decomposition_of(model)
    before = found.by_column(found.contributions(rows_of(model, columns)))
    rng = np.random.default_rng(0)
    for changed in ("age", "job", "day"):
        order = rng.permutation(300)
        other = columns | {changed: [columns[changed][i] for i in order]}
        after = found.by_column(found.contributions(rows_of(model, other)))
        differs = np.abs(after - before).max(axis=(0, 2)) > 1e-9 * np.abs(before).max()
        of_it = [changed in [part.partition("[")[0] for part in name.split(" & ")] for name in found.column_names]
        assert differs[found.column_names.index(changed)]
        assert not differs[~np.array(of_it)].any()


@pytest.mark.parametrize("target", TARGETS)
def test_terms_have_mean_0_over_the_sample(target):
    found = decomposition_of(trained(target))
    terms = found.contributions(found.sample)
    assert np.abs(terms[:, 1:].mean(axis=0)).max() < 1e-9 * np.abs(terms).max()


def test_pairs_tell_nothing_of_their_columns_alone():
    model = trained("rich")
    found = decomposition_of(model)
    rows, terms = found.sample, found.contributions(found.sample)
    looked_at = 0
    for pair, name in enumerate(found.terms.pair_names):
        for part in {"job", "day[month]", "day[year]"} & set(name.split(" & ")):
            q = [
                c for c in range(rows.codes.shape[1]) if found.terms.layout.code_source(rows.code_columns[c])[0] == part
            ]
            own = terms[:, found.terms.first_pair + pair, 0]
            for code in np.unique(rows.codes[:, q[0]]):
                assert abs(own[rows.codes[:, q[0]] == code].mean()) < 1e-9
                looked_at += 1
    assert looked_at > 10


def test_a_pair_of_columns_is_found_without_their_main_effects():
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 2, (2, 4000))
    y = np.where(rng.random(4000) < 1 / (1 + np.exp(-(3.0 * (a - 0.5) + 4.0 * (a == b) - 2.0))), "yes", "no")
    table = {"a": np.array(["low", "high"])[a], "b": np.array(["low", "high"])[b], "y": y}
    found = decomposition_of(train(open_source(table), Plan(target="y")))
    terms = found.contributions(found.sample)[:, :, 0]
    deviations = dict(zip(found.terms.names, terms.std(axis=0).tolist(), strict=True))
    assert deviations["a"] == pytest.approx(1.5, abs=0.25) and deviations["a & b"] == pytest.approx(2.0, abs=0.3)
    assert deviations["b"] < 0.2


def test_an_unknown_code_contributes_nothing_but_the_mean():
    model, columns = trained("rich"), features(2, seed=1)
    columns["job"] = ["juggler", "cook"]
    found = decomposition_of(model)
    term = found.terms.names.index("job")
    unknown, known = found.contributions(rows_of(model, columns))[:, term]
    assert known != unknown
    assert unknown == pytest.approx(-found._means[term], abs=1e-6)


def test_a_saved_model_has_the_same_terms(tmp_path):
    model = trained("mood")
    model.save(tmp_path / "m")
    rows = rows_of(model, unseen("mood"))
    found, again = decomposition_of(model), decomposition_of(Trained.load(tmp_path / "m"))
    assert found.terms.names == again.terms.names
    assert (found.contributions(rows) == again.contributions(rows)).all()


@pytest.mark.parametrize("target", ["rich", "pay"])
@pytest.mark.parametrize("view", ["raw", "centred", "steady", "level"])
def test_a_single_learner_has_terms_too(target, view):
    model = trained(target, learner="scinol2", view=view)
    rows = rows_of(model, unseen(target))
    found = decomposition_of(model)
    assert found.sample is None and found.share == 1.0
    close(found.contributions(rows).sum(axis=1), model.model.predict(rows))
    assert found.column_names == ["(constant)", *COLUMNS]


def test_hashed_features_are_one_term():
    model = trained("rich", hash_bits=8)
    rows, found = rows_of(model, unseen("rich")), decomposition_of(model)
    assert found.column_names[:7] == ["(constant)", *COLUMNS, "(hashed)"]
    close(found.contributions(rows).sum(axis=1), share_weighted(model.model, rows))


def test_sparse_rows_have_a_term_for_each_feature():
    rng = np.random.default_rng(0)
    features, values = np.sort(rng.choice(9, (200, 3)) + 1, axis=1), rng.normal(size=(200, 3))
    features[:, 1:] += np.arange(1, 3) * 9
    X = sparse(np.arange(0, 601, 3), features.ravel(), values.ravel())
    model = Model("classification", n_features=28)
    model.learn(X, Labels.of(np.where(values[:, 0] > 0, "yes", "no")), np.ones(200))
    found = Decomposition(model, Layout.of_array([str(j) for j in range(1, 28)]))
    close(found.contributions(X).sum(axis=1), share_weighted(model, X))


def test_kernel_members_are_left_out():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = Labels.of(np.where(X[:, 0] + X[:, 1] ** 2 > 0.5, "yes", "no"))
    settings = [Setting("scinol2", {}, "raw"), Setting("kernel-pistol", {"width": 1.0}, "steady")]
    model = Model("classification", member_settings=settings, n_features=4)
    model.learn(dense(X), y, np.ones(300))
    model.freeze()
    found = Decomposition(model, Layout.of_array(["a", "b", "c"]), dense(X))
    assert found.n_members == 1
    assert found.share == predictive_shares(model.mixture)[0] < 1.0
    close(found.contributions(dense(X)).sum(axis=1), model.member_predictions(dense(X))[0])
    alone = Model("classification", member_settings=settings[1:], n_features=4)
    alone.learn(dense(X), y, np.ones(300))
    with pytest.raises(ModelError, match="train without kernels"):
        Decomposition(alone, Layout.of_array(["a", "b", "c"]))
