"""Compiled code checks no index; here it does, for every learner, kind of row and task."""

import os
import subprocess
import sys

import pytest

EVERYTHING = """
import numpy as np
from scipy import sparse
from tunefree.core import rows
from tunefree.learners import ALL
from tunefree.pool.model import Model
from tunefree.pool.targets import Labels

rng = np.random.default_rng(0)
X = rng.normal(size=(600, 6)) * 10.0 ** rng.integers(-3, 4, 6)
csr = sparse.csr_array(X * (rng.random(X.shape) < 0.5))
y = rng.choice(list("ab"), 600)
y[500:] = rng.choice(list("abcd"), 100)
codes = rng.integers(0, 4, (600, 2)) + [7, 11]
blocks = {
    "dense": rows.dense(X),
    "sparse": rows.sparse(csr.indptr, csr.indices + 1, csr.data),
    "table": rows.table(X, np.arange(1, 7), codes),
}
for kind, block in blocks.items():
    for learner in ["pool", *ALL]:
        model = Model("classification", learner, n_features=7)
        for start, stop in ((0, 50), (50, 320), (320, 600)):
            model.reserve(15 + (start > 300) * 20)
            model.learn(rows.part(block, start, stop), Labels.of(y[start:stop]), np.ones(stop - start))
        model.predict(block)
        model.certificate().table()
        if kind == "dense":
            model = Model("regression", learner, n_features=7)
            model.learn(block, rng.normal(size=600), np.ones(600))
            model.predict(block)
wide = np.zeros((300, 600))
wide[:, rng.permutation(100)[:40]] = rng.normal(size=(300, 40))
for learner in ["pool", *ALL]:
    model = Model("classification", learner, n_features=601)
    model.learn(rows.dense(wide), Labels.of(np.arange(300) % 8), np.ones(300))
    model.predict(rows.dense(wide))
model = Model("classification", "scinol2", "hinge", n_features=7)
model.learn(blocks["dense"], Labels.of(y), np.ones(600))
model.probabilities(model.predict(blocks["dense"]))
"""


@pytest.mark.slow
def test_no_index_is_out_of_bounds():
    checked = os.environ | {"NUMBA_BOUNDSCHECK": "1"}
    subprocess.run([sys.executable, "-c", EVERYTHING], env=checked, check=True)
