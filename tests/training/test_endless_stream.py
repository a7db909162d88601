"""A stream of new categories that the command learns from a pipe, in a process with its own peak of memory."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("resource", reason="the peak of a process is known on Unix")
MEMORY = Path(__file__).parents[2] / "benchmarks" / "memory.py"


@pytest.mark.slow
def test_a_stream_of_new_categories_takes_little_memory_and_loses_little():
    command = [sys.executable, str(MEMORY), "--endless", "300000", "8M", "none"]
    table = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    cells = [[cell.strip().replace(",", "") for cell in line.strip("|").split("|")] for line in table[2:]]
    (_, _, peak, loss, known, forgotten), (_, _, _, unlimited_loss, all_known, _) = cells
    assert int(peak) * 2**20 < 230e6 and float(loss) < 1.01 * float(unlimited_loss)
    assert int(forgotten) > 10_000 and int(known) < int(all_known) / 2
