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
from tests.cli.test_cli import data  # noqa: F401 - fixtures
from tests.workflows.test_training import people
from tunefree.cli import app as cli
from tunefree.cli.options import ungrouped
from tunefree.core.errors import DataError, ModelError
from tunefree.core.parameters import OF_PYTHON, option, records_of, words_of
from tunefree.model_files.plan import Plan

OTHERS = {  # values that differ from the defaults, and hold together with the default learner
    "target": "rich",
    "task": "regression",
    "sample_weight": "w",
    "exposure": "years",
    "on_bad_row": "skip",
    "unlabelled": "skip",
    "ignore": ("id", "zip code"),
    "numeric": ("age",),
    "categorical": ("code",),
    "text": ("note",),
    "date": ("day=%d.%m.%Y",),
    "decimal": ",",
    "thousands": " ",
    "monotone": ("age=+", "zip code=-"),
    "na_values": ("--", "not known"),
    "groups": "home",
    "class_weight": ("yes=5", "no=1"),
    "classes": ("no", "yes, but"),
    "shuffle": True,
    "random_state": 7,
    "kernel": "laplacian",
    "loss": "huber:2",
    "learner": "nag",
    "settings": {"eta": 0.1, "theta": 1e-9},
    "view": "steady",
    "average": True,
    "passes": 3,
    "hash_bits": 12,
}
NEEDED = {  # other values that some need to have an effect
    "random_state": {"shuffle": True},
    "exposure": {"loss": "poisson", "task": "regression"},
    **{name: {"learner": "adagrad"} for name in ("settings", "view", "average", "passes")},
    "kernel": {"learner": "kernel-pistol"},
}


def test_the_table_is_complete():
    """What the table of the tests changes are all parameters, and each differs from its default."""
    assert set(OTHERS) == set(records_of(Plan))
    for name, value in OTHERS.items():
        assert Plan(**NEEDED.get(name, {}) | {name: value}).changed()[name] == value


@pytest.mark.parametrize("name", [name for name in OTHERS if name not in OF_PYTHON])
def test_a_plan_is_written_as_options_and_read_again(name):
    plan = Plan(**NEEDED.get(name, {}) | {name: OTHERS[name]})
    app, read = typer.Typer(), []

    @app.command()
    @ungrouped
    def command(plan: Plan) -> None:
        read.append(plan)

    words = [word for changed, value in plan.changed().items() for word in words_of(changed, value)]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    assert read == [plan]
    assert Plan(**plan.changed()) == plan  # as a model file has it


WRONG = [
    ({"passes": 2.5, "learner": "nag"}, "`passes` must be a whole number, not 2.5"),
    ({"passes": True, "learner": "nag"}, "`passes` must be a whole number, not True"),
    ({"passes": 0}, "`passes` must be at least 1, not 0"),
    ({"hash_bits": 31}, "`hash_bits` must lie between 0 and 30, not 31"),
    ({"shuffle": 1}, "`shuffle` must be True or False, not 1"),
    ({"on_bad_row": "drop"}, "`on_bad_row` must be 'error' or 'skip', not 'drop'"),
    ({"task": "ranking"}, "`task` must be 'classification' or 'regression', not 'ranking'"),
    ({"target": 3}, "`target` must be a string, not 3"),
    (
        {"kernel": "gauss", "learner": "kernel-pistol"},
        "unknown `kernel` 'gauss'; choose one of rbf, laplacian, poly, linear",
    ),
    ({"classes": "yes"}, r"`classes=\['yes'\]`: name at least two labels"),
    ({"decimal": ",", "thousands": ","}, "`decimal` and `thousands` differ"),
]


@pytest.mark.parametrize(("values", "problem"), WRONG, ids=lambda part: str(part)[:30])
def test_values_that_cannot_be_are_one_error_at_both_doors(run, data, tmp_path, values, problem):  # noqa: F811
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
def test_what_an_option_cannot_affect_is_an_error(run, data, tmp_path, words, problem):  # noqa: F811
    status, out, err = run("train", data, "-t", "rich", "-o", tmp_path / "m", *words)
    assert (status, out) == (2, "") and problem in err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["people.csv"]


def test_completion_knows_commands_options_and_choices():
    for words, offered in (("tunefree tr", "train"), ("tunefree train --on-bad-r", "--on-bad-row")):
        assert offered in completed(words)
    assert completed("tunefree train --on-bad-row s") == ["skip"]


