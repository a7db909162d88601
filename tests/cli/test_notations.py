"""Files as people have them: notations of numbers and dates, and what is said of columns instead of being guessed."""

import io
import json

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from tunefree.stream.notation import Notation, notation_of

LEARNER = ("--learner", "scinol2", "-q")
N = 300
rng = np.random.default_rng(0)
PRICES = np.round(rng.lognormal(8.0, 1.5, N), 2)
LABELS = np.where(rng.random(N) < 1 / (1 + np.exp(-(PRICES - 3000) / 1000)), "yes", "no")


def predictions(run, model, data, *more):
    status, out, err = run("predict", model, data, *more)
    assert status == 0, err
    return csv.read_csv(io.BytesIO(out.encode())).to_pydict()


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
    status, out, err = run("inspect", tmp_path / "m", "--top", 0)
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


def test_a_bad_value_does_not_change_the_notation(run, tmp_path):
    data, model, rows = tmp_path / "d.csv", tmp_path / "m", [f"{k},{LABELS[k]}" for k in range(N)]
    data.write_text("\n".join(["age,y", *rows]) + "\n")
    assert run("train", data, "-t", "y", "-o", model, *LEARNER)[0] == 0
    data.write_text("\n".join(["age,y", "old,no", *rows]) + "\n")
    status, _, err = run("predict", model, data, "--on-bad-row", "skip")
    assert status == 0 and err.startswith("1 row skipped, the first:") and "are read as" not in err, err


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
