"""Time of one exact pass of kernel PiSTOL with nine bandwidths on a GPU, over 1,000,000 rows of 100 numbers.

The target is half a minute. Every row becomes a support point (the slope of the logistic loss is never 0), so there are
n^2 / 2 pairs of rows, each with 2 d operations of the matrix product. The printed fraction of the peak counts these
operations only, over the time of the whole pass including Python. The peak is the rate of products of large matrices
in single precision, measured before and after.

    python benchmarks/kernel_gpu.py             # on a GPU
    python benchmarks/kernel_gpu.py --quick     # a small run on the processor
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import torch
from common import parser_of

from tunefree.core import rows
from tunefree.model.model import Model
from tunefree.model.targets import Labels
from tunefree.papers.kernel.kernel_bank import KernelConfig
from tunefree.papers.kernel.torch_backend import full_precision, fused_kernels, usable

CALL = 65_536  # rows of a call


def rows_of(n_rows: int, n_features: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows with labels from a nonlinear function."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, n_features))
    directions = np.random.default_rng(1).standard_normal((n_features, 8)) / np.sqrt(n_features)
    scores = np.sin(2.0 * (X @ directions)).sum(axis=1) + 0.3 * rng.standard_normal(n_rows)
    return X, np.where(scores > 0.0, "yes", "no")


def learned(device: str | None, X: np.ndarray, y: np.ndarray, loss: str, kernel: str) -> tuple[Model, np.ndarray]:
    """A model after one pass, and its progressive predictions."""
    choice = KernelConfig(kernel, device=device)
    model = Model("classification", "kernel-pistol", loss, config=choice, classes=["no", "yes"])
    model.reserve_features(X.shape[1] + 1)
    predictions = []
    for start in range(0, len(y), CALL):
        part = rows.dense(X[start : start + CALL])
        labels = Labels.of(y[start : start + CALL])
        predictions.append(model.learn(part, labels, np.ones(len(labels.codes)))[0])
    return model, np.concatenate(predictions)


def peak(device: torch.device) -> float:
    """Operations per second of products of large matrices."""
    size = 8192 if device.type == "cuda" else 512
    one, other = (torch.randn((size, size), device=device) for _ in range(2))
    best = 0.0
    with full_precision():
        for _ in range(10):
            finish(device)
            start = time.perf_counter()
            one @ other
            finish(device)
            best = max(best, 2.0 * size**3 / (time.perf_counter() - start))
    return best


def finish(device: torch.device) -> None:
    """Wait for the device."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def difference(values: np.ndarray, expected: np.ndarray) -> float:
    """The largest absolute difference, relative to the largest absolute value."""
    return float(np.nanmax(np.abs(values - expected)) / np.nanmax(np.abs(expected)))


def main(arguments: Sequence[str] | None = None) -> None:
    """Time a pass, and compare its predictions with those of the processor."""
    parser = parser_of(__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--features", type=int, default=100)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--loss", default="logistic", help="smoothed-hinge keeps fewer support points")
    parser.add_argument("--kernel", default="rbf")
    parser.add_argument("--compared", type=int, default=4096, help="rows learned on the processor as well")
    parser.add_argument("--sample", type=int, default=256, help="rows predicted on the processor as well")
    chosen = parser.parse_args(arguments)
    if chosen.quick:
        chosen.rows, chosen.features, chosen.device, chosen.compared, chosen.sample = 600, 10, "cpu", 300, 16
    device, (X, y) = usable(chosen.device), rows_of(chosen.rows, chosen.features)
    few = min(chosen.compared, chosen.rows)
    _, on_device = learned(chosen.device, X[:few], y[:few], chosen.loss, chosen.kernel)
    _, on_processor = learned(None, X[:few], y[:few], chosen.loss, chosen.kernel)
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "the processor"
    how = "fused kernels" if fused_kernels(device) is not None else "PyTorch's own operations"
    print(f"PyTorch {torch.__version__} on {name}, {how}; {chosen.rows:,} rows x {chosen.features}, {chosen.kernel}")
    print(f"learned {few:,} rows: predictions differ from the processor's by {difference(on_device, on_processor):.1e}")
    peaks = [peak(device)]
    start = time.perf_counter()
    model, progressive = learned(chosen.device, X, y, chosen.loss, chosen.kernel)
    finish(device)
    seconds = time.perf_counter() - start
    peaks.append(peak(device))
    n_support = sum(bank.expansion.n + bank.expansion.filled for bank in model.banks)
    pairs = 0.5 * chosen.rows * n_support
    fraction = pairs * 2.0 * chosen.features / seconds / max(peaks)
    last = slice(-chosen.rows // 10, None)
    error = np.mean((progressive[last, 0] > 0) != (y[last] == "yes"))
    print(f"one pass, {len(model.members)} bandwidths: {seconds:.2f} s, {n_support:,} support points")
    print(f"{pairs / seconds:.3g} pairs/s, {fraction:.1%} of the peak of {max(peaks) / 1e12:.3g} TFLOP/s")
    print(f"progressive error on the last tenth of the rows: {error:.4f}")
    sample = rows.dense(rows_of(chosen.sample, chosen.features, seed=2)[0])
    start = time.perf_counter()
    predictions = model.predict(sample)
    finish(device)
    print(f"predicted {chosen.sample} rows in {time.perf_counter() - start:.3f} s", end="; ")
    for bank in model.banks:
        bank.move(None)
    print(f"differ from the processor's by {difference(predictions, model.predict(sample)):.1e}")


if __name__ == "__main__":
    main()
