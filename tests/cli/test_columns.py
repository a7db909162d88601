"""`tunefree columns`, and what `tunefree train` says of columns before it learns, as a user types it."""

import json

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

import tunefree

QUICK = ("--learner", "scinol2")


def policies(n=400, seed=1):
    """A portfolio with what should be told: two keys, a row number, a time, leaks, a constant, a copy."""
    rng = np.random.default_rng(seed)
    claims, age = rng.poisson(0.3, n), rng.integers(18, 90, n)
    area = rng.choice(["north", "south", "west"], n)
    return {
        "policy": [f"P{i:05d}" for i in rng.permutation(n)],
        "row": np.arange(1, n + 1),
        "number": rng.permutation(np.arange(5000, 5000 + n)),
        "day": [str(np.datetime64("2024-01-01") + i // 5) for i in range(n)],
        "age": age,
        "area": area,
        "region": [name[0] for name in area],
        "country": ["CH"] * n,
        "discount": [None if i % 4 else 0.5 * (i % 3) for i in range(n)],
        "paid": np.where(claims > 0, rng.integers(200, 9000, n), 0),
        "claim": np.where(claims > 0, "yes", "no"),
    }


@pytest.fixture
def written(tmp_path):
    path = tmp_path / "policies.csv"
    csv.write_csv(pa.table(policies()), path)
    return path


def roles(facts):
    return {column["name"]: [one["kind"] for one in column["findings"]] for column in facts["columns"]}


def test_columns_are_shown_with_what_they_may_be(run, done, written):
    out, _ = done("columns", written, "-t", "claim")
    words = " ".join(out.split())
    assert "sample all 400 rows task classification why the target holds texts" in words
    for words in ("18 to 89: ", "2024-03-20", "75.0 %", "--numeric, --categorical, --date"):
        assert words in out
    facts = json.loads(run("columns", written, "-t", "claim", "--json")[1])
    assert {name: told for name, told in roles(facts).items() if told} == {
        "policy": ["identifier"],
        "row": ["row number"],
        "number": ["identifier"],
        "day": ["time"],
        "paid": ["leak"],
        "country": ["constant"],
        "region": ["copy"],
    }
    age, discount = (next(own for own in facts["columns"] if own["name"] == name) for name in ("age", "discount"))
    assert (age["kind"], age["why"], age["missing"]) == ("number", "numbers", 0.0)
    assert age["options"] == ["categorical", "ignore"]
    assert (discount["missing"], discount["different"], discount["range"]) == (0.75, 3, [0.0, 1.0])
    assert any("alone predicts" in note and "pass --ignore paid" in note for note in facts["notes"])


def test_options_change_what_is_seen_as_they_change_the_training(run, done, written, tmp_path):
    said = ("--categorical", "number", "--ignore", "policy", "--ignore", "paid", "--date", "day=%Y-%m-%d")
    facts = json.loads(run("columns", written, "-t", "claim", *said, "--json")[1])
    seen = {own["name"]: (own["kind"], own["why"]) for own in facts["columns"]}
    assert seen["number"] == ("category", "named by categorical") and seen["policy"] == ("left out", "named by ignore")
    assert seen["day"] == ("moment", "named by date, %Y-%m-%d") and seen["claim"] == ("target", "texts")
    done("train", written, "-t", "claim", *said, *QUICK, "-o", tmp_path / "m", "-q")
    learned = json.loads(run("inspect", tmp_path / "m", "--json")[1])["columns"]
    assert {own["name"]: (own["kind"], own["why"]) for own in learned} == {
        name: own for name, own in seen.items() if own[0] not in ("left out", "target")
    }


def test_a_long_file_is_seen_from_its_start_to_its_end(tmp_path):
    n = 60000
    table = {"x": np.arange(n) // 30000 * 1000.0 + np.arange(n) % 13, "y": np.where(np.arange(n) < n // 2, "a", "b")}
    csv.write_csv(pa.table(table), tmp_path / "long.csv")
    parquet.write_table(pa.table(table), tmp_path / "long.parquet")
    for data in (tmp_path / "long.csv", tmp_path / "long.parquet", table):
        view = tunefree.columns(data, target="y")
        assert "rows from 8 places" in view.where and view.rows <= 16384
        x, y = view.columns
        assert (x.range, y.different) == ((0.0, 1012.0), 2)
        assert [one.kind for one in view.findings if one.column == "x"] == ["leak"]


def test_rows_that_cannot_be_used_are_told_and_stop_nothing(done, tmp_path):
    lines = [f"{i % 50},{'yes' if i % 3 else 'no'}" for i in range(300)]
    lines[100], lines[200] = "1,2,3", "7,"
    (tmp_path / "bad.csv").write_text("\n".join(["age,rich", *lines]) + "\n")
    out, _ = done("columns", tmp_path / "bad.csv", "-t", "rich")
    assert "1 of the rows read cannot be used; pass --on-bad-row skip" in out
    assert "1 of the rows read have no target; pass --unlabelled skip" in out


@pytest.mark.parametrize(
    "table",
    [
        {"x": [1.0], "y": ["a"]},
        {"x": [None, None], "y": ["a", "b"]},
        {"x": [1.0, 2.0] * 60, "y": ["a"] * 120},
        {"x": [[1.0, 2.0], [3.0]] * 60, "words": [["a"], []] * 60, "y": [True, False] * 60},
        {"x": [float("nan")] * 120, "y": [1.5, 2.5] * 60},
        {"x": [1.0, None] * 60, "y": [5] * 120},
    ],
    ids=["one row", "no value", "one class", "lists", "nothing but NaN", "one number"],
)
def test_odd_tables_are_seen(table):
    view = tunefree.columns(table, target="y")
    assert [column.name for column in view.columns] == list(table) and view.rows == len(table["y"])
    assert json.loads(json.dumps(view.facts(), default=str))["rows"] == view.rows and str(view)


@pytest.mark.parametrize("seed", range(4))
def test_ordinary_columns_are_no_news(seed):
    rng = np.random.default_rng(seed)
    n = 1000
    carat = rng.gamma(2.0, 0.4, n)
    table = {
        "carat": carat,
        "age": rng.integers(0, 100, n),
        "cents": rng.integers(0, 10**6, n),
        "job": rng.choice([f"job {k}" for k in range(60)], n),
        "zip": rng.integers(1000, 9999, n),
        "price": np.round(4000 * carat**1.5 * np.exp(0.2 * rng.normal(size=n))),
    }
    for target in ("price", "job"):
        assert tunefree.columns(table, target=target).findings == []


def test_other_ways_to_learn_tell_the_same(run, written, tmp_path):
    """A comparison, shards, standard input, also in a random order, and a training that goes on."""
    told = "note: column 'paid': alone predicts"
    assert told in run("learners", written, "-t", "claim", *QUICK, "-q")[1]
    for how in ((), ("--shuffle",)):
        text = written.read_bytes()
        status, out, err = run("train", "-", "-t", "claim", *QUICK, *how, "-o", tmp_path / "m", stdin=text)
        assert status == 0 and told in out, err
    status, out, err = run("train", written, "--from", tmp_path / "m", "-o", tmp_path / "m")
    assert status == 0 and out.count(told) == 1, err
