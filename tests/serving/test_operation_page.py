"""What the page on operation names exists: metrics, options, paths, events; and its files can be parsed."""

from __future__ import annotations

import configparser
import re
from dataclasses import fields
from pathlib import Path

import pytest

from tunefree.cli.app import options_of
from tunefree.serving.events import Counts
from tunefree.serving.routes import description

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "guide" / "operation.md").read_text()
SERVING = ROOT / "src" / "tunefree" / "serving"


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.M | re.S)


def test_options_and_paths_exist():
    known = options_of("serve") | options_of("train") | {"from"}  # which Python does not take as a name
    named = {name.replace("-", "_") for name in re.findall(r"`--([a-z-]+)", PAGE)}
    assert named <= known, named - known
    described = description({"columns": [], "target": "y"})["paths"]
    paths = re.findall(r"`(POST|GET) (/[\w.]+)`", PAGE)
    methods = {(method.upper(), path) for path, methods in described.items() for method in methods}
    assert methods == set(paths) - {("GET", "/openapi.json")}


def test_metrics_and_events_exist():
    metrics = pytest.importorskip("tunefree.serving.metrics")
    pytest.importorskip("yaml")
    names = {f"tunefree_{of.metadata['metric']}_total" for of in fields(Counts)} | {
        f"tunefree_{name}" for name in metrics.GAUGES
    }
    named = set(re.findall(r"tunefree_\w+", PAGE))
    assert len(named) >= 6 and named <= names | {"tunefree_request_seconds_bucket"}, named - names
    sources = "".join(path.read_text() for path in SERVING.glob("*.py"))
    [events] = re.findall(r"JSON lines\s+on\s+standard\s+error: (.*?)\.\n", PAGE, re.S)
    for event in re.findall(r"`([\w ]+)`", events):
        assert re.search(rf'tell\("{event}"', sources), event


def test_files_can_be_parsed():
    yaml = pytest.importorskip("yaml")
    scrape, rules = map(yaml.safe_load, blocks("yaml"))
    assert scrape["scrape_configs"] and all({"alert", "expr"} <= rule.keys() for rule in rules["groups"][0]["rules"])
    unit = configparser.ConfigParser()
    unit.read_string(blocks("ini")[0])
    assert unit["Service"]["ExecStart"].split()[1:3] == ["serve", "people.model"]
    [nginx] = blocks("nginx")
    assert nginx.count("{") == nginx.count("}")
    [container] = blocks("dockerfile")
    lines = container.replace("\\\n", "").splitlines()
    known = {"FROM", "COPY", "RUN", "USER", "WORKDIR", "EXPOSE", "ENTRYPOINT"}
    assert {line.split()[0] for line in lines if line} <= known
    for name in [name for line in lines if line.startswith("COPY ") for name in line.split()[1:-1]]:
        assert (ROOT / name).exists()  # in a clone
    built, installed = (next(i for i, line in enumerate(lines) if word in line) for word in ("pip wheel", "--no-index"))
    assert built < installed  # no release is needed
