"""Executes the code of a page, as a reader would type it, and puts what is printed below.

Blocks of Python share one namespace, as in a notebook; the value of a last expression is shown. Lines of a console
block that begin with ``$ tunefree`` are run as commands. All of a page runs in one folder. A block that is headed by
``<!-- not executed: why -->`` is left as it is.
"""

from __future__ import annotations

import ast
import contextlib
import io
import os
import re
import shlex
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

BLOCK = re.compile(
    r"(?P<before><!-- not executed: [^>]*-->\n)?^```(?P<language>python|console)\n(?P<code>.*?)^```\n", re.M | re.S
)
MOST_LINES = 40  # of an output that are shown
WIDTH = "100"  # of what commands print


def census_files(folder: Path, n_rows: int = 4000, n_test: int = 2000) -> dict[str, Any]:
    """Write the files that the pages of the guide use, those of ``docs/start.md``, and return the same tables.

    Parameters
    ----------
    folder : Path
        Where ``people.csv``, ``more.csv`` and ``test.csv`` are written.
    n_rows, n_test : int
        Number of rows of the first, and of the others.

    Returns
    -------
    dict
        The Arrow tables ``people`` and ``test``.
    """
    from pyarrow import compute, csv, parquet

    census = parquet.read_table(files("tunefree") / "data" / "adult.parquet")
    is_train = compute.equal(census["split"], "train")
    rows = census.filter(is_train).drop_columns("split")
    people, further = rows.slice(0, n_rows), rows.slice(n_rows, n_test)
    test = census.filter(compute.invert(is_train)).drop_columns("split").slice(0, n_test)
    csv.write_csv(people, folder / "people.csv")
    csv.write_csv(further, folder / "more.csv")
    csv.write_csv(test, folder / "test.csv")
    return {"people": people, "test": test}


class PageError(Exception):
    """A block of a page that does not run."""


def executed(
    text: str,
    folder: Path,
    pictures: Path | None = None,
    names: dict[str, Any] | None = None,
    skipped: tuple[str, ...] = (),
) -> str:
    """A page with the outputs of its blocks.

    Parameters
    ----------
    text : str
        Markdown.
    folder : Path
        Where blocks run.
    pictures : Path, optional
        Where figures of matplotlib are written as SVG; they are closed after each block.
    names : dict, optional
        What blocks of Python know.
    skipped : tuple of str
        Beginnings of commands that are not run.

    Returns
    -------
    str

    Raises
    ------
    PageError
        If a block fails; the message names it.
    """
    namespace: dict[str, Any] = {"__name__": "page", **(names or {})}
    count = 0

    def run(block: re.Match[str]) -> str:
        nonlocal count
        if block["before"]:
            return block[0].removeprefix(block["before"])
        count += 1
        code = block["code"]
        try:
            if block["language"] == "console":
                return _console(code, skipped)
            printed = _python(code, namespace)
        except BaseException as error:
            raise PageError(f"block {count}: {type(error).__name__}: {error}\n{code}") from error
        shown = f"\n```text\n{_cut(printed)}```\n" if printed.strip() else ""
        return f"```python\n{code}```\n{shown}{_pictures(pictures, count)}"

    home = Path.cwd()
    os.chdir(folder)
    before = {name: os.environ.get(name) for name in ("COLUMNS", "MPLBACKEND", "NO_COLOR")}
    os.environ.update({"COLUMNS": WIDTH, "MPLBACKEND": "svg", "NO_COLOR": "1"})
    try:
        return BLOCK.sub(run, text)
    finally:
        os.chdir(home)
        for name, value in before.items():
            os.environ.pop(name, None) if value is None else os.environ.update({name: value})


def _python(code: str, namespace: dict[str, Any]) -> str:
    """Run a block and return what it prints, and the value of a last expression."""
    parts = ast.parse(code)
    last = parts.body.pop() if parts.body and isinstance(parts.body[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(parts, "<page>", "exec"), namespace)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), "<page>", "eval"), namespace)
            if value is not None:
                print(repr(value))
    return printed.getvalue()


def _console(code: str, skipped: tuple[str, ...]) -> str:
    """Run the commands of a block; what follows a command in the page is replaced by what it prints."""
    lines = []
    for line in code.splitlines():
        if line.startswith("$ "):
            lines.append(line)
            if line.startswith("$ tunefree ") and not line[2:].startswith(skipped or ("\n",)):
                lines += _cut(_command(shlex.split(line[2:], comments=True)[1:])).splitlines()
    return "```console\n" + "\n".join(lines) + "\n```\n"


def _command(words: list[str]) -> str:
    """What a command prints."""
    from tunefree.cli import app

    printed, before, errors = io.StringIO(), sys.argv, io.StringIO()
    sys.argv = ["tunefree", *words]
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(errors):
            app.main()
    except SystemExit as end:
        if end.code:
            raise PageError(f"tunefree {shlex.join(words)}: {errors.getvalue()}") from None
    finally:
        sys.argv = before
    return printed.getvalue()


def _cut(text: str) -> str:
    lines = [line.rstrip() for line in text.splitlines()]
    if len(lines) > MOST_LINES:
        lines = [*lines[:MOST_LINES], f"... and {len(lines) - MOST_LINES} more lines"]
    return "\n".join(lines) + "\n" if lines else ""


def _pictures(folder: Path | None, block: int) -> str:
    """Write the figures that are open, and the lines that show them."""
    if "matplotlib.pyplot" not in sys.modules:
        return ""
    from matplotlib import pyplot

    shown = []
    for number in pyplot.get_fignums():
        name = f"figure-{block}-{number}.svg"
        if folder is not None:
            figure = pyplot.figure(number)
            figure.savefig(folder / name, metadata={"Date": None})
            shown.append(f"\n![{_alternative(figure)}]({name})\n")
    pyplot.close("all")
    return "".join(shown)


def _alternative(figure: Any) -> str:
    """What a figure shows, for those who do not see it."""
    labelled = [axes for axes in figure.axes if axes.get_xlabel() or axes.get_ylabel()]
    described = [f"{axes.get_ylabel() or axes.get_title()} against {axes.get_xlabel()}" for axes in labelled]
    return "; ".join(described) or "figure"
