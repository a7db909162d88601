"""Figures as files, and as SVG in a page. The same figure gives the same bytes."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tunefree.core.errors import ModelError
from tunefree.core.storage import check_writable, whole_file
from tunefree.plotting.style import DARK, ON_PAGES, SOFT

KINDS = {".png": "png", ".svg": "svg", ".pdf": "pdf"}
DATES: dict[str, Any] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}  # none: same input, same bytes
RC: dict[Any, Any] = {"svg.hashsalt": "tunefree", "svg.fonttype": "none", "axes.linewidth": 0.8}
# In a page all text has a colour that the page can replace; black text has none in matplotlib's SVG.
TEXTS = "text.color", "axes.labelcolor", "xtick.labelcolor", "ytick.labelcolor"
RC_OF_PAGES: dict[Any, Any] = RC | {"font.size": 11.0} | dict.fromkeys(TEXTS, DARK)
RC_OF_PAGES |= dict.fromkeys(("axes.edgecolor", "xtick.color", "ytick.color"), SOFT)
# Parts of a file that a page has no use for, and what is replaced in its tags.
UNUSED = re.compile(r"(?s)<!--.*?-->|<metadata>.*?</metadata>|<defs>\s*<style.*?</style>\s*</defs>")
FAMILY = re.compile(r"""\s*font-family:[^;"]*;?|(font:[^;'"]*?px)[^;"]*""")
PLACES, DIGITS = re.compile(r' (?:d|x|y|transform)="[^"]*"'), re.compile(r"(\.\d\d)\d+")
USED, IDS = re.compile(r'(url\(|href=")#([\w-]+)'), re.compile(r' id="([^"]+)"')
TAG, OF_HATCHES = re.compile(r"<[^>]+>"), re.compile(r' (fill|stroke)="([^"]*)"')  # where variables have no effect

Draw = Callable[[Any], Any]  # on a matplotlib figure


def is_installed() -> bool:
    """Whether there is matplotlib."""
    return find_spec("matplotlib") is not None


def check(path: Path) -> None:
    """Raise an error if a picture cannot be drawn, before anything is computed for it.

    Raises a ModelError if the file's extension is not that of a picture, it cannot be written, or matplotlib is not
    installed.
    """
    if path.suffix.lower() not in KINDS:
        raise ModelError(f"{path}: pictures are written as {', '.join(KINDS)}; name the file so")
    check_writable(path)
    if not is_installed():
        raise ModelError(
            "`plot` needs matplotlib, which is not installed; pip install 'tunefree[plot]', or leave `plot` out"
        )


def save(draw: Draw, inches: tuple[float, float], path: Path) -> None:
    """Draw a figure to a file.

    ``path``: a .png, .svg or .pdf file.
    """
    check(path)
    kind = KINDS[path.suffix.lower()]
    with _figure(draw, inches, RC) as figure, whole_file(path) as file:
        figure.savefig(file, format=kind, dpi=200, metadata=DATES.get(kind))


def svg(draw: Draw, inches: tuple[float, float], title: str, description: str, prefix: str) -> str:
    """A figure as an element of a page: as wide as its place, with the colours of the page's style.

    ``inches``: width and height, which give the ratio of the sides and the relative size of text.
    ``title``, ``description``: for those who do not see it.
    ``prefix``: makes ids unique in a page.
    """
    written = io.StringIO()
    with _figure(draw, inches, RC_OF_PAGES) as figure:
        figure.savefig(written, format="svg", metadata=DATES["svg"], transparent=True)
    text = UNUSED.sub("", written.getvalue()).replace("xlink:href", "href")
    box, body = re.search(r'viewBox="[^"]*"', text), text[text.index(">", text.index("<svg")) + 1 :]
    used = {name for _, name in USED.findall(body)}
    body = TAG.sub(partial(_cleaned, prefix, used), re.sub(r">\s+<", "><", body)).strip()
    names = f'<title id="{prefix}-t">{escape(title)}</title><desc id="{prefix}-d">{escape(description)}</desc>'
    return f'<svg {box and box[0]} role="img" aria-labelledby="{prefix}-t {prefix}-d">{names}{body}'


def _cleaned(prefix: str, used: set[str], tag: re.Match[str]) -> str:
    """A tag with those ids that are used, behind a prefix, with few digits, and with variables for colours."""
    text = OF_HATCHES.sub(r' style="\1: \2"', " ".join(tag[0].split()).replace(' "', '"'))
    text = IDS.sub(lambda name: f' id="{prefix}-{name[1]}"' if name[1] in used else "", text)
    text = FAMILY.sub(lambda font: font[1] or "", USED.sub(rf"\1#{prefix}-\2", text))
    for colour in ON_PAGES:
        text = text.replace(colour.lower(), f"var({_variable(colour)})")
    return PLACES.sub(lambda place: DIGITS.sub(r"\1", place[0]), text)


def style_of_pages() -> tuple[str, str]:
    """The colours on light and on dark ground, as declarations of a style sheet."""
    light, dark = (
        " ".join(f"{_variable(colour)}: {shades[k]};" for colour, shades in ON_PAGES.items()) for k in range(2)
    )
    return light, dark


def _variable(colour: str) -> str:
    return f"--c{colour[1:].lower()}"


@contextmanager
def _figure(draw: Draw, inches: tuple[float, float], style: dict[Any, Any]) -> Iterator[Any]:
    """A figure that is drawn and laid out, while its style holds."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(style):
        figure = Figure(figsize=inches, layout="constrained")
        draw(figure)
        layout: Any = figure.get_layout_engine()
        layout.execute(figure)  # once, and not whenever it is drawn
        figure.set_layout_engine("none")
        for axes in figure.axes:
            edges: Any = [round(edge, 6) for edge in axes.get_position().bounds]  # the solver's last digits vary
            axes.set_position(edges)
        yield figure
