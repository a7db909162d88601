"""Learning over shards: it is as good as one machine, and depends on the shards alone."""

from __future__ import annotations

import numpy as np
import pytest

from tests.distributed.data import parquet_of, people, shards
from tunefree.core.errors import DataError, ModelError
from tunefree.distributed import encoded, evidence, phases, pool_round
from tunefree.distributed.engines import Here
from tunefree.model.batch_rows import matrix
from tunefree.model.standing import LEARNER
from tunefree.stream.batch import BadRows
from tunefree.stream.source import open_source
from tunefree.workflows.class_weights import balanced
from tunefree.workflows.plan import Plan
from tunefree.workflows.prediction import predict
from tunefree.workflows.targets import target_of
from tunefree.workflows.training import Trained, train


class Shuffled(Here):
    """Calls functions in another order, and each of them twice."""

    def each(self, stage, function, items):
        order = np.random.default_rng(len(items)).permutation(len(items))
        made = {int(place): (function(*items[place]), function(*items[place]))[1] for place in order}
        return [made[place] for place in range(len(items))]


def learned(path, plan, engine=None, told=None):
    cut_up = shards(path)
    told = [] if told is None else told
    return phases.learn(engine or Here(), phases.Parts(cut_up, [[] for _ in cut_up]), plan, told.append)


def loss_of(trained, path):
    found = [
        trained.model.losses(target_of(trained.model.task, own.batch), own.predictions)
        for own in predict(trained, open_source(path), BadRows(), labelled=True)
    ]
    return np.concatenate(found).mean()


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("people")
    return parquet_of(folder, people(4000), 6), parquet_of(folder, people(2000, seed=1), 1, "test.parquet")


@pytest.fixture(scope="module")
def trained(data):
    return learned(data[0], Plan(target="rich"))


def test_it_is_as_good_as_one_machine_and_a_file_like_any_other(data, trained, tmp_path):
    one = train(open_source(data[0]), Plan(target="rich"))
    assert loss_of(trained, data[1]) < 1.04 * loss_of(one, data[1])
    trained.save(tmp_path / "people.model")
    loaded = Trained.load(tmp_path / "people.model")
    assert loss_of(loaded, data[1]) == loss_of(trained, data[1])


def test_order_and_repetition_change_no_byte(data, trained, tmp_path):
    told = []
    again = learned(data[0], Plan(target="rich"), Shuffled(), told)
    for name, own in (("one", trained), ("two", again)):
        own.save(tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    assert told[0].startswith("read 4,000 rows in 6 shards") and "contact 0" in told[2]


def exact_members(model):
    """The members of exact gradients of each view."""
    found = {}
    for member in model.members:
        if member.setting.learner == LEARNER:
            found.setdefault(member.setting.view, []).append(member.weights(model.n_features, 1)[0])
    return found


def test_exact_gradients_lead_somewhere_from_the_merged_members_and_from_zero(trained):
    found = exact_members(trained.model)
    assert found.keys() == {"steady", "pairs"}
    for of_view in found.values():
        merged, zero = of_view
        assert zero.any() and not np.array_equal(merged, zero)


def test_where_nothing_was_learned_zero_is_the_only_start(tmp_path):
    table = people(600)
    random = np.random.default_rng(0).permutation(len(table))
    table = table.set_column(2, "rich", table["rich"].take(random))
    found = exact_members(learned(parquet_of(tmp_path, table, 6), Plan(target="rich")).model)
    assert len(found["steady"]) == 1


def test_rows_sorted_by_class_are_learned_alike(data, trained, tmp_path):
    sorted_rows = people(4000).sort_by("rich")
    found = learned(parquet_of(tmp_path, sorted_rows, 6), Plan(target="rich"))
    assert loss_of(found, data[1]) < 1.03 * loss_of(trained, data[1])


def test_balanced_classes_weigh_as_when_their_weights_are_given(data, tmp_path):
    weights = balanced(open_source(data[0]), Plan(target="rich"))
    for name, given in (("balanced", ("balanced",)), ("given", weights)):
        learned(data[0], Plan(target="rich", class_weight=given)).save(tmp_path / name)
    assert (tmp_path / "balanced").read_bytes() == (tmp_path / "given").read_bytes()


def test_what_cannot_be_learned_is_told(data, tmp_path):
    with pytest.raises(ModelError, match="--passes is for one machine"):
        learned(data[0], Plan(target="rich", passes=3))
    with pytest.raises(DataError, match="there are 20 rows"):
        learned(parquet_of(tmp_path, people(20), 2), Plan(target="rich"))
    one_class = people(100).set_column(2, "rich", [["yes"] * 100])
    with pytest.raises(DataError, match="one class only"):
        learned(parquet_of(tmp_path, one_class, 2), Plan(target="rich"))


def test_the_certificate_holds_on_all_shards_and_is_tight(data, trained):
    """Sums of evidence add over shards: they bound every linear model on all rows that were learned."""
    certificate = trained.model.certificate()
    assert certificate.rounds == trained.progress.progressive[0].rows == 3600
    rows = next(iter(predict(trained, open_source(data[0]), BadRows(), labelled=True))).batch
    kept = ~encoded.picked(np.arange(len(rows.weight)), encoded.Strides.of(4000).jury)
    random, largest = np.random.default_rng(0), certificate.largest
    y = trained.model.targets(target_of("classification", rows))[kept]
    X = matrix(rows.rows, trained.model.n_features).toarray()[kept].astype(np.float64)
    losses = []
    for size in (0.1, 1.0, 3.0):
        for _ in range(20):
            u = random.uniform(-size, size, X.shape[1]) / np.maximum(largest, 1e-12)
            losses.append(np.logaddexp(0.0, -y * (X @ u)).mean())
            assert losses[-1] >= certificate.lower_bound(size)
    loss = certificate.loss / certificate.weight
    assert 0.8 * loss < certificate.lower_bound(3.0) <= loss < min(losses)


def test_evidence_of_shards_adds_up_to_that_of_all_rows(data, trained):
    rows = next(iter(predict(trained, open_source(data[0]), BadRows(), labelled=True))).batch
    y = trained.model.codes(target_of("classification", rows))[0].astype(np.float64)
    whole, state = encoded.Encoded(rows.rows, y, rows.weight), trained.model.save_state()
    every = np.arange(len(y))
    parts = [evidence.gathered(whole.at(every % 3 == shard), state) for shard in range(3)]
    together, at_once = pool_round.plus(*parts), evidence.gathered(whole, state)
    for name, own in at_once.arrays.items():
        np.testing.assert_allclose(together.arrays[name], own, rtol=1e-9, atol=1e-7)
