"""The documentation: links lead somewhere, the everyday things are two clicks away, and every block of code runs."""

import os
import re
import subprocess
import sys
from importlib import import_module
from operator import attrgetter
from pathlib import Path

import pytest
from documentation.execution import census_files, executed
from pyarrow import parquet

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
GENERATED = ("reference/python.md", "reference/commands.md")
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
EXECUTED = (
    "index.md",
    *(str(path.relative_to(DOCS)) for folder in ("guide", "papers") for path in sorted((DOCS / folder).glob("*.md"))),
    "explanations/guarantees.md",
    "explanations/pool.md",
    "howto/sql.md",
    "howto/operation.md",
    "howto/intervals.md",
    "howto/counts.md",
)
# What waits for requests or lines, or takes hours.
NOT_RUN = ("tunefree serve", "tunefree predict people.model -", "tunefree reproduce")


def pages():
    return [path for path in DOCS.rglob("*.md") if "figures" not in path.parts]


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


def test_every_page_is_in_the_navigation():
    navigation = (ROOT / "mkdocs.yml").read_text()
    for path in pages():
        assert str(path.relative_to(DOCS)) in navigation


@pytest.mark.slow
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
    page = (DOCS / "howto" / "cluster.md").read_text().replace("n_workers=8", "n_workers=2")
    page = page.replace("--workers 8", "--workers 2")
    executed(page, tmp_path, names=names, skipped=("pip ", "tunefree train 'data/"))
    assert (tmp_path / "people.model").exists()
