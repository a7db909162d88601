"""On tables of known truth, noise looks like noise, and what matters is seen."""

import calendar

import numpy as np
import pandas as pd
import pytest

from tunefree import Plan, open_source, train
from tunefree.explanation.importance import importance, interactions
from tunefree.workflows.explanation import picture_of, terms_of

KINDS = ("linear", "none", "one column", "interactions", "rare class", "few rows")
ROWS = {"few rows": 300, "rare class": 4000}
MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun"]


def table(kind, seed):
    """Thirteen columns and a target; the columns that matter, and the pairs that interact."""
    rng, n = np.random.default_rng(seed), ROWS.get(kind, 2000)
    columns = {f"x{j}": rng.normal(size=n) for j in range(10)}
    columns |= {"a": rng.choice(list("abcd"), n), "b": rng.choice([f"v{i}" for i in range(30)], n)}
    columns["month"] = rng.choice(MONTHS, n)
    x, is_a = [columns[f"x{j}"] for j in range(10)], columns["a"] == "a"
    products = 1.5 * np.sign(x[0] * x[1]) + 1.5 * x[2] * is_a
    mean, matter, pairs = {
        "linear": (x[0] + 0.7 * x[1] - 0.5 * x[2] + 0.8 * is_a, {"x0", "x1", "x2", "a"}, []),
        "none": (np.zeros(n), set(), []),
        "one column": (1.5 * np.abs(x[3]), {"x3"}, []),
        "interactions": (products, {"x0", "x1", "x2", "a"}, [{"x0", "x1"}, {"x2", "a"}]),
        "rare class": (0.5 * (1.5 * x[0] + x[1] - 5.0), {"x0", "x1"}, []),
        "few rows": (1.5 * x[0] + x[1], {"x0", "x1"}, []),
    }[kind]
    margin = 2.0 * (mean if kind == "rare class" else mean - mean.mean())
    label = np.where(rng.random(n) < 1.0 / (1.0 + np.exp(-margin)), "yes", "no")
    is_classes = kind == "rare class" or seed % 2
    columns["target"] = label if is_classes else mean + rng.normal(size=n)
    return pd.DataFrame(columns), matter, pairs


def told(kind, seed):
    """Columns said to matter that do not, columns missed, and the pairs said to interact with those that do."""
    rows, matter, pairs = table(kind, seed)
    decomposition = terms_of(train(open_source(rows), Plan(target="target")).trained_)
    ranked = importance(decomposition)
    beyond = set(ranked.names[: ranked.n_beyond])
    paired = interactions(decomposition, ranked)
    found = [] if paired is None else [set(name.split(" x ")) for name in paired.names[: paired.n_beyond]]
    return beyond - matter, matter - beyond, found, pairs


@pytest.mark.parametrize(("kind", "seed"), [("none", 1), ("few rows", 0), ("interactions", 1)])
def test_noise_is_below_its_line_and_the_rest_above(kind, seed):
    wrong, missed, found, pairs = told(kind, seed)
    assert not wrong and not missed
    assert all(pair in found[:2] for pair in pairs) and (pairs or not found)


def test_only_terms_beyond_noise_are_drawn_and_weekdays_in_their_order():
    rng = np.random.default_rng(0)
    n = 1200
    when = np.datetime64("2024-01-01") + rng.integers(0, 700, n).astype("timedelta64[D]")
    weekday = (when.astype("datetime64[D]").astype(int) + 3) % 7
    table = {"shop": rng.choice(list("CAB"), n), "when": when, "noise": rng.normal(size=n)}
    table["sales"] = 6.0 * (weekday == 5) + 4.0 * (table["shop"] == "A") + rng.normal(size=n)
    trained_ = train(open_source(pd.DataFrame(table)), Plan(target="sales")).trained_
    curves = {curve.axis.name: curve for curve in picture_of(trained_, terms_of(trained_)).curves}
    assert set(curves) == {"shop", "when[weekday]"} and not curves["shop"].axis.is_ordered
    days = curves["when[weekday]"]
    assert days.axis.labels == list(calendar.day_abbr) and days.axis.is_ordered
    assert days.axis.labels[int(days.mean[:, 0].argmax())] == "Sat"


def test_curves_of_numbers_are_without_the_effect_of_gaps():
    rng = np.random.default_rng(0)
    size, is_missing = rng.uniform(size=1000), rng.random(1000) < 0.4
    rows = {"size": np.where(is_missing, np.nan, size).tolist(), "noise": rng.normal(size=1000).tolist()}
    rows["sales"] = (np.where(is_missing, 6.0, size) + 0.1 * rng.normal(size=1000)).tolist()
    trained_ = train(open_source(rows), Plan(target="sales")).trained_
    [curve] = picture_of(trained_, terms_of(trained_)).curves
    heights = curve.mean[:, 0]
    assert curve.missing is not None and curve.missing[0] - heights.max() > 4.5
    assert 0.5 < heights[-1] - heights[0] < 1.5


@pytest.mark.parametrize("n_columns", [1, 2])
def test_columns_of_few_categories_matter(n_columns):
    """Copies of learned rows judge where most rows are copies; else no tree has seen the categories of a third."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2, (n_columns, 2000))
    rows = {f"c{j}": [f"v{code}" for code in column] for j, column in enumerate(codes.tolist())}
    rows["y"] = (2.0 * codes.sum(axis=0) + 0.3 * rng.normal(size=2000)).tolist()
    ranked = importance(terms_of(train(open_source(rows), Plan(target="y")).trained_))
    assert sorted(ranked.names) == [f"c{j}" for j in range(n_columns)] and ranked.n_beyond == n_columns
    assert ranked.sizes == pytest.approx([2.0] * n_columns, rel=0.4)


@pytest.mark.slow
def test_thirty_tables():
    """In 95 % of the tables no column of noise is above the line; all that matters is, and pairs that interact are."""
    all_told = [told(kind, seed) for kind in KINDS for seed in range(100, 105)]
    assert sum(bool(wrong) for wrong, *_ in all_told) <= 1
    assert sum(len(missed) for _, missed, *_ in all_told) <= 1
    assert all(pair in found[:2] for *_, found, pairs in all_told for pair in pairs)
    assert sum(bool(found) for *_, found, pairs in all_told if not pairs) <= 1
