"""Files as people have them: notations of numbers and dates, and what is said of columns instead of being guessed."""

from __future__ import annotations

import io
import json

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from tunefree.core.errors import ModelError
from tunefree.model_files.plan import Plan
from tunefree.stream.notation import Notation, date_format_of, notation_of

LEARNER = ("--learner", "scinol2", "-q")
N = 300
rng = np.random.default_rng(0)
PRICES = np.round(rng.lognormal(8.0, 1.5, N), 2)
COUNTS = rng.integers(1, 10_000, N)
DAYS = np.datetime64("2023-11-20") + rng.integers(0, 300, N)
LABELS = np.where(rng.random(N) < 1 / (1 + np.exp(-(PRICES - 3000) / 1000)), "yes", "no")

PLAIN = ("{:.2f}".format, str, str)
GERMAN = (
    lambda price: f"{price:,.2f} €".translate(str.maketrans(".,", ",.")),
    lambda count: f"{count:,}".replace(",", "."),
    lambda day: f"{day.day}.{day.month}.{day.year}",
)
AMERICAN = ("${:,.2f}".format, "{:,}".format, lambda day: f"{day.month}/{day.day}/{day.year}")
FRENCH = (
    lambda price: f"{price:,.2f}".replace(",", "\u202f").replace(".", ","),
    lambda count: f"{count:,}".replace(",", " "),
    lambda day: f"{day.day:02}/{day.month:02}/{day.year}",
)


def write(path, style, delimiter=",", missing="", gaps=()):
    """A table in a style; some rows lack their price."""
    price, count, day = style
    lines = [delimiter.join(("price", "count", "day", "y"))]
    for k in range(N):
        fields = (missing if k in gaps else price(PRICES[k]), count(int(COUNTS[k])), day(DAYS[k].item()), LABELS[k])
        lines.append(delimiter.join(f'"{field}"' for field in fields))
    path.write_text("\n".join(lines) + "\n")
    return path


def predictions(run, model, data, *more):
    status, out, err = run("predict", model, data, *more)
    assert status == 0, err
    return csv.read_csv(io.BytesIO(out.encode())).to_pydict()


@pytest.mark.parametrize(
    ("style", "delimiter", "missing"),
    [(GERMAN, ";", "-"), (AMERICAN, ",", "n.a."), (FRENCH, ";", "\u2013"), (GERMAN, "\t", "NA")],
    ids=["german", "american", "french", "tabs"],
)
def test_notations_are_learned_as_plain_numbers_and_dates_are(run, tmp_path, style, delimiter, missing):
    plain = write(tmp_path / "plain.csv", PLAIN, gaps=(5, 70))
    written = write(tmp_path / "written.csv", style, delimiter, missing, gaps=(5, 70))
    found = []
    for data in (plain, written):
        status, _, err = run("train", data, "-t", "y", "-o", tmp_path / f"{data.stem}.model", *LEARNER)
        assert status == 0, err
        found.append(predictions(run, tmp_path / f"{data.stem}.model", data))
    assert found[0] == found[1]
    status, out, _ = run("evaluate", tmp_path / "written.model", written, "--json")
    assert status == 0 and json.loads(out)["error"] < 0.4


def test_one_dash_does_not_make_a_category(run, tmp_path):
    rows = [f"{x},{'yes' if x > 0.5 else 'no'}" for x in rng.random(N)]
    (tmp_path / "d.csv").write_text("\n".join(["x,y", *rows[:5], "-,no", *rows[5:]]) + "\n")
    status, out, err = run("train", tmp_path / "d.csv", "-t", "y", "-o", tmp_path / "m", "--learner", "scinol2")
    assert status == 0, err
    assert "numbers" in out and "categories" not in out
    found = json.loads(run("inspect", tmp_path / "m", "--json", "--top", 0)[1])
    assert {own["feature"] for own in found["features"]} == {"(constant)", "x", "x[missing]"}
    assert found["columns"] == [{**found["columns"][0], "name": "x", "kind": "number", "why": "numbers, as 1,234.5"}]


