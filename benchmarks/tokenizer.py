"""Speed of the tokenizers of svmlight and Vowpal Wabbit text, with the dictionary of features, and of that of texts.

The last one stands beside scikit-learn's hashing vectoriser.

The text has about 40 features in a row; the features are Zipf-distributed, the values have 2 to 6 digits. Texts are
those of the newsgroups or the e-mails, whichever there is.
It prints the best and the median rate of the runs, in MB of text per second of the processor.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
from common import SHARED, parser_of
from pyarrow import parquet
from sklearn.feature_extraction.text import HashingVectorizer

from tunefree.stream.arrays import bytes_of
from tunefree.stream.batch import BadRows, Chunk, Position
from tunefree.stream.feature_lines import SvmlightEncoder, VWEncoder
from tunefree.stream.words import count_words

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


def measure(name: str, encoder: type, chunks: list[bytes], runs: int) -> None:
    """Print the rate of passes over the chunks, each with a new encoder."""
    size, rates, bad = sum(map(len, chunks)), [], BadRows()
    lines = [Chunk(np.frombuffer(chunk, np.uint8), "generated", 1, Position()) for chunk in chunks]
    encoder().encode(lines[0], True, bad)
    for _ in range(runs):
        fresh, entries_read = encoder(), 0
        start = time.process_time()
        for chunk in lines:
            entries_read += len(fresh.encode(chunk, True, bad).rows.values)
        rates.append(size / (time.process_time() - start) / 1e6)
    print(
        f"{name}: best {max(rates):.0f} MB/s, median {np.median(rates):.0f} MB/s "
        f"({size / 1e6:.0f} MB, {entries_read / 1e6:.1f}M entries, {fresh.n_features:,} features)"
    )


def compare_words(most: int | None, runs: int) -> None:
    """Print the rates of words and pairs, ours and scikit-learn's in turn, in MB per second of processor time."""
    paths = [SHARED / f"{name}.parquet" for name in ("newsgroups20_bydate", "spam_assassin")]
    path = next((path for path in paths if path.exists()), None)
    if path is None:
        return
    texts = parquet.read_table(path, columns=["text"])["text"].slice(0, most).combine_chunks().cast(pa.string())
    places, data = bytes_of(texts)
    documents = texts.to_pylist()
    vectorizer = HashingVectorizer(norm=None, alternate_sign=False, ngram_range=(1, 2), n_features=2**20)
    rates: dict[str, list[float]] = {"ours": [], "scikit-learn": []}
    for _ in range(runs):
        for name, count in (
            ("ours", lambda: count_words(places, data, 0)),
            ("scikit-learn", lambda: vectorizer.transform(documents)),
        ):
            start = time.process_time()
            count()
            rates[name].append(len(data) / (time.process_time() - start) / 1e6)
    for name, of_runs in rates.items():
        print(f"words and pairs, {name}: best {max(of_runs):.0f}, median {np.median(of_runs):.1f} MB per CPU second")
    ratio = np.median(np.divide(rates["ours"], rates["scikit-learn"]))
    print(f"ratio of the two, median of {runs}: {ratio:.1f} ({path.stem}, {len(data) / 1e6:.0f} MB)")


def main(arguments: Sequence[str] | None = None) -> None:
    """Generate the texts and print the results."""
    quick = parser_of(__doc__).parse_args(arguments).quick
    n_rows, n_chunks, runs = (200, 2, 1) if quick else (CHUNK_ROWS, CHUNKS, RUNS)
    compare_words(n_rows if quick else None, runs)
    for features in (100_000, 1_000_000):
        rng = np.random.default_rng(0)
        for name, encoder, text in (
            ("svmlight, indices", SvmlightEncoder, svmlight_text),
            ("VW, names", VWEncoder, vw_text),
        ):
            chunks = [text(n_rows, features, rng) for _ in range(n_chunks)]
            measure(f"{name} to {features:,}", encoder, chunks, runs)


if __name__ == "__main__":
    main()
