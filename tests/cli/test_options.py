"""Options of the command line: they come from the records of parameters, as do docstrings, checks and headers."""

import subprocess
import sys

import pytest
import typer
from typer.testing import CliRunner

import tunefree
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
    ({"passes": 2.5, "learner": "nag"}, "`passes` must be a whole number of at least 1, not 2.5"),
    ({"passes": True, "learner": "nag"}, "`passes` must be a whole number of at least 1, not True"),
    ({"passes": 0}, "`passes` must be a whole number of at least 1, not 0"),
    ({"hash_bits": 31}, "`hash_bits` must be a whole number of at least 0 and at most 30, not 31"),
    ({"shuffle": 1}, "`shuffle` must be True or False, not 1"),
    ({"on_bad_row": "drop"}, "`on_bad_row` must be 'error' or 'skip', not 'drop'"),
    ({"target": 3}, "`target` must be a string, not 3"),
    ({"kernel": "gauss", "learner": "kernel-pistol"}, "unknown `kernel` 'gauss'; choose one of rbf, laplacian, poly"),
    ({"classes": "yes"}, r"`classes=\['yes'\]`: name at least two labels"),
    ({"decimal": ",", "thousands": ","}, "`decimal` and `thousands` differ"),
    ({"monotone": "age"}, r"`monotone`: 'age' has no sign; write 'age=\+' or 'age=-'"),
    ({"learner": "scinol"}, "unknown `learner` 'scinol'; did you mean 'scinol[12]'"),
    ({"target": "rich", "ignore": "rich"}, "name the same column"),
    ({"ignore": "a", "numeric": "a"}, "name the same column"),
    ({"text": "job", "categorical": "job"}, "name the same column"),
    ({"target": "rich", "sample_weight": "rich"}, "name the same column"),
]


@pytest.mark.parametrize(("values", "problem"), WRONG, ids=lambda part: str(part)[:30])
def test_values_that_cannot_be_are_one_error_at_both_doors(done, data, tmp_path, values, problem):
    with pytest.raises(ModelError, match=problem):
        Plan(**values)
    with pytest.raises(ModelError, match=problem):
        tunefree.train({"x": [1.0, 2.0], "rich": ["a", "b"]}, **{"target": "rich", **values})
    if values in ({"shuffle": 1}, {"target": 3}) or values.keys() & set(OF_PYTHON):
        return  # words are texts, and a switch has none
    words = [word for name, value in values.items() for word in words_of(name, value)]
    _, err = done("train", data, *words, "-o", tmp_path / "m", status=2)
    assert "`" not in err.replace("Try '", "") and option(next(iter(values))) in err


REFUSED = [
    ("train train.csv -t rich -o m --resume --workers 2 --save-every 9", "--save-every is for one machine"),
    ("train train.csv -t rich -o m --workers 2 --learner nag", "--learner is for one machine"),
    ("train train.csv -t rich -o m --workers 1 --shuffle", "--shuffle is for one machine"),
    ("train train.csv -t rich -o m --workers 1 --from good.model", "--from is for one machine"),
    ("train train.csv -t rich -o m --workers 0", "--workers must be at least 1, or an address, not 0"),
    ("inspect good.model --weights - --plot x.png", "--plot has no effect on the weights of --weights"),
    ("inspect good.model --class maybe", "there is no class 'maybe'"),
    ("explain age.model test.csv --class yes", "the model predicts numbers"),
    ("predict age.model test.csv --top 2", "--top is for classes"),
    ("predict good.model train.parquet --delimiter ;", "--delimiter has no effect on parquet files; leave it out"),
    ("report good.model --on-bad-row skip", "--on-bad-row is for data on which the model is judged"),
    ("serve good.model --save-every 5", "--save-every is of a store; leave it out, or name one by --output"),
    ("train rows.svm -t y -o m", "svmlight text has no columns to name a target; leave --target out, or give a table"),
    ("train train.csv -t rich --delimiter ; -o m", "; check --delimiter"),
    ("columns train.csv -t rich --loss hinge", "No such option: --loss"),
    ("predict good.model", "Missing argument 'data'"),
    ("compare test.csv good.model", "name the models before the data"),
    ("train good.model -t rich -o m", "good.model: this is a model, not data; name a model before the data, or"),
    ("predict . test.csv", ".: cannot be read (Is a directory); did you mean age.model?"),
    ("train train.csv -t target -o m", "there is no target column 'target'; the columns are"),
    ("train train.csv -t rich -o m.onnx", "write ONNX with `tunefree export`"),
    ("train train.csv -t age --task regression --loss RMSE -o m", "'RMSE' for regression; did you mean square?"),
    ("train train.csv -t age -o m --target rich", "--target is given twice; leave one of them out"),
    ("train train.csv --from good.model --class-weight balanced -o m", "--class-weight differs from its value in the"),
    ("predict good.model train.csv --id home", "train.csv: there is no column 'home'"),
    ("train train.csv test.csv --on-bad-row skip -t age --ignore rihc -o m", "no ignored column 'rihc'; did you"),
    ("train rows.jsonl -t rich --ignore aeg -o m", "no ignored column 'aeg'; did you mean 'age'?"),
    ("train train.csv -t rich --save-every 0 -o m", "--save-every must be a whole number of at least 1, not 0"),
    ("explain good.model train.csv --top -1", "-1 is not in the range"),
    ("report good.model train.csv -o x.pdf", "x.pdf: reports are written as .html"),
    ("serve good.model -o store --token-file rows.svm", "a token has at least 16 letters"),
    ("compare good.model test.csv", "compared with nothing"),
    ("compare good.model age.model test.csv", "differ in their target, rich and age"),
    ("compare good.model good.model test.csv", "named twice"),
    ("compare good.model bad.model", "there is no data"),
    ("compare good.model bad.model test.csv -t rich", "--target has no effect on models"),
    ("compare good.model bad.model test.csv --group nobody", "nobody"),
    ("compare none.model bad.model test.csv", "none.model"),
    ("compare good.model train.csv --train train.csv", "train.csv would be learned and judge"),
    ("compare train.csv", "--target"),
    ("evaluate good.model test.csv --cost fp=1,fm=5", "'fp=1,fm=5' is not understood"),
    ("evaluate age.model test.csv --cost fp=1,fn=5", "this model predicts numbers"),
    ("evaluate kind.model test.csv --cost fp=1,fn=5", "has 3 classes"),
    ("evaluate kind.model test.csv --cost fp=1,fn=5 --class d", "there is no class"),
    ("report good.model --cost fp=1,fn=5", "--cost is for data"),
    ("trian train.csv", "No such command 'trian'. Did you mean 'train'?"),
    ("train train.csv -t rich -o m --workers nowhere", "--workers nowhere: no cluster answers (missing port"),
    ("report good.model test.csv -o -", "-: this is not written to standard output"),
    ("inspect good.model --plot c.txt", "c.txt: pictures are written as .png, .svg, .pdf"),
    ("inspect good.model --plot c.svg", "the model keeps no rows that it learned, over which to draw it"),
    ("predict good.model rows.svm", "the model was trained on table data, this is svmlight"),
    ("predict svm.model rows.svm --id id", "svmlight text has no columns; leave out id"),
    ("predict svm.model rows.svm --decimal ,", "svmlight text has no columns; leave options of columns out"),
    ("compare rows.svm -t y", "svmlight text has no columns, by which models are compared"),
    ("columns rows.svm", "svmlight text has no columns to look at"),
    ("evaluate good.model test.csv --interval .9 --progressive", "leave --progressive out"),
    ("predict good.model test.csv --set .9,.9", "--set has a number twice"),
    ("predict good.model test.csv --conditional class", "--conditional has no effect without --set"),
    ("predict good.model test.csv --set .9", "--set needs the evidence that the pool has"),
    ("predict kind.model test.csv --threshold .5", "--threshold is for two classes, and the model has 3"),
]


