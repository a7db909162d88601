"""Reports as a person sees them: in a browser, on a wide and on a narrow screen, light and dark."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.workflows.test_training import people
from tunefree.report import page
from tunefree.stream.source import open_source
from tunefree.workflows.plan import Plan
from tunefree.workflows.training import train

pytestmark = pytest.mark.slow

CHROMIUM, DRIVER = (shutil.which(name) for name in ("chromium", "chromedriver"))
AXE = Path(os.environ.get("TUNEFREE_AXE", Path(__file__).parents[2] / ".venv/node_modules/axe-core/axe.min.js"))
SCREENS = [(1280, False), (390, False), (390, True)]
# Texts of charts that leave their drawing, or lie on each other, are those that people cannot read.
CUT = """
return [...document.querySelectorAll('svg')].flatMap(svg => [...svg.querySelectorAll('text')].filter(text => {
  const box = text.getBBox(), view = svg.viewBox.baseVal;
  return box.x < -1 || box.y < -1 || box.x + box.width > view.width + 1 || box.y + box.height > view.height + 1;
}).map(text => svg.querySelector('title').textContent + ': ' + text.textContent));
"""
OVER = """
return [...document.querySelectorAll('svg')].flatMap(svg => {
  const boxes = [...svg.querySelectorAll('text')].map(text => [text.textContent, text.getBBox()]);
  return boxes.flatMap(([text, a], i) => boxes.slice(i + 1).filter(([_, b]) =>
    a.x + 2 < b.x + b.width && b.x + 2 < a.x + a.width && a.y + 4 < b.y + b.height && b.y + 4 < a.y + a.height
  ).map(([other, _]) => `${svg.querySelector('title').textContent}: ${text} / ${other}`));
});
"""
EMPTY = """
return [...document.querySelectorAll('svg')].filter(svg =>
  svg.getBoundingClientRect().width < 100 || svg.querySelectorAll('path, rect, circle').length < 1
).map(svg => svg.querySelector('title').textContent);
"""


@pytest.fixture(scope="module")
def browser():
    webdriver = pytest.importorskip("selenium.webdriver")
    if not (CHROMIUM and DRIVER):
        pytest.skip("no Chromium with its driver is installed")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


def show(browser, url, width, dark):
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
    browser.get(url)


def violations(browser):
    """What axe-core finds that is serious."""
    if not AXE.exists():
        pytest.skip(f"axe-core is not installed: {AXE}")
    browser.execute_script(AXE.read_text())
    found = browser.execute_async_script("axe.run().then(arguments[arguments.length - 1]);")["violations"]
    return [
        (own["id"], node["html"][:200], node["failureSummary"])
        for own in found
        if own["impact"] in ("serious", "critical")
        for node in own["nodes"]
    ]


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    table = people(1200)
    for target, other in (("rich", "pay"), ("pay", "rich")):
        rows = {name: values for name, values in table.items() if name != other}
        trained = train(open_source(rows), Plan(target=target))
        page.write(page.report(trained, open_source(rows)), folder / f"{target}.html")
    return folder


@pytest.mark.parametrize(("width", "dark"), SCREENS)
@pytest.mark.parametrize("name", ["rich", "pay"])
def test_a_report_can_be_read(browser, pages, name, width, dark):
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
    assert not [own for own in browser.get_log("browser") if own["level"] in ("SEVERE", "WARNING")]
    assert violations(browser) == []
