"""The command line: arguments to calls. Everything heavy is imported by the command that needs it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

app = typer.Typer(
    name="tunefree",
    help="Learn linear predictors from files and streams in one pass, with nothing to tune.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Data = Annotated[
    list[str],
    typer.Argument(
        help="Files, patterns or directories: CSV, Parquet, Feather/Arrow, JSON lines, svmlight or Vowpal Wabbit text, "
        "compressed or not; - for standard input.",
        show_default=False,
    ),
]
Target = Annotated[str | None, typer.Option("--target", "-t", help="Column to predict.", show_default=False)]
Task = Annotated[str | None, typer.Option(help="classification or regression; found from the target.")]
Loss = Annotated[
    str | None,
    typer.Option(
        help="logistic, hinge, smoothed-hinge, squared-hinge, exponential, square; in regression square, absolute, "
        "huber:DELTA, quantile:TAU, power:P, epsilon-insensitive:EPSILON."
    ),
]
Weight = Annotated[str | None, typer.Option(help="Column of sample weights.", show_default=False)]
Ignore = Annotated[list[str] | None, typer.Option(help="Column to leave out; may be given again.")]
Text = Annotated[list[str] | None, typer.Option(help="Column of texts; guessed by default.")]
HashBits = Annotated[int, typer.Option(help="Hash features to 2^BITS instead of an exact dictionary.")]
ModelFile = Annotated[Path, typer.Argument(help="A model that `tunefree train` wrote.", show_default=False)]
Format = Annotated[
    str | None, typer.Option(help="csv, json, parquet, arrow, svmlight or vw; by default known by the name or text.")
]
Delimiter = Annotated[str | None, typer.Option(help="Between the fields of a CSV line; guessed by default.")]
OnBadRow = Annotated[str, typer.Option(help="What to do with a row that cannot be used: error, or skip and count it.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


def _version(shown: bool) -> None:
    if shown:
        from importlib.metadata import version

        typer.echo(f"tunefree {version('tunefree')}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print it.")] = False,
) -> None:
    pass


@app.command()
def train(
    data: Data,
    output: Annotated[Path, typer.Option("--output", "-o", help="File to write the model to.", show_default=False)],
    target: Target = None,
    task: Task = None,
    loss: Loss = None,
    learner: Annotated[
        str,
        typer.Option(
            help="pool (many learners mixed), or one of scinol1, scinol2, pistol, coordinate-pistol, nag, sfmd, cocob, "
            "cocob-original, kotlowski, newton, ogd, coordinate-ogd, averaged-sgd, adagrad, adam, perceptron; with a "
            "kernel of every width kernel-pistol, kernel-sgd, kernel-regularized-sgd, kernel-perceptron."
        ),
    ] = "pool",
    method: Annotated[
        str,
        typer.Option(
            help="pool (row by row, with the learner named), kernel-sgd (regularised SGD with kernels, averaged), or "
            "early-stopping (the subgradient method on all rows in memory, stopped where rows held out say)."
        ),
    ] = "pool",
    kernel: Annotated[
        bool,
        typer.Option("--kernel", help="Kernels of many widths, for tables; with early-stopping a Gaussian kernel."),
    ] = False,
    set: Annotated[
        list[str] | None, typer.Option(help="A parameter of the learner, such as eta=0.1; may be given again.")
    ] = None,
    view: Annotated[
        str | None,
        typer.Option(
            help="How numbers are seen: raw, centred, steady or level (robustly scaled, each column or all alike), or "
            "as features of a Gaussian kernel: fourier or nystroem, fourier+4 with a width parameter 2^4 times larger. "
            "By default steady for learners with a kernel, else raw.",
            show_default=False,
        ),
    ] = None,
    average: Annotated[bool, typer.Option("--average", help="Predict with the average of all iterates.")] = False,
    passes: Annotated[
        int, typer.Option(help="Passes over the data; the pool stops earlier once that pays no more.")
    ] = 1,
    max_support: Annotated[
        int | None,
        typer.Option(
            help="Support points of kernel learners at most; beyond they go on in random Fourier features.",
            show_default=False,
        ),
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(help="Where PyTorch computes sums of kernel learners, such as cuda.", show_default=False),
    ] = None,
    weight: Weight = None,
    ignore: Ignore = None,
    text: Text = None,
    hash_bits: HashBits = 0,
    holdout: Annotated[float, typer.Option(help="Share of the rows to hold out: predicted, never learned.")] = 0.0,
    format: Format = None,
    delimiter: Delimiter = None,
    on_bad_row: OnBadRow = "error",
    checkpoint_every: Annotated[int, typer.Option(help="Rows between checkpoints in OUTPUT.checkpoint.")] = 0,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from OUTPUT.checkpoint if it is there.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="A line at each power of two rows.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
) -> None:
    """Learn a model from data, in one pass, or with --method early-stopping from all rows in memory.

    Name the target; the task, the types of the columns and everything else are found. For instance:

    tunefree train people.csv --target income -o people.model
    """
    from tunefree.model.pool import usual_view
    from tunefree.workflows import training

    learner, average = training.learner_of(method, learner, average, kernel)
    plan = training.Plan(
        target=target,
        task=task,
        learner=learner,
        loss=loss,
        average=average,
        settings=_settings(set or []),
        view=view or usual_view(learner),
        passes=passes,
        max_support=max_support,
        device=device,
        weight=weight,
        ignore=tuple(ignore or ()),
        text=tuple(text) if text else None,
        hash_bits=hash_bits,
        holdout=holdout,
        skip_bad_rows=_skips(on_bad_row),
    )
    _check_folder(output)
    if method == training.EARLY_STOPPING:
        from tunefree.workflows import early_stopping as descent

        row_by_row = {"checkpoint-every": checkpoint_every, "resume": resume, "verbose": verbose}
        _leave_out(row_by_row, descent.ROW_BY_ROW)
        _stop_early(_opened(data, format, delimiter), plan, "rbf" if kernel else None, output, quiet)
        return
    checkpoint = output.with_name(output.name + ".checkpoint")
    source = _opened(data, format, delimiter)
    watcher = training.Watcher()
    if not quiet:
        from tunefree.cli import display

        watcher = display.TrainingDisplay(verbose)
    trained = training.train(source, plan, watcher, checkpoint, checkpoint_every, resume)
    trained.save(output)
    checkpoint.unlink(missing_ok=True)
    if not quiet:
        display.show_trained(trained, output)


@app.command()
def predict(
    model: ModelFile,
    data: Data,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="CSV or Parquet file to write; - for CSV on standard output.")
    ] = Path("-"),
    format: Format = None,
    delimiter: Delimiter = None,
    on_bad_row: OnBadRow = "error",
) -> None:
    """Predict rows: labels and probabilities, or numbers."""
    from tunefree.stream.batch import BadRows
    from tunefree.workflows import model_files as modelfile
    from tunefree.workflows import prediction as predictions

    bad = BadRows(_skips(on_bad_row))
    trained = modelfile.load(model)
    written = predictions.write(trained, _opened(data, format, delimiter), str(output), bad)
    _say_skipped(bad)
    if str(output) != "-":
        typer.echo(f"{written} predictions in {output}", err=True)


@app.command()
def evaluate(
    model: ModelFile,
    data: Data,
    json: Json = False,
    format: Format = None,
    delimiter: Delimiter = None,
    on_bad_row: OnBadRow = "error",
) -> None:
    """Losses, error and calibration error of a model on data with known targets.

    The calibration error compares the probability of each row's most probable class with how often it is right: the
    mean distance, over 15 bins of equally many rows (by weight) in the order of that probability.
    """
    from tunefree.cli import display
    from tunefree.stream.batch import BadRows
    from tunefree.workflows import evaluation
    from tunefree.workflows import model_files as modelfile

    bad = BadRows(_skips(on_bad_row))
    trained = modelfile.load(model)
    result = evaluation.evaluate(trained, _opened(data, format, delimiter), bad)
    _say_skipped(bad)
    display.show_evaluation(trained, result, json)


@app.command()
def compare(
    data: Data,
    target: Target = None,
    task: Task = None,
    loss: Loss = None,
    learner: Annotated[
        list[str] | None, typer.Option(help="A learner, or pool; may be given again. All of them by default.")
    ] = None,
    weight: Weight = None,
    ignore: Ignore = None,
    text: Text = None,
    hash_bits: HashBits = 0,
    format: Format = None,
    delimiter: Delimiter = None,
    on_bad_row: OnBadRow = "error",
    plot: Annotated[
        Path | None,
        typer.Option(help="Draw progressive loss against rows: a .png, .svg or .pdf file.", show_default=False),
    ] = None,
    json: Json = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
) -> None:
    """Teach every learner and the pool on one pass: who predicts best, and what a sweep would have cost.

    Each row is predicted by all before any learns it. For instance:

    tunefree compare people.csv --target income --plot people.png
    """
    from tunefree.cli import display
    from tunefree.report import pictures as picture
    from tunefree.workflows import comparison, training

    if plot:
        picture.check(plot)
    plan = training.Plan(
        target=target,
        task=task,
        loss=loss,
        weight=weight,
        ignore=tuple(ignore or ()),
        text=tuple(text) if text else None,
        hash_bits=hash_bits,
        skip_bad_rows=_skips(on_bad_row),
    )
    watcher = comparison.ComparisonWatcher() if quiet else display.ComparisonDisplay()
    compared = comparison.compare(_opened(data, format, delimiter), plan, learner, watcher)
    display.show_comparison(compared, json)
    if plot:
        picture.draw(compared, plot)


@app.command()
def path(
    data: Annotated[
        list[str],
        typer.Argument(
            help="Data as for `tunefree train`, or a model that `tunefree train --method early-stopping` wrote.",
            show_default=False,
        ),
    ],
    target: Target = None,
    task: Task = None,
    loss: Loss = None,
    kernel: Annotated[
        str | None, typer.Option(help="linear, rbf, laplacian or poly; by default weights of the features.")
    ] = None,
    iterations: Annotated[int, typer.Option(help="Length of the path.")] = 500,
    at: Annotated[
        int | None, typer.Option(help="Stop at this iteration, whatever rows held out say.", show_default=False)
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File to write the model to, as it is stopped.", show_default=False),
    ] = None,
    weight: Weight = None,
    ignore: Ignore = None,
    text: Text = None,
    hash_bits: HashBits = 0,
    format: Format = None,
    delimiter: Delimiter = None,
    on_bad_row: OnBadRow = "error",
    plot: Annotated[
        Path | None,
        typer.Option(help="Draw losses, errors and norms: a .png, .svg or .pdf file.", show_default=False),
    ] = None,
    json: Json = False,
) -> None:
    """The regularization path: iterations of the subgradient method, and where rows held out say to stop.

    All rows are read into memory; a tenth of them is held out. A model made so has its path in its file, and nothing
    is learned anew. For instance:

    tunefree path people.csv --target income --plot path.png

    tunefree path people.model --at 30 --output earlier.model
    """
    from tunefree.cli import inspection
    from tunefree.core import storage
    from tunefree.report import pictures as picture
    from tunefree.workflows import early_stopping as descent
    from tunefree.workflows import model_files as modelfile
    from tunefree.workflows import training

    if plot:
        picture.check(plot)
    if output:
        _check_folder(output)
    if len(data) == 1 and storage.is_model(data[0]):
        given: dict[str, Any] = {"target": target, "task": task, "loss": loss, "kernel": kernel, "weight": weight}
        given |= {"ignore": ignore, "text": text, "hash-bits": hash_bits, "format": format, "delimiter": delimiter}
        _leave_out(given | {"iterations": iterations != 500, "on-bad-row": on_bad_row != "error"}, MADE)
        found = modelfile.load(data[0], "path")
    else:
        plan = training.Plan(
            target=target,
            task=task,
            loss=loss,
            weight=weight,
            ignore=tuple(ignore or ()),
            text=tuple(text) if text else None,
            hash_bits=hash_bits,
            skip_bad_rows=_skips(on_bad_row),
        )
        found = descent.descend(_opened(data, format, delimiter), plan, kernel, iterations)
    found = found if at is None else found.at(at)
    if output:
        found.save(output)
    inspection.show_path(found, json)
    if plot:
        picture.draw_path(found.estimator, plot)


@app.command()
def inspect(
    model: ModelFile,
    top: Annotated[int, typer.Option(help="How many features to list; 0 for all.")] = 20,
    json: Json = False,
) -> None:
    """What a model has learned: its features by importance, which does not depend on their scale."""
    from tunefree.cli import inspection
    from tunefree.workflows import model_files as modelfile

    inspection.show_model(modelfile.load(model), top, json)


@app.command()
def certify(
    model: ModelFile,
    weights: Annotated[
        Path | None,
        typer.Option(help="CSV of a linear model to compare with: columns feature and weight.", show_default=False),
    ] = None,
    json: Json = False,
) -> None:
    """What the one pass proves: how much better any linear model could have been on the rows learned."""
    from tunefree.cli import display
    from tunefree.workflows import certification
    from tunefree.workflows.training import Trained

    trained = Trained.load(model)
    display.show_certificate(trained, certification.findings(trained, weights), json)


@app.command()
def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the files it writes.")] = Path("demo"),
) -> None:
    """Learn the Adult census data in one pass, beside logistic regression tuned by cross-validation."""
    from tunefree.cli import demonstration

    demonstration.run(output)


@app.command()
def reproduce(
    names: Annotated[list[str] | None, typer.Argument(metavar="ID...", help="Which; none for a list.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All of them.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Smaller sizes: seconds instead of minutes.")] = False,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for what comes out.")] = Path("reproduction"),
    data: Annotated[
        Path | None, typer.Option(help="Folder of the data files; by default what TUNEFREE_DATA names.")
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="Processes to compute in.")] = 1,
    afresh: Annotated[bool, typer.Option("--afresh", help="Compute again what an earlier run has left.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
) -> None:
    """Compute figures and tables of the papers anew: pictures, numbers, and what differs.

    Parts are kept in OUTPUT/parts as they are done: a run that was stopped goes on where it was. For instance:

    tunefree reproduce scinol-fig1 --quick
    """
    from tunefree.reproduce import running

    running.from_command_line(names or [], everything, running.Request(output, data, quick, jobs), afresh, quiet)


MADE = "is for data, and this is a model that has been made; leave it out, or give the data"


def _stop_early(source: Any, plan: Any, kernel: str | None, output: Path, quiet: bool) -> None:
    from tunefree.workflows import early_stopping as descent

    found = descent.descend(source, plan, kernel)
    found.save(output)
    if not quiet:
        from tunefree.cli import inspection

        inspection.show_stopped(found, output)


def _leave_out(options: dict[str, Any], why: str) -> None:
    """None of these options may be given."""
    from tunefree.core.errors import ModelError

    for name, value in options.items():
        if value:
            raise ModelError(f"--{name} {why}")


def _opened(data: list[str], format: str | None, delimiter: str | None) -> Any:
    from tunefree.stream.source import open_source

    return open_source(data, format, delimiter)


def _settings(given: list[str]) -> dict[str, float]:
    from tunefree.core.errors import ModelError

    settings = {}
    for text in given:
        name, _, value = text.partition("=")
        try:
            settings[name.strip()] = float(value)
        except ValueError:
            raise ModelError(f"--set {text}: write NAME=NUMBER, such as eta=0.1") from None
    return settings


def _skips(on_bad_row: str) -> bool:
    from tunefree.core.errors import TunefreeError

    if on_bad_row not in ("error", "skip"):
        raise TunefreeError(f"--on-bad-row is error or skip, not {on_bad_row}")
    return on_bad_row == "skip"


def _say_skipped(bad: Any) -> None:
    if bad.count:
        typer.echo(f"{bad.count} rows skipped, the first: {bad.first[0]}", err=True)


def _check_folder(output: Path) -> None:
    """Before hours of training, not after."""
    from tunefree.core.errors import ModelError

    if output.is_dir() or not output.parent.is_dir():
        raise ModelError(f"{output}: {'is' if output.is_dir() else 'its parent is not'} a directory; name a file")


def main() -> None:
    """Run the command line: status 0, or 2 with a message for anything a user can mend."""
    from tunefree.core.errors import TunefreeError

    try:
        app()
    except TunefreeError as error:
        typer.echo(f"tunefree: {error}", err=True)
        sys.exit(2)
    except BrokenPipeError:  # whoever read our output has gone
        sys.stderr.close()
        sys.exit(1)
    except KeyboardInterrupt:
        typer.echo("tunefree: interrupted; no model was written", err=True)
        sys.exit(130)
