"""`tunefree evaluate`: metrics of a model on data with known targets."""

from __future__ import annotations

from typing import Annotated

import typer

from tunefree.cli.options import NEW_ROWS, Cost, Decided, Files, Json, ModelFile, bad_rows_of, group_of, tell_of_rows
from tunefree.model_files.plan import Plan


def evaluate(
    model: ModelFile,
    plan: Annotated[Plan, NEW_ROWS],
    files: Files,
    by: Annotated[
        str | None,
        typer.Option(metavar="COL", help="Evaluate each value of a column as well; ranges of a number that has many."),
    ] = None,
    group: Annotated[
        str | None,
        typer.Option(
            metavar="COL",
            help="Rows of one value of this column belong together: intervals are for independent groups.",
        ),
    ] = None,
    progressive: Annotated[
        bool,
        typer.Option(
            "--progressive", help="Let the model learn each row after it has predicted it; its file stays as it is."
        ),
    ] = False,
    interval: Annotated[
        float | None,
        typer.Option(
            metavar="C",
            help="Measure intervals of this coverage, as 0.9, too: how many rows they hold, their width and score.",
        ),
    ] = None,
    cost: Cost = None,
    threshold: Annotated[
        float | None, typer.Option(metavar="P", help="Decide for the class where its probability is at least P.")
    ] = None,
    class_: Decided = None,
    json: Json = False,
) -> None:
    """Metrics of a model on data with known targets, with 95 % confidence intervals.

    Classes: log-loss, error, balanced error (the mean over classes), Brier score, F1, area under the ROC curve and
    average precision (of the second of two classes; of more, the mean over classes, each against the others), and the
    confusion matrix. Numbers: the loss, mean absolute and root mean squared error, R2, and for quantiles the share of
    targets at or below the prediction. Intervals are for independent rows, or groups with --group: Wilson's for shares
    of rows, and else those of a jackknife over 20 parts of the rows or groups.

    The calibration error compares the probability of each row's most probable class with how often it is right: the
    mean distance, over 15 bins of equally many rows (by weight) in the order of that probability. The share of the
    rarest class is given by tenth of its probability. Rows have the weights that the model was
    trained with, where their column is there.

    With --cost, --threshold or --class, decisions for a class are judged: sensitivity, specificity and predictive
    values with Wilson's intervals, what a row costs, and the net benefit. For instance:

    tunefree evaluate people.model test.csv --by education

    tunefree evaluate people.model next.csv --progressive

    tunefree evaluate people.model test.csv --cost fp=1,fn=5

    tunefree evaluate ages.model test.csv --interval .9 --by job
    """
    from tunefree.cli.display import show
    from tunefree.model_files.trained import load
    from tunefree.report import findings, performance
    from tunefree.report.decisions import Costs, decisions
    from tunefree.workflows import evaluation

    costs = None if cost is None else Costs.parsed(cost)
    bad = bad_rows_of(plan)
    trained = load(model, "linear" if progressive else None)
    source = files.source(plan, is_table=trained.kind == "table")
    result = evaluation.evaluate(trained, source, bad, by, progressive, interval, group_of(trained, source, group))
    tell_of_rows(bad)
    blocks = performance.evaluation(trained, result, by)
    if (cost, threshold, class_) != (None, None, None):
        blocks += decisions(result.scored, trained.model.classes, class_, costs, threshold)
    show([*blocks, *(findings.rows_of(bad) if json else [])], json)
