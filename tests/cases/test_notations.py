"""Each notation of numbers and dates gives the same values through each door: CSV, JSON lines, Parquet; as a feature, a
target, an identifier, and a file to predict."""

import datetime

import numpy as np
import pytest

from tests.cases.test_files import categories
from tests.stream.tabular import write
from tunefree.core.errors import DataError
from tunefree.model_files.plan import Plan
from tunefree.stream.batch import BadRows
from tunefree.stream.notation import ColumnTypes
from tunefree.stream.source import open_source
from tunefree.training.reading import begin, encoded, in_its_notation
from tunefree.workflows.columns import columns

VALUES = np.round(np.random.default_rng(7).normal(0.0, 9000.0, 60), 2).tolist()
SIZES = [abs(value) for value in VALUES]


def grouped(value):
    return f"{value:,.2f}"


def continental(value):
    return grouped(value).translate(str.maketrans(",.", ".,"))


def lakhs(value):
    """As in India, where all groups but the last have two digits."""
    size, decimals = f"{abs(value):.2f}".split(".")
    head, last = size[:-3], size[-3:]
    groups = [head[max(k - 2, 0) : k] for k in range(len(head), 0, -2)][::-1]
    return ("-" if value < 0 else "") + ",".join([*groups, last]) + f".{decimals}"


NUMBERS = {
    "fractions": (lambda x: f"{x:.2f}", VALUES),
    "groups": (grouped, VALUES),
    "decimal commas": (continental, VALUES),
    "spaces": (lambda x: grouped(x).replace(",", " "), VALUES),
    "apostrophes": (lambda x: grouped(x).replace(",", "'"), VALUES),
    "a true minus": (lambda x: f"{x:.2f}".replace("-", "\u2212"), VALUES),
    "parentheses": (lambda x: f"({grouped(-x)})" if x < 0 else grouped(x), VALUES),
    "a minus behind": (lambda x: f"{-x:.2f}-" if x < 0 else f"{x:.2f}", VALUES),
    "dollars": (lambda x: f"${grouped(x)}", SIZES),
    "euros": (lambda x: f"{continental(x)} \u20ac", SIZES),
    "rupees": (lambda x: f"Rs. {grouped(x)}", SIZES),
    "pounds by their code": (lambda x: f"GBP {x:.2f}", SIZES),
    "percent": (lambda x: f"{x:.2f} %", VALUES),
    "a unit": (lambda x: f"{x:.2f} km", VALUES),
    "a unit without a space": (lambda x: f"{x:.2f}m\u00b2", VALUES),
    "thousands": (lambda x: f"{x / 1000:.5f}K", VALUES),
    "groups of two": (lakhs, [round(1000 * value, 2) for value in VALUES]),
    "low lines": (lambda x: f"{x:_.2f}", VALUES),
    "thin spaces": (lambda x: grouped(x).replace(",", "\u2009"), VALUES),
    "a currency before parentheses": (lambda x: f"$({grouped(-x)})" if x < 0 else f"${grouped(x)}", VALUES),
    "texts of a sheet": (lambda x: f'="{x:.2f}"', VALUES),
}
STEPS = [datetime.timedelta(hours=13 * k, minutes=7 * k, seconds=k % 60) for k in range(60)]
MOMENTS = [datetime.datetime(2021, 3, 1) + step for step in STEPS]
DATES = {
    "seven digits": lambda t: f"{t:%Y-%m-%d %H:%M:%S}.0000000",
    "nine digits": lambda t: f"{t:%Y-%m-%dT%H:%M:%S}.000000000",
    "UTC": lambda t: f"{t:%Y-%m-%d %H:%M:%S} UTC",
    "morning and afternoon": lambda t: f"{t:%m/%d/%Y %I:%M:%S %p}",
    "by dashes": lambda t: f"{t:%d-%b-%Y %H:%M:%S}",
    "in words": lambda t: f"{t:%b %d, %Y, %H:%M:%S}",
    "as C writes it": lambda t: f"{t:%a %b %d %H:%M:%S %Y}",
    "an offset": lambda t: f"{t + datetime.timedelta(hours=2):%Y-%m-%dT%H:%M:%S}+02:00",
    "an offset behind a space": lambda t: f"{t + datetime.timedelta(hours=2):%Y-%m-%d %H:%M:%S} +0200",
    "as mails have it": lambda t: f"{t:%a, %d %b %Y %H:%M:%S} +0000",
    "as logs have it": lambda t: f"{t:%d/%b/%Y:%H:%M:%S} +0000",
    "with fractions": lambda t: f"{t:%d.%m.%Y %H:%M:%S}.250",
}
FORMATS = ("csv", "jsonl", "parquet")


