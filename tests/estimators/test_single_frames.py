"""A frame of one row: what is predicted, and what is said of it, is what it is among others."""

import copy
import pickle
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.stream.tabular import bytes_of
from tunefree import ScInOLClassifier, TuneFreeClassifier, TuneFreeRegressor
from tunefree.estimators import tables

N = 400


def frame_of(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    columns: dict[str, Any] = {"width": rng.normal(size=n), "count": rng.integers(0, 9, n)}
    columns |= {"colour": rng.choice(["red", "green", "3"], n), "is_new": rng.random(n) < 0.5}
    return pd.DataFrame(columns | {"size": pd.Categorical(rng.choice(["S", "M"], n))}).astype({"width": np.float32})


def predicted(model: Any, X: Any) -> str:
    return (model.predict_proba if hasattr(model, "predict_proba") else model.predict)(X).tobytes().hex()


def learned(model: Any, X: Any) -> str:
    return str(model.partial_fit(X, [True]).t_)


def of_general_way(monkeypatch: pytest.MonkeyPatch, model: Any, X: Any, use: Any = predicted) -> tuple[str, Any]:
    with monkeypatch.context() as patch:
        patch.setattr(tables, "one_row_block", lambda *arguments, **options: None)
        return outcome(model, X, use)


def outcome(model: Any, X: Any, use: Any = predicted) -> tuple[str, Any]:
    """What comes of rows and warnings, or the error."""
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        try:
            return use(model, X), [str(one.message) for one in raised]
        except Exception as error:
            return type(error).__name__, str(error)


def odd_rows(frame: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """Rows that are not as usual."""
    row = frame[:1]
    for name in frame.columns:
        for value in (None, np.nan, pd.NA, "", "12", "red ", "orange", 1e9, -1e300, np.inf, 2**60, 3, True, b"red"):
            yield row.assign(**{name: pd.Series([value], row.index, object)})
        yield row.drop(columns=name)
        yield row.assign(**{name: pd.Series([pd.Timestamp("2020-01-01")], row.index)})
        yield row.rename(columns={name: 7})
    yield row[row.columns[::-1]]
    yield row.assign(other=1.0)
    yield row.assign(colour=["red" * 100])
    yield pd.concat([row, row[["width"]]], axis=1)
    yield row.astype(object)
    yield row.astype({"count": "Int64", "colour": "category", "is_new": "boolean"})


FRAME = frame_of(N, 0)
Y = (FRAME["width"] + (FRAME["colour"] == "red") > 0.3).to_numpy()


@pytest.mark.parametrize("make", [TuneFreeClassifier, TuneFreeRegressor, ScInOLClassifier])
def test_rows_alone_have_the_bits_of_rows_together(make: Any) -> None:
    frame, y, new = FRAME, Y, frame_of(60, 1)
    model = make().fit(frame, y)
    before, pickled = dict(vars(model)), pickle.dumps(model)
    predict = model.predict_proba if hasattr(model, "predict_proba") else model.predict
    alone = np.concatenate([predict(new[i : i + 1]) for i in range(60)])
    assert alone.tobytes() == predict(new).tobytes()
    assert vars(model) == before and pickle.dumps(model) == pickled
    assert all(tables.one_row_block(model, new[i : i + 1]) is not None for i in range(60))


def test_rows_that_are_not_as_usual_go_the_general_way(monkeypatch: pytest.MonkeyPatch) -> None:
    model = ScInOLClassifier().fit(FRAME, Y)
    model.predict_proba(FRAME[:1])
    for row in odd_rows(FRAME):
        assert outcome(model, row) == of_general_way(monkeypatch, copy.deepcopy(model), row)


def test_rows_alone_are_learned_as_in_the_general_way(monkeypatch: pytest.MonkeyPatch) -> None:
    frame, y, way, ways = FRAME, Y, tables.one_row_block, list[bool]()

    def noted(*arguments: Any, **options: Any) -> Any:
        row = way(*arguments, **options)
        ways.append(row is not None)
        return row

    monkeypatch.setattr(tables, "one_row_block", noted)
    model, general = (TuneFreeClassifier().partial_fit(frame[:200], y[:200], classes=[False, True]) for _ in range(2))
    rows = [*(frame[i : i + 1] for i in range(200, 240)), *odd_rows(frame)]
    for row in rows:
        assert outcome(model, row, learned) == of_general_way(monkeypatch, general, row, learned)
    assert bytes_of(model._encoder) == bytes_of(general._encoder)
    assert model.predict_proba(frame).tobytes() == general.predict_proba(frame).tobytes()
    assert sum(ways) > 36
