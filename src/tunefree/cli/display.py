"""What the command line shows: progress on standard error, results on standard output."""

from __future__ import annotations

import json
import math
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from tunefree.core.rows import entry, row, size
from tunefree.kernel.feature_expansion import SWITCHED
from tunefree.losses.objectives import chosen
from tunefree.model.model import Model
from tunefree.model.targets import RunningMetrics
from tunefree.stream.batch import Batch
from tunefree.stream.source import Source
from tunefree.workflows.comparison import POOL, RATES, Comparison, ComparisonWatcher, Contestant, has_rate, in_figures
from tunefree.workflows.evaluation import Evaluation
from tunefree.workflows.training import Predictor, Step, Trained, Watcher

SHOWN_KERNELS = 3  # of which the largest share is first
_MUCH_MEMORY = 2**30  # bytes of models together that are worth a word
_LINE_SECONDS = 10.0  # between progress lines where there is no terminal to draw a bar on


class TrainingDisplay(Watcher):
    """A progress bar with rows, rows a second and progressive loss, and on demand Vowpal Wabbit's table."""

    def __init__(self, verbose: bool = False) -> None:
        self.console = Console(stderr=True, soft_wrap=True)
        self.powers = PowersOfTwo() if verbose else None
        self.began = self.told = time.monotonic()
        self.rows, self.told_of_switch = 0, False
        columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
        self.bar = Progress(*columns, console=self.console, transient=True)
        self.task: Any = None

    def begin(self, trained: Trained, source: Source) -> None:
        self.console.print(describe(trained), highlight=False)
        self.share = source.progress()
        if self.powers:
            self.powers.header()
        elif self.console.is_terminal:
            self.task = self.bar.add_task("reading", total=trained.plan.passes)
            self.bar.start()

    def step(self, trained: Trained, step: Step) -> None:
        self.rows += len(step.row_losses)
        progress = trained.progress
        if trained.model.switched is not None and not self.told_of_switch:
            self.told_of_switch = True
            self.console.print(SWITCHED.format(trained.model.switched), highlight=False)
        if self.powers:
            self.powers.step(trained.model, step)
            return
        now = time.monotonic()
        metrics = progress.progressive[-1]
        done = f"pass {progress.number + 1}, " if trained.plan.passes > 1 else ""
        line = f"{done}{progress.rows:,} rows, {self.rows / max(now - self.began, 1e-3):,.0f} rows/s, "
        line += f"progressive loss {metrics.mean_loss():.4g}"
        if self.task is not None:
            share = self.share(progress.position)
            total = None if share is None else trained.plan.passes
            self.bar.update(self.task, description=line, total=total, completed=progress.number + (share or 0.0))
        elif now - self.told > _LINE_SECONDS:
            self.told = now
            self.console.print(line, highlight=False)

    def end(self, trained: Trained) -> None:
        self.bar.stop()


class PowersOfTwo:
    """Vowpal Wabbit's habit: a line at each power of two rows, with the loss so far and since the last line."""

    def __init__(self) -> None:
        self.rows, self.next, self.weight = 0, 1, 0.0
        self.loss, self.last_loss, self.last_weight = 0.0, 0.0, 0.0

    def header(self) -> None:
        for names in (
            ("average", "since", "example", "example", "current", "current", "current"),
            ("loss", "last", "counter", "weight", "label", "predict", "features"),
        ):
            self._print("{:<9}{:<9}{:>12}{:>15}{:>17}{:>17}{:>9}".format(*names))

    def step(self, model: Model, step: Step) -> None:
        start = 0
        n = len(step.row_losses)
        while self.next <= self.rows + n:
            stop = self.next - self.rows
            self._add(step, start, stop)
            self._line(model, step, stop - 1)
            start, self.next = stop, 2 * self.next
        self._add(step, start, n)
        self.rows += n

    def _add(self, step: Step, start: int, stop: int) -> None:
        weight = step.batch.weight[start:stop]
        self.weight += float(weight.sum())
        self.loss += float((weight * step.row_losses[start:stop]).sum())

    def _line(self, model: Model, step: Step, i: int) -> None:
        since = (self.loss - self.last_loss) / max(self.weight - self.last_weight, 1e-300)
        average = self.loss / max(self.weight, 1e-300)
        self.last_loss, self.last_weight = self.loss, self.weight
        if model.task == "regression":
            label, predicted = f"{step.y[i]:.6g}", f"{step.predictions[i, 0]:.6g}"
        else:
            label = str(step.y.values[step.y.codes[i]])
            predicted = str(model.classes[int(chosen(step.predictions[i : i + 1])[0])])
        x = row(step.batch.rows, i)
        features = sum(entry(x, k)[1] != 0.0 for k in range(size(x)))
        counter = f"{self.next:>12}{self.weight:>15.1f}{label[:15]:>17}{predicted[:15]:>17}{features:>9}"
        self._print(f"{average:<9.6f}{since:<9.6f}{counter}")

    def _print(self, line: str) -> None:
        typer.echo(line, err=True)


