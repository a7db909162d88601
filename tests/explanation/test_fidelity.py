"""How much of the variance of a model's own margins its terms explain."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.explanation.models import features, rows_of, trained
from tunefree.core.errors import ModelError
from tunefree.explanation.fidelity import Fidelity, measured, ranking
from tunefree.workflows.explanation import decomposition_of


def test_it_is_the_part_of_the_variance_of_the_margins():
    rng = np.random.default_rng(0)
    margins = rng.normal([5.0, 0.0, -1.0], size=(100, 3))
    fitted = 2.0 * margins + rng.normal(size=(100, 3)) - 3.0
    whole, parts = measured(margins, fitted), Fidelity()
    for rows in np.split(np.arange(100), [7, 50]):
        parts.add(margins[rows], fitted[rows])
    expected = 1.0 - (margins - fitted).var(axis=0).sum() / margins.var(axis=0).sum()
    m, f = (values - values.mean(axis=0) for values in (margins, fitted))
    scale = (m * f).sum() / (f**2).sum()
    for found in (whole, parts):
        assert found.explained == pytest.approx(expected)
        assert found.scale == pytest.approx(scale)
        assert found.explained_if_scaled == pytest.approx(1.0 - ((m - scale * f) ** 2).sum() / (m**2).sum())
        assert found.agreement == np.mean(margins.argmax(axis=1) == fitted.argmax(axis=1))


def test_margins_that_do_not_vary_have_no_variance_to_explain():
    assert math.isnan(measured(np.full((9, 1), 0.1), np.zeros((9, 1))).explained)
    assert measured(np.array([[1.0], [2.0]]), np.array([[4.0], [5.0]])).explained == 1.0


@pytest.mark.parametrize("target", ["rich", "mood", "pay"])
def test_terms_are_ranked_by_how_much_they_vary(target):
    found = decomposition_of(trained(target))
    terms, margins = found.contributions(found.sample), found.margins(found.sample)
    ranked = ranking(found)
    assert ranked.importance == pytest.approx(np.sqrt((terms[:, ranked.terms] ** 2).mean(axis=(0, 2))))
    assert (np.diff(ranked.importance) <= 0.0).all()
    assert ranked.names == [found.terms.names[term] for term in ranked.terms]
    first = terms[:, [0, *ranked.terms[:3]]].sum(axis=1)
    assert ranked.explained[2] == pytest.approx(1.0 - (margins - first).var(axis=0).sum() / margins.var(axis=0).sum())
    assert ranked.explained[-1] == pytest.approx(ranked.fidelity.explained)
    assert ranked.fidelity.explained > 0.5 and ranked.fidelity.agreement > 0.9
    assert ranked.fidelity.rows == len(found.sample.numbers)


def test_a_single_learner_is_explained_wholly_over_given_rows():
    model = trained("rich", learner="scinol2")
    with pytest.raises(ModelError, match="no sample of rows"):
        ranking(decomposition_of(model))
    ranked = ranking(decomposition_of(model, rows_of(model, features(300, seed=1))))
    assert ranked.fidelity.explained == pytest.approx(1.0) and ranked.fidelity.agreement == 1.0
