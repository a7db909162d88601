"""Pairs of columns that a user names: by a plan, on the command line, by an estimator."""

from __future__ import annotations

import numpy as np
import pytest
from typer.testing import CliRunner

from tunefree import TuneFreeRegressor
from tunefree.cli.app import app
from tunefree.core.errors import ModelError
from tunefree.stream.source import open_source
from tunefree.workflows.plan import Plan, pair_of
from tunefree.workflows.training import Trained, train

N = 600
RANDOM = np.random.default_rng(3)
A, B, C = RANDOM.normal(size=(3, N))
TABLE = {
    "a": A,
    "b": B,
    "c*d": C,
    "kind": np.array(["x", "y", "z"])[RANDOM.integers(0, 3, N)],
    "target": A * B + 0.1 * RANDOM.normal(size=N),
}


def pairs_of(trained: Trained) -> list[tuple[int, int]]:
    """The sources of the pairs that a model has learned."""
    (bank,) = trained.model.ensemble.banks
    return list(zip(bank.features.pairs.first.tolist(), bank.features.pairs.second.tolist(), strict=True))


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        (None, [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]),
        ((), []),
        (("a*b",), [(0, 1)]),
        (("kind * a", "c*d*b"), [(0, 3), (1, 2)]),
    ],
)
def test_a_plan_names_pairs_or_none(named, expected):
    trained = train(open_source(TABLE), Plan(target="target", task="regression", pairs=named))
    assert pairs_of(trained) == expected


def test_named_pairs_are_saved_with_the_model(tmp_path):
    trained = train(open_source(TABLE), Plan(target="target", task="regression", pairs=("a*b",)))
    trained.save(tmp_path / "model")
    again = Trained.load(tmp_path / "model")
    assert again.plan == trained.plan
    assert again.model.options.pairs == trained.model.options.pairs
    assert pairs_of(again) == [(0, 1)]


@pytest.mark.parametrize("text", ["a", "a*a", "a*nothing", "*", "none"])
def test_what_is_no_pair_is_refused_with_the_columns_there_are(text):
    with pytest.raises(ModelError, match="FIRST.SECOND.*'a', 'b'"):
        pair_of(text, ["a", "b"])


def test_a_pair_that_could_be_cut_in_two_ways_is_refused():
    with pytest.raises(ModelError, match="FIRST"):
        pair_of("a*b*c", ["a", "b*c", "a*b", "c"])


def test_lines_of_features_have_no_columns_to_pair(tmp_path):
    (tmp_path / "rows.svm").write_text("1 1:2\n-1 2:1\n" * 40)
    done = CliRunner().invoke(app, ["train", str(tmp_path / "rows.svm"), "-o", str(tmp_path / "m"), "--pairs", "a*b"])
    assert isinstance(done.exception, ModelError)
    assert "columns of a table" in str(done.exception)


def test_the_command_line_takes_none(tmp_path):
    np.savetxt(tmp_path / "rows.csv", np.column_stack([A, B, A * B]), delimiter=",", header="a,b,y", comments="")
    options = ["train", str(tmp_path / "rows.csv"), "-t", "y", "-o", str(tmp_path / "m"), "-q"]
    for given, count in ((["--pairs", "none"], 0), (["--pairs", "a*b"], 1)):
        assert CliRunner().invoke(app, [*options, *given]).exit_code == 0
        assert len(pairs_of(Trained.load(tmp_path / "m"))) == count


def test_an_estimator_takes_numbers_of_columns_and_none():
    X, y = np.column_stack([A, B, C]), TABLE["target"]
    chosen = {}
    for pairs in ("auto", [], [(1, 0)]):
        model = TuneFreeRegressor(pairs=pairs, epochs=1, shuffle=False).fit(X, y)
        chosen[str(pairs)] = len(model._learned.model.ensemble.banks[0].features.pairs.first)
    assert chosen == {"auto": 3, "[]": 0, "[(1, 0)]": 1}


@pytest.mark.parametrize("pair", [(0, 3), (1, 1), ("a", "b"), (0,), (0.5, 1)])
def test_an_estimator_refuses_columns_that_are_not_there(pair):
    with pytest.raises(ModelError, match="two columns"):
        TuneFreeRegressor(pairs=[pair]).fit(np.column_stack([A, B, C]), TABLE["target"])