def describe(trained: Trained) -> str:
    """One line: what is learned, from what, how."""
    model = trained.model
    default = "square" if model.task == "regression" else "logistic"
    how = (
        f"loss {model.options.loss or default}, learner {model.learner}{', averaged' if model.options.average else ''}"
    )
    return f"{goal_of(trained, ' so far')}; {how}"


def goal_of(trained: Predictor, so_far: str = "") -> str:
    """The task, the target, and its classes."""
    model, target = trained.model, trained.plan.target
    goal = f"'{target}'" if target else "the label"
    if model.task == "regression":
        return f"regression of {goal}"
    return f"classification of {goal} ({len(model.classes)} classes{so_far}: {listed(model.classes, 4)})"


def listed(names: list[Any], most: int) -> str:
    """The first names, with commas."""
    return ", ".join(map(str, names[:most])) + (", ..." if len(names) > most else "")


def show_trained(trained: Trained, output: Path) -> None:
    """The end of training: rows, losses and where the model is."""
    model, progress = trained.model, trained.progress
    table = plain_table()
    first = progress.progressive[0]
    table.add_row("rows", f"{first.rows:,}")
    if progress.skipped:
        table.add_row("rows skipped", f"{progress.skipped:,}")
    table.add_row("features", f"{model.n_features:,}")
    if model.task == "classification":
        table.add_row("classes", listed(model.classes, 12))
    for title, value in losses_of(model, first).items():
        table.add_row(f"progressive {title}", value)
    for number, metrics in enumerate(progress.held_out):
        if metrics.rows:
            passes = f" (pass {number + 1})" if trained.plan.passes > 1 else ""
            for title, value in losses_of(model, metrics).items():
                table.add_row(f"held-out {title}{passes}", value)
    table.add_row("model", str(output))
    console = Console(highlight=False, soft_wrap=True)
    console.print(table)
    for name, count in naming_columns(trained):
        console.print(
            f"hint: column {name!r} has {count:,} different values; pass --ignore {name} if it names the rows"
        )


def naming_columns(trained: Trained) -> list[tuple[str, int]]:
    """Categorical columns with a different value in more than half of the rows, and how many: they predict nothing."""
    rows = trained.progress.progressive[0].rows
    if trained.kind != "table" or rows < 100:
        return []
    columns = trained.encoder.columns
    places = trained.encoder.column_of()
    counts = np.bincount(places[places >= 0], minlength=len(columns)).tolist()
    pairs = zip(columns, counts, strict=True)
    return [(column.name, count) for column, count in pairs if column.kind == "category" and 2 * count > rows]


def losses_of(model: Model, metrics: RunningMetrics) -> dict[str, str]:
    if model.task == "classification":
        default = "log-loss" if model.loss_is_log_loss else "loss"
        return {default: f"{metrics.mean_loss():.4f}", "error": f"{100 * metrics.mean_error():.2f} %"}
    return {"loss": f"{metrics.mean_loss():.6g}", "absolute error": f"{metrics.mean_error():.6g}"}


