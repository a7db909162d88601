"""On tables of known truth, noise looks like noise, and what matters is seen."""

import pytest

from tests.explanation.known_truth import KINDS, table
from tunefree import Plan, open_source, train
from tunefree.explanation.importance import importance
from tunefree.explanation.interactions import interactions
from tunefree.workflows.explanation import terms_of


def told(kind, seed):
    """Columns said to matter that do not, columns missed, and the pairs said to interact with those that do."""
    rows, matter, pairs = table(kind, seed)
    decomposition = terms_of(train(open_source(rows), Plan(target="target")).trained_)
    ranked = importance(decomposition)
    beyond = set(ranked.names[: ranked.n_beyond])
    found = [set(pair.names) for pair in interactions(decomposition, ranked) if pair.size > pair.noise]
    return beyond - matter, matter - beyond, found, pairs


@pytest.mark.parametrize(("kind", "seed"), [("none", 1), ("few rows", 0), ("interactions", 1)])
def test_noise_is_below_its_line_and_the_rest_above(kind, seed):
    wrong, missed, found, pairs = told(kind, seed)
    assert not wrong and not missed
    assert all(pair in found[:2] for pair in pairs) and (pairs or not found)


@pytest.mark.slow
def test_thirty_tables():
    """In 95 % of the tables no column of noise is above the line; all that matters is, and pairs that interact are."""
    all_told = [told(kind, seed) for kind in KINDS for seed in range(100, 105)]
    assert sum(bool(wrong) for wrong, *_ in all_told) <= 1
    assert sum(len(missed) for _, missed, *_ in all_told) <= 1
    assert all(pair in found[:2] for *_, found, pairs in all_told for pair in pairs)
    assert sum(bool(found) for *_, found, pairs in all_told if not pairs) <= 1