def test_what_is_said_holds_and_is_saved(run, tmp_path):
    lines = ["zip,amount,when,code,y"]
    for k in range(N):
        amount = "gone" if k % 50 == 3 else f'"{k % 7},125"'
        lines.append(f"{k % 4 + 1000:05},{amount},2024{k % 12 + 1:02}{k % 28 + 1:02},{k % 3},{LABELS[k]}")
    data = tmp_path / "d.csv"
    data.write_text("\n".join(lines) + "\n")
    said = ("--categorical", "zip", "--categorical", "code", "--decimal", ",", "--na-values", "gone")
    dates = ("--date", "when=%Y%m%d")
    status, out, err = run("train", data, "-t", "y", "-o", tmp_path / "m", "--learner", "scinol2", *said, *dates)
    assert status == 0, err
    assert "amount (as 1234,5)" in out and "when (%Y%m%d)" in out
    found = json.loads(run("inspect", tmp_path / "m", "--json", "--top", 0)[1])
    features = {own["feature"] for own in found["features"]}
    assert {"zip=01000", "code=2", "amount", "amount[missing]", "when[month=12]"} <= features
    assert {own["name"]: own["why"] for own in found["columns"]}["zip"] == "named by categorical"
    status, out, err = run("inspect", tmp_path / "m")
    assert status == 0 and "named by date, %Y%m%d" in out, err
    table = predictions(run, tmp_path / "m", data)
    first = csv.read_csv(data, convert_options=csv.ConvertOptions(column_types={"zip": pa.string()}))
    parquet.write_table(first, tmp_path / "d.parquet")  # the same values, some of them with types
    assert predictions(run, tmp_path / "m", tmp_path / "d.parquet") == table
    status, _, err = run("train", data, "-t", "y", "-o", tmp_path / "m", *LEARNER, "--numeric", "amount")
    assert status == 2 and "'gone' is not a number" in err and "--na-values" in err and "row 4" in err
    status, _, err = run("train", data, "-t", "y", "-o", tmp_path / "m", *LEARNER, "--date", "zip=%d.%m.%Y")
    assert status == 2 and "'zip'" in err
    status, _, err = run("train", data, "-t", "y", "-o", tmp_path / "m", *LEARNER, "--numeric", "amont")
    assert status == 2 and "did you mean 'amount'" in err


def test_words_that_are_said_to_be_missing(run, tmp_path):
    lines = [f"{'gone' if k % 9 == 1 else k},{-999 if k % 7 == 1 else k % 5},{LABELS[k]}" for k in range(N)]
    (tmp_path / "d.csv").write_text("\n".join(["a,b,y", *lines]) + "\n")
    said = ("--na-values", "gone", "--na-values", "-999")
    status, _, err = run("train", tmp_path / "d.csv", "-t", "y", "-o", tmp_path / "m", *LEARNER, *said)
    assert status == 0, err
    found = json.loads(run("inspect", tmp_path / "m", "--json", "--top", 0)[1])
    assert {own["name"]: own["kind"] for own in found["columns"]} == {"a": "number", "b": "number"}
    assert {"a[missing]", "b[missing]"} <= {own["feature"] for own in found["features"]}
    (tmp_path / "one.csv").write_text("a,b\ngone,gone\n,\n3,-999\n3,\n")
    table = predictions(run, tmp_path / "m", tmp_path / "one.csv")["probability[yes]"]
    assert table[0] == table[1] and table[2] == table[3]


def test_targets_in_a_notation_are_numbers(run, tmp_path):
    data = write(tmp_path / "d.csv", GERMAN, ";")
    status, _, err = run("train", data, "-t", "price", "-o", tmp_path / "m", "--learner", "scinol2")
    assert status == 0 and "regression of 'price'" in err
    found = json.loads(run("evaluate", tmp_path / "m", data, "--json")[1])
    assert found["rows"] == N and found["mean_absolute_error"] < PRICES.std()


