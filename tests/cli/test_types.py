"""Columns that are not what they seem at first, and notations of numbers and dates."""

import gzip
import io
import json
from functools import partial

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from tests.interruptions import assert_resumed
from tunefree.model_files.plan import Plan
from tunefree.model_files.trained import Trained
from tunefree.stream import tables, text
from tunefree.stream.source import open_source
from tunefree.stream.tables import Options

LEARNER = ("--learner", "scinol2")
N = 600
rng = np.random.default_rng(0)
X = np.round(rng.normal(size=N), 6)
LABELS = np.where(rng.random(N) < 1 / (1 + np.exp(-2 * X)), "yes", "no")


@pytest.fixture
def small_samples(monkeypatch):
    """Types come of 4,096 bytes, half of them from places all over a file."""
    monkeypatch.setattr(text, "SAMPLE", 4096)


def write(path, z, rows=N):
    """A table whose column z has a value for each number of a row, from 0."""
    body = "".join(f"{X[k]},{z(k)},{LABELS[k]}\n" for k in range(rows))
    path.write_text("x,z,y\n" + body)
    return path


def columns(run, model):
    """The kinds of the columns of a model."""
    found = json.loads(run("inspect", model, "--json", "--top", 0)[1])
    return {column["name"]: column["kind"] for column in found["columns"]}


def train(run, data, model, *options, **how):
    return run("train", data, "-t", "y", "-o", model, *LEARNER, *options, **how)


def dates(k):
    return f"2024-{k % 12 + 1:02}-{k % 28 + 1:02}"


SPREAD = {
    "numbers at the end": (lambda k: "" if k < 500 else k % 7, "number", None),
    "words at the end": (lambda k: k % 7 if k < 500 else "abc"[k % 3], "category", "numbers, but for 'a'"),
    "a rare word": (lambda k: "unknown" if k == 2 else k % 7, "number", "'unknown' is taken for a missing value (1 r"),
    "a rare word among dates": (lambda k: "?" if k == 1 else "never" if k == 2 else dates(k), "moment", "'never'"),
    "dashes among dates": (lambda k: "-" if k % 9 == 2 else dates(k), "moment", "'-' is taken for a missing value (67"),
    "a rare word among times": (lambda k: "late" if k == 2 else f"{k % 24:02}:15", "time", "'late'"),
    "four words": (lambda k: "abcd"[k] if k < 4 else k % 7, "category", "numbers, but for 'a'"),
    "a word that is not rare": (lambda k: k % 7 if k % 20 else "unknown", "category", "numbers, but for 'unknown'"),
}


@pytest.mark.parametrize("case", SPREAD)
def test_types_come_from_places_all_over_a_file(run, done, tmp_path, small_samples, case):
    z, kind, note = SPREAD[case]
    data, model = write(tmp_path / "d.csv", z), tmp_path / "m"
    assert len(data.read_bytes()) > 2 * 4096
    out, _ = train(done, data, model)
    assert columns(run, model) == {"x": "number", "z": kind}
    notes = [line for line in out.splitlines() if line.startswith("note") and "missing in" not in line]
    assert len(notes) == (note is not None) and (note or "") in "".join(notes)
    assert len(done("predict", model, data)[0].splitlines()) == N + 1


def test_a_stream_gives_an_empty_column_its_type_with_its_first_value(run, done, tmp_path, small_samples, monkeypatch):
    data = write(tmp_path / "d.csv", lambda k: "" if k < 400 else k % 7)
    models = []
    for block in (300, 4096, 1 << 21):
        monkeypatch.setattr(tables, "Options", partial(Options, block_size=block))
        assert "z (from row 401 on)" in train(done, "-", tmp_path / "m", stdin=data.read_bytes())[0]
        models.append((tmp_path / "m").read_bytes())
    assert models[1:] == models[:-1] and columns(run, tmp_path / "m") == {"x": "number", "z": "number"}
    _, err = train(done, "-", tmp_path / "m", stdin=data.read_bytes() + b"1,word,no\n", status=2)
    assert "row 601, column 'z': 'word' is not a number" in err
    assert "--na-values" in err and "--categorical z" in err


