"""svmlight and Vowpal Wabbit text becomes the rows that short parsers and these programs read; errors are told."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.stream.tabular import bytes_of, named_rows
from tests.stream.tabular import text as text_file
from tunefree.core.errors import DataError
from tunefree.stream.batch import BadRows, Chunk, Position
from tunefree.stream.feature_lines import SvmlightEncoder, VWEncoder
from tunefree.stream.text import read_lines

by_name = partial(named_rows, with_zeros=True)


def encoded(text, encoder, learning=True, bad=None):
    data = np.frombuffer(text.encode() if isinstance(text, str) else text, np.uint8)
    return encoder.encode(Chunk(data, "data.txt", 1, Position()), learning, bad or BadRows())


NUMBERS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.decimals(allow_nan=False, allow_infinity=False, places=5, min_value=-99, max_value=99).map(str),
    st.integers(-(10**25), 10**25).map(str),
    st.tuples(st.integers(0, 10**19), st.integers(-40, 40)).map("{0[0]}e{0[1]}".format),
    st.sampled_from(["+1", ".5", "5.", "-.5e+1", "1E3", "0", "-0.0", "9007199254740993", "0.1234567", "1.12345678"]),
)
BLANKS = st.sampled_from([" ", "  ", "\t", " \t "])
ROWS = st.lists(
    st.tuples(NUMBERS, st.lists(st.tuples(st.integers(1, 60), NUMBERS), unique_by=lambda pair: pair[0], max_size=9)),
    max_size=12,
)


def naive_svmlight(text):
    """Labels, and values by name."""
    words = [line.partition("#")[0].split() for line in text.split("\n")]
    pairs = [[word.split(":") for word in row[1:] if not word.startswith("qid")] for row in words if row]
    return [float(row[0]) for row in words if row], [{index: float(value) for index, value in row} for row in pairs]


@given(ROWS, st.data())
def test_rows_equal_a_ten_line_parser(rows, data):
    text = ""
    for label, pairs in rows:
        words = [label, *(["qid:3"] if data.draw(st.booleans()) else []), *(f"{i}:{v}" for i, v in pairs)]
        text += data.draw(st.sampled_from(["", " ", "\n", "# nothing\n"])) + data.draw(BLANKS).join(words)
        text += data.draw(st.sampled_from(["\n", "\r\n", " \n", " # 3:4 é\n", "#\n"]))
    if data.draw(st.booleans()):
        text = text.removesuffix("\n")
    encoder = SvmlightEncoder()
    batch = encoded(text, encoder)
    labels_and_values = batch.target.to_pylist(), by_name(encoder, batch)
    assert repr(labels_and_values) == repr(naive_svmlight(text))  # repr tells -0.0 from 0.0
    lines = [i for i, line in enumerate(text.split("\n"), 1) if line.partition("#")[0].split()]
    assert batch.numbers.tolist() == lines
    assert batch.weight.tolist() == [1.0] * len(rows)


def test_numbers_are_exact_to_the_last_bit():
    rng = np.random.default_rng(0)
    digits = ["".join(map(str, rng.integers(0, 10, rng.integers(1, 24)))) for _ in range(20000)]
    numbers = [d[: (k := rng.integers(0, len(d) + 1))] + "." + d[k:] for d in digits]
    halves = [f"{2**53 + k}.5e-{k % 23}" for k in range(-200, 200)]  # near the middle between two doubles
    numbers += halves + [f"{2 * 2**53 + 2 * k + 1}e-{k % 23}" for k in range(400)]
    batch = encoded("1 " + " ".join(f"{i}:{number}" for i, number in enumerate(numbers, 1)), SvmlightEncoder())
    assert batch.rows.values.tolist() == [float(number) for number in numbers]


BAD_SVMLIGHT = [
    *(
        (f"1 5:{end}", f"the value of '5:{end}' is not a number")
        for end in ("", "x", "1x", "1:2", "1e", ".", "-", "0x10", "7e30.8", "9" * 30 + ".8.8")
    ),
    ("1 5", "'5' has no colon; write index:value"),
    ("1 5 :1", "'5' has no colon"),
    ("1 :1", "':1' is not index:value"),
    ("1 x:1", "'x:1' is not index:value"),
    ("1 2147483648:1", "larger than 2147483647; hash features \\(`hash_bits=20`\\)"),
    ("1 5:nan", "the value of '5:nan' is not finite; leave out"),
    ("1 5:-Inf", "the value of '5:-Inf' is not finite"),
    ("1 5:1e400", "a number of '5:1e400' is too large"),
    ("1 5:" + "9" * 400, "is too large"),
    ("1 5:1 5:2", "an index occurs twice in the row that starts with '1'"),
    ("1 5:1 3:1 4:1 5:2", "an index occurs twice"),
    ("nan 5:1", "the label 'nan' is not finite"),
    ("x 5:1", "the label 'x' is not a number; start every row with its label"),
    ("5:1 6:1", "the label '5:1' is not a number"),
    ("7e30.8 5:1", "the label '7e30.8' is not a number"),
    ("1,2 5:1", "the row has several labels, '1,2'; give each row one label"),
    ("1 qid:x 5:1", "the query number of 'qid:x' is not an integer"),
    ("1 5:1\x00 6:1", r"'5:1\\x00' is binary, not text"),
    ("5:1\x00 6:1", r"'5:1\\x00' is binary, not text"),
    ("\x89PNG\x00\x01", "is binary, not text; check that the file is text"),
    ("1 5:1 é:2", r"'\\xc3\\xa9:2' is not index:value"),
    ("1 5:\xff", "is not a number"),
]


def test_a_long_number_in_a_bad_row_moves_no_other():
    long = "0.12345678901234567890123"
    text = f"1 1:{long}\n{long} 2:1e999 3:{long}1\n1 4:{long}2\n"
    bad = BadRows(skip=True)
    assert encoded(text, SvmlightEncoder(), bad=bad).rows.values.tolist() == [float(long), float(long + "2")]
    assert bad.tally.count == 1


def test_zero_is_an_index_where_it_occurs():
    encoder = SvmlightEncoder()
    for text, learning, rows, is_zero_based in (
        ("1 5:1\n", True, [{"5": 1}], False),  # as in files that were written before
        ("1 0:2 5:1\n", False, [{"5": 1}], False),
        ("1 0:2 5:1\n", True, [{"0": 2, "5": 1}], True),
    ):
        assert by_name(encoder, encoded(text, encoder, learning)) == rows
        assert encoder.state()[1]["zero_based"] == is_zero_based


def test_indices_of_any_size_are_hashed():
    largest = 10**19 - 1
    encoder = SvmlightEncoder(hash_bits=20)
    batch = encoded(f"1 1:1 {2**31}:1 {2**53}:1 {2**53 + 1}:1 {largest}:3\n1 {largest}:1\n", encoder)
    features = batch.rows.features.tolist()
    assert len(set(features)) == 5 and features[4] == features[5]
    with pytest.raises(DataError, match="larger than"):
        encoded(f"1 {largest + 1}:1", encoder)


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


HEADS = ["", "1 ", "-1 2.5 ", "0.5 1 0 ", "1 'a_tag ", "1 tag", "-1 3 'tag", "'tag ", " 1  2\t"]


@st.composite
def vw_rows(draw) -> str:
    text = draw(st.sampled_from(HEADS))
    for name, value, features in draw(NAMESPACES):
        text += "|" + (named(name, value) if name else "")
        text += "".join(draw(st.sampled_from([" ", "  ", "\t"])) + named(*feature) for feature in features)
        text += draw(st.sampled_from([" ", ""])) if features or name else " "
    return text


def naive_vw(line: str) -> tuple[float | None, float, str, dict[str, float]]:
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


@given(st.lists(vw_rows(), max_size=8), st.sampled_from(["\n", "\r\n", "\n\n"]))
def test_rows_of_vw_equal_a_short_parser(lines, end):
    text, encoder = end.join(lines), VWEncoder()
    bad = BadRows(skip=True)
    batch = encoded(text, encoder, bad=bad)
    expected = [row for row in map(naive_vw, lines) if row[0] is not None]
    assert bad.tally.count == len(lines) - len(expected)
    assert (batch.target.to_pylist() if expected else []) == [label for label, *_ in expected]
    assert batch.weight.tolist() == [weight for _, weight, *_ in expected]
    assert batch.tags == [tag for _, _, tag, _ in expected]
    assert [dict(sorted(row.items())) for row in by_name(encoder, batch)] == [
        pytest.approx(dict(sorted(row.items())), rel=1e-12) for *_, row in expected
    ]


BAD_VW = [
    *((f"1 | a:{end}", f"the value of 'a:{end}' is not a number") for end in ("", "x", "1:2", "1x", "7e30.8")),
    ("| a", r"the row has no label, it starts with '\|'; give it one"),
    ("1| a", "the row has no label, it starts with '1|'; give it one, with a blank between label and bar"),
    ("1 -1 | a", "the importance of the row that starts with '1' is negative"),
    ("1 nan | a", "the label or importance 'nan' is not finite"),
    ("1e999 | a", "a number of '1e999' is too large"),
    ("1 1 0.5 | a", "the base .* is not 0; leave it out"),
    ("1 1 0 1 | a", "'1' is one word too many before the first bar"),
    ("x | a", "'x' before the first bar is not a number"),
    ("1 7e30.8 | a", "'7e30.8' before the first bar is not a number"),
    ("1:2 | a", "'1:2' before the first bar is not a number"),
    ("1 a b", "the row that starts with '1' has no bar; put | before the features"),
    ("1 | a:nan", "the value of 'a:nan' is not finite"),
    ("1 | a:1e400", "a number of 'a:1e400' is too large"),
    ("1 |f:1e200 a:1e200", "a number of 'a:1e200' is too large"),
    ("1 |f:x a", "the value of '|f:x' is not a number"),
    ("1 | :3", "':3' does not start with a feature's name; write name:value"),
    ("1 | a\x00b", r"'a\\x00b' is binary, not text"),
    ("\x89PNG\x00\x01 | a", "is binary, not text; check that the file is text"),
]


@pytest.mark.parametrize(
    ("cls", "good", "names", "row", "message"),
    [
        *((SvmlightEncoder, ("1 1:1", "-1 2:1"), "12", row, message) for row, message in BAD_SVMLIGHT),
        *((VWEncoder, ("1 | a", "-1 | c"), "ac", row, message.replace("|", r"\|")) for row, message in BAD_VW),
    ],
)
def test_bad_rows(cls, good, names, row, message):
    text = f"{good[0]}\n\n{row}\n{good[1]}\n"
    with pytest.raises(DataError, match=message.replace(r"\\|", r"\|")) as caught:
        encoded(text, cls())
    assert str(caught.value).startswith("data.txt, row 3: ")
    assert str(caught.value).endswith("or pass `on_bad_row='skip'`")
    bad, encoder = BadRows(skip=True), cls()
    batch = encoded(text, encoder, bad=bad)
    assert by_name(encoder, batch) == [{name: 1} for name in names] and batch.target.to_pylist() == [1, -1]
    assert batch.numbers.tolist() == [1, 4] and bad.tally.count == 1
    assert encoder.n_features == 3  # nothing of the bad row is learned


def test_hashed_features_of_shards_have_the_same_ids():
    one, other = VWEncoder(hash_bits=3), VWEncoder(hash_bits=3)
    encoded("1 | a b\n", other)
    one.absorb(*other.state())
    assert one.n_features == 9 and bytes_of(one) == bytes_of(other)


SVMLIGHT_LINES = ROWS.map(lambda rows: [" ".join([label, *(f"{i}:{v}" for i, v in pairs)]) for label, pairs in rows])


@pytest.mark.parametrize(
    ("cls", "lines"), [(SvmlightEncoder, SVMLIGHT_LINES), (VWEncoder, st.lists(vw_rows(), max_size=8))]
)
@given(data=st.data(), block_size=st.integers(1, 80))
def test_cuts_change_nothing(tmp_path_factory, cls, lines, data, block_size):
    content = "".join(line + "\n" for line in data.draw(lines))
    path, results = text_file(tmp_path_factory.mktemp("lines") / "a.txt", content), []
    for size in (block_size, 1 << 20):
        encoder, found = cls(), []
        for chunk in read_lines([path], block_size=size):
            batch = encoder.encode(chunk, True, BadRows(skip=True))
            labels = batch.target.to_pylist() if batch.target else []
            found += zip(by_name(encoder, batch), labels, batch.tags or labels, batch.numbers.tolist(), strict=True)
        results.append((found, bytes_of(encoder)))
    assert results[0] == results[1]
