"""What files hold beside numbers, dates and quotes: words for nulls, first lines, delimiters, lists, labels."""

import pyarrow as pa
import pytest

import tunefree
from tests.stream.tabular import write
from tunefree.core.errors import DataError
from tunefree.model_files.plan import Plan
from tunefree.model_files.trained import Trained
from tunefree.stream.batch import BadRows
from tunefree.stream.source import open_source
from tunefree.training.reading import begin, chunks_of, encoded
from tunefree.workflows.columns import columns
from tunefree.workflows.findings import class_findings

WORDS = ["Anna", "None", "Ben", "null", "NA"]


def categories(encoder):
    return encoder.ids.names.categories(0, encoder.columns[0].name)


def people(folder, name="a.csv"):
    columns = {"name": WORDS * 12, "x": [k % 7 + 0.5 for k in range(60)], "y": ["None", "some"] * 30}
    return write(folder / name, columns)


class TestWordsForNulls:
    """Words such as NA are missing values in CSV, which is told, unless the column or the class is named."""

    def test_in_columns_of_texts(self, tmp_path):
        bad = BadRows(options=("categorical",))
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

    def test_a_saved_model_knows_their_types(self, tmp_path):
        plan = Plan(target="y", classes=("None", "some"), learner="scinol2")
        tunefree.train(people(tmp_path), plan).trained_.save(tmp_path / "m")
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


@pytest.mark.parametrize(
    ("header", "is_odd"), [("3.5,7,a,f", True), ("3.5,7,a,b,f", False), ("2021,2022,f", False), (",,f", True)]
)
def test_a_header_of_numbers_may_be_a_row(tmp_path, header, is_odd):
    (tmp_path / "a.csv").write_text("\n".join([header, *[",".join("1" * len(header.split(",")))] * 9]) + "\n")
    next(open_source(tmp_path / "a.csv").chunks(bad=(bad := BadRows())))
    assert ["may be a row" in str(oddity) for oddity in bad.tally.oddities] == [True] * is_odd


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
    ("name", "known", "other"), [("a.svm", "1:{} 2:3", "0:{} 1:3"), ("a.vw", "|f x:{} job", "| x:{} cook")]
)
def test_features_that_training_never_saw_are_told(tmp_path, name, known, other):
    path, encoder = tmp_path / name, None
    for line, n_rows in ((known, []), (other, [50])):
        path.write_text("".join(f"{k % 2} {line.format(k % 9 + 1)}\n" for k in range(50)))
        encoder = encoder or tunefree.train(path, learner="scinol2").trained_.encoder
        bad, source = BadRows(), open_source(path)
        list(encoded(encoder, chunks_of(source, encoder, bad), bad, False, False))
        assert [oddity.rows for oddity in bad.tally.oddities] == n_rows
        assert all("never seen in training" in str(oddity) for oddity in bad.tally.oddities)


def test_lists_that_name_rows_are_texts_in_csv(tmp_path, done):
    columns = {"tags": [["a"], ["a", "b"]] * 30, "x": [k % 7 for k in range(60)], "y": ["no", "yes"] * 30}
    write(tmp_path / "a.jsonl", columns)
    done("train", tmp_path / "a.jsonl", "-t", "y", "-o", tmp_path / "m", "--learner", "scinol2", "-q")
    output, _ = done("predict", tmp_path / "m", tmp_path / "a.jsonl", "--id", "tags")
    assert output.splitlines()[2].startswith('"[""a"", ""b""]",')


@pytest.mark.parametrize("last", [253402300800_000_000, 2**63 - 1])
def test_columns_shows_dates_that_python_does_not_have(tmp_path, last):
    moments = pa.array([0, last] * 30, pa.timestamp("us"))
    view = columns(write(tmp_path / "a.parquet", {"until": moments, "y": ["no", "yes"] * 30}), target="y")
    assert view.columns[0].kind == "moment" and view.columns[0].range[0] == "1970-01-01T00:00:00"


@pytest.mark.parametrize(
    ("name", "first"), [("a.jsonl", 2**63), ("a.jsonl", 2**64 - 1), ("a.jsonl", 10**30), ("a.parquet", 2**63)]
)
def test_labels_of_many_digits_are_predicted_as_they_are(tmp_path, done, name, first):
    labels = [first, first - 7] * 30
    labels = pa.array(labels, pa.uint64()) if name == "a.parquet" else labels
    path = write(tmp_path / name, {"x": [0.5, 1.5] * 30, "y": labels})
    done("train", path, "-t", "y", "-o", tmp_path / "m", "--learner", "scinol2", "-q")
    header, *lines = done("predict", tmp_path / "m", path)[0].splitlines()
    assert len(lines) == 60 and f"probability[{first}]" in header
    assert {line.split(",")[0].strip('"') for line in lines} <= {str(first), str(first - 7)}


def test_classes_that_differ_in_case_or_quotes_are_told():
    labels = ["Yes", "no", "yes", "'no'"] * 20
    table = {"x": [k % 7 + 0.5 for k in range(80)], "y": labels}
    trained = tunefree.train(table, target="y", learner="scinol2").trained_
    alike = [finding.evidence.split(" differ")[0] for finding in class_findings(trained)]
    assert alike == ["the classes \"'no'\" and 'no'", "the classes 'Yes' and 'yes'"]


def test_texts_that_are_mostly_different_are_no_classes_unless_said_so():
    table = {"x": [float(k % 7) for k in range(300)], "y": [f"{k}.5 {'kg' if k % 2 else 'g'}" for k in range(300)]}
    with pytest.raises(DataError, match="column 'y': the target has 300 different texts in 300 rows, which are no"):
        begin(open_source(table), Plan(target="y"), BadRows())
    assert len(begin(open_source(table), Plan(target="y", task="classification"), BadRows()).classes) == 300
