"""The documentation: links lead somewhere, the everyday things are one click away, and every block of code runs."""

from __future__ import annotations

import csv
import os
import re
import subprocess
import sys
from importlib import import_module
from operator import attrgetter
from pathlib import Path

import pytest
from documentation.execution import PageError, census_files, executed
from pyarrow import parquet

from documentation import claims
from tunefree.cli.app import COMMANDS, options_of
from tunefree.core.parameters import OTHER_OPTIONS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
MOST_WORDS = 22_000  # of all documents; a page that grows takes its words from another one
MOST_OF_THE_ARCHITECTURE = 1_040
FIRST = (  # what people look for first
    *(f"guide/{name}.md" for name in ("intervals", "evaluation", "operation", "cluster", "counts", "sql")),
    *(f"migration/{name}.md" for name in ("scikit-learn", "boosting", "catboost", "vowpal-wabbit", "river")),
    *("start.md", "papers/index.md", "results.md", "reference/commands.md"),
)
GENERATED = ("reference/python.md", "reference/commands.md")
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
EXECUTED = (
    "start.md",
    *(
        str(path.relative_to(DOCS))
        for folder in ("guide", "migration", "papers")
        for path in sorted((DOCS / folder).glob("*.md"))
        if path.name != "cluster.md"
    ),
    "theory/guarantees.md",
    "theory/pool.md",
)
# What waits for requests or lines, or takes hours.
NOT_RUN = ("tunefree serve", "tunefree predict people.model -", "tunefree reproduce")


def pages():
    return list(DOCS.rglob("*.md"))


