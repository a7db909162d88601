"""What `tunefree evaluate`, `tunefree predict` and `tunefree explain` can be asked for."""

import io
import json
import subprocess
import sys

import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from tests.workflows.test_training import people

LEARNER = ("--learner", "scinol2")


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "people.csv"
    table = pa.table(people(600)).drop_columns("pay")
    csv.write_csv(table.append_column("id", pa.array([f"{k:04}" for k in range(600)])), path)
    return path


@pytest.fixture
def model(done, data, tmp_path):
    path = tmp_path / "people.model"
    done("train", data, "-t", "rich", "--ignore", "id", "-o", path, "-q", *LEARNER)
    return path


def predicted(done, *arguments, command="predict"):
    out, _ = done(command, *arguments)
    return csv.read_csv(io.BytesIO(out.encode()), convert_options=csv.ConvertOptions(column_types={"id": pa.string()}))


def test_ids_come_first_and_as_they_are_written(done, data, model, tmp_path):
    text = data.read_text().splitlines()
    text[3] = text[3].replace(",", ",too,many,", 1)
    (tmp_path / "bad.csv").write_text("\n".join(text) + "\n")
    table = predicted(done, model, tmp_path / "bad.csv", "--id", "id", "--id", "age", "--on-bad-row", "skip")
    assert table.column_names[:3] == ["id", "age", "row"]
    assert table["id"].to_pylist() == [f"{k:04}" for k in range(600) if k != 2]
    assert [number - 1 for number in table["row"].to_pylist()] == [int(own) for own in table["id"].to_pylist()]
    csv_table = csv.read_csv(data, convert_options=csv.ConvertOptions(column_types={"id": pa.string()}))
    coded = csv_table.set_column(3, "prediction", csv_table["id"].dictionary_encode())
    parquet.write_table(coded, tmp_path / "d.parquet", row_group_size=100)
    _, err = done("predict", model, tmp_path / "d.parquet", "--id", "prediction", "-o", tmp_path / "o.parquet")
    found = parquet.read_table(tmp_path / "o.parquet")
    assert found.column_names[:2] == ["prediction'", "prediction"]
    assert found["prediction'"].to_pylist() == csv_table["id"].to_pylist()


@pytest.mark.parametrize("price", [lambda k: k % 2, lambda k: k * 1.25, lambda k: k % 2 == 0])
def test_rows_to_predict_with_any_target(run, done, tmp_path, price):
    def rows(path, price):
        path.write_text("".join(["size,price\n", *(f"{k % 7}.5,{price(k)}\n" for k in range(200))]))
        return path

    model, known, unknown = (tmp_path / name for name in ("m", "known.csv", "unknown.csv"))
    done("train", rows(known, price), "-t", "price", "-o", model, "-q", *LEARNER)
    assert predicted(done, model, rows(unknown, lambda k: "TBD")) == predicted(done, model, known)
    assert predicted(done, model, unknown, "--id", "price")["price"].to_pylist() == ["TBD"] * 200
    assert "row 1, column 'price': 'TBD' is n" in run("evaluate", model, unknown)[2]
    if price(1) == 1:
        truths = rows(unknown, lambda k: k % 2 == 1)
        tested = [json.loads(run("evaluate", model, data, "--json")[1])["log_loss"] for data in (truths, known)]
        assert tested[0] == tested[1]


def test_unreadable_rows_give_no_predictions_and_no_training(run, done, model, tmp_path):
    (tmp_path / "bad.csv").write_text("age,job,rich\n1,2\n3\n")
    skipped = tmp_path / "bad.csv", "--on-bad-row", "skip"
    out, err = done("predict", model, *skipped)
    assert len(out.splitlines()) == 1 and "2 rows skipped" in err
    for words in ("train", "-t", "rich", "-o", tmp_path / "m"), ("train", "-t", "rich", "-o", "m", "--shuffle"):
        assert "bad.csv: no row could be used: the row has" in run(*words, *skipped)[2]
    assert "bad.csv: no row could be used: the row has" in run("evaluate", model, *skipped)[2]


def test_the_strongest_terms_are_written_and_the_others_summed(done, data, model, tmp_path):
    (tmp_path / "few.csv").write_text("age,job\n30,cook\n31,pilot\n30,clerk\n")  # of which the job tells more

    def explained(*options):
        return predicted(done, model, tmp_path / "few.csv", *options, command="explain").to_pandas()

    whole, one, none = explained(), explained("--top", 1), explained("--top", 0)
    assert [*one.columns] == ["prediction", "class", "margin", "(constant)", "job", "(other)"]
    assert explained("--top", 2).equals(whole) and [*none.columns] == [*one.columns[:4], "(other)"]
    assert one["(other)"].tolist() == whole["age"].tolist()
    assert none["(other)"].tolist() == pytest.approx((whole["age"] + whole["job"]).tolist())
    assert whole["margin"].tolist() == pytest.approx((none["(constant)"] + none["(other)"]).tolist())
    _, err = done("explain", model, "-", "--top", 1, stdin=b"age,job\n30,cook\n", status=2)
    assert "leave --top out" in err


def test_a_threshold_moves_the_prediction_only(done, data, model):
    plain, moved = predicted(done, model, data), predicted(done, model, data, "--threshold", 0.2)
    p = plain["probability[yes]"].to_numpy()
    assert [own == "yes" for own in moved["prediction"].to_pylist()] == (p >= 0.2).tolist()
    assert moved["probability[yes]"] == plain["probability[yes]"]
    assert moved["prediction"] != plain["prediction"]
    highest = predicted(done, model, data, "--threshold", p.max())["prediction"].to_pylist()
    assert highest.count("yes") == (p == p.max()).sum()
    for wrong in (("--threshold", 1.5), ("--top", 0)):
        done("predict", model, data, *wrong, status=2)


def test_each_line_is_answered_before_the_next_one_comes(run, data, model, tmp_path):
    rows = csv.read_csv(data).slice(0, 20).to_pylist()
    lines = [json.dumps(row).encode() + b"\n" for row in rows]
    (tmp_path / "first.jsonl").write_bytes(b"".join(lines))
    header, *expected = run("predict", model, tmp_path / "first.jsonl")[1].splitlines()
    command = [sys.executable, "-m", "tunefree", "predict", str(model), "-"]
    with subprocess.Popen(command, stdin=-1, stdout=-1, bufsize=0) as process:

        def answer(*parts):
            for part in parts:
                process.stdin.write(part)
            return process.stdout.readline().decode().strip()

        assert answer(lines[0][:9], lines[0][9:]) == header
        assert answer() == expected[0]
        for line, prediction in zip(lines[1:], expected[1:], strict=True):
            assert answer(line) == prediction
        process.stdin.close()
        assert process.stdout.read() == b"" and process.wait() == 0
