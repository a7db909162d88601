"""`tunefree train`: a model from data."""

from __future__ import annotations

import csv
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tunefree.cli.options import KERNEL_LEARNERS, LEARNERS, VIEWS, Files, Problem, check_outputs, refuse
from tunefree.cli.spread import Cluster
from tunefree.cli.spread import learn as learn_shards
from tunefree.core.errors import ModelError

if TYPE_CHECKING:
    from tunefree.stream.source import Source
    from tunefree.workflows.plan import Plan
    from tunefree.workflows.training import Trained


def train(
    output: Annotated[Path, typer.Option("--output", "-o", help="File to write the model to.", show_default=False)],
    problem: Problem,
    files: Files,
    learner: Annotated[
        str,
        typer.Option(
            help="pool (linear learners, and trees that go on learning, mixed), or a single learner: one of "
            f"{LEARNERS}; with a kernel of every width {KERNEL_LEARNERS}."
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
        list[str] | None,
        typer.Option(help="A parameter of a single learner, such as eta=0.1; may be given again."),
    ] = None,
    view: Annotated[
        str | None,
        typer.Option(
            help=f"How a single learner sees numbers, one of {VIEWS}. centred, steady and level are robust (steady "
            "scales each column, level all alike). By default steady for learners with a kernel, else raw.",
            show_default=False,
        ),
    ] = None,
    average: Annotated[
        bool, typer.Option("--average", help="A single learner predicts with the mean of its iterates.")
    ] = False,
    passes: Annotated[int, typer.Option(help="Passes of a single learner over the data.")] = 1,
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
    group: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Column of groups of rows that belong together, such as patients: not learned. Sort the file by it.",
            show_default=False,
        ),
    ] = None,
    class_weight: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LABEL=W",
            help="What rows of a class weigh; may be given again. Or balanced: all classes weigh the same, for which "
            "the data are read once more.",
            show_default=False,
        ),
    ] = None,
    classes: Annotated[
        str | None,
        typer.Option(
            metavar="A,B",
            help="All labels, between commas; a row with another one cannot be used. By default a new label becomes a "
            "class.",
            show_default=False,
        ),
    ] = None,
    holdout: Annotated[float, typer.Option(help="Share of the rows to hold out: predicted, never learned.")] = 0.0,
    shuffle: Annotated[
        bool,
        typer.Option("--shuffle", help="Learn the rows in a random order, for sorted files; files of any size."),
    ] = False,
    seed: Annotated[int, typer.Option(help="Of the random order.")] = 0,
    earlier: Annotated[
        Path | None,
        typer.Option(
            "--from", help="A model that goes on with these rows as it was; it may be OUTPUT.", show_default=False
        ),
    ] = None,
    checkpoint_every: Annotated[int, typer.Option(help="Rows between checkpoints in OUTPUT.checkpoint.")] = 0,
    memory_limit: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="What the model may take, such as 4G; parts of it sleep before it does. A quarter of the memory.",
            show_default=False,
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            help="Learn shards of the files in so many processes of this machine (extra dask).", show_default=False
        ),
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS", help="Learn shards of the files on the Dask cluster there.", show_default=False
        ),
    ] = None,
    shard_rows: Annotated[int, typer.Option(help="Rows that a shard has at least.")] = 16384,
    on_bad_shard: Annotated[
        str, typer.Option(help="What to do with a shard that cannot be read: error, or skip.")
    ] = "error",
    checkpoint: Annotated[
        bool, typer.Option("--checkpoint", help="Of shards: keep each round in OUTPUT.checkpoint, for --resume.")
    ] = False,
    for_prediction: Annotated[
        bool, typer.Option("--for-prediction", help="Write what predicts only; a pool that cannot go on learning.")
    ] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from OUTPUT.checkpoint if it is there.")] = False,
    report: Annotated[
        Path | None, typer.Option(help="Write a report of the model too, as `tunefree report`.", show_default=False)
    ] = None,
    live: Annotated[
        int | None,
        typer.Option(
            metavar="PORT",
            help="Serve the report to this machine while the model learns; 0 for any port that is free.",
            show_default=False,
        ),
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="A line at each power of two rows.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
) -> None:
    """Learn a model from data, in one pass, or with --method early-stopping from all rows in memory.

    Name the target; the task, the types of the columns and everything else are found. For instance:

    tunefree train people.csv --target income -o people.model

    tunefree train more.csv --from people.model -o people.model
    """
    from tunefree.model.pool import POOLS, usual_view
    from tunefree.workflows.plan import EARLY_STOPPING, learner_of

    if method == EARLY_STOPPING:
        _refuse_for_early_stopping(
            {"passes": passes != 1, "view": view, "average": average, "set": set, "max-support": max_support}
        )
    learner, average = learner_of(method, learner, average, kernel)
    if for_prediction and learner not in POOLS and method != EARLY_STOPPING:
        refuse(["for-prediction"], "is for the pool; leave it out: the model of a single learner predicts as it is")
    plan = problem.plan(
        files,
        learner=learner,
        average=average,
        settings=_settings(set or []),
        view=view or usual_view(learner),
        passes=passes,
        max_support=max_support,
        device=device,
        group=group,
        holdout=holdout,
        class_weight=tuple(class_weight or ()),
        classes=_labels(classes),
        shuffle=seed if shuffle else None,
    )
    kept = checkpoint_of(output)  # beside a pipe or a device there may be no place for one
    is_kept = bool(checkpoint or checkpoint_every or resume or kept.exists())
    check_outputs([output, kept if is_kept else None, report], files.data)
    if method == EARLY_STOPPING:
        of_learning: dict[str, Any] = {
            "from": earlier,
            "checkpoint-every": checkpoint_every,
            "resume": resume,
            "verbose": verbose,
            "memory-limit": memory_limit,
            "for-prediction": for_prediction,
            "report": report,
            "live": live is not None,
        }
        _refuse_for_early_stopping(of_learning)
        _stop_early(files, plan, kernel, output, quiet)
    else:
        source = files.source()
        cluster = Cluster(workers, scheduler, shard_rows, on_bad_shard)
        if cluster.is_asked_for:
            refuse(
                [
                    name
                    for name, value in (("from", earlier), ("checkpoint-every", checkpoint_every), ("live", live))
                    if value
                ],
                "is for one machine; leave it out to learn shards",
            )
            trained = _spread(cluster, source, plan, output, checkpoint, resume, for_prediction, quiet)
        else:
            of_file = output, earlier, checkpoint_every, resume, memory_limit, for_prediction
            trained = _learn(source, plan, *of_file, live, verbose, quiet)
        if report:
            from tunefree.core import storage
            from tunefree.report import page

            page.write(page.report(trained, digest=storage.digest_of(output)), report)


