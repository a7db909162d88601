"""Claims of a made portfolio whose truth is known: counts, amounts, and amounts for a year of each policy.

100,000 policies, of which 4 % have a claim, with exposures in (0, 1]. The frequency has effects of numbers and of
categories and an interaction; so has the severity. Models are judged on as many other policies: the mean deviance from
the claims, its excess over the truth's, the sum of the predictions over that of the claims learned, and the largest
deviation by decile of prediction. LightGBM has its defaults and the logarithm of the exposure, and of the mean rate, as
an initial score; scikit-learn's generalized linear models have one-hot categories and standardised numbers. The gamma
loss is of the policies with claims, whose number is the weight. Constants of the package were chosen on the seeds 0
and 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from common import parser_of

POLICIES, FEW = 100_000, 2000
POWERS = {"poisson": 1.0, "gamma": 2.0, "tweedie": 1.5}
SCALE = 2.0  # of the gamma distribution of severities: its shape is 1 / SCALE


class Portfolio(NamedTuple):
    """Policies with what happened to them."""

    X: pd.DataFrame
    exposure: np.ndarray
    frequency: np.ndarray  # true number of claims a year
    severity: np.ndarray  # true mean amount of a claim
    claims: np.ndarray
    amount: np.ndarray  # of all claims of a policy


def portfolio(n: int, seed: int) -> Portfolio:
    """So many made policies."""
    rng = np.random.default_rng(seed)
    age, vehicle = 18.0 + 62.0 * rng.beta(1.6, 2.4, n), np.minimum(rng.exponential(7.0, n), 40.0)
    power, density = rng.integers(4, 16, n).astype(float), np.exp(rng.normal(6.0, 1.6, n))
    bonus = 50.0 + 50.0 * rng.beta(0.6, 3.0, n)
    region, brand, gas = rng.integers(0, 21, n), rng.integers(0, 11, n), rng.random(n) < 0.5
    of_regions, of_brands = (np.random.default_rng(17).normal(0.0, spread, k) for spread, k in ((0.25, 21), (0.15, 11)))
    logs = 0.9 * np.exp(-((age - 18.0) / 6.0)) + 0.25 * ((age - 48.0) / 25.0) ** 2 + 0.02 * (bonus - 50.0)
    logs += 0.1 * (np.log(density) - 6.0) - 0.015 * vehicle + of_regions[region] + of_brands[brand] - 0.1 * gas
    logs += 0.6 * ((age < 27.0) & (power >= 9.0))
    frequency = 0.0585 * np.exp(logs)
    exposure = np.round(np.clip(rng.beta(1.1, 0.9, n), 1 / 365, 1.0) * 365.0) / 365.0
    claims = rng.poisson(exposure * frequency).astype(float)
    severity = 1500.0 * np.exp(0.03 * (power - 8.0) - 0.02 * vehicle + 1.5 * of_brands[brand] + 0.3 * (age < 25.0))
    amount = rng.gamma(np.maximum(claims, 1.0) / SCALE, SCALE * severity) * (claims > 0)
    names = [f"R{k}" for k in range(21)], [f"B{k}" for k in range(11)]
    of_categories = (pd.Categorical.from_codes(c, k) for c, k in zip((region, brand), names, strict=True))
    columns = {"age": age, "vehicle": vehicle, "power": power, "density": density, "bonus": bonus}
    X = pd.DataFrame(columns | dict(zip(("region", "brand"), of_categories, strict=True)) | {"gas": gas.astype(float)})
    return Portfolio(X, exposure, frequency, severity, claims, amount)


class Problem(NamedTuple):
    """Targets of a loss with exposures, or weights where there are none."""

    X: pd.DataFrame
    y: np.ndarray
    exposure: np.ndarray | None
    weight: np.ndarray
    truth: np.ndarray  # the true mean of y

    @classmethod
    def of(cls, loss: str, portfolio: Portfolio) -> Problem:
        """The problem of a loss."""
        ones = np.ones(len(portfolio.claims))
        if loss == "poisson":
            return cls(
                portfolio.X, portfolio.claims, portfolio.exposure, ones, portfolio.exposure * portfolio.frequency
            )
        if loss == "tweedie":
            truth = portfolio.exposure * portfolio.frequency * portfolio.severity
            return cls(portfolio.X, portfolio.amount, portfolio.exposure, ones, truth)
        rows = np.flatnonzero(portfolio.claims)
        mean = portfolio.amount[rows] / portfolio.claims[rows]
        return cls(
            portfolio.X.iloc[rows].reset_index(drop=True), mean, None, portfolio.claims[rows], portfolio.severity[rows]
        )


def deviance(y: np.ndarray, mean: np.ndarray, weight: np.ndarray, power: float) -> float:
    """The mean deviance of predictions."""
    from sklearn.metrics import mean_tweedie_deviance

    return float(mean_tweedie_deviance(y, mean, sample_weight=weight, power=power))


def of_tunefree(loss: str, train: Problem, test: Problem, seed: int) -> np.ndarray:
    """What the pool predicts."""
    from tunefree import TuneFreeRegressor

    model = TuneFreeRegressor(loss=loss, random_state=seed)
    weight = None if loss != "gamma" else train.weight
    model.fit(train.X, train.y, sample_weight=weight, exposure=train.exposure)
    return np.concatenate([model.predict(part.X, exposure=part.exposure) for part in (train, test)])


def of_lightgbm(loss: str, train: Problem, test: Problem, seed: int) -> np.ndarray:
    """What LightGBM predicts."""
    import lightgbm

    power: dict[str, Any] = {"tweedie_variance_power": POWERS[loss]} if loss == "tweedie" else {}
    offsets = [np.zeros(len(p.y)) if p.exposure is None else np.log(p.exposure) for p in (train, test)]
    start = np.log(np.average(train.y / np.exp(offsets[0]), weights=train.weight * np.exp(offsets[0])))
    model = lightgbm.LGBMRegressor(objective=loss, random_state=seed, verbose=-1, n_jobs=1, **power)
    model.fit(train.X, train.y, sample_weight=train.weight, init_score=offsets[0] + start)
    raw = [model.predict(p.X, raw_score=True) + o + start for p, o in zip((train, test), offsets, strict=True)]
    return np.exp(np.concatenate(raw))


def of_linear(loss: str, train: Problem, test: Problem, seed: int) -> np.ndarray:
    """What a generalized linear model predicts; exposures are rates and weights, which is the same."""
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import TweedieRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    numbers = train.X.select_dtypes("number").columns.tolist()
    columns = make_column_transformer((StandardScaler(), numbers), remainder=OneHotEncoder(handle_unknown="ignore"))
    glm = TweedieRegressor(power=POWERS[loss], alpha=1e-4, link="log", max_iter=1000)
    model = make_pipeline(columns, glm)
    exposure = np.ones(len(train.y)) if train.exposure is None else train.exposure
    weight = train.weight * exposure ** (2.0 - POWERS[loss])
    model.fit(train.X, train.y / exposure, tweedieregressor__sample_weight=weight)
    means = [model.predict(p.X) * (1.0 if p.exposure is None else p.exposure) for p in (train, test)]
    return np.concatenate(means)


MODELS: dict[str, Callable[..., np.ndarray]] = {"tunefree": of_tunefree, "LightGBM": of_lightgbm, "GLM": of_linear}


def figures(loss: str, predictions: np.ndarray, train: Problem, test: Problem) -> dict[str, float]:
    """How good predictions of the rows learned and of others are."""
    power, learned, others = POWERS[loss], predictions[: len(train.y)], predictions[len(train.y) :]
    rates = others / (1.0 if test.exposure is None else test.exposure)
    deciles = np.array_split(np.argsort(rates, kind="stable"), 10)
    by_decile = [np.sum((others * test.weight)[d]) / np.sum((test.truth * test.weight)[d]) - 1.0 for d in deciles]
    return {
        "deviance": deviance(test.y, others, test.weight, power),
        "excess": deviance(np.maximum(test.truth, 1e-300), others, test.weight, power),
        "sum": float(np.sum(learned * train.weight) / np.sum(train.y * train.weight)),
        "decile": float(np.abs(by_decile).max()),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Compare models on the portfolios of some seeds."""
    parser = parser_of(__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--losses", nargs="+", default=list(POWERS), choices=list(POWERS))
    options = parser.parse_args(arguments)
    n, seeds = (FEW, [0]) if options.quick else (POLICIES, options.seeds)
    for loss in options.losses:
        rows: dict[str, list[dict[str, float]]] = {name: [] for name in MODELS}
        for seed in seeds:
            train, test = (Problem.of(loss, portfolio(n, number)) for number in (2 * seed, 2 * seed + 1))
            for name, predict in MODELS.items():
                rows[name].append(figures(loss, predict(loss, train, test, seed), train, test))
                line = "  ".join(f"{key} {value:.5g}" for key, value in rows[name][-1].items())
                print(f"{loss:8} seed {seed} {name:9} {line}", flush=True)
            truth = deviance(test.y, np.maximum(test.truth, 1e-300), test.weight, POWERS[loss])
            print(f"{loss:8} seed {seed} truth     deviance {truth:.5g}", flush=True)
        if len(seeds) > 1:
            for name, of_model in rows.items():
                means = {key: np.mean([row[key] for row in of_model]) for key in of_model[0]}
                print(f"{loss:8} mean   {name:9} " + "  ".join(f"{key} {value:.5g}" for key, value in means.items()))


if __name__ == "__main__":
    main()
