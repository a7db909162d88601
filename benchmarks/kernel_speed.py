"""Claims: one exact pass of kernel PiSTOL over 58,000 x 100 rows takes at most 12 s if each becomes a support point;
100,000 support points need at most 400 MB. The rate of kernel evaluation is measured as well.

The time of a pass is measured with one bandwidth and with nine (``partial_fit``, logistic loss, so that no slope is 0),
as the median of 3. The rate is that of evaluating a block against all support points, relative to the matrix product
alone, on all processors, as medians of 15 in alternating groups of five. The memory is the maximum resident set size of
a separate process, which learns the rows a thousand at a time.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np

from tunefree import KernelPiSTOLClassifier
from tunefree.kernel import kernel_sums, points
from tunefree.kernel.gaussian import Gaussian

ROWS, COLUMNS, SUPPORT = 58_000, 100, 40_000
MEMORY = """
import resource
from kernel_speed import streamed
print(streamed(100_000).n_support_, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
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


def seconds_of_pass(gamma: str) -> float:
    """Median time of three passes, after a smaller one that compiles the code."""
    X, y = rows(ROWS)
    learned(3000, gamma)
    taken = []
    for _ in range(3):
        model = KernelPiSTOLClassifier(loss="logistic", gamma=gamma)
        start = time.perf_counter()
        model.partial_fit(X, y, classes=[0, 1])
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def rates(n_widths: int) -> tuple[float, float]:
    """Median time of evaluating a block, and of the matrix product alone, in seconds."""
    kernel, random = Gaussian(1.0 / (8 * COLUMNS)), np.random.default_rng(0)
    block = points.dense_points(random.normal(size=(points.BLOCK, COLUMNS)), kernel, np.float32)
    every = np.arange(SUPPORT)
    store = points.dense_points(random.normal(size=(SUPPORT, COLUMNS)), kernel, np.float32)
    store = points.joined(points.nothing(block, kernel), 0, store, every)
    coefficients, steps = random.normal(size=(n_widths, 1, SUPPORT)), np.arange(n_widths)
    sums = lambda: kernel_sums.evaluate(kernel, steps, block, (0, points.BLOCK), store, coefficients)  # noqa: E731
    alone = lambda: block.values @ store.values[:SUPPORT].T  # noqa: E731
    whole, product = [], []
    for _ in range(3):
        for work, seconds in ((sums, whole), (alone, product)):
            time.sleep(0.2)  # threads of BLAS keep spinning for a while after a product
            work()
            seconds.extend(seconds_of(work) for _ in range(5))
    return statistics.median(whole), statistics.median(product)


def seconds_of(work: Callable[[], object]) -> float:
    """Time of one call, in seconds."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main() -> None:
    """Run the benchmark and print the results."""
    for gamma, name in (("median", "one bandwidth"), ("ladder", "nine bandwidths")):
        print(f"one pass, {ROWS:,} x {COLUMNS}, {name}: {seconds_of_pass(gamma):.1f} s")
    for n_widths in (1, 9):
        whole, product = rates(n_widths)
        speed = 2 * points.BLOCK * SUPPORT * COLUMNS / product / 1e9
        print(f"a block against {SUPPORT:,} points, {n_widths} bandwidths: {whole * 1e3:.1f} ms; its product", end=" ")
        print(f"{product * 1e3:.1f} ms ({speed:.0f} GFLOP/s): {100 * product / whole:.0f} % of the product's rate")
    for _ in range(2):  # the first run may compile code, which takes additional memory
        done = subprocess.run(
            [sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True, cwd=sys.path[0]
        )
    n_support, peak = done.stdout.split()
    print(f"{int(n_support):,} support points x {COLUMNS}: {float(peak):.0f} MB at most, learned from a stream")


if __name__ == "__main__":
    main()
