"""From the command line's request to files: experiments one after the other, each with picture, numbers and text."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

from tunefree.core.errors import DataError, ModelError
from tunefree.core.storage import whole_file
from tunefree.reproduce import MODULES, drawing, experiments
from tunefree.reproduce.experiment import Experiment, Report, Request, Watcher, compute, files_of, settings_of, store_of
from tunefree.reproduce.progress import Display


def from_command_line(names: list[str], everything: bool, request: Request, afresh: bool, quiet: bool) -> None:
    """What ``tunefree reproduce`` does: a list of the experiments if none is named."""
    if not names and not everything:
        for experiment in experiments(list(MODULES)):
            print(f"{experiment.name:<15} {experiment.title}")
        return
    if names and everything:
        raise ModelError(f"--all and {names[0]} contradict each other; leave one of them out")
    watcher = Watcher() if quiet else Display()
    try:
        missing = reproduce(names or list(MODULES), request, watcher, afresh, without_missing=everything)
    except KeyboardInterrupt:
        raise ModelError(
            f"interrupted; parts that were done are kept in {request.output}, and need not be computed again"
        ) from None
    finally:
        watcher.stop()
    if missing:
        raise DataError("\n".join(missing))


def reproduce(
    names: list[str], request: Request, watcher: Watcher, afresh: bool = False, without_missing: bool = False
) -> list[str]:
    """Run experiments.

    Parameters
    ----------
    names : list of str
    request : Request
        Where to, in which size, with how many processes.
    watcher : Watcher
        Told how it goes on.
    afresh : bool, default False
        Compute again what an earlier run has kept.
    without_missing : bool, default False
        Leave experiments out whose data files are not there, instead of running none.

    Returns
    -------
    list of str
        What is missing for each experiment that was left out.
    """
    drawing.check()
    _make_folder(request.output)
    ready, missing = [], []
    for experiment in experiments(names):
        try:
            files_of(experiment, request)
            ready.append(experiment)
        except DataError as error:
            if not without_missing:
                raise
            missing.append(f"{experiment.name} was left out: {error}")
    if afresh:
        for experiment in ready:
            store_of(experiment, request).clear()
    for experiment in ready:
        watcher.begin(experiment.name, experiment.title)
        watcher.end(experiment.name, run(experiment, request, watcher))
    return missing


def run(experiment: Experiment, request: Request, watcher: Watcher) -> list[Path]:
    """Run one experiment; returns the files written."""
    settings = settings_of(experiment, request)
    report = experiment.report(settings, compute(experiment, request, watcher))
    base = request.output / experiment.name
    written = drawing.write(report.draw, report.inches, base)
    texts = ("csv", numbers_of(report)), ("md", text_of(experiment, settings, request.quick, report))
    for ending, text in texts:
        path = base.with_name(f"{base.name}.{ending}")
        with whole_file(path) as file:
            file.write(text.encode())
        written.append(path)
    return written


def numbers_of(report: Report) -> str:
    """The numbers behind a figure as CSV."""
    written = io.StringIO()
    writer = csv.DictWriter(written, list(report.numbers[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _shown(value) for name, value in row.items()} for row in report.numbers)
    return written.getvalue()


def _shown(value: Any) -> Any:
    return f"{value:.6g}" if isinstance(value, float) else value


def text_of(experiment: Experiment, settings: Any, quick: bool, report: Report) -> str:
    """What the paper reports, what came out, and where they differ, as Markdown."""
    given = ", ".join(f"{name.replace('_', ' ')} {_listed(value)}" for name, value in settings._asdict().items())
    size = f"{'quick, smaller than the paper' if quick else 'full'} ({given})"
    if experiment.quick == experiment.full:
        size = "the same, quick or not"
    return (
        f"# {experiment.name}\n\n{experiment.title}.\n\n![{experiment.name}]({experiment.name}.png)\n\n"
        f"**The paper.** {report.reported}\n\n**Here.** {report.found}\n\n**Differences.** {report.differences}\n\n"
        f"Size: {size}. Numbers: `{experiment.name}.csv`.\n"
    )


def _listed(value: Any) -> str:
    if value == 0:  # of rows
        return "all"
    return " ".join(f"{part:g}" for part in value) if isinstance(value, tuple) else f"{value:,.10g}"


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ModelError(f"{folder}: cannot be made a folder ({error.strerror}); name another with --output") from None
