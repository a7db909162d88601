"""No mixture loses more than its theorem says: streams at random, of growing scales, and that Hypothesis drives."""

import math

import numpy as np
import pytest
from hypothesis import given, target
from hypothesis import strategies as st

from tests.mixing.streams import KINDS, LOSSES, N_MEMBERS, log_softmax, of_kind, stream
from tests.mixing.twin import twin_of
from tunefree.losses.classification import Logistic
from tunefree.losses.deviances import Tweedie
from tunefree.losses.objectives import Objective
from tunefree.mixing.mixture import Mixture
from tunefree.theory.bounds import paper_bound
from tunefree.theory.mixing import mixing_excess

OF_RATES = [kind for kind, loss in LOSSES.items() if isinstance(loss, Tweedie)]  # whose targets are above 0
LOGISTIC = Objective("classification", Logistic())
OF_CLASSES = [kind for kind in KINDS if kind not in LOSSES]


def loss_of(kind, y, prediction):
    """The loss of one prediction (K,)."""
    return LOSSES[kind].value(y, float(prediction[0])) if kind in LOSSES else -prediction[int(y)]


def losses_of(kind, y, predictions, weight):
    return float(sum(h * loss_of(kind, *row) for h, *row in zip(weight, y, predictions, strict=True) if h > 0))


class Run:
    """A stream that a mixture learned, and what its twin says of the candidates and features of each round."""

    def __init__(self, kind, members, y, weight):
        self.mixture = Mixture(members.shape[1], *of_kind(kind))
        self.mixed = self.mixture.learn(members, y, weight)
        self.loss = losses_of(kind, y, self.mixed, weight)
        self.excess = mixing_excess(self.mixture.account, float(self.mixture.top.rounds[0]))
        twin, self.candidates, self.features = twin_of(members.shape[1], *of_kind(kind)), [], []
        for row in zip(members, y, weight, strict=True):
            twin.step(*row)
            self.candidates.append(np.reshape(twin.candidates, (3, -1)))
            self.features.append(twin.x)
        self.of_candidates = [losses_of(kind, y, [of[c] for of in self.candidates], weight) for c in range(3)]

    def check(self):
        """Theorem 1, and that the account is right."""
        account = self.mixture.account
        assert float(account.losses[1]) == pytest.approx(self.loss, rel=1e-9, abs=1e-9)
        assert float(account.losses[0]) == pytest.approx(self.of_candidates[0], rel=1e-5, abs=1e-6)
        for loss in (float(account.losses[0]), *self.of_candidates[1:]):
            assert self.loss <= loss + self.excess + 1e-6 * (1.0 + abs(loss))


@pytest.mark.parametrize("kind", ["two", "three", *LOSSES])
@given(seed=st.integers(0, 2**32), n=st.integers(1, 80), noise=st.floats(-3.0, 3.0), weights=st.booleans())
def test_no_stream_is_found_that_beats_the_theorem_of_mixing(kind, seed, n, noise, weights):
    """The base is right for a while, then the corrections are, then neither; sizes jump by powers of ten."""
    rng = np.random.default_rng(seed)
    members, y, weight = stream(kind, n, seed)
    blocks = np.repeat(rng.normal(size=n // 10 + 1), 10)[:n]
    if kind in LOSSES:
        size = 10.0 ** np.rint(noise * blocks)
        members, y = members * size[:, None, None], y * size
    else:
        members = log_softmax(members * 10.0 ** (noise * blocks)[:, None, None])
    run = Run(kind, members, y, weight if weights else np.ones(n))
    target(run.loss - run.of_candidates[0] - run.excess, label="excess minus bound")
    run.check()


@pytest.mark.parametrize("kind", ["two", *LOSSES])
def test_an_adversary_does_not_beat_the_theorem_of_mixing(kind):
    """It chooses the target that the mixture predicts worst, or at which it is worse than the base by most."""
    rng = np.random.default_rng(0)
    for greedy in (True, False):
        mixture, members, targets = Mixture(2, *of_kind(kind)), [], []
        for t in range(150):
            row = log_softmax(rng.normal(size=(1, 2, 2)) * 3.0) if kind == "two" else rng.normal(size=(1, 2, 1))
            mixed, base = mixture.learn(row, np.zeros(1), np.zeros(1))[0], mixture.predict(row, is_base=True)[0]
            options = (0.0, 1.0) if kind == "two" else (-(1.05**t), 0.0, 1.05**t)
            options = (1.05**-t, 1.0, 1.05**t) if kind in OF_RATES else options
            scores = [loss_of(kind, y, mixed) - (0.0 if greedy else loss_of(kind, y, base)) for y in options]
            members.append(row)
            targets.append(options[int(np.argmax(scores))])
            mixture.learn(row, np.array(targets[-1:]), np.ones(1))
        Run(kind, np.concatenate(members), np.array(targets), np.ones(150)).check()


@pytest.mark.parametrize("kind", ["two", "three", "many"])
@pytest.mark.parametrize("with_weights", [False, True])
def test_rows_without_weights_have_no_gap_and_the_bound_equals_the_theorem(kind, with_weights):
    members, y, weight = stream(kind, 400, 5)
    weight = weight if with_weights else np.ones(400)
    mixture = Mixture(N_MEMBERS, *of_kind(kind))
    mixture.learn(members, y, weight)
    assert mixture.top.rounds == np.count_nonzero(weight)
    if with_weights:
        assert mixture.account.gap > 1e-6
    else:
        assert mixture.account.gap < 1e-10 and mixture.account.units.tolist() == [1.0, 0.0, 1.0]
        excess = mixing_excess(mixture.account, 400.0)
        assert math.log(3) < excess <= math.log(3) + 2 / 3 * math.log(400) + 1e-9


@pytest.mark.parametrize("kind", OF_CLASSES)
@pytest.mark.parametrize("growth", [0.0, 0.02])
@pytest.mark.parametrize("seed", range(2))
def test_no_fixed_weights_on_members_beat_the_theorem_of_corrections(kind, growth, seed):
    members, y, weight = stream(kind, 200, seed, growth)
    rng, run = np.random.default_rng(seed), Run(kind, members, y, weight)
    correction, n_features = run.mixture.corrections[0], len(run.features[0])
    learned = correction["gradients"][:n_features, 0] * 1e-2
    for u in (np.zeros(n_features), rng.normal(size=n_features), 0.1 * rng.normal(size=n_features), learned):
        rows = zip(run.candidates, run.features, strict=True)
        fixed = [log_softmax((of[0] + u @ x)[None])[0] for of, x in rows]
        loss, excess = losses_of(kind, y, fixed, weight), paper_bound(correction, LOGISTIC, u)  # Theorem 2
        rounding = 1e-6 * (1.0 + abs(loss))
        assert run.of_candidates[1] <= loss + excess + rounding
        assert run.loss <= loss + excess + run.excess + rounding
    assert paper_bound(correction, LOGISTIC, np.zeros(n_features)) <= n_features
