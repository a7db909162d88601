"""The whole rule of mixing in plain NumPy, row by row, to hold the compiled one against.

Nothing is imported from ``tunefree.mixing``: constants are repeated, and the learners are those of ``tests.naive``, a
step at a time, on a round's ranges and gradients.
"""

import numpy as np

from tests.naive import over
from tunefree.losses import Tweedie


class ScInOL2:
    """As :func:`tests.naive.scinol2`, with the initial wealth 1."""

    def __init__(self, n_features):
        self.G, self.S2, self.M, self.eta = *np.zeros((3, n_features)), np.ones(n_features)

    def weights(self, ranges, bound, weight):
        if weight > 0:
            self.M = np.maximum(self.M, bound * weight * ranges)
        reach = np.sqrt(self.S2 + self.M**2)
        self.w = over(np.sign(self.G) * np.minimum(np.abs(self.G), reach) * self.eta, 2 * reach**2)
        return self.w

    def learn(self, gradient, trace, weight, bound):
        g = weight * gradient
        self.G, self.S2, self.eta = self.G - g, self.S2 + g**2, self.eta - g * self.w


class Newton:
    """As :func:`tests.naive.newton`, with the prior variance 1.6 in units of the slopes."""

    def __init__(self, n_features):
        self.w, self.C, self.seen = np.zeros(n_features), np.zeros((n_features,) * 2), np.zeros(n_features, bool)

    def weights(self, ranges, bound, weight):
        new = (ranges != 0) & ~self.seen & (weight > 0)
        self.C[new, new], self.seen = 1.6 / bound, self.seen | new
        return self.w

    def learn(self, gradient, trace, weight, bound):
        square = gradient @ gradient
        if square > 1e-30:
            along, steepness = self.C @ gradient, weight**2 / (bound * weight)
            bend, spread = weight * min(trace / square, 1e6), gradient @ self.C @ gradient
            self.w = self.w - along * weight / (1 + max(bend, steepness) * spread)
            bend = bend if bend > 0 else steepness
            self.C = self.C - np.outer(along, along) * bend / (1 + bend * spread)


class Weights:
    """Base and top: weights, their means in which round t counts like t^2, and rounds."""

    def __init__(self, n):
        self.w, self.means, self.rounds = np.full(n, 1 / n), np.full(n, 1 / n), 0

    def learn(self, factors, kept):
        awake = ~np.isnan(factors)
        new = self.w.copy()
        new[awake] *= factors[awake]
        if awake.any():
            new[awake] *= self.w[awake].sum() / new[awake].sum()
        self.w, self.rounds = kept * new + (1 - kept) / len(new), self.rounds + 1
        self.means = self.means + 3 / (self.rounds + 2) * (self.w - self.means)

    def exponential(self, losses, rate):
        least = np.nanmin(losses, initial=np.inf)
        self.learn(np.exp(-np.minimum(rate * (losses - least), 50)), 1 - 1 / (self.rounds + 2))

    def soft(self, ratios, weight):
        now, following = (min(4 / np.sqrt(20 + self.rounds + later), 0.9) for later in (1, 2))
        step = min(now * weight, 0.9)
        self.learn(1 - step + step * ratios, following / now)


