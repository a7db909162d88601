"""The page on adding a command: its code runs as it stands."""

from __future__ import annotations

from tests.extending import run_page
from tunefree.cli import app as cli


def test_the_page_on_adding_a_command(monkeypatch):
    monkeypatch.setattr(cli.COMMANDS, "_places", dict(cli.COMMANDS._places))  # the command goes with the test
    monkeypatch.setattr(cli.COMMANDS, "_loaded", dict(cli.COMMANDS._loaded))
    assert "balance" not in cli.COMMANDS
    page = run_page("command.md")
    assert cli.COMMANDS["balance"] is page["balance"]
