"""Parameters that messages name: each is an option of the command that the message comes from, or is named with it."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import pytest

import tunefree
from tests.workflows.test_names import file, table  # noqa: F401 - a fixture
from tunefree.cli import app
from tunefree.cli.app import options_of, worded
from tunefree.core.errors import DataError, ModelError
from tunefree.core.parameters import NAMED, OF_PYTHON, as_options, naming

SOURCE = Path(tunefree.__file__).parent
LEARNING = ("train", "compare")  # commands that read data without a model
READING = (*LEARNING, "predict", "explain", "evaluate", "report")
# From which commands messages come, by the files that hold them; the first prefix that fits counts.
COMMANDS = {
    "cli/display.py": (),  # checked by their own commands' tests
    "cli/": (),  # docstrings and names of options
    "stream/keys.py": LEARNING,
    "training/batches.py": ("train",),
    "stream/": READING,
    "estimators/": (),  # of Python
    "losses/rates.py": ("train",),
    "pool/targets.py": LEARNING,
    "pool/model.py": ("train",),  # by which another model is to be trained
    "training/class_weights.py": ("train",),
    "workflows/columns.py": ("columns",),
    "workflows/comparison.py": ("compare",),
    "workflows/explanation.py": (),
    "training/memory_limit.py": ("train",),
    "model_files/trained.py": ("train",),
    "model_files/plan.py": LEARNING,
    "workflows/evaluation.py": ("evaluate",),
    "workflows/calibration.py": ("evaluate",),
    "workflows/output_columns.py": ("predict",),
    "workflows/findings.py": ("train",),
    "training/reading.py": LEARNING,
    "training/resuming.py": READING,
    "training/roles.py": ("columns", "train"),
    "training/targets.py": ("train",),
    "training/training.py": ("train",),
    "distributed/": ("train",),
    "plotting/files.py": ("compare", "inspect"),
    "report/learned.py": ("train",),
    "report/performance.py": ("evaluate", "report"),
    "report/words.py": ("train",),
    "papers/experiments/": ("reproduce",),
    "papers/": (),  # of Python, and of the commands of other packages
    "serving/": ("serve",),
}
# Options that a command lacks, in messages that it can end in. What they decide was decided as the model was trained,
# so they are named with the command that has them.
OF_TRAINING = {
    "stream/columnar.py": {"numeric"},  # noted in training only
    "stream/frames.py": {"numeric"},  # of frames, which commands do not read
    "stream/columns.py": {"categorical"},
    "stream/feature_ids.py": {"hash_bits", "memory_limit"},  # where rows are learned
    "stream/encoder.py": {"categorical", "classes", "numeric"},
    "stream/schema.py": {"ignore", "numeric", "text"},  # where columns are inferred
    "stream/tables.py": {"ignore"},  # noted in training only
    "stream/svmlight.py": {"hash_bits"},
    "stream/batch.py": {"unlabelled"},  # left out by BadRows where the command has none
    "training/resuming.py": {"save_every", "earlier"},
    "training/roles.py": {"loss"},
    "workflows/output_columns.py": {"learner"},
    "workflows/calibration.py": {"learner"},
    "workflows/columns.py": {"on_bad_row", "unlabelled"},  # what a training can do
    "model_files/plan.py": {"classes", "groups", "holdout", "shuffle", "workers"},
}


def named(path):
    """Parameters in the strings of a file that are no docstrings."""
    nodes = list(ast.walk(ast.parse(path.read_text())))
    docstrings = {
        id(node.body[0].value)
        for node in nodes
        if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Module)) and isinstance(node.body[0], ast.Expr)
    }
    joined = [node for node in nodes if isinstance(node, ast.JoinedStr)]
    inside = {id(part) for node in joined for part in node.values}
    texts, left_out = [ast.unparse(node) for node in joined], docstrings | inside
    texts += [
        node.value
        for node in nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in left_out
    ]
    return {match[1] for text in texts for match in re.finditer(r"(?<!`)`([a-z][a-z_]*)(?:=[^`]*)?`(?!`)", text)}


def parameters_of_estimators():
    """Of Python alone."""
    kinds = [getattr(tunefree, name) for name in tunefree.PUBLIC.search()]
    return set().union(*(inspect.signature(kind).parameters for kind in kinds if hasattr(kind, "get_params")))


def test_messages_name_options_that_their_commands_have():
    known, lacking = {name: options_of(name) for name in app.COMMANDS.search()}, {}
    options = set().union(*known.values(), OF_PYTHON)
    for path in sorted(SOURCE.rglob("*.py")):
        name, parameters = path.relative_to(SOURCE).as_posix(), named(path)
        present = options | (parameters_of_estimators() if name.startswith(("estimators/", "papers/")) else set())
        assert parameters <= present, (name, parameters - present)
        if parameters:
            [commands, *_] = [commands for prefix, commands in COMMANDS.items() if name.startswith(prefix)] or [None]
            assert commands is not None, f"{name} names {parameters}: say from which commands its messages come"
            missing = {one for command in commands for one in parameters - known[command] - set(OF_PYTHON)}
            lacking |= {name: missing} if missing else {}
    assert lacking == OF_TRAINING


@pytest.mark.parametrize("command", ["predict", "evaluate", "explain"])
def test_what_training_decided_is_named_with_its_command(run, tmp_path, file, command):  # noqa: F811
    assert run("train", file, "-t", "rich", "--learner", "scinol2", "-o", tmp_path / "m", "-q")[0] == 0
    text = file.read_text().splitlines()
    (tmp_path / "bad.csv").write_text("\n".join([*text[:3], "lots,1,cook,no", "1,1,cook,"]))
    _, _, err = run(command, tmp_path / "m", tmp_path / "bad.csv")
    named_options = re.findall(r"--([a-z][a-z-]*)", err)
    lacking = {one for one in named_options if one.replace("-", "_") not in options_of(command)}
    assert "bad.csv, row 3, column 'leak'" in err and "--on-bad-row skip" in err
    assert all(f"--{one} of `tunefree train`" in err for one in lacking)


def test_a_row_without_a_label_in_evaluation_names_no_option_that_is_not_there(run, tmp_path, file):  # noqa: F811
    assert run("train", file, "-t", "rich", "--learner", "scinol2", "-o", tmp_path / "m", "-q")[0] == 0
    (tmp_path / "bad.csv").write_text("leak,a,job,rich\n1.5,1,cook,\n")
    status, _, err = run("evaluate", tmp_path / "m", tmp_path / "bad.csv")
    assert status == 2 and "--on-bad-row skip" in err and "--unlabelled" not in err
    (tmp_path / "bad.vw").write_text("1 | a\n-1 | b\n" * 20)
    assert run("train", tmp_path / "bad.vw", "--learner", "scinol2", "-o", tmp_path / "v", "-q")[0] == 0
    (tmp_path / "bad.vw").write_text("| a\n")
    status, _, err = run("evaluate", tmp_path / "v", tmp_path / "bad.vw")
    assert status == 2 and "between label and bar" in err and "--unlabelled" not in err
    status, _, err = run("train", tmp_path / "bad.vw", "-o", tmp_path / "v")
    assert status == 2 and "--unlabelled skip" in err


def test_a_message_in_the_words_of_a_command():
    message = "it is '`text`' (`hash_bits=20`); pass `on_bad_row='skip'`"
    options = "it is '`text`' (--hash-bits 20); pass --on-bad-row skip"
    assert worded(message, ["train"]) == options
    assert worded(message, ["predict"]) == options.replace("20", "20 of `tunefree train`")


@pytest.mark.parametrize(
    ("message", "options"),
    [
        ("pass `task='regression'`", "pass --task regression"),
        ("pass `ignore='a b'`", "pass --ignore 'a b'"),
        ("give `na_values`, or `hash_bits=20`.", "give --na-values, or --hash-bits 20."),
        ("`holdout` must be 0", "--holdout must be 0"),
        ("the value '`text`' is no `text`", "the value '`text`' is no --text"),
        ("pass `shuffle=True`, or `classes=['a', 'b']`", "pass --shuffle, or --classes a --classes b"),
        ("pass `ignore='a`b'`; go on by `earlier`", "pass --ignore 'a`b'; go on by --from"),
        ("`date='day=FORMAT'` decides, or `threshold=P`", "--date day=FORMAT decides, or --threshold P"),
        ("of `tunefree train --ignore x`", "of `tunefree train --ignore x`"),
        (
            "name it by `settings`, or `random_state=3`",
            "name it by `settings` in Python, or `random_state=3` in Python",
        ),
    ],
)
def test_a_message_on_the_command_line(message, options):
    assert as_options(message) == options


def test_what_has_a_parameter_is_named():
    with (
        pytest.raises(ModelError, match=r"pass `text`, or `random_state=3` of train; not '`ignore`'"),
        naming("train", ["text"]),
    ):
        raise ModelError("pass `text`, or `random_state=3`; not '`ignore`'")


@pytest.mark.parametrize(
    "options",
    [{"task": "regression"}, {"holdout": 3}, {"groups": "job"}, {"date": "a"}, {"classes": ["yes"]}, {"target": None}],
)
def test_python_names_parameters(options):
    with pytest.raises((DataError, ModelError)) as raised:
        tunefree.train(table(), **{"target": "rich", "learner": "scinol2"} | options)
    assert "--" not in str(raised.value) and NAMED.search(str(raised.value))


def test_estimators_name_what_has_the_parameter():
    rows = {"x": ["1,5", "2,5", "3,5"] * 20, "job": ["cook", "clerk", "cook"] * 20}
    model = tunefree.OnlineClassifier().fit(rows, [0, 1, 0] * 20)
    with pytest.raises(DataError, match="'many' is not a number .`na_values` of tunefree.train says"):
        model.predict({"x": ["many"], "job": ["cook"]})
