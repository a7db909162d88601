"""The functions and classes of the stream by small examples."""

import numpy as np
import pyarrow as pa
import pytest

from tunefree.stream import encoder as tables
from tunefree.stream import formats
from tunefree.stream.batch import BadRows, Chunk, Position
from tunefree.stream.jsonlines import shown
from tunefree.stream.notation import Notation, codes_in, is_continental, missing_words, unit_of
from tunefree.stream.schema import FileNotation
from tunefree.stream.svmlight import SvmlightEncoder
from tunefree.stream.text import start_of
from tunefree.stream.vw import VWEncoder


def test_table():
    table = pa.record_batch({"age": [39, None], "job": ["clerk", "cook"], "rich": ["no", "yes"]})
    chunk = Chunk(table, "example", 1, Position())
    encoder = tables.TableEncoder.infer(chunk, target="rich")
    batch = encoder.encode(chunk, True, BadRows())
    assert batch.rows.numbers.tolist() == [[39.0], [0.0]] and batch.rows.codes.tolist() == [[0, 2], [3, 4]]
    assert batch.target.to_pylist() == ["no", "yes"]
    assert encoder.names() == ["(constant)", "age", "job=clerk", "age[missing]", "job=cook"]


@pytest.mark.parametrize(
    ("encoder", "text", "features", "values", "weight", "tags", "names"),
    [
        (SvmlightEncoder, b"+1 7:0.5 9:2 # a comment\n-1 9:1\n", [1, 2, 2], [0.5, 2, 1], [1, 1], None, ["7", "9"]),
        (
            *(VWEncoder, b"1 2.0 'first|size:2 height:1.5 width\n-1 |size width:3\n", [1, 2, 2], [3, 2, 3], [2, 1]),
            *(["first", ""], ["size^height", "size^width"]),
        ),
    ],
)
def test_lines(encoder, text, features, values, weight, tags, names):
    encoder = encoder()
    batch = encoder.encode(Chunk(np.frombuffer(text, np.uint8), "example", 1, Position()), True, BadRows())
    assert batch.target.to_pylist() == [1.0, -1.0] and batch.weight.tolist() == weight and batch.tags == tags
    assert batch.rows.features.tolist() == features and batch.rows.values.tolist() == values
    assert encoder.names() == ["(constant)", *names]


def test_numbers_in_texts():
    assert Notation(",", ".").numbers(pa.array(["1.234,50 €", "-7 %", None])).to_pylist() == [1234.5, -7, None]
    assert missing_words(pa.array(["7", "8"] * 100 + ["unknown", "-", "-"])) == ("-", "unknown")
    assert missing_words(pa.array(["7", "a", "b"])) == ()
    assert [unit_of(text) for text in ("5.2 kg", "5 EUR", "3K", "3.5", "C12")] == [" kg", "", "", "", ""]
    assert codes_in(pa.array(["01234", "10115"])) == "leading zeros" and codes_in(pa.array(["0.5"])) == ""
    assert codes_in(pa.array(["9007199254740993"])) == "whole numbers beyond 2^53"
    either = [pa.array(["12,303", "8,583"])]
    assert not is_continental(either) and is_continental(either, semicolons=True)


def test_a_column_tells_the_notation_of_another():
    strings = {"price": pa.array(["1.868", "2.411"]), "tax": pa.array(["1,5", "2,25"])}
    assert FileNotation({"price": strings["price"]}, {"price": None}).number_notation("price") is None
    assert FileNotation(strings, {"price": None, "tax": None}).number_notation("price") == Notation(",", ".")


def test_lines_before_the_header():
    assert start_of(b"# made by hand\n\nsep=;\nage;job\n39;cook\n") == (22, ";", 1)
    assert start_of(b"# made by hand\n#id,x\n1,0.5\n") == (15, None, 1)  # the names of columns behind a # as well


def test_formats_are_recognised():
    assert formats.by_extension("people.TSV.gz").name == "csv" and formats.by_extension("people.txt") is None
    lines = ('{"age": 39}', "1 3:0.5 7:1", "1 |f height:1.8", "age,job")
    assert [formats.by_line(line).name for line in lines] == ["json", "svmlight", "vw", "csv"]


def test_names_and_values_in_messages():
    assert tables.renamed(["age", "amount"], ["amout", "day"]) == "'amout' is not known: did you mean 'amount'?"
    assert tables.renamed(["amount"], ["sum"]) == "'sum' is not known: did you mean 'amount'?"
    assert tables.renamed(["age", "amount"], ["day"]) == ""
    assert shown([None, True]) == "[null, true]" and shown("a") == "'a'"
