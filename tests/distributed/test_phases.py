"""Learning over shards: it is as good as one machine, and depends on the shards alone."""

import numpy as np
import pyarrow as pa
import pytest

from tests.distributed.data import Here, learned, parquet_of, people
from tests.stream.tabular import raw_rows
from tests.workflows.test_training import model_bytes
from tunefree.core.errors import TunefreeError
from tunefree.core.rows import dense
from tunefree.distributed import rows as shard_rows
from tunefree.distributed import shard_pass, training
from tunefree.distributed.rows import Beginning
from tunefree.model_files.plan import Plan
from tunefree.model_files.trained import Trained
from tunefree.pool.model import restored
from tunefree.stream.batch import BadRows, Batch
from tunefree.stream.source import open_source
from tunefree.training.targets import target_of
from tunefree.training.training import train
from tunefree.workflows.prediction import predict

SAMPLE = 500  # rows of the common start, so that shards have rows beside it


@pytest.fixture(autouse=True, scope="module")
def small_sample():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training, "SAMPLE", SAMPLE)
        yield


class Shuffled(Here):
    """Calls functions in another order, and each of them twice."""

    def each(self, stage, function, items):
        order = np.random.default_rng(len(items)).permutation(len(items))
        results = {int(place): (function(*items[place]), function(*items[place]))[1] for place in order}
        return [results[place] for place in range(len(items))]


def loss_of(trained, path):
    result = [
        trained.model.losses(target_of(trained.model.task, part.batch), part.predictions)
        for part in predict(trained, open_source(path), BadRows(), labelled=True)
    ]
    return np.concatenate(result).mean()


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("people")
    return parquet_of(folder, people(2000), 6), parquet_of(folder, people(2000, seed=1), 1, "test.parquet")


@pytest.fixture(scope="module")
def trained(data):
    return learned(data[0])


def test_it_is_as_good_as_one_machine_and_a_file_like_any_other(data, trained, tmp_path):
    one = train(open_source(data[0]), Plan(target="rich"))
    assert loss_of(trained, data[1]) < 1.04 * loss_of(one, data[1])
    assert all(member.mass == member.rows for member in trained.model.linear.members)  # all weights are 1
    trained.save(tmp_path / "people.model")
    assert loss_of(Trained.load(tmp_path / "people.model"), data[1]) == loss_of(trained, data[1])


def test_order_and_repetition_change_no_byte(data, trained, tmp_path):
    lines = []
    again = learned(data[0], engine=Shuffled(), tell=lines.append)
    assert model_bytes(trained, tmp_path / "m") == model_bytes(again, tmp_path / "m")
    assert lines[0].startswith("read 2,000 rows in 6 shards")
    assert lines[1].startswith("common start: 1,000 rows") and lines[2].startswith("shards: 936 rows")


def test_shards_learn_columns_that_the_sample_lacks(data, monkeypatch):
    random = np.random.default_rng(0)
    X = random.normal(size=(4000, 2))
    start = start_of("classification", rows_of(X[:300], X[:300, 0] > 0))
    y = X.sum(axis=1) > 0
    state = shard_pass.following(start)
    passed = [shard_pass.learned(shard_of(rows_of(X[k:3600:2], y[k:3600:2])), state) for k in range(2)]
    end = shard_pass.joined(start, shard_pass.plus(*passed), [rows_of(X[3600:], y[3600:])])
    before, after = (np.mean((restored(*at.model).predict(rows_of(X, y).rows)[:, 0] > 0) == y) for at in (start, end))
    assert before < 0.8 < 0.95 < after


def rows_of(X, is_b):
    return Batch(dense(np.ascontiguousarray(X)), is_b.astype(float), np.ones(len(X)))


def shard_of(rows):
    """A shard none of whose rows are in the sample."""
    return shard_rows.Prepared(shard_rows.NOTHING, shard_rows.NOTHING, rows)


def start_of(task, rows):
    """The common start of two classes, or of numbers, with two columns."""
    classes = ["a", "b"] if task == "classification" else []
    beginning = Beginning(Plan(), "table", ({}, {}), task, classes)
    return shard_pass.started(beginning, classes, 3, [rows], False)


