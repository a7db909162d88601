"""Parts of entry points: compiled with these, never by themselves."""

from __future__ import annotations

import numpy as np
import pytest
from numba.core import event

from tunefree.core import compiled
from tunefree.core.code_parts import Part, PartLibrary


@compiled.inline
def doubled(x):
    return 2.0 * x


@compiled.inline
def raised(x):
    return doubled(x) + 1.0


@compiled.inline
def squared(x):
    return doubled(x) * doubled(x) / 4.0


@compiled.entry
def total(values):
    found = 0.0
    for i in range(len(values)):
        found += raised(values[i]) + squared(values[i])
    return found


def test_an_entry_point_has_all_that_its_parts_call():
    values = np.arange(5.0)
    assert total(values) == (2.0 * values + 1.0 + values**2).sum()


def test_parts_have_no_machine_code_of_their_own():
    total(np.arange(5.0))
    for part in (doubled, raised, squared):
        libraries = [found._asdict()["library"] for found in part._compiled.overloads.values()]
        assert len(libraries) == 1 and isinstance(libraries[0], PartLibrary)
        assert libraries[0].get_pointer_to_function(next(libraries[0]._final_module.functions).name) == 0


def test_called_from_python_a_part_is_python():
    with event.install_recorder("numba:compile") as heard:
        assert squared(3.0) == 9.0
    assert heard.buffer == []
    assert isinstance(squared, Part) and squared.__name__ == "squared" and squared.py_func(2.0) == 4.0


@pytest.mark.parametrize("x", [1e300, -1e-300, np.inf, np.nan])
def test_a_part_is_the_same_in_compiled_code(x):
    with np.errstate(over="ignore", invalid="ignore"):
        expected = raised(x) + squared(x)
    np.testing.assert_array_equal(total(np.array([x])), expected)
