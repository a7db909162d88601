"""Streams of categories and words without end, under a memory limit: some are forgotten, the same in any batches."""

import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.interruptions import Asking
from tunefree.core import storage
from tunefree.model_files.plan import Plan
from tunefree.model_files.trained import Trained
from tunefree.report.learned import summary
from tunefree.stream.feature_ids import FeatureIds
from tunefree.stream.source import open_source
from tunefree.training.memory_limit import limit_of, model_bytes
from tunefree.training.stopping import Interrupted, Stop
from tunefree.training.training import learn_more, train

SCINOL = Plan(target="y", learner="scinol2", sample_weight="w")
LIMIT = "700K"


def stream(n: int, seed: int = 0) -> list[str]:
    """CSV lines, the header first: ids come into use at a steady rate and fade, a few words stay for ever."""
    random = np.random.default_rng(seed)
    t = np.arange(n)
    ids = np.maximum(t // 8 - random.geometric(1 / 100, n), 0)
    words = random.integers(0, 30, (n, 3))
    effects = random.normal(size=n // 8 + 1)
    y = np.where(effects[ids] + (words[:, 0] % 2) + random.normal(size=n) > 0.5, "yes", "no")
    w = np.where(random.random(n) < 0.05, 0, 1)
    rows = zip(ids.tolist(), words.tolist(), w.tolist(), y.tolist(), strict=True)
    lines = [f"c{a},word{b} word{c} more{d} text number{a},{e},{f}\n" for a, (b, c, d), e, f in rows]
    return ["id,note,w,y\n", *lines]


def written(path, lines, cuts):
    """Files with the rows between cuts, as a source reads one after the other."""
    paths = []
    for number, (start, stop) in enumerate(zip([1, *cuts], [*cuts, len(lines)], strict=True)):
        paths.append(path / f"{len(cuts)}-{number}.csv")
        paths[-1].write_text(lines[0] + "".join(lines[start:stop]))
    return paths


def test_features_are_forgotten_by_evidence_and_age():
    from tunefree.stream.columns import Codes, one_by_one

    ids = FeatureIds(first=1)
    ids.limit(4)

    def of(*keys):
        array = np.array(keys, np.uint64)
        codes = Codes(np.arange(len(keys)), array, one_by_one(lambda k: f"k{keys[k]}"))
        return ids.chunk_features(len(keys), [(0, codes)], [], True)[0][:, 0].tolist()

    assert of(7, 8, 9) == [1, 2, 3] and of(7, 9, 6) == [1, 3, 4] and ids.take_forgotten() == []
    assert of(8, 5) == [2, 4]  # 6 was seen once, as 8 before this chunk; the older of those seen least goes
    assert [(row, gone.tolist()) for row, gone in ids.take_forgotten()] == [(1, [4])]
    assert ids.names.to_list() == ["k7", "k8", "k9", "k5"] and ids.n_forgotten == 1


def numbers(n: int) -> list[str]:
    """CSV lines of a table without categories, the header first."""
    random = np.random.default_rng(0)
    X = random.normal(size=(n, 4))
    y = np.where(X[:, 0] + random.normal(size=n) > 0.0, "yes", "no").tolist()
    rows = (",".join(f"{x:.3f}" for x in row) for row in X.tolist())
    return ["a,b,c,d,y\n", *(f"{row},{label}\n" for row, label in zip(rows, y, strict=True))]


def in_any_batches(folder, lines, plan, limit):
    """A model of a stream, which is the same wherever batches but the first are cut, and as it is loaded again."""
    models = []
    for cuts in ([3000], [3000, 3100, 5003, 8999]):
        trained = train(open_source(written(folder, lines, cuts)), plan, memory_limit=limit)
        trained.save(folder / "m")
        models.append(storage.load(folder / "m")[0])
    assert models[0].keys() == models[1].keys()
    assert all(models[1][name].tobytes() == array.tobytes() for name, array in models[0].items())
    again = Trained.load(folder / "m")
    again.save(folder / "again")
    assert (folder / "again").read_bytes() == (folder / "m").read_bytes() and summary(again, folder / "again")
    return trained


@pytest.mark.parametrize("plan", [SCINOL, Plan(target="y", sample_weight="w")])
def test_batches_do_not_matter(tmp_path, plan):
    limit = LIMIT if plan.learner == "scinol2" else "3M"
    trained = in_any_batches(tmp_path, stream(9000), plan, limit)
    assert trained.encoder.ids.n_forgotten > 500 and model_bytes(trained.model) <= limit_of(limit)


def test_tables_of_numbers_leave_no_room_to_categories(tmp_path):
    trained = in_any_batches(tmp_path, numbers(13_000), Plan(target="y"), "3500K")
    assert trained.encoder.ids.most is None and trained.model.pool.members.growth is not None
    assert not trained.model.pool.members.growth.windows  # which sleep, so no latest rows are kept


def test_a_checkpoint_forgets_as_the_whole_would(tmp_path):
    lines = stream(9000)
    paths = written(tmp_path, lines, list(range(501, 9000, 500)))
    train(open_source(paths), SCINOL, memory_limit=LIMIT).save(tmp_path / "whole")
    stop = Stop()
    with pytest.raises(Interrupted):
        train(open_source(paths), SCINOL, [Asking(stop, 14)], tmp_path / "kept", memory_limit=LIMIT, stop=stop)
    kept = Trained.load(tmp_path / "kept")
    assert kept.encoder.ids.n_forgotten > 0 and 128 + signal.SIGTERM == 143
    (tmp_path / "rest.csv").write_text(lines[0] + "".join(lines[1 + kept.progress.rows :]))
    learn_more(kept, open_source(tmp_path / "rest.csv"), memory_limit=LIMIT).save(tmp_path / "m")
    assert (tmp_path / "m").read_bytes() == (tmp_path / "whole").read_bytes()


def test_what_is_forgotten_is_told_and_costs_little(tmp_path):
    source = open_source(written(tmp_path, stream(9000), []))
    limited = train(source, SCINOL, memory_limit="900K")
    unlimited = train(source, SCINOL)
    loss, best = (trained.progress.progressive[0].mean_loss() for trained in (limited, unlimited))
    assert loss <= 1.01 * best
    told = " ".join(str(block) for block in summary(limited, tmp_path / "m"))
    assert re.search(rf"features forgotten', value={limited.encoder.ids.n_forgotten}", told)
    assert "features forgotten" not in " ".join(str(block) for block in summary(unlimited, tmp_path / "m"))


@pytest.mark.slow
def test_a_stream_of_new_categories_takes_little_memory_and_loses_little():
    """Learned by the command from a pipe, in a process with its own peak of memory, which is known on Unix."""
    pytest.importorskip("resource")
    memory = Path(__file__).parents[2] / "benchmarks" / "memory.py"
    command = [sys.executable, str(memory), "--endless", "300000", "8M", "none"]
    table = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    cells = [[cell.strip().replace(",", "") for cell in line.strip("|").split("|")] for line in table[2:]]
    (_, _, peak, loss, known, forgotten), (_, _, _, unlimited_loss, all_known, _) = cells
    assert int(peak) * 2**20 < 230e6 and float(loss) < 1.01 * float(unlimited_loss)
    assert int(forgotten) > 10_000 and int(known) < int(all_known) / 2