@pytest.mark.parametrize(("words", "told"), REFUSED)
def test_what_cannot_be_done_or_has_no_effect_is_an_error(at, folder, words, told):
    before = sorted(folder.iterdir())
    status, out, err = at(*words.split())
    assert (status, out) == (2, "") and told in " ".join(err.split())
    assert sorted(folder.iterdir()) == before


OFFERED = {"t": "train", "train --on-bad-r": "--on-bad-row", "train --task r": "regression"}


@pytest.mark.parametrize(("words", "offered"), OFFERED.items())
def test_completion_knows_commands_options_and_choices(words, offered):
    shell = {"COMP_WORDS": f"tunefree {words}", "COMP_CWORD": str(len(words.split()))}
    shell["_TUNEFREE_COMPLETE"] = "complete_bash"
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


def test_what_fits_no_value_or_is_not_known_is_told(at, tmp_path):
    model, said = tmp_path / "told.model", ("--na-values", "nothing", "--thousands", "'")
    status, _, err = at("train", "train.csv", "-t", "rich", *said, "--learner", "nag", "-o", model)
    words = " ".join(err.split())
    assert status == 0
    assert "--na-values nothing fits none of the 300 rows looked at" in words
    assert "--thousands ''\"'\"'' fits none of the" in words
    status, _, err = at("predict", model, "train.csv", "--na-values", "nowhere", "-o", tmp_path / "p.csv")
    assert status == 0 and "--na-values nowhere fits none of the" in " ".join(err.split())
    (tmp_path / "more.csv").write_text("age,job,who,kind,pay\n30,cook,p1,a,7\n40,cook,p2,b,8\n")
    status, _, err = at("predict", model, tmp_path / "more.csv")
    assert status == 0 and err.count("the model does not know 'pay': left out") == 1
    assert "does not know" not in at("predict", model, tmp_path / "more.csv", "--id", "pay")[2]


def test_tables_come_by_standard_input_and_weights_go_to_standard_output(at, tmp_path):
    status, out, err = at("predict", "bad.model", "-", stdin=b"job\ncook\n")  # a line like those of svmlight
    assert status == 0 and len(out.splitlines()) == 2, err
    assert at("inspect", "good.model", "--weights", tmp_path / "w.csv")[0] == 0
    assert at("inspect", "good.model", "--weights", "-")[1] == (tmp_path / "w.csv").read_text()
    assert at("train", "train.csv", "-t", "rich", "--learner", "nag", "-o", tmp_path / "m", "-q", "-q")[0] == 0


def test_what_has_no_effect_in_python_is_an_error():
    table = {"x": [1.0, 2.0] * 50, "y": ["a", "b"] * 50}
    for options, problem in (
        ({"save_every": 5}, "`save_every` is of a checkpoint"),
        ({"resume": True}, "`resume` is of a checkpoint"),
        ({"epochs": 2}, "there is no parameter 'epochs'; the parameters are 'target', "),
        ({"save_evry": 3}, "there is no parameter 'save_evry'; did you mean 'save_every'"),
        ({"weight": "w"}, "there is no parameter 'weight'; did you mean 'sample_weight'"),
    ):
        with pytest.raises(ModelError, match=problem):
            tunefree.train(table, target="y", **options)
    for options in ({"format": "csv"}, {"delimiter": ";"}, {"encoding": "latin-1"}, {"max_line_bytes": 99}):
        with pytest.raises(DataError, match=f"`{next(iter(options))}` is for files, and this is a table; leave it out"):
            tunefree.open_source(table, **options)
