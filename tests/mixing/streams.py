"""Streams of members' predictions that tests of mixing share."""

from functools import partial

import numpy as np
from scipy import special

from tunefree.losses import Tweedie, loss_of

N_MEMBERS = 5
LOSSES = {name: loss_of("regression", name) for name in ("square", "absolute", "huber:1", "quantile:0.9")}
LOSSES |= {name: loss_of("regression", name) for name in ("poisson", "gamma", "tweedie:1.5")}
CLASSES = {"two": 2, "three": 3, "many": 26, "more than have biases": 66}
KINDS = [*CLASSES, *LOSSES]
log_softmax = partial(special.log_softmax, axis=-1)


def of_kind(kind):
    """Classes, 0 for numbers, and the loss."""
    return CLASSES.get(kind, 0), LOSSES.get(kind)


def stream(kind, n, seed, growth=0.0, sleepy=0.15):
    """Members (n, M, K) of all qualities that sleep now and then, targets, and weights of which some are 0.

    Numbers, or the noise of logarithms, grow like exp(growth t).
    """
    rng, (n_classes, _) = np.random.default_rng(seed), of_kind(kind)
    truth = 2.0 * rng.normal(size=(n, max(n_classes, 1)))
    quality, noise = rng.uniform(0.0, 1.5, (1, N_MEMBERS, 1)), rng.uniform(0.1, 2.0, (1, N_MEMBERS, 1))
    members = truth[:, None] * quality + noise * rng.normal(size=(n, N_MEMBERS, truth.shape[1]))
    scale = np.exp(growth * np.arange(n))
    if n_classes:
        chances = np.exp(log_softmax(truth))
        y = np.array([rng.choice(n_classes, p=row) for row in chances], float)
        members = log_softmax(members * scale[:, None, None])
    elif isinstance(LOSSES[kind], Tweedie):
        means = np.exp(0.5 * truth[:, 0]) * scale
        y = rng.poisson(np.minimum(means, 1e15)) if kind == "poisson" else means * rng.gamma(2.0, 0.5, n)
        y = np.where(rng.random(n) < 0.5, 0.0, y) if kind == "tweedie:1.5" else 1.0 * y
        members = 0.5 * members + np.log(scale)[:, None, None]
    else:
        y = (truth[:, 0] + 0.3 * rng.standard_t(2.0, n)) * scale
        members = members * scale[:, None, None]
    members[rng.random((n, N_MEMBERS)) < sleepy] = np.nan
    members[n // 2 :, 1] = members[n // 2 :, 2]  # a birth: another member takes the slot
    members[n // 3] = np.nan
    return members, y, np.where(rng.random(n) < 0.1, 0.0, rng.exponential(size=n))
