"""Section of a report: what is guaranteed, from the sums that were kept on the way."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tunefree.core.errors import ModelError
from tunefree.explanation.weights import linear_weights
from tunefree.report import charts
from tunefree.report.charts import Series
from tunefree.report.document import Facts, Figure, Note, Section, Table
from tunefree.report.scales import LOG, Scale, spanning
from tunefree.report.told import order_warning, rows_told, sentence
from tunefree.workflows.certification import findings, of_weights
from tunefree.model_files.trained import Trained

KERNELS = 3  # that are shown
FINE = 41  # radii of the curve
ABOUT = (
    "No linear model in which no feature moves a prediction by more than the radius has a mean loss below the bound."
)
COVERED = "The theorem holds whatever the rows are, where each row is learned before the next one is predicted."
RADIUS = "Radius: |weight| x largest value of the feature, the most a feature can move a prediction."


def guarantees(trained: Trained) -> Section:
    """What the pass proves.

    Parameters
    ----------
    trained : Trained
    """
    try:
        certified = findings(trained)
    except ModelError as error:
        return Section("guarantees", "What is guaranteed", [Note(str(error))])
    blocks = [*proved(trained, certified), _curve(trained, certified), *_weights_at_the_end(trained)]
    return Section("guarantees", "What is guaranteed", blocks)


def proved(trained: Trained, certified: dict[str, Any]) -> list[Any]:
    """What :func:`tunefree.workflows.certification.findings` gives, as facts, tables and notes.

    Parameters
    ----------
    trained : Trained
    certified : dict
    """
    unit = "" if trained.model.task == "classification" else " mean absolute deviations of the target"
    rows = [[f"{radius:g}{unit}", f"{bound:.6g}"] for radius, bound in certified["lower_bounds"].items()]
    header = ["radius", "no linear model has a mean loss below"]
    of_rows = rows_told(certified["rows"], trained.plan)
    said = f"{of_rows}, {certified['predictions']}: mean loss {certified['loss']:.6g}"
    blocks: list[Any] = [Note(said), Table("Every linear model", header, rows, RADIUS)]
    blocks += [Facts(facts)] if (facts := _facts(certified, unit)) else []
    return blocks + _coverage(trained, certified) + _kernels(certified) + _risk(trained, certified)


def _coverage(trained: Trained, certified: dict[str, Any]) -> list[Table]:
    """How often intervals or sets of the next row covered it, and at least."""
    if "coverage" not in certified:
        return []
    asked = certified["coverage"]["asked"].items()
    rows = [[f"{part:g}", f"{of['covered']:.4f}", f"{of['at_least']:.4f}"] for part, of in asked]
    title = "Intervals of the next row" if trained.model.task == "regression" else "Sets of the next row"
    header, seen = ["asked for", "covered", "at least, by theorem"], certified["coverage"]["rows"]
    return [Table(title, header, rows, f"Of {seen:,} rows, each before it was learned. {COVERED}")]


def _curve(trained: Trained, certified: dict[str, Any]) -> Figure:
    """The certificate against the radius."""
    radii = list(certified["lower_bounds"])
    fine = np.geomspace(min(radii), max(radii), FINE)
    bounds = [bound for _, bound in trained.model.certificate().table(fine.tolist())]
    known = [max(bound, 0.0) if bound > -math.inf else 0.0 for bound in bounds]
    certificate = Series("every linear model", fine.tolist(), known, 1)
    of_model = Series("this model", [fine[0], fine[-1]], [certified["loss"]] * 2, 0)
    axes = Scale(fine[0], fine[-1], LOG), Scale(*_from_zero([certified["loss"], *known]))
    at = "; ".join(f"radius {radius:g}: {bound:.4g}" for radius, bound in certified["lower_bounds"].items())
    described = f"Lower bounds on the mean loss of linear models, and this model's {certified['loss']:.4g}. {at}."
    titles = "radius", "mean loss"
    chart = charts.lines("Certificate against radius", described, [of_model, certificate], axes, titles)
    return Figure(chart, f"{ABOUT} Losses are not negative, so bounds below 0 are drawn as 0.")


def _from_zero(values: list[float]) -> tuple[float, float]:
    return 0.0, 1.08 * spanning(np.array(values), 0.0, zero=True)[1]


def _facts(certified: dict[str, Any], unit: str) -> list[tuple[str, str]]:
    facts = [
        (f"no linear model is better by more than {100 * gap:g} %", f"up to radius {radius:.3g}{unit}")
        for gap, radius in certified["largest_radii"].items()
        if radius is not None
    ]
    if "mixing" in certified:
        mixing = certified["mixing"]
        facts += [
            (f"mean loss of {mixing['rows']:,} rows that are evidence", f"{mixing['loss']:.6g}"),
            ("the members' average on these", f"{mixing['base']:.6g}"),
            ("theorem of mixing", f"mean loss at most {mixing['loss_at_most']:.6g}"),
        ]
    if "weights" in certified:
        weights = certified["weights"]
        facts.append(("mean loss of the weights in the file", f"at least {weights['loss_at_least']:.6g}"))
        if "theorem" in weights:
            facts.append(("the learner's theorem", f"they are better by at most {weights['theorem']:.6g} a row"))
    return facts


def _kernels(certified: dict[str, Any]) -> list[Any]:
    tables = []
    for kernel in certified.get("kernels", [])[:KERNELS]:
        theorem = kernel.get("theorem", {})
        header = ["norm", "no function has a mean loss below", *(["better by at most (theorem)"] if theorem else [])]
        rows = [
            [f"{norm:g}", f"{bound:.6g}", *([f"{theorem[norm]:.6g}"] if theorem else [])]
            for norm, bound in kernel["lower_bounds"].items()
        ]
        caption = f"{kernel['learner']} (gamma {kernel['gamma']:.3g})"
        tables.append(Table(caption, header, rows, f"Mean loss {kernel['loss']:.6g}.", 1, False))
    return tables


def _weights_at_the_end(trained: Trained) -> list[Any]:
    """The regret against the model's own weights in the end, and what the learner's theorem says of it."""
    model = trained.model
    if len(model.members) > 1 or not model.has_weights:
        return []
    try:
        weights = linear_weights(model, trained.encoder.names()[1:]).weights
    except ModelError:
        return []
    known = of_weights(trained, weights)
    rows = [["from the slopes on these rows", f"{known['regret_at_most']:.6g}"]]
    rows += [["the learner's theorem", f"{known['theorem']:.6g}"]] if "theorem" in known else []
    header = ["bound", "better by at most, a row"]
    return [Table("The weights at the end, used from the first row on", header, rows)]


def _risk(trained: Trained, certified: dict[str, Any]) -> list[Any]:
    warning = order_warning(trained)
    if warning is not None:
        said = "There is no bound on the error to come: such bounds are for rows that are independent and alike."
        return [Note(f"{sentence(warning)} {said}", "warning")]
    risk = certified.get("risk", {})
    facts = []
    for name, bound in risk.items():
        if name != "confidence" and bound is not None:
            shown = f"{100 * bound:.2f} %" if name == "error" else f"{bound:.4f}"
            title = f"mean {name.replace('_', '-')} to come, with {100 * risk['confidence']:g} % confidence"
            facts.append((title, f"at most {shown}"))
    said = "For the models of the pass, if rows are independent and alike."
    return [Facts(facts), Note(said, "fine")] if facts else []
