"""Baseline models: a constant, and scikit-learn's linear model, random forest and gradient boosting.

Peers get the columns that the model's encoder detects, preprocessed as usual in scikit-learn. For the linear model,
missing numbers become the median with an indicator column, numbers are standardised, categories are one-hot encoded,
and texts become words with TF-IDF. Trees get categories as numbers, and no texts. The penalty of the linear model is
chosen by cross-validation; other parameters have scikit-learn's defaults.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from tunefree.losses import kind_of, loss_of
from tunefree.losses.contract import has_log_link
from tunefree.model_files.plan import Plan
from tunefree.stream.columns import Faults, Text
from tunefree.training.roles import values_of
from tunefree.workflows.metrics import Scored
from tunefree.workflows.paired import PairedComparison, Truth, compared

LINEAR = {  # name of the linear model for each regression loss that it and the constant support
    "square": "ridge regression",
    "absolute": "quantile regression",
    "quantile": "quantile regression",
    "poisson": "Poisson regression",
    "gamma": "gamma regression",
    "tweedie": "Tweedie regression",
}
FOLDS = 5
CONSTANT = "constant"
TREES = FOREST, BOOSTING = "random forest", "gradient boosting"
STRENGTHS = np.logspace(-3, 2, 6)  # inverse penalties of the linear model; ridge regression takes their reciprocals
MOST_CATEGORIES = 200  # distinct categories of a column in gradient boosting
LARGEST = 1e30  # inputs of peers are clipped to this, so that squares and sums do not overflow


# Learns some rows of the truth, unless the model is trained, and predicts others, by their numbers: numbers (n,), or
# probabilities (n, C) of the classes.
Learn = Callable[[Truth, np.ndarray, np.ndarray], np.ndarray]


class Features(NamedTuple):
    """Columns of rows in the form that scikit-learn accepts."""

    matrix: np.ndarray  # (n, d) numbers, followed by category codes; NaN for missing values
    n_numbers: int
    texts: list[np.ndarray]  # one array (n,) per text column

    def at(self, rows: np.ndarray) -> Features:
        """A subset of the rows."""
        return Features(self.matrix[rows], self.n_numbers, [column[rows] for column in self.texts])

    def encoded(self, test: Features, numbers: Any, categories: Any) -> tuple[Any, Any]:
        """These numbers and categories, and those of test rows, by transformers that are fitted on these."""
        from sklearn.compose import ColumnTransformer

        columns = list(range(self.matrix.shape[1]))
        parts = columns[: self.n_numbers], columns[self.n_numbers :]
        encoder = ColumnTransformer([("numbers", numbers, parts[0]), ("categories", categories, parts[1])])
        return encoder.fit_transform(self.matrix), encoder.transform(test.matrix)


def features_of(columns: list[Any], tables: list[Any]) -> tuple[Features, list[str]]:
    """The features of concatenated tables, and the columns that peers cannot use.

    ``columns``: the columns of an encoder.

    >>> from tunefree.stream.columns import Category, Number
    >>> features, _ = features_of([Number("age"), Category("job")], [pa.table({"age": [39, None], "job": ["a", "b"]})])
    >>> features.matrix.tolist(), features.n_numbers
    ([[39.0, 0.0], [nan, 1.0]], 1)
    """
    n = sum(table.num_rows for table in tables)
    numbers, categories, texts, unseen = list[np.ndarray](), list[np.ndarray](), list[np.ndarray](), list[str]()
    for column in columns:
        arrays = [
            table.column(column.name).combine_chunks()
            if column.name in table.schema.names
            else pa.nulls(table.num_rows, pa.string())
            for table in tables
        ]
        if column.kind == Text.kind:
            chunks = [column.convert(array, Faults()) for array in arrays]
            texts.append(pa.chunked_array(chunks).fill_null("").to_numpy())
        elif (values := values_of(column, arrays)) is None:
            unseen.append(column.name)
        else:
            (categories if values.are_codes else numbers).append(np.clip(values.numbers, -LARGEST, LARGEST))
    return Features(np.column_stack([np.empty((n, 0)), *numbers, *categories]), len(numbers), texts), unseen


def beside_constant(model: Any, plan: Plan, scored: Scored) -> PairedComparison | None:
    """Compare a model with the constant that is optimal on the evaluated rows.

    None for a loss without a constant, and if there were too many probabilities to keep.
    """
    n, known = len(scored.weight), scored.weight > 0.0
    targets, predictions = scored.targets, scored.predictions
    if scored.codes is not None and scored.scores is not None:
        targets, predictions = scored.codes, scored.scores
        predictions = predictions if predictions.shape[1] > 1 else np.column_stack([1.0 - predictions, predictions])
        known = known & (targets < scored.n_classes)
    elif kind_of(plan.loss) not in LINEAR:
        return None
    if targets is None or predictions is None or not known.any():
        return None
    truth = Truth(model.task, plan.loss, list(model.classes), targets, scored.weight, scored.groups)
    constant = np.repeat([constant_of(truth.at(np.flatnonzero(known)))], n, axis=0)
    return compared(
        truth,
        {"tunefree": predictions, CONSTANT: constant},
        plan.target or "the label",
        "on the same rows, which the constant knows",
    )


def peers(parts: Sequence[Any], truth: Truth, n_jobs: int | None) -> tuple[dict[str, Learn], dict[str, str]]:
    """The peers that support the task and its loss, by name, and the reasons for exclusions.

    ``parts``: tables with the rows to learn and to predict (:class:`tunefree.workflows.trials.Data`).
    """
    from sklearn import ensemble, impute, linear_model, preprocessing  # noqa: F401 - imported before timing begins

    features, unseen = features_of(parts[0].encoder.columns, [part.table for part in parts])
    left_out, mask = _left_out(truth, features), truth.weight > 0.0
    is_class = truth.task == "classification"
    linear = "logistic regression" if is_class else LINEAR.get(kind_of(truth.loss), LINEAR["square"])
    chosen = [name for name in (CONSTANT, linear, *TREES) if name not in left_out]
    left_out |= {f"column {name!r}": "peers do not see it: it holds lists" for name in unseen}
    if features.texts and {*TREES} & {*chosen}:
        left_out |= {"texts": "the trees of peers do not see them"}
    if is_class:
        mask &= truth.targets < len(truth.classes)

    def learn(name: str, truth: Truth, learned: np.ndarray, judged: np.ndarray) -> np.ndarray:
        learned = learned[mask[learned]]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about new categories and missing convergence
            return _predicted(name, features.at(learned), truth.at(learned), features.at(judged), n_jobs or -1)

    return {name: partial(learn, name) for name in chosen}, left_out


def _left_out(truth: Truth, features: Features) -> dict[str, str]:
    """The peers that do not support the task and its loss, with reasons."""
    kind, left_out = kind_of(truth.loss, truth.task), dict[str, str]()
    if truth.task == "regression" and kind != "square":
        reason = f"it has no {truth.loss} loss"
        if kind not in LINEAR:
            left_out["peers"] = f"they have no {truth.loss} loss, and learn the square loss"
        else:
            left_out[FOREST] = reason if kind != "poisson" else "it predicts rates of 0"
        if kind == "tweedie" and loss_of("regression", truth.loss).power not in (1.0, 2.0):
            left_out[BOOSTING] = reason
    return left_out if features.matrix.shape[1] else left_out | dict.fromkeys(TREES, "it reads no texts")


def _predicted(name: str, train: Features, truth: Truth, test: Features, n_jobs: int) -> np.ndarray:
    """Predicted numbers (n,), or probabilities (n, C), 0 for classes that the peer has not seen."""
    from sklearn import ensemble

    is_class = truth.task == "classification"
    if name == CONSTANT or (is_class and len(np.unique(truth.targets)) < 2):
        return np.repeat([constant_of(truth)], len(test.matrix), axis=0)
    X, X_test = train.matrix, test.matrix
    if name == FOREST:
        estimator_class = ensemble.RandomForestClassifier if is_class else ensemble.RandomForestRegressor
        model = estimator_class(random_state=0, n_jobs=n_jobs)
    elif name == BOOSTING:
        (X, X_test), model = _codes(train, test), _boosting(truth)
        model.set_params(random_state=0, categorical_features=list(range(train.n_numbers, X.shape[1])) or None)
    else:
        (X, X_test), model = _standardised(train, test), _linear(truth)
    model.fit(X, truth.targets, sample_weight=truth.weight)
    if name == FOREST:
        model.set_params(n_jobs=1)  # several jobs sum the trees in varying order
    if not is_class:
        return np.asarray(model.predict(X_test), np.float64)
    return by_class(model.predict_proba(X_test), model.classes_.tolist(), range(len(truth.classes)))


def by_class(probabilities: np.ndarray, labels: Sequence[Any], classes: Sequence[Any]) -> np.ndarray:
    """Reorder probabilities of labels as probabilities (n, C) of classes; 0 for classes without a label.

    >>> by_class(np.array([[0.25, 0.75]]), ["yes", "no"], ["maybe", "no", "yes"])
    array([[0.  , 0.75, 0.25]])
    """
    indices = {label: k for k, label in enumerate(labels)}
    padded = np.column_stack([probabilities, np.zeros(len(probabilities))])
    return padded[:, [indices.get(label, -1) for label in classes]]


def _level(truth: Truth) -> float | None:
    """The level of the quantile to predict; None for a mean."""
    if truth.task == "classification":
        return None
    return 0.5 if kind_of(truth.loss) == "absolute" else getattr(loss_of("regression", truth.loss), "tau", None)


def constant_of(truth: Truth) -> np.ndarray:
    """The optimal constant: class shares (C,), the mean or the quantile."""
    level = _level(truth)
    if truth.task == "classification":
        shares = np.bincount(truth.targets, truth.weight, len(truth.classes))
        return np.asarray(shares / shares.sum())
    if level is None:
        return np.asarray(np.average(truth.targets, weights=truth.weight))
    return np.asarray(np.quantile(truth.targets, level, weights=truth.weight, method="inverted_cdf"))


def _linear(truth: Truth) -> Any:
    """Logistic, ridge or quantile regression, or a generalised linear model of rates."""
    from sklearn import linear_model
    from sklearn.metrics import make_scorer, mean_pinball_loss
    from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold

    level, loss = _level(truth), loss_of(truth.task, truth.loss)
    if truth.task == "classification":
        if np.unique(truth.targets, return_counts=True)[1].min() < FOLDS:
            return linear_model.LogisticRegression(max_iter=1000)
        folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
        return linear_model.LogisticRegressionCV(Cs=STRENGTHS, cv=folds, scoring="neg_log_loss", max_iter=1000)
    if level is None and not has_log_link(loss):
        return linear_model.RidgeCV(alphas=1.0 / STRENGTHS)
    model: Any = linear_model.QuantileRegressor(quantile=level)
    scoring = make_scorer(mean_pinball_loss, alpha=level, greater_is_better=False)
    if level is None:
        model, scoring = linear_model.TweedieRegressor(power=loss.power, link="log", max_iter=1000), None
    alphas = (1e-4, 1e-2, 1.0) if level is None else (0.0, 1e-3, 1e-2)
    return GridSearchCV(model, {"alpha": alphas}, scoring=scoring, cv=KFold(FOLDS, shuffle=True, random_state=0))


def _boosting(truth: Truth) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    if truth.task == "classification":
        return HistGradientBoostingClassifier()
    level, loss = _level(truth), loss_of(truth.task, truth.loss)
    if level is not None:
        return HistGradientBoostingRegressor(loss="quantile", quantile=level)
    rate_loss = "poisson" if getattr(loss, "power", 0.0) == 1.0 else "gamma"
    return HistGradientBoostingRegressor(loss=rate_loss if has_log_link(loss) else "squared_error")


def _codes(train: Features, test: Features) -> tuple[np.ndarray, np.ndarray]:
    """Unchanged numbers and category codes of the training and test rows."""
    from sklearn.preprocessing import OrdinalEncoder

    codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=math.nan, max_categories=MOST_CATEGORIES)
    return train.encoded(test, "passthrough", codes)


def _standardised(train: Features, test: Features) -> tuple[Any, Any]:
    """Standardised numbers, one-hot categories and words of the training and test rows."""
    from scipy.sparse import csr_array, hstack
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    numbers = make_pipeline(SimpleImputer(strategy="median", add_indicator=True), StandardScaler())
    X, X_test = train.encoded(test, numbers, OneHotEncoder(handle_unknown="ignore"))
    for texts, test_texts in zip(train.texts, test.texts, strict=True):
        if any(text.strip() for text in texts):
            words = TfidfVectorizer(sublinear_tf=True, token_pattern=r"(?u)\b\w+\b")
            X = hstack([csr_array(X), words.fit_transform(texts)], format="csr")
            X_test = hstack([csr_array(X_test), words.transform(test_texts)], format="csr")
    return (X, X_test) if X.shape[1] else (np.zeros((X.shape[0], 1)), np.zeros((X_test.shape[0], 1)))
