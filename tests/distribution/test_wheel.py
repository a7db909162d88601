"""The wheel: it has all files of the package, and works in an empty environment."""

import json
import re
import subprocess
import sys
import urllib.request
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROWS = "age,city,income\n" + "".join(
    f"{20 + i % 40},{'ab'[i % 2]},{'high' if i % 40 > 20 else 'low'}\n" for i in range(300)
)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this source, as `python -m build` makes it."""
    folder = tmp_path_factory.mktemp("dist")
    build = "import sys; from hatchling.build import build_wheel; build_wheel(sys.argv[1])"
    subprocess.run([sys.executable, "-c", build, str(folder)], cwd=ROOT, check=True, capture_output=True)
    (path,) = folder.iterdir()
    return path


def test_a_wheel_has_all_files_of_the_package(wheel):
    files = {path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src").rglob("*") if path.is_file()}
    files = {name for name in files if "__pycache__" not in name and ".egg-info" not in name}
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
        entry_points = archive.read(next(name for name in archive.namelist() if name.endswith("entry_points.txt")))
    assert packed == files and any(name.endswith(".xz") for name in files)
    assert b"tunefree = tunefree.__main__:main" in entry_points


@pytest.mark.slow
def test_a_wheel_works_in_an_empty_environment(wheel, tmp_path):
    environment, model = tmp_path / "environment", tmp_path / "a.model"
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    pip = [environment / "bin" / "python", "-m", "pip", "install", "--quiet"]
    lock = ["--constraint", ROOT / "requirements.lock"]
    subprocess.run([*pip, *lock, f"{wheel}[plot,serve]"], check=True, cwd=tmp_path)
    (tmp_path / "rows.csv").write_text(ROWS)

    def run(*arguments: object) -> str:
        command = [environment / "bin" / "tunefree", *map(str, arguments)]
        return subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True).stdout

    assert re.fullmatch(r"tunefree \d+\.\d+\.\d+\n", run("--version"))
    run("train", "rows.csv", "--target", "income", "-o", model)
    run("predict", model, "rows.csv", "-o", "predictions.csv")
    assert len((tmp_path / "predictions.csv").read_text().splitlines()) == 301
    run("report", model, "rows.csv", "-o", "report.html")
    assert "<svg" in (tmp_path / "report.html").read_text()
    assert "age" in run("inspect", model)

    serve = [environment / "bin" / "tunefree", "serve", model, "--port", "0"]
    with subprocess.Popen(serve, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        address = next(found[0] for line in process.stderr if (found := re.search(r"http://[\d.]+:\d+", line)))
        rows = json.dumps([{"age": 55, "city": "a"}]).encode()
        request = urllib.request.Request(f"{address}/predict", rows, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request) as response:
            assert response.status == 200 and json.load(response)
        process.terminate()
