"""Shards are cut by content, and their dictionaries are united as one reader would have made them."""

import gzip
import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from tests.distributed.data import Here, csv_of, learned, parquet_of, people, shards
from tests.workflows.test_training import model_bytes
from tunefree.core.errors import DataError
from tunefree.core.rows import together
from tunefree.distributed import rows as shard_rows
from tunefree.distributed import training
from tunefree.distributed.shards import Cut
from tunefree.model_files.plan import Plan
from tunefree.stream.batch import BadRows
from tunefree.stream.source import open_source
from tunefree.training.reading import begin


def read_all(path, plan, cut):
    """The encoder of all shards, and their rows as models take them, with an empty sample."""
    cut_up = shards(path, cut)
    beginning = shard_rows.begun(cut_up[0], plan)
    union = shard_rows.united(beginning, [shard_rows.surveyed(part, beginning, False) for part in cut_up])
    whole = beginning._replace(encoder=union.encoder.state())
    sizes = shard_rows.Sizes(union.offsets[-1], 0, 0)
    ready = [
        shard_rows.prepared(shard, whole, union.classes, offset, sizes)
        for shard, offset in zip(cut_up, union.offsets, strict=False)
    ]
    return union, shard_rows.gathered([part.rest for part in ready]), cut_up


def same_as_one_reader(path, plan, cut):
    """Compare what shards give with what one reader gives; returns the shards."""
    union, rows, cut_up = read_all(path, plan, cut)
    reading = begin(open_source(path), plan, BadRows())
    batches = list(reading.batches)
    one = together([batch.rows for batch in batches])
    assert reading.encoder.names() == union.encoder.names()
    for name, part in one._asdict().items():
        if name in ("numbers", "codes", "pointers", "features", "values"):
            np.testing.assert_array_equal(part, getattr(rows.rows, name))
    return cut_up


def test_parquet_is_cut_between_row_groups_and_united_as_one_reader_would(tmp_path):
    path = parquet_of(tmp_path, people(), 7)
    assert len(same_as_one_reader(path, Plan(target="rich"), Cut(1))) == 7
    assert len(shards(path, Cut(400))) == 2


def test_a_long_row_group_is_cut_into_equal_parts(tmp_path, monkeypatch):
    path = parquet_of(tmp_path, people(), 2)  # row groups of 600 rows
    cut_up = same_as_one_reader(path, Plan(target="rich"), Cut(1, most_rows=250))
    assert [piece.rows for shard in cut_up for piece in shard.pieces] == [200] * 6
    assert len(shards(path, Cut(10**6, most_rows=250))) == 1
    monkeypatch.setattr("tunefree.stream.tables.CHUNK_ROWS", 70)  # of which a part has several, and not all of the last
    same_as_one_reader(path, Plan(target="rich"), Cut(1, most_rows=250))
    path.write_bytes(b"PAR1 and no more")
    with pytest.raises(DataError, match="not a whole Parquet file"):
        shards(path)


def test_text_is_cut_at_line_ends_wherever_ranges_end(tmp_path):
    notes = pa.array(['a "quoted"\nline, with a comma' if k % 3 else "" for k in range(300)])
    path = csv_of(tmp_path, people(300).append_column("note", notes))
    plan = Plan(target="rich", categorical=("note",))
    for size in (1009, 4096, 10**6):
        assert len(same_as_one_reader(path, plan, Cut(1, size))) > (size < 5000)
    (tmp_path / "people.csv.gz").write_bytes(gzip.compress(path.read_bytes()))
    assert len(same_as_one_reader(tmp_path / "people.csv.gz", plan, Cut(1, 1009))) == 1


@pytest.mark.parametrize("escape", [None, "backslash"])
def test_escaped_quotes_end_no_line_wherever_ranges_end(tmp_path, escape):
    rows = [f'{k},"a \\"{"b" * (k % 5)}\n\\"\\" c\\\\",{"no" if k % 3 else "yes"}' for k in range(60)]
    (tmp_path / "a.csv").write_text("\n".join(["x,note,rich", *rows]) + "\n")
    source = open_source(tmp_path / "a.csv", escape=escape)
    for size in (40, 61, 82):
        cut_up = shards(source, Cut(1, size))
        starts = [piece.start for shard in cut_up for piece in shard.pieces]
        chunks = [next(source.chunks(start)) for start in starts]
        assert [chunk.row for chunk in chunks] == [int(chunk.data["x"][0].as_py()) + 1 for chunk in chunks]
        assert len(starts) > 10 and all(piece.file.escape == escape for shard in cut_up for piece in shard.pieces)


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("a.svm", "{} {}:0.5 900:{}"),
        ("a.vw", "{} |f word{}:0.5 other:{}"),
        ("a.jsonl", '{{"y": "c{}", "w": "v{}", "x": {}}}'),
    ],
)
def test_lines_of_each_format_are_united(tmp_path, name, line):
    path = tmp_path / name
    path.write_text("".join(line.format(1 if k % 3 else -1, 3 + (k * 7) % 50, k + 0.5) + "\n" for k in range(200)))
    plan = Plan(target="y" if name == "a.jsonl" else None)
    assert len(same_as_one_reader(path, plan, Cut(1, 700))) > 3


