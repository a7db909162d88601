"""Kernels of the stream give the same bits as machine code and as they stand."""

import numpy as np
import pyarrow as pa
import pytest

from tests.stream.test_feature_lines import encoded
from tunefree.compiled import functions
from tunefree.stream import keys as dictionary
from tunefree.stream.arrays import bytes_of
from tunefree.stream.batch import BadRows
from tunefree.stream.feature_lines import SvmlightEncoder, VWEncoder
from tunefree.stream.words import count_words

NUMBERS = ["0.5", "1", "0.12345678", "0.1234567", "-1e-5", "1e300", "+3.25e2", "0.12345678901234567890123", "7e-330"]
NUMBERS += ["9007199254740993.5", "1e99999999", "x", "nan", "1e", "-"]
SVMLIGHT = [f"{first} 3:{second} 2:1 12345678:{first}\r" for first in NUMBERS for second in NUMBERS]
SVMLIGHT += ["1 2:1 1:2 2:3", "1 qid:3 4:1 # x", "1 2147483648:1", "", "#", "1 :2", "1 5"]
VW = [f"{a} 2 'tag|space:{b} a_long_name:{a} b c |  \xfc:{b}" for a in NUMBERS for b in NUMBERS]
VW += ["1 | a", "| a a", "2", "1 1 1 | a", "1 -1 |f x", "1 |:3 a", ""]


def learned(encoder, lines):
    bad = BadRows(skip=True)
    batch = encoded("\n".join(lines), encoder, bad=bad)
    reasons = [str(reason) for reason in bad.tally.reasons]
    return batch.rows, batch.target.to_pylist(), batch.weight, batch.numbers, batch.tags, encoder.state(), reasons


def counted():
    texts = ["To be, or not TO BE: a 中国", "Straße İstanbul ΣΑΣ", "", "हिन्दी में ที่ 𝔘𝔫 🙂 Ⱥb"]  # noqa: RUF001
    return count_words(*bytes_of(pa.array(texts, pa.string())), 2**64 - 5)


def looked_up():
    values = np.random.default_rng(0).integers(0, 2000, 3000).astype(np.uint64) << np.uint64(50)
    exact, ids = dictionary.lookup(dictionary.create(5), values)
    hashed = dictionary.lookup(dictionary.create(bits=5), values[:100])[1]
    return dictionary.save(exact), ids, hashed


@pytest.mark.parametrize(
    "results",
    [
        lambda: learned(SvmlightEncoder(), SVMLIGHT),
        lambda: learned(SvmlightEncoder(hash_bits=2), SVMLIGHT),
        lambda: learned(VWEncoder(), VW),
        lambda: learned(VWEncoder(hash_bits=1), VW),
        counted,
        looked_up,
    ],
)
@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")  # of whole numbers, which is meant
def test_results_equal_plain_python(results, monkeypatch):
    compiled = results()
    monkeypatch.setattr(functions, "IS_COMPILED", False)
    np.testing.assert_equal(results(), compiled)
