"""Options of the command line: they come from the records of parameters, as do docstrings, checks and headers."""

import json
import subprocess
import sys

import pyarrow as pa
import pytest
import typer
from pyarrow import csv, parquet
from typer.testing import CliRunner

import tunefree
from tests.workflows.test_training import people
from tunefree.cli import app as cli
from tunefree.cli.options import ungrouped
from tunefree.core.errors import DataError, ModelError
from tunefree.core.parameters import OF_PYTHON, option, words_of
from tunefree.model_files.plan import Plan

PLAN = Plan(  # parameters that differ from the defaults, of each type and with names and values of more than a word
    target="rich",
    task="classification",
    sample_weight="w",
    on_bad_row="skip",
    ignore=("id", "zip code"),
    date=("day=%d.%m.%Y",),
    decimal=",",
    thousands=" ",
    monotone=("age=+", "zip code=-"),
    na_values=("--", "not known"),
    class_weight=("yes, but=5", "no=1"),
    classes=("no", "yes, but"),
    holdout=0.25,
    shuffle=True,
    hash_bits=12,
)


def test_a_plan_is_written_as_options_and_read_again():
    app, read = typer.Typer(), []

    @app.command()
    @ungrouped
    def command(plan: Plan) -> None:
        read.append(plan)

    words = [word for changed, value in PLAN.changed().items() for word in words_of(changed, value)]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    assert read == [PLAN]
    assert Plan(**PLAN.changed()) == PLAN  # as a model file has it


WRONG = [
    ({"passes": 2.5, "learner": "nag"}, "`passes` must be a whole number, not 2.5"),
    ({"passes": 0}, "`passes` must be at least 1, not 0"),
    ({"holdout": float("nan")}, "`holdout` must be a number, not nan"),
    ({"holdout": 0.7}, "`holdout` must lie between 0 and 0.5, not 0.7"),
    ({"shuffle": 1}, "`shuffle` must be True or False, not 1"),
    ({"on_bad_row": "drop"}, "`on_bad_row` must be 'error' or 'skip', not 'drop'"),
    ({"target": 3}, "`target` must be a string, not 3"),
    ({"kernel": "gauss", "learner": "kernel-pistol"}, "unknown `kernel` 'gauss'; choose one of rbf, laplacian, poly"),
    ({"classes": "yes"}, r"`classes=\['yes'\]`: name at least two labels"),
    ({"decimal": ",", "thousands": ","}, "`decimal` and `thousands` differ"),
]


@pytest.mark.parametrize(("values", "problem"), WRONG, ids=lambda part: str(part)[:30])
def test_values_that_cannot_be_are_one_error_at_both_doors(run, data, tmp_path, values, problem):
    with pytest.raises(ModelError, match=problem):
        Plan(**values)
    with pytest.raises(ModelError, match=problem):
        tunefree.train({"x": [1.0, 2.0], "rich": ["a", "b"]}, **{"target": "rich", **values})
    if values in ({"shuffle": 1}, {"target": 3}) or values.keys() & set(OF_PYTHON):
        return  # words are texts, and a switch has none
    words = [word for name, value in values.items() for word in words_of(name, value)]
    status, _, err = run("train", data, *words, "-o", tmp_path / "m")
    assert status == 2 and "`" not in err.replace("Try '", "") and option(next(iter(values))) in err


RUNS = [
    (("--resume", "--workers", "2", "--save-every", "9"), "--save-every is for one machine"),
    (("--memory-limit", "1G", "--workers", "tcp://x:1"), "--memory-limit is for one machine"),
    (("--workers", "2", "--learner", "nag"), "--learner is for one machine"),
    (("--workers", "0"), "--workers must be at least 1, or an address, not 0"),
]


