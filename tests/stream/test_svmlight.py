"""svmlight text becomes the rows that a ten-line parser and scikit-learn read from it; what is wrong is told."""

import io
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from tunefree.core.errors import DataError
from tunefree.stream.batch import BadRows, Chunk, Position
from tunefree.stream.svmlight import SvmlightEncoder
from tunefree.stream.text import read_lines

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


def chunk(text: str | bytes, row: int = 1) -> Chunk:
    data = text.encode() if isinstance(text, str) else text
    return Chunk(np.frombuffer(data, np.uint8), "data.svm", row, Position())


def encoded(text, learning=True, encoder=None, bad=None):
    return (encoder or SvmlightEncoder()).encode(chunk(text), learning, bad or BadRows())


def by_name(encoder, batch) -> list[tuple[float, dict[str, float]]]:
    names, pointers = encoder.names(), batch.rows.pointers
    return [
        (
            label,
            {
                names[feature]: value
                for feature, value in zip(
                    batch.rows.features[start:stop].tolist(), batch.rows.values[start:stop].tolist(), strict=True
                )
            },
        )
        for label, (start, stop) in zip(batch.target.to_pylist(), pairwise(pointers), strict=True)
    ]


def naive(text: str) -> list[tuple[float, dict[str, float]]]:
    rows = []
    for line in text.split("\n"):
        words = line.partition("#")[0].split()
        if words:
            pairs = [word.split(":") for word in words[1:] if not word.startswith("qid")]
            rows.append((float(words[0]), {index: float(value) for index, value in pairs}))
    return rows


@given(ROWS, st.data())
def test_rows_are_those_of_a_ten_line_parser(rows, data):
    text = ""
    for label, pairs in rows:
        words = [label, *(["qid:3"] if data.draw(st.booleans()) else []), *(f"{i}:{v}" for i, v in pairs)]
        text += data.draw(st.sampled_from(["", " ", "\n", "# nothing\n"])) + data.draw(BLANKS).join(words)
        text += data.draw(st.sampled_from(["\n", "\r\n", " \n", " # 3:4 é\n", "#\n"]))
    if data.draw(st.booleans()):
        text = text.removesuffix("\n")
    encoder = SvmlightEncoder()
    batch = encoded(text, encoder=encoder)
    assert repr(by_name(encoder, batch)) == repr(naive(text))  # repr tells -0.0 from 0.0
    lines = [i for i, line in enumerate(text.split("\n"), 1) if line.partition("#")[0].split()]
    assert batch.numbers.tolist() == lines
    assert batch.weight.tolist() == [1.0] * len(rows)


def test_rows_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 30)) * (rng.random((200, 30)) < 0.3) * 10.0 ** rng.integers(-30, 30, 30)
    X[0] = 1.0  # every feature is seen in order
    stream = io.BytesIO()
    dump_svmlight_file(X, rng.standard_normal(200), stream, zero_based=False)
    expected, labels = load_svmlight_file(io.BytesIO(stream.getvalue()), zero_based=False)
    batch = encoded(stream.getvalue())
    assert np.array_equal(batch.target, labels)
    assert np.array_equal(batch.rows.pointers, expected.indptr)
    assert np.array_equal(batch.rows.features, expected.indices + 1)
    assert np.array_equal(batch.rows.values, expected.data)


def test_numbers_are_exact_to_the_last_bit():
    rng = np.random.default_rng(0)
    digits = ["".join(map(str, rng.integers(0, 10, rng.integers(1, 24)))) for _ in range(20000)]
    numbers = [d[: (k := rng.integers(0, len(d) + 1))] + "." + d[k:] for d in digits]
    halves = [f"{2**53 + k}.5e-{k % 23}" for k in range(-200, 200)]  # near the middle between two doubles
    numbers += halves + [f"{2 * 2**53 + 2 * k + 1}e-{k % 23}" for k in range(400)]
    batch = encoded("1 " + " ".join(f"{i}:{number}" for i, number in enumerate(numbers, 1)))
    assert batch.rows.values.tolist() == [float(number) for number in numbers]


