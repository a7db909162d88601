"""Trees are arrays: their walk, and what a file may hold."""

import numpy as np
import pytest

from tests.generations.problems import TASKS, TREES, arrays_in_file, columns, from_file, grow, problem
from tunefree.core.errors import ModelError
from tunefree.generations import trees
from tunefree.generations.bins import MISSING, codes_of


@pytest.fixture(scope="module", params=[(kind, task) for kind in TREES for task in TASKS], ids="-".join)
def grown(request):
    return grow(request.param[0], problem(request.param[1]), 3)


def walked(model, X):
    """The slow twin of the walk: leaves (n, trees), and sums of their values."""
    leaves = np.empty((len(X), len(model.roots)), np.int32)
    for i, codes in enumerate(codes_of(model.bins, X)):
        for t, v in enumerate(model.roots):
            while model.nodes[v, 0] >= 0:
                test, child = model.nodes[v].tolist()
                code = codes[test >> trees.COLUMN]
                is_left = code <= (test >> trees.CODE & trees.CODES) or (code == MISSING and test & 1)
                if test & trees.SET == trees.SET:
                    is_left = int(model.sets[child >> 1, code >> 6]) >> (int(code) & 63) & 1 == 0
                v = child if is_left else child + 1
            leaves[i, t] = model.nodes[v, 1]
    return leaves, model.start + sum(model.values[leaves[:, t]].astype(float) for t in range(leaves.shape[1]))


def test_the_walk_equals_its_slow_twin(grown):
    X = columns(50, seed=5)
    leaves, margins = grown.apply(X)
    slow, sums = walked(grown, X)
    assert (leaves == slow).all() and leaves.dtype == np.int32
    if not grown.is_averaged:
        assert np.allclose(margins, sums, rtol=1e-12)
    elif grown.n_classes == 2:
        shares = np.clip(sums / len(grown.roots), grown.least, 1.0 - grown.least)
        assert np.allclose(margins, np.log(shares / (1.0 - shares)))


def test_rows_have_the_same_bytes_in_any_block(grown):
    X = columns(11, seed=6)
    leaves, margins = grown.apply(X)
    for rows in (slice(0, 1), slice(3, 4), slice(2, 9)):
        of_block = grown.apply(X[rows])
        assert (of_block[0] == leaves[rows]).all() and (of_block[1] == margins[:, rows]).all()


def test_each_leaf_and_node_belongs_to_one_tree(grown):
    inner = grown.nodes[:, 0] >= 0
    children = np.concatenate([grown.nodes[inner, 1], grown.nodes[inner, 1] + 1, grown.roots])
    assert (np.sort(children) == np.arange(len(grown.nodes))).all()
    assert (np.sort(grown.nodes[~inner, 1]) == np.arange(grown.n_leaves)).all()


def damages(state):
    """Files that must be refused, by what is wrong with them."""
    nodes, n = state["nodes"], len(state["nodes"])
    inner = int(np.flatnonzero(nodes[:, 0] >= 0)[-1])
    leaf = int(np.flatnonzero(nodes[:, 0] < 0)[0])

    def changed(name, place, value):
        array = state[name].copy()
        array[place] = value
        return state | {name: array}

    yield "loop", changed("nodes", (inner, 1), inner)
    yield "backward", changed("nodes", (inner, 1), 0)
    yield "beyond nodes", changed("nodes", (inner, 1), n - 1)
    yield "beyond leaves", changed("nodes", (leaf, 1), len(state["values"]))
    yield "negative leaf", changed("nodes", (leaf, 1), -1)
    yield "column", changed("nodes", (inner, 0), 1000 << trees.COLUMN)
    yield "root", changed("roots", 0, n)
    yield "negative root", changed("roots", 0, -1)
    yield "set", changed("nodes", (inner, 0), trees.SET) | {"sets": state["sets"][: nodes[inner, 1] >> 1]}
    yield "words of sets", state | {"sets": state["sets"][:, :3]}
    yield "starts", changed("bins.starts", -1, 10**6)
    yield "infinite", changed("values", (0, 0), np.nan)


def is_refused(state):
    try:
        from_file(trees.Trees, state, 5)
    except ModelError:
        return True
    return False


def test_damaged_files_are_refused(grown):
    assert [damage for damage, state in damages(arrays_in_file(grown)) if not is_refused(state)] == []


def test_what_columns_add_along_paths_sums_up_to_the_values(grown):
    X, values = columns(30, seed=8), grown.values.astype(float)
    means, terms = trees.node_means(grown, columns(40), values), np.zeros((30, 5, grown.n_outputs))
    trees.add_paths(grown, means, X, np.arange(5), terms)
    assert np.allclose(means[grown.roots].sum(axis=0) + terms.sum(axis=1), values[grown.apply(X)[0]].sum(axis=1))
    assert terms[:, 4].any()
