"""Pictures: what is drawn is there, twice the same bytes, and without matplotlib the remedy is told."""

import html
import re
from functools import cache
from itertools import combinations

import pytest

from tests.explanation.models import trained
from tunefree import CurveDisplay
from tunefree.plotting import files
from tunefree.plotting.dependence import STRIP
from tunefree.plotting.style import SERIES
from tunefree.workflows import explanation


def words_of(figure):
    """The texts of a figure that is drawn, and where they are."""
    figure.draw_without_rendering()
    texts = [figure._suptitle, figure._supxlabel, *(text for legend in figure.legends for text in legend.get_texts())]
    for axes in figure.axes:
        texts += [axes.title, axes._left_title, axes._right_title, *axes.texts]
        for axis in (axes.xaxis, axes.yaxis):
            texts += [axis.label, *(label for tick in axis._update_ticks() for label in (tick.label1, tick.label2))]
    shown = [text for text in texts if text is not None and text.get_visible() and text.get_text().strip()]
    return [(text.get_text(), text.get_window_extent()) for text in shown]


@cache
def picture(target, **options):
    """The curves of a model."""
    model = trained(target)
    return explanation.picture_of(model, explanation.terms_of(model), **options)


@pytest.mark.parametrize("target", ["rich", pytest.param("pay", marks=pytest.mark.slow)])
def test_curves_are_drawn(tmp_path, target):
    pytest.importorskip("matplotlib")
    display = CurveDisplay(picture=picture(target))
    files.save(lambda figure: display.plot(figure=figure), display.inches, tmp_path / "plot.svg")
    text = html.unescape((tmp_path / "plot.svg").read_text())
    goal = {"rich": "log-odds of 'rich' = 'yes'", "pay": "pay"}
    for words in (f">Partial dependence of {goal[target]}<", ">age<", ">job<", ">missing<", "rise of the mean loss"):
        assert words in text, words
    assert (">day[month]<" in text) == (target == "pay")  # of classes too weak to be told from noise
    assert f">{'pay' if target == 'pay' else 'log-odds'}<" in text


def test_no_words_of_curves_cover_each_other_or_leave_the_figure():
    pytest.importorskip("matplotlib").use("agg")
    from matplotlib.figure import Figure

    columns = "age", "income", "flag", "job", "day[days]", "day[year]", "day[month]", "day[weekday]"
    display = CurveDisplay(picture=picture("mood", features=columns))
    figure = Figure(figsize=display.inches, layout="constrained", dpi=200)
    display.plot(figure=figure)
    words = words_of(figure)
    assert [text for text, place in words if place.x0 < 0 or place.x1 > figure.bbox.x1] == []
    pairs = combinations(words, 2)
    assert [(a, b) for (a, place), (b, other) in pairs if place.padded(-0.5).overlaps(other.padded(-0.5))] == []
    assert len(display.axes_) == len(display.picture.curves) > 5
    for axes, panel in zip(display.axes_, display.picture.curves, strict=True):
        heights = [bar.get_height() for bar in axes.patches]  # of the density of the rows
        assert max(heights) == STRIP if panel.axis.is_numeric else not heights


def test_a_figure_in_a_page_has_its_own_ids():
    def draw(figure):
        axes = figure.subplots()
        axes.fill_between([1, 2], 0, [1, 2], hatch="//", facecolor=SERIES[0]["color"])
        axes.plot([1, 2], [2, 1], "o", **SERIES[1])

    first, again, other = (files.svg(draw, (2.0, 1.0), "A & B", "<b>", name) for name in ("one", "one", "two"))
    assert first == again != other and first.replace("one-", "two-") == other
    ids, used = (set(re.findall(pattern, first)) for pattern in (r' id="([^"]+)"', r'(?:url\(#|href="#)([\w-]+)'))
    assert used and used | {"one-t", "one-d"} <= ids and all(name.startswith("one-") for name in ids)
    assert "A &amp; B" in first and "&lt;b&gt;" in first
