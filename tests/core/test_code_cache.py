"""Compiled code on disk is found by what it was made from."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.util import cache_from_source
from pathlib import Path

import pytest

from tests.test_structure import FILES, SOURCE, imported, room_of
from tunefree.cli import app as cli_app
from tunefree.core import compilation
from tunefree.core.code_cache import ROOMS

# A process that has imported and begun what takes long. It forks for each line read: a new Python with another package.
NURSERY = """
import os, sys
import numba, numpy, scipy.special
numba.njit(lambda array: array.sum())(numpy.ones(2))
for line in sys.stdin:
    if os.fork() == 0:
        exec(eval(line))
        sys.stdout.flush()
        os._exit(0)
    if os.wait()[1]:
        break
"""
MEASURE = """
import sys
sys.path.insert(0, {folder!r})
import numpy as np
from tunefree import losses
from tunefree.losses import objectives
{more}
answer = np.empty(1)
objectives.measure(objectives.Binary({loss}, 0.0), np.ones(1), np.zeros((1, 1)), answer)
print(answer[0], len(objectives.measure.overloads), sum(objectives.measure.stats.cache_hits.values()))
"""
OUTSIDER = """
from typing import NamedTuple
from tunefree.losses import value, slope
class Mine(NamedTuple):
    lipschitz: float = 1.0
@value.register(Mine)
def _value(loss, y, p):
    return {answer}
@slope.register(Mine)
def _slope(loss, y, p):
    return 0.0
