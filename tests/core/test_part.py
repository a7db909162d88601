"""Copies, files, bytes and the small model follow from what parts of a model declare."""

import copy
import json

import numpy as np
import pytest

from tests.pool.rows import bytes_of
from tests.pool.rows import restored as restored_model
from tunefree.core.errors import ModelError
from tunefree.core.part import (
    FIXED,
    LEARNED,
    RECORD,
    SCRATCH,
    Part,
    argument,
    array,
    child,
    children,
    declared_arrays,
    fields_of,
    number,
    restored,
    scratch,
    size_of,
)
from tunefree.core.rows import dense, rows_at, sparse
from tunefree.core.schema import COUNT, FINITE, Array, Limits, Sequence, check_arrays, check_header
from tunefree.model_files.column_samples import ColumnSamples
from tunefree.pool.model import Model, published
from tunefree.pool.targets import Labels
from tunefree.theory.exchangeability import TargetSample
from tunefree.theory.rises import LossRises, Place, Rise

N = 2100


class Sums(Part):
    """A part with fields of each kind and role."""

    n = argument()
    sums = array("float64", ("n",), LEARNED)
    units = array("float64|float32", (None,), FIXED)
    latest = array("float64", (None,), RECORD, blank=lambda part: np.zeros(0))
    rows = number(LEARNED, COUNT)
    work = scratch(lambda part: np.zeros(part.n))
    inner = child(lambda *_: Sums, LEARNED, may_be_none=True, make=lambda part, _: Sums(part.n))
    others = children(lambda *_: Sums, LEARNED, make=lambda part, _: Sums(part.n))

    def __init__(self, n=2):
        self.n, self.sums, self.units, self.rows = n, np.arange(1.0, n + 1.0), np.ones(3), 7
        self.latest, self.work, self.inner, self.others = np.ones(2), np.ones(n), None, []


def nested():
    sums = Sums()
    sums.inner, sums.others = Sums(), [Sums(), Sums()]
    return sums


def test_a_field_without_a_role_is_an_error_as_the_class_is_made():
    with pytest.raises(TypeError, match="Forgetful.totals has no role"):
        type("Forgetful", (Part,), {"__annotations__": {"totals": "np.ndarray"}})
    with pytest.raises(TypeError, match="role"):
        type("Forgetful", (Part,), {"totals": array("float64", (None,))})
    with pytest.raises(TypeError, match="the role 'kept' of a field is none of learned"):
        type("Forgetful", (Part,), {"totals": array("float64", (None,), "kept")})
    with pytest.raises(TypeError, match="Forgetful.totals is a record without a blank"):
        type("Forgetful", (Part,), {"totals": array("float64", (None,), RECORD)})


def test_an_attribute_without_a_role_is_an_error_as_a_part_is_saved_or_copied():
    sums = Sums()
    sums.forgotten = 1
    for use in (Sums.save_state, Sums.copied):
        with pytest.raises(TypeError, match="Sums.forgotten has no role"):
            use(sums)


def test_copies_and_parts_of_files_have_blank_scratch():
    sums = nested()
    copy_of_sums = sums.copied()
    assert sums.work.all() and not copy_of_sums.work.any() and not copy_of_sums.inner.work.any()
    assert (copy_of_sums.latest == sums.latest).all() and copy_of_sums.units is sums.units
    assert Sums.bare(n=3).work.tolist() == [0.0, 0.0, 0.0]  # which is filled from a file


def test_a_file_has_its_declared_parts_and_is_checked():
    sums = nested()
    arrays, header = sums.save_state()
    declared = declared_arrays(Sums, json.loads(json.dumps(header)))
    assert declared.keys() == arrays.keys() and "work" not in arrays and arrays["units"].dtype == "f4"
    check_arrays(arrays, declared, {})
    again = Sums()
    restored(again, "", arrays, header)
    assert again.others[0].units.dtype == "f8" and bytes_of(again) == bytes_of(sums)
    with pytest.raises(ModelError, match="rows is 'x'"):
        declared_arrays(Sums, header | {"rows": "x"})
    with pytest.raises(ModelError, match="others.0.rows is missing"):
        declared_arrays(Sums, header | {"others": [{}]})
    kinds = {"starts": Array("int64", (None,), Limits(ascends_to="n")), "points": Array("float64", ("n",))}
    with pytest.raises(ModelError, match="not a list of at most 2 as"):
        check_header([0.0, 1.0, 2.0], Sequence(FINITE, 2))
    with pytest.raises(ModelError, match="starts is empty"):
        check_arrays({"starts": np.zeros(0, int), "points": np.zeros(0)}, kinds, {})
    with pytest.raises(ModelError, match=r"inner.sums has the shape \(3,\), where n is 2"):
        restored(again, "", arrays | {"inner.sums": np.ones(3)}, header)