@pytest.mark.parametrize("block", [400, 1 << 21])
def test_words_that_come_late_in_numbers(run, done, tmp_path, small_samples, monkeypatch, block):
    monkeypatch.setattr(tables, "Options", partial(Options, block_size=block))
    dash = write(tmp_path / "dash.csv", lambda k: "-" if k in (490, 550) else k % 7).read_bytes()
    out, _ = train(done, "-", tmp_path / "m", stdin=dash)
    told = "column 'z': '-' is taken for a missing value (2 rows, the first: standard input, row 491); --categorical z"
    assert told in out and columns(run, tmp_path / "m")["z"] == "number"
    word = dash.replace(b",-,", b",unknown,")
    _, err = train(done, "-", tmp_path / "m", stdin=word, status=2)
    assert "row 491, column 'z': 'unknown'" in err and "--na-values" in err and "--categorical z" in err
    train(done, "-", tmp_path / "n", "--na-values", "unknown", stdin=word)
    assert columns(run, tmp_path / "n")["z"] == "number"
    train(done, "-", tmp_path / "n", "--categorical", "z", stdin=word)
    assert "598" in train(done, "-", tmp_path / "n", "--on-bad-row", "skip", stdin=word)[0]


# -- files that write numbers otherwise


def predictions(done, model, data, *options):
    out, err = done("predict", model, data, *options)
    return csv.read_csv(io.BytesIO(out.encode())).to_pydict(), [line for line in err.splitlines() if "note" in line]


def test_three_decimals_and_thousands_are_told_apart_by_the_rest_of_the_file(done, tmp_path):
    model, data = tmp_path / "m", tmp_path / "d.csv"
    prices, taxes = rng.lognormal(7.0, 1.0, N).round(2), (rng.random(N) * 10).round(1)
    rows = [f"{price};{tax};{label}\n" for price, tax, label in zip(prices, taxes, LABELS, strict=True)]
    data.write_text("price;tax;y\n" + "".join(rows))
    train(done, data, model)
    plain, continental, alone = tmp_path / "plain.csv", tmp_path / "continental.csv", tmp_path / "alone.csv"
    plain.write_text("price;tax\n1868;1.5\n2411;2.25\n")
    continental.write_text("price;tax\n1.868;1,5\n2.411;2,25\n")
    alone.write_text("price;tax\n1.868;2\n2.411;3\n")
    expected, notes = predictions(done, model, plain)
    assert notes == []
    found, notes = predictions(done, model, continental)
    assert found == expected and len(notes) == 2
    assert "column 'price': numbers are read as 1.234,5, where training had them as 1234.5 (2 rows" in notes[0]
    of_points, notes = predictions(done, model, alone)  # both fit: as in training
    assert of_points != expected and notes == []
    out, err = done("predict", model, "-", stdin=continental.read_bytes())
    assert "price': numbers are read as 1.234,5" in err
    assert csv.read_csv(io.BytesIO(out.encode())).to_pydict() == expected
    late = b"price;tax\n" + b"1868;1.5\n" * 3000 + b"1868;1,5\n"
    _, err = done("predict", model, "-", "--on-bad-row", "skip", stdin=late)
    assert "row 3001, column 'tax': '1,5' is not a number (--decimal and --thousands" in err
    of_thousands, notes = predictions(done, model, alone, "--decimal", ",", "--thousands", ".")
    alone.write_text("price;tax\n1868;2\n2411;3\n")
    assert of_thousands == predictions(done, model, alone)[0] and notes == []


