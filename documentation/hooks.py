"""Hooks of MkDocs: pages with examples are executed, and reference pages are generated, when the site is built.

With ``TUNEFREE_SITE=quick`` no page is executed.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from documentation import reference  # noqa: E402
from documentation.execution import census_files, executed  # noqa: E402

SHIM = re.compile(r"https://[^\"']*/iframe-worker/shim")  # of the theme; docs/assets has a copy
EXECUTED = (
    "start.md",
    *(f"guide/{name}.md" for name in ("data", "training", "evaluation", "intervals", "counts", "python")),
    "papers/",
    "theory/guarantees.md",
)
BESIDE = {"index.md": "README.md", "changes.md": "CHANGELOG.md"}
GENERATED = {"reference/python.md": reference.python_page, "reference/commands.md": reference.commands_page}


def on_config(config: Any) -> Any:
    """Leave out the page that servers show for others: opened from a disk it finds neither styles nor links."""
    config.theme.static_templates.discard("404.html")
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the generated pages, and those that stand beside docs/."""
    from mkdocs.structure.files import File

    for path, make in GENERATED.items():  # in place of the pages that say how to make them
        files.remove(files.get_file_from_path(path))
        files.append(File.generated(config, path, content=make()))
    for path, name in BESIDE.items():
        text = (ROOT / name).read_text().replace("](docs/", "](").replace("](CHANGELOG.md)", "](changes.md)")
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Execute the pages with examples."""
    path = page.file.src_uri
    if not path.startswith(EXECUTED) or os.environ.get("TUNEFREE_SITE") == "quick":
        return markdown
    from mkdocs.structure.files import File

    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as drawn:
        names = census_files(Path(folder))
        text = executed(markdown, Path(folder), Path(drawn), names)
        written = [*Path(drawn).glob("*.svg"), *Path(folder).glob("*.html")]
        for file in written:
            name = f"{page.file.src_uri.removesuffix('.md')}-{file.name}"
            files.append(File.generated(config, name, content=file.read_text()))
            text = text.replace(f"({file.name})", f"({Path(name).name})")
            text = text.replace(f"`{file.name}`", f"[`{file.name}`]({Path(name).name})")  # a report that a page names
    return text


def on_post_page(output: str, page: Any, config: Any) -> str:
    """Let the search need no network where pages are opened from a disk, and have a name; let keys reach wide code;
    leave out attributes of the theme that HTML does not have."""
    from mkdocs.utils import get_relative_url

    output = SHIM.sub(get_relative_url("assets/iframe-worker.js", page.url), output)
    output = output.replace(' tabindex=""', "")
    output = re.sub(r'(<input [^>]*type="checkbox"[^>]*) autocomplete="off"', r"\1", output)
    search = 'data-md-component="search" role="dialog"'
    output = output.replace(search, f'{search} aria-label="Search"')
    return re.sub(r"<pre(?![^>]*tabindex)([^>]*)>", r'<pre tabindex="0"\1>', output)
