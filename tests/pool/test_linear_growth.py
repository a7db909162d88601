"""Rows whose features, columns and classes grow: training ends, and the model is used and resumed."""

import json
import random

import numpy as np
import pytest

from tunefree.learners import newton
from tunefree.model_files import schemas
from tunefree.model_files.plan import Plan
from tunefree.model_files.trained import Trained
from tunefree.pool import linear_group, occurrences
from tunefree.stream.batch import BadRows
from tunefree.stream.source import open_source
from tunefree.training.training import learn_more, train
from tunefree.workflows.prediction import predict

LARGE = (3, 9, 12, 14)  # of these shapes, pools of many rows, as shape 21 is, which take as long as all others


def margins(trained, source):
    return np.concatenate([block.predictions for block in predict(trained, source, BadRows())])


def test_a_category_that_goes_on_growing(tmp_path):
    """Frozen copies predict rows with features beyond all that were learned, before any feature had no slot."""
    drawn, rows = random.Random(0), []
    for i in range(16_000):
        amount, user = drawn.gauss(0, 1), drawn.randrange(500 if i < 10_000 else 1500)
        rows.append({"amount": amount, "user": f"u{user}", "label": int(amount + drawn.gauss(0, 1) > 0)})
    trained = train(written(tmp_path / "c.jsonl", rows), Plan(target="label"))
    assert trained.model.linear.n_features > occurrences.FIRST and trained.progress.complete


def drawn_rows(drawn, n, capacity):
    """Rows of a table whose categories, columns and classes grow at places that are drawn, often near a capacity."""
    n_classes, at = drawn.choice([2, 2, 3, 4]), [drawn.randrange(n) for _ in range(6)]
    few, many = drawn.choice([2, capacity - 3, capacity // 2]), drawn.choice([capacity, capacity + 1, 5 * capacity, 9])
    rows = []
    for i in range(n):
        amount = drawn.gauss(0, 1)
        row = {"amount": amount, "user": f"u{drawn.randrange(few if i < at[0] else few + many)}"}
        words = drawn.randrange(6) if drawn.random() < 0.3 else 0
        row["note"] = " ".join(f"w{drawn.randrange(1 + 20 * capacity)}" for _ in range(words))
        if i >= at[1]:
            row["late"] = drawn.choice([drawn.gauss(0, 1), None])
        if i >= at[2]:
            row["kind"] = f"k{drawn.randrange(capacity)}"
        late = n_classes > 2 and i >= at[3] and drawn.random() < 0.2
        row["label"] = f"c{drawn.randrange(2, n_classes)}" if late else f"c{int(amount + drawn.gauss(0, 1) > 0)}"
        rows.append(row)
    rows[0]["label"], rows[1]["label"] = "c0", "c1"
    return rows


def written(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return open_source(str(path))


def check_shape(seed, folder, patch):
    """Train on a shape, predict with it, resume it, and go on with it."""
    drawn = random.Random(seed)
    capacity, logged = drawn.choice([8, 16, 64]), drawn.choice([4, 50, 2**16])
    patch.setattr(occurrences, "FIRST", capacity)
    patch.setattr(newton, "MOST_NUMBERS", capacity**2)  # features without a slot from the start are beyond its matrices
    for module in (occurrences, linear_group, schemas):
        patch.setattr(module, "LOGGED", logged)
    rows = drawn_rows(drawn, drawn.choice([40, 300, 700]), capacity)
    learner = drawn.choice(["pool", "pool", "scinol2", "nag", "adagrad", "newton", "pistol"])
    options = {"hash_bits": drawn.choice([0, 0, 0, 4, 9]), "passes": 1 if learner == "pool" else drawn.choice([1, 2])}
    plan = Plan(target="label", learner=learner, **options)
    cut = drawn.randrange(20, len(rows))
    source, checkpoint = written(folder / "all.jsonl", rows), folder / "checkpoint"
    train(source, plan, checkpoint=checkpoint, save_every=drawn.choice([7, 100])).save(folder / "whole")
    assert np.isfinite(margins(Trained.load(folder / "whole"), source)).all()
    if checkpoint.exists() and not Trained.load(checkpoint).progress.complete:
        train(source, plan, None, checkpoint, 100, True).save(folder / "resumed")
        assert (folder / "whole").read_bytes() == (folder / "resumed").read_bytes()
    if plan.passes == 1:
        begun = train(written(folder / "first.jsonl", rows[:cut]), plan)
        more = learn_more(begun, written(folder / "second.jsonl", rows[cut:]))
        assert np.isfinite(margins(more, source)).all()
        if more.model.has_weights:
            more.model.certificate(), more.model.mean_weights()


@pytest.mark.parametrize("seed", [seed for seed in range(20) if seed not in LARGE])
def test_shapes_of_growth(seed, tmp_path, monkeypatch):
    check_shape(seed, tmp_path, monkeypatch)
