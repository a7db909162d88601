"""The site as it is built: no warning, no network, valid, and as a person sees it on wide and narrow screens."""

import re

import pytest

from tests.browsing import browser, invalid, said, show, violations  # noqa: F401 - a fixture
from tests.documentation.test_pages import built_site

pytestmark = pytest.mark.slow
BLANK = """
return [...document.querySelectorAll('img')].filter(image => image.getAttribute('src') && image.naturalWidth < 2)
  .map(image => image.getAttribute('src'));
"""
WIDE = """
return document.documentElement.scrollWidth > document.documentElement.clientWidth + 1
  ? [...document.querySelectorAll('main *')].filter(element => element.getBoundingClientRect().right > innerWidth + 1)
      .map(element => element.tagName + ' ' + element.textContent.slice(0, 60)) : [];
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    return built_site(tmp_path_factory.mktemp("site"))


def test_the_site_needs_no_network(site):
    built = sorted(site.rglob("*.html"))
    assert len(built) > 25
    for path in built:
        text = path.read_text()
        assert not re.search(r"<(?:script|link|img|iframe)[^>]*(?:src|href)=.?https?://", text), path
        assert "iframe-worker/shim" not in text
        for name in re.findall(r'<img[^>]*src="([^":]+)"', text):
            assert (path.parent / name).stat().st_size > 200
    page = (site / "guide/evaluation.html").read_text()
    assert "area under ROC curve" in page and "figure-" in page
    assert "<svg" in (site / "guide/evaluation-people.html").read_text()
    assert "progressive log-loss" in (site / "start.html").read_text()


def test_pages_are_valid_html(site):
    assert invalid(sorted(site.rglob("*.html"))) == []


@pytest.mark.parametrize("width", [1280, 390])
def test_every_page_can_be_read(browser, site, width):  # noqa: F811
    wrong = {}
    for path in sorted(site.rglob("*.html")):
        show(browser, path.as_uri(), width)
        problems = [*violations(browser), *browser.execute_script(BLANK), *browser.execute_script(WIDE), *said(browser)]
        if problems:
            wrong[str(path.relative_to(site))] = problems
    assert not wrong


def test_the_search_and_the_colours_work(browser, site):  # noqa: F811
    from selenium.webdriver.support.wait import WebDriverWait

    show(browser, (site / "index.html").as_uri(), 1280)
    browser.find_element("css selector", "input.md-search__input").send_keys("certificate")
    WebDriverWait(browser, 20).until(lambda page: page.find_elements("css selector", ".md-search-result__item"))
    show(browser, (site / "index.html").as_uri(), 1280)
    browser.find_element("css selector", "label[for='__palette_1']").click()
    assert browser.execute_script("return document.body.getAttribute('data-md-color-scheme')") == "slate"
    assert violations(browser) == []
    assert not said(browser)
