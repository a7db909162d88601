"""The commands on a model and rows: `tunefree predict`, `explain`, `evaluate`, `report` and `compare`."""

from __future__ import annotations

import json as texts
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from tunefree.cli.options import (
    ClassOf,
    Decided,
    Files,
    Json,
    ModelFile,
    bad_rows_of,
    check_outputs,
    group_of,
    print_row_notes,
)
from tunefree.core.errors import ModelError
from tunefree.core.parameters import option
from tunefree.model_files.plan import NOTATIONS, PROBLEM, Plan
from tunefree.workflows.output_columns import OutputColumns

NEW_ROWS = (*NOTATIONS, "on_bad_row")  # parameters of a plan on reading rows for a model
OF_MODELS = (*NEW_ROWS, "groups")  # parameters of `compare` for trained models

RowsAsJson = Annotated[
    bool, typer.Option("--json", help="Print numbers of rows and unusual values as JSON; to standard error if -o is -.")
]
Cost = Annotated[
    str | None,
    typer.Option(metavar="fp=C,fn=C", help="Costs of false positives and negatives; the cheapest threshold is shown."),
]
TableFile = Annotated[
    Path, typer.Option("--output", "-o", help="CSV or Parquet file to write; - for CSV on standard output.")
]


def predict(
    model: ModelFile,
    plan: Annotated[Plan, NEW_ROWS],
    files: Files,
    layout: OutputColumns,
    output: TableFile = Path("-"),
    json: RowsAsJson = False,
) -> None:
    """Predict labels with probabilities, or numbers. Rows of standard input (-) are predicted as they arrive.

    For instance:

    tunefree predict people.model new.csv --id name --top 3 -o predictions.csv

    Rows that differ from the training data are predicted, and reported: unknown categories, numbers far out of range,
    columns that are missing more often or distributed differently.
    """
    from tunefree.workflows import prediction

    trained, source, bad = _open(model, plan, files, output, live=True)
    rows = prediction.write(trained, source, str(output), bad, layout)
    _print_written(f"{rows} predictions", rows, bad, output, json)


def explain(
    model: ModelFile,
    plan: Annotated[Plan, NEW_ROWS],
    files: Files,
    layout: Annotated[OutputColumns, ("ids",)],
    output: TableFile = Path("-"),
    top: Annotated[
        int | None, typer.Option(min=0, help="Number of terms to write, the strongest first; the rest are summed.")
    ] = None,
    class_: ClassOf = None,
    json: RowsAsJson = False,
) -> None:
    """Explain predictions by the contribution of each column to a row's log-odds or number.

    Contributions add up to the column `margin`, the prediction of the model. With more than two classes, it is the
    log-probability of the predicted class, or of --class, minus the mean over the classes. For instance:

    tunefree explain people.model new.csv --id name --top 10 -o why.csv
    """
    from tunefree.explanation.importance import describe_reference
    from tunefree.workflows import explanation

    trained, source, bad = _open(model, plan, files, output, "linear")
    rows, decomposition = explanation.write(trained, source, str(output), bad, class_, top, layout.ids)
    _print_written(f"{rows} explanations", rows, bad, output, json, describe_reference(decomposition))


def _open(
    model: Path, plan: Plan, files: Files, output: Path | None = None, kind: str | None = None, live: bool = False
) -> tuple[Any, Any, Any]:
    """The model, which must be of ``kind`` if given, the source of its rows, and the tally of unusable rows."""
    from tunefree.model_files.trained import load

    check_outputs([output], [model, *files.data], standard_output=True)
    trained = load(model, kind)
    return trained, files.source(plan, live, trained.kind == "table"), bad_rows_of(plan)


def _print_written(what: str, rows: int, bad: Any, output: Path, as_json: bool, note: str = "") -> None:
    """Print the number of written rows, and the oddities of rows."""
    if as_json:
        from tunefree.report.findings import rows_of
        from tunefree.report.rendering import record

        typer.echo(texts.dumps({"rows": rows, **record(rows_of(bad))}), err=str(output) == "-")
        return
    print_row_notes(bad)
    for line in (note, f"{what} in {output}" if str(output) != "-" else ""):
        if line:
            typer.echo(line, err=True)


