"""Which features belong to which part of which column."""

import pyarrow as pa

from tests.stream.tabular import encoded
from tunefree.stream.layout import CODES, MISSING, NUMBERS, WORDS, Layout

TABLE = {
    "age": [39.0, None, 50.0],
    "day": pa.array([1_600_000_000, None, 1_700_000_000], pa.timestamp("s")),
    "at": pa.array([3600, 7200, None], pa.time32("s")),
    "job": ["clerk", "", "cook"],
    "a=b": ["x=1", "x=2", "x=1"],
    "rich": [True, False, None],
    "told": ["a long story", "told again", None],
}
OF_NUMBERS = {"age": "age", "age[missing]": "age", "day[days]": "day[days]", "day[missing]": "day[days]"}
OF_CODES = {"day[month=9]": "day[month]", "day[year=2023]": "day[year]", "at[hour=2]": "at[hour]", "job=cook": "job"}


def test_each_feature_has_its_part():
    encoder, _ = encoded(TABLE, text=["told"])
    layout, names = Layout.of_encoder(encoder), encoder.names()
    of = {name: layout.parts[part] for name, part in zip(names[1:], layout.feature_parts[1:].tolist(), strict=True)}
    assert layout.feature_parts[0] == -1
    for name, part in (OF_NUMBERS | OF_CODES | {"job[missing]": "job", "a=b=x=1": "a=b", "rich=true": "rich"}).items():
        assert of[name].name == part, name
    assert {of[name].kind for name in OF_NUMBERS} == {NUMBERS}
    assert {of[name].kind for name in OF_CODES} == {CODES}
    words = [part for name, part in of.items() if name.startswith("told")]
    assert len(words) > 3 and {(part.name, part.kind) for part in words} == {("told", WORDS)}
    assert of["day[month=9]"].column == "day"


def test_codes_have_labels():
    encoder, _ = encoded(TABLE, text=["told"])
    layout, names = Layout.of_encoder(encoder), encoder.names()
    labels = {name: layout.label(j) for j, name in enumerate(names) if j}
    expected = {
        "job=cook": "cook",
        "job[missing]": MISSING,
        "a=b=x=2": "x=2",
        "day[month=9]": "9",
        "rich=false": "false",
    }
    assert {name: labels[name] for name in expected} == expected
