"""Time of an exact pass of kernel PiSTOL, each of whose rows becomes a support point, and memory of support points.

The time of a pass is measured with one bandwidth and with nine (``partial_fit``, logistic loss, so that no slope is 0),
as the median of 3. The rate of kernel evaluation is that of evaluating a block against all support points, relative to
the matrix product alone, on all processors, as medians of 15 in alternating groups of five. The memory is the maximum
resident set size of a separate process, which learns the rows a thousand at a time.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from common import parser_of

from tunefree import KernelPiSTOLClassifier
from tunefree.papers.kernel import kernel_sums, points
from tunefree.papers.kernel.gaussian import Gaussian

ROWS, COLUMNS, SUPPORT = 58_000, 100, 40_000
MEMORY = """
import resource, sys
from kernel_speed import streamed
print(streamed(int(sys.argv[1])).n_support_, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def rows(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Two classes separated by a quadric, with noise."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, COLUMNS)).astype(np.float32).astype(np.float64)
    return X, ((X[:, :10] ** 2).sum(axis=1) + random.normal(size=n) > 10).astype(np.int64)


def learned(n: int, gamma: str) -> KernelPiSTOLClassifier:
    """One pass in which every row becomes a support point."""
    X, y = rows(n)
    return KernelPiSTOLClassifier(loss="logistic", gamma=gamma).partial_fit(X, y, classes=[0, 1])


def streamed(n: int) -> KernelPiSTOLClassifier:
    """The same for a stream with a thousand rows in memory at a time."""
    model = KernelPiSTOLClassifier(loss="logistic", gamma="median")
    for number in range(n // 1000):
        X, y = rows(1000, number)
        model.partial_fit(X, y, classes=[0, 1])
    return model


def seconds_of_pass(n: int, gamma: str) -> float:
    """Median time of three passes, after a smaller one that compiles the code."""
    X, y = rows(n)
    learned(min(n, 3000), gamma)
    seconds = []
    for _ in range(3):
        model = KernelPiSTOLClassifier(loss="logistic", gamma=gamma)
        start = time.perf_counter()
        model.partial_fit(X, y, classes=[0, 1])
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def rates(n_support: int, n_widths: int) -> tuple[float, float]:
    """Median time of evaluating a block, and of the matrix product alone, in seconds."""
    kernel, random = Gaussian(1.0 / (8 * COLUMNS)), np.random.default_rng(0)
    block = points.dense_points(random.normal(size=(points.BLOCK, COLUMNS)), kernel, np.float32)
    store = points.dense_points(random.normal(size=(n_support, COLUMNS)), kernel, np.float32)
    store = block.empty(kernel).joined(0, store, np.arange(n_support))
    coefficients, steps = random.normal(size=(n_widths, 1, n_support)), np.arange(n_widths)
    sums = lambda: kernel_sums.evaluate(kernel, steps, block, (0, points.BLOCK), store, coefficients)  # noqa: E731
    alone = lambda: block.values @ store.values[:n_support].T  # noqa: E731
    seconds: dict[Callable[[], object], list[float]] = {sums: [], alone: []}
    for _ in range(3):
        for work, times in seconds.items():
            time.sleep(0.2)  # threads of BLAS keep spinning for a while after a product
            work()
            times.extend(seconds_of(work) for _ in range(5))
    return statistics.median(seconds[sums]), statistics.median(seconds[alone])


def seconds_of(work: Callable[[], object]) -> float:
    """Time of one call, in seconds."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark and print the results."""
    quick = parser_of(__doc__).parse_args(arguments).quick
    n, n_points, n_streamed = (200, 300, 2000) if quick else (ROWS, SUPPORT, 100_000)
    for gamma, name in (("median", "one bandwidth"), ("ladder", "nine bandwidths")):
        print(f"one pass, {n:,} x {COLUMNS}, {name}: {seconds_of_pass(n, gamma):.1f} s")
    for n_widths in (1, 9):
        whole, product = rates(n_points, n_widths)
        speed = 2 * points.BLOCK * n_points * COLUMNS / product / 1e9
        print(f"a block against {n_points:,} points, {n_widths} bandwidths: {whole * 1e3:.1f} ms; its product", end=" ")
        print(f"{product * 1e3:.1f} ms ({speed:.0f} GFLOP/s): {100 * product / whole:.0f} % of the product's rate")
    for _ in range(2):  # the first run may compile code, which takes additional memory
        command = [sys.executable, "-c", MEMORY, str(n_streamed)]
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parent)
    n_support, peak = done.stdout.split()
    print(f"{int(n_support):,} support points x {COLUMNS}: {float(peak):.0f} MB at most, learned from a stream")


if __name__ == "__main__":
    main()