def evaluate(
    model: ModelFile,
    plan: Annotated[Plan, NEW_ROWS],
    files: Files,
    by: Annotated[
        str | None,
        typer.Option(metavar="COL", help="Also evaluate by the values of a column, or by ranges of its numbers."),
    ] = None,
    group: Annotated[
        str | None,
        typer.Option(metavar="COL", help="Column of groups of related rows; intervals assume independent groups."),
    ] = None,
    progressive: Annotated[
        bool,
        typer.Option(
            "--progressive", help="Let the model learn each row after predicting it; its file does not change."
        ),
    ] = False,
    interval: Annotated[
        float | None,
        typer.Option(metavar="C", help="Also evaluate prediction intervals of this coverage, such as 0.9."),
    ] = None,
    cost: Cost = None,
    threshold: Annotated[
        float | None, typer.Option(metavar="P", help="Decide for the class if its probability is at least P.")
    ] = None,
    class_: Decided = None,
    json: Json = False,
) -> None:
    """Evaluate a model on data with known targets: metrics with 95 % confidence intervals.

    Classification: log-loss, error, balanced error (the mean over classes), Brier score, F1, area under the ROC curve,
    average precision (of the second of two classes; with more, the mean over one-vs-rest classes), and the confusion
    matrix. Regression: the loss, mean absolute and root mean squared error, R2, and for quantiles the share of targets
    at or below the prediction. Confidence intervals assume independent rows, or groups with --group: Wilson intervals
    for shares of rows, otherwise a jackknife over 20 parts of the rows or groups.

    The calibration error is the mean difference between the probability of the predicted class and its accuracy, over
    15 bins of that probability with equal total weights. The share of the rarest class is given by tenth of its
    probability. Rows have the weights of the training if the data have their column.

    With --cost, --threshold or --class, decisions for a class are evaluated: sensitivity, specificity and predictive
    values with Wilson intervals, the cost per row, and the net benefit. For instance:

    tunefree evaluate people.model test.csv --by education

    tunefree evaluate people.model next.csv --progressive

    tunefree evaluate people.model test.csv --cost fp=1,fn=5

    tunefree evaluate ages.model test.csv --interval .9 --by job
    """
    from tunefree.cli.display import show
    from tunefree.report import findings, performance
    from tunefree.report.decisions import Costs, decisions
    from tunefree.workflows import evaluation

    costs = None if cost is None else Costs.parsed(cost)
    trained, source, bad = _open(model, plan, files, kind="linear" if progressive else None)
    result = evaluation.evaluate(trained, source, bad, by, progressive, interval, group_of(trained, source, group))
    print_row_notes(bad)
    blocks = performance.evaluation(trained, result, by)
    if (cost, threshold, class_) != (None, None, None):
        blocks += decisions(result.scored, trained.model.classes, class_, costs, threshold)
    show([*blocks, *(findings.rows_of(bad) if json else [])], json)


@dataclass(frozen=True)
class EvaluationFiles(Files):
    """The evaluation rows, which are optional."""

    data: Annotated[list[str], typer.Argument(help="Data with known targets to evaluate the model on.")] = field(
        default_factory=list
    )