class Classes:
    """The mixture of members that predict classes."""

    def __init__(self, n_members, n_classes):
        self.K, self.biases = n_classes, n_classes <= 64
        n_features = n_members + 1 + n_classes * self.biases
        self.base, self.top, self.learners = Weights(n_members), Weights(3), [ScInOL2(n_features), Newton(n_features)]

    def base_of(self, members, weights):
        awake = ~np.isnan(members[:, 0])
        if not awake.any():
            return np.full(self.K, -np.log(self.K))
        return np.log(np.maximum(weights[awake] @ np.exp(members[awake]) / weights[awake].sum(), 1e-300))

    def features(self, members, base):
        """(F, K): members, base, and biases."""
        x = np.nan_to_num(np.clip(members - base, -10, 10) / 4)
        x = np.vstack([x, np.maximum(base, -20) / 4])
        x -= x.mean(1, keepdims=True)
        return np.vstack([x, np.eye(self.K) / 4]) if self.biases else x

    def corrected(self, weights, x, base):
        z = base + weights @ x
        return z - np.logaddexp.reduce(z)

    def step(self, members, y, weight, is_over=False):
        base = self.base_of(members, self.base.means if is_over else self.base.w)
        self.x = x = self.features(members, base)
        ranges = np.ptp(x, axis=1)
        ranges[len(members) + 1 :] = 1 / 4
        of_corrections = [self.corrected(own.weights(ranges, 1.0, weight), x, base) for own in self.learners]
        self.candidates = np.array([base, *of_corrections])
        mixed = np.log(np.maximum((self.top.means if is_over else self.top.w) @ np.exp(self.candidates), 1e-300))
        if weight > 0:
            y = int(y)
            for own, predicted in zip(self.learners, of_corrections, strict=True):
                p = np.exp(predicted)
                own.learn(x @ p - x[:, y], float((x**2 @ p - (x @ p) ** 2).sum()), weight, 1.0)
            self.base.soft(np.exp(members[:, y] - base[y]), weight)
            self.top.exponential(-self.candidates[:, y], weight)
        return mixed


class Numbers:
    """The mixture of members that predict numbers."""

    def __init__(self, n_members, loss):
        self.loss, self.base, self.top = loss, Weights(n_members), Weights(3)
        self.learners, self.steepest = [ScInOL2(n_members + 2), Newton(n_members + 2)], np.ones(2)
        self.lowest, self.highest, self.mean, self.residual, self.typical = np.inf, -np.inf, 0.0, 0.0, np.zeros(2)

    def within(self, predictions):
        if self.lowest > self.highest:
            return predictions
        beyond = (self.highest - self.lowest) / 2
        return np.clip(predictions, self.lowest - beyond, self.highest + beyond)

    def features(self, members, base):
        x = np.zeros(len(members) + 2)
        if self.residual > 0 and self.base.rounds > 5:
            x[:-2] = np.nan_to_num(np.clip((self.within(members) - base) / self.residual, -10, 10)) / 4
            x[-2] = np.clip((base - self.mean) / self.residual, -30, 30) / 4
        x[-1] = 1 / 4
        return x

    def step(self, members, y, weight, is_over=False):
        members, awake = members[:, 0], ~np.isnan(members[:, 0])
        w = (self.base.means if is_over else self.base.w) * awake
        base = w[awake] @ self.within(members[awake]) / w.sum() if awake.any() else self.mean
        self.x = x = self.features(members, base)
        bounds = self.steepest.copy()
        steps = [each.weights(np.abs(x), bound, weight) @ x for each, bound in zip(self.learners, bounds, strict=True)]
        steps = [base + self.residual * step for step in steps]
        self.candidates = np.array([base, *map(self.within, steps)])
        mixed = (self.top.means if is_over else self.top.w) @ self.candidates
        if weight > 0:
            scale = 0.5 / self.typical[0] if self.typical[0] > 0 else 0.0
            self.correct(y, weight, bounds, steps, self.residual * scale, self.residual**2 * scale)
            self.learn(members, y, weight, base, mixed)
        return mixed

    def correct(self, y, weight, bounds, predictions, slope_unit, curvature_unit):
        """Let the corrections learn a row, from the derivatives at their predictions."""
        for c, (learner, predicted) in enumerate(zip(self.learners, predictions, strict=True)):
            steep, bend = self.loss.slope(y, predicted) * slope_unit, self.loss.curvature(y, predicted) * curvature_unit
            clipped = np.clip(steep, -bounds[c], bounds[c])
            self.steepest[c] = max(bounds[c], abs(steep))
            trace = bend if bend > 0 else clipped**2
            learner.learn(clipped * self.x, float(trace * (self.x @ self.x)), weight, bounds[c])

    def learn(self, members, y, weight, base, mixed):
        rate = 3 / (max((self.base.rounds + 1) / weight, 1) + 2)
        widest = 8.0 if self.loss.lipschitz < np.inf else np.inf
        away = y - base
        if self.residual > 0:
            away = np.sign(away) * min(abs(away), widest * self.residual)
        self.lowest, self.highest = min(self.lowest, y), max(self.highest, y)
        self.mean += rate * (base + away - self.mean)
        self.residual += rate * (abs(away) - self.residual)
        now = np.array([self.loss.value(y, base), self.loss.value(y, mixed)])
        most = np.where(self.typical > 0, widest * np.where(self.typical > 0, self.typical, 1.0), np.inf)
        self.typical = self.typical + rate * (np.minimum(now, most) - self.typical)
        losses = np.array([np.nan if np.isnan(p) else self.loss.value(y, p) for p in self.within(members)])
        of_candidates = np.array([self.loss.value(y, p) for p in self.candidates])
        self.base.exponential(losses, weight / (8 * self.typical[0]) if self.typical[0] > 0 else 0.0)
        self.top.exponential(of_candidates, weight / (8 * self.typical[1]) if self.typical[1] > 0 else 0.0)


