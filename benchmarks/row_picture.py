"""The figure of docs/architecture.md: the way of a row, from a file to what is learned and predicted.

It writes docs/figures/row.png and .svg, and needs matplotlib only.
"""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib as mpl
from common import parser_of, write_figure
from matplotlib.patches import FancyBboxPatch

mpl.use("Agg")
import matplotlib.pyplot as plt

BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#555555"
WIDTH, HEIGHT = 2.9, 1.25
# Name, what happens there, and the middle of the box.
BOXES = {
    "stream": ("reads a chunk of a file,\nencodes it to rows", (1.7, 5.6)),
    "training": ("hands rows to the model,\nkeeps progress, checkpoints", (5.6, 5.6)),
    "pool": ("each piece of rows:\npredict, then learn", (9.5, 5.6)),
    "learners": ("online linear learners", (5.6, 3.1)),
    "generations": ("trees grown on the rows so far;\ntheir leaves go on learning", (9.5, 3.1)),
    "mixing": ("mean of the members,\nand corrections of it", (7.55, 0.8)),
    "theory": ("evidence for\ncertificates", (1.7, 0.8)),
}
# From, to, what passes, where it is written (relative to the middle), and whether it is a prediction.
ARROWS = (
    ("stream", "training", "batch", (0.0, 0.22), False),
    ("training", "pool", "rows", (0.0, 0.22), False),
    ("pool", "learners", "rows", (-0.5, 0.12), False),
    ("pool", "generations", "rows", (0.42, 0.0), False),
    ("learners", "mixing", "predictions", (-0.72, -0.05), True),
    ("generations", "mixing", "predictions", (0.72, -0.05), True),
    ("mixing", "theory", "prediction and loss of each row", (0.0, 0.22), True),
)


def edge(start: tuple[float, float], end: tuple[float, float]) -> tuple[float, float]:
    """Where the line from the middle of a box to another point leaves the box."""
    x, y = end[0] - start[0], end[1] - start[1]
    reach = min(WIDTH / 2 / abs(x) if x else 9.0, HEIGHT / 2 / abs(y) if y else 9.0)
    return start[0] + reach * x, start[1] + reach * y


def main(arguments: Sequence[str] | None = None) -> None:
    """Draw the figure."""
    options = parser_of(__doc__).parse_args(arguments)
    figure, axes = plt.subplots(figsize=(8.4, 4.9), layout="constrained")
    axes.set(xlim=(0, 11.2), ylim=(0, 6.4), aspect="equal")
    axes.axis("off")
    for name, (text, (x, y)) in BOXES.items():
        corner = x - WIDTH / 2, y - HEIGHT / 2
        style = "round,pad=0,rounding_size=0.12"
        axes.add_patch(FancyBboxPatch(corner, WIDTH, HEIGHT, boxstyle=style, fc="white", ec=GREY, lw=1.2))
        axes.text(x, y + 0.33, name, ha="center", va="center", fontsize=10.5, weight="bold")
        axes.text(x, y - 0.17, text, ha="center", va="center", fontsize=8)
    for first, second, text, (right, up), is_prediction in ARROWS:
        start, end = BOXES[first][1], BOXES[second][1]
        begin, stop = edge(start, end), edge(end, start)
        colour = ORANGE if is_prediction else BLUE
        line = {"arrowstyle": "-|>", "color": colour, "lw": 1.8, "ls": "--" if is_prediction else "-"}
        axes.annotate("", stop, begin, arrowprops=line)
        middle = (begin[0] + stop[0]) / 2 + right, (begin[1] + stop[1]) / 2 + up
        axes.text(*middle, text, ha="center", va="center", fontsize=8.5, color=colour)
    axes.text(0.25, 3.35, "solid: rows", color=BLUE, fontsize=9)
    axes.text(0.25, 2.95, "dashed: predictions", color=ORANGE, fontsize=9)
    write_figure(figure, "row", options.quick)


if __name__ == "__main__":
    main()
