"""`tunefree evaluate`: how well a model predicts data with known targets."""

from __future__ import annotations

from tunefree.cli.options import Files, Json, ModelFile, tell_skipped


def evaluate(model: ModelFile, files: Files, json: Json = False) -> None:
    """Losses, error and calibration error of a model on data with known targets.

    The calibration error compares the probability of each row's most probable class with how often it is right: the
    mean distance, over 15 bins of equally many rows (by weight) in the order of that probability.
    """
    from tunefree.cli.display.evaluation import show_evaluation
    from tunefree.workflows import evaluation, model_files

    bad = files.bad_rows()
    trained = model_files.load(model)
    result = evaluation.evaluate(trained, files.source(), bad)
    tell_skipped(bad)
    show_evaluation(trained, result, json)