def test_a_column_that_comes_later_is_a_column_of_all_shards(tmp_path):
    rows = [json.dumps({"y": "ab"[k % 2], "x": k}) for k in range(100)]
    rows += [json.dumps({"y": "ab"[k % 2], "x": k, "more": f"m{k % 3}"}) for k in range(100)]
    for n_files in (1, 2):
        for k in range(n_files):
            (tmp_path / f"{k}.jsonl").write_text("\n".join(rows[100 * k : 200 // n_files * (k + 1)]) + "\n")
        same_as_one_reader(tmp_path, Plan(target="y"), Cut(1, 600))


def test_a_shard_that_cannot_be_read_is_named_and_skipped_if_asked(tmp_path, monkeypatch):
    path = csv_of(tmp_path, people(300))
    text = path.read_text().splitlines()
    text[200] = text[200].split(",")[0].replace(".", "x") + "," + ",".join(text[200].split(",")[1:])
    path.write_text("\n".join(text) + "\n")
    cut_up = shards(path, Cut(1, 2048))
    beginning = shard_rows.begun(cut_up[0], Plan(target="rich", numeric=("age",)))
    problems = {part: shard_rows.surveyed(part, beginning, True).problem for part in cut_up}
    ((bad, problem),) = [(part, problem) for part, problem in problems.items() if problem]
    assert "row 200" in problem and str(path) in problem
    with pytest.raises(DataError, match="shard .* of .*row 200.*on_bad_shard='skip'"):
        shard_rows.surveyed(bad, beginning, False)
    monkeypatch.setattr(training, "SAMPLE", 100)
    lines, plan, others = [], Plan(target="rich", numeric=("age",)), [part for part in cut_up if part is not bad]
    whole = learned(path, plan, tell=lines.append, cut=Cut(1, 2048), skips=True)
    rest = training.learn(Here(), training.Parts(others, [[] for _ in others]), plan, lines.append)
    assert lines[0] == f"skipped: {problem}" and 200 < whole.progress.progressive[0].rows < 300
    assert model_bytes(whole, tmp_path / "m") == model_bytes(rest, tmp_path / "m")


def test_rows_that_cannot_be_used_are_counted_as_by_one_reader(tmp_path):
    path = csv_of(tmp_path, people(300).append_column("number", pa.array(range(1, 301))))
    lines = path.read_text().splitlines()
    for number in (60, 200, 250):
        lines[number] = f"about {number}," + lines[number].split(",", 1)[1]
    lines[150] += ",more"
    path.write_text("\n".join(lines) + "\n")
    plan = Plan(target="rich", numeric=("age",), on_bad_row="skip")
    union, _, cut_up = read_all(path, plan, Cut(1, 2048))
    bad = plan.bad_rows()
    list(begin(open_source(path), plan, bad).batches)
    assert len(cut_up) > 2 and union.skipped.count == 4
    assert [(oddity.column, oddity.rows) for oddity in union.skipped.oddities] == [("number", 0)]
    first = [sorted(part.reasons, key=lambda reason: reason.row) for part in (union.skipped, bad.tally)]
    assert first[0] == first[1] and sorted(union.skipped.first) == sorted(bad.tally.first)


@pytest.mark.parametrize(("rows", "size"), [(1000, 90), (7, 7), (5, 20), (10, 1)])
def test_a_sample_is_the_same_however_rows_are_cut_and_one_of_each_stretch(rows, size):
    whole = shard_rows.drawn(rows, size, 0, rows)
    parts = [shard_rows.drawn(rows, size, start, min(3, rows - start)) for start in range(0, rows, 3)]
    np.testing.assert_array_equal(np.concatenate(parts), whole)
    assert whole.sum() == min(rows, size)
    assert rows <= size or np.diff(np.flatnonzero(whole), prepend=0).max() <= 2 * -(-rows // size)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_shards_have_the_columns_of_folders_and_no_index_of_a_frame(tmp_path, kind):
    frame = people(900).to_pandas()
    frame = frame.set_index(pd.Index(np.arange(900)[::-1] ** 2))
    for year in (2023, 2024):
        folder = tmp_path / f"year={year}"
        folder.mkdir()
        part = frame.iloc[year % 2 :: 2]
        part.to_csv(folder / "a.csv", index=False) if kind == "csv" else part.to_parquet(
            folder / "a.parquet", row_group_size=100
        )
    plan = Plan(target="rich")
    assert len(same_as_one_reader(tmp_path, plan, Cut(200))) >= 2
    names = begin(open_source(tmp_path), plan, BadRows()).encoder.names()
    assert "year" in names and "__index_level_0__" not in names
