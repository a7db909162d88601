"""Options of the command line: they come from the records of parameters, as do docstrings, checks and headers."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from dataclasses import dataclass
from typing import Annotated

import pyarrow as pa
import pytest
import typer
from pyarrow import csv, parquet
from typer.testing import CliRunner

import tunefree
from tests.cli.test_cli import data  # noqa: F401 - fixtures
from tests.workflows.test_training import people
from tunefree.cli import app as cli
from tunefree.cli.options import Files, Run, ungrouped
from tunefree.core.errors import DataError, ModelError
from tunefree.core.parameters import OF_PYTHON, PANELS, Parameters, option, parameter, records_of, words_of
from tunefree.model_files.plan import PROBLEM, Plan
from tunefree.report.learned import command_of

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
    "na_values": ("--", "not known"),
    "groups": "home",
    "class_weight": ("yes=5", "no=1"),
    "classes": ("no", "yes, but"),
    "holdout": 0.25,
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


def help_of(*command):
    """The help of a command in one line, without frames."""
    return " ".join(re.sub("[│╭╮╰╯─]", " ", CliRunner().invoke(cli.app, [*command, "--help"]).output).split())


def test_lists_in_help_texts_are_those_of_the_registries():
    from tunefree import learners, losses
    from tunefree.pool import views

    shown = help_of("train").replace("… ", "")
    for name in (*learners.ALL, "kernel-pistol", *losses.names("classification")):
        assert name in shown
    assert set(losses.names("regression")) <= {name.partition(":")[0] for name in losses.usage("regression")}
    assert all(name in records_of(Plan)["view"].meaning for name in ("raw", *views.ALL))


def test_help_stands_in_panels():
    """Eight options are in the first two, where somebody looks who has a table."""
    output = CliRunner().invoke(cli.app, ["train", "--help"]).output
    titles = [line.strip("╭─╮ ") for line in output.splitlines() if line.startswith("╭")]
    assert titles == ["Arguments", "Options", *PANELS]
    first = output[output.index(PANELS[0]) : output.index(PANELS[2])]
    assert 6 <= len(re.findall(r"(?m)^│ +(?:\* +)?--", first)) <= 8


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


def test_parameters_of_python_have_no_option():
    assert {name for name, record in records_of(Plan).items() if not record.panel} <= set(OF_PYTHON)
    shown = help_of("train")
    for name in {*OF_PYTHON, "method", "set", "shard_rows"}:
        assert f"{option(name)[:40]} " not in shown
    assert command_of(Plan(target="y", passes=3, learner="nag")).startswith("tunefree.train(DATA, target='y', ")


WRONG = [
    ({"passes": 2.5, "learner": "nag"}, "`passes` must be a whole number, not 2.5"),
    ({"passes": True, "learner": "nag"}, "`passes` must be a whole number, not True"),
    ({"passes": 0}, "`passes` must be at least 1, not 0"),
    ({"hash_bits": 31}, "`hash_bits` must lie between 0 and 30, not 31"),
    ({"holdout": float("nan")}, "`holdout` must be a number, not nan"),
    ({"holdout": 0.7}, "`holdout` must lie between 0 and 0.5, not 0.7"),
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


def test_sentences_of_python_are_those_of_the_table():
    """Functions that have parameters of their own describe them in the table's words."""
    from tunefree.training import training

    shared = {
        tunefree.open_source: records_of(Files),
        training.train: {name: records_of(Run)[name] for name in ("memory_limit",)},
    }
    for function, records in shared.items():
        described = " ".join((inspect.getdoc(function) or "").split())
        for name, record in records.items():
            assert name in inspect.signature(function).parameters
            assert record.meaning in described, (function, name)
    described = " ".join((Plan.__doc__ or "").split())
    assert all(f"{name} : " in described and record.meaning in described for name, record in records_of(Plan).items())


def test_estimators_have_no_other_names():
    """What the table names is named so in estimators."""
    others = {"epochs", "n_epochs", "categorical_features", "text_features", "skip_bad_rows", "n_passes", "seed"}
    for name in tunefree.PUBLIC.search():
        kind = getattr(tunefree, name)
        if hasattr(kind, "get_params"):
            assert not others & set(inspect.signature(kind).parameters), name


@pytest.mark.parametrize("command", ["train", "compare"])
def test_commands_share_the_help_of_shared_options(command):
    shown = help_of(command)
    for words in ("Column to predict", "Column of sample weights.", "Hash features to 2^BITS", "--on-bad-row"):
        assert words in shown


