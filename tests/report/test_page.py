"""Reports as pages: every number is the one that a command prints, and the page is whole."""

import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv

from tests.workflows.test_training import people
from tunefree.core.errors import DataError
from tunefree.model_files.plan import Plan
from tunefree.report import findings as suspicions
from tunefree.report.document import Note, Table
from tunefree.report.formats import FIGURES
from tunefree.report.page import report
from tunefree.stream.batch import BadRows, Tally
from tunefree.stream.source import open_source
from tunefree.training.roles import IDENTIFIER, LEAK_OF_TARGET
from tunefree.training.training import train
from tunefree.workflows.evaluation import evaluate
from tunefree.workflows.findings import ODD, findings

VOID = {"meta", "link", "br", "img", "hr", "input"}


class Reader(HTMLParser):
    """A page's elements, its text, and whether every element that was opened is closed in turn."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.open, self.words = [], [], []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        self.open += [] if tag in VOID else [tag]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())

    def all(self, tag):
        return [attributes for own, attributes in self.elements if own == tag]


def check_page(text):
    """What holds of every page: it is closed, small, needs no network, and is told to those who do not see it."""
    read = Reader(text)
    assert len(text.encode()) < 3_000_000
    ids = [attributes["id"] for _, attributes in read.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    for _, attributes in read.elements:
        for name in ("src", "href", "action"):
            assert attributes.get(name, "#").startswith(("#", "data:"))
        for own in attributes.get("aria-labelledby", "").split():
            assert own in ids
    assert {own["href"][1:] for own in read.all("a")} <= set(ids)
    assert not read.all("script")
    assert len(read.all("h1")) == 1
    levels = [int(tag[1]) for tag, _ in read.elements if re.fullmatch(r"h\d", tag)]
    assert all(after <= before + 1 for before, after in zip(levels, levels[1:], strict=False))
    for svg in re.findall(r"<svg.*?</svg>", text, re.DOTALL):
        drawing = ElementTree.fromstring(svg)
        assert drawing.attrib["role"] == "img" and len(list(drawing.iter())) > 20
        assert all(drawing.find(name).text.strip() for name in ("title", "desc"))
        assert "nan" not in svg.replace("(nan", "").lower().replace("finance", "")
    assert all("scope" in own for own in read.all("th"))
    assert len(read.all("caption")) == len(read.all("table"))
    return read


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("report")
    for name, seed in (("people", 0), ("new", 1)):
        csv.write_csv(pa.table(people(500, seed)).drop_columns("pay"), path / f"{name}.csv")
    return path


@pytest.fixture
def written(folder, done):
    """A model, and its report with test data as text."""
    model, output = folder / "people.model", folder / "people.html"
    if not output.exists():
        done("train", folder / "people.csv", "-t", "rich", "-o", model, "--hash-bits", "12", "-q")
        done("report", model, folder / "new.csv", "-o", output)
    return model, check_page(output.read_text())


def test_a_page_begins_with_a_sentence_and_goes_on_in_order(written, folder, done, monkeypatch, few_peers):
    model, read = written
    lead = r"Predicts rich = yes with [\d.]+ % error; by its log-loss better than constant \([\d.]+ %\)\."
    assert re.search(lead, read.text)
    assert "Learned from people.csv. Judged on new.csv. Report of " in read.text
    ids = "performance beside decisions terms unsure suspicions members guarantees learned reproduce"
    assert [own["id"] for own in read.all("section")] == ids.split()
    page = (folder / "people.html").read_text()
    assert re.search(r'id="members-h">Who learned</h2>\s*<details><summary>\d+ members with their weights', page)
    weights = re.search(r"Weights at the end: (.+? %)\.", read.text)[1]  # of the figure of members
    assert sum(map(float, re.findall(r"([\d.]+) %", weights))) == pytest.approx(100.0, abs=0.5)
    assert "all rows: boosted, newest" in weights and "rows learned" in read.text
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    output = folder / "beside.html"
    done("report", model, folder / "new.csv", "--train", folder / "people.csv", "-o", output)
    beside = check_page(output.read_text()).text
    assert re.search(r"error; .*logistic regression \([\d.]+ %\)", beside) and "Report of 1 January 1970" in beside


def test_a_report_says_how_to_make_the_model_again(written, folder, run):
    model, read = written
    command = re.search(r"tunefree (train DATA --target rich --hash-bits 12) -o MODEL", read.text)
    again = folder / "again.model"
    words = command[1].replace("DATA", str(folder / "people.csv")).split()
    assert run(*words, "-o", again, "-q")[0] == 0 and run("report", again, "-o", folder / "again.html")[0] == 0
    assert again.read_bytes() == model.read_bytes()
    digest = re.search(r"checksum of the model \(SHA-256\) ([0-9a-f]{64})", read.text)[1]
    assert digest in check_page((folder / "again.html").read_text()).text
    out = run("inspect", model, "--plot", folder / "curves.svg")[1]
    assert "progressive log-loss" in out and "Partial dependence of" in (folder / "curves.svg").read_text()


def test_what_looks_wrong_is_told():
    n = 1200
    table = {name: values for name, values in people(n).items() if name != "pay"}
    rich = np.array(table["rich"]) == "yes"
    table |= {"name": [f"person {i}" for i in range(n)], "planet": [3.0] * n}
    table |= {"tax": np.where(rich, 5.0, 1.0), "seldom": [1.0 if i % 9 == 0 else None for i in range(n)]}
    trained = train(open_source(table), Plan(target="rich", categorical=("name",)))
    tally = Tally()
    for row in (7, 9):
        tally.add(DataError(f"'{row}?' is not a number", "new.csv", row, "age"))
    skipped = {"Training data": trained.progress.tally, "Test data": tally}
    section = suspicions.suspicions(trained, skipped)
    text = " ".join(own.text for own in section.blocks if isinstance(own, Note))
    assert "column 'name': 1,200 different values" in text
    assert "column 'tax': alone predicts 100.00 %" in text
    assert "column 'planet': has the same value" in text
    assert re.search(r"'seldom': is missing in 8[89]\.\d %", text)
    assert "Test data: 2 rows were skipped." in text
    tables = [own.texts() for own in section.blocks if isinstance(own, Table)]
    assert tables[0] == [["… is not a number", "new.csv, row 7, column 'age'", "2"]]
    found = [finding for finding in findings(trained) if finding.column == "tax"]
    assert [finding.kind for finding in found] == [ODD]  # it was told when training began
    trained.progress.tally.oddities = []  # as of a model whose first rows told nothing
    later = {finding.column: finding.kind for finding in findings(trained)}
    assert (later["tax"], later["name"]) == (LEAK_OF_TARGET, IDENTIFIER)
    sound = train(open_source({"age": table["age"], "job": table["job"], "rich": table["rich"]}), Plan(target="rich"))
    assert suspicions.suspicions(sound, {}).blocks[-1].text == suspicions.NOT_SEEN


def test_a_page_of_numbers_has_intervals_and_hostile_names_are_text(tmp_path):
    table = {name: values for name, values in people(400).items() if name != "rich"}
    table['<script>alert(1)</script>&"'] = table.pop("age")
    table["job"] = [f"<b>{job}" for job in table["job"]]
    page = report(train(open_source(table), Plan(target="pay")), table)
    page.save(tmp_path / "page.html")
    read = check_page((tmp_path / "page.html").read_text())
    assert "<script>alert(1)</script>" in read.text and "Residuals on the test data: targets" in read.text
    assert "Intervals by width" in read.text and page._repr_html_().count("&lt;h1") == 1
    lead = r"Predicts pay with a mean absolute error of [\d.]+; .*; intervals of 90 % hold [\d.]+ % of the rows\."
    assert re.fullmatch(lead, page.lead)


def test_pages_of_little_say_so():
    random = np.random.default_rng(0)
    rows = {"x": random.normal(size=300), "y": random.integers(0, 2, 300)}
    assert "No column matters beyond noise." in report(train(open_source(rows), Plan(target="y"))).html
    rare = rows | {"y": random.permutation(np.repeat(["a", "b", "c"], [280, 13, 7]))}
    of_rare = report(train(open_source(rare), Plan(target="y", learner="scinol2")), rare).html
    assert "Class &#39;c&#39; is never predicted, nor 1 of the others shown, and has 2.33 % of the rows" in of_rare
    numbers = {"x": rows["x"], "y": rows["x"] + random.normal(size=300)}
    of_few = report(train(open_source({name: values[:2] for name, values in numbers.items()}), Plan(target="y"))).html
    assert "Weights in the base mixture" not in of_few and "of the next row" not in of_few
    trained = train(open_source(numbers), Plan(target="y", loss="huber:1", learner="scinol2"))
    mean = FIGURES(evaluate(trained, open_source(numbers), BadRows()).measures["loss"])
    assert report(trained, numbers).lead == f"Predicts y with a mean loss of {mean}."


def test_reports_that_cannot_be_made_leave_nothing(folder, written, run, done, tmp_path):
    model, _ = written
    bad = tmp_path / "bad.csv"
    bad.write_text("age,job,rich\n1,cook\n2,cook,yes\n")
    output = tmp_path / "bad.html"
    assert run("report", model, bad, "-o", output)[0] == 2 and not output.exists()
    done("report", model, bad, "-o", output, "--on-bad-row", "skip")
    assert "1 rows were skipped" in check_page(output.read_text()).text