def test_the_certificate_holds_on_all_shards(data, trained):
    """Sums of evidence add over shards: they bound every linear model on all rows that were learned."""
    certificate = trained.model.certificate()
    assert certificate.rounds == trained.progress.progressive[0].rows == 2000
    batch = next(iter(predict(trained, open_source(data[0]), BadRows(), labelled=True))).batch
    random, largest = np.random.default_rng(0), certificate.largest
    model = trained.model
    y = model.targets_of(model.codes(target_of("classification", batch))[0])
    X = np.zeros((len(y), trained.model.n_features))
    for row, entries in zip(X, raw_rows(batch.rows), strict=True):
        row[[feature for feature, _ in entries]] = [value for _, value in entries]
    for size in (0.1, 1.0, 3.0):
        for _ in range(20):
            u = random.uniform(-size, size, X.shape[1]) / np.maximum(largest, 1e-12)
            assert np.logaddexp(0.0, -y * (X @ u)).mean() >= certificate.lower_bound(size)
    loss = certificate.loss / certificate.weight
    assert loss == pytest.approx(trained.progress.progressive[0].mean_loss()) and certificate.lower_bound(3.0) <= loss


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_evidence_of_shards_adds_up(task):
    random = np.random.default_rng(0)
    X = random.normal(size=(900, 2)) * [1.0, 1e3]
    y = X[:, 0] > 0 if task == "classification" else X[:, 0]
    weight = random.uniform(0.5, 2.0, 900)
    if task == "classification":
        weight[:500] = weight[700:] = 1.0  # those of the first shard, too
    rows = Batch(rows_of(X, y).rows, np.asarray(y, float), weight)
    first, rest = rows.part(0, 300), rows.part(300, 900)
    start = start_of(task, first)
    passed = [shard_pass.learned(shard_of(rest.part(k, k + 200)), shard_pass.following(start)) for k in (0, 200)]
    total = shard_pass.plus(*passed)
    for one in (total, shard_pass.plus(*passed[::-1])):
        assert not any(risk["unweighted"] for risk in one.proved.risks.values() if risk["rows"])
    model = restored(*shard_pass.joined(start, total, [rest.part(400, 600)]).model)
    result = model.certificate()
    assert total.rows == 400 and model.pool.rows == 900
    assert result.weight == pytest.approx(rows.weight.sum(), rel=1e-2 if task == "regression" else 1e-9)
    assert np.isfinite(model.predict(rows.rows)).all()
    assert not any(risk.unweighted for risk in model.record.risks.values() if risk.rows)
    if task == "regression":
        assert np.mean((model.predict(rows.rows)[:, 0] - y) ** 2) < 0.05 * np.var(y)
        sums = model.record.targets
        assert (sums.weight, sums.total) == pytest.approx((weight.sum(), weight @ y), rel=1e-9)
        assert all(member.objective.mass == pytest.approx(900.0, rel=0.01) for member in model.linear.members)


def test_tables_without_rows_with_one_class_and_with_other_columns_are_learned_and_a_bad_one_is_skipped():
    number, text = pa.array(np.arange(1000.0)), pa.array(["old"] * 1000)
    table, no = people(1000), pa.array(["no", "maybe", *["no"] * 998])
    tables = [table.slice(0, 0), table, table.set_column(0, "age", text), table.set_column(2, "rich", no)]
    model = learned([*tables, table.append_column("more", number)], skips=True)
    assert model.progress.progressive[0].rows == 3000 and model.encoder.names()[-1] == "more"
    assert np.isfinite(model.progress.progressive[0].mean_loss()) and model.model.classes == ["no", "yes", "maybe"]
    lines = []
    learned([*tables[:1], people(1500)], tell=lines.append)
    assert lines[1].startswith("common start: 1,500 rows")  # one shard is learned as on one machine


def test_balanced_classes_weigh_as_on_one_machine(data):
    balanced = Plan(target="rich", class_weight="balanced")
    assert learned(data[1], balanced).plan.class_weight == train(open_source(data[1]), balanced).plan.class_weight


@pytest.mark.parametrize(
    ("columns", "options", "problem"),
    [
        ({"age": [], "rich": []}, {}, "there are no rows"),
        ({"age": [1.0, 2.0], "rich": ["no", "no"]}, {}, "one class only, 'no'"),
        ({"age": ["x", "y"], "rich": ["no", "yes"]}, {"numeric": "age", "on_bad_row": "skip"}, "no row could be used"),
        ({"age": [1.0, 2.0], "rich": ["no", "yes"], "w": [0.0, 0.0]}, {"sample_weight": "w"}, "all rows have a weight"),
        ({"age": [1.0, 2.0], "rich": ["no", "yes"]}, {"class_weight": "often=2"}, "there is no class 'often'"),
    ],
)
def test_rows_that_cannot_be_learned_are_an_error(columns, options, problem):
    lines = []
    with pytest.raises(TunefreeError, match=problem):
        learned([pa.table(columns)], Plan(target="rich", **options), tell=lines.append)
    assert ("row 1, column 'age': 'x' is not a number" in "".join(lines)) == ("could be used" in problem)
