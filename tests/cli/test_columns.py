"""`tunefree columns`, and columns that files hold beside the data, or lack."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import csv, feather, parquet

import tunefree
from tests.interruptions import assert_resumed
from tests.workflows import test_training
from tests.workflows.test_training import written
from tunefree.stream.source import open_source

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
def portfolio(tmp_path):
    path = tmp_path / "policies.csv"
    csv.write_csv(pa.table(policies()), path)
    return path


def roles(facts):
    return {column["name"]: [one["kind"] for one in column["findings"]] for column in facts["columns"]}


def test_columns_are_shown_with_their_possible_types(run, done, portfolio):
    out, _ = done("columns", portfolio, "-t", "claim")
    words = " ".join(out.split())
    assert "sample all 400 rows task classification why the target holds texts" in words
    for words in ("18 to 89: ", "2024-03-20", "75.0 %", "--numeric, --categorical, --date"):
        assert words in out
    facts = json.loads(run("columns", portfolio, "-t", "claim", "--json")[1])
    assert {name: told for name, told in roles(facts).items() if told} == {
        "policy": ["identifier"],
        "row": ["row number"],
        "number": ["identifier"],
        "day": ["time"],
        "paid": ["leak"],
        "country": ["constant"],
        "region": ["copy"],
    }
    age, discount = (
        next(column for column in facts["columns"] if column["name"] == name) for name in ("age", "discount")
    )
    assert (age["kind"], age["why"], age["missing"]) == ("number", "numbers", 0.0)
    assert (discount["missing"], discount["different"], discount["range"]) == (0.75, 3, [0.0, 1.0])
    assert any("alone predicts" in note and "pass --ignore paid" in note for note in facts["notes"])


def test_options_change_columns_as_they_change_the_training(run, done, portfolio, tmp_path):
    said = ("--categorical", "number", "--ignore", "policy", "--ignore", "paid", "--date", "day=%Y-%m-%d")
    facts = json.loads(run("columns", portfolio, "-t", "claim", *said, "--json")[1])
    seen = {column["name"]: (column["kind"], column["why"]) for column in facts["columns"]}
    assert seen["number"] == ("category", "named by categorical") and seen["policy"] == ("left out", "named by ignore")
    assert seen["day"] == ("moment", "named by date, %Y-%m-%d") and seen["claim"] == ("target", "texts")
    done("train", portfolio, "-t", "claim", *said, *QUICK, "-o", tmp_path / "m", "-q")
    learned = json.loads(run("inspect", tmp_path / "m", "--json")[1])["columns"]
    features = {name: kind for name, kind in seen.items() if kind[0] not in ("left out", "target")}
    assert {column["name"]: (column["kind"], column["why"]) for column in learned} == features


def test_a_long_file_is_seen_from_its_start_to_its_end(tmp_path):
    n = 80000
    table = {"x": np.arange(n) // 40000 * 1000.0 + np.arange(n) % 13, "y": np.where(np.arange(n) < n // 2, "a", "b")}
    csv.write_csv(pa.table(table), tmp_path / "long.csv")
    parquet.write_table(pa.table(table), tmp_path / "long.parquet")
    for data in (tmp_path / "long.csv", tmp_path / "long.parquet", table):
        view = tunefree.columns(data, target="y")
        assert "rows from 8 places" in view.where and view.rows <= 16384
        x, y = view.columns
        assert (x.range, y.different) == ((0.0, 1012.0), 2)
        assert [one.kind for one in view.findings if one.column == "x"] == ["leak"]
    table["y"] = np.append(np.arange(n // 2) % 3, np.arange(n // 2) % 7 / 4.0)
    (doubt,) = (finding for finding in tunefree.columns(table, target="y").findings if finding.column == "y")
    assert doubt.evidence.startswith("the first rows look like classification, and others like regression: numbers")
    assert doubt.remedy == "pass `task='regression'` or `task='classification'`"


def test_times_and_lists_are_shown_without_a_target_and_from_a_pipe(run):
    rows = {"at": [f"{hour:02}:30" for hour in range(24)] * 5, "words": [["a", "b"]] * 120}
    assert tunefree.columns(rows | {"empty": [None] * 120}).columns[-1].why == "no values"
    view = tunefree.columns(rows)
    assert (view.task, [column.kind for column in view.columns]) == ("", ["time", "bag"])
    assert view.columns[0].range == ("00:30:00", "23:30:00") and "no target is named" in str(view)
    lines = "at,x\n" + "".join(f"{at},{k}\n" for k, at in enumerate(rows["at"]))
    status, out, _ = run("columns", "-", "--json", stdin=lines.encode())
    assert (status, json.loads(out)["sample"]) == (0, "the first rows of a source that can be read only once")


def test_rows_that_cannot_be_used_are_told_and_stop_nothing(done, tmp_path):
    lines = [f"{i % 50},{'yes' if i % 3 else 'no'}" for i in range(300)]
    lines[100], lines[200] = "1,2,3", "7,"
    (tmp_path / "bad.csv").write_text("\n".join(["age,rich", *lines]) + "\n")
    out, _ = done("columns", tmp_path / "bad.csv", "-t", "rich")
    assert "cannot be used: " in out and "row 101); pass --on-bad-row skip" in " ".join(out.split())
    assert "1 of the rows read have no target; pass --unlabelled skip in training" in out


def test_a_file_in_another_encoding(run, tmp_path):
    (tmp_path / "a.csv").write_text("city,y\n" + "K\u00f6ln,1\nM\u00fcnchen,0\n" * 50, encoding="cp1252")
    status, out, err = run("columns", tmp_path / "a.csv", "-t", "y")
    assert (status, out) == (2, "") and "is not text in UTF" in err and "--encoding" in err


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
    assert str(view)


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


ROWS = 400


def people():
    return pd.DataFrame(test_training.people(ROWS)).drop(columns="pay")


@pytest.fixture
def train(done):
    return lambda data, model, *more: done("train", data, "-t", "rich", "-o", model, "--learner", "scinol2", *more)[0]


@pytest.fixture
def predictions(done):
    return lambda *words: done("predict", *words)


def kinds_of(model):
    return {column.name: column.kind for column in tunefree.load(model).trained_.encoder.columns}


# -- the index of a pandas frame


@pytest.mark.parametrize("kind", [".parquet", ".feather"])
def test_the_index_of_a_pandas_frame_is_left_out_and_told(run, train, predictions, tmp_path, kind):
    frame = people().set_index(np.arange(ROWS) ** 2)
    data, model, column = tmp_path / f"p{kind}", tmp_path / "m.model", "__index_level_0__"
    table = pa.Table.from_pandas(frame)
    parquet.write_table(table, data) if kind == ".parquet" else feather.write_feather(table, data)
    note = f"note: column '{column}': the index of a pandas frame, left out ({ROWS} rows, the first: {data}, row 1); "
    assert f"{note}--numeric {column} keeps it" in " ".join(train(data, model).split())
    assert list(kinds_of(model)) == ["age", "job"]
    plain = tmp_path / "plain.parquet"
    parquet.write_table(pa.table(dict(people())), plain)
    out, err = predictions(model, data)
    assert out == predictions(model, plain)[0] and "--numeric" not in err
    assert "note" not in train(plain, tmp_path / "plain.model")
    train(data, tmp_path / "kept.model", "--numeric", column)
    assert list(kinds_of(tmp_path / "kept.model")) == ["age", "job", column]
    assert len(predictions(tmp_path / "kept.model", data)[0].splitlines()) == ROWS + 1
    assert run("predict", tmp_path / "kept.model", plain)[0] == 2
    assert len(predictions(model, data, "--id", column)[0].splitlines()) == ROWS + 1


# -- names of folders


def partitioned(folder, kind="parquet", more=lambda frame: frame):
    """A file for each job and year, as Hive writes them."""
    frame = people().assign(year=np.arange(ROWS) % 3 + 2022)
    for (job, year), part in frame.groupby(["job", "year"]):
        path = folder / f"job={job}" / f"year={year}" / f"part-0.{kind}"
        path.parent.mkdir(parents=True, exist_ok=True)
        written(pa.Table.from_pandas(more(part.drop(columns=["job", "year"])), preserve_index=False), path)
    return folder


@pytest.mark.parametrize("kind", ["parquet", "csv", "jsonl"])
def test_names_of_folders_become_columns(done, train, predictions, tmp_path, kind):
    data, model = partitioned(tmp_path / "data", kind), tmp_path / "m.model"
    out = " ".join(train(data, model).split())
    assert f"note: column 'job': from the names of folders ({ROWS} rows, the first: {data}/job=clerk/" in out
    assert "--ignore job leaves it out" in out and "column 'year'" in out
    assert kinds_of(model) == {"age": "number", "job": "category", "year": "number"}
    one = data / "job=cook" / "year=2023" / f"part-0.{kind}"
    out, err = predictions(model, one)
    assert "names of folders" not in err
    pattern = str(data / "job=c*" / "year=2023" / f"*.{kind}")
    assert set(out.splitlines()) <= set(predictions(model, pattern)[0].splitlines())
    ids = predictions(model, one, "--id", "job", "--id", "year")[0].splitlines()[1]
    assert ids.startswith(('"cook",2023', "cook,2023"))
    out = train(data, tmp_path / "less.model", "--ignore", "job", "--ignore", "year")
    assert "note:" not in out and list(kinds_of(tmp_path / "less.model")) == ["age"]
    assert "names of folders" not in done("columns", data, "-t", "rich", "--ignore", "job", "--ignore", "year")[0]
    train(one, tmp_path / "one.model", "--ignore", "job")  # of a single folder
    assert "pilot" in done("evaluate", tmp_path / "less.model", data, "--progressive", "--by", "job")[0]


def test_a_file_that_holds_the_column_of_its_folder_has_its_values(train, tmp_path):
    out = train(partitioned(tmp_path / "data", "csv", lambda frame: frame.assign(year="old")), tmp_path / "m.model")
    assert "column 'job'" in out and "column 'year': has the same value in all rows" in out
    assert kinds_of(tmp_path / "m.model") == {"age": "number", "year": "category", "job": "category"}


def test_folders_may_hold_the_target_a_missing_value_and_codes(train, tmp_path):
    for label, part in people().groupby("rich"):
        for code in ("007", "12"):
            folder = tmp_path / "data" / f"rich={label}" / f"my%20code={code}" / "kind=__HIVE_DEFAULT_PARTITION__"
            folder.mkdir(parents=True)
            part.drop(columns="rich").to_csv(folder / "a.csv", index=False)
    assert "column 'rich'" not in train(tmp_path / "data", tmp_path / "m.model", "--shuffle")
    assert kinds_of(tmp_path / "m.model") == {"age": "number", "job": "category", "my code": "category"}


# -- keys of JSON


def lines(frame, path, without=()):
    """JSON lines, in which a row lacks a key where its value is missing."""
    rows = frame.drop(columns=list(without)).to_dict("records")
    path.write_text("".join(json.dumps({k: v for k, v in row.items() if v is not None}) + "\n" for row in rows))
    return path


def test_a_key_that_all_lines_lack_is_missing_and_told(done, train, predictions, tmp_path):
    frame = people().astype({"job": object})
    frame.loc[::5, "job"] = None
    data, model = lines(frame, tmp_path / "a.jsonl"), tmp_path / "m.model"
    assert "note" not in train(data, model)
    assert "note" not in predictions(model, data)[1]
    bare = lines(frame, tmp_path / "bare.jsonl", ["job", "rich"])
    out, err = predictions(model, bare)
    assert f"note: column 'job': absent, and counts as missing ({ROWS} rows, the first: {bare}, row 1)" in err
    nulls = tmp_path / "nulls.jsonl"
    nulls.write_text("".join(f'{{"age": {age}, "job": null}}\n' for age in frame.age))
    assert predictions(model, nulls)[0] == out
    none = lines(frame, tmp_path / "none.jsonl", ["age", "job"])
    assert "columns 'age', 'job' missing" in done("predict", model, none, status=2)[1]
    plain = tmp_path / "bare.csv"
    frame.drop(columns=["job"]).to_csv(plain, index=False)
    assert "column 'job' missing" in done("predict", model, plain, status=2)[1]


@pytest.mark.parametrize("kind", ["parquet", "csv", "jsonl"])
def test_a_training_of_folders_that_is_resumed_gives_the_same_bytes(tmp_path, kind):
    source = open_source(partitioned(tmp_path / "data", kind, lambda frame: frame.sample(frac=1, random_state=1)))
    trained, _ = assert_resumed(source, tunefree.Plan(target="rich", learner="scinol2"), tmp_path, 50)
    assert [oddity.rows for oddity in trained.progress.tally.oddities] == [ROWS, ROWS]
