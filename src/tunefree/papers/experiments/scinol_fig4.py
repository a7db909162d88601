"""Kempka, Kotlowski, Warmuth 2019, Figure 4: test accuracy after each epoch, from the runs of Figure 2."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from tunefree.papers.experiments import scinol_fig2

EXPERIMENT = replace(
    scinol_fig2.EXPERIMENT,
    name="scinol-fig4",
    title="Kempka, Kotlowski, Warmuth 2019, Figure 4: accuracy on six data sets, epoch after epoch",
    report=partial(scinol_fig2.report, kind="accuracy"),
    parts_from="scinol-fig2",
)
