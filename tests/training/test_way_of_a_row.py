"""The way of a row: from ``tunefree.train`` to a learner's kernel it is as long as ``docs/architecture.md`` says.

The functions that matter are those of the package on the stack as the kernel of a member's learner is called. Functions
inside others and those of ``core/threads.py`` are left out: they say in which thread something is done.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import tunefree
from tunefree.compiled.functions import Compiled
from tunefree.core import threads
from tunefree.pool.member_rows import MemberRows

SOURCE = str(Path(tunefree.__file__).parent)
MOST = 10
COMPILED = (
    "pool/linear_members.py Member.learn",
    "pool/member_rows.py MemberRows.follow",
)  # which call the kernels of learners


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


@pytest.fixture(scope="module")
def ways(tmp_path_factory):
    path = tmp_path_factory.mktemp("way") / "rows.parquet"
    X = np.random.default_rng(0).normal(size=(1000, 3))
    parquet.write_table(pa.table({f"x{j}": X[:, j] for j in range(3)} | {"y": (X[:, 0] > 0).astype(int)}), path)
    seen = set()

    def traced(call):
        def trace(*values):
            functions = way()
            if functions[-1] in COMPILED and not any("Snapshot" in function for function in functions):
                seen.add(tuple(functions))
            return call(*values)

        return trace

    with pytest.MonkeyPatch.context() as patch, threads.at_most(1):
        patch.setattr(Compiled, "__call__", traced(Compiled.__call__))
        patch.setattr(MemberRows, "_run", traced(MemberRows._run))
        tunefree.train(path, target="y")
    return seen


@pytest.mark.skipif(sys.version_info < (3, 11), reason="names of classes are not in the code of their functions")
def test_the_way_to_a_weight_is_short(ways):
    learned = [functions for functions in ways if functions[2].startswith("training/one_pass.py")]
    assert {functions[-1] for functions in learned} == set(COMPILED)
    assert max(map(len, learned)) <= MOST
