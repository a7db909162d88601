"""Models whose terms the tests look at."""

import datetime
from functools import cache

import numpy as np

from tunefree.model_files.plan import Plan
from tunefree.stream.batch import BadRows
from tunefree.stream.source import open_source
from tunefree.training.training import train
from tunefree.workflows.prediction import predict

TARGETS = ("rich", "mood", "pay")  # two classes, three classes, numbers


def table(n=1500, seed=0):
    """Numbers, of which some are missing, categories, and dates; targets that bend, with an interaction."""
    rng = np.random.default_rng(seed)
    age, income = rng.uniform(18, 80, n), rng.lognormal(0, 2, n)
    flag, job = rng.integers(0, 2, n), rng.choice(["clerk", "cook", "pilot", ""], n, p=[0.4, 0.3, 0.2, 0.1])
    day = [datetime.date(2021, 1, 1) + datetime.timedelta(days=int(d)) for d in rng.integers(0, 700, n)]
    missing = rng.random(n) < 0.1
    margin = np.sin(age / 8) * 2 + np.where(job == "pilot", 2.0 * flag - 1.0, 0.3 * np.log(income)) + missing
    margin += 0.5 * np.array([own.month > 6 for own in day])
    rich = np.where(rng.random(n) < 1 / (1 + np.exp(-margin)), "yes", "no")
    mood = np.array(["bad", "fair", "good"])[np.digitize(margin + rng.logistic(size=n), [-0.8, 0.8])]
    return {
        "age": np.where(missing, np.nan, age).tolist(),
        "income": income.tolist(),
        "flag": flag.astype(float).tolist(),
        "job": job.tolist(),
        "day": day,
        "rich": rich.tolist(),
        "mood": mood.tolist(),
        "pay": (1e4 * margin + 3e4).tolist(),
    }


def features(n=1500, seed=0, target="rich"):
    """The table with one of its targets."""
    return {name: values for name, values in table(n, seed).items() if name == target or name not in TARGETS}


@cache
def trained(target, **options):
    """A model of one of the targets."""
    return train(open_source(features(target=target)), Plan(target=target, **options))


def rows_of(model, columns):
    """A table as the model's rows."""
    return next(iter(predict(model, open_source(columns), BadRows()))).batch.rows


def assert_adds_up(decomposition, rows):
    """Contributions of rows, which add up to log-odds, of more classes minus their mean, or numbers."""
    margins = decomposition.model.predict(rows)
    margins = margins - margins.mean(axis=1, keepdims=True) if margins.shape[1] > 1 else margins
    contributions = decomposition.contributions(rows)
    assert contributions.shape == (len(margins), len(decomposition.names), margins.shape[1])
    np.testing.assert_allclose(contributions.sum(axis=1), margins, rtol=0, atol=1e-9 * np.abs(margins).max())
    assert np.ptp(contributions[:, 0], axis=0).max() <= 1e-9 * np.abs(margins).max()  # a constant is one
    return contributions
