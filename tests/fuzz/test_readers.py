"""Whatever bytes a file has, it is read or refused; `make fuzz` tries many more, and files that failed stay here."""

from pathlib import Path

import numpy as np
import pytest

from tests.fuzz.readers import FORMATS, changed, corpus, encoder_of, outcome

FAILURES = (Path(__file__).parent / "failures").glob("*")  # files that `make fuzz` found
KEPT = sorted(path for path in FAILURES if path.suffix != ".model")


@pytest.mark.parametrize("suffix", FORMATS)
def test_changed_files_are_read_or_refused(tmp_path, suffix):
    path, whole = tmp_path / f"t{suffix}", corpus(suffix)
    path.write_bytes(whole)
    known, found = encoder_of(path), [outcome(path)]
    for seed in range(150):
        path.write_bytes(changed(whole, suffix, np.random.default_rng(seed)))
        found.append(outcome(path, known if seed % 2 else None))
    assert found[0] == "read" and set(found) <= {"read", "refused"}
    assert "refused" in found or suffix in (".svm", ".vw")  # where a bad row is skipped


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.name)
def test_files_that_once_failed(path):
    assert outcome(path) in ("read", "refused")
