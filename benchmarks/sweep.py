"""The figure of the README: test loss after one pass over the census data against the learning rate.

tunefree has no learning rate and is a horizontal line. The script writes docs/figures/sweep.png and .svg. It
needs matplotlib and Vowpal Wabbit, which ``make bench`` installs.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import datasets
import matplotlib as mpl
import numpy as np
import vowpal
from accuracy import ours

mpl.use("Agg")
import matplotlib.pyplot as plt

FIGURES = Path(__file__).parents[1] / "docs" / "figures"
RATES = np.logspace(-4, 2, 13)
BLUE, ORANGE, BLACK = "#0072B2", "#D55E00", "#000000"


def signs(table) -> np.ndarray:
    """Labels -1 and +1."""
    return np.where(np.array(table["income"].to_pylist()) == ">50K", 1.0, -1.0)


def gradient_descent(train, test, rate: float) -> float:
    """Test log-loss of scikit-learn's SGD at a constant rate, with one-hot encoded columns and standardised numbers."""
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import SGDClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    frames = [table.drop_columns("income").to_pandas() for table in (train, test)]
    numbers = frames[0].select_dtypes("number").columns.tolist()
    others = [column for column in frames[0].columns if column not in numbers]
    prepare = make_column_transformer((StandardScaler(), numbers), (OneHotEncoder(handle_unknown="ignore"), others))
    sgd = SGDClassifier(
        loss="log_loss", learning_rate="constant", eta0=rate, max_iter=1, tol=None, alpha=0, shuffle=False
    )
    model = make_pipeline(prepare, sgd).fit(frames[0], signs(train))
    return float(np.logaddexp(0, -signs(test) * model.decision_function(frames[1])).mean())


def main() -> None:
    """Run the benchmark and draw the figure."""
    split = datasets.load(next(datasets.available(["adult"])))
    train, test, y = split.train, split.test, split.targets(split.test)
    with tempfile.TemporaryDirectory() as name:
        ours_alone = ours(split, Path(name))["log_loss"]
        texts = (datasets.lines(split, table) for table in (train, test))
        problem = vowpal.Problem.write(Path(name), *texts, 2, y)
        problems = [problem._replace(options=("-l", str(rate))) for rate in RATES]
        theirs = [vowpal.log_loss(y, vowpal.run(each).predictions) for each in problems]
    descent = [gradient_descent(train, test, rate) for rate in RATES]
    for rate, one, other in zip(RATES, theirs, descent, strict=True):
        print(f"rate {rate:10.4g}   Vowpal Wabbit {one:.4f}   SGD on scaled features {other:.4f}")
    print(f"tunefree {ours_alone:.4f}")
    figure, axes = plt.subplots(figsize=(7, 3.8), layout="constrained")
    axes.plot(RATES, theirs, "o-", color=BLUE)
    axes.plot(RATES, descent, "s--", color=ORANGE)
    axes.axhline(ours_alone, color=BLACK, linewidth=2)
    axes.set(xscale="log", ylim=(0.26, 0.7), xlabel="learning rate", ylabel="log-loss on the test set (nats)")
    axes.set_title("Census data, one pass over 32,561 rows", loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    axes.text(5e-3, 0.53, "Vowpal Wabbit", color=BLUE)
    axes.text(0.5, 0.6, "scikit-learn SGD\non scaled features", color=ORANGE)
    axes.text(
        RATES[-1],
        ours_alone - 0.015,
        f"tunefree, nothing to choose: {ours_alone:.3f}",
        color=BLACK,
        ha="right",
        va="center",
    )
    FIGURES.mkdir(parents=True, exist_ok=True)
    for suffix in ("png", "svg"):
        figure.savefig(FIGURES / f"sweep.{suffix}", dpi=150, metadata={} if suffix == "png" else {"Date": None})


if __name__ == "__main__":
    main()