def report(
    model: ModelFile,
    plan: Annotated[Plan, NEW_ROWS],
    test: EvaluationFiles,
    output: Annotated[Path, typer.Option("--output", "-o", help="HTML file to write.")] = Path("report.html"),
    train: Annotated[
        list[str] | None, typer.Option(metavar="DATA", help="Training data of the model, on which peers are trained.")
    ] = None,
    cost: Cost = None,
    class_: Decided = None,
) -> None:
    """Write a report on a model to one HTML file, which opens without a network.

    It has metrics; a comparison with a constant and, given --train, with a logistic or ridge regression, a random
    forest and gradient boosting; important columns, uncertain regions, problems of the data, members of the model,
    guarantees, and the command that reproduces the model. For instance:

    tunefree report people.model test.csv -o people.html

    tunefree report people.model test.csv --train people.csv
    """
    from tunefree.core import storage
    from tunefree.model_files.trained import Trained
    from tunefree.plotting import files
    from tunefree.report import page

    decided = [name for name, value in (("cost", cost), ("class", class_), ("train", train)) if value is not None]
    for name in [*plan.changed(), *test.changed(), *decided] if not test.data else ():
        raise ModelError(f"{option(name)} is for data on which the model is judged; leave it out, or give some")
    bad = bad_rows_of(plan)
    check_outputs([output], [model, *test.data, *(train or [])])
    if output.suffix.lower() not in {".html", ".htm"}:
        raise ModelError(f"{output}: reports are written as .html; name the file so")
    trained = Trained.load(model)
    source = test.source(plan, is_table=trained.kind == "table") if test.data else None
    learned = replace(test, data=train).source(plan, is_table=True) if train else None
    written = page.report(trained, source, learned, cost, class_, bad, storage.digest_of(model))
    print_row_notes(bad)
    written.save(output)
    if not files.is_installed():
        typer.echo(page.NO_CHARTS, err=True)
    typer.echo(f"report in {output}", err=True)


def compare(
    plan: Annotated[Plan, (*PROBLEM, "groups", "exposure")],
    files: Files,
    train: Annotated[
        list[str] | None, typer.Option(metavar="DATA", help="Training data, instead of cross-validation.")
    ] = None,
    n_jobs: Annotated[int | None, typer.Option(metavar="N", min=1, help="Processors to use; by default all.")] = None,
    json: Json = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
) -> None:
    """Compare a model with a constant, a logistic or ridge regression, a random forest and gradient boosting.

    Differences are paired: all models predict the same rows. The peers, from scikit-learn, learn the rows of --train
    and predict the others, as does a new model unless one is named. Without --train, a new model and its peers learn
    and predict by 5-fold cross-validation. For instance:

    tunefree compare people.csv --target income

    tunefree compare test.csv --target income --train people.csv

    tunefree compare people.model test.csv --train people.csv

    tunefree compare first.model second.model test.csv
    """
    from tunefree.cli.display import show
    from tunefree.model_files.trained import load
    from tunefree.report.performance import blocks_of_pairs
    from tunefree.workflows import trials
    from tunefree.workflows.evaluation import note_learned

    names, files = _split_inputs(files, plan, train)
    models = {name: load(name) for name in names}
    first = next(iter(models.values()), None)
    bad, learning = (plan.bad_rows(), plan) if first is None else (bad_rows_of(plan), first.plan)
    learned = None
    if train:
        source = replace(files, data=train).source(plan if models else None, is_table=True)
        learned = trials.read(source, learning, bad, first)
    known = first or learned
    source = files.source(plan if known else None, is_table=True)
    data = trials.read(source, learning, bad, known)
    for model in models.values():
        note_learned(model, source, bad)
    groups = plan.groups if first is None else group_of(first, source, plan.groups)
    tell = (lambda line: None) if quiet else partial(typer.echo, err=True)
    comparison = trials.compare(data, models, learned, n_jobs, groups, tell)
    print_row_notes(bad)
    show(blocks_of_pairs(comparison), json)


def _split_inputs(files: Files, plan: Plan, train: list[str] | None) -> tuple[list[str], Files]:
    """The model files and the data files; an error if models, data and options do not match."""
    from tunefree.core.storage import is_model

    kinds = [is_model(name) for name in files.data]
    n = sum(kinds)
    models, data = files.data[:n], files.data[n:]
    others = [option(name) for name in plan.changed() if name not in OF_MODELS] if models else []
    remedy = "name the rows that it has learned by `train`, for peers, or a second model"
    for is_wrong, problem in (
        (not all(kinds[:n]), "name the models before the data"),
        (not data, "there is no data to compare models on; name some after the models"),
        (len({*models}) < n, "a model is named twice; name different ones"),
        (others, f"{''.join(others[:1])} has no effect on models that there are; leave it out"),
        (n == 1 and not train, f"{''.join(models)} is compared with nothing; {remedy}"),
    ):
        if is_wrong:
            raise ModelError(problem)
    for name in {*data} & {*(train or ())} - {"-"}:
        raise ModelError(f"{name} would be learned and judge the models; name other rows")
    return models, replace(files, data=data)