def anchors(path):
    """The anchors of the headings of a page, as MkDocs makes them."""
    headings = re.findall(r"^#+ (.*)$", path.read_text(), re.M)
    return {re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", text).strip().lower()) for text in headings}


@pytest.mark.parametrize("path", [*pages(), ROOT / "README.md"], ids=lambda path: path.name)
def test_links_lead_somewhere(path):
    for link in LINK.findall(path.read_text()):
        if link.startswith(("http:", "https:")):
            continue
        name, _, anchor = link.partition("#")
        target = (path.parent / name).resolve() if name else path
        assert target.exists(), link
        is_generated = any(target == DOCS / page for page in GENERATED)
        assert is_generated or not anchor or anchor in anchors(target), link


def test_twenty_things_are_one_click_from_the_front_page():
    links = LINK.findall((ROOT / "README.md").read_text())
    assert len(set(links)) >= 20
    assert all(f"docs/{page}" in {link.partition("#")[0] for link in links} for page in FIRST)


def test_documents_stay_within_their_words():
    documents = [ROOT / "README.md", ROOT / "CHANGELOG.md", *pages()]
    words = {str(path.relative_to(ROOT)): len(path.read_text().split()) for path in documents}
    assert sum(words.values()) <= MOST_WORDS, words
    assert words["docs/architecture.md"] <= MOST_OF_THE_ARCHITECTURE


def test_decisions_are_short_records_outside_the_site():
    records = re.findall(r"^- (.*?)(?=^- |^#|\Z)", (DOCS / "decisions.md").read_text(), re.M | re.S)
    assert len(records) >= 10
    assert max(len(record.split()) for record in records) <= 60
    assert all(re.search(r"\d+ November 2026", record) for record in records)
    assert "decisions.md" not in (ROOT / "mkdocs.yml").read_text().partition("\nnav:")[2]


def test_words_of_ours_are_few():
    assert len(re.findall(r"^\| \*\*", (DOCS / "glossary.md").read_text(), re.M)) <= 20


def test_options_that_pages_name_exist():
    """In code that is not executed; in tables of the pages on other tools only the last column is ours."""
    known = {name.replace("_", "-") for command in COMMANDS for name in options_of(command)}
    known |= {option.removeprefix("--") for option in OTHER_OPTIONS.values()} | {"json", "help"}
    for path in [*(DOCS / "guide").glob("*.md"), *(DOCS / "migration").glob("*.md")]:
        lines = path.read_text().splitlines()
        if path.parent.name == "migration":
            lines = [line.rstrip(" |").rpartition(" | ")[2] if line.startswith("|") else line for line in lines]
        text = "\n".join(lines)
        named = {name for code in re.findall(r"`([^`\n]+)`", text) for name in re.findall(r"^--([a-z-]+)", code)}
        named |= {
            name for call in re.findall(r"tunefree \w+ [^`\n]*", text) for name in re.findall(r" --([a-z-]+)", call)
        }
        assert named <= known, (path, named - known)


def test_functions_of_theorems_exist():
    with open(DOCS / "papers" / "theorems.csv") as file:
        named = [name for row in csv.DictReader(file) for name in re.findall(r"papers\.[\w.]+", row["function"])]
    assert len(named) >= 20
    for name in named:
        module, _, function = f"tunefree.{name}".rpartition(".")
        assert hasattr(import_module(module), function) or import_module(f"tunefree.{name}"), name


def test_every_page_is_in_the_navigation():
    navigation = (ROOT / "mkdocs.yml").read_text()
    for path in pages():
        assert str(path.relative_to(DOCS)) in navigation


def test_the_site_is_built_without_a_warning(tmp_path):
    """In its quick form: no page is executed."""
    pytest.importorskip("material")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", tmp_path / "site"]
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | {"TUNEFREE_SITE": "quick"}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    reference = tmp_path / "site" / "reference"
    assert 'id="tunefree-serve"' in (reference / "commands.html").read_text()
    assert 'id="tunefreeclassifier"' in (reference / "python.html").read_text()


def test_the_functions_of_the_architecture_exist():
    text = (DOCS / "architecture.md").read_text()
    named = re.findall(r"^\*\*(?:\d+\. )?`([\w.]+)`\*\* \(`([\w/.]+)`\)", text, re.M)
    assert len(named) >= 6
    for function, file in named:
        module = import_module(f"tunefree.{file.removesuffix('.py').replace('/', '.')}")
        assert callable(attrgetter(function)(module)), function


def test_claims_of_a_figure_take_the_place_of_its_earlier_ones(tmp_path):
    for name in ("claims.csv", "runs.csv"):
        (tmp_path / name).write_text("figure,a,b,c\nfig-1,old,yes,1\nfig-2,kept,no,2\n")
    (tmp_path / "fig-1.md").write_text(
        "# fig-1\n\nA title.\n\n**Claims of the paper.**\n\n- It falls. Not so here: 0.1 to 0.2.\n\n"
        "**Differences.** Another seed. Fewer rows.\n\nSize: full (rows 10). Numbers: `fig-1.csv`.\n"
    )
    claims.main(tmp_path, tmp_path)
    assert (tmp_path / "claims.csv").read_text() == "figure,a,b,c\nfig-1,It falls,no,0.1 to 0.2\nfig-2,kept,no,2\n"
    [_, run, _] = (tmp_path / "runs.csv").read_text().splitlines()
    assert run == "fig-1,A title,full (rows 10),Another seed. Fewer rows."


def test_a_block_that_does_not_run_is_named(tmp_path):
    text = "Text.\n\n```python\nx = 6\nx * 7\n```\n"
    assert executed(text, tmp_path) == text + "\n```text\n42\n```\n"
    with pytest.raises(PageError, match="block 2: ZeroDivisionError"):
        executed(text + "\n```python\nx / 0\n```\n", tmp_path)
    with pytest.raises(PageError, match="cannot be read"):
        executed("```console\n$ tunefree inspect no.model\n```\n", tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("path", [ROOT / "README.md", *(DOCS / name for name in EXECUTED)], ids=lambda path: path.name)
def test_every_block_runs(path, tmp_path):
    names = census_files(tmp_path, n_rows=600, n_test=200)
    executed(path.read_text(), tmp_path, names=names, skipped=NOT_RUN)


@pytest.mark.slow
def test_every_block_of_the_page_on_clusters_runs(tmp_path):
    """With two workers instead of eight, and but for a scheduler on another machine."""
    frame = pytest.importorskip("dask.dataframe")
    census = census_files(tmp_path, n_rows=2000)["people"]
    for number in range(2):
        parquet.write_table(census.slice(1000 * number, 1000), tmp_path / f"part-{number}.parquet")
    people = frame.from_pandas(census.slice(0, 2000).to_pandas(), npartitions=2)
    X, y = people.drop(columns="income"), people["income"]
    names = {"X": X, "y": y, "X_new": X, "rows": X.compute()[:5]}
    page = (DOCS / "guide" / "cluster.md").read_text().replace("n_workers=8", "n_workers=2")
    page = page.replace("--workers 8", "--workers 2")
    executed(page, tmp_path, names=names, skipped=("pip ", "tunefree train 'data/"))
    assert (tmp_path / "people.model").exists()