class Rates(Numbers):
    """The mixture of members that predict logarithms of means."""

    def centre(self):
        return np.log(self.mean) if self.mean > 0 else 0.0

    def within(self, predictions):
        if self.highest <= 0:
            return 0.0 * predictions
        high = np.log(self.highest) + 1
        low = np.log(self.lowest) - 1 if self.lowest > 0 else min(self.centre(), high) - 15
        return np.clip(predictions, low, high)

    def features(self, members, base):
        x = np.zeros(len(members) + 2)
        if self.residual > 0 and self.highest > 0 and self.base.rounds > 5:
            x[:-2] = np.nan_to_num(np.clip(self.within(members) - base, -10, 10)) / 4
            x[-2] = np.clip(base - self.centre(), -30, 30) / 4
        return x

    def step(self, members, y, weight, is_over=False):
        members, awake = members[:, 0], ~np.isnan(members[:, 0])
        w = (self.base.means if is_over else self.base.w) * awake
        means = np.exp(self.within(members[awake]))
        base = np.log(w[awake] @ means / w.sum()) if awake.any() else self.within(self.centre())
        self.x = x = self.features(members, base)
        bounds = self.steepest.copy()
        steps = [each.weights(np.abs(x), bound, weight) @ x for each, bound in zip(self.learners, bounds, strict=True)]
        has_unit = self.residual > 0 and self.highest > 0
        self.candidates = np.array([base, *(self.within(np.array(base + has_unit * step)) for step in steps)])
        mixed = np.log((self.top.means if is_over else self.top.w) @ np.exp(self.candidates))
        if weight > 0:
            scale = 1 / self.residual**2 if has_unit else 0.0
            self.correct(y, weight, bounds, self.candidates[1:], scale, scale)
            residual, rate = self.residual, 3 / (max((self.base.rounds + 1) / weight, 1) + 2)
            self.learn(members, y, weight, base, mixed)
            mean = np.exp(base)
            pearson = (mean - y) ** 2 / mean**self.loss.power
            self.residual = np.sqrt(residual**2 + rate * (pearson - residual**2))
        return mixed


def twin_of(n_members, n_classes, loss=None):
    """A twin of ``Mixture(n_members, n_classes, loss)``."""
    if n_classes:
        return Classes(n_members, n_classes)
    return (Rates if isinstance(loss, Tweedie) else Numbers)(n_members, loss)


def run(twin, members, y, weight):
    """What a twin predicts of rows, each before it learns it."""
    return np.array([np.atleast_1d(twin.step(*row)) for row in zip(members, y, weight, strict=True)])