@pytest.mark.parametrize(("words", "problem"), RUNS, ids=lambda part: " ".join(part) if isinstance(part, tuple) else "")
def test_what_an_option_cannot_affect_is_an_error(run, data, tmp_path, words, problem):
    status, out, err = run("train", data, "-t", "rich", "-o", tmp_path / "m", *words)
    assert (status, out) == (2, "") and problem in err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["people.csv"]


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("tunefree t", "train"),
        ("tunefree train --on-bad-r", "--on-bad-row"),
        ("tunefree train --task r", "regression"),
    ],
)
def test_completion_knows_commands_options_and_choices(words, offered):
    shell = {"_TUNEFREE_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
    assert offered in CliRunner().invoke(cli.app, [], prog_name="tunefree", env=shell).output.split()


def test_help_of_a_command_loads_nothing_heavy():
    code = (
        "import sys\nfrom tunefree.cli import app\n"
        "for name in app.COMMANDS.search():\n"
        "    sys.argv = ['tunefree', name, '--help']\n"
        "    try: app.main()\n"
        "    except SystemExit: pass\n"
        "print([m for m in ('numba', 'numpy', 'pyarrow', 'sklearn') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "Compute figures and tables" in done.stdout and done.stdout.endswith("[]\n")


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A folder with a model of classes and one of numbers, and the rows that they learned."""
    folder, table = tmp_path_factory.mktemp("models"), pa.table(people(300))
    for name, target, other in (("classes", "rich", "pay"), ("numbers", "pay", "rich")):
        csv.write_csv(table.drop_columns(other), folder / f"{name}.csv")
        trained = tunefree.train(str(folder / f"{name}.csv"), target=target, learner="scinol2")
        trained.save(folder / f"{name}.model")
    parquet.write_table(table.drop_columns("pay"), folder / "classes.parquet")
    lines = [json.dumps(row, default=str) for row in table.select(["age", "rich"]).slice(0, 20).to_pylist()]
    (folder / "rows.jsonl").write_text("\n".join(lines))
    (folder / "rows.svm").write_text("1 1:2\n-1 2:3\n" * 20)
    return folder


WITHOUT_EFFECT = [
    ("inspect classes.model --weights - --plot x.png", "--plot has no effect on what --weights lists"),
    ("inspect classes.model --file --weights -", "--weights has no effect on what --file lists"),
    ("inspect classes.model --class maybe", "there is no class 'maybe'"),
    ("inspect numbers.model --class yes", "the model predicts numbers"),
    ("predict numbers.model numbers.csv --top 2", "--top is for classes"),
    ("predict classes.model classes.parquet --delimiter ;", "--delimiter has no effect on parquet files; leave it out"),
    ("evaluate classes.model classes.parquet --encoding latin-1", "--encoding has no effect on parquet files"),
    ("report classes.model --on-bad-row skip", "--on-bad-row is for data on which the model is judged"),
    ("serve classes.model --save-every 5", "--save-every is of a store; leave it out, or name one by --output"),
    ("train rows.svm -t y -o m", "svmlight text has no columns to name a target; leave --target out, or give a table"),
    ("columns classes.csv -t rich --loss hinge", "No such option: --loss"),
    ("train classes.csv -t age -o m --target rich", "--target is given twice; leave one of them out"),
    ("train classes.csv --from classes.model --class-weight balanced -o m", "--class-weight differs from what the"),
    ("predict classes.model classes.csv --id home", "classes.csv: there is no column 'home'"),
    ("train classes.csv numbers.csv --on-bad-row skip -t age --ignore rihc -o m", "no ignored column 'rihc'; did you"),
    ("train classes.csv classes.csv -t rich --ignore nonsense -o m", "no ignored column 'nonsense'; the columns are"),
    ("train rows.jsonl -t rich --ignore aeg -o m", "no ignored column 'aeg'; did you mean 'age'?"),
    ("train classes.csv -t rich --save-every 0 -o m", "--save-every must be above 0, not '0'; leave it out"),
    ("predict classes.model classes.csv --delimiter ;", "; check --delimiter"),
    ("explain classes.model classes.csv --top -1", "-1 is not in the range"),
    ("report classes.model classes.csv -o x.pdf", "x.pdf: reports are written as .html"),
    ("serve classes.model -o store --token-file rows.svm", "a token has at least 16 letters"),
]


@pytest.mark.parametrize(("words", "problem"), WITHOUT_EFFECT)
def test_what_has_no_effect_on_other_commands_is_an_error(run, models, monkeypatch, words, problem):
    monkeypatch.chdir(models)
    before = sorted(models.iterdir())
    status, out, err = run(*words.split())
    assert (status, out) == (2, "") and problem in " ".join(err.split())
    assert sorted(models.iterdir()) == before


def test_what_fits_no_value_is_told(run, models):
    path, said = str(models / "classes.csv"), ("--na-values", "nothing", "--thousands", "'")
    status, _, err = run("train", path, "-t", "rich", *said, "--learner", "nag", "-o", models / "told.model")
    words = " ".join(err.split())
    assert status == 0
    assert "--na-values nothing fits none of the 300 rows looked at" in words
    assert "--thousands ''\"'\"'' fits none of the" in words
    status, _, err = run("predict", models / "told.model", path, "--na-values", "nowhere", "-o", models / "p.csv")
    assert status == 0 and "--na-values nowhere fits none of the" in " ".join(err.split())


def test_columns_that_a_model_does_not_know_are_told_once(run, models):
    status, _, err = run("predict", models / "classes.model", models / "numbers.csv", "-o", models / "p.csv")
    assert status == 0 and err.count("the model does not know 'pay': left out") == 1
    words = ("predict", models / "classes.model", models / "numbers.csv", "--id", "pay", "-o", models / "p.csv")
    assert "does not know" not in run(*words)[2]


def test_what_has_no_effect_in_python_is_an_error(models):
    table = {"x": [1.0, 2.0] * 50, "y": ["a", "b"] * 50}
    for options, problem in (
        ({"save_every": 5}, "`save_every` is of a checkpoint"),
        ({"resume": True}, "`resume` is of a checkpoint"),
        ({"epochs": 2}, "there is no parameter 'epochs'"),
        ({"save_evry": 3}, "there is no parameter 'save_evry'; did you mean 'save_every'"),
    ):
        with pytest.raises(ModelError, match=problem):
            tunefree.train(table, target="y", **options)
    for options in ({"format": "csv"}, {"delimiter": ";"}, {"encoding": "latin-1"}, {"max_line_bytes": 99}):
        with pytest.raises(DataError, match=f"`{next(iter(options))}` is for files, and this is a table; leave it out"):
            tunefree.open_source(table, **options)
