"""Runs experiments one after the other and writes the figure, the numbers and the text of each."""

from __future__ import annotations

import csv
import io
import time
from pathlib import Path
from typing import Any

from rich.console import Console

from tunefree.core.console import ProgressLine, plain_console
from tunefree.core.errors import DataError, ModelError
from tunefree.core.storage import make_folder, whole_file
from tunefree.papers.experiments import NAMES, drawing, experiments
from tunefree.papers.experiments.experiment import (
    Experiment,
    Progress,
    Report,
    Request,
    compute,
    files_of,
    settings_of,
    store_of,
)


def from_command_line(names: list[str], everything: bool, request: Request, afresh: bool, quiet: bool) -> None:
    """Implementation of ``tunefree reproduce``; lists the experiments if none is named."""
    if not names and not everything:
        for experiment in experiments(list(NAMES)):
            print(f"{experiment.name:<15} {experiment.title}")
        return
    if names and everything:
        raise ModelError(f"--all and {names[0]} contradict each other; leave one of them out")
    try:
        missing = reproduce(names or list(NAMES), request, afresh, quiet, without_missing=everything)
    except KeyboardInterrupt:
        raise ModelError(
            f"interrupted; finished parts are kept in {request.output} and are not computed again"
        ) from None
    if missing:
        raise DataError("\n".join(missing))


def reproduce(
    names: list[str], request: Request, afresh: bool = False, quiet: bool = False, without_missing: bool = False
) -> list[str]:
    """Run experiments, all parts ``afresh`` or those that no earlier run has left; a message for each that was skipped.

    Skipped are those whose data files are missing; unless ``without_missing`` a DataError is raised before any is run.
    """
    drawing.require_matplotlib()
    make_folder(request.output)
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
    console = plain_console(stderr=True)
    console.quiet = quiet
    for experiment in ready:
        _run_and_show(experiment, request, console)
    return missing


def _run_and_show(experiment: Experiment, request: Request, console: Console) -> None:
    """Run an experiment, with its progress and the files written on the console."""
    console.print(f"{experiment.name}: {experiment.title}")
    began, line = time.monotonic(), ProgressLine(console)

    def show(done: int, total: int, kept: int) -> None:
        earlier = f", {kept} in an earlier run" if kept else ""
        line.show(f"  {done} of {total} parts done{earlier}", done, total)

    try:
        if not console.quiet:
            line.show("  computing")
            line.bar.start()
        files = run(experiment, request, show)
    finally:
        line.close()
    for file in files:
        console.print(f"  {file}")
    console.print(f"  in {time.monotonic() - began:.1f} s")


def run(experiment: Experiment, request: Request, *progress: Progress) -> list[Path]:
    """Run one experiment and return the files written."""
    settings = settings_of(experiment, request)
    report = experiment.report(settings, compute(experiment, request, *progress))
    base = request.output / experiment.name
    written = drawing.write(report.draw, report.inches, base)
    for ending, text in (("csv", numbers_of(report)), ("md", text_of(experiment, settings, request.quick, report))):
        path = base.with_name(f"{base.name}.{ending}")
        with whole_file(path) as file:
            file.write(text.encode())
        written.append(path)
    return written


def numbers_of(report: Report) -> str:
    """The plotted values as CSV."""
    written = io.StringIO()
    writer = csv.DictWriter(written, list(report.numbers[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _shown(value) for name, value in row.items()} for row in report.numbers)
    return written.getvalue()


def _shown(value: Any) -> Any:
    return f"{value:.6g}" if isinstance(value, float) else value


def text_of(experiment: Experiment, settings: Any, quick: bool, report: Report) -> str:
    """The paper's claims, whether they hold here, and the differences of the experiment, as Markdown."""
    values = ", ".join(f"{name.replace('_', ' ')} {_listed(value)}" for name, value in settings._asdict().items())
    full = f"full but for {experiment.lacks}" if experiment.lacks else "full"
    size = f"{'quick, smaller than the paper' if quick else full} ({values})"
    if experiment.quick == type(experiment.quick)():
        size = "the same, quick or not"
    claims = "".join(
        f"- {claim.statement}. {'Here, too' if claim.holds else 'Not so here'}: {claim.measured}.\n"
        for claim in report.claims
    )
    return (
        f"# {experiment.name}\n\n{experiment.title}.\n\n![{experiment.name}]({experiment.name}.png)\n\n"
        f"**Claims of the paper.**\n\n{claims}\n**Differences.** {report.differences}\n\n"
        f"Size: {size}. Numbers: `{experiment.name}.csv`.\n"
    )


def _listed(value: Any) -> str:
    if value == 0:  # of rows
        return "all"
    return " ".join(f"{part:g}" for part in value) if isinstance(value, tuple) else f"{value:,.10g}"
