"""Section of a report: what looks wrong with the data."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from tunefree.explanation.decomposition import Decomposition
from tunefree.explanation.fidelity import ranking
from tunefree.explanation.told import percent
from tunefree.report.document import Note, Section, Table
from tunefree.report.learned import missing_shares, sample_of
from tunefree.report.told import REASON_TITLES, drift_warning, order_warning, reasons_told, sentence
from tunefree.report.told_columns import naming_columns
from tunefree.stream.layout import Layout
from tunefree.stream.tally import Tally
from tunefree.workflows.training import Trained

GIVES_AWAY = 0.9  # part of the variance of margins that one column explains
SURE = 0.02  # error below which that is suspicious
TENTH = 10
FEWEST = 40  # sampled rows of a tenth
LEVEL = 1e-3  # probability that any column is said to drift if none does
MOSTLY_MISSING = 0.5
NOTHING = (
    "Nothing was found: no column of many different values that may name the rows, no constant column, no column that"
    " gives the target away, no drift between the first and the last tenth of the rows, no row skipped."
)


class Skipped(NamedTuple):
    """Rows that could not be used."""

    where: str
    tally: Tally


def suspicions(trained: Trained, found: Decomposition | None, skipped: list[Skipped]) -> Section:
    """What looks wrong.

    Parameters
    ----------
    trained : Trained
    found : Decomposition, optional
        Its terms.
    skipped : list of Skipped
    """
    notes = [Note(sentence(text), "warning") for text in _warnings(trained, found)]
    skipped = [own for own in skipped if own.tally.count]
    notes += [Note(f"{own.where}: {own.tally.count:,} rows were skipped.", "warning") for own in skipped]
    reasons = [_reasons_table(own) for own in skipped if own.tally.by_reason]
    drifting = _drift_table(trained)
    nothing = [] if notes or drifting else [Note(NOTHING if _has_sample(trained) else NO_SAMPLE)]
    return Section("suspicions", "What looks wrong with the data", [*notes, *reasons, *drifting, *nothing])


def _reasons_table(skipped: Skipped) -> Table:
    title = f"Why rows were skipped: {skipped.where.lower()}"
    return Table(title, list(REASON_TITLES), reasons_told(skipped.tally.reasons()), numeric_from=2)


NO_SAMPLE = (
    "Nothing was found. The model keeps no sample of its rows, so constant columns and drift of columns were not looked"
    " for."
)


def _has_sample(trained: Trained) -> bool:
    return sample_of(trained) is not None


def _warnings(trained: Trained, found: Decomposition | None) -> list[str]:
    rows = trained.progress.progressive[0].rows
    texts = [text for text in (order_warning(trained), drift_warning(trained)) if text]
    texts += [
        f"column “{name}” has {count:,} different values in {rows:,} rows: it may name the rows, and then tells nothing"
        f" of others; pass --ignore {name}."
        for name, count in naming_columns(trained)
    ]
    texts += [f"column “{name}” has the same value in all rows sampled." for name in constant_columns(trained)]
    texts += [
        f"column “{name}” is missing in {100 * share:.1f} % of the rows sampled."
        for name, share in missing_shares(trained).items()
        if share > MOSTLY_MISSING
    ]
    return texts + giving_away(trained, found)


def giving_away(trained: Trained, found: Decomposition | None) -> list[str]:
    """A warning where one column explains nearly all, and nearly all predictions are right.

    Parameters
    ----------
    trained : Trained
    found : Decomposition, optional
    """
    if found is None or trained.model.task == "regression":
        return []
    ranked, error = ranking(found), trained.progress.progressive[0].mean_error()
    if not (len(ranked.names) > 1 and ranked.explained[0] > GIVES_AWAY and error < SURE):
        return []
    explained = percent(float(ranked.explained[0]))
    return [
        f"column “{ranked.names[0]}” alone explains {explained} of the variance of the model's margins, and only"
        f" {100 * error:.2f} % of the predictions were wrong: it may give the target away. Is it known when predictions"
        " are made?"
    ]


def constant_columns(trained: Trained) -> list[str]:
    """Columns of numbers or categories that have one value in all sampled rows.

    Parameters
    ----------
    trained : Trained
    """
    if not _has_sample(trained):
        return []
    layout, values = Layout.of_encoder(trained.encoder), _sampled(trained)
    kinds = {column.name: column.kind for column in getattr(trained.encoder, "columns", [])}
    different: dict[str, set[int]] = {}
    for part, own in values:
        different.setdefault(layout.parts[part].column, set()).add(len(np.unique(own)))
    whole = {name for name, counts in different.items() if counts == {1}}
    return [name for name in kinds if name in whole and kinds[name] in ("number", "category", "boolean")]


def _sampled(trained: Trained) -> list[tuple[int, np.ndarray]]:
    """The parts of columns with their values or codes in the sampled rows."""
    rows, layout = sample_of(trained), Layout.of_encoder(trained.encoder)
    found = [(int(layout.of_feature[j]), own) for j, own in zip(rows.columns.tolist(), rows.numbers.T, strict=True)]
    known = {part for part, _ in found}
    for column, own in zip(rows.code_columns.tolist(), rows.codes.T, strict=True):
        part = layout.code_source(column)[1]
        if part not in known:  # else the codes say where a number is missing
            found.append((part, _ranks(own, layout)))
    return [(part, own) for part, own in found if part >= 0]


def _ranks(codes: np.ndarray, layout: Layout) -> np.ndarray:
    """Codes in the order of their labels: that in which they were first seen would depend on the order of the rows."""
    different, places = np.unique(codes, return_inverse=True)
    labels = ["" if code == 0 else layout.label(code) for code in different.tolist()]
    ranks = np.empty(len(labels), np.int64)
    ranks[sorted(range(len(labels)), key=labels.__getitem__)] = np.arange(len(labels))
    return ranks[places.reshape(-1)]


def drifting(trained: Trained) -> list[tuple[str, float, float]]:
    """Parts of columns whose values in the first and the last tenth of the sampled rows differ.

    The sample is in the order of the stream. The distance of two tenths is the largest difference of their empirical
    distribution functions. By the inequality of Dvoretzky, Kiefer, Wolfowitz for two samples of n rows each (Wei,
    Dudley 2012: P(distance > t) <= 2 exp(-n t^2) from n = 458 on, with e instead of 2 for fewer) no column is beyond
    the bound with a probability of 1 - LEVEL, if rows are exchangeable.

    Parameters
    ----------
    trained : Trained

    Returns
    -------
    list of (name, distance, bound)
        The largest distance first.
    """
    if not _has_sample(trained):
        return []
    layout, values = Layout.of_encoder(trained.encoder), _sampled(trained)
    n = len(values[0][1]) // TENTH if values else 0
    if n < FEWEST:
        return []
    bound = float(np.sqrt(np.log(math.e * len(values) / LEVEL) / n))
    found = []
    for part, own in values:
        first, last = own[:n], own[-n:]
        distance = _largest_difference(first, last)
        if distance > bound:
            found.append((layout.parts[part].name, distance, bound))
    return sorted(found, key=lambda each: -each[1])


def _largest_difference(first: np.ndarray, last: np.ndarray) -> float:
    """The largest difference of two empirical distribution functions."""
    points = np.unique(np.concatenate([first, last]))
    below = [np.searchsorted(np.sort(own), points, "right") / len(own) for own in (first, last)]
    return float(np.abs(below[0] - below[1]).max())


def _drift_table(trained: Trained) -> list[Any]:
    found = drifting(trained)
    if not found:
        return []
    rows = [[name, f"{distance:.3f}", f"{bound:.3f}"] for name, distance, bound in found]
    note = (
        "Distance: the largest difference of the distribution functions of the first and the last tenth of the rows"
        " sampled (of categories in the order of their names). If the order had no meaning, with a"
        f" probability of {1 - LEVEL:.1%} no column would be beyond its bound (Dvoretzky, Kiefer, Wolfowitz)."
    )
    return [Table("Columns that drift along the stream", ["column", "distance", "at most, without drift"], rows, note)]
