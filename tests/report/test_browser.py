"""Reports as a person sees them: in a browser, on a wide and on a narrow screen, light and dark."""

import re
from importlib.resources import files

import pyarrow as pa
import pytest
from pyarrow import compute, csv, parquet

from tests.browsing import browser, invalid, printed, said, show, violations  # noqa: F401 - a fixture
from tests.workflows.test_training import people
from tunefree.model_files.plan import Plan
from tunefree.report import page
from tunefree.stream.source import open_source
from tunefree.training.training import train

pytestmark = pytest.mark.slow

SCREENS = [(1280, False), (390, False), (390, True)]
# Texts of charts that leave their drawing, or lie on each other, are those that people cannot read.
CUT = """
return [...document.querySelectorAll('svg')].flatMap(svg => [...svg.querySelectorAll('text')].filter(text => {
  const box = text.getBoundingClientRect(), all = svg.getBoundingClientRect();
  return box.x < all.x - 1 || box.y < all.y - 1 || box.right > all.right + 1 || box.bottom > all.bottom + 1;
}).map(text => svg.querySelector('title').textContent + ': ' + text.textContent));
"""
OVER = """
return [...document.querySelectorAll('svg')].flatMap(svg => {
  const boxes = [...svg.querySelectorAll('text')].map(text => [text.textContent, text.getBoundingClientRect()]);
  return boxes.flatMap(([text, a], i) => boxes.slice(i + 1).filter(([_, b]) =>
    a.x + 2 < b.right && b.x + 2 < a.right && a.y + 4 < b.bottom && b.y + 4 < a.bottom
  ).map(([other, _]) => `${svg.querySelector('title').textContent}: ${text} / ${other}`));
});
"""
EMPTY = """
return [...document.querySelectorAll('svg')].filter(svg =>
  svg.getBoundingClientRect().width < 100 || svg.querySelectorAll('path, rect, circle').length < 1
).map(svg => svg.querySelector('title').textContent);
"""
# On paper nothing can be scrolled.
BEYOND = """
return [...document.querySelectorAll('main *, header *')].filter(own =>
  own.getBoundingClientRect().right > document.documentElement.clientWidth + 1
).map(own => own.tagName + ' ' + own.textContent.slice(0, 60));
"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    table = people(1200)
    for target, other in (("rich", "pay"), ("pay", "rich")):
        rows = {name: values for name, values in table.items() if name != other}
        trained = train(open_source(rows), Plan(target=target))
        page.report(trained, open_source(rows)).save(folder / f"{target}.html")
        page.report(trained).save(folder / f"{target}-alone.html")
    return folder


def test_reports_are_valid_html(pages, done):
    csv.write_csv(pa.table(people(600)).drop_columns("pay"), pages / "people.csv")
    compared, learners = pages / "compared.html", ("--learner", "scinol2", "--learner", "adagrad")
    done("learners", pages / "people.csv", "-t", "rich", *learners, "--report", compared, "-q")
    found = sorted(pages.glob("*.html"))
    assert len(found) == 5 and invalid(found) == []
    wrong = pages / "wrong.htm"
    wrong.write_text(compared.read_text().replace("</main>", "</section></main>"))
    assert invalid([wrong])


@pytest.mark.parametrize("name", ["rich", "pay"])
def test_a_report_is_printed_on_a4(browser, pages, tmp_path, name):  # noqa: F811
    """At most five pages of the right size, and nothing beyond the margins."""
    printed(pages / f"{name}.html", tmp_path / "p.pdf")
    data = (tmp_path / "p.pdf").read_bytes()
    boxes = [tuple(map(float, own.split())) for own in re.findall(rb"/MediaBox ?\[([^\]]+)\]", data)]
    assert 3 <= len(boxes) <= 5
    assert all(abs(box[2] - 595.3) < 1 and abs(box[3] - 841.9) < 1 for box in boxes)
    show(browser, (pages / f"{name}.html").as_uri(), 695)  # a page of A4 between its margins, in pixels
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        assert browser.execute_script(BEYOND) == []
        assert browser.execute_script("return getComputedStyle(document.querySelector('nav')).display") == "none"
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_a_report_of_the_census_is_small_and_short(tmp_path):
    census = parquet.read_table(files("tunefree") / "data" / "adult.parquet")
    is_train = compute.equal(census["split"], "train")
    learned, test = (census.filter(rows).drop_columns("split") for rows in (is_train, compute.invert(is_train)))
    trained = train(open_source(learned), Plan(target="income"))
    page.report(trained, test).save(tmp_path / "census.html")
    assert (tmp_path / "census.html").stat().st_size < 300_000
    printed(tmp_path / "census.html", tmp_path / "p.pdf")
    assert len(re.findall(rb"/MediaBox ?\[", (tmp_path / "p.pdf").read_bytes())) <= 5


@pytest.mark.parametrize(("width", "dark"), SCREENS)
@pytest.mark.parametrize("name", ["rich", "pay"])
def test_a_report_can_be_read(browser, pages, name, width, dark):  # noqa: F811
    show(browser, (pages / f"{name}.html").as_uri(), width, dark)
    details = browser.find_elements("css selector", "summary")
    assert details
    for summary in details:
        browser.execute_script("arguments[0].scrollIntoView({behavior: 'instant', block: 'center'})", summary)
        summary.click()
        assert summary.find_element("xpath", "..").get_attribute("open") is not None
    assert browser.execute_script(CUT) == []
    assert browser.execute_script(OVER) == []
    assert browser.execute_script(EMPTY) == []
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    for link in browser.find_elements("css selector", "nav a"):
        browser.execute_script("arguments[0].click()", link)
        assert browser.execute_script("return location.hash") == "#" + link.get_attribute("href").partition("#")[2]
    assert not said(browser)
    assert violations(browser) == []
