"""Kernels of generations: the same bits as in plain Python."""

import numpy as np
import pytest

from tests.generations.problems import KINDS, TASKS, arrays_in_file, columns, grow, problem
from tunefree.compiled import functions
from tunefree.generations import trees
from tunefree.generations.columns import digests_of
from tunefree.generations.seen import Seen


def grown(kind, task):
    """All arrays of a model, and what it says of rows."""
    rows = problem(task, X=columns(40, seed=2))
    model = grow(kind, rows._replace(weights=np.linspace(0.5, 1.5, 40)), 1)
    fresh = columns(7, seed=3)
    arrays = [*arrays_in_file(model).values(), *model.apply(fresh)]
    if kind != "linear":
        means = trees.node_means(model, rows.columns, model.values.astype(float))
        terms = np.zeros((7, 5, means.shape[1]))
        trees.add_paths(model, means, fresh, np.arange(5), terms)
        arrays += [means, terms]
    return arrays


def seen():
    """Digests of rows, and which of them came before."""
    digests, observations = digests_of(columns(40), [1, 2, 3, 4, -1]), Seen()
    again = np.concatenate([digests, np.repeat(digests[:3], 40)])
    return [digests, observations.add(again, np.arange(len(again)) % 5 * 1.0), observations.table]


def bytes_of(arrays):
    return [(array.dtype, array.shape, array.tobytes()) for array in arrays]


@pytest.mark.filterwarnings("ignore:overflow encountered")  # of whole numbers without a sign, which wrap around
@pytest.mark.parametrize("arguments", [(kind, task) for kind in KINDS for task in TASKS] + [()], ids="-".join)
def test_plain_python_gives_the_same_bits(arguments, monkeypatch):
    arrays_of = grown if arguments else seen
    compiled = bytes_of(arrays_of(*arguments))
    monkeypatch.setattr(functions, "IS_COMPILED", False)
    assert bytes_of(arrays_of(*arguments)) == compiled
