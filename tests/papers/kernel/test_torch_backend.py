"""Sums by PyTorch are those of the processor, however rows are cut; and what cannot be computed there says so."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse as scipy_sparse

from tunefree import losses
from tunefree.core import rows, storage
from tunefree.core.errors import ModelError
from tunefree.losses import objectives
from tunefree.model.group import LabelledRows
from tunefree.model.members import Setting
from tunefree.model.model import Model
from tunefree.model.targets import Labels
from tunefree.papers.kernel import kernel_bank
from tunefree.papers.kernel.backends import at_hand, backend_of
from tunefree.papers.kernel.kernel_bank import KernelBank, KernelConfig

torch = pytest.importorskip("torch")
on_torch = pytest.importorskip("tunefree.papers.kernel.torch_backend")

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
WIDTHS = [2.0**e for e in range(-4, 5)]
N = 1500
CALL = 700  # rows of a call: several superblocks and blocks that stay open


@pytest.fixture(autouse=True)
def settled_early(monkeypatch):
    monkeypatch.setattr(kernel_bank, "WARMUP_ROWS", 200)


@pytest.fixture(params=DEVICES)
def device(request):
    return request.param


def drawn(n_outputs, sparse=False, seed=0):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(N, 10)) * (rng.random((N, 10)) < (0.4 if sparse else 1.0))
    # one row comes three times within a block, others again in a later superblock
    values[310] = values[311] = values[309]
    values[1200:1250] = values[400:450]
    scores = np.sin(values @ rng.normal(size=(10, max(n_outputs, 1)))) + 0.3 * rng.normal(size=(N, max(n_outputs, 1)))
    y = np.where(scores[:, 0] > 0, 1.0, -1.0) if n_outputs == 1 else scores.argmax(axis=1).astype(float)
    if not sparse:
        return rows.dense(values), y
    found = scipy_sparse.csr_array(values)
    return rows.sparse(found.indptr, found.indices + 1, found.data), y


def bank_of(choice, widths, n_outputs):
    settings = [Setting("kernel-pistol", {"width": width}, "raw") for width in widths]
    loss = losses.SmoothedHinge()
    objective = objectives.Binary(loss, 0.0) if n_outputs == 1 else objectives.OneAgainstAll(loss, 0.0)
    return KernelBank(settings, choice, objective, n_outputs, None, True)


def learned(choice, widths, n_outputs, X, y, ahead=None, calls=CALL):
    """A bank that has learned the rows in several calls, in two passes."""
    bank = bank_of(choice, widths, n_outputs)
    progress = []
    for again in (False, True):
        if again:
            bank.begin_pass()
        for start in range(0, N, calls):
            stop = min(start + calls, N)
            predictions = np.empty((len(widths), stop - start, n_outputs))
            part, weight = rows.part(X, start, stop), np.ones(stop - start)
            if ahead is not None and bank.expansion is not None:
                bank.expansion.backend.ahead = ahead
            bank.learn(LabelledRows(part, y[start:stop], weight, weight), predictions)
            progress.append(predictions)
    return bank, np.concatenate(progress, axis=1)


def assert_alike(found, expected, tolerance):
    assert np.array_equal(np.isnan(found), np.isnan(expected))
    size = np.nanmax(np.abs(expected))
    assert size > 0.1
    assert np.nanmax(np.abs(found - expected)) <= tolerance * size


KERNELS = [("rbf", WIDTHS), ("laplacian", WIDTHS[2:6]), ("poly", [1.0]), ("linear", [1.0])]


@pytest.mark.parametrize(("double", "tolerance"), [(False, 1e-3), (True, 1e-10)])
@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize(("kernel", "widths"), KERNELS, ids=[name for name, _ in KERNELS])
def test_learns_what_the_processor_learns(kernel, widths, n_outputs, double, tolerance, device):
    X, y = drawn(n_outputs)
    choice = KernelConfig(kernel, 0.05, degree=2, double=double)
    expected, progress = learned(choice, widths, n_outputs, X, y)
    bank, found = learned(choice._replace(device=device), widths, n_outputs, X, y, ahead=256)
    assert_alike(found, progress, tolerance)
    assert_alike(bank.predict(X), expected.predict(X), tolerance)


@pytest.mark.parametrize(("double", "tolerance"), [(False, 2e-6), (True, 2e-14)])
@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "poly", "linear"])
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_same_values_of_the_same_functions(kernel, sparse, double, tolerance, device):
    X, y = drawn(1, sparse)
    widths = WIDTHS if kernel in ("rbf", "laplacian") else [1.0]
    bank, _ = learned(KernelConfig(kernel, 0.05, double=double), widths, 1, X, y)
    expansion, points = bank.expansion, bank._points(X)
    functions = expansion.terms(expansion.coefficients)
    expected = expansion.backend.values(functions, points)
    sizes = expansion.backend.values(functions._replace(coefficients=np.abs(functions.coefficients)), points)
    found = backend_of(device).values(functions, points)
    assert np.abs(expected).max() > 0.1
    assert np.abs(found - expected).max() <= tolerance * np.abs(sizes).max()  # of what rounding is relative to


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_how_many_rows_are_taken_ahead_does_not_matter(sparse, device):
    X, y = drawn(1, sparse)
    choice = KernelConfig("rbf", 0.05, double=True, device=device)
    _, expected = learned(choice, WIDTHS, 1, X, y)
    for ahead, calls in ((128, 700), (200, 1500), (1000, 333), (8192, 37)):
        _, found = learned(choice, WIDTHS, 1, X, y, ahead, calls)
        assert_alike(found, expected, 1e-9)


def test_tiles_and_room_do_not_matter(device, monkeypatch):
    X, y = drawn(1)
    choice = KernelConfig("rbf", 0.05, double=True, device=device)
    _, expected = learned(choice, WIDTHS, 1, X, y)
    monkeypatch.setattr(on_torch, "PAIRS", 2048)
    monkeypatch.setattr(on_torch, "UNIT", 16)
    monkeypatch.setattr(on_torch, "LAID_OUT", 100)
    _, found = learned(choice, WIDTHS, 1, X, y)
    assert_alike(found, expected, 1e-10)


def test_sparse_rows_may_bring_new_features(device):
    rng = np.random.default_rng(3)
    n_features = 20 + np.arange(N) // 2  # known so far
    features = np.sort(rng.integers(1, n_features[:, None], (N, 6)), axis=1)
    features += np.arange(6)
    X = rows.sparse(np.arange(N + 1) * 6, features.reshape(-1), rng.normal(size=6 * N))
    y = np.where(rng.random(N) < 0.5, 1.0, -1.0)
    choice = KernelConfig("rbf", 0.1, double=True)
    expected, progress = learned(choice, WIDTHS[3:6], 1, X, y)
    bank, found = learned(choice._replace(device=device), WIDTHS[3:6], 1, X, y, ahead=256)
    assert_alike(found, progress, 1e-10)
    wide = rows.sparse([0, 2], [3, 10**6], [1.0, 2.0])  # with a feature that no support point has
    assert_alike(bank.margins(wide), expected.margins(wide), 1e-10)


def test_wide_sparse_rows_say_what_to_do(device):
    X = rows.sparse(np.arange(301), np.arange(300) * 100 + 1, np.ones(300))
    bank = bank_of(KernelConfig("rbf", 0.1, device=device), [1.0], 1)
    with pytest.raises(ModelError, match="leave the device out"):
        bank.learn(LabelledRows(X, np.ones(300), np.ones(300), np.ones(300)), np.empty((1, 300, 1)))


def test_letting_go_and_new_classes(device):
    X, y = drawn(1)
    choice = KernelConfig("rbf", 0.05, double=True)
    found = []
    for own in (choice, choice._replace(device=device)):
        bank, _ = learned(own, WIDTHS, 1, X, y)
        bank.predict(X)
        bank.keep([1, 4, 5])
        predictions = np.empty((3, N, 1))
        bank.learn(LabelledRows(X, -y, np.ones(N), np.ones(N)), predictions)
        objective = objectives.OneAgainstAll(losses.SmoothedHinge(), 0.0)
        bank.add_class(objective, 3, 3)
        more = np.empty((3, N, 3))
        bank.learn(LabelledRows(X, np.arange(N) % 3.0, np.ones(N), np.ones(N)), more)
        found.append(np.concatenate([predictions, more, bank.predict(X)], axis=2))
    assert_alike(found[1], found[0], 1e-9)


@pytest.mark.parametrize("there", [None, "cpu"])
def test_a_model_goes_from_one_device_to_another(there, tmp_path):
    X, y = drawn(1)
    labels = Labels.of(["yes" if t > 0 else "no" for t in y])
    here = None if there else "cpu"
    model = Model("classification", "kernel-pistol", "smoothed-hinge", config=KernelConfig("rbf", 0.05, device=here))
    model.reserve_features(11)
    model.learn(X, labels, np.ones(N))
    storage.save(tmp_path / "model", *model.save_state())
    loaded = Model.restore(*storage.load(tmp_path / "model"))
    assert loaded.options.config.device == here
    assert np.array_equal(loaded.predict(X), model.predict(X))
    for bank in loaded.banks:
        bank.move(there)
    assert_alike(loaded.predict(X), model.predict(X), 1e-4)
    before = [again.learn(X, labels, np.ones(N))[0] for again in (loaded, model)]
    assert_alike(before[0], before[1], 1e-3)


def test_a_model_is_used_where_its_device_is_not(tmp_path, monkeypatch):
    X, y = drawn(1)
    model = Model("regression", "kernel-pistol", config=KernelConfig("rbf", 0.05, device="cpu"))
    model.reserve_features(11)
    model.learn(X, y, np.ones(N))
    storage.save(tmp_path / "model", *model.save_state())
    monkeypatch.setattr("tunefree.papers.kernel.backends.find_spec", lambda name: None)
    assert at_hand("cpu") is None
    loaded = Model.restore(*storage.load(tmp_path / "model"))
    assert loaded.options.config.device is None
    assert_alike(loaded.predict(X), model.predict(X), 1e-4)
    with pytest.raises(ModelError, match=r"tunefree\[torch\]"):
        backend_of("cpu")
    with pytest.raises(ModelError, match=r"tunefree\[torch\]"):
        Model("regression", "kernel-pistol", config=KernelConfig(device="cpu"))


@pytest.mark.parametrize("name", ["abacus", "meta", "cuda:99", ""])
def test_no_such_device(name):
    with pytest.raises(ModelError, match="leave the device out"):
        backend_of(name)


@pytest.mark.parametrize("kernel", ["precomputed", lambda X, Z: X @ Z.T], ids=["matrix", "function"])
def test_kernels_given_stay_on_the_processor(kernel, device):
    values = np.random.default_rng(0).normal(size=(N, 10))
    X = rows.dense(np.column_stack([np.arange(N), values @ values.T]) if kernel == "precomputed" else values)
    with pytest.raises(ModelError, match="leave the device out"):
        learned(KernelConfig(kernel, device=device), [1.0], 1, X, np.ones(N))


def test_memory_is_asked_for_before_it_is_taken(device, monkeypatch):
    X, y = drawn(1)
    monkeypatch.setattr(on_torch, "free_memory", lambda device: 2 * on_torch.PAIRS * 4 + 1200 * 4 * (10 + 1 + 1))
    # room for 1024 points, not for twice as many
    with pytest.raises(ModelError, match=r"2048 support points of 10 features.*Fourier features"):
        learned(KernelConfig("rbf", 0.05, device=device), [1.0], 1, X, y)


def test_nobody_elses_precision_is_used_or_changed(device):
    before = torch.get_float32_matmul_precision()
    try:
        torch.set_float32_matmul_precision("medium")
        with on_torch.full_precision():
            assert torch.backends.cuda.matmul.fp32_precision == "ieee"
            assert torch.backends.mkldnn.matmul.fp32_precision == "ieee"
        assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision(before)


@pytest.mark.parametrize("kernel", ["Gaussian", "Laplacian"])
@pytest.mark.parametrize("n_outputs", [1, 3])
def test_fused_kernels(kernel, n_outputs):
    """In a process of its own: without a GPU Triton interprets them, which it has to know from the start."""
    pytest.importorskip("triton")
    environment = os.environ | ({} if torch.cuda.is_available() else {"TRITON_INTERPRET": "1"})
    command = [sys.executable, "-c", FUSED, DEVICES[-1], kernel, str(n_outputs)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    error, size, dtype = done.stdout.split()
    assert float(size) > 1.0
    assert float(error) <= 1e-5 * float(size)
    assert dtype == "torch.float64"


FUSED = """
import sys
import numpy as np
import torch
from tunefree.papers.kernel import fused, torch_backend
from tunefree.papers.kernel.gaussian import Gaussian
from tunefree.papers.kernel.laplacian import Laplacian
from tunefree.papers.kernel.torch_backend import Rows, sums_of_tile

kernels = {"Gaussian": Gaussian, "Laplacian": Laplacian}
device, kernel, n_outputs = torch.device(sys.argv[1]), kernels[sys.argv[2]](0.02), int(sys.argv[3])
rng = np.random.default_rng(0)
tensor = lambda array: torch.tensor(array, dtype=torch.float32, device=device)
values = [rng.normal(size=(n, 20)) for n in (37, 2500)]
one, other = (Rows(tensor(own), tensor((own * own).sum(axis=1))) for own in values)
coefficients = tensor(rng.normal(size=(4, n_outputs, 3000)))[:, :, :2500]
found = []
for module in (None, fused):
    torch_backend.fused_kernels = lambda device: module
    found.append(sums_of_tile(kernel, np.array([2, -1, 0, 1]), one, other, coefficients))
print((found[0] - found[1]).abs().max().item(), found[0].abs().max().item(), found[1].dtype)
"""
