"""What `tunefree certify` and reports say of generations is true of the rows that were learned."""

import numpy as np
import pytest

from tunefree.model_files.plan import Plan
from tunefree.report.guarantees import certificates
from tunefree.report.rendering import record
from tunefree.stream.source import open_source
from tunefree.theory.mixing import mixing_excess
from tunefree.training.training import train

N = 700
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 2))
SCORES = X @ [1.0, -2.0] + 0.5
LABELS = np.where(RNG.random(N) < 1 / (1 + np.exp(-SCORES)), "yes", "no")


def trained(label, **plan):
    return train(open_source({"a": X[:, 0], "b": X[:, 1], "label": label}), Plan(target="label", **plan))


def test_no_linear_model_is_below_the_certificate_of_generations():
    model, signs = trained(LABELS), np.where(LABELS == "yes", 1.0, -1.0)
    for factor in (0.0, 0.1, 0.5, 1.0, 2.0):
        radius = factor * max(1.0 * abs(X[:, 0]).max(), 2.0 * abs(X[:, 1]).max(), 0.5)
        bound = model.model.certificate().lower_bound(radius)
        assert bound <= np.logaddexp(0.0, -signs * factor * SCORES).mean()
        assert factor > 0.5 or bound > 0.75 * record(certificates(model))["loss"]  # and it says something


def test_the_bound_on_mixing_is_the_sum_over_new_and_known_rows():
    table = {"a": np.tile(X[:300, 0], 3), "b": np.tile(X[:300, 1], 3), "label": np.tile(LABELS[:300], 3)}
    model = train(open_source(table), Plan(target="label"))
    mixing = record(certificates(model))["mixing"]
    accounts = [(context.mixture.account, context.mixture.top.rounds[0]) for context in model.model.pool.contexts]
    assert [rounds for _, rounds in accounts] == [300, 600] and mixing["rows"] == 900
    excess = sum(account.losses[0] + mixing_excess(account, rounds) for account, rounds in accounts)
    assert mixing["loss_at_most"] == pytest.approx(excess / 900) and mixing["loss"] <= mixing["loss_at_most"]


def test_numbers_have_a_bound_too():
    y = SCORES + 0.5 * RNG.standard_t(3.0, N)
    model = trained(y, task="regression")
    mixing, certificate = record(certificates(model))["mixing"], model.model.certificate()
    assert mixing["loss"] <= mixing["loss_at_most"] < 2.0 * mixing["base"]
    for factor in (0.1, 0.5, 1.0):
        predicted = y.mean() + factor * (X @ [1.0, -2.0])
        radius = factor * max(abs(X[:, 0]).max(), 2.0 * abs(X[:, 1]).max()) / certificate.unit
        assert certificate.lower_bound(radius) <= ((y - predicted)[1:] ** 2).mean()