def show_evaluation(trained: Predictor, result: Evaluation, as_json: bool) -> None:
    """Losses, errors and calibration on known targets."""
    model, metrics = trained.model, result.metrics
    figures: dict[str, float] = {"rows": metrics.rows}
    if model.task == "classification":
        known = metrics.weight - result.unseen_weight
        if not model.loss_is_log_loss:
            figures["loss"] = metrics.loss / known if known else math.nan
        figures["log_loss"] = result.log_loss / known if known else math.nan
        figures["error"] = metrics.mean_error()
        figures["calibration_error"] = result.calibration_error
        if result.unseen:
            figures["rows_of_unseen_classes"] = result.unseen
    else:
        figures["loss"] = metrics.mean_loss()
        figures["mean_absolute_error"] = metrics.mean_error()
        figures["root_mean_squared_error"] = math.sqrt(result.squares / metrics.weight) if metrics.weight else 0.0
    if as_json:
        typer.echo(json.dumps(figures))
        return
    table = plain_table()
    for key, value in figures.items():
        shown = f"{100 * value:.2f} %" if key == "error" else f"{value:,}" if key.startswith("rows") else f"{value:.6g}"
        table.add_row(key.replace("_", " ").replace("log loss", "log-loss"), shown)
    Console(highlight=False, soft_wrap=True).print(table)


def show_certificate(trained: Trained, found: dict[str, Any], as_json: bool) -> None:
    """What :func:`tunefree.workflows.certification.findings` found."""
    if as_json:
        typer.echo(json.dumps(found))
        return
    classes = trained.model.task == "classification"
    unit = "" if classes else " mean absolute deviations of the target"
    console = Console(highlight=False, soft_wrap=True)
    console.print(f"{found['rows']:,} rows, each predicted before it was learned: mean loss {found['loss']:.6g}")
    table = Table("radius", "no linear model has a mean loss below", box=None, header_style="bold", pad_edge=False)
    for radius, bound in found["lower_bounds"].items():
        table.add_row(f"{radius:g}{unit}", f"{bound:.6g}")
    console.print(table)
    for gap, radius in found["largest_radii"].items():
        if radius is not None:
            console.print(f"none of radius up to {radius:.3g}{unit} is better by more than {100 * gap:g} %")
    if "weights" in found:
        given = found["weights"]
        console.print(f"the weights given have a mean loss of at least {given['loss_at_least']:.6g} on these rows")
        if "theorem" in given:
            console.print(f"the learner's theorem: they are better by at most {given['theorem']:.6g} a row")
    for kernel in found.get("kernels", [])[:SHOWN_KERNELS]:
        known = f"{kernel['learner']} (gamma {kernel['gamma']:.3g}): mean loss {kernel['loss']:.6g}"
        console.print(f"{known}; no function of")
        bounds = (f"{bound:.6g} (norm {norm:g})" for norm, bound in kernel["lower_bounds"].items())
        console.print(f"  its space has one below {', '.join(bounds)}")
    if "pool" in found:
        pool = found["pool"]
        console.print(
            f"mixing cost at most {pool['excess_per_row']:.3g} a row over the best of {pool['members']} members"
        )
    for name, bound in found.get("risk", {}).items():
        if name != "confidence" and bound is not None:
            shown = f"{100 * bound:.2f} %" if name == "error" else f"{bound:.4f}"
            console.print(
                f"with {100 * found['risk']['confidence']:g} % confidence: mean {name.replace('_', '-')} to come"
            )
            console.print(f"  at most {shown}, for the models of the pass, if rows are independent and alike")
    console.print("radius: |weight| x largest value of the feature, the most a feature can move a prediction")


class ComparisonDisplay(ComparisonWatcher):
    """What goes on while learners are compared."""

    def __init__(self) -> None:
        self.console = Console(stderr=True, soft_wrap=True, highlight=False)
        self.told = time.monotonic()
        self.bar = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            TimeElapsedColumn(),
            console=self.console,
            transient=True,
            disable=not self.console.is_terminal,
        )
        self.task = self.bar.add_task("reading", total=None)

    def begin(self, comparison: Comparison, source: Source) -> None:
        goal = f"'{comparison.plan.target}'" if comparison.plan.target else "the label"
        count = len(comparison.contestants)
        self.console.print(f"{comparison.task} of {goal}; loss {comparison.loss}; {count} learners on one pass")
        if comparison.bytes > _MUCH_MEMORY:
            self.console.print(
                f"their models take {_memory(comparison)} at first; --learner names fewer of them, "
                "--hash-bits makes them smaller"
            )
        self.share = source.progress()
        self.bar.start()

    def prepare(self, contestant: Contestant) -> None:
        self._tell(f"preparing {contestant.name} (compiled the first time)")

    def step(self, comparison: Comparison, batch: Batch) -> None:
        best = comparison.ranked[0]
        line = f"{comparison.rows:,} rows, {best.name} leads with {in_figures(best.metrics.mean_loss())}"
        self._tell(f"{line}, models take {_memory(comparison)}", self.share(batch.position))

    def _tell(self, line: str, share: float | None = None) -> None:
        now = time.monotonic()
        self.bar.update(self.task, description=line, total=None if share is None else 1.0, completed=share or 0.0)
        if not self.console.is_terminal and now - self.told > _LINE_SECONDS:
            self.told = now
            self.console.print(line)

    def end(self, comparison: Comparison) -> None:
        self.bar.stop()


