"""Words of texts: against scikit-learn's, for scripts of the world, and beyond ASCII."""

# ruff: noqa: RUF001 - letters of many scripts
import sys
import unicodedata
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer

from tunefree.stream import words
from tunefree.stream.arrays import bytes_of
from tunefree.stream.keys import hash_name
from tunefree.stream.words import count_words

SEED = 7
ALPHABETIC = st.characters(categories=("L", "Nd", "P", "Z", "S"), max_codepoint=0x5FF, exclude_characters="İ")


def counted(texts, seed=SEED):
    """The counts of each text by name, in the order of the entries."""
    found = count_words(*bytes_of(pa.array(texts, pa.string())), seed)
    names = [found.text[start:stop].tobytes().decode() for start, stop in found.places]
    assert [hash_name(name, seed) for name in names] == found.keys.tolist()
    ends = [0, *found.ends.tolist()]
    counts = [found.counts[start:stop].tolist() for start, stop in pairwise(ends)]
    return [dict(zip(names[start:], own, strict=False)) for start, own in zip(ends, counts, strict=False)]


@given(st.lists(st.text(ALPHABETIC | st.sampled_from(" aab_"), max_size=40), max_size=6))
def test_scripts_with_spaces_are_counted_as_scikit_learn_does(texts):
    vectorizer = CountVectorizer(ngram_range=(1, 2), preprocessor=lambda text: "".join(map(folded, text)))
    analyze = vectorizer.build_analyzer()
    for text, counts in zip(texts, counted(texts), strict=True):
        terms = analyze(text)
        assert counts == {term: terms.count(term) for term in terms}


def folded(letter):
    own = letter.casefold()
    return own if len(own) == 1 else letter.lower()[0]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("İstanbul ΣΑΣ Straße µm", ["istanbul", "σασ", "istanbul σασ", "straße", "σασ straße", "μm", "straße μm"]),
        ("हिन्दी में", ["हिन्दी", "में", "हिन्दी में"]),
        ("我爱Python", ["我", "爱", "我 爱", "python", "爱 python"]),
        ("ที่", ["ที่"]),
        ("がきゃ", ["が", "き", "が き", "ゃ", "き ゃ"]),
        ("𝔘𝔫 x 𝔦𝔠", ["𝔘𝔫", "𝔦𝔠", "𝔘𝔫 𝔦𝔠"]),
        ("Ⱥb 🙂 a b c", ["ⱥb"]),
        ("", []),
    ],
)
def test_words_of_the_scripts_of_the_world(text, names):
    assert list(counted([text])[0]) == names


def test_a_text_of_an_array_that_was_cut_is_read_from_its_place():
    texts = pa.array(["nothing of this", "red blue", "red"])[1:]
    assert [list(counts) for counts in counted(texts)] == [["red", "blue", "red blue"], ["red"]]


def test_a_long_text_and_many_short_ones():
    words = [f"w{k}" for k in range(40)] * 500
    long, *short = counted([" ".join(words), *words])
    assert long["w3"] == 500 and long["w39 w0"] == 499 and len(long) == 80
    assert short == [{word: 1.0} for word in words]


@given(st.text())
def test_letters_that_grow_fit(text):
    """Ⱥ has two bytes, and the small ⱥ three."""
    (counts,) = counted([text + "Ⱥ" * 50])
    assert any("ⱥ" * 50 in name for name in counts)


def test_every_character_of_words_is_in_the_table():
    table, category = words.forms(), unicodedata.category
    is_letter = [category(letter)[0] in "LNM" or letter == "_" for letter in map(chr, range(sys.maxunicode + 1))]
    assert np.array_equal(table[: len(is_letter)] != 0, is_letter)
    stand = table & words.CODE
    assert np.array_equal(stand[stand], stand)  # what stands for a character stands for itself
