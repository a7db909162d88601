"""Ctrl-C in real processes: one line, status 130, and nothing half-written."""

from __future__ import annotations

import signal
import subprocess
import sys

import numpy as np
import pytest

from tests.waiting import until

INTERRUPTED_AT = """
import os, signal, sys

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == {name!r}:
            os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)  # also where the tests themselves ignore it
sys.meta_path.insert(0, Finder())
sys.argv = ["tunefree", "--version"]
from tunefree.__main__ import main
main()
"""


@pytest.mark.parametrize("name", ["typer", "tunefree.compiled.notices"])
def test_while_the_program_is_loaded(name):
    ended = subprocess.run([sys.executable, "-c", INTERRUPTED_AT.format(name=name)], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (130, "tunefree: interrupted; nothing was written\n")


@pytest.mark.slow
@pytest.mark.usefixtures("heard")
def test_while_it_learns(tmp_path):
    x = np.random.default_rng(0).normal(size=400_000)
    (tmp_path / "rows.csv").write_text("x,y\n" + "".join(f"{a:.5f},{a > 0}\n" for a in x))
    command = [sys.executable, "-m", "tunefree", "train", "rows.csv", "-t", "y", "-o", "m"]
    command += ["--save-every", "4000"]  # it ends by the signal, long before its rows do
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until((tmp_path / "m.checkpoint").exists)
    process.send_signal(signal.SIGINT)
    out, told = process.communicate()
    told = [line for line in told.splitlines() if line.startswith("tunefree: interrupted")]
    assert process.returncode == 130 and not out
    assert len(told) == 1 and "m.checkpoint holds the model after" in told[0]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.checkpoint", "rows.csv"]
