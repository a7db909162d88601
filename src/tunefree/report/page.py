"""A report of a model as one HTML file without network access or scripts, for light and dark screens and A4 paper."""

from __future__ import annotations

import os
from datetime import UTC, date, datetime
from functools import cache
from html import escape
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from tunefree.core import storage
from tunefree.core.errors import ModelError
from tunefree.core.parameters import as_options
from tunefree.model_files.trained import Trained
from tunefree.plotting import files
from tunefree.pool.quantiles import has_intervals
from tunefree.report.decisions import Costs, decisions
from tunefree.report.document import Fact, Section
from tunefree.report.findings import suspicions
from tunefree.report.formats import COUNT, FIGURES, TENTHS_OF_PERCENT, goal_of, sentence
from tunefree.report.guarantees import guarantees
from tunefree.report.learned import learned, losses, names_of_losses, reproducing
from tunefree.report.members import members
from tunefree.report.performance import BRIEF_TITLES, blocks_of_pairs, facts_of_measures, performance, unsure
from tunefree.report.terms import terms
from tunefree.stream.batch import BadRows
from tunefree.stream.source import Source, open_source
from tunefree.workflows import trials
from tunefree.workflows.evaluation import KNOWN, Evaluation, evaluate, group_in, learned_files
from tunefree.workflows.explanation import terms_of
from tunefree.workflows.paired import PairedComparison, goal_in_words
from tunefree.workflows.peers import beside_constant

NO_CHARTS = "The charts of this report need matplotlib, which is not installed: pip install 'tunefree[plot]'."
MOST_TILES = 6  # numbers in the summary
INTERVAL = 0.9  # coverage of the evaluated intervals
OF_TESTS = ("error", "log_loss", "auc", "r2", "root_mean_squared_error", "mean_absolute_error")  # of the summary


class Page(NamedTuple):
    """A report, for notebooks and files."""

    title: str
    subtitle: str
    summary: list[Fact]  # key numbers at the top
    sections: list[Section]
    lead: str = ""  # summary in one sentence
    about: str = ""  # date, files and version

    @property
    def html(self) -> str:
        """The page; without matplotlib, a note on the package to install replaces the charts."""
        remedy = "" if files.is_installed() else NO_CHARTS
        text: str = _template().render(page=self, without_charts=remedy)
        return text

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file; an existing file is replaced atomically."""
        text = self.html
        with storage.whole_file(Path(path)) as file:
            file.write(text.encode())

    def _repr_html_(self) -> str:
        """The page in a frame, so that its style does not touch the notebook."""
        style = "width: 100%; height: 45rem; border: 1px solid #ccc"
        return f'<iframe title="report" srcdoc="{escape(self.html, quote=True)}" style="{style}"></iframe>'


def report(
    trained: Trained,
    test: Any = None,
    train: Any = None,
    cost: str | dict[str, float] | None = None,
    class_: Any = None,
    bad: BadRows | None = None,
    digest: str | None = None,
) -> Page:
    """The report of a model.

    ``test``: path, paths, Source or table with known targets.
    ``train``: the training rows, to compare with peers that learn them; by default with a constant.
    ``cost``: costs of wrong decisions, to evaluate decisions for a class on the test data.
    ``class_``: the class to decide on; by default the second of two classes.
    ``bad``: the handling of test rows that cannot be used; by default the first raises an error.
    ``digest``: the checksum in the model file.

    >>> from tunefree import Plan, open_source
    >>> from tunefree.training.training import train
    >>> source = open_source({"age": [20.0, 60.0] * 200, "rich": ["no", "yes"] * 200})
    >>> report(train(source, Plan(target="rich")), source).lead
    'Predicts rich = yes with 0.0 % error; by its log-loss better than constant (50.0 %).'
    """
    for name, value in (("train", train), ("cost", cost), ("class_", class_)):
        if test is None and value is not None:
            raise ModelError(f"`{name}` is for data on which the model is judged; leave it out, or pass `test`")
    costs = None if cost is None else Costs.parsed(cost)
    bad, model = BadRows() if bad is None else bad, trained.model
    tested, comparison, about, warning = None, None, "", ""
    if trained.progress.data:
        about = f"Learned from {', '.join(trained.progress.data)}. "
    if test is not None:
        test = open_source(test)
        interval, group = INTERVAL if has_intervals(model, INTERVAL) else None, group_in(trained, test)
        tested = evaluate(trained, test, bad, interval=interval, group=group)
        comparison = _beside(trained, tested, test, train, bad, group)
        about += f"Judged on {Path(test.name).name}. "
        warning = f" It has learned a file of this name: {KNOWN}." if learned_files(trained, test) else ""
    sections: list[Section | None] = [performance(trained, tested)]
    if comparison is not None:
        sections.append(Section("beside", "Beside others", blocks_of_pairs(comparison)[2:]))
    is_asked = costs is not None or class_ is not None
    if tested is not None and (is_asked or (len(model.classes) == 2 and tested.scored.scores is not None)):
        blocks = decisions(tested.scored, model.classes, class_, costs)
        sections.append(Section("decisions", "What decisions hit, miss and cost", blocks))
    sections += [
        terms(trained, terms_of(trained)),
        unsure(trained, tested),
        suspicions(trained, {"Training data": trained.progress.tally, "Test data": bad.tally}),
        members(trained),
        guarantees(trained),
        learned(trained),
        reproducing(trained, digest),
    ]
    return Page(
        f"{trained.plan.target or 'label'}: tunefree report",
        sentence(goal_of(trained)),
        _summary(trained, tested),
        [section for section in sections if section is not None],
        _sentence(trained, tested, comparison) + warning,
        f"{about}Report of {today()}, tunefree {version('tunefree')}.",
    )


def today() -> str:
    """The date of a report; for the variable see https://reproducible-builds.org/specs/source-date-epoch."""
    seconds = os.environ.get("SOURCE_DATE_EPOCH")
    day = date.today() if seconds is None else datetime.fromtimestamp(int(seconds), UTC).date()
    return f"{day:%-d %B %Y}"


