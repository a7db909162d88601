"""No mixture loses more than its theorem says: streams at random, of growing scales, and that Hypothesis drives."""

import math

import numpy as np
import pytest
from hypothesis import given, target
from hypothesis import strategies as st

from tests.mixing.streams import KINDS, LOSSES, N_MEMBERS, late_class, log_softmax, of_kind, stream
from tests.mixing.twin import twin_of
from tunefree.losses.classification import Logistic
from tunefree.losses.deviances import Tweedie
from tunefree.losses.objectives import Objective
from tunefree.mixing.mixture import Mixture
from tunefree.papers.scinol import scinol2_bound
from tunefree.theory.bounds import paper_bound
from tunefree.theory.mixing import mixing_excess

OF_RATES = [kind for kind, loss in LOSSES.items() if isinstance(loss, Tweedie)]  # whose targets are above 0
OF_NUMBERS = [kind for kind in LOSSES if kind not in OF_RATES]
OF_CLASSES = [kind for kind in KINDS if kind not in LOSSES]


def correction_excess(correction, weights):
    """By how much the loss of the first correction exceeds that of fixed weights at most (Theorem 2)."""
    return paper_bound(correction, Objective("classification", Logistic()), weights)


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


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("growth", [0.1, -0.05])
def test_no_random_stream_beats_the_theorem_of_mixing(kind, growth):
    members, y, weight = stream(kind, 250, 0, growth)
    for of_rows in (weight, np.ones(len(y))):
        Run(kind, members, y, of_rows).check()


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
    rng, options = np.random.default_rng(0), (0.0, 1.0)
    for greedy in (True, False):
        mixture, members, targets = Mixture(2, *of_kind(kind)), [], []
        for t in range(150):
            row = log_softmax(rng.normal(size=(1, 2, 2)) * 3.0) if kind == "two" else rng.normal(size=(1, 2, 1))
            mixed, base = mixture.learn(row, np.zeros(1), np.zeros(1))[0], None
            signs = options if kind == "two" else (-(1.05**t), 0.0, 1.05**t)
            signs = (1.05**-t, 1.0, 1.05**t) if kind in OF_RATES else signs
            base = mixture.mean(row)[0]
            scores = [loss_of(kind, y, mixed) - (0.0 if greedy else loss_of(kind, y, base)) for y in signs]
            members.append(row)
            targets.append(float(signs[int(np.argmax(scores))]))
            mixture.learn(row, np.array(targets[-1:]), np.ones(1))
        Run(kind, np.concatenate(members), np.array(targets), np.ones(150)).check()


@pytest.mark.parametrize("kind", ["two", "three", "many"])
@pytest.mark.parametrize("with_weights", [False, True])
def test_rows_without_weights_have_no_gap_and_the_bound_is_that_of_the_theorem(kind, with_weights):
    members, y, weight = stream(kind, 400, 5)
    mixture = Mixture(N_MEMBERS, *of_kind(kind))
    mixture.learn(members, y, weight if with_weights else np.ones(400))
    rounds = int((weight > 0).sum()) if with_weights else 400
    assert mixture.top.rounds == rounds
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
        loss, excess = losses_of(kind, y, fixed, weight), correction_excess(correction, u)
        rounding = 1e-6 * (1.0 + abs(loss))
        assert run.of_candidates[1] <= loss + excess + rounding
        assert run.loss <= loss + excess + run.excess + rounding
        assert excess <= scinol2_bound(u, *scales_of(run, weight)) + rounding
    assert correction_excess(correction, np.zeros(n_features)) <= n_features


