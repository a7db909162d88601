"""Answers line by line: rows of standard input are predicted as they come."""

import subprocess
import sys

import pyarrow as pa
import pytest
from pyarrow import csv

from tests.workflows.test_training import people


@pytest.fixture
def files(tmp_path, run):
    """A model of one learner, and its rows as CSV and as JSON lines."""
    table = pa.table(people()).drop_columns("pay")
    csv.write_csv(table, tmp_path / "people.csv")
    rows = table.to_pandas().to_json(orient="records", lines=True)
    (tmp_path / "people.jsonl").write_text(rows)
    model = tmp_path / "people.model"
    assert run("train", tmp_path / "people.csv", "-t", "rich", "--learner", "scinol2", "-o", model)[0] == 0
    return tmp_path


@pytest.mark.parametrize("name", ["people.jsonl"])
def test_each_line_is_answered_before_the_next_one_comes(files, name, run):
    lines = (files / name).read_bytes().splitlines(keepends=True)[:20]
    (files / f"first-{name}").write_bytes(b"".join(lines))
    expected = run("predict", files / "people.model", files / f"first-{name}")[1].splitlines()
    header, n_headers = expected.pop(0), len(lines) - len(expected)
    command = [sys.executable, "-m", "tunefree.cli", "predict", str(files / "people.model"), "-"]
    with subprocess.Popen(command, stdin=-1, stdout=-1, bufsize=0) as process:

        def answer(*parts):
            for part in parts:
                process.stdin.write(part)
            return process.stdout.readline().decode().strip()

        cut = len(lines[n_headers]) // 2
        assert answer(*lines[:n_headers], lines[n_headers][:cut], lines[n_headers][cut:]) == header
        assert answer() == expected[0]
        for line, prediction in zip(lines[n_headers + 1 :], expected[1:], strict=True):
            assert answer(line) == prediction
        process.stdin.close()
        assert process.stdout.read() == b"" and process.wait() == 0
