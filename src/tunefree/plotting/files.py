"""Figures as files, and as SVG in a page. Output is reproducible to the byte."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tunefree.core.errors import ModelError
from tunefree.core.storage import whole_file
from tunefree.plotting.style import DARK, SOFT

DPI = 200  # also for the layout, so that labels fit
KINDS = {".png": "png", ".svg": "svg", ".pdf": "pdf"}
DATES: dict[str, Any] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}  # no dates, for reproducible output
RC: dict[Any, Any] = {"svg.hashsalt": "tunefree", "svg.fonttype": "none", "axes.linewidth": 0.8}
TEXTS = "text.color", "axes.labelcolor", "xtick.labelcolor", "ytick.labelcolor"
RC_OF_PAGES: dict[Any, Any] = RC | {"font.size": 11.0, "font.sans-serif": ["DejaVu Sans", "Verdana"]}
RC_OF_PAGES |= dict.fromkeys(TEXTS, DARK) | dict.fromkeys(("axes.edgecolor", "xtick.color", "ytick.color"), SOFT)
# Parts of a file that a page does not need, ids and references to them, and superfluous digits in tags.
UNUSED = re.compile(r"(?s)<!--.*?-->|<metadata>.*?</metadata>|<defs>\s*<style.*?</style>\s*</defs>")
IDS, DIGITS = re.compile(r'( id="|url\(#|href="#)'), re.compile(r"(\.\d\d)\d+(?=[^<>]*>)")

Draw = Callable[[Any], Any]  # draws on a matplotlib figure


def is_installed() -> bool:
    """Whether matplotlib is installed."""
    return find_spec("matplotlib") is not None


def check(path: Path) -> None:
    """Raise an error if a picture cannot be drawn, before anything is computed for it.

    Raises a ModelError for another extension, and without matplotlib.
    """
    if path.suffix.lower() not in KINDS:
        raise ModelError(f"{path}: pictures are written as {', '.join(KINDS)}; name the file so")
    if not is_installed():
        raise ModelError(
            "`plot` needs matplotlib, which is not installed; pip install 'tunefree[plot]', or leave `plot` out"
        )


def save(draw: Draw, inches: tuple[float, float], path: Path) -> None:
    """Draw a figure to a file.

    ``path``: a .png, .svg or .pdf file.
    """
    kind = KINDS[path.suffix.lower()]
    with _figure(draw, inches, RC) as figure, whole_file(path) as file:
        figure.savefig(file, format=kind, dpi=DPI, metadata=DATES.get(kind))


def svg(draw: Draw, inches: tuple[float, float], title: str, description: str, prefix: str) -> str:
    """Render a figure as an SVG element of a page.

    ``inches``: width and height, which give the ratio of the sides and the relative size of text.
    ``title``, ``description``: for screen readers.
    ``prefix``: makes ids unique in a page.
    """
    buffer = io.StringIO()
    with _figure(draw, inches, RC_OF_PAGES) as figure:
        figure.savefig(buffer, format="svg", metadata=DATES["svg"], transparent=True)
    text = UNUSED.sub("", buffer.getvalue()).replace("xlink:href", "href")
    box, body = re.search(r'viewBox="[^"]*"', text), text[text.index(">", text.index("<svg")) + 1 :]
    body = DIGITS.sub(r"\1", IDS.sub(rf"\1{prefix}-", re.sub(r"\s*\n\s*", " ", body)))
    names = f'<title id="{prefix}-t">{escape(title)}</title><desc id="{prefix}-d">{escape(description)}</desc>'
    return f'<svg {box and box[0]} role="img" aria-labelledby="{prefix}-t {prefix}-d">{names}{body}'


@contextmanager
def _figure(draw: Draw, inches: tuple[float, float], style: dict[Any, Any]) -> Iterator[Any]:
    """A drawn figure with its layout; the style is active inside the context."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(style):
        figure = Figure(figsize=inches, dpi=DPI, layout="constrained")
        draw(figure)
        layout: Any = figure.get_layout_engine()
        layout.execute(figure)  # run once, not whenever the figure is drawn
        figure.set_layout_engine("none")
        for axes in figure.axes:
            edges: Any = [round(edge, 6) for edge in axes.get_position().bounds]  # the solver's last digits vary
            axes.set_position(edges)
        yield figure
