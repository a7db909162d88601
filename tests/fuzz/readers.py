"""Files as strangers send them: small ones of every format, and changes of their bytes."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet

from tunefree.core.errors import TunefreeError
from tunefree.stream.batch import BadRows
from tunefree.stream.source import open_source

N = 12
TOKENS = {
    ".csv": [
        b",", b'"', b"\n", b"\r", b"\xff", b"\0", b"nan", b"1e999", b";", b"1,2,3\n", b"\xef\xbb\xbf", b"2020-02-30",
    ],
    ".jsonl": [
        b"{", b"}", b"[", b'"', b"\\", b"\\ud800", b"null", b"9" * 400, b"[" * 2000, b":", b",", b"\xff", b"NaN",
    ],
    ".svm": [
        b":", b" ", b"\n", b"#", b"qid:1", b"7e30.8", b"9" * 30, b"-", b"nan", b"inf", b"1:1 1:2", b"\xff", b".", b"e",
    ],
    ".vw": [
        b"|", b":", b" ", b"'", b"\n", b"7e30.8", b"9" * 30, b"nan", b"-1", b"\xff", b"|f", b"1 2.0 'tag|", b".", b"e",
    ],
}  # fmt: skip
FORMATS = (*TOKENS, ".parquet", ".feather", ".arrows")


def table() -> pa.Table:
    """A table with a column of every kind."""
    return pa.table(
        {
            "x": np.arange(N) / 7.0,
            "s": pa.array([f"v{i % 3}" for i in range(N)]).dictionary_encode(),
            "t": [None if i % 5 == 0 else f"some text {i}" for i in range(N)],
            "d": pa.array([i * 86_400_000 for i in range(N)], pa.timestamp("ms")),
            "y": [i % 3 == 0 for i in range(N)],
        }
    )


def corpus(suffix: str) -> bytes:
    """A file of a format, with columns of several kinds."""
    if suffix == ".csv":
        return b"x,s,d,y\n" + b"".join(b'%d.5,"v, %d",2020-01-%02d,%d\n' % (i, i % 3, i + 1, i % 2) for i in range(N))
    if suffix == ".jsonl":
        return b"".join(b'{"x":%d.5,"s":"v%d","n":{"a":%d},"y":%d}\n' % (i, i % 3, i, i % 2) for i in range(N))
    if suffix == ".svm":
        return b"".join(b"%d %d:0.5 %d:%de-3 # c\n" % (i % 2, 1 + i, 20 + i, i) for i in range(N))
    if suffix == ".vw":
        return b"".join(b"%d 2.0 'tag%d|f a:%d.5 b%d |g c\n" % (i % 2 * 2 - 1, i, i, i % 3) for i in range(N))
    written = io.BytesIO()
    if suffix == ".parquet":
        pa.parquet.write_table(table(), written)
    elif suffix == ".feather":
        pa.feather.write_feather(table(), written, compression="uncompressed")
    else:
        with pa.ipc.new_stream(written, table().schema) as writer:
            writer.write_table(table())
    return written.getvalue()


def changed(whole: bytes, suffix: str, rng: np.random.Generator) -> bytes:
    """One to four changes of a file: bits, bytes, cuts, copies, and tokens that mean something in the format."""
    data = bytearray(whole)
    for _ in range(int(rng.integers(1, 5))):
        place, how = int(rng.integers(len(data) + 1)), rng.integers(6)
        other = int(rng.integers(len(data) + 1))
        if how == 0 and place < len(data):
            data[place] ^= 1 << int(rng.integers(8))
        elif how == 1 and place < len(data):
            data[place] = int(rng.choice([0, 1, 9, 10, 32, 34, 44, 58, 124, 127, 128, 255, rng.integers(256)]))
        elif how == 2:
            del data[place : place + int(rng.integers(1, 9))]
        elif how == 3:
            data[place:place] = data[other : other + int(rng.integers(1, 40))]
        elif how == 4 and suffix in TOKENS:
            data[place:place] = TOKENS[suffix][rng.integers(len(TOKENS[suffix]))]
        elif how == 5 and rng.random() < 0.2:
            del data[place:]
    return bytes(data)


def encoder_of(path: Path) -> Any:
    """The encoder of a file that is read whole."""
    source = open_source(str(path))
    chunks = list(source.chunks())
    encoder = source.encoder(chunks[0], "y" if source.kind == "table" else None, ignore=_ignored(chunks[0]))
    for chunk in chunks:
        encoder.encode(chunk, True, BadRows())
    return encoder


def outcome(path: Path, known: Any = None) -> str:
    """Read and encode a file as training does, or with a known encoder as prediction does: ``"refused"`` or ``"read"``.

    Everything else is raised.
    """
    bad = BadRows(skip=True)
    try:
        source = open_source(str(path))
        is_table = source.kind == "table"
        chunks = source.chunks(bad=bad, types=known.types() if known and is_table else {})
        first = next(chunks, None)
        if first is None:
            return "read"
        encoder = known or source.encoder(first, "y" if is_table else None, ignore=_ignored(first))
        for chunk in (first, *chunks):
            encoder.encode(chunk, known is None, bad)
    except TunefreeError as error:
        return "refused" if str(error) else "refused without a word"
    return "read"


def _ignored(first: object) -> list[str]:
    return ["n"] if hasattr(first.data, "schema") and "n" in first.data.schema.names else []
