"""The documentation: links lead somewhere, what it names exists, and every block of code runs."""

import re
import subprocess
import sys
from pathlib import Path
from pkgutil import resolve_name

import pytest
from documentation.execution import PageError, census_files, executed
from pyarrow import parquet

from tunefree.cli.app import COMMANDS, options_of
from tunefree.core.parameters import OTHER_OPTIONS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
MOST_WORDS = 22_000  # of all documents; a page that grows takes its words from another one
MOST_OF_THE_ARCHITECTURE = 1_040
PAGES = list(DOCS.rglob("*.md"))
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


def anchors(path):
    """The anchors of the headings of a page, as MkDocs makes them."""
    headings = re.findall(r"^#+ (.*)$", path.read_text(), re.M)
    return {re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", text).strip().lower()) for text in headings}


@pytest.mark.parametrize("path", [*PAGES, ROOT / "README.md"], ids=lambda path: path.name)
def test_links_lead_somewhere(path):
    for link in LINK.findall(path.read_text()):
        if link.startswith(("http:", "https:")):
            continue
        name, _, anchor = link.partition("#")
        target = (path.parent / name).resolve() if name else path
        assert target.exists(), link
        is_generated = any(target == DOCS / page for page in GENERATED)
        assert is_generated or not anchor or anchor in anchors(target), link


def test_functions_that_documents_name_exist():
    theorems, architecture = ((DOCS / name).read_text() for name in ("papers/theorems.csv", "architecture.md"))
    bold = re.findall(r"^\*\*(?:\d+\. )?`([\w.]+)`\*\* \(`([\w/.]+)\.py`\)", architecture, re.M)
    named = {*re.findall(r"papers\.[\w.]+", theorems), *(f"{file.replace('/', '.')}.{name}" for name, file in bold)}
    assert len(bold) >= 6 and len(named) >= 26
    for name in named:
        assert resolve_name(f"tunefree.{name}"), name


def test_documents_stay_within_their_words():
    documents = [ROOT / "README.md", ROOT / "CHANGELOG.md", *PAGES]
    words = {str(path.relative_to(ROOT)): len(path.read_text().split()) for path in documents}
    assert sum(words.values()) <= MOST_WORDS, words
    assert words["docs/architecture.md"] <= MOST_OF_THE_ARCHITECTURE


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
        calls = re.findall(r"tunefree \w+ [^`\n]*", text)
        named |= {name for call in calls for name in re.findall(r" --([a-z-]+)", call)}
        assert named <= known, (path, named - known)


def test_every_page_is_in_the_navigation():
    navigation = (ROOT / "mkdocs.yml").read_text()
    for path in PAGES:
        assert str(path.relative_to(DOCS)) in navigation


def built_site(folder):
    """Build the site without a warning."""
    pytest.importorskip("material")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", folder / "site"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder / "site"


def test_the_site_is_built_without_a_warning(tmp_path, monkeypatch):
    """In its quick form: no page is executed."""
    monkeypatch.setenv("TUNEFREE_SITE", "quick")
    reference = built_site(tmp_path) / "reference"
    assert 'id="tunefree-serve"' in (reference / "commands.html").read_text()
    assert 'id="tunefreeclassifier"' in (reference / "python.html").read_text()


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
    names = {"frame": people, "new_frame": people.drop(columns="income"), "rows": census.slice(0, 5).to_pandas()}
    page = (DOCS / "guide" / "cluster.md").read_text().replace("n_workers=8", "n_workers=2")
    page = page.replace("--workers 8", "--workers 2").replace("local_cluster(8)", "local_cluster(2)")
    executed(page, tmp_path, names=names, skipped=("pip ", "tunefree train 'data/"))
    assert (tmp_path / "people.model").exists()


RETRAINING = (DOCS / "guide" / "retraining.md").read_text()


@pytest.mark.slow
def test_a_model_is_logged_and_loaded_by_mlflow(tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"file:{tmp_path / 'runs'}")
    section = re.search(r"^## MLflow\n.*?(?=^## )", RETRAINING, re.M | re.S)
    served, logging = re.findall(r"^<!-- not executed[^\n]*\n```python\n(.*?)^```$", section[0], re.M | re.S)
    (tmp_path / "served.py").write_text(served)
    checked = "bool((probabilities == model.predict_proba(X_test)).all())"
    page = executed(f"```python\n{logging}{checked}\n```\n", tmp_path, names=census_files(tmp_path, 300, 100))
    assert page.rpartition("```text")[2].startswith("\nTrue")
    [run] = mlflow.MlflowClient().search_runs(["0"])
    assert 0.0 < run.data.metrics["test loss"] < 1.0
    mlflow.sklearn.autolog()
    try:
        from tunefree import TuneFreeClassifier

        TuneFreeClassifier().fit([[0.0], [1.0]] * 20, ["no", "yes"] * 20)
        assert len(mlflow.MlflowClient().search_runs(["0"])) == 1  # autologging logs nothing
    finally:
        mlflow.sklearn.autolog(disable=True)


@pytest.mark.slow
def test_stages_of_dvc_run_in_order(tmp_path):
    yaml = pytest.importorskip("yaml")
    census_files(tmp_path, 300, 100)
    stages = yaml.safe_load(re.search(r"```yaml\n(.*?)```", RETRAINING, re.S)[1])["stages"]
    for stage in stages.values():
        command, _, output = stage["cmd"].partition(" > ")
        assert all((tmp_path / name).exists() for name in stage["deps"])
        shown = executed(f"```console\n$ {command}\n```\n", tmp_path)
        if output:
            (tmp_path / output).write_text(shown.partition("```text\n")[2].rpartition("```")[0])
        assert all((tmp_path / name).exists() for name in [*stage.get("outs", []), *stage.get("metrics", [])])
