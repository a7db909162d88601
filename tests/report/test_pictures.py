"""Pictures: what is drawn is there, twice the same bytes, and without matplotlib the remedy is told."""

from __future__ import annotations

import builtins

import pyarrow as pa
import pytest
from pyarrow import parquet

from tests.cli.test_cli import run  # noqa: F401 - a fixture
from tests.workflows.test_training import people
from tunefree.report import pictures
from tunefree.stream.source import open_source
from tunefree.workflows.comparison import compare
from tunefree.workflows.plan import Plan


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "people.parquet"
    parquet.write_table(pa.table(people()), path)
    return path


@pytest.mark.parametrize("target", ["rich", "pay"])
@pytest.mark.parametrize("rows", [20, 2000])
def test_the_picture_is_drawn(tmp_path, target, rows):
    images = pytest.importorskip("matplotlib.image")
    compared = compare(open_source(people(rows)), Plan(target=target))
    pictures.draw(compared, tmp_path / "plot.png")
    image = images.imread(tmp_path / "plot.png")[..., :3]
    ink = (image.min(axis=2) < 0.9).mean()
    assert 0.005 < ink < 0.3
    colours = {tuple(pixel) for pixel in (255 * image.reshape(-1, 3)).round().astype(int).tolist()}
    named = pictures.named(compared)
    assert 0 < len(named) <= len(pictures.STYLES)
    for style in pictures.STYLES[: len(named)]:
        assert tuple(bytes.fromhex(style["color"][1:])) in colours
    for name in ("plot.svg", "plot.pdf"):
        pictures.draw(compared, tmp_path / name)
        first = (tmp_path / name).read_bytes()
        pictures.draw(compared, tmp_path / name)
        assert (tmp_path / name).read_bytes() == first
    text = (tmp_path / "plot.svg").read_text()
    for words in (">rows<", f"progressive {compared.loss_name}", "pool", named[0].name):
        assert words in text


def test_the_picture_on_the_command_line(run, data, tmp_path):  # noqa: F811
    pytest.importorskip("matplotlib")
    status, _, err = run("compare", data, "-t", "rich", "--learner", "scinol2", "--plot", tmp_path / "plot.pdf", "-q")
    assert status == 0, err
    assert (tmp_path / "plot.pdf").read_bytes().startswith(b"%PDF")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["people.parquet", "plot.pdf"]


def test_without_matplotlib_the_remedy_is_told_at_once(run, data, tmp_path, monkeypatch):  # noqa: F811
    original = builtins.__import__

    def without(name, *arguments, **options):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return original(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    status, out, err = run("compare", data, "-t", "rich", "--plot", tmp_path / "plot.png")
    assert (status, out) == (2, "")
    assert "pip install 'tunefree[plot]'" in err
    assert not (tmp_path / "plot.png").exists()
