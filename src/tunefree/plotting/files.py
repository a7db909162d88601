"""Figures as files, and as SVG in a page. The same figure gives the same bytes."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

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
SVG, LINK = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}href"
FAMILY = re.compile(r"""\s*font-family:[^;]*;?|(font:[^;']*?px)[^;]*""")
DIGITS = re.compile(r"(\.\d\d)\d+")  # of places, beyond what is seen
USED = re.compile(r"url\(#([\w-]+)\)")

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
    ``prefix``: of the ids, which are unique in a page.
    """
    written = io.BytesIO()
    with _figure(draw, inches, RC_OF_PAGES) as figure:
        figure.savefig(written, format="svg", metadata=DATES["svg"], transparent=True)
    for namespace in ("", "xlink"):
        ElementTree.register_namespace(namespace, (SVG if not namespace else LINK).strip("{").partition("}")[0])
    root = ElementTree.fromstring(written.getvalue())
    for name in ("width", "height", "version"):
        root.attrib.pop(name, None)
    root.attrib |= {"role": "img", "aria-labelledby": f"{prefix}-t {prefix}-d"}
    for child in [child for child in root if child.tag == f"{SVG}metadata" or child.find(f"{SVG}style") is not None]:
        root.remove(child)
    _name_parts(root, prefix)
    for place, (tag, text) in enumerate((("title", title), ("desc", description))):
        element = ElementTree.Element(f"{SVG}{tag}", {"id": f"{prefix}-{tag[0]}"})
        element.text = text
        root.insert(place, element)
    text = ElementTree.tostring(root, "unicode")
    return text.replace(f' xmlns="{SVG[1:-1]}"', "").replace(f' xmlns:xlink="{LINK[1:-5]}"', "")


def style_of_pages() -> tuple[str, str]:
    """The colours on light and on dark ground, as declarations of a style sheet."""
    light, dark = (
        " ".join(f"{_variable(colour)}: {of_page[k]};" for colour, of_page in ON_PAGES.items()) for k in range(2)
    )
    return light, dark


def _variable(colour: str) -> str:
    return f"--c{colour[1:].lower()}"


def _name_parts(root: ElementTree.Element, prefix: str) -> None:
    """Keep the ids that are used, with the prefix; no fonts, no spaces; and variables of the style for colours."""
    used = set()
    for element in root.iter():
        if LINK in element.attrib:
            element.attrib["href"] = f"#{prefix}-{element.attrib.pop(LINK)[1:]}"
            used.add(element.attrib["href"][1:])
        for name, value in list(element.attrib.items()):
            if name in ("d", "x", "y", "transform"):
                element.attrib[name] = " ".join(DIGITS.sub(r"\1", value).split())
            elif name in ("fill", "stroke"):  # of hatches
                element.attrib["style"] = f"{name}: {element.attrib.pop(name)}"
            elif "url(#" in value:
                used.update(f"{prefix}-{part}" for part in USED.findall(value))
                element.attrib[name] = USED.sub(lambda match: f"url(#{prefix}-{match[1]})", value)
    for element in root.iter():
        element.text, element.tail = ((part or "").strip() and part for part in (element.text, element.tail))
        if "id" in element.attrib:
            name = f"{prefix}-{element.attrib.pop('id')}"
            element.attrib |= {"id": name} if name in used else {}
        if "style" in element.attrib:
            style = FAMILY.sub(lambda match: match[1] or "", element.attrib["style"])
            for colour in ON_PAGES:
                style = style.replace(colour.lower(), f"var({_variable(colour)})")
            element.attrib["style"] = style


@contextmanager
def _figure(draw: Draw, inches: tuple[float, float], style: dict[Any, Any]) -> Iterator[Any]:
    """A figure that is drawn and laid out, while its style holds."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(style):
        figure = Figure(figsize=inches, layout="constrained")
        draw(figure)
        _lay_out(figure)
        yield figure


def _lay_out(figure: Any) -> None:
    """Lay the figure out now, with rounded places: the solver's last digits vary."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for axes in figure.axes:
        axes.set_position([round(edge, 6) for edge in axes.get_position().bounds])