def test_large_integers_as_labels_stay_apart(run, tmp_path):
    labels = [2**60 + 1 + k % 2 for k in range(N)]
    rows = {"x": [float(k % 2) for k in range(N)], "y": labels}
    csv.write_csv(pa.table(rows), tmp_path / "d.csv")
    (tmp_path / "d.jsonl").write_text(
        "".join(json.dumps({"x": k % 2, "y": own}) + "\n" for k, own in enumerate(labels))
    )
    parquet.write_table(pa.table(rows), tmp_path / "d.parquet")
    for name in ("d.csv", "d.jsonl", "d.parquet"):
        status, _, err = run("train", tmp_path / name, "-t", "y", "-o", tmp_path / "m", *LEARNER)
        assert status == 0, err
        assert predictions(run, tmp_path / "m", tmp_path / name)["prediction"] == labels
        assert json.loads(run("evaluate", tmp_path / "m", tmp_path / name, "--json")[1])["error"] == 0.0


def test_short_texts_whose_values_do_not_repeat_are_texts(run, tmp_path):
    names = [f"{'Mr.' if k % 2 else 'Mrs.'} {k:x} Smith {chr(97 + k % 26)}{chr(97 + k % 25)}" for k in range(N)]
    parquet.write_table(pa.table({"name": names, "y": [str(k % 2) for k in range(N)]}), tmp_path / "d.parquet")
    status, out, err = run("train", tmp_path / "d.parquet", "-t", "y", "-o", tmp_path / "m", "--learner", "scinol2")
    assert status == 0 and "texts" in out and "hint" not in out, err
    assert json.loads(run("evaluate", tmp_path / "m", tmp_path / "d.parquet", "--json")[1])["error"] < 0.05


@pytest.mark.parametrize(
    ("strings", "notation"),
    [
        (["15", "2"], None),  # whole numbers of a column that is no CSV may be codes
        (["1.5", "2"], Notation(".", ",")),
        (["1.5", "-"], Notation(".", ",")),
        (["1,500", "22,000"], Notation(".", ",")),
        (["1,5", "22,000"], Notation(",", ".")),
        (["1,500", "0,123"], Notation(",", ".")),
        (["1'000.5", "7"], Notation(".", "'")),
        (["12 %", "-3 %"], Notation(".", ",")),
        (["1,2,3", "4"], None),
        (["12-345"], None),
        (["-"], None),
        (["1.234.567", "USD 5"], Notation(",", ".")),
    ],
)
def test_notations_are_told_apart(strings, notation):
    assert notation_of(pa.array(strings)) == notation


def test_formats_of_dates_are_told_apart():
    assert date_format_of(pa.array(["13/2/2024", "1/3/2024"])) == "%d/%m/%Y"
    assert date_format_of(pa.array(["1/2/2024", "1/3/2024"])) == "%m/%d/%Y"
    assert date_format_of(pa.array(["1/2/2024", "1/3/2024"]), days_first=True) == "%d/%m/%Y"
    assert date_format_of(pa.array(["3 Mar 2024", "-"])) == "%d %b %Y"
    assert date_format_of(pa.array(["1.2.2024 07:30", "1.3.2024 08:00"])) == "%d.%m.%Y %H:%M"
    assert date_format_of(pa.array(["1.2", "3.4"])) is None


def test_marks_that_make_no_sense_are_refused():
    for wrong in ({"decimal": ";"}, {"thousands": "x"}, {"decimal": ",", "thousands": ","}):
        with pytest.raises(ModelError):
            Plan(**wrong)


def test_query_numbers_are_not_dropped_in_silence(run, tmp_path):
    (tmp_path / "d.svm").write_text("".join(f"{k % 2} qid:{k // 10} 0:{k % 3} 7:1\n" for k in range(40)))
    status, out, err = run("train", tmp_path / "d.svm", "-o", tmp_path / "m", "--learner", "scinol2")
    assert status == 0 and "qid" in out, err
    (tmp_path / "d.csv").write_text("näme,y\nJosé,1\nZoë,2\n", encoding="latin-1")
    status, _, err = run("train", tmp_path / "d.csv", "-t", "y", "-o", tmp_path / "m", *LEARNER)
    assert status == 2 and "--encoding" in err
    latin = (tmp_path / "d.csv", "--encoding", "latin-1")
    assert run("train", *latin, "-t", "y", "-o", tmp_path / "m", *LEARNER)[0] == 0
    assert run("predict", tmp_path / "m", *latin, "--id", "näme")[1].splitlines()[1].startswith('"José"')
