"""Options of the command line: each is defined once, and lists in help texts are those of the registries."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import fields
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from tunefree.cli import app as cli
from tunefree.cli import options
from tunefree.cli.options import Files, Problem, ungrouped
from tunefree.core.errors import ModelError
from tunefree.workflows.plan import METHODS, PROBLEM, Plan


def names(text):
    return text.split(", ")


def test_lists_in_help_texts_are_those_of_the_registries():
    from tunefree import learners, losses
    from tunefree.estimators.preparation import kernel_names
    from tunefree.kernel import learners as kernel_learners
    from tunefree.model import views

    assert set(names(options.KERNELS)) == set(kernel_names())
    assert set(names(options.VIEWS)) == {"raw", *views.ALL}
    help_of_train = " ".join(CliRunner().invoke(cli.app, ["train", "--help"]).output.replace("│", " ").split())
    named = [
        *METHODS,
        *learners.ALL,
        *kernel_learners.ALL,
        *losses.names("classification"),
        *losses.names("regression"),
    ]
    for name in named:
        assert name in help_of_train


def test_the_problem_is_the_plans():
    """What compare and path ask for is what early stopping takes of a plan, by the same names."""
    named = {field.name for field in fields(Problem)} - {"unlabelled"}
    assert named | {"skip_bad_rows", "skip_unlabelled"} == set(PROBLEM)
    assert Problem().plan(Files(["people.csv"])) == Plan()
    changed = Problem("y", "regression", "absolute", "w", ["a"], ["b"], 3).plan(Files([], on_bad_row="skip"))
    with pytest.raises(ModelError, match="--target is wrong"):
        changed.refuse(PROBLEM, "is wrong")
    changed.refuse({field.name for field in fields(Plan)} - set(PROBLEM), "is wrong")


@pytest.mark.parametrize("command", ["train", "compare", "path"])
def test_commands_share_the_help_of_shared_options(command):
    shown = " ".join(CliRunner().invoke(cli.app, [command, "--help"]).output.replace("│", " ").split())
    for words in ("Column to predict.", "Column of sample weights.", "Hash features to 2^BITS", "--on-bad-row"):
        assert words in shown


def test_options_of_a_group_become_a_commands_own():
    app = typer.Typer()
    told = []

    @app.command()
    @ungrouped
    def count(problem: Problem, files: Files, top: Annotated[int, typer.Option(help="How many.")] = 20) -> None:
        """Count."""
        told.append((problem, files, top))

    result = CliRunner().invoke(app, ["-t", "y", "a.csv", "b.csv", "--format", "csv", "--top", "3", "--ignore", "x"])
    assert result.exit_code == 0, result.output
    assert told == [(Problem("y", ignore=["x"]), Files(["a.csv", "b.csv"], "csv"), 3)]


def test_options_that_differ_from_their_defaults():
    assert options.given(Files(["a.csv"])) == []
    assert options.given(Files(["a.csv"], on_bad_row="skip", delimiter=";")) == ["delimiter", "on-bad-row"]
    with pytest.raises(ModelError, match="--target is for data"):
        options.refuse(["target", "task"], "is for data")
    options.refuse([], "is for data")


def test_a_name_that_is_taken_is_refused():
    with pytest.raises(ModelError, match="there is a command 'train' already"):
        cli.add("train", lambda: None)


def test_every_command_has_help():
    for name in cli.COMMANDS:
        result = CliRunner().invoke(cli.app, [name, "--help"])
        assert result.exit_code == 0 and f"tunefree {name}" in result.output.replace("root", "tunefree")


def test_help_of_a_command_loads_nothing_heavy():
    code = (
        "import sys\nfrom tunefree.cli import app\n"
        "for name in app.COMMANDS:\n"
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