def _sentence(trained: Trained, tested: Evaluation | None, comparison: PairedComparison | None) -> str:
    """A sentence on how well a model predicts, from the comparison, the test data or the training rows."""
    if comparison is not None:
        coverage = None if tested is None else tested.measures.get("interval_coverage")
        if coverage is None:
            return comparison.sentence
        sentence = comparison.sentence.removesuffix(".")
        return f"{sentence}; intervals of {100 * INTERVAL:g} % hold {TENTHS_OF_PERCENT(coverage)} of the rows."
    (loss, _), (_, error_format) = names_of_losses(trained.model)
    classes, metrics = trained.model.classes, trained.progress.progressive[0]
    goal = goal_in_words(trained.plan.target or "the label", classes)
    if classes:
        error = f"{error_format(metrics.mean_error() if tested is None else tested.measures['error'])} error"
    else:
        error = f"a mean {loss} of {FIGURES(metrics.mean_loss() if tested is None else tested.measures['loss'])}"
    condition = ", each row before it was learned; other data would tell more" if tested is None else ""
    return f"Predicts {goal} with {error}{condition}."


def _beside(
    trained: Trained, tested: Evaluation, test: Source, train: Any, bad: BadRows, group: str | None
) -> PairedComparison | None:
    """The comparison with peers that learn the same rows, or with a constant; None for a loss without a constant."""
    if train is not None:
        policy = BadRows(bad.skip, options=("on_bad_row",))
        learned, judged = (trials.read(source, trained.plan, policy, trained) for source in (open_source(train), test))
        return trials.compare(judged, {"tunefree": trained}, learned, groups=group)
    return beside_constant(trained.model, trained.plan, tested.scored)


def _summary(trained: Trained, tested: Evaluation | None) -> list[Fact]:
    tiles = [Fact("rows learned", trained.progress.progressive[0].rows, COUNT)]
    if tested is None:
        return [*tiles, *(fact for fact in losses(trained) if fact.name.startswith(("progressive", "estimated")))]
    measures = {name: tested.measures[name] for name in OF_TESTS if name in tested.measures}
    facts = facts_of_measures(measures, trained.model)
    briefly = [fact._replace(name=BRIEF_TITLES.get(fact.key, fact.name)) for fact in facts]
    return [*tiles, Fact("rows judged", tested.rows, COUNT), *briefly][:MOST_TILES]


@cache
def _template() -> Any:
    """The page template; jinja2 is imported only when needed."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    folder = Path(__file__).parent / "templates"
    options: dict[str, Any] = {"trim_blocks": True, "lstrip_blocks": True, "undefined": StrictUndefined}
    environment = Environment(loader=FileSystemLoader(folder), autoescape=True, **options)
    environment.filters["options"] = as_options
    environment.filters["unbroken"] = lambda text: text.replace(" %", "\N{NO-BREAK SPACE}%")
    environment.globals["style"] = (folder / "style.css").read_text()
    environment.globals["macro_of"] = lambda block: type(block).__name__.lower()
    environment.globals["svg"] = files.svg
    return environment.get_template("page.html.jinja")
