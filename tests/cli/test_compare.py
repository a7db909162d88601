"""`tunefree compare` and decisions of `evaluate` and `report`: the same numbers at all doors, and what is refused."""

import json
import re

import pytest
from pyarrow.csv import read_csv

import tunefree
from tunefree.core.errors import ModelError

pytestmark = pytest.mark.usefixtures("few_peers")


def without_seconds(text):
    return re.sub(r'"seconds": [\d.e-]+', "", text)


def test_models_and_peers_on_a_test_file(at):
    status, out, err = at("compare", "good.model", "test.csv", "--train", "train.csv", "--json", "-q", "--n-jobs", "1")
    assert status == 0, err
    compared = json.loads(out)
    names = [model["name"] for model in compared["models"]]
    assert names == ["good.model", "constant", "logistic regression", "random forest", "gradient boosting"]
    assert compared["models"][1]["better"] == "good.model"
    assert compared["sentence"].startswith("Predicts rich >50K with ")
    told = json.loads(at("evaluate", "good.model", "test.csv", "--json")[1])
    assert compared["models"][0]["error"] == told["error"]
    assert compared["models"][0]["loss"] == pytest.approx(told["log_loss"])
    again = at("compare", "good.model", "test.csv", "--train", "train.csv", "--json", "-q", "--n-jobs", "2")[1]
    assert without_seconds(again) == without_seconds(out)


def test_a_model_that_learns_here(at, folder):
    lines = (folder / "train.csv").read_text().splitlines(keepends=True)
    (folder / "half.csv").write_text("".join(lines[:151]))
    options = ("--target", "rich", "--ignore", "kind", "--group", "who")
    status, out, err = at("compare", "half.csv", *options, "--json", "--n-jobs", "1")
    assert status == 0 and "random forest, part 5 of 5" in err
    told = json.loads(out)
    assert told["models"][0]["name"] == "tunefree" and (told["rows"], told["groups"]) == (150, 75)
    assert told["models"][1]["better"] == "tunefree"


def test_decisions_cost_the_same_in_evaluate_and_report(at, folder):
    costs = ("--cost", "fp=1,fn=5")
    told = json.loads(at("evaluate", "good.model", "test.csv", *costs, "--json")[1])
    decided = told["decisions"]
    assert decided["class"] == ">50K" and decided["cost_of_a_row_least_cost"] <= decided["cost_of_a_row_by_the_costs"]
    assert {"acted on", "sensitivity"} < {row["share"] for row in told["decided_shares"]}
    assert len(told["net_benefit"]) == 99
    assert "least cost" in at("evaluate", "good.model", "test.csv", *costs, "--group", "who")[1]
    assert "decisions" not in json.loads(at("evaluate", "good.model", "test.csv", "--json")[1])
    assert at("report", "good.model", "test.csv", *costs, "-o", "page.html")[0] == 0
    assert f"{decided['cost_of_a_row_least_cost']:.4f}" in (folder / "page.html").read_text()


@pytest.mark.usefixtures("no_pictures")
def test_a_report_in_python_equals_the_command(at, folder):
    model = tunefree.load("good.model")
    page = model.report("test.csv", train="train.csv", cost={"fp": 1, "fn": 5})
    words = ("--train", "train.csv", "--cost", "fp=1,fn=5", "-o", "door.html")
    assert at("report", "good.model", "test.csv", *words)[0] == 0
    lead, about = f'<p class="lead">{page.lead}</p>', page.about
    door = (folder / "door.html").read_text().replace("\N{NO-BREAK SPACE}", " ").replace("&gt;", ">")
    assert lead in door and about in door and "logistic regression" in lead and "cost of a miss" in page.html
    with pytest.raises(ModelError, match="`train` is for data on which the model is judged"):
        model.report(train="train.csv")
    with pytest.raises(ModelError, match="`class_` is for data on which the model is judged"):
        model.report(class_="yes")
    first, second = (model.report("test.csv", class_=label).html for label in model.classes_)
    assert first != second == model.report("test.csv").html
    with pytest.raises(ModelError, match="there is no class 'maybe'"):
        model.report("test.csv", class_="maybe")


@pytest.mark.usefixtures("no_pictures")
def test_a_report_keeps_the_groups_of_the_training_whole(at):
    options = {"target": "rich", "ignore": "kind", "groups": "who"}
    model = tunefree.train("train.csv", **options)
    assert "if groups are independent" in str(model.report("test.csv"))
    model.save("grouped.model")
    for words in (("evaluate", "grouped.model"), ("compare", "grouped.model", "bad.model")):
        _, out, err = at(*words, "test.csv", "--json")
        assert "rows of one who belong together" in err and json.loads(out)["groups"] == 100
    rows = read_csv("test.csv").drop_columns("who")
    assert "if rows are independent" in str(model.report(rows))


@pytest.mark.usefixtures("no_pictures")
def test_files_that_were_learned_are_told(at, folder):
    told = "the model has learned a file named train.csv"
    for words in ("evaluate good.model", "compare good.model bad.model"):
        assert told in at(*words.split(), "train.csv")[2] and told not in at(*words.split(), "test.csv")[2]
    for name in ("train", "test"):
        assert at("report", "good.model", f"{name}.csv", "-o", f"{name}.html")[0] == 0
    assert "It has learned a file of this name" in (folder / "train.html").read_text()
    assert "It has learned" not in (folder / "test.html").read_text()


def test_a_label_that_is_no_truth_value_is_a_bad_row(at, folder):
    rows = [f"{k % 7},{'True' if k % 7 > 3 else 'False'}\n" for k in range(100)]
    (folder / "flags.csv").write_text("x,flag\n" + "".join(rows))
    tunefree.train(str(folder / "flags.csv"), target="flag", learner="scinol2").save(folder / "flag.model")
    (folder / "maybe.csv").write_text("x,flag\n" + "".join(rows) + "3,maybe\n")
    status, _, err = at("evaluate", "flag.model", "maybe.csv")
    assert (status, "row 101, column 'flag': 'maybe' is neither true nor false" in err) == (2, True)
    assert at("evaluate", "flag.model", "maybe.csv", "--on-bad-row", "skip")[0] == 0