def test_a_resumed_training_counts_odd_rows_as_one_that_was_not(tmp_path, monkeypatch):
    def z(k):
        return "" if k < 100 else "-" if k in (300, 550) else f"{k % 7}" if k < 400 else f"{k % 7}.5"

    monkeypatch.setattr(text, "SAMPLE", 1024)
    data = write(tmp_path / "d.csv.gz", z)
    data.write_bytes(gzip.compress(data.read_bytes()))  # which is not read from anywhere
    monkeypatch.setattr(tables, "Options", partial(Options, block_size=700))
    trained, _ = assert_resumed(open_source(data), Plan(target="y", learner="scinol2"), tmp_path, 64, each=2)
    assert trained.progress.tally.oddities[0].rows == 2 and trained.encoder.columns[1].since == 101


def test_a_word_that_comes_later_beside_yes_and_no_is_a_category_and_no_end(done, tmp_path):
    lines = [f"{'yes' if k % 2 else 'No'},{k % 2}" for k in range(200)]
    (tmp_path / "a.csv").write_text("\n".join(["on,y", *lines]) + "\n")
    (tmp_path / "b.csv").write_text("on,y\nunknown,1\nYES,1\nn,0\n")
    out, _ = train(done, tmp_path / "a.csv", tmp_path / "m", tmp_path / "b.csv")
    trained = Trained.load(tmp_path / "m")
    assert trained.encoder.names() == ["(constant)", "on=false", "on=true", "on=unknown"]
    assert "true or false" in out and trained.progress.progressive[0].rows == 203


def test_what_is_said_holds_and_is_saved(run, done, tmp_path):
    lines = ["zip,amount,when,code,y"]
    for k in range(N):
        amount = "gone" if k % 50 == 3 else f'"{k % 7},125"'
        lines.append(f"{k % 4 + 1000:05},{amount},2024{k % 12 + 1:02}{k % 28 + 1:02},{k % 3},{LABELS[k]}")
    data = tmp_path / "d.csv"
    data.write_text("\n".join(lines) + "\n")
    said = ("--categorical", "zip", "--categorical", "code", "--decimal", ",", "--na-values", "gone")
    dates = ("--date", "when=%Y%m%d")
    out, err = done("train", data, "-t", "y", "-o", tmp_path / "m", "--learner", "scinol2", *said, *dates)
    assert "amount (as 1.234,5)" in out and "when (%Y%m%d)" in out and "fits none" not in out + err
    found = json.loads(run("inspect", tmp_path / "m", "--json", "--top", 0)[1])
    features = {feature["feature"] for feature in found["features"]}
    assert {"zip=01000", "code=2", "amount", "amount[missing]", "when[month=12]"} <= features
    assert {column["name"]: column["why"] for column in found["columns"]}["zip"] == "named by categorical"
    assert "named by date, %Y%m%d" in done("inspect", tmp_path / "m", "--top", 0)[0]
    table, _ = predictions(done, tmp_path / "m", data)
    first = csv.read_csv(data, convert_options=csv.ConvertOptions(column_types={"zip": pa.string()}))
    parquet.write_table(first, tmp_path / "d.parquet")  # the same values, some of them with types
    assert predictions(done, tmp_path / "m", tmp_path / "d.parquet")[0] == table
    for options, *told in (
        (("--numeric", "amount"), "'gone' is not a number", "--na-values", "row 4"),
        (("--date", "zip=%d.%m.%Y"), "'zip'"),
        (("--numeric", "amont"), "did you mean 'amount'"),
    ):
        _, err = done("train", data, "-t", "y", "-o", tmp_path / "m", *LEARNER, "-q", *options, status=2)
        assert all(words in err for words in told)


def test_a_bad_value_does_not_change_the_notation(done, tmp_path):
    data, model, rows = tmp_path / "d.csv", tmp_path / "m", [f"{k},{LABELS[k]}" for k in range(N)]
    data.write_text("\n".join(["age,y", *rows]) + "\n")
    done("train", data, "-t", "y", "-o", model, *LEARNER, "-q")
    data.write_text("\n".join(["age,y", "old,no", *rows]) + "\n")
    _, err = done("predict", model, data, "--on-bad-row", "skip")
    assert err.startswith("1 row skipped, the first:") and "are read as" not in err, err