def show_comparison(comparison: Comparison, as_json: bool) -> None:
    """The learners by progressive loss, the pool's leaders, and what a sweep would have cost."""
    if as_json:
        typer.echo(json.dumps(_comparison_figures(comparison)))
        return
    classes = comparison.task == "classification"
    table = Table("learner", box=None, header_style="bold", pad_edge=False)
    for title in (f"progressive {comparison.loss_name}", "error" if classes else "absolute error", "seconds"):
        table.add_column(title, justify="right")
    for contestant in comparison.ranked:
        error = contestant.metrics.mean_error()
        shown = f"{100 * error:.2f} %" if classes else in_figures(error)
        figures = in_figures(contestant.metrics.mean_loss()), shown, f"{contestant.seconds:.3f}"
        table.add_row(contestant.name, *figures, style="bold cyan" if contestant.name == POOL else None)
    console = Console(highlight=False, soft_wrap=True)
    console.print(table)
    for line in _remarks(comparison):
        console.print(line)


def _remarks(comparison: Comparison) -> list[str]:
    """Sentences under the table."""
    lines = [f"left out: {name} ({why})" for name, why in comparison.left_out.items()]
    skipped = f", {comparison.skipped:,} skipped" if comparison.skipped else ""
    lines.append(f"{comparison.rows:,} rows{skipped}; the models take {_memory(comparison)}")
    leaders = [f"{name} {100 * share:.1f} %" for name, share in comparison.leaders().items()][:4]
    lines += [f"the pool ends with {', '.join(leaders)}"] if leaders else []
    return [*lines, *_costs(comparison)]


def _costs(comparison: Comparison) -> list[str]:
    """What a sweep would have cost."""
    sweeps = comparison.sweeps()
    once, tuned = sweeps["learners"], sweeps["learners_and_rates"]
    rates = sum(has_rate(contestant.name) for contestant in comparison.contestants if contestant.name != POOL)
    lines = [f"seconds of learning alone; reading and encoding took {comparison.reading:.2f} s, here once"]
    if once.passes:
        lines.append(f"trying {_counted(once.passes, 'learner')}, one after the other: {once.seconds:.2f} s")
    if rates:
        passes = f"the same with {RATES} rates for those that have one ({rates}): {tuned.passes} passes"
        lines.append(f"{passes}, {tuned.seconds:.2f} s")
    if POOL in sweeps:
        processors = _counted(os.cpu_count() or 1, "processor")
        lines.append(f"the pool: 1 pass, {sweeps[POOL].seconds:.2f} s (on {processors}; a learner has one)")
    return lines


def _memory(comparison: Comparison) -> str:
    size = float(comparison.bytes)
    for unit in ("bytes", "KiB", "MiB"):
        if size < 1000.0:
            return f"{size:.3g} {unit}"
        size /= 2**10
    return f"{size:.3g} GiB"


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _comparison_figures(comparison: Comparison) -> dict[str, Any]:
    classes = comparison.task == "classification"
    loss = "log_loss" if comparison.loss == "logistic" else "loss"
    learners = [
        {
            "learner": contestant.name,
            loss: contestant.metrics.mean_loss(),
            "error" if classes else "mean_absolute_error": contestant.metrics.mean_error(),
            "seconds": contestant.seconds,
            "bytes": contestant.bytes,
            "curve": [point._asdict() for point in contestant.curve],
        }
        for contestant in comparison.ranked
    ]
    return {
        "task": comparison.task,
        "loss": comparison.loss,
        "rows": comparison.rows,
        "rows_skipped": comparison.skipped,
        "learners": learners,
        "left_out": comparison.left_out,
        "pool": comparison.leaders(),
        "sweep": {name: sweep._asdict() for name, sweep in comparison.sweeps().items()},
        "seconds_of_reading": comparison.reading,
    }


def plain_table() -> Table:
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    return table