def written(folder, extension, texts):
    columns = {"v": texts, "x": [k % 7 + 0.5 for k in range(len(texts))], "y": ["no", "yes"] * (len(texts) // 2)}
    return write(folder / f"a.{extension}", columns)


def numbers_of(encoder, batch, name):
    return batch.rows.numbers[:, encoder.names().index(name) - 1]


def read(path, **plan):
    reading = begin(open_source(path), Plan(**{"target": "y", **plan}), BadRows())
    return reading, next(reading.batches)


def to_predict(reading, path, types=ColumnTypes()):  # noqa: B008 - an immutable tuple
    """The encoder of a file to predict, and its rows with the texts of the column."""
    encoder, chunks = in_its_notation(open_source(path, column_types=types), reading.encoder, BadRows(), kept=("v",))
    (batch,) = encoded(encoder, chunks, BadRows(), False, False, kept=("v",))
    return encoder, batch


@pytest.mark.parametrize("extension", FORMATS)
@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_are_features_and_targets_through_each_door(tmp_path, name, extension):
    write, values = NUMBERS[name]
    path = written(tmp_path, extension, [write(value) for value in values])
    reading, batch = read(path)
    np.testing.assert_allclose(numbers_of(reading.encoder, batch, "v"), values)
    reading, batch = read(path, target="v")
    assert reading.task == "regression"
    np.testing.assert_allclose(batch.target.to_numpy(zero_copy_only=False), values)


@pytest.mark.parametrize("extension", FORMATS)
@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("is_otherwise", [False, True])
def test_files_to_predict_may_be_written_as_training_or_otherwise(tmp_path, name, extension, is_otherwise):
    write, values = NUMBERS[name]
    learned = NUMBERS["fractions"][0] if is_otherwise else write
    reading, _ = read(written(tmp_path, "csv", [learned(value) for value in values]))
    texts = [write(value) for value in values[::-1]]
    encoder, batch = to_predict(reading, written(tmp_path, extension, texts))
    np.testing.assert_allclose(numbers_of(encoder, batch, "v"), values[::-1])
    assert batch.columns.column("v").to_pylist() == texts


@pytest.mark.parametrize("extension", FORMATS)
@pytest.mark.parametrize("name", DATES)
def test_dates_are_features_through_each_door(tmp_path, name, extension):
    reading, batch = read(written(tmp_path, extension, [DATES[name](moment) for moment in MOMENTS]))
    days = [(moment - MOMENTS[0]).total_seconds() / 86400 for moment in MOMENTS]
    np.testing.assert_allclose(numbers_of(reading.encoder, batch, "v[days]"), days, atol=1e-9)
    assert f"v[hour={MOMENTS[1].hour}]" in reading.encoder.names()


def test_dates_to_predict_are_reported_if_written_otherwise_and_options_name_columns(tmp_path):
    reading, _ = read(written(tmp_path, "csv", [f"{moment:%Y-%m-%d}" for moment in MOMENTS]))
    path, bad = written(tmp_path, "jsonl", [f"{moment:%d.%m.%Y}" for moment in MOMENTS]), BadRows()
    encoder, _ = in_its_notation(open_source(path), reading.encoder, bad)
    ((column, problem, _),) = encoder.notes
    assert column == "v" and problem == "dates are read as %d.%m.%Y, where training had them as YYYY-MM-DD"
    for types, problem in [
        (ColumnTypes(date=["x=%d"]), "column 'x': the model has no such column of dates"),
        (ColumnTypes(decimal=","), "no column of numbers is written as text; leave `decimal` and"),
    ]:
        with pytest.raises(DataError, match=problem):
            in_its_notation(open_source(path, column_types=types), reading.encoder, bad)


@pytest.mark.parametrize(
    ("name", "declared"),
    [(name, {"decimal": "," if name in ("decimal commas", "euros") else "."}) for name in NUMBERS]
    + [(name, {"thousands": mark}) for name, mark in zip(("groups", "decimal commas", "spaces"), ",. ", strict=True)],
)
def test_the_rest_of_a_declared_notation(tmp_path, name, declared):
    text, values = NUMBERS[name]
    path = write(tmp_path / "a.csv", {"v": [text(value) for value in values], "y": ["no", "yes"] * 30})
    reading, batch = read(path, **declared)
    np.testing.assert_allclose(numbers_of(reading.encoder, batch, "v"), values)
    reading, _ = read(write(tmp_path / "a.jsonl", {"v": values, "y": ["no", "yes"] * 30}))
    encoder, batch = to_predict(reading, path, ColumnTypes(**declared))
    np.testing.assert_allclose(numbers_of(encoder, batch, "v"), values)


def test_declared_notations_decide(tmp_path):
    path = written(tmp_path, "csv", ["1,250", "2.5"] * 30)
    reading, batch = read(path, thousands=",")  # so the decimal mark is a point
    assert numbers_of(reading.encoder, batch, "v")[:2].tolist() == [1250.0, 2.5]
    with pytest.raises(DataError, match="column 'v': no value is a date as in %H:%M"):
        read(path, date="v=%H:%M")


@pytest.mark.parametrize(("date", "is_noted"), [("%m/%d/%Y", True), ("%m/1%d/%Y", False), ("%Y/%m/%d", False)])
def test_notes_of_dates_of_two_meanings(tmp_path, date, is_noted):
    texts = [f"{datetime.date(2023, k % 12 + 1, k % 9 + 1):{date}}".replace("/10", "/1") for k in range(60)]
    begin(open_source(written(tmp_path, "csv", texts)), Plan(target="y"), bad := BadRows())
    note = ("v", "dates are read as %m/%d/%Y, and might be %d/%m/%Y", "`date='v=FORMAT'` decides")
    assert [(odd.column, odd.problem, odd.remedy) for odd in bad.tally.oddities] == [note] * is_noted


def test_dates_of_two_meanings_have_the_format_of_training(tmp_path):
    reading, _ = read(written(tmp_path, "csv", [f"{moment:%d/%m/%Y}" for moment in MOMENTS]))
    path = written(tmp_path, "jsonl", ["01/02/2021", "03/02/2021"])
    encoder, batch = to_predict(reading, path)
    assert not encoder.notes
    np.testing.assert_allclose(numbers_of(encoder, batch, "v[days]"), [-28.0, -26.0], atol=1e-9)


@pytest.mark.parametrize("extension", FORMATS)
@pytest.mark.parametrize("sign", [r"\N", "#DIV/0!", "N/A", "-"])
def test_signs_of_missing_numbers_are_missing_through_each_door(tmp_path, sign, extension):
    texts = [sign if k % 4 == 0 else f"{value:.2f}" for k, value in enumerate(VALUES)]
    reading, batch = read(written(tmp_path, extension, texts))
    numbers = numbers_of(reading.encoder, batch, "v")
    np.testing.assert_allclose(numbers, [0.0 if k % 4 == 0 else value for k, value in enumerate(VALUES)])
    assert "v[missing]" in reading.encoder.names()


def test_a_day_of_zeros_is_missing(tmp_path):
    texts = ["0000-00-00" if k % 5 == 0 else f"{moment:%Y-%m-%d}" for k, moment in enumerate(MOMENTS)]
    reading, _ = read(written(tmp_path, "csv", texts))
    assert reading.encoder.columns[0].kind == "moment" and "v[missing]" in reading.encoder.names()


def test_one_word_among_numbers_is_taken_for_missing_and_told(tmp_path):
    texts = ["broken" if k % 5 < 3 else f"{value:.2f}" for k, value in enumerate(VALUES)]
    assert read(written(tmp_path, "csv", texts))[0].encoder.columns[0].kind == "category"
    texts = ["broken" if k % 6 == 0 else f"{value:.2f}" for k, value in enumerate(VALUES)]
    path, bad = written(tmp_path, "csv", texts), BadRows(options=("categorical",))
    reading = begin(open_source(path), Plan(target="y"), bad)
    assert reading.encoder.columns[0].kind == "number"
    (oddity,) = bad.tally.oddities
    assert (oddity.column, oddity.rows) == ("v", 10) and "'broken' is taken for a missing value" in str(oddity)


@pytest.mark.parametrize("word", ["broken", "<5"])
@pytest.mark.parametrize("task", [None, "regression"])
def test_a_word_in_a_numeric_target_is_an_error_that_names_it(tmp_path, word, task):
    texts = [word if k == 40 else f"{value:.2f}" for k, value in enumerate(VALUES)]
    with pytest.raises(DataError, match=f"row 41, column 'v': '{word}' is not a number"):
        read(written(tmp_path, "csv", texts), target="v", task=task)


@pytest.mark.parametrize(
    "texts",
    [
        [f"{k:05d}" for k in range(60)],
        [2**62 + k for k in range(60)],
        [*(f"{k % 28 + 1}.{k // 28 + 1}.2024" for k in range(99)), "soon 7"],  # the first of many are dates
        [f"{size:.2f} {'kg' if k % 2 else 'g'}" for k, size in enumerate(SIZES)],
    ],
)
@pytest.mark.parametrize("extension", FORMATS)
def test_codes_of_digits_and_mixed_units_are_no_numbers(tmp_path, texts, extension):
    reading, _ = read(written(tmp_path, extension, texts))
    assert reading.encoder.columns[0].kind == "category" and categories(reading.encoder) == list(map(str, texts))


@pytest.mark.parametrize("start", [2**53, 2**63, 10**20])
def test_identifiers_of_json_keep_their_digits(tmp_path, start):
    ids = [start + 2 * k + 1 for k in range(60)]
    path = written(tmp_path, "jsonl", ids)
    reading, _ = read(path)
    assert categories(reading.encoder) == list(map(str, ids))
    _, batch = to_predict(reading, path)
    assert list(map(int, batch.columns.column("v").to_pylist())) == ids


@pytest.mark.parametrize("gone", ["N/A", ""])
def test_texts_among_numbers_of_json_are_read_as_in_csv(tmp_path, gone):
    values = [gone if k % 10 == 0 else str(value) if k % 3 else value for k, value in enumerate(VALUES)]
    reading, batch = read(written(tmp_path, "jsonl", values))
    expected = [0.0 if k % 10 == 0 else value for k, value in enumerate(VALUES)]
    np.testing.assert_allclose(numbers_of(reading.encoder, batch, "v"), expected)


@pytest.mark.parametrize("form", ["%H:%M %d %B %Y", "%A, week %W, %d %B %Y"])
def test_dates_in_an_unknown_format_are_told(tmp_path, form):
    notes = columns(written(tmp_path, "csv", [f"{moment:{form}}" for moment in MOMENTS]), target="y").notes()
    assert any("values that look like dates" in note and "`date='v=FORMAT'` reads dates" in note for note in notes)
    assert not any("name the rows" in note for note in notes)


def test_a_word_among_few_numbers_of_a_target_is_told(tmp_path):
    texts = ["broken" if k == 7 else str(k % 9) for k in range(60)]
    notes = columns(written(tmp_path, "csv", texts), target="v").notes()
    assert any("numbers but for 'broken', taken for classes" in note for note in notes)


@pytest.mark.parametrize("extension", FORMATS)
@pytest.mark.parametrize("words", [("TRUE", "FALSE", "1", "0"), ("yes", "no", "Yes", "0"), ("T", "F", "t", "f")])
def test_words_and_digits_for_true_and_false_are_one_feature(tmp_path, words, extension):
    reading, _ = read(written(tmp_path, extension, [words[k % 4] for k in range(60)]))
    assert reading.encoder.columns[0].kind == "boolean"
    assert sorted(categories(reading.encoder)) == ["false", "true"]


@pytest.mark.parametrize("ids", [[2**53 + 2 * k + 1 for k in range(60)], [f"{k:05d}" for k in range(60)]])
@pytest.mark.parametrize("extension", FORMATS)
def test_identifiers_that_are_numbers_of_a_model_are_kept(tmp_path, ids, extension):
    reading, _ = read(written(tmp_path, "csv", [f"{value:.2f}" for value in VALUES]))
    _, batch = to_predict(reading, written(tmp_path, extension, ids))
    assert list(map(str, batch.columns.column("v").to_pylist())) == list(map(str, ids))


@pytest.mark.parametrize(
    ("columns", "values", "notes"),
    [
        ([[f"{k},{k + 100}" for k in range(12, 52)]], [12.112], ["u"]),
        ([["1.250", "640", *(f"{k}.{k + 100}" for k in range(1, 39))]], [1250.0], ["u"]),
        ([[f"{k}.125" for k in range(1, 41)], [f"{k}.5" for k in range(40)]], [1.125, 0.5], []),
    ],
)
def test_commas_are_decimal_between_semicolons_unless_a_number_must_have_a_point(tmp_path, columns, values, notes):
    path, bad = tmp_path / "a.csv", BadRows()
    lines = [";".join([*row, "no" if k % 2 else "yes"]) for k, row in enumerate(zip(*columns, strict=True))]
    path.write_text("\n".join([";".join([*"uvw"[: len(columns)], "y"]), *lines]) + "\n")
    batch = next(begin(open_source(path), Plan(target="y"), bad).batches)
    assert batch.rows.numbers[0].tolist() == values
    told = [(note.column, note.remedy) for note in bad.tally.oddities]
    assert told == [(column, "`decimal` and `thousands` decide") for column in notes]
    begin(open_source(path), Plan(target="y", decimal=",", thousands="."), declared := BadRows())
    assert not declared.tally.oddities
