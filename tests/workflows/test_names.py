"""Names of columns, labels and losses: one string is one name, and a name that means nothing is an error."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import tunefree
import tunefree.distributed
from tunefree import Plan
from tunefree.core.errors import DataError, ModelError
from tunefree.model_files.trained import Trained
from tunefree.pool.targets import place_of
from tunefree.stream.batch import BadRows
from tunefree.training import class_weights
from tunefree.training.class_weights import class_factors

OF_ALL = {"target": "rich", "learner": "scinol2"}


def table(n=400, seed=0):
    """A tenth of the rows are rich."""
    random = np.random.RandomState(seed)
    leak, rich = random.randn(n), np.where(random.rand(n) < 0.1, "yes", "no")
    return {"leak": leak, "a": random.randint(0, 5, n), "job": random.choice(["cook", "clerk"], n), "rich": rich}


@pytest.fixture
def file(tmp_path):
    """The table as CSV."""
    rows = table()
    lines = [",".join(rows), *(",".join(map(str, row)) for row in zip(*rows.values(), strict=True))]
    (tmp_path / "d.csv").write_text("\n".join(lines))
    return tmp_path / "d.csv"


@pytest.mark.parametrize("role", ["ignore", "text", "numeric", "categorical", "date", "na_values"])
def test_a_string_is_one_name(role):
    assert getattr(Plan(**{role: "leak"}), role) == ("leak",)
    assert getattr(Plan(**{role: np.array(["a", "bc"])}), role) == ("a", "bc")


@pytest.mark.parametrize(
    ("role", "kind", "name"),
    [("categorical", "category", "a"), ("text", "text", "job"), ("numeric", "number", "a")],
)
def test_a_column_named_by_a_string_is_read_so(role, kind, name):
    model = tunefree.train(table(), **OF_ALL, **{role: name})
    assert {column.name: column.kind for column in model.trained_.encoder.columns}[name] == kind


def test_one_column_is_left_out():
    model = tunefree.train(table(), ignore="leak", **OF_ALL)
    assert model.feature_names_in_.tolist() == ["a", "job"]
    assert model.trained_.plan == tunefree.train(table(), ignore=["leak"], **OF_ALL).trained_.plan


def test_dates_with_their_formats_may_be_a_dict():
    assert Plan(date={"day": "%d.%m.%Y"}) == Plan(date="day=%d.%m.%Y")


@pytest.mark.parametrize("role", ["ignore", "text", "numeric", "categorical", "date", "sample_weight"])
def test_an_unknown_column_is_an_error_with_the_nearest(role):
    with pytest.raises(DataError, match="no .* column 'leek'; did you mean 'leak'"):
        tunefree.train(table(), **OF_ALL, **{role: "leek"})


@pytest.mark.parametrize(
    "options",
    [
        {"ignore": "rich"},
        {"ignore": "a", "numeric": "a"},
        {"text": "job", "categorical": "job"},
        {"sample_weight": "rich"},
    ],
)
def test_a_column_has_one_role(options):
    with pytest.raises(ModelError, match="name the same column"):
        Plan(target="rich", **options)


def test_an_ignored_column_that_is_none_is_an_error_or_told(run, tmp_path, file):
    command = ["train", "-t", "rich", "--learner", "scinol2", "-o", tmp_path / "m"]
    status, _, err = run(*command, file, "--ignore", "identity")
    assert status == 2 and "no ignored column 'identity'" in err
    (tmp_path / "d.jsonl").write_text("\n".join(f'{{"a": {i % 7}, "rich": {i % 2}}}' for i in range(100)))
    status, out, _ = run(*command, tmp_path / "d.jsonl", "--ignore", "identity")  # later rows may have it
    assert status == 0 and "column 'identity': is to be ignored, and is not among" in out.replace("\n", " ")
    assert Trained.load(tmp_path / "m").progress.oddities[0].column == "identity"


def test_weights_of_classes_in_python():
    balanced, *given = (
        tunefree.train(table(), class_weight=weights, plan=None, **OF_ALL, callbacks=None)
        for weights in ("balanced", {"yes": 5}, ["yes=5"], "yes=5")
    )
    assert [text.partition("=")[0] for text in balanced.trained_.plan.class_weight] == ["no", "yes"]
    probabilities = [model.predict_proba(table())[:, 1] for model in given]
    assert (probabilities[0] == probabilities[1]).all() and (probabilities[0] == probabilities[2]).all()


@pytest.mark.parametrize(
    ("labels", "weights"),
    [
        ([0, 1], {"1": 5}),
        ([0, 1], {1: 5}),
        ([0, 1], {1.0: 5}),
        ([False, True], {True: 5}),
        ([False, True], {"true": 5}),
    ],
)
def test_weights_find_labels_that_are_no_strings(labels, weights):
    plan = Plan(class_weight=weights)
    by_label = tunefree.training.class_weights.weights_by_label(plan.class_weight)
    from tunefree.pool.targets import Labels

    assert class_factors(by_label, Labels(labels, np.array([0, 1]))).tolist() == [1.0, 5.0]
    rows = table() | {"rich": np.array(labels)[(table()["rich"] == "yes").astype(int)]}
    assert tunefree.train(rows, class_weight=weights, task="classification", **OF_ALL).classes_.tolist() == labels


def test_a_weight_of_no_class_is_an_error(run, tmp_path, file):
    command = ["train", file, "-t", "rich", "--learner", "scinol2", "-o", tmp_path / "m"]
    for label, remedy in (("yess", "did you mean 'yes'"), ("pauper", "the classes are 'no', 'yes'")):
        status, _, err = run(*command, "--class-weight", f"{label}=5")
        assert status == 2 and f"there is no class '{label}'; {remedy}" in err
        assert not (tmp_path / "m").exists()
    with pytest.raises(ModelError, match="there is no class"):
        tunefree.train(table(), class_weight={"maybe": 2}, classes=["no", "yes"], **OF_ALL)


def test_what_probabilities_refer_to_is_told(run, tmp_path, file):
    command = ["train", file, "-t", "rich", "--learner", "scinol2", "-o", tmp_path / "m"]
    assert "--class-weight" not in run(*command)[1]
    status, out, _ = run(*command, "--class-weight", "balanced")
    told = " ".join(out.split())
    assert status == 0 and "the mean probability of 'yes' is 0.516" in told and "its share of the rows 0.1" in told
    with pytest.warns(UserWarning, match="as `class_weight` weighs them: the mean probability of 'yes'"):
        tunefree.train(table(), class_weight="balanced", **OF_ALL)


def test_what_is_told_of_weights_does_not_depend_on_batches():
    """A model that goes on has the sums of one that saw all rows at once, but for the order of its batches."""
    source, plan = tunefree.open_source(table()), Plan(class_weight={"yes": 5}, **OF_ALL)
    sums = []
    for chunk_rows in (400, 130):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            parts = [
                {name: column[k : k + chunk_rows] for name, column in table().items()}
                for k in range(0, 400, chunk_rows)
            ]
            trained = tunefree.training.training.train(tunefree.open_source(parts[0]), plan)
            for part in parts[1:]:
                trained = tunefree.training.training.learn_more(trained, tunefree.open_source(part), trained.plan)
        sums.append([(seen.rows, seen.weight, seen.predicted) for seen in trained.progress.occurrences])
    assert sums[0] == sums[1] and source.rewindable


def test_what_is_told_of_weights_counts_rows_by_their_weights():
    sums = []
    for weight in (1.0, 2.0):
        source = tunefree.open_source(table() | {"w": [weight] * 400})
        plan = Plan(class_weight={"yes": 5}, sample_weight="w", **OF_ALL)
        sums.append([seen.predicted for seen in tunefree.training.training.train(source, plan).progress.occurrences])
    assert sums[1] == pytest.approx([2.0 * predicted for predicted in sums[0]], rel=0.1)


@pytest.mark.parametrize("name", ["power:1.5", "power"])
def test_losses_that_others_have_are_errors_that_say_what_is_nearest(name):
    rows = {"x": np.arange(50.0), "y": np.arange(50.0)}
    for fit in (
        lambda: tunefree.train(rows, target="y", task="regression", loss=name, learner="scinol2"),
        lambda: tunefree.TuneFreeRegressor(loss=name).fit(np.arange(50.0)[:, None], np.arange(50.0)),
    ):
        with pytest.raises(ModelError, match="absolute-power:P"):
            fit()


def test_the_power_of_the_absolute_error_has_its_name():
    loss = tunefree.losses.loss_of("regression", "absolute-power:3")
    assert loss.value(3.0, 1.0) == 8.0


def test_labels_are_found_as_they_are_written():
    assert place_of("2.0", [1, 2]) == place_of(2.0, [1, 2]) == place_of("TRUE", [False, True]) == 1
    for label, labels in (("2.0", ["1", "2"]), ("ja", ["yes", "no"])):
        with pytest.raises(ModelError, match="there is no class"):
            place_of(label, labels)


def test_labels_of_an_evaluation_that_the_model_does_not_know(run, tmp_path, file):
    model, text = tmp_path / "m", file.read_text()
    assert run("train", file, "-t", "rich", "--learner", "scinol2", "-o", model, "-q")[0] == 0
    assert "note" not in run("evaluate", model, file)[2]
    (tmp_path / "some.csv").write_text(text.replace(",yes", ",Yes"))
    status, out, err = run("evaluate", model, tmp_path / "some.csv", "--json")
    assert status == 0 and '"rows_of_unseen_classes": 40' in out
    assert "note: column 'rich': 'Yes' is no class of the model" in err and "did you mean 'yes'? (40 rows" in err
    (tmp_path / "all.csv").write_text(text.replace(",yes", ",1").replace(",no", ",0"))
    status, _, err = run("evaluate", model, tmp_path / "all.csv")
    assert status == 2 and "no row has a label that the model knows" in err


@pytest.mark.parametrize("estimator", [tunefree.OnlineClassifier, tunefree.TuneFreeClassifier])
def test_weights_of_an_estimator_are_of_its_classes(estimator):
    X, y = np.arange(20.0)[:, None], np.array(["no", "yes"] * 10)
    model = estimator(class_weight={"yess": 5})
    with pytest.raises(ValueError, match="class_weight of 'yess': there is no such class; did you mean 'yes'"):
        model.fit(X, y)
    with pytest.raises(ValueError, match="there is no such class"):
        model.partial_fit(X, y, classes=["no", "yes"]).predict(X)
    estimator(class_weight={"yes": 5, "no": 1, "maybe": 2}).fit(X, y)  # of a part of the rows in a cross-validation
    estimator(class_weight={"maybe": 2}).partial_fit(X, y)  # it may come yet


def test_one_name_wherever_names_are_taken():
    model = tunefree.train(table(), **OF_ALL)
    from tunefree.workflows.comparison import compare
    from tunefree.workflows.output_columns import OutputColumns
    from tunefree.workflows.prediction import predict

    source = tunefree.open_source(table())
    assert OutputColumns("job").ids == ("job",)
    [predicted] = predict(model.trained_, source, BadRows(), kept="job")
    assert predicted.batch.columns.schema.names == ["job"]
    assert [one.name for one in compare(source, Plan(target="rich"), "scinol2").ranked] == ["scinol2"]


def test_public_functions_name_parameters(tmp_path):
    with pytest.raises(DataError, match="^`max_line_bytes` must lie"):
        tunefree.open_source(tmp_path / "strange", max_line_bytes=0)
    with pytest.raises(ModelError, match="shard_rows must be at least 1"):
        tunefree.distributed.train(None, tmp_path / "strange", shard_rows=0)


def test_a_label_that_may_yet_come_is_not_taken_for_a_misspelt_one():
    """class 112 may come after class 12, yess not after yes."""
    rows = table()
    rows["rich"] = np.where(np.arange(400) == 399, "112", np.where(rows["rich"] == "yes", "12", "13"))
    source = tunefree.open_source({name: column[:399] for name, column in rows.items()})
    with pytest.raises(ModelError, match="there is no class '112'; did you mean '12'"):
        tunefree.train(source, class_weight={"112": 3}, **OF_ALL)
    class_weights.check(Plan(class_weight={"112": 3}), "classification", ["12", "13"], complete=False)
    with pytest.raises(ModelError):
        class_weights.check(Plan(class_weight={"yess": 3}), "classification", ["no", "yes"], complete=False)
    assert "112" in tunefree.train(rows, class_weight={"112": 3}, **OF_ALL).classes_
