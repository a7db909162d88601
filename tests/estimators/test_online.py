"""Learners in the space of a kernel."""

import pytest
from sklearn.datasets import make_circles

from tunefree import KernelPiSTOLClassifier, OnlineClassifier

ONE_PASS = {"passes": 1, "shuffle": False}
OF_KERNELS = {
    "pistol": lambda: KernelPiSTOLClassifier(preset="theory", **ONE_PASS),  # in practice `fit` knows the rounds
    "pistol raw": lambda: KernelPiSTOLClassifier(a=0.25, b=1.0, view="raw", **ONE_PASS),
    "online": lambda: OnlineClassifier("kernel-pistol", view="steady", **ONE_PASS),
}


@pytest.mark.parametrize("make", OF_KERNELS.values(), ids=OF_KERNELS)
def test_partial_fit_of_any_batches_is_fit_while_rows_wait_and_after(make):
    """Views keep 256 rows back, and widths 1024: rows that were learned while others waited counted twice."""
    X, y = make_circles(1100, noise=0.15, factor=0.5, random_state=0)
    X, whole = X * [1.0, 100.0], make().fit(X * [1.0, 100.0], y)
    for cuts in [(512,), (600,), (1023,), (1024,), (255, 513, 700, 1030), tuple(range(37, 1100, 97))]:
        parts = make()
        for start, stop in zip((0, *cuts), (*cuts, 1100), strict=True):
            parts.partial_fit(X[start:stop], y[start:stop], classes=[0, 1])
        assert parts.decision_function(X).tobytes() == whole.decision_function(X).tobytes(), cuts