def completed(words):
    """What a shell would offer after these words."""
    environment = {
        "_TUNEFREE_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - 1),
    }
    return CliRunner().invoke(cli.app, [], prog_name="tunefree", env=environment).output.split()


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
    ("inspect classes.model --weights - --json", "--json has no effect"),
    ("inspect classes.model --weights - --top 3", "--top has no effect"),
    ("inspect classes.model --file --weights -", "--weights has no effect on what --file lists"),
    ("inspect classes.model --class maybe", "there is no class 'maybe'"),
    ("inspect numbers.model --class yes", "the model predicts numbers"),
    ("explain numbers.model numbers.csv --class yes", "the model predicts numbers"),
    ("predict numbers.model numbers.csv --top 2", "--top is for classes"),
    ("predict classes.model classes.parquet --delimiter ;", "--delimiter has no effect on parquet files; leave it out"),
    ("evaluate classes.model classes.parquet --encoding latin-1", "--encoding has no effect on parquet files"),
    ("columns classes.parquet --escape quote", "--escape has no effect on parquet files"),
    ("report classes.model --on-bad-row skip", "--on-bad-row is for data on which the model is judged"),
    ("report classes.model --format csv", "--format is for data on which the model is judged"),
    ("serve classes.model --save-every 5", "--save-every is of a store; leave it out, or name one by --output"),
    ("train rows.svm -t y -o m", "svmlight text has no columns to name a target; leave --target out, or give a table"),
    ("train rows.svm --delimiter ; -o m", "--delimiter has no effect on svmlight files"),
    ("columns classes.csv -t rich --loss hinge", "No such option: --loss; there is --loss of `tunefree train`"),
    ("predict --model classes.model classes.csv", "a model is named first"),
    ("train classes.csv -t rich --out m", "did you mean --output?"),
    ("train classes.csv --label rich -o m", "name the column to predict with --target"),
    ("predict classes.csv classes.model", "classes.csv is not a model; the model is named before the data"),
    ("predict classes.model", "Missing argument 'data'; files of rows are named without an option"),
    ("compare classes.csv classes.model", "name the models before the data"),
    ("train classes.model -t rich -o m", "classes.model: this is a model, not data; name a model before the data, or"),
    ("train classes.csv -t rich --test classes.csv -o m", "`tunefree evaluate` judges on other rows"),
    ("train classes.csv -t rich --cat-features home -o m", "see --categorical"),
    ("predict classes.model classes.csv --target rich", "there is --target of `tunefree train`"),
    ("predict classes.model classes.csv --zzz 1", "`tunefree predict --help` lists them"),
    ("predict . classes.csv", ".: cannot be read (Is a directory); did you mean classes.model?"),
    ("train classes.csv -t target -o m", "there is no target column 'target'; the columns are"),
    ("train classes.csv -t rich -o m.onnx", "write ONNX with `tunefree export`"),
    ("train numbers.csv -t age --task regression --loss RMSE -o m", "'RMSE' for regression; did you mean square?"),
    ("train classes.csv -t age -o m --target rich", "--target is given twice; leave one of them out"),
    (
        "train classes.csv --from classes.model --class-weight balanced -o m",
        "--class-weight differs from what the mode",
    ),
    ("predict classes.model classes.csv --id home", "classes.csv: there is no column 'home'"),
    ("train classes.csv -t rich --delimiter ; -o m", "; check --delimiter"),
    ("train classes.csv numbers.csv --on-bad-row skip -t age --ignore rihc -o m", "no ignored column 'rihc'; did you"),
    ("train classes.csv classes.csv -t rich --ignore nonsense -o m", "no ignored column 'nonsense'; the columns are"),
    ("train rows.jsonl -t rich --ignore aeg -o m", "no ignored column 'aeg'; did you mean 'age'?"),
    ("train classes.csv -t rich --save-every 0 -o m", "--save-every must be above 0, not '0'; leave it out"),
    ("predict classes.model classes.csv --delimiter ;", "; check --delimiter"),
    ("explain classes.model classes.csv --top -1", "-1 is not in the range"),
    ("inspect classes.model --top -1", "-1 is not in the range"),
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
    status, _, err = run(
        "predict", models / "classes.model", models / "numbers.csv", "--id", "pay", "-o", models / "p.csv"
    )
    assert status == 0 and "does not know" not in err


def test_what_has_no_effect_in_python_is_an_error(models):
    table = {"x": [1.0, 2.0] * 50, "y": ["a", "b"] * 50}
    for options, problem in (
        ({"save_every": 5}, "`save_every` is of a checkpoint"),
        ({"resume": True}, "`resume` is of a checkpoint"),
        ({"epochs": 2}, "there is no parameter 'epochs'; there is nothing to tune"),
        ({"label": "y"}, "there is no parameter 'label'; name the column to predict with `target`"),
        ({"save_evry": 3}, "there is no parameter 'save_evry'; did you mean 'save_every'"),
    ):
        with pytest.raises(ModelError, match=problem):
            tunefree.train(table, target="y", **options)
    for options in ({"format": "csv"}, {"delimiter": ";"}, {"encoding": "latin-1"}, {"max_line_bytes": 99}):
        with pytest.raises(DataError, match=f"`{next(iter(options))}` is for files, and this is a table; leave it out"):
            tunefree.open_source(table, **options)
