"""The way of a row: from ``tunefree.train`` to a learner's kernel it is as long as ``docs/architecture.md`` says.

The functions that matter are those of the package on the stack as the kernel of a member's learner is called. Functions
inside others and those of ``core/threads.py`` are left out: they say in which thread something is done.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

import tunefree
from tunefree.compiled.functions import Compiled
from tunefree.core import threads

SOURCE = str(Path(tunefree.__file__).parent)
MOST = 11
# What calls the kernels of learners.
COMPILED = ("pool/linear_members.py Member.learn", "generations/leaves.py LivingLeaves.follow")


def way():
    """The functions that matter on the stack, the outermost first, each with its file."""
    functions, frame = [], sys._getframe(2)
    while frame is not None:
        code = frame.f_code
        if code.co_filename.startswith(SOURCE) and "<" not in code.co_qualname:
            file = Path(code.co_filename).relative_to(SOURCE).as_posix()
            functions += [] if file == "core/threads.py" else [f"{file} {code.co_qualname}"]
        frame = frame.f_back
    return functions[::-1]


def test_the_way_to_a_weight_is_short(tmp_path, monkeypatch):
    X = np.random.default_rng(0).normal(size=(1000, 3))
    table = {f"x{j}": X[:, j] for j in range(3)} | {"y": (X[:, 0] > 0).astype(int)}
    parquet.write_table(pa.table(table), tmp_path / "rows.parquet")
    learned, call = set(), Compiled.__call__

    def traced(kernel, *values):
        functions = way()
        if functions[-1] in COMPILED and functions[2].startswith("training/one_pass.py"):
            learned.add(tuple(functions))
        return call(kernel, *values)

    monkeypatch.setattr(Compiled, "__call__", traced)
    with threads.at_most(1):
        tunefree.train(tmp_path / "rows.parquet", target="y")
    assert {functions[-1] for functions in learned} == set(COMPILED) and max(map(len, learned)) <= MOST
