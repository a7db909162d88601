"""Section of a report: what is guaranteed, from the sums that were kept on the way."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tunefree.core.errors import ModelError
from tunefree.explanation.effective import effective_weights
from tunefree.report import charts
from tunefree.report.charts import Series
from tunefree.report.document import Facts, Figure, Note, Section, Table
from tunefree.report.scales import LOG, Scale, spanning
from tunefree.report.told import order_warning, sentence
from tunefree.stream.layout import Layout
from tunefree.workflows.certification import findings, of_weights
from tunefree.workflows.training import Trained

KERNELS = 3  # that are shown
FINE = 41  # radii of the curve
ABOUT = (
    "No linear model in which no feature moves a prediction by more than the radius has a mean loss below the bound."
)
RADIUS = "Radius: |weight| x largest value of the feature, the most a feature can move a prediction."


def guarantees(trained: Trained) -> Section:
    """What the pass proves.

    Parameters
    ----------
    trained : Trained
    """
    try:
        found = findings(trained)
    except ModelError as error:
        return Section("guarantees", "What is guaranteed", [Note(str(error))])
    unit = "" if trained.model.task == "classification" else " mean absolute deviations of the target"
    rows = [[f"{radius:g}{unit}", f"{bound:.6g}"] for radius, bound in found["lower_bounds"].items()]
    header = ["radius", "no linear model has a mean loss below"]
    said = f"{found['rows']:,} rows, {found['predictions']}: mean loss {found['loss']:.6g}."
    blocks: list[Any] = [Note(said), Table("Every linear model", header, rows, RADIUS), _curve(trained, found)]
    blocks += [Facts(facts)] if (facts := _facts(found, unit)) else []
    blocks += _additive(found, unit) + _kernels(found) + _own_weights(trained) + _risk(trained, found)
    return Section("guarantees", "What is guaranteed", blocks)


def _curve(trained: Trained, found: dict[str, Any]) -> Figure:
    """The certificate against the radius."""
    radii = list(found["lower_bounds"])
    fine = np.geomspace(min(radii), max(radii), FINE)
    bounds = [bound for _, bound in trained.model.certificate().table(fine.tolist())]
    known = [max(bound, 0.0) if bound > -math.inf else 0.0 for bound in bounds]
    certificate = Series("every linear model", fine.tolist(), known, 1)
    own = Series("this model", [fine[0], fine[-1]], [found["loss"]] * 2, 0)
    axes = Scale(fine[0], fine[-1], LOG), Scale(*_from_zero([found["loss"], *known]))
    at = "; ".join(f"radius {radius:g}: {bound:.4g}" for radius, bound in found["lower_bounds"].items())
    described = f"Lower bounds on the mean loss of linear models, and this model's {found['loss']:.4g}. {at}."
    titles = "radius", "mean loss"
    chart = charts.lines("Certificate against radius", described, [own, certificate], axes, titles)
    return Figure(chart, f"{ABOUT} Losses are not negative, so bounds below 0 are drawn as 0.")


def _from_zero(values: list[float]) -> tuple[float, float]:
    return 0.0, 1.08 * spanning(np.array(values), 0.0, zero=True)[1]


def _facts(found: dict[str, Any], unit: str) -> list[tuple[str, str]]:
    facts = [
        (f"no linear model is better by more than {100 * gap:g} %", f"up to radius {radius:.3g}{unit}")
        for gap, radius in found["largest_radii"].items()
        if radius is not None
    ]
    if "pool" in found:
        pool = found["pool"]
        value = f"at most {pool['excess_per_row']:.3g} a row over the best of {pool['members']} members"
        facts.append(("mixing cost", value))
    if "mixing" in found:
        mixing = found["mixing"]
        value = f"at most {mixing['loss_at_most']:.6g} (theorem; the members' average lost {mixing['base']:.6g})"
        facts.append((f"mean loss {mixing['loss']:.6g} on rows that no generation in use was grown on", value))
    return facts


def _additive(found: dict[str, Any], unit: str) -> list[Any]:
    if "additive" not in found:
        return []
    additive = found["additive"]
    rows = [[f"{radius:g}{unit}", f"{bound:.6g}"] for radius, bound in additive["lower_bounds"].items()]
    header = ["each curve within", "no additive model on these knots has a mean loss below"]
    note = f"{additive['rows']:,} rows after the first knots were known: mean loss {additive['loss']:.6g}."
    return [Table("Every additive model on the first knots", header, rows, note, 1, False)]


def _kernels(found: dict[str, Any]) -> list[Any]:
    tables = []
    for kernel in found.get("kernels", [])[:KERNELS]:
        theorem = kernel.get("theorem", {})
        header = ["norm", "no function has a mean loss below", *(["better by at most (theorem)"] if theorem else [])]
        rows = [
            [f"{norm:g}", f"{bound:.6g}", *([f"{theorem[norm]:.6g}"] if theorem else [])]
            for norm, bound in kernel["lower_bounds"].items()
        ]
        caption = f"{kernel['learner']} (gamma {kernel['gamma']:.3g})"
        tables.append(Table(caption, header, rows, f"Mean loss {kernel['loss']:.6g}.", 1, False))
    return tables


def _own_weights(trained: Trained) -> list[Any]:
    """The regret against the model's own weights in the end, and what the learner's theorem says of it."""
    model = trained.model
    if len(model.members) > 1 or not model.has_weights:
        return []
    try:
        weights = effective_weights(model, Layout.of_encoder(trained.encoder)).weights
    except ModelError:
        return []
    known = of_weights(trained, weights)
    rows = [["from the slopes on these rows", f"{known['regret_at_most']:.6g}"]]
    rows += [["the learner's theorem", f"{known['theorem']:.6g}"]] if "theorem" in known else []
    header = ["bound", "better by at most, a row"]
    return [Table("The weights at the end, used from the first row on", header, rows)]


def _risk(trained: Trained, found: dict[str, Any]) -> list[Any]:
    warning = order_warning(trained)
    if warning is not None:
        said = "There is no bound on the error to come: such bounds are for rows that are independent and alike."
        return [Note(f"{sentence(warning)} {said}", "warning")]
    risk = found.get("risk", {})
    facts = []
    for name, bound in risk.items():
        if name != "confidence" and bound is not None:
            shown = f"{100 * bound:.2f} %" if name == "error" else f"{bound:.4f}"
            title = f"mean {name.replace('_', '-')} to come, with {100 * risk['confidence']:g} % confidence"
            facts.append((title, f"at most {shown}"))
    said = "For the models of the pass, if rows are independent and alike."
    return [Facts(facts), Note(said, "fine")] if facts else []
