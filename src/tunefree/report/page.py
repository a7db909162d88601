"""A report of a model as one HTML file: no network, no script, for screens light and dark and for A4."""

from __future__ import annotations

import os
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

from tunefree.core import storage
from tunefree.core.parameters import as_options
from tunefree.model_files.trained import Trained
from tunefree.plotting import files
from tunefree.pool.quantiles import has_intervals
from tunefree.report.decisions import blocks_of_decisions
from tunefree.report.document import Chart, Document, Fact, Note, Section
from tunefree.report.findings import suspicions
from tunefree.report.formats import COUNT
from tunefree.report.guarantees import guarantees
from tunefree.report.learned import learned, losses, reproducing
from tunefree.report.members import members
from tunefree.report.performance import facts_of_measures, performance
from tunefree.report.terms import terms
from tunefree.report.words import goal_of
from tunefree.stream.batch import BadRows
from tunefree.stream.source import open_source
from tunefree.workflows.decisions import Costs, decisions
from tunefree.workflows.evaluation import Evaluation, evaluate
from tunefree.workflows.explanation import terms_of

NO_CHARTS = "The charts of this report need matplotlib, which is not installed: pip install 'tunefree[plot]'."
MOST_TILES = 6  # numbers that come first
INTERVAL = 0.9  # coverage of the intervals that are measured
OF_TESTS = ("log_loss", "error", "mean_absolute_error", "r2")  # metrics among them


def report(
    trained: Trained,
    test: Any = None,
    bad: BadRows | None = None,
    digest: str | None = None,
    costs: Costs | None = None,
    label: Any = None,
) -> Document:
    """What is known of a model.

    Parameters
    ----------
    trained : Trained
    test : path, sequence of paths, Source or table, optional
        Data with known targets.
    bad : BadRows, optional
        What happens to test rows that cannot be used; by default the first raises an error.
    digest : str, optional
        The checksum that the model's file holds.
    costs : Costs, optional
        Of mistakes on the test data, by which decisions for a class are judged.
    label : optional
        The class to decide on; of two classes by default the second.

    Examples
    --------
    >>> from tunefree import Plan, open_source
    >>> from tunefree.training.training import train
    >>> source = open_source({"age": [20.0, 60.0] * 200, "rich": ["no", "yes"] * 200})
    >>> document = report(train(source, Plan(target="rich")), source)
    >>> [section.title for section in document.sections][:3]
    ['What was learned', 'How well it predicts', 'Who learned']
    >>> document.summary[0].name, document.summary[0].value
    ('rows learned', 400)
    """
    bad = BadRows() if bad is None else bad
    tested = None
    if test is not None:
        source, model = test if hasattr(test, "rewindable") else open_source(test), trained.model
        tested = evaluate(trained, source, bad, interval=INTERVAL if has_intervals(model, INTERVAL) else None)
    decomposition = terms_of(trained)
    skipped = {"Training data": trained.progress.tally, "Test data": bad.tally}
    sections: list[Section | None] = [
        learned(trained),
        performance(trained, tested),
        _decisions(trained, tested, costs, label),
        members(trained),
        terms(trained, decomposition),
        guarantees(trained),
        suspicions(trained, skipped),
        reproducing(trained, digest),
    ]
    about = f"Report of a model: {goal_of(trained)}"
    title = f"{trained.plan.target or 'label'}: tunefree report"
    return Document(title, about, _summary(trained, tested), [section for section in sections if section is not None])


class Page:
    """A report, for notebooks and files."""

    def __init__(self, document: Document) -> None:
        self.document = document

    @property
    def html(self) -> str:
        """The page."""
        return html(self.document)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file."""
        write(self.document, path)

    def _repr_html_(self) -> str:
        """The page in a frame, so that its style does not touch the notebook."""
        style = "width: 100%; height: 45rem; border: 1px solid #ccc"
        return f'<iframe title="report" srcdoc="{escape(self.html, quote=True)}" style="{style}"></iframe>'


def page_of(trained: Trained, test: Any = None) -> Page:
    """The report of a model as a page; parameters as of :func:`report`."""
    return Page(report(trained, test))


def _decisions(trained: Trained, tested: Evaluation | None, costs: Costs | None, label: Any) -> Section | None:
    if tested is None or (costs is None and label is None):
        return None
    decided = decisions(tested.scored, trained.model.classes, label, costs)
    return Section("decisions", "What decisions hit, miss and cost", blocks_of_decisions(decided))


def _summary(trained: Trained, tested: Evaluation | None) -> list[Fact]:
    tiles = [Fact("rows learned", trained.progress.progressive[0].rows, COUNT)]
    tiles += [fact for fact in losses(trained) if fact.name.startswith("progressive")]
    if tested is not None:
        measures = {name: tested.measures[name] for name in OF_TESTS if name in tested.measures}
        tiles += [fact._replace(name=f"test {fact.name}") for fact in facts_of_measures(measures)]
    return tiles[:MOST_TILES]


def html(document: Document) -> str:
    """A document as a page of HTML; without matplotlib it has no charts, and says what to install."""
    if not files.is_installed():
        document = _without_charts(document)
    text: str = _template().render(document=document)
    return text


def _without_charts(document: Document) -> Document:
    """A document without its charts, and a note in the first section that had some."""
    sections, has_note = [], False
    for section in document.sections:
        blocks = [block for block in section.blocks if not isinstance(block, Chart)]
        if len(blocks) < len(section.blocks) and not has_note:
            blocks, has_note = [Note(NO_CHARTS, "warning"), *blocks], True
        sections.append(section._replace(blocks=blocks))
    return document._replace(sections=sections)


@cache
def _template() -> Any:
    """The template; jinja2 is imported when it is needed."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    folder = Path(__file__).parent / "templates"
    options: dict[str, Any] = {"trim_blocks": True, "lstrip_blocks": True, "undefined": StrictUndefined}
    environment = Environment(loader=FileSystemLoader(folder), autoescape=True, **options)
    environment.filters["options"] = as_options
    light, dark = files.style_of_pages()
    style = (folder / "style.css").read_text()
    environment.globals["style"] = style.replace("/* light */", light).replace("/* dark */", dark)
    environment.globals["macro_of"] = lambda block: type(block).__name__.lower()
    environment.globals["svg"] = files.svg
    return environment.get_template("page.html.jinja")


def write(document: Document, path: str | os.PathLike[str]) -> None:
    """Write a document to a file; an earlier file of this name is replaced whole, at the last moment."""
    text = html(document)
    with storage.whole_file(Path(path)) as file:
        file.write(text.encode())
