"""Functions that are called by address, compiled by different processes and loaded by one."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

FOUND = """
import sys
from tunefree.losses import Logistic
from tunefree.losses.linked import find_all
from tunefree.losses.objectives import Binary, Multinomial

made = {"binary": Binary(Logistic(), 1.0), "multinomial": Multinomial(1.0)}
print(*(address for name in sys.argv[1:] for address in find_all(made[name])))
"""


@pytest.mark.slow
def test_functions_of_two_objectives_stay_apart_whichever_processes_compiled_them(tmp_path):
    """By equal names one took the place of the other: gradients of three classes went where there was room for one."""
    told = {"env": os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}, "check": True, "capture_output": True, "text": True}
    for names in (["binary"], ["multinomial"], ["binary", "multinomial"]):
        done = subprocess.run([sys.executable, "-c", FOUND, *names], **told)
    addresses = done.stdout.split()
    assert len(addresses) == len(set(addresses)) == 10
