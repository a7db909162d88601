"""`tunefree columns`: the types and roles that a training would give to the columns of a file."""

from __future__ import annotations

from typing import Annotated

from tunefree.cli.options import Files, Json
from tunefree.model_files.plan import TYPES, Plan


def columns(
    plan: Annotated[Plan, ("target", "task", "sample_weight", "groups", "ignore", "text", *TYPES)],
    files: Files,
    json: Json = False,
) -> None:
    """How `tunefree train` would read each column and why, and what columns may be; without training.

    It looks at rows all over the files, and takes the options by which columns are read, so that their effect can be
    seen. For instance:

    tunefree columns people.csv --target income

    tunefree columns people.csv --target income --categorical zip --json
    """
    from tunefree.cli.display import show
    from tunefree.report.learned import blocks_of_view
    from tunefree.workflows.columns import view_of

    show(blocks_of_view(view_of(files.source(is_table=plan.target is not None), plan)), json)
