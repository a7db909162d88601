"""What files hold beside numbers, dates and quotes: words for nulls, first lines, delimiters, lists, labels."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tunefree
from tunefree.core.errors import DataError
from tunefree.model_files.plan import Plan
from tunefree.model_files.trained import Trained
from tunefree.stream.batch import BadRows
from tunefree.stream.source import open_source
from tunefree.training.reading import begin, chunks_of, encoded
from tunefree.workflows.columns import columns
from tunefree.workflows.findings import alike_classes

WORDS = ["Anna", "None", "Ben", "null", "NA"]


def categories(encoder):
    return encoder.ids.names.categories(0, encoder.columns[0].name)


def people(folder, name="a.csv", target="y"):
    path = folder / name
    rows = [{"name": WORDS[k % 5], "x": k % 7 + 0.5, "y": ("None", "some")[k % 2]} for k in range(60)]
    if name.endswith("csv"):
        path.write_text("\n".join([",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]) + "\n")
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


class TestWordsForNulls:
    """Words such as NA are missing values in CSV, which is told, unless the column or the class is named."""

    def test_in_columns_of_texts(self, tmp_path):
        bad = BadRows(names_columns=True)
        reading = begin(open_source(people(tmp_path)), Plan(target="x"), bad)
        assert set(categories(reading.encoder)) == {"Anna", "Ben"}
        told = [str(oddity) for oddity in bad.tally.oddities]
        assert any("'NA' is taken for a missing value in columns of texts (12 rows" in line for line in told)

    def test_in_a_column_that_is_named(self, tmp_path):
        plan, bad = Plan(target="x", categorical=("name", "y")), BadRows()
        reading = begin(open_source(people(tmp_path)), plan, bad)
        assert set(categories(reading.encoder)) == set(WORDS) and not bad.tally.oddities

    def test_in_a_target(self, tmp_path):
        path = people(tmp_path)
        with pytest.raises(DataError, match=r"row 1, column 'y': the target is missing \('None' stands for that"):
            begin(open_source(path), Plan(target="y"), BadRows())
        bad = BadRows(skip_unlabelled=True)
        begin(open_source(path), Plan(target="y"), bad)
        assert bad.tally.unlabelled == 30 and any("'None' stands for" in str(odd) for odd in bad.tally.oddities)
        for plan in (Plan(target="y", classes=("None", "some")), Plan(target="y", categorical=("y",))):
            assert begin(open_source(path), plan, BadRows()).classes == ["None", "some"]

    def test_they_are_strings_where_types_are_known(self, tmp_path):
        reading = begin(open_source(people(tmp_path, "a.jsonl")), Plan(target="y"), BadRows())
        assert reading.classes == ["None", "some"] and set(categories(reading.encoder)) == set(WORDS)

    def test_a_saved_model_knows_what_they_were(self, tmp_path):
        plan = Plan(target="y", classes=("None", "some"), learner="scinol2")
        trained = tunefree.train(people(tmp_path), plan).trained_
        trained.save(tmp_path / "m")
        encoder = Trained.load(tmp_path / "m").encoder
        source = open_source(people(tmp_path, "b.jsonl"))
        (batch,) = encoded(encoder, chunks_of(source, encoder, BadRows()), BadRows(), False, True)
        assert batch.target.to_pylist()[:2] == ["None", "some"]
        assert "name=NA" not in encoder.names() and "name[missing]" in encoder.names()


def test_a_first_line_of_categories_may_be_a_row(tmp_path):
    letters = [f"{'ab'[k % 2]},{'cde'[k % 3]},{'fg'[k % 2]}" for k in range(60)]
    (tmp_path / "a.csv").write_text("\n".join(letters) + "\n")
    bad = BadRows()
    reading = begin(open_source(tmp_path / "a.csv"), Plan(target="f"), bad)
    assert sum(len(batch.weight) for batch in reading.batches) == 59
    (oddity,) = bad.tally.oddities
    assert "the first line is read as names of columns, and may be a row (a, c, f)" in str(oddity)


def test_headers_of_files_that_were_joined_are_still_left_out(tmp_path):
    part = ["name,job", *(f"n{k},cook" for k in range(30))]
    (tmp_path / "a.csv").write_text("\n".join([*part, *part]) + "\n")
    reading = begin(open_source(tmp_path / "a.csv"), Plan(target="job"), BadRows())
    assert sum(len(batch.weight) for batch in reading.batches) == 60


@pytest.mark.parametrize(
    ("content", "options"),
    [
        ("a | y\n1 | no\n2 | yes\n", {"is_table": True}),
        ("a:1\ty:2\n1\tno\n2\tyes\n", {"is_table": True}),
        ("a y\n1 no\n2 yes\n", {"delimiter": " "}),
        ("a\ty\n1\tno\n2\tyes\n", {"delimiter": r"\t"}),
    ],
)
def test_a_target_or_a_delimiter_says_that_text_is_a_table(tmp_path, content, options):
    (tmp_path / "a.txt").write_text(content)
    (chunk,) = open_source(tmp_path / "a.txt", **options).chunks()
    assert [text.strip() for text in chunk.data.column(0).to_pylist()] == ["1", "2"]


@pytest.mark.parametrize("rows", [["1;2,5;3,5", "4;5,5;6"], ["1;2;3", "4;5;6"]])
def test_rows_tell_the_delimiter_of_a_header_that_holds_two(tmp_path, rows):
    (tmp_path / "a.csv").write_text("\n".join(["id;width, in;height, in", *rows]) + "\n")
    (chunk,) = open_source(tmp_path / "a.csv").chunks()
    assert chunk.data.schema.names == ["id", "width, in", "height, in"]


@pytest.mark.parametrize(
    ("name", "known", "other", "told"),
    [
        ("a.svm", "1:{} 2:3", "0:{} 1:3", "such as 0, and none of 2"),
        ("a.vw", "|f x:{} job", "| x:{} cook", "such as x, cook"),
    ],
)
def test_features_that_training_never_saw_are_told(tmp_path, name, known, other, told):
    for folder, line in (("known", known), ("other", other)):
        (tmp_path / folder).mkdir()
        lines = [f"{k % 2} {line.format(k % 9 + 1)}\n" for k in range(50)]
        (tmp_path / folder / name).write_text("".join(lines))
    encoder = tunefree.train(tmp_path / "known" / name, learner="scinol2").trained_.encoder
    for folder, lines in (("known", []), ("other", ["features that training never saw"])):
        bad, source = BadRows(), open_source(tmp_path / folder / name)
        list(encoded(encoder, chunks_of(source, encoder, bad), bad, False, False))
        texts = [str(oddity) for oddity in bad.tally.oddities]
        assert [text[:32] for text in texts[:1]] == lines and (folder == "known" or told in texts[0])
    assert (len(texts) == 2) == (name == "a.vw")  # there no feature of a row is known


def test_lists_that_name_rows_are_texts_in_csv(tmp_path, run):
    rows = [{"tags": ["a", "b"][: k % 2 + 1], "x": k % 7, "y": ["no", "yes"][k % 2]} for k in range(60)]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert run("train", tmp_path / "a.jsonl", "-t", "y", "-o", tmp_path / "m", "--learner", "scinol2", "-q")[0] == 0
    status, output, _ = run("predict", tmp_path / "m", tmp_path / "a.jsonl", "--id", "tags")
    assert status == 0 and output.splitlines()[2].startswith('"[""a"", ""b""]",')


@pytest.mark.parametrize("last", [253402300800_000_000, 2**63 - 1])
def test_columns_shows_dates_that_python_does_not_have(tmp_path, last):
    moments = pa.array([0, last] * 30, pa.timestamp("us"))
    pq.write_table(pa.table({"until": moments, "y": ["no", "yes"] * 30}), tmp_path / "a.parquet")
    view = columns(tmp_path / "a.parquet", target="y")
    assert view.columns[0].kind == "moment" and view.columns[0].range[0] == "1970-01-01T00:00:00"


@pytest.mark.parametrize("first", [2**63, 2**64 - 1, 10**30])
def test_labels_of_many_digits_are_predicted_as_they_are(tmp_path, run, first):
    rows = [{"x": k % 2 + 0.5, "y": first - 7 * (k % 2)} for k in range(60)]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert run("train", tmp_path / "a.jsonl", "-t", "y", "-o", tmp_path / "m", "--learner", "scinol2", "-q")[0] == 0
    status, output, _ = run("predict", tmp_path / "m", tmp_path / "a.jsonl")
    assert status == 0
    assert f"probability[{first}]" in output
    assert {line.split(",")[0].strip('"') for line in output.splitlines()[1:]} <= {str(first), str(first - 7)}


def test_labels_of_64_bits_in_parquet(tmp_path, run):
    labels = np.array([2**63 + 7 * (k % 2) for k in range(60)], np.uint64)
    pq.write_table(pa.table({"x": [k % 2 + 0.5 for k in range(60)], "y": labels}), tmp_path / "a.parquet")
    assert run("train", tmp_path / "a.parquet", "-t", "y", "-o", tmp_path / "m", "--learner", "scinol2", "-q")[0] == 0
    output = run("predict", tmp_path / "m", tmp_path / "a.parquet")[1]
    assert {line.split(",")[0] for line in output.splitlines()[1:]} <= {str(2**63), str(2**63 + 7)}
    assert len(output.splitlines()) == 61


def test_classes_that_differ_in_case_or_quotes_are_told():
    labels = ["Yes", "no", "yes", "'no'"] * 20
    table = {"x": [k % 7 + 0.5 for k in range(80)], "y": labels}
    trained = tunefree.train(table, target="y", learner="scinol2").trained_
    assert [finding.evidence.split(" differ")[0] for finding in alike_classes(trained)] == [
        "the classes \"'no'\" and 'no'",
        "the classes 'Yes' and 'yes'",
    ]


@pytest.mark.parametrize("task", [None, "classification"])
def test_texts_of_which_most_are_different_are_no_classes_unless_said_so(tmp_path, task):
    table = {"x": [float(k % 7) for k in range(300)], "y": [f"{k}.5 {'kg' if k % 2 else 'g'}" for k in range(300)]}
    plan = Plan(target="y", task=task)
    if task is None:
        with pytest.raises(DataError, match="column 'y': the target has 300 different texts in 300 rows, which are no"):
            begin(tunefree.open_source(table), plan, BadRows())
    else:
        assert len(begin(tunefree.open_source(table), plan, BadRows()).classes) == 300


LINES = [f"{k}.5,{'abc'[k % 3]},{'no' if k % 2 else 'yes'}" for k in range(30)]


def text(*lines, end="\n"):
    return end.join([*lines, ""])


@pytest.mark.parametrize(
    ("content", "rows"),
    [
        (text("x,c,y", *LINES), 30),
        ("\ufeff" + text("x,c,y", *LINES), 30),
        (text("x,c,y", *LINES, end="\r\n"), 30),
        (text("x,c,y", *LINES[:9]) + text(*LINES[9:], end="\r\n"), 30),
        (text("x,c,y", *LINES).rstrip(), 30),
        (text("x,c,y,", *(line + "," for line in LINES)), 30),
        (text(" x , c , y ", *(line.replace(",", " , ") for line in LINES)), 30),
        (text("x,c,y", "", *LINES[:9], "", "", *LINES[9:]), 30),
        (text("x,c,y", *LINES[:9], '1.5,"a\nb",no', *LINES[9:]), 31),
        (text("x,,y", *LINES), 30),
        (text("sep=;", "x;c;y", *(line.replace(",", ";") for line in LINES)), 30),
        (text("x,c,y", LINES[0]), 1),
        (text("x,c,y"), "there are no rows"),
        ("", "the file is empty"),
        (text("", ""), "the file is empty"),
        (text("y", "no", "yes"), "there is no column left to learn from"),
        (text("x,c,y", *LINES, end="\r"), "its lines end with carriage returns alone"),
        (text("x,x ,y", *LINES), "column 'x': two columns have this name"),
        (text("x,c,y", *(line + "," for line in LINES)), "row 1: the row has 4 fields, the header 3"),
        (text("x,c,y", *LINES, "Total,30,"), "row 31, column 'y': the target is missing"),
        (text("Report", "", "x,c,y", *LINES), "there is no target column 'y'"),
    ],
)
def test_each_shape_of_a_file_is_read_or_told(tmp_path, content, rows):
    (tmp_path / "a.csv").write_text(content, newline="")
    if isinstance(rows, str):
        with pytest.raises(DataError, match=rows):
            begin(open_source(tmp_path / "a.csv"), Plan(target="y"), BadRows())
    else:
        reading = begin(open_source(tmp_path / "a.csv"), Plan(target="y"), BadRows())
        assert sum(len(batch.weight) for batch in reading.batches) == rows
        assert [column.kind for column in reading.encoder.columns] == ["number", "category"]
