"""``fit`` with its defaults against logistic (or ridge) regression tuned by cross-validation: test losses and times.

The baseline standardises numbers, one-hot encodes other columns, and chooses C (or alpha) among five values by 3-fold
cross-validation, with a final fit to all training rows: 16 fits. Texts have the same features for both: log word
counts, and in a second result TF-IDF, which is customary for logistic regression. Times are of one run each, one after
the other. The data sets are those of ``accuracy.py``; ``--sets a,b`` selects some of them.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Sequence
from typing import Any

import datasets
import numpy as np
from common import keep, kept

from tunefree import TuneFreeClassifier, TuneFreeRegressor

STRENGTHS = np.logspace(-2, 2, 5)  # C; alpha is 1 / C
OF_TF_IDF = np.logspace(0, 4, 5)  # C, for rows of length 1
FOLDS = 3
WARM = 300  # rows of a fit before the timed one, which compiles the code
TOO_LONG = {"flights_3m"}  # 16 logistic regressions of two million rows


def tuned(problem: datasets.Matrices, strengths: np.ndarray) -> Any:
    """The baseline: a pipeline with standardisation and cross-validation."""
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LogisticRegressionCV, RidgeCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    if not problem.classes:
        model = RidgeCV(alphas=1 / strengths, cv=FOLDS)
    else:
        model = LogisticRegressionCV(
            Cs=strengths,
            cv=FOLDS,
            scoring="neg_log_loss",
            l1_ratios=(0,),
            max_iter=1000,
            n_jobs=-1,
            use_legacy_attributes=False,
        )
    scaled = make_column_transformer((StandardScaler(), slice(0, problem.n_numbers)), remainder="passthrough")
    return make_pipeline(scaled, model) if problem.n_numbers else model


def timed_fit(model: Any, problem: datasets.Matrices) -> float:
    """Time of fitting the training rows, in seconds."""
    start = time.perf_counter()
    model.fit(problem.X, problem.y)
    return time.perf_counter() - start


def figures_of(model: Any, problem: datasets.Matrices) -> dict[str, float]:
    """Test losses."""
    if not problem.classes:
        misses = model.predict(problem.X_test) - problem.y_test
        return {
            "mean_absolute_error": float(np.abs(misses).mean()),
            "root_mean_squared_error": float(np.sqrt((misses**2).mean())),
        }
    odds = model.predict_proba(problem.X_test)
    right = odds[np.arange(len(odds)), np.searchsorted(model.classes_, problem.y_test)]
    tiny = np.finfo(np.float64).tiny
    log_loss = -np.log(np.maximum(right, tiny)).mean()
    return {"log_loss": float(log_loss), "error": float((odds.argmax(axis=1) != problem.y_test).mean())}


def measure(data: datasets.DataSet) -> list[dict[str, Any]]:
    """Results on a data set: two in regression, one for each loss; two for texts, one for each encoding; else one."""
    split = datasets.load(data)
    results = compared(data.name, data.kind, datasets.matrices(split), STRENGTHS)
    if data.kind == "text":
        results += compared(f"{data.name} [tf-idf]", data.kind, datasets.matrices(split, tf_idf=True), OF_TF_IDF)
    return results


def compared(name: str, kind: str, problem: datasets.Matrices, strengths: np.ndarray) -> list[dict[str, Any]]:
    """Results of both sides on the given matrices."""
    theirs = tuned(problem, strengths)
    seconds = timed_fit(theirs, problem)
    other = figures_of(theirs, problem) | {"seconds": seconds, "chosen": chosen(theirs)}
    results = []
    for loss in ("logistic",) if problem.classes else ("square", "absolute"):
        new = (TuneFreeClassifier if problem.classes else TuneFreeRegressor)(loss=loss)
        new.fit(problem.X[:WARM], problem.y[:WARM])
        seconds = timed_fit(new, problem)
        mine = figures_of(new, problem) | {"seconds": seconds, "passes": max(new.passes_)}
        title = name if problem.classes else f"{name} [{loss}]"
        results.append({"name": title, "kind": kind, "ours": mine, "theirs": other})
    return results


def chosen(model: Any) -> float:
    """The C or alpha selected by cross-validation."""
    last = model[-1] if hasattr(model, "steps") else model
    return float(np.ravel(last.C_ if hasattr(last, "C_") else last.alpha_)[0])


def criterion(result: dict[str, Any]) -> str:
    """The metric by which both are compared."""
    if result["kind"] != "regression":
        return "log_loss"
    return "root_mean_squared_error" if "[square]" in result["name"] else "mean_absolute_error"


def ratio(result: dict[str, Any]) -> float:
    """The loss of tunefree divided by that of the baseline."""
    return result["ours"][criterion(result)] / result["theirs"][criterion(result)]


def line(result: dict[str, Any]) -> str:
    """A row of the table."""
    sides = result["ours"], result["theirs"]
    if result["kind"] == "regression":
        cells = [f"{s['mean_absolute_error']:.5g} / {s['root_mean_squared_error']:.5g}" for s in sides]
    else:
        cells = [f"{side['log_loss']:.4f} / {100 * side['error']:.2f}" for side in sides]
    times = [f"{side['seconds']:.1f}" for side in sides]
    passes, strength = str(result["ours"]["passes"]), f"{result['theirs']['chosen']:.3g}"
    return (
        "| "
        + " | ".join([result["name"], cells[0], passes, times[0], cells[1], strength, times[1], f"{ratio(result):.3f}"])
        + " |"
    )


def table(results: Sequence[dict[str, Any]]) -> str:
    """The tables in Markdown, and geometric means of the ratios."""
    lines = []
    for figures, name, regression in (
        ("log-loss / error %", "logistic regression", False),
        ("MAE / RMSE", "ridge regression", True),
    ):
        rows = [result for result in results if (result["kind"] == "regression") == regression]
        heads = ["data set", f"fit: {figures}", "passes", "s", f"{name}: {figures}"]
        heads += ["alpha" if regression else "C", "s", "ratio"]
        if rows:
            lines += ["", "| " + " | ".join(heads) + " |", "|---" * len(heads) + "|", *map(line, rows)]
    for kind, words in (("table", "tables"), ("text", "rows of texts"), ("regression", "regressions")):
        ratios = [ratio(result) for result in results if result["kind"] == kind]
        if ratios:
            lines += ["", f"geometric mean over {len(ratios)} {words}: {math.exp(np.log(ratios).mean()):.3f}"]
    return "\n".join(lines)


def main() -> None:
    """Run the benchmark, store and print the results."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sets", help="comma-separated names of data sets")
    parser.add_argument("--show", action="store_true", help="only print stored results")
    arguments = parser.parse_args()
    if arguments.show:
        print(table(sorted(kept("fit").values(), key=lambda result: datasets.place(result["name"]))))
        return
    results = []
    for data in datasets.available(arguments.sets.split(",") if arguments.sets else None):
        if data.name in TOO_LONG and not arguments.sets:
            print(f"{data.name}: skipped because it takes long; run it with --sets {data.name}", flush=True)
            continue
        measured = measure(data)
        for result in measured:
            keep("fit", result["name"], result)
            print(line(result), flush=True)
        results += measured
    print(table(results))


if __name__ == "__main__":
    main()
