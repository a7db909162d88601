"""The compiled rule is that of a twin in plain NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from tests.mixing.streams import KINDS, N_MEMBERS, late_class, of_kind, stream
from tests.mixing.twin import run, twin_of
from tunefree.mixing.mixture import Mixture

kinds = pytest.mark.parametrize("kind", KINDS)


@pytest.mark.parametrize(("kind", "growth"), [("three", 0.0), *((kind, 0.02) for kind in KINDS)])
def test_the_compiled_rule_is_that_of_its_twin(kind, growth):
    members, y, weight = stream(kind, 300, 1, growth)
    mixture, twin = Mixture(N_MEMBERS, *of_kind(kind)), twin_of(N_MEMBERS, *of_kind(kind))
    expected = run(twin, members, y, weight)
    assert mixture.learn(members, y, weight) == pytest.approx(expected, rel=1e-6, abs=1e-7)
    for compiled, plain in ((mixture.base, twin.base), (mixture.top, twin.top)):
        assert compiled.weights == pytest.approx(plain.w, rel=1e-6, abs=1e-12)
        assert compiled.means == pytest.approx(plain.means, rel=1e-6, abs=1e-12)
    to_come = [np.atleast_1d(twin.step(row, 0.0, 0.0, is_over=True)) for row in members[:20]]
    assert mixture.predict(members[:20]) == pytest.approx(np.array(to_come), rel=1e-6, abs=1e-7)
    least = 0.01 if kind == "gamma" else 0.1
    assert np.ptp(mixture.top.weights) > least and np.ptp(mixture.base.weights) > 0.01  # they did learn


@kinds
def test_the_base_alone_is_the_base_of_the_twin(kind):
    members, y, weight = stream(kind, 200, 2)
    mixture, twin = Mixture(N_MEMBERS, *of_kind(kind)), twin_of(N_MEMBERS, *of_kind(kind))
    mixture.learn(members, y, weight)
    run(twin, members, y, weight)
    expected = []
    for row in members[50:80]:
        twin.step(row, 0.0, 0.0, is_over=True)
        expected.append(np.atleast_1d(twin.candidates[0]))
    assert mixture.mean(members[50:80]) == pytest.approx(np.array(expected), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("n_classes", [2, 5, 63, 64, 65])
def test_late_classes_are_those_of_the_twin(n_classes):
    early, late, y = late_class(n_classes, 80, 3)
    mixture, twin = Mixture(N_MEMBERS, n_classes), twin_of(N_MEMBERS, n_classes)
    for rows, labels in ((early, y[:80]), (late, y[80:])):
        expected = run(twin, rows, labels, np.ones(80))
        assert mixture.learn(rows, labels, np.ones(80)) == pytest.approx(expected, rel=1e-6, abs=1e-7)
        if rows is early:
            mixture.add_class()
            twin.add_class()
