"""The picture of generations: from any fitted or saved model, with labelled axes, and truthful areas."""

from __future__ import annotations

import numpy as np
import pytest

from tunefree import GenerationsDisplay, TuneFreeClassifier, TuneFreeRegressor
from tunefree.plotting.generations import groups_of

pytest.importorskip("matplotlib").use("agg")
Figure = pytest.importorskip("matplotlib.figure").Figure


def rows(n=2000):
    random = np.random.default_rng(0)
    X = random.normal(size=(n, 3))
    return X, X[:, 0] * X[:, 1] + 0.1 * random.normal(size=n)


@pytest.fixture(scope="module")
def classifier():
    X, y = rows()
    return TuneFreeClassifier().fit(X, y > 0)


def test_axes_are_labelled(classifier):
    display = GenerationsDisplay.from_estimator(classifier)
    above, below = display.axes_
    assert above.get_ylabel() == "weight in the base mixture"
    assert (below.get_xlabel(), below.get_ylabel()) == ("rows learned", "log-loss (nats per row)")
    X, y = rows(300)
    regressor = TuneFreeRegressor().fit(X, y)
    figure = Figure()
    display = GenerationsDisplay.from_estimator(regressor, figure=figure)
    assert display.figure_ is figure
    assert display.axes_[1].get_ylabel() == "square loss per row"


def test_areas_hold_all_members_once_and_fill_the_axes(classifier):
    display = GenerationsDisplay.from_estimator(classifier)
    groups = groups_of(display.model.pool)
    places = [place for group in groups for place in group.places]
    assert sorted(places) == list(range(len(display.model.pool.members.names)))
    areas = display.axes_[0].collections
    names = [text.get_text() for text in display.axes_[0].get_legend().get_texts()]
    assert [area.get_label() for area in areas][::-1] == names == [group.name for group in groups][::-1]
    top = areas[-1].get_paths()[0].vertices
    assert np.isclose(top[:, 1].max(), 1.0)
    (triangles,) = display.axes_[0].lines
    assert triangles.get_xdata().tolist()[:5] == [16, 23, 32, 45, 64]
    assert triangles.get_xdata()[-1] == 1448


def test_lines_are_the_losses_recorded(classifier):
    display = GenerationsDisplay.from_estimator(classifier)
    mixture, *others = display.axes_[1].lines
    record = display.model.pool.context.record
    assert mixture.get_ydata()[-1] == pytest.approx(record.means()[-1, -1])
    assert [line.get_label().split(":")[0] for line in others] == ["online linear", "all rows"]
    linear, trees = (np.nanmean(line.get_ydata()) for line in others)
    assert trees < linear  # the truth is a product
