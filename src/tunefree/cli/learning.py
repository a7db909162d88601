"""The commands on data: `tunefree columns`, which shows their columns, and `tunefree train`."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tunefree.cli.options import Files, Json, Run, check_outputs
from tunefree.core import machine
from tunefree.core.console import plain_console
from tunefree.core.errors import ModelError
from tunefree.core.parameters import OUTPUT, as_options
from tunefree.model_files.plan import TYPES, Plan

if TYPE_CHECKING:
    from tunefree.model_files.trained import Trained


def columns(
    plan: Annotated[Plan, ("target", "task", "sample_weight", "groups", "ignore", "text", *TYPES)],
    files: Files,
    json: Json = False,
) -> None:
    """Show how `tunefree train` would read each column, and why, without training.

    It samples rows from all parts of the files, warns of harmful columns, and shows the effect of options on reading
    columns. For instance:

    tunefree columns people.csv --target income

    tunefree columns people.csv --target income --categorical zip --json
    """
    from tunefree.cli.display import show
    from tunefree.report.learned import blocks_of_view
    from tunefree.workflows.columns import view_of

    show(blocks_of_view(view_of(files.source(is_table=plan.target is not None), plan)), json)


def train(
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="File to write the model to.", show_default=False, rich_help_panel=OUTPUT),
    ],
    plan: Plan,
    files: Files,
    run: Run,
    json: Json = False,
) -> None:
    """Train a model on data in one pass.

    Only the target is required: the task and the column types are inferred. For instance:

    tunefree train people.csv --target income -o people.model

    tunefree train more.csv --from people.model -o people.model
    """
    from tunefree.core.storage import only_writer
    from tunefree.model_files.trained import check_name

    run.check(plan)
    check_name(output)
    machine.share_freed_memory()
    is_file = output.parent.is_dir() and (output.is_file() or not output.exists())  # not a pipe or device
    checkpoint = Path(f"{output}.checkpoint")
    with only_writer(output.parent / f".{output.name}.lock", output) if is_file else nullcontext():
        # the folder of a pipe or a device may not be writable
        is_kept = bool(run.save_every or run.resume or checkpoint.exists())
        check_outputs([output, checkpoint if is_kept else None], files.data)
        trained = (_learn if run.workers is None else _spread)(files, plan, run, output, checkpoint)
        if is_kept:
            checkpoint.unlink(missing_ok=True)
    if json or not run.quiet:
        from tunefree.cli.display import show
        from tunefree.report.learned import summary

        show(summary(trained, output, for_programs=json), json)


def _spread(files: Files, plan: Plan, run: Run, output: Path, checkpoint: Path) -> Trained:
    """Train on shards on a cluster."""
    from tunefree.distributed.training import train

    console = plain_console(stderr=True)
    console.quiet = run.quiet
    with _client(run) as client:

        def tell(line: str) -> None:
            console.print(f"{as_options(line)}; {len(client.scheduler_info()['workers'])} workers")

        source, kept = files.source(is_table=plan.target is not None), checkpoint if run.resume else None
        model = train(client, source, plan=plan, tell=tell, checkpoint=kept, resume=run.resume)
        trained: Trained = model.trained_
    trained.save(output, only_for_prediction=run.only_for_prediction)
    return trained


@contextmanager
def _client(run: Run) -> Iterator[Any]:
    try:
        from distributed import Client
        from tunefree.distributed.engines import local_cluster
    except ImportError:
        raise ModelError("Dask is not installed; pip install 'tunefree[dask]'") from None
    workers = str(run.workers)
    # Errors of workers are also raised here.
    options = {"dashboard_address": "127.0.0.1:0", "silence_logs": logging.CRITICAL}
    with local_cluster(int(workers), **options) if workers.isdigit() else nullcontext(workers) as cluster:
        try:
            client = Client(cluster, timeout=10)
        except (OSError, ValueError) as error:
            raise ModelError(f"--workers {workers}: no cluster answers ({error})") from None
        with client:
            yield client


def _learn(files: Files, plan: Plan, run: Run, output: Path, checkpoint: Path) -> Trained:
    """Train on this machine, row by row."""
    from tunefree.cli.display import TrainingDisplay
    from tunefree.training import training
    from tunefree.training.stopping import Stop

    source, learn, stop, display = files.source(is_table=plan.target is not None), training.train, Stop(), None
    if run.earlier is not None:
        model = training.Trained.load(run.earlier)
        learn, plan = partial(training.learn_more, model), model.plan.further(plan)
    options: dict[str, Any] = {"checkpoint": checkpoint, "save_every": run.save_every or 0, "resume": run.resume}
    options |= {"memory_limit": run.memory_limit, "stop": stop, "tell": lambda message: None}
    if not run.quiet:
        display = TrainingDisplay()
        options |= {"callbacks": [display], "tell": display.tell}
    try:
        with stop.on_signals():
            trained: Trained = learn(source, plan, **options)
            trained.save(output, only_for_prediction=run.only_for_prediction)
    finally:
        if display is not None:
            display.progress.close()
    return trained