@pytest.mark.parametrize("n_classes", [2, 5])
def test_a_late_class_has_a_bias_of_its_own_from_then_on(n_classes):
    early, late, y = late_class(n_classes, 100, 0)
    mixture, twin = Mixture(N_MEMBERS, n_classes), twin_of(N_MEMBERS, n_classes)
    n_features, of_first, losses = N_MEMBERS + 2 + n_classes, 0.0, np.zeros(4)
    fixed = np.random.default_rng(0).normal(size=(4, n_features)) * [[0.0], [0.1], [1.0], [3.0]]
    for rows, labels in ((early, y[:100]), (late, y[100:])):
        for row, label in zip(rows, labels.astype(int), strict=True):
            twin.step(row, label, 1.0)
            x = np.pad(twin.x, ((0, n_features - len(twin.x)), (0, 0)))
            of_first -= twin.candidates[1, label]
            losses -= log_softmax(twin.candidates[0] + fixed @ x)[:, label]
        mixture.learn(rows, labels, np.ones(100))
        if rows is early:
            mixture.add_class()
            twin.add_class()
    for u, loss in zip(fixed, losses, strict=True):
        assert of_first <= loss + correction_excess(mixture.corrections[0], u) + 1e-6 * (1.0 + loss)


def scales_of(run, weight):
    """S, without a learner's rounding, and the first range of each feature that is not 0, times its round's weight."""
    ranges = np.array([h * np.ptp(x, axis=1) for x, h in zip(run.features, weight, strict=True) if h > 0])
    n_dense = N_MEMBERS + 1
    ranges[:, n_dense:] = 0.25 * weight[weight > 0][:, None]
    correction, n = run.mixture.corrections[0], ranges.shape[1]
    unit = 1.0 / np.where(correction.inverse[:n] > 0, correction.inverse[:n], 1.0)
    squares = correction["squares"][:n, 0] * unit**2
    return np.sqrt(squares + ranges.max(0) ** 2), ranges[(ranges > 0).argmax(0), np.arange(n)]


@pytest.mark.parametrize("kind", OF_NUMBERS)
@pytest.mark.parametrize("growth", [0.0, 0.02, -0.02])
def test_no_fixed_weights_beat_the_theorem_of_clipped_numbers(kind, growth):
    members, y, weight = stream(kind, 200, 4, growth)
    loss, twin, rng = LOSSES[kind], twin_of(N_MEMBERS, *of_kind(kind)), np.random.default_rng(0)
    mixture = Mixture(N_MEMBERS, *of_kind(kind))
    mixture.learn(members, y, weight)
    comparators = [np.zeros(N_MEMBERS + 2), *rng.normal(size=(3, N_MEMBERS + 2))]
    regrets, costs, clipped, steepest_weight = np.zeros(4), np.zeros(4), 0.0, 1.0
    for row, target_of_row, h in zip(members, y, weight, strict=True):
        residual, steepest = twin.residual, twin.steepest[0]
        lowest, highest, typical = twin.lowest, twin.highest, twin.typical[0]
        twin.step(row, target_of_row, h)
        if h > 0 and typical > 0:
            base, predicted, z = twin.candidates[0], twin.candidates[1], twin.z[0]

            def scaled(at, base=base, residual=residual, typical=typical, y=target_of_row):
                return loss.value(y, base + residual * at) / (2 * typical)

            steep = loss.slope(target_of_row, base + residual * z) * residual / (2 * typical)
            s, of_first = np.clip(steep, -steepest, steepest), loss.value(target_of_row, predicted) / (2 * typical)
            clipped += abs(steep - s)
            assert of_first <= scaled(z) + 1e-9 * scaled(z) or (
                not lowest <= target_of_row <= highest and of_first <= scaled(0.0) * (1 + 1e-9)
            )
            for i, u in enumerate(comparators):
                ux = float(u @ twin.x)
                regrets[i] += h * (of_first - scaled(ux))
                costs[i] += h * (of_first - scaled(z) + (steep - s) * (z - ux))
    assert clipped <= twin.steepest[0] - steepest_weight + 1e-9 * twin.steepest[0]
    for u, regret, cost in zip(comparators, regrets, costs, strict=True):
        bound = correction_excess(mixture.corrections[0], u) + cost
        assert regret <= bound + 1e-6 * (1.0 + abs(regret) + abs(cost))
