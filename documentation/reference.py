"""Reference pages: every public object of the package, and every command, from their docstrings and options."""

from __future__ import annotations

import importlib
import inspect
import re
from typing import Any

MODULES = {  # modules whose public functions and classes are documented besides those of the package
    "tunefree.theory": "Theorems and bounds",
    "tunefree.papers": "Algorithms of the papers",
    "tunefree.training.training": "Training",
    "tunefree.workflows.evaluation": "Evaluation",
    "tunefree.workflows.explanation": "Explanation",
    "tunefree.workflows.certification": "Certification",
    "tunefree.report.page": "Reports",
}


def python_page() -> str:
    """The page of public objects, as Markdown."""
    import tunefree

    lines = ["# Python", "", "Everything public, from its docstring.", "", "## tunefree", ""]
    for name in (name for name in tunefree.__all__ if not name.startswith("__")):
        lines += _entry(name, getattr(tunefree, name), 3)
    for module, title in MODULES.items():
        loaded = importlib.import_module(module)
        lines += [f"## {title}", "", f"`{module}`", ""]
        names = getattr(loaded, "__all__", None) or [name for name in vars(loaded) if not name.startswith("_")]
        for name in names:
            public = getattr(loaded, name)
            is_here = getattr(public, "__module__", "").startswith(module)
            if (inspect.isfunction(public) or inspect.isclass(public)) and is_here and public.__doc__:
                lines += _entry(name, public, 3)
    return "\n".join(lines) + "\n"


def _entry(name: str, public: Any, level: int) -> list[str]:
    try:
        signature = f"{name}{inspect.signature(public)}"
    except (TypeError, ValueError):
        signature = name
    about = _docstring(inspect.getdoc(public) or "")
    lines = [f"{'#' * level} {name}", "", "```text", _wrapped(signature), "```", "", *about]
    if inspect.isclass(public):
        for method, function in sorted(vars(public).items()):
            function = getattr(function, "__func__", function)
            if inspect.isfunction(function) and not method.startswith("_") and function.__doc__:
                called = f"{method}{inspect.signature(function)}".replace("self, ", "").replace("(self)", "()")
                lines += [f"**`{called}`**", ""]
                lines += _docstring(inspect.getdoc(function) or "")
    return lines


def _wrapped(signature: str) -> str:
    return signature if len(signature) < 90 else signature.replace("(", "(\n    ", 1).replace(", ", ",\n    ")


def _docstring(text: str) -> list[str]:
    """A numpydoc docstring as Markdown: sections in bold, parameters as a list, examples as code."""
    lines: list[str] = []
    section, code = "", False
    rows = text.splitlines()
    for number, line in enumerate(rows):
        following = rows[number + 1] if number + 1 < len(rows) else ""
        if re.fullmatch(r"-{3,}", following.strip()) and line.strip():
            lines += ["```", ""] if code else []
            section, code = line.strip(), False
            lines += ["", f"**{section}**", ""]
        elif re.fullmatch(r"-{3,}", line.strip()):
            continue
        elif section == "Examples":
            if not code and line.strip():
                lines.append("```pycon")
                code = True
            lines += [line] if code else []
        elif section and line and not line.startswith(" "):
            lines.append(f"- `{line}`")
        else:
            lines.append(_plain(line))
    return [*lines, *(["```"] if code else []), ""]


def _plain(line: str) -> str:
    """A line of prose: roles and double backticks are Markdown's, and angle brackets are text."""
    line = re.sub(r":\w+:`~?([^`]*)`", r"`\1`", line).replace("``", "`")
    return line if "`" in line else line.replace("<", "&lt;").replace("*", "\\*").replace("[", "\\[")


def commands_page() -> str:
    """The page of commands, as Markdown."""
    from tunefree.cli.app import COMMANDS, command_of

    lines = ["# Commands", "", "What `tunefree COMMAND --help` prints.", ""]
    for name in COMMANDS:
        command = command_of(name, COMMANDS[name])
        lines += [f"## tunefree {name}", "", *_indented(inspect.cleandoc(command.help or "")), ""]
        lines += ["| option | what it does |", "|---|---|"]
        for parameter in command.params:
            options = ", ".join(f"`{text}`" for text in parameter.opts)
            shown = options if parameter.opts[0].startswith("-") else f"`{parameter.name.upper()}`"
            text = (getattr(parameter, "help", None) or "").replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")
            lines.append(f"| {shown} | {text} |")
        lines.append("")
    return "\n".join(lines) + "\n"


def _indented(text: str) -> list[str]:
    """Paragraphs, of which those that are commands are code."""
    lines = []
    for paragraph in re.split(r"\n\s*\n", text):
        joined = " ".join(paragraph.split())
        lines += ["", f"    {joined}" if joined.startswith(("tunefree ", "curl ")) else joined.replace("<", "&lt;")]
    return lines
