"""A limit of what a model may take: told, parts put to sleep, an error at last; always before the memory is taken."""

from functools import partial

import numpy as np
import pytest

from tunefree import Plan, open_source
from tunefree.core.errors import ModelError
from tunefree.core.rows import dense
from tunefree.pool import growth
from tunefree.pool.model import Model, restored
from tunefree.pool.slots import TREES, WHOLE
from tunefree.pool.targets import Labels
from tunefree.stream.text import read_lines
from tunefree.training.memory_limit import MemoryLimit, limit_of, model_bytes
from tunefree.training.training import train


def rows_with_ids(path, n_ids, n_rows):
    """Rows of which so many in turn have the same ids, and others have others."""
    rows = ((i % 2, [n_ids * (i // n_rows) + k for k in range(5, 5 + n_ids)]) for i in range(20_000))
    path.write_text("".join(f"{y} 1:1 " + " ".join(f"{j}:1" for j in ids) + "\n" for y, ids in rows))
    return open_source(str(path))


def test_one_learner_is_refused_before_it_takes_more_and_told_before_that(tmp_path, monkeypatch):
    monkeypatch.setattr("tunefree.stream.source.read_lines", partial(read_lines, block_size=50_000))
    told, plan, ids_met_twice = [], Plan(learner="scinol2"), rows_with_ids(tmp_path / "a.svm", 6, 2)
    trained = train(ids_met_twice, plan, tell=told.append, memory_limit="40M")
    assert all(message.startswith("the loss rose") for message in told)
    assert model_bytes(trained.model) < 40 * 2**20
    told = []
    with pytest.raises(ModelError, match=r"would take \d+ MiB of memory, more than the 3 MiB of `memory_limit`"):
        train(ids_met_twice, plan, tell=told.append, memory_limit="3M")
    told.clear()
    for limit in ("much", "0", "-1G"):
        with pytest.raises(ModelError, match="write a size such as 500M or 4G"):
            train(ids_met_twice, plan, memory_limit=limit)
    source = open_source({"x": [1.0, 2.0] * 50, "y": ["a", "b"] * 50})
    with pytest.raises(ModelError, match=r"`memory_limit='9000T'`: the machine has .* GiB; write less"):
        limit_of("9000T")
    with pytest.raises(ModelError, match="more than the 1024 bytes of `memory_limit`"):
        train(source, Plan(target="y"), memory_limit="1K", tell=told.append)
    assert not any("goes on without" in line for line in told)  # nothing that is given up would be enough


def test_room_for_one_more_feature_is_room_for_twice_as_many():
    model = Model("classification", "scinol2", n_features=2**12)
    n_features, messages = model.linear.members[0].room + 1, []
    MemoryLimit(int(2.1 * model_bytes(model)), messages.append).make_room(model, n_features)
    with pytest.raises(ModelError, match=f"{n_features:,} features would take"):
        MemoryLimit(int(1.9 * model_bytes(model)), messages.append).make_room(model, n_features)


def test_a_pool_that_would_begin_with_too_much_is_refused(tmp_path):
    ids = rows_with_ids(tmp_path / "a.svm", 3, 1)
    with pytest.raises(ModelError, match="more than the 10 MiB of `memory_limit`; hash them to fewer"):
        train(ids, Plan(hash_bits=16), memory_limit="10M")
    assert model_bytes(train(ids, Plan(hash_bits=14), memory_limit="10M").model) < 10 * 2**20


def test_rows_that_trees_are_grown_on_are_given_up_first_and_the_summary_says_so(monkeypatch):
    monkeypatch.setattr(growth, "FEWEST_KEPT", 500)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(2000, 3)), rng.integers(0, 2, 2000)
    model = Model("classification", n_features=4)
    model.learn(dense(X[:1500]), Labels.of(y[:1500]), np.ones(1500))
    before = model_bytes(model)
    assert model.pool.kept_rows == (1500, 1500)
    assert model.pool.put_to_sleep() == "half of the rows that trees are grown on; 750 are kept"
    assert model.pool.put_to_sleep() == "the windows of the latest rows" and model_bytes(model) < before
    model.learn(dense(X[1500:]), Labels.of(y[1500:]), np.ones(500))
    assert restored(*model.save_state()).pool.kept_rows == model.pool.kept_rows == (750, 2000)
    model.freeze()
    newest = model.pool.members.growth.generations_of(WHOLE, TREES[0])[0]
    assert newest.rows == 2000 and len(newest.observations) == 750