"""


@pytest.fixture(scope="module")
def nursery():
    hidden = ("PYTHONPATH", "NUMBA_CACHE_DIR")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    command = [sys.executable, "-P", "-c", NURSERY]
    with subprocess.Popen(command, stdin=-1, stdout=-1, text=True, cwd="/", env=environment) as process:
        yield process
        process.stdin.close()


@pytest.fixture
def python(tmp_path, nursery):
    """Runs a new Python with a copy of the package, without compiled code at first; (answer, times compiled)."""
    package = tmp_path / "tunefree"
    shutil.copytree(SOURCE, package, ignore=shutil.ignore_patterns("__pycache__"))

    def run(loss="losses.Hinge()", more=""):
        nursery.stdin.write(repr(MEASURE.format(folder=str(tmp_path), loss=loss, more=more)) + "\n")
        nursery.stdin.flush()
        value, overloads, hits = nursery.stdout.readline().split()
        return float(value), int(overloads) - int(hits)

    run.package = package
    return run


def files(python, room):
    return {path.name for path in (python.package / room / "__pycache__").glob("*.nbc")}


def write(path: Path, text: str) -> None:
    """Write a source file; Python takes bytecode for fresh if size and second of the source are the same."""
    path.write_text(text)
    Path(cache_from_source(path)).unlink(missing_ok=True)


def edit(path: Path, old: str, new: str) -> None:
    assert old in path.read_text()
    write(path, path.read_text().replace(old, new))


@pytest.mark.parametrize("room", ROOMS)
def test_entry_points_are_made_from_the_rooms_digested(room):
    for path in FILES:
        if path.parent != SOURCE and room_of(path) in ROOMS[room]:
            assert {module.split(".")[0] for module in imported(path)} <= {*ROOMS[room]}, path


def test_rooms_with_entry_points_are_known():
    names = ("@compiled.entry", "@compiled.summing")
    assert {room_of(path) for path in FILES if any(name in path.read_text() for name in names)} == {*ROOMS}


def test_code_is_compiled_anew_only_if_its_sources_changed(python):
    assert python() == (1.0, 1)
    before = files(python, "losses")
    assert len(before) == 1
    assert python() == (1.0, 0)
    for path in ("cli/app.py", "estimators/base.py", "early_stopping/gram.py", "stream/vw.py"):
        (python.package / path).write_text((python.package / path).read_text() + "\n# a comment\n")
    assert python() == (1.0, 0)
    edit(python.package / "losses" / "hinge.py", "max(0.0, 1.0 - y * ", "max(0.0, 3.0 - y * ")
    assert python() == (3.0, 1)
    after = files(python, "losses")
    assert len(after) == 1 and after != before  # what the other version left is removed
    assert python("losses.SquaredHinge()")[1] == 1
    assert len(files(python, "losses")) == 2 and after <= files(python, "losses")
    assert python() == (3.0, 0)


def test_only_files_of_the_same_entry_point_are_removed(python):
    python()
    folder = python.package / "losses" / "__pycache__"
    (name,) = files(python, "losses")
    key = name.removeprefix("objectives.measure_").partition("-")[0]
    other = "0" * len(key)
    stale = [name.replace(key, other), f"objectives.measure_{other}-77.py{name.split('.py')[1].replace('nbc', 'nbi')}"]
    kept = [
        name.replace("measure", "measure_twice").replace(key, other),
        name.replace(key, other).replace(".py", ".py2"),
        name.replace(key, other) + ".tmp.0123",
        "objectives.measure_notes.txt",
    ]
    for made in stale + kept:
        (folder / made).touch()
    python()
    assert all((folder / made).exists() for made in stale)  # nothing is looked for as long as nothing is compiled
    python("losses.SquaredHinge()")
    assert not any((folder / made).exists() for made in stale)
    assert all((folder / made).exists() for made in [name, *kept])


def test_a_damaged_or_missing_file_is_compiled_anew(python):
    assert python() == (1.0, 1)
    (path,) = (python.package / "losses" / "__pycache__").glob("*.nbc")
    path.write_bytes(path.read_bytes()[:100])
    assert python() == (1.0, 1)
    path.unlink()
    assert python() == (1.0, 1)


def outsider(python, answer):
    write(python.package.parent / "outsider.py", OUTSIDER.format(answer=answer))


def test_code_from_outside_is_never_stale(python):
    outsider(python, "4.0")
    for _ in range(2):
        assert python("outsider.Mine()", "import outsider") == (4.0, 1)
    assert not files(python, "losses")
    outsider(python, "5.0")
    assert python("outsider.Mine()", "import outsider") == (5.0, 1)
    assert python(more="import outsider") == (1.0, 1) and python(more="import outsider") == (1.0, 0)


def test_code_from_outside_is_cached_by_the_files_named(python):
    more = (
        "import outsider; from tunefree.core import code_cache; code_cache.cached_by(outsider.Mine, outsider.__file__)"
    )
    outsider(python, "4.0")
    assert python("outsider.Mine()", more) == (4.0, 1)
    assert python("outsider.Mine()", more) == (4.0, 0)
    outsider(python, "5.0")
    assert python("outsider.Mine()", more) == (5.0, 1)
    assert python("outsider.Mine()", "import outsider") == (5.0, 1)


def test_a_body_from_outside_for_a_class_of_the_package_ends_caching(python):
    assert python() == (1.0, 1)
    more = "losses.value.register(losses.Hinge)(lambda loss, y, p: {})"
    assert python(more=more.format(7.0)) == (7.0, 1)
    assert python(more=more.format(8.0)) == (8.0, 1)
    assert python() == (1.0, 0)


def test_a_word_when_code_is_compiled_and_none_when_it_is_on_disk(tmp_path):
    script = (
        "import numpy as np; from tunefree.core import compilation\n"
        "compilation.announce(lambda: print('compiling'))\n"
        "from tunefree.core.rows import dense; from tunefree.model import views\n"
        "views.transform(views.Centred.create(1), dense([[1.0]]), np.ones(1))"
    )
    environment = os.environ | dict.fromkeys(("NUMBA_CACHE_DIR", "TUNEFREE_CACHE"), str(tmp_path))
    said = [
        subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
        for _ in range(2)
    ]
    assert [done.stdout for done in said] == ["compiling\n", ""]


def test_the_command_line_says_so_on_standard_error(monkeypatch, capsys):
    monkeypatch.setattr(cli_app, "app", compilation.begins)
    monkeypatch.setattr("sys.argv", ["tunefree", "train"])
    cli_app.main()
    assert capsys.readouterr() == ("", f"tunefree: {compilation.NOTICE}\n")
    compilation.begins()
    assert capsys.readouterr() == ("", "")
