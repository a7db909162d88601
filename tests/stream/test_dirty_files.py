"""Dirty files, by the table of :mod:`tests.stream.dirty_files`, through Python, the command line and serve."""

import csv
import warnings

import pytest

import tunefree
from tests.stream.dirty_files import DIRTY, Dirty
from tests.stream.tabular import named_rows
from tunefree.core.errors import DataWarning, TunefreeError
from tunefree.core.parameters import as_options
from tunefree.model_files.plan import Plan
from tunefree.serving.service import Service
from tunefree.stream.batch import BadRows
from tunefree.stream.source import open_source

READ = [pytest.param(dirty, id=dirty.name) for dirty in DIRTY if not dirty.error]
REFUSED = [pytest.param(dirty, id=dirty.name) for dirty in DIRTY if dirty.error]


def written(dirty: Dirty, folder) -> str:
    path = folder / f"dirty{dirty.ending}"
    path.write_bytes(dirty.content)
    return str(path)


def source_of(dirty: Dirty, path: str):
    return open_source(path, encoding=dirty.encoding)


def plan_of(dirty: Dirty) -> Plan:
    return Plan(target=dirty.target, learner="scinol2", **dirty.plan)


def check_notes(notes: list[str], dirty: Dirty) -> None:
    assert len(notes) == len(dirty.notes), notes
    for note, part in zip(notes, dirty.notes, strict=True):
        assert part in note


def check_first_row(dirty: Dirty, path: str) -> None:
    plan, bad = plan_of(dirty), BadRows(skip=True)
    [chunk] = source_of(dirty, path).chunks(bad=bad, column_types=plan.column_types, target=dirty.target)
    encoder = source_of(dirty, path).encoder(chunk, dirty.target, column_types=plan.column_types)
    first = named_rows(encoder, encoder.encode(chunk, True, bad))[0]
    assert {name: first.get(name) for name in dirty.first} == pytest.approx(dirty.first, abs=1e-3)


def train_in_python(dirty: Dirty, path: str):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        trained = tunefree.train(source_of(dirty, path), plan=plan_of(dirty)).trained_
    check_notes([str(warning.message) for warning in caught if warning.category is DataWarning], dirty)
    return trained


def options_of(dirty: Dirty, *names: str) -> list[str]:
    said = {"encoding": dirty.encoding} | {name: dirty.plan[name] for name in names if name in dirty.plan}
    words = {name: [value] if isinstance(value, str) else value for name, value in said.items() if value}
    return [word for name, several in words.items() for word in (f"--{name.replace('_', '-')}", *several)]


def train_on_the_command_line(run, dirty: Dirty, path: str, model: str):
    said = [*options_of(dirty, *dirty.plan), "--learner", "scinol2", "-o", model]
    status, out, err = run("train", path, "-t", dirty.target, *said)
    notes = dict.fromkeys(line for line in (out + err).splitlines() if line.startswith("note: "))  # columns' come twice
    return status, [*notes], err


@pytest.mark.parametrize("dirty", READ)
def test_dirty_files_are_read_as_they_are_meant(run, tmp_path, dirty):
    model, path = str(tmp_path / "m.model"), written(dirty, tmp_path)
    check_first_row(dirty, path)
    trained = train_in_python(dirty, path)
    assert {column.name: column.kind for column in trained.encoder.columns} == dirty.kinds
    assert trained.progress.progressive[0].rows == dirty.rows
    status, notes, err = train_on_the_command_line(run, dirty, path, model)
    assert status == 0, err
    check_notes(notes, dirty)
    status, _, err = run("predict", model, path, *options_of(dirty, "on_bad_row"), "-o", tmp_path / "p.csv")
    assert status == 0, err
    predicted = list(csv.DictReader((tmp_path / "p.csv").open()))
    assert len(predicted) == dirty.rows
    with Service(trained) as service:
        [answer] = service.predict([dirty.sent])
    for label, probability in answer["probabilities"].items():
        assert float(predicted[0][f"probability[{label}]"]) == pytest.approx(probability)


@pytest.mark.parametrize("dirty", REFUSED)
def test_dirty_files_that_cannot_be_read_are_errors_that_tell_where(run, tmp_path, dirty):
    path = written(dirty, tmp_path)
    with pytest.raises(TunefreeError) as raised:
        tunefree.train(source_of(dirty, path), plan=plan_of(dirty))
    assert dirty.error in as_options(str(raised.value)) and "--" not in str(raised.value)
    status, _, err = train_on_the_command_line(run, dirty, path, str(tmp_path / "m.model"))
    assert status == 2
    assert dirty.error in " ".join(err.split())
