"""What is drawn of a model: the values of its terms, where the data are."""

from __future__ import annotations

import numpy as np
import pytest

from tests.explanation.models import rows_of, trained
from tunefree.core.errors import ModelError
from tunefree.explanation.panels import curve, map_of
from tunefree.explanation.picture import LEAST, picture
from tunefree.stream.source import open_source
from tunefree.workflows.explanation import decomposition_of
from tunefree.workflows.plan import Plan
from tunefree.workflows.training import train


@pytest.fixture(scope="module", params=["rich", "mood", "pay"])
def found(request):
    return decomposition_of(trained(request.param))


def test_a_curve_has_the_contributions_of_rows_with_these_numbers(found):
    term = found.terms.names.index("age")
    drawn, rows = curve(found, term), found.sample
    own = found.contributions(rows)[:, term]
    known = np.isfinite(drawn.axis.sample)
    inside = known & (drawn.axis.sample >= drawn.axis.values[0]) & (drawn.axis.sample <= drawn.axis.values[-1])
    assert 0.85 < inside.mean() < known.mean() < 0.95
    for k in range(own.shape[1]):
        interpolated = np.interp(drawn.axis.sample[inside], drawn.axis.values, drawn.heights[:, k])
        assert interpolated == pytest.approx(own[inside, k], abs=1e-6 * np.abs(own).max())
    assert own[~known] == pytest.approx(np.tile(drawn.missing, ((~known).sum(), 1)))
    assert set(drawn.knots) <= set(found.knots(term)) and len(drawn.knots) > 3


def test_bars_have_the_contributions_of_rows_with_these_codes(found):
    term = found.terms.names.index("job")
    drawn, own = curve(found, term), found.contributions(found.sample)[:, term]
    assert drawn.axis.labels == ["clerk", "cook", "pilot", "(missing)"] and drawn.missing is None
    for k, share in enumerate(drawn.axis.shares):
        rows = drawn.axis.sample == k
        assert rows.mean() == pytest.approx(share)
        assert own[rows] == pytest.approx(np.tile(drawn.heights[k], (rows.sum(), 1)))


def test_codes_that_are_numbers_are_in_their_order(found):
    drawn = curve(found, found.terms.names.index("day[month]"))
    assert drawn.axis.labels == [str(month) for month in range(1, 13)] and drawn.axis.in_order


def test_a_map_is_drawn_where_rows_are(found):
    name = next(name for name in found.terms.pair_names if set(name.split(" & ")) == {"age", "job"})
    term = found.terms.names.index(name)
    drawn, own = map_of(found, term), found.contributions(found.sample)[:, term]
    assert (drawn.first.name, drawn.second.name) == ("age", "job") and not drawn.second.is_numeric
    assert np.isfinite(drawn.heights).mean() > 0.8
    for code in range(len(drawn.second.labels)):
        heights, ages = drawn.heights[:, code], drawn.first.sample
        rows = (drawn.second.sample == code) & (ages >= drawn.first.values[0]) & (ages <= drawn.first.values[-1])
        for k in range(own.shape[1]):
            interpolated = np.interp(ages[rows], drawn.first.values, heights[:, k])
            near = np.isfinite(interpolated)
            assert near.mean() > 0.8
            assert interpolated[near] == pytest.approx(own[rows][near, k], abs=1e-6 * np.nanmax(np.abs(drawn.heights)))


def test_numbers_far_larger_than_most_have_a_logarithmic_scale(found):
    axes = {name: curve(found, found.terms.names.index(name)).axis for name in ("age", "income", "flag")}
    assert (axes["age"].linear_up_to, axes["flag"].linear_up_to) == (0.0, 0.0) and axes["income"].linear_up_to > 0.0
    assert axes["flag"].values.tolist() == [0.0, 1.0]
    assert axes["income"].values[-1] < max(axes["income"].sample)


def test_what_matters_most_is_drawn(found):
    drawn = picture(found, max_curves=2, max_pairs=1, name="it")
    drawn_terms = [own.axis.term for own in drawn.curves] + [own.term for own in drawn.maps]
    strongest = sorted(drawn.importance, key=drawn.importance.get)
    of_pairs = [own for term, own in drawn.importance.items() if term >= found.terms.first_pair]
    matters = max(of_pairs) >= LEAST * drawn.importance[strongest[-1]]
    assert len(drawn.curves) == 2 and len(drawn.maps) == matters
    parts = [term for term in strongest if term < found.terms.first_pair]
    assert set(drawn_terms[:2]) == set(parts[-2:])
    margins = "predictions" if found.model.task == "regression" else "log-odds"
    assert f"of the model's own {margins} over 1,500 rows" in drawn.note
    assert f"{len(drawn_terms)} of {len(drawn.importance)} terms drawn explain" in drawn.note
    assert f"of the {len(found.model.members)} members" in drawn.note


def test_what_is_drawn_can_be_named():
    found = decomposition_of(trained("rich"))
    pair = tuple(found.terms.pair_names[0].split(" & "))
    drawn = picture(found, ["job", 0, pair])
    assert [own.axis.name for own in drawn.curves] == ["job", "age"]
    assert {drawn.maps[0].first.name, drawn.maps[0].second.name} == set(pair)
    with pytest.raises(ModelError, match="no column 'jobs'; choose one of age, income"):
        picture(found, ["jobs"])
    with pytest.raises(ModelError, match="no pair of age and age"):
        picture(found, [("age", "age")])


def test_classes_can_be_chosen():
    two, three = (decomposition_of(trained(target)) for target in ("rich", "mood"))
    assert (picture(two).labels, picture(two, target="no").sign) == (["yes"], -1.0)
    assert picture(three).labels == ["bad", "fair", "good"]
    assert (picture(three, target="fair").outputs, picture(three, target="fair").labels) == ([1], ["fair"])
    with pytest.raises(ModelError, match="no class great; choose one of bad, fair, good"):
        picture(three, target="great")
    with pytest.raises(ModelError, match="predicts numbers"):
        picture(decomposition_of(trained("pay")), target="great")


def test_words_are_not_drawn_but_counted():
    rng = np.random.default_rng(0)
    words = [f"{'good' if rng.random() < 0.5 else 'bad'} thing {rng.integers(5)}" for _ in range(400)]
    table = {"x": rng.normal(size=400).tolist(), "told": words, "y": ["good" in own for own in words]}
    model = train(open_source(table), Plan(target="y", text=("told",)))
    found = decomposition_of(model, rows_of(model, table))
    assert [own.axis.name for own in picture(found, max_curves=9).curves] in (["x"], [])
    assert found.contributions(found.sample)[:, found.terms.names.index("told")].std() > 1.0
