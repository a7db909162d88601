"""Speed of the tokenizers of svmlight and Vowpal Wabbit text on one core, including the dictionary of features.

The text has about 40 features in a row; the features are Zipf-distributed, the values have 2 to 6 digits.
Run ``python benchmarks/tokenizer.py``; it prints the best and the median rate of the runs in MB/s of text.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from tunefree.stream.batch import BadRows, Lines, Position
from tunefree.stream.svmlight import SvmlightEncoder
from tunefree.stream.vw import VWEncoder

CHUNK_ROWS, CHUNKS, RUNS = 12_000, 16, 7


def entries(rows: int, features: int, rng: np.random.Generator) -> Iterator[tuple[np.ndarray, list[str]]]:
    """Sorted distinct features and formatted values, row by row."""
    for _ in range(rows):
        names = np.unique(rng.zipf(1.2, 55) % features + 1)[:60]
        digits = rng.integers(2, 7, len(names))
        yield names, [f"{value:.{d}f}" for value, d in zip(rng.random(len(names)), digits, strict=True)]


def svmlight_text(rows: int, features: int, rng: np.random.Generator) -> bytes:
    """Rows of svmlight text."""
    lines = [
        ("+1 " if rng.random() < 0.5 else "-1 ")
        + " ".join(f"{n}:{v}" for n, v in zip(names.tolist(), values, strict=True))
        for names, values in entries(rows, features, rng)
    ]
    return ("\n".join(lines) + "\n").encode()


def vw_text(rows: int, features: int, rng: np.random.Generator) -> bytes:
    """Rows of Vowpal Wabbit text."""
    lines = [
        ("1 |f " if rng.random() < 0.5 else "-1 |f ")
        + " ".join(f"{n}:{v}" for n, v in zip(names.tolist(), values, strict=True))
        for names, values in entries(rows, features, rng)
    ]
    return ("\n".join(lines) + "\n").encode()


def measure(name: str, encoder: type, chunks: list[bytes]) -> None:
    """Print the rate of passes over the chunks in MB/s, each with a new encoder."""
    size, rates, bad = sum(map(len, chunks)), [], BadRows()
    lines = [Lines(np.frombuffer(chunk, np.uint8), "generated", 1, Position()) for chunk in chunks]
    encoder().encode(lines[0], True, bad)
    for _ in range(RUNS):
        fresh, entries_read = encoder(), 0
        start = time.perf_counter()
        for chunk in lines:
            entries_read += len(fresh.encode(chunk, True, bad).rows.values)
        rates.append(size / (time.perf_counter() - start) / 1e6)
    print(
        f"{name}: best {max(rates):.0f} MB/s, median {np.median(rates):.0f} MB/s "
        f"({size / 1e6:.0f} MB, {entries_read / 1e6:.1f}M entries, {fresh.n_features:,} features)"
    )


def main() -> None:
    """Generate the texts and print the results."""
    for features in (100_000, 1_000_000):
        rng = np.random.default_rng(0)
        chunks = [svmlight_text(CHUNK_ROWS, features, rng) for _ in range(CHUNKS)]
        measure(f"VW, names to {features:,}", VWEncoder, [vw_text(CHUNK_ROWS, features, rng) for _ in range(CHUNKS)])
        measure(f"svmlight, indices to {features:,}", SvmlightEncoder, chunks)


if __name__ == "__main__":
    main()