BAD = [
    ("1 5", "'5' has no colon; write index:value"),
    ("1 2:1 5", "'5' has no colon"),
    ("1 5:", "the value of '5:' is not a number"),
    ("1 5:x", "the value of '5:x' is not a number"),
    ("1 5:1x", "the value of '5:1x' is not a number"),
    ("1 5:1:2", "the value of '5:1:2' is not a number"),
    ("1 5:1e", "the value of '5:1e' is not a number"),
    ("1 5:.", "the value of '5:.' is not a number"),
    ("1 5:-", "the value of '5:-' is not a number"),
    ("1 5:0x10", "the value of '5:0x10' is not a number"),
    ("1 5: 1", "the value of '5:' is not a number"),
    ("1 5 :1", "'5' has no colon"),
    ("1 :1", "':1' is not index:value"),
    ("1 x:1", "'x:1' is not index:value"),
    ("1 -1:1", "'-1:1' is not index:value"),
    ("1 1.5:1", "'1.5:1' is not index:value"),
    ("1 2147483648:1", "larger than 2147483647; hash features \\(`hash_bits=20`\\)"),
    ("1 18446744073709551617:1", "larger than 2147483647"),
    ("1 5:nan", "the value of '5:nan' is not finite; leave out"),
    ("1 5:-Inf", "the value of '5:-Inf' is not finite"),
    ("1 5:1e400", "a number of '5:1e400' is too large"),
    ("1 5:" + "9" * 400, "is too large"),
    ("1 5:1 5:2", "an index occurs twice in the row that starts with '1'"),
    ("1 5:1 3:1 4:1 5:2", "an index occurs twice"),
    ("nan 5:1", "the label 'nan' is not finite"),
    ("x 5:1", "the label 'x' is not a number; start every row with its label"),
    ("5:1 6:1", "the label '5:1' is not a number"),
    ("1,2 5:1", "the row has several labels, '1,2'; give each row one label"),
    ("1e999 5:1", "a number of '1e999' is too large"),
    ("1 qid:x 5:1", "the query number of 'qid:x' is not an integer"),
    ("1 qid:1 qid:2 5:1", "'qid:2' is not index:value"),
    ("1 5:1\x00 6:1", r"'5:1\\x00' is binary, not text"),
    ("\x89PNG\x00\x01", "is binary, not text; check that the file is text"),
    ("1 5:1 é:2", r"'\\xc3\\xa9:2' is not index:value"),
    ("1 5:\xff", "is not a number"),
]


@pytest.mark.parametrize(("row", "message"), BAD)
def test_bad_rows(row, message):
    text = f"1 1:1\n\n{row}\n-1 2:1\n"
    with pytest.raises(DataError, match=message) as caught:
        encoded(text)
    assert str(caught.value).startswith("data.svm, row 3: ")
    assert str(caught.value).endswith("or pass `on_bad_row='skip'`")
    bad, encoder = BadRows(skip=True), SvmlightEncoder()
    batch = encoded(text, bad=bad, encoder=encoder)
    assert by_name(encoder, batch) == [(1, {"1": 1}), (-1, {"2": 1})]
    assert batch.numbers.tolist() == [1, 4]
    assert bad.tally.count == 1


def test_a_long_number_in_a_bad_row_moves_no_other():
    long = "0.12345678901234567890123"
    text = f"1 1:{long}\n{long} 2:1e999 3:{long}1\n1 4:{long}2\n"
    bad = BadRows(skip=True)
    assert encoded(text, bad=bad).rows.values.tolist() == [float(long), float(long + "2")]
    assert bad.tally.count == 1


@given(ROWS, st.integers(1, 80))
def test_cuts_change_nothing(tmp_path_factory, rows, block_size):
    path = tmp_path_factory.mktemp("svm") / "a.svm"
    path.write_text("".join(" ".join([label, *(f"{i}:{v}" for i, v in pairs)]) + "\n" for label, pairs in rows))
    results = []
    for size in (block_size, 1 << 20):
        encoder = SvmlightEncoder()
        entries: list = []
        labels: list = []
        numbers: list = []
        for lines in read_lines([str(path)], block_size=size):
            batch = encoder.encode(lines, True, BadRows())
            entries += zip(batch.rows.features.tolist(), batch.rows.values.tolist(), strict=True)
            labels += batch.target.to_pylist()
            numbers += batch.numbers.tolist()
        arrays, header = encoder.state()
        results.append((entries, labels, numbers, arrays["keys"].tobytes(), header))
    assert results[0] == results[1]


def test_zero_is_an_index_where_it_occurs():
    encoder = SvmlightEncoder()
    encoded("1 5:1\n", encoder=encoder)
    assert not encoder.state()[1]["zero_based"]  # as in files that were written before
    batch = encoded("1 0:2 5:1\n", encoder=encoder)
    assert by_name(encoder, batch) == [(1, {"0": 2, "5": 1})]
    assert encoder.state()[1]["zero_based"]
    left_out = SvmlightEncoder()
    encoded("1 5:1\n", encoder=left_out)
    assert by_name(left_out, encoded("1 0:2 5:1\n", learning=False, encoder=left_out)) == [(1, {"5": 1})]
    assert not left_out.state()[1]["zero_based"]


def test_indices_of_any_size_are_hashed():
    largest = 10**19 - 1
    encoder = SvmlightEncoder(hash_bits=20)
    batch = encoded(f"1 1:1 {2**31}:1 {2**53}:1 {2**53 + 1}:1 {largest}:3\n1 {largest}:1\n", encoder=encoder)
    features = batch.rows.features.tolist()
    assert len(set(features)) == 5 and features[4] == features[5]
    with pytest.raises(DataError, match="larger than"):
        encoded(f"1 {largest + 1}:1", encoder=encoder)
