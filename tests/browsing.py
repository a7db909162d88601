"""Pages in the distribution's Chromium without a window, and what must hold of all of them.

`make test-all` installs what is needed; where something lacks, tests are skipped.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

CHROMIUM, DRIVER = (shutil.which(name) for name in ("chromium", "chromedriver"))
ARGUMENTS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars")
MODULES = Path(os.environ.get("TUNEFREE_NODE_MODULES", Path(__file__).parents[1] / ".venv/node_modules"))
AXE, VALIDATOR = MODULES / "axe-core/axe.min.js", MODULES / ".bin/html-validate"


@pytest.fixture(scope="module")
def browser():
    webdriver = pytest.importorskip("selenium.webdriver")
    if not (CHROMIUM and DRIVER):
        pytest.skip("no Chromium with its driver is installed")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in ARGUMENTS:
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    driver.set_script_timeout(180)  # of axe-core on the longest page, where others use the machine too
    yield driver
    driver.quit()


def show(browser, url, width, dark=False):
    """Open a page on a screen of a width."""
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
    # without preload, for which it would request style sheets, which a page on a disk may not
    run = "axe.run({preload: false}).then(arguments[arguments.length - 1]);"
    found = browser.execute_async_script(run)["violations"]
    grave = [rule for rule in found if rule["impact"] in ("serious", "critical")]
    return [(rule["id"], node["html"][:200], node["failureSummary"]) for rule in grave for node in rule["nodes"]]


def said(browser):
    """What the page said in the console: errors and warnings."""
    return [entry for entry in browser.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]


def invalid(paths):
    """What html-validate finds wrong with files, by the standard of HTML."""
    if not VALIDATOR.exists():
        pytest.skip(f"html-validate is not installed: {VALIDATOR}")
    config = Path(paths[0]).parent / ".htmlvalidate.json"
    config.write_text(json.dumps({"root": True, "extends": ["html-validate:standard"]}))
    command = [VALIDATOR, "--config", config, "--formatter", "json", *paths]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode in (0, 1) and done.stdout.startswith("["), done.stderr
    found = [(Path(file["filePath"]).name, message) for file in json.loads(done.stdout) for message in file["messages"]]
    return [(name, message["line"], message["ruleId"], message["message"]) for name, message in found]


def printed(page, pdf):
    """Print a page to a PDF."""
    if not CHROMIUM:
        pytest.skip("no Chromium is installed")
    options = [*ARGUMENTS, "--no-pdf-header-footer", f"--print-to-pdf={pdf}"]
    subprocess.run([CHROMIUM, *options, Path(page).as_uri()], check=True, capture_output=True, timeout=120)