def _spread(
    cluster: Cluster,
    source: Source,
    plan: Plan,
    output: Path,
    keeps: bool,
    resume: bool,
    for_prediction: bool,
    quiet: bool,
) -> Trained:
    """Learn shards on a cluster."""
    checkpoint = checkpoint_of(output) if keeps or resume else None
    trained = learn_shards(cluster, source, plan, checkpoint, resume, quiet)
    _save(trained, output, for_prediction)
    if checkpoint is not None:
        checkpoint.unlink(missing_ok=True)
    if not quiet:
        from tunefree.cli.display.training import show_trained

        show_trained(trained, output)
    return trained


def checkpoint_of(output: Path) -> Path:
    """Where a model is saved on the way."""
    return Path(f"{output}.checkpoint")


def _learn(
    source: Source,
    plan: Plan,
    output: Path,
    earlier: Path | None,
    checkpoint_every: int,
    resume: bool,
    memory_limit: str | None,
    for_prediction: bool,
    live: int | None,
    verbose: bool,
    quiet: bool,
) -> Trained:
    """Learn row by row."""
    from tunefree.workflows import training
    from tunefree.workflows.class_weights import with_weights
    from tunefree.workflows.watching import SilentWatcher

    checkpoint, plan = checkpoint_of(output), with_weights(plan, source)
    watcher: training.Watcher = SilentWatcher()
    if not quiet:
        from tunefree.cli.display.training import TrainingDisplay, show_trained

        watcher = TrainingDisplay(verbose)
    if live is not None:
        from tunefree.cli.display.live import LiveDisplay

        watcher = LiveDisplay(watcher, live)
    learn: Any = training.train
    if earlier is not None:
        model = training.Trained.load(earlier)
        learn, plan = partial(training.learn_more, model), model.plan.further(plan)
    try:
        trained = learn(source, plan, watcher, checkpoint, checkpoint_every, resume, memory_limit=memory_limit)
        _save(trained, output, for_prediction)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(_left(checkpoint, plan)) from None
    finally:
        watcher.close()
    checkpoint.unlink(missing_ok=True)
    if not quiet:
        show_trained(trained, output)
    return trained


def _save(trained: Any, output: Path, for_prediction: bool) -> None:
    """Write the model, or of a pool what predicts if that is asked for."""
    if for_prediction:
        trained.model.reduce()
    trained.save(output)


def _left(checkpoint: Path, plan: Plan) -> str:
    """What an interrupted training leaves, and how to go on."""
    from tunefree.workflows.training import Trained

    try:
        kept = Trained.load(checkpoint)
    except ModelError:
        kept = None
    if kept is None or kept.plan != plan:
        return "interrupted; no model was written. With --checkpoint-every N one is kept on the way, for --resume"
    done = f"pass {kept.progress.number + 1}, " if plan.passes > 1 else ""
    rows = f"the model after {done}{kept.progress.rows:,} rows"
    return f"interrupted; {checkpoint} holds {rows}. Give the same command with --resume to go on from there"


def _refuse_for_early_stopping(options: dict[str, Any]) -> None:
    """Raise an error if an option has a value that says how rows are learned one by one."""
    from tunefree.estimators.early_stopping import ROW_BY_ROW

    refuse([name for name, value in options.items() if value], ROW_BY_ROW)


def _stop_early(files: Files, plan: Plan, kernel: bool, output: Path, quiet: bool) -> None:
    """Learn from all rows in memory."""
    from tunefree.estimators.early_stopping import descend

    found = descend(files.source(), plan, "rbf" if kernel else None)
    found.save(output)
    if not quiet:
        from tunefree.cli.display.path import show_stopped

        show_stopped(found, output)


def _labels(text: str | None) -> tuple[str, ...]:
    """The labels between commas; one that holds a comma stands in quotes, as in a CSV file.

    Examples
    --------
    >>> _labels('yes, no, "yes, but"')
    ('yes', 'no', 'yes, but')
    """
    return (
        () if text is None else tuple(label.strip() for label in next(csv.reader([text], skipinitialspace=True), [""]))
    )


def _settings(given: list[str]) -> dict[str, float]:
    settings = {}
    for text in given:
        name, _, value = text.partition("=")
        try:
            settings[name.strip()] = float(value)
        except ValueError:
            raise ModelError(f"--set {text}: write NAME=NUMBER, such as eta=0.1") from None
    return settings
