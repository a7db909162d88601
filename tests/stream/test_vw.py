"""Vowpal Wabbit text becomes the rows that a short parser, and Vowpal Wabbit itself, read from it."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunefree.core.errors import DataError
from tunefree.stream.batch import BadRows, Chunk, Position
from tunefree.stream.text import read_lines
from tunefree.stream.vw import VWEncoder

WORDS = st.text(st.sampled_from("abé'^#-.0123456789"), min_size=1, max_size=20)
VALUES = st.one_of(
    st.none(),
    st.floats(-1e6, 1e6, allow_nan=False).map(repr),
    st.sampled_from(["1", "-2", "0.5", "1e-3", "0.12345678901234567890", "+3."]),
)
NAMESPACES = st.lists(
    st.tuples(st.one_of(st.just(""), WORDS), VALUES, st.lists(st.tuples(WORDS, VALUES), max_size=6)),
    min_size=1,
    max_size=3,
)


def named(name: str, value: str | None) -> str:
    return name if value is None else f"{name}:{value}"


@st.composite
def rows(draw) -> str:
    head = draw(
        st.sampled_from(["", "1 ", "-1 2.5 ", "0.5 1 0 ", "1 'a_tag ", "1 tag", "-1 3 'tag", "'tag ", " 1  2\t"])
    )
    text = head
    for name, value, features in draw(NAMESPACES):
        text += "|" + (named(name, value) if name else "")
        text += "".join(draw(st.sampled_from([" ", "  ", "\t"])) + named(*feature) for feature in features)
        text += draw(st.sampled_from([" ", ""])) if features or name else " "
    return text


def naive(line: str) -> tuple[float | None, float, str, dict[str, float]]:
    head, *spaces = line.split("|")
    words, tag = head.split(), ""
    if words and (head[-1] not in " \t" or words[-1].startswith("'")):
        tag = words.pop().removeprefix("'")
    label, weight = (float(words[0]) if words else None), (float(words[1]) if len(words) > 1 else 1.0)
    row: dict[str, float] = {}
    for space in spaces:
        words = space.split()
        name, _, factor = words.pop(0).partition(":") if space[:1] not in ("", " ", "\t") else ("", "", "")
        for feature, _, value in (word.partition(":") for word in words):
            key = f"{name}^{feature}" if name else feature
            row[key] = row.get(key, 0.0) + float(value or 1) * float(factor or 1)
    return label, weight, tag, row


def chunk(text: str | bytes) -> Chunk:
    data = text.encode() if isinstance(text, str) else text
    return Chunk(np.frombuffer(data, np.uint8), "data.vw", 1, Position())


def encoded(text, learning=True, encoder=None, bad=None):
    return (encoder or VWEncoder()).encode(chunk(text), learning, bad or BadRows())


def by_name(encoder, batch) -> list[dict[str, float]]:
    names, pointers = encoder.names(), batch.rows.pointers
    result = []
    for start, stop in pairwise(pointers):
        features = [names[feature] for feature in batch.rows.features[start:stop]]
        assert len(set(features)) == len(features)
        result.append(dict(zip(features, batch.rows.values[start:stop].tolist(), strict=True)))
    return result


@given(st.lists(rows(), max_size=8), st.sampled_from(["\n", "\r\n", "\n\n"]))
def test_rows_are_those_of_a_short_parser(lines, end):
    text, encoder = end.join(lines), VWEncoder()
    bad = BadRows(skip=True)
    batch = encoded(text, encoder=encoder, bad=bad)
    expected = [row for row in map(naive, lines) if row[0] is not None]
    assert bad.tally.count == len(lines) - len(expected)
    assert (batch.target.to_pylist() if expected else []) == [label for label, *_ in expected]
    assert batch.weight.tolist() == [weight for _, weight, *_ in expected]
    assert batch.tags == [tag for _, _, tag, _ in expected]
    assert [dict(sorted(row.items())) for row in by_name(encoder, batch)] == [
        pytest.approx(dict(sorted(row.items())), rel=1e-12) for *_, row in expected
    ]


LINES = [
    "1 2.5 'first|size:2 height:1.5 width |colour red red:2",
    "-1 second| a b:0.25 | a:3",
    "0.5|a b",
    "1 1 'x |f:0.5 1:2 |g|h y:-1e-2",
]


def test_rows_are_those_of_vowpal_wabbit():
    vowpal = pytest.importorskip("vowpalwabbit").Workspace("--quiet --noconstant")
    encoder = VWEncoder()
    encoded("\n".join(LINES).replace("0.5|", "0.5 |"), encoder=encoder)  # learns all features
    batch = encoded("\n".join(LINES), learning=False, encoder=encoder)
    for i, row in enumerate(by_name(encoder, batch)):
        example = vowpal.parse(LINES[i])
        values: dict[tuple[int, int], float] = {}
        for space in range(example.num_namespaces()):
            for k in range(example.num_features_in(space)):
                key = (space, example.feature(space, k))
                values[key] = values.get(key, 0.0) + example.feature_weight(space, k)
        assert sorted(values.values()) == pytest.approx(sorted(row.values()), rel=1e-6)
        label = batch.target[i].as_py()
        assert example.get_simplelabel_label() == pytest.approx(3.4028234663852886e38 if label is None else label)
        assert example.get_simplelabel_weight() == pytest.approx(batch.weight[i])
        assert example.get_tag() == batch.tags[i]
        vowpal.finish_example(example)
    vowpal.finish()


BAD = [
    ("| a", r"the row has no label, it starts with '\|'; give it one"),
    ("1| a", "the row has no label, it starts with '1|'; give it one, with a blank between label and bar"),
    ("1 -1 | a", "the importance of the row that starts with '1' is negative"),
    ("1 nan | a", "the label or importance 'nan' is not finite"),
    ("inf | a", "the label or importance 'inf' is not finite"),
    ("1e999 | a", "a number of '1e999' is too large"),
    ("1 1 0.5 | a", "the base .* is not 0; leave it out"),
    ("1 1 0 1 | a", "'1' is one word too many before the first bar"),
    ("1 'tag 2 | a", "'2' is one word too many"),
    ("x | a", "'x' before the first bar is not a number"),
    ("1:2 | a", "'1:2' before the first bar is not a number"),
    ("1 a b", "the row that starts with '1' has no bar; put | before the features"),
    ("1 | a:", "the value of 'a:' is not a number"),
    ("1 | a:x", "the value of 'a:x' is not a number"),
    ("1 | a:1:2", "the value of 'a:1:2' is not a number"),
    ("1 | a:1x", "the value of 'a:1x' is not a number"),
    ("1 | a:nan", "the value of 'a:nan' is not finite"),
    ("1 | a:-inf", "the value of 'a:-inf' is not finite"),
    ("1 | a:1e400", "a number of 'a:1e400' is too large"),
    ("1 |f:1e200 a:1e200", "a number of 'a:1e200' is too large"),
    ("1 |f:x a", "the value of '|f:x' is not a number"),
    ("1 | :3", "':3' does not start with a feature's name; write name:value"),
    ("1 |:3 a", "does not start with a feature's name"),
    ("1 | a\x00b", r"'a\\x00b' is binary, not text"),
    ("\x89PNG\x00\x01 | a", "is binary, not text; check that the file is text"),
]


@pytest.mark.parametrize(("row", "message"), BAD)
def test_bad_rows(row, message):
    text = f"1 | a\n\n{row}\n-1 | c\n"
    with pytest.raises(DataError, match=message.replace("|", r"\|").replace(r"\\|", r"\|")) as caught:
        encoded(text)
    assert str(caught.value).startswith("data.vw, row 3: ")
    assert str(caught.value).endswith("or pass `on_bad_row='skip'`")
    bad, encoder = BadRows(skip=True), VWEncoder()
    batch = encoded(text, bad=bad, encoder=encoder)
    assert by_name(encoder, batch) == [{"a": 1}, {"c": 1}]
    assert batch.numbers.tolist() == [1, 4]
    assert encoder.n_features == 3  # nothing of the bad row is learned
    assert bad.tally.count == 1


@given(st.lists(rows(), max_size=8), st.integers(1, 60))
def test_cuts_change_nothing(tmp_path_factory, lines, block_size):
    path = tmp_path_factory.mktemp("vw") / "a.vw"
    path.write_bytes("".join(line + "\n" for line in lines).encode())
    results = []
    for size in (block_size, 1 << 20):
        encoder = VWEncoder()
        entries: list = []
        labels: list = []
        tags: list = []
        for chunk_read in read_lines([str(path)], block_size=size):
            batch = encoder.encode(chunk_read, True, BadRows(skip=True))
            entries += zip(batch.rows.features.tolist(), batch.rows.values.tolist(), strict=True)
            labels += batch.target.to_pylist() if batch.target else []
            tags += batch.tags or []
        arrays, header = encoder.state()
        results.append((entries, labels, tags, {name: array.tobytes() for name, array in arrays.items()}, header))
    assert results[0] == results[1]
