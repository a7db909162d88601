"""What the C library does with the memory of arrays."""

import os
import subprocess
import sys

import pytest

FREE_ONE_OF_MANY = """
import os, sys
import numpy as np
from tunefree.core import machine

def held():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20

given_back = len(sys.argv) > 1 and machine.give_back_large_arrays()
first = np.ones(2**21)  # 16 MiB: once it is freed, the C library keeps what arrays up to this size leave free
del first
before, kept = held(), []
arrays = [(np.ones(2**20), kept.append(np.ones(2**12)))[0] for _ in range(8)]  # 8 MiB each, small ones between
del arrays
print(given_back, held() - before)
"""


def left(*arguments, **setting):
    """Whether arrays are given back, and MiB that are held after large arrays were freed."""
    bare = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    command = [sys.executable, "-c", FREE_ONE_OF_MANY, *arguments]
    told = subprocess.run(command, env=bare | setting, capture_output=True, text=True, check=True).stdout.split()
    return told[0] == "True", float(told[1])


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="a setting of glibc")
def test_large_arrays_between_small_ones_are_given_back():
    done, held = left("set")
    if not done:
        pytest.skip("another C library")
    assert held < 8.0 < left()[1]


def test_a_setting_of_the_user_stays():
    assert not left("set", MALLOC_MMAP_THRESHOLD_="8388608")[0]