@dataclass(frozen=True)
class Cutting(Parameters):
    """A group of the tests."""

    parts: int = parameter(2, "Number of parts.", PANELS[0], low=1)


def test_parameters_of_a_group_become_a_commands_options():
    app, seen = typer.Typer(), []

    @app.command()
    @ungrouped
    def count(
        plan: Annotated[Plan, PROBLEM],
        files: Files,
        cutting: Cutting,
        top: Annotated[int, typer.Option(help="How many.")] = 20,
    ) -> None:
        """Count."""
        seen.append((plan, files, cutting, top))

    result = CliRunner().invoke(app, ["-t", "y", "a.csv", "b.csv", "--format", "csv", "--top", "3", "--ignore", "x"])
    assert result.exit_code == 0, result.output
    assert seen == [(Plan("y", ignore=["x"]), Files(["a.csv", "b.csv"], "csv"), Cutting(), 3)]
    assert CliRunner().invoke(app, ["a.csv", "--holdout", "0.2"]).exit_code == 2  # not among those named


def test_the_bare_command_says_what_to_do_next(run):
    status, out, err = run()
    assert (status, err) == (0, "") and len(out.splitlines()) == 5
    for line in out.splitlines()[1:]:
        assert line.split("  ")[1].split()[1] in (*cli.COMMANDS.search(), "--help")


@pytest.mark.parametrize(
    ("words", "remedy"),
    [(("trian", "x.csv"), "'train'"), (("predct",), "'predict'"), (("train", "--tagret", "y"), "--target")],
)
def test_what_is_misspelt_proposes_the_nearest(run, words, remedy):
    status, _, err = run(*words)
    assert status == 2 and remedy in err


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


def test_a_name_that_is_taken_is_refused():
    with pytest.raises(ModelError, match="there is a command 'train' already"):
        cli.add("train", lambda: None)


def test_every_command_has_help():
    for name in cli.COMMANDS.search():
        result = CliRunner().invoke(cli.app, [name, "--help"])
        assert result.exit_code == 0 and f"tunefree {name}" in result.output.replace("root", "tunefree")


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


def test_a_command_of_another_package(tmp_path):
    """An entry point of an installed package is a command once it is named."""
    (tmp_path / "greeting.py").write_text("def greet(name: str) -> None:\n    print('hello', name)\n")
    package = tmp_path / "greeting-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: greeting\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text("[tunefree.commands]\ngreet = greeting:greet\n")
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); sys.argv = ['tunefree', 'greet', 'world']\n"
        "from tunefree.cli import app\napp.main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "hello world\n"


def test_quiet_training_prints_nothing_of_its_memory(tmp_path, recwarn):
    lines = (f"{i % 2} " + " ".join(f"{j}:1" for j in range(3 * (i // 2) + 1, 3 * (i // 2) + 4)) for i in range(3_000))
    (tmp_path / "ids.svm").write_text("\n".join(lines))
    options = ["--learner", "scinol2", "--memory-limit", "2M", "-o", str(tmp_path / "m")]
    command = ["train", str(tmp_path / "ids.svm"), *options]
    told, quiet = (CliRunner().invoke(cli.app, [*command, *silence]) for silence in ([], ["-q"]))
    assert "of the 2 MiB of --memory-limit" in " ".join(told.output.split())
    assert (quiet.exit_code, quiet.output, list(recwarn)) == (0, "", [])


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A folder with a model of classes and one of numbers, and the rows that they learned."""
    folder, table = tmp_path_factory.mktemp("models"), pa.table(people(300))
    for name, target, other in (("classes", "rich", "pay"), ("numbers", "pay", "rich")):
        csv.write_csv(table.drop_columns(other), folder / f"{name}.csv")
        trained = tunefree.train(str(folder / f"{name}.csv"), target=target, learner="scinol2")
        trained.save(folder / f"{name}.model")
    parquet.write_table(table.drop_columns("pay"), folder / "classes.parquet")
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
    ("columns classes.csv -t rich --loss hinge", "No such option: --loss"),
]


@pytest.mark.parametrize(("words", "problem"), WITHOUT_EFFECT)
def test_what_has_no_effect_on_other_commands_is_an_error(run, models, monkeypatch, words, problem):
    monkeypatch.chdir(models)
    before = sorted(models.iterdir())
    status, out, err = run(*words.split())
    assert (status, out) == (2, "") and problem in " ".join(err.split())
    assert sorted(models.iterdir()) == before


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
