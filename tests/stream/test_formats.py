"""The registry of formats, and formats that are not in the package."""

import gzip

import numpy as np
import pytest

import tunefree
from tests.extending import run_page
from tunefree.core.errors import DataError, ModelError
from tunefree.model_files.trained import Trained
from tunefree.stream import formats
from tunefree.stream.batch import BadRows
from tunefree.stream.formats import register

from .tabular import text

LTSV = run_page("format.md", until="register(LTSV)")["LTSV"]
PEOPLE = [(20 + i % 50, "cook" if i % 3 else "clerk", "yes" if i % 50 > 20 else "no") for i in range(300)]
CONTENT = "".join(f"age:{age}\tjob:{job}\trich:{rich}\n" for age, job, rich in PEOPLE)


@pytest.fixture
def registry(monkeypatch):
    """The registry as it was, once the test is over."""
    monkeypatch.setattr(formats, "_formats", formats._formats)


@pytest.mark.parametrize(
    ("line", "format"),
    [
        ('{"a": 1}', "json"),
        ('{"a":1 b:2', "json"),
        ("1 2:3", "svmlight"),
        ("1 #", "svmlight"),
        ("1,2 2:3", "csv"),
        ("1 2:3 # a comment", None),
        ("1 |f:2 a:3", "svmlight"),
        ("1 |f a b:2", "vw"),
        ("1 2.0 'tag|f a,b", "csv"),
        ("|f a", "vw"),
        ("a,b", "csv"),
        ("a b\tc", "csv"),
        ("a", "csv"),
        ("a b", None),
        ("", None),
    ],
)
def test_formats_by_their_first_line(line, format):
    found = formats.by_line(line)
    assert (found and found.name) == format


@pytest.mark.parametrize(
    ("name", "format"), [("a.ltsv", None), ("a.LTSV.gz", None), ("a.log", None), ("a.csv", "ltsv")]
)
def test_a_new_format_is_known_by_name_by_extension_and_by_content(registry, tmp_path, name, format):
    register(LTSV)
    file = text(tmp_path / name, gzip.compress(CONTENT.encode()) if name.endswith(".gz") else CONTENT)
    source = tunefree.open_source(file, format)
    assert (source.format, source.kind) == ("ltsv", "table")
    found = [record for chunk in source.chunks() for record in chunk.data.to_pylist()]
    assert found == [{"age": age, "job": job, "rich": rich} for age, job, rich in PEOPLE]
    assert source.progress()(next(source.chunks()).position) == (None if name.endswith(".gz") else 1.0)


def test_files_of_two_formats(tmp_path):
    paths = [text(tmp_path / "a.csv", "a,y\n1,2\n"), text(tmp_path / "b.jsonl", '{"a": 1, "y": 2}\n')]
    with pytest.raises(DataError, match=r"b\.jsonl: .*a\.csv is read as csv, and this file has another format"):
        tunefree.train(paths, target="y")


def test_formats_that_contradict_themselves_are_refused(registry):
    for options in ({"reader": "a:B"}, {"text": False}, {"name": "table"}):
        with pytest.raises(ValueError, match="give a reader .* or an encoder|only a format of text has an encoder"):
            register(formats.Format(**{"name": "own", "title": "own", "encoder": "a:B"} | options))


def test_a_new_encoder_of_lines_learns_and_must_be_known_to_load(registry, tmp_path):
    run_page("format.md")  # which registers libfm, and runs as it stands
    content = "\n".join(f"{1 + i % 5} {i % 7}:1 {7 + i % 5}:1" for i in range(100)) + "\n"
    source = tunefree.open_source(text(tmp_path / "a.libfm", content))
    trained = tunefree.train(source, learner="scinol2", task="regression").trained_
    assert trained.kind == source.kind == "libfm" and set(map(str, range(12))) <= set(trained.encoder.names())
    trained.save(tmp_path / "m")
    again = Trained.load(tmp_path / "m")
    batches = [one.encoder.encode(next(source.chunks()), False, BadRows()) for one in (trained, again)]
    features, expected = (batch.rows.features.tolist() for batch in batches)
    assert features == expected and np.all(features)
    with pytest.raises(DataError, match="libfm text has no columns to name"):
        tunefree.train(source, learner="scinol2", sample_weight="w")
    formats._formats = tuple(format for format in formats._formats if format.name != "libfm")
    with pytest.raises(ModelError, match="the model reads libfm, and no such format is known"):
        Trained.load(tmp_path / "m")