def parts_in(value):
    """All parts that a value holds."""
    if isinstance(value, Part):
        yield value
        for declared in fields_of(type(value)):
            yield from parts_in(declared.read(value))
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from parts_in(one)


@pytest.fixture(scope="module")
def learned():
    """Models that together have a part of each class."""
    random = np.random.default_rng(0)
    X, words = random.normal(size=(N, 3)), random.integers(1, 3000, N).astype(np.int32)
    X[N // 2 :] = X[: N - N // 2]
    labels = Labels.of(np.where(X[:, 0] * X[:, 1] > 0.0, "yes", "no").tolist())
    pool, counts, numbers = (Model("classification"), Model("regression", loss="poisson"), Model("regression"))
    pool.learn(dense(X), labels, np.ones(N))
    pool.predict(dense(X[:3] + 1.0))
    counts.learn(dense(X[:300]), random.poisson(np.exp(np.clip(X[:300, 0], -2.0, 2.0))).astype(float), np.ones(300))
    numbers.learn(dense(X[:600]), X[:600, 0], np.ones(600))
    texts = Model("classification", "scinol2", replays=True)
    texts.learn(sparse(np.arange(N + 1), words, np.ones(N)), labels, np.ones(N))
    hinge = Model("classification", "nag", loss="hinge")
    hinge.learn(dense(X), labels, np.ones(N))
    small = copy.deepcopy(pool)
    small.reduce()
    return pool, counts, numbers, texts, hinge, small


def of_the_stream():
    """What is kept of a stream beside its model."""
    losses, order, rises = np.random.default_rng(0).exponential(size=2000), TargetSample(), LossRises()
    X, samples, rise = dense(losses[:, None]), ColumnSamples(), Rise(1, "a.csv", 1, None, 9, 2.0, 9, 1.0)
    order.add(np.arange(2000) % 3)
    rises.add(losses, np.ones(2000), np.ones(2000), lambda row: Place(row + 1, "a.csv", row + 1))
    rises.rises = [rise]
    samples.add(2000, 100, lambda k: samples.matrix(rows_at(X, k), losses[k]))
    samples.note_rise(100, row=1901)
    return order, rises, samples


def each_part(models):
    for model in models:
        for part in model._parts().values():
            yield from parts_in(part)
    for part in of_the_stream():
        yield from parts_in(part)


def test_there_is_a_part_of_each_class(learned):
    subclasses = Part.__subclasses__()
    for cls in subclasses:
        subclasses += cls.__subclasses__()
    leaves = {cls for cls in subclasses if not cls.__subclasses__() and cls.__module__.startswith("tunefree.")}
    inside = {cls for cls in leaves if not cls.__module__.startswith("tunefree.papers.")}
    missing = {cls.__name__ for cls in inside - {type(part) for part in each_part(learned)}}
    assert missing <= {"Mixed"}  # of kernel learners


def test_each_part_has_its_declared_fields(learned):
    for part in each_part(learned):
        part.check_declared()
        arrays, header = part.save_state()
        assert declared_arrays(type(part), json.loads(json.dumps(header))).keys() == arrays.keys()
        assert part.nbytes >= 0 and size_of(part) == part.nbytes


def test_each_part_is_copied(learned):
    for part in each_part(learned):
        other = part.copied()
        assert bytes_of(other) == bytes_of(part)
        for name, declared in part.fields_of_part.items():
            before = vars(part).get(name)
            if declared.role == LEARNED and isinstance(before, np.ndarray) and before.size:
                assert not np.shares_memory(before, vars(other)[name])
            if declared.role == FIXED and isinstance(before, np.ndarray):
                assert vars(other)[name] is before
            if declared.role == SCRATCH:
                assert name in vars(other)


def test_each_model_is_restored_and_goes_on(learned):
    X = dense(np.concatenate([np.random.default_rng(seed).normal(size=(40, 3)) for seed in (0, 1)]))  # known and new
    for model in learned:
        again = restored_model(model)
        assert bytes_of(again) == bytes_of(model)
        np.testing.assert_array_equal(model.predict(X), again.predict(X))
        np.testing.assert_array_equal(model.predict(X), published(model).predict(X))


def test_a_model_that_only_predicts_has_no_records(learned):
    small = copy.deepcopy(learned[0])
    small.reduce()
    for part in each_part([small]):
        for name, declared in part.fields_of_part.items():
            if declared.role == RECORD:
                assert not size_of(declared.read(part)), f"{type(part).__name__}.{name}"
