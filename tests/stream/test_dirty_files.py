"""Files as people have them, read through Python, the command line and serve: what is in each, or which error it is."""

import csv
import gzip
import warnings
from dataclasses import dataclass, field
from typing import Any

import pytest

import tunefree
from tests.stream import tabular
from tests.stream.tabular import named_rows
from tunefree.core.errors import DataWarning, TunefreeError
from tunefree.core.parameters import as_options
from tunefree.model_files.plan import Plan
from tunefree.serving.service import Service
from tunefree.stream.batch import BadRows
from tunefree.stream.source import open_source


@dataclass(frozen=True)
class Dirty:
    """A file with a target ``y``; either ``kinds`` or ``error`` is what comes of it."""

    name: str
    content: bytes
    kinds: dict[str, str] = field(default_factory=dict)  # of the columns that are features
    first: dict[str, float] = field(default_factory=dict)  # features of the first row, by name, of those that are not 0
    sent: dict[str, Any] = field(default_factory=dict)  # the first row, as JSON with the habits of the file
    error: str = ""  # part of the message
    notes: tuple[str, ...] = ()  # part of each
    rows: int = 4
    ending: str = ".csv"
    encoding: str | None = None
    plan: dict[str, Any] = field(default_factory=dict)  # what is said


def text(*lines: str, encoding: str = "utf-8", end: str = "\n") -> bytes:
    return (end.join(lines) + end).encode(encoding)


def labelled(column: str, *values: str, delimiter: str = ",") -> bytes:
    """A column and a target."""
    rows = [f"{value}{delimiter}{'yes' if place % 2 else 'no'}" for place, value in enumerate(values)]
    return text(f"{column}{delimiter}y", *rows)


def wrong(name: str, content: bytes, error: str, **more: Any) -> Dirty:
    return Dirty(name, content, error=error, **more)


def reads(name: str, kind: str, values: list[str], first: dict[str, float], sent: Any = None, **more: Any) -> Dirty:
    """A column of a kind; ``sent`` is its first value in JSON, if it is not the text."""
    delimiter, column = more.pop("delimiter", ","), more.pop("column", "x")
    content = labelled(f'"{column}"' if "," in column else column, *values, delimiter=delimiter)
    sent = values[0].strip('"') if sent is None else sent
    return Dirty(name, content, {column: kind}, first, {column: sent}, rows=len(values), **more)


LONG = "x, in m, or so"
DASH = ("'-' is taken for a missing value",)
DIFFERENT = ("column 'x': values of several words, most of them different, read as categories",)
ZEROS = ("column 'x': leading zeros",)
SKIP = {"on_bad_row": "skip"}
PLAIN = ("x,job,y", "5,cook,no", "6,clerk,yes", "7,cook,no", "8,clerk,yes")
KINDS = {"x": "number", "job": "category"}
FIRST = {"x": 5.0, "job=cook": 1.0}
SENT = {"x": 5, "job": "cook"}
NAMED = ("x,job,y", "5,Köchin,no", "6,clerk,yes", "7,Köchin,no", "8,clerk,yes")
NAMED_FIRST, NAMED_SENT = {"x": 5.0, "job=Köchin": 1.0}, {"x": 5, "job": "Köchin"}


def plain(name: str, content: bytes, **more: Any) -> Dirty:
    """A file with the rows of PLAIN."""
    return Dirty(name, content, KINDS, FIRST, SENT, **more)


def joined(mark: str) -> bytes:
    return text(*(line.replace(",", mark) for line in PLAIN))


DIRTY = (
    # encodings
    wrong("UTF-16 without a mark", text(*NAMED, encoding="utf-16-le"), "not text in UTF-8; name its --encoding"),
    Dirty("Latin-1, named", text(*NAMED, encoding="latin-1"), KINDS, NAMED_FIRST, NAMED_SENT, encoding="latin-1"),
    wrong("Latin-1", text(*NAMED, encoding="latin-1"), "is not text in UTF-8 (--encoding names another)"),
    wrong("cp1252 in the header", text("€,y", "1,no", encoding="cp1252"), "not text in UTF-8; name its --encoding"),
    plain("gzip", gzip.compress(text(*PLAIN)), ending=".csv.gz"),
    wrong("a zero byte", b"x,y\n1,no\n\x00,yes\n", "not text in UTF-8"),
    # separators
    plain("semicolons", joined(";")),
    plain("tabs by extension", joined("\t"), ending=".tsv"),
    plain("bars", joined("|")),
    wrong("spaces", joined(" "), "no target column 'y'"),
    plain("trailing separators", text(*(f"{line}," for line in PLAIN))),  # what never has a value is no column
    wrong("trailing separators of rows", text("x,y", "1,no,", "2,yes,"), "row 1: the row has 3 fields, the header 2"),
    reads("more separators in names", "number", ["5", "6", "7"], {LONG: 5.0}, 5, column=LONG, delimiter=";"),
    reads("numbers in quotes", "number", ['"5"', '"6"', '"7"'], {"x": 5.0}, 5),
    wrong("cut within quotes", b'x,y\n1,no\n2,"ye', "row 2: a double quote is never closed"),
    wrong("single quotes", labelled("x", "'a, b'", "c"), "row 1: the row has 3 fields, the header 2"),
    # headers
    wrong("a name twice", text("x,x ,y", "1,2,no"), "column 'x': two columns have this name"),
    wrong("a title", text("Report", "", *PLAIN), "no target column 'y'"),
    Dirty(
        "no name", text(",y", "5,no", "6,yes"), {"unnamed 1": "number"}, {"unnamed 1": 5.0}, {"unnamed 1": 5}, rows=2
    ),
    plain("blank lines first", b"\n  \r\n" + text(*PLAIN)),
    plain("an empty row of Excel first", text(",,", *PLAIN)),
    reads("names behind #", "number", ["5", "6"], {"#x": 5.0}, 5, column="#x"),
    wrong("no header", text("5.1,no", "4.9,yes"), "no target column 'y'; the columns are '5.1', 'no'"),
    plain("white space around names", text(" x , job,y ", *PLAIN[1:])),
    # rows
    wrong("a total", text(*PLAIN, "Total,30,"), "row 5, column 'y': the target is missing"),
    wrong("a long row", text("x,y", "1,no", "2,yes,3"), "row 2: the row has 3 fields, the header 2"),
    plain("a short row that is left out", text(*PLAIN[:3], "9", *PLAIN[3:]), plan=SKIP),
    wrong("the last line cut", b"x,y\n1,no\n2", "row 2: the last line is cut off: it has 1 field, the header 2"),
    plain("the last line cut and left out", text(*PLAIN) + b"9,co", plan=SKIP),
    plain("line ends of Windows", text(*PLAIN, end="\r\n")),
    wrong("line ends of old Macs", text(*PLAIN, end="\r"), "its lines end with carriage returns alone"),
    wrong("the end of a file of DOS", text(*PLAIN) + b"\x1a", "row 5: the last line is cut off"),
    plain("blank lines between", text(*PLAIN[:2], "", *PLAIN[2:], "")),
    wrong("empty", b"", "the file is empty"),
    wrong("a header only", b"x,y\n", "there are no rows"),
    wrong("one row", text("x,y", "1,no"), "the target has one class only, 'no'"),
    wrong("one column", text("y", "no", "yes"), "no column left to learn from"),
    reads("white space around values", "category", [" a ", "b", "c"], {"x=a": 1.0}, "a"),
    # values
    reads("words for missing", "number", ["5", "NA", "?", "nan", "", "NULL", " n/a"], {"x": 5.0}, 5),
    reads("a dash for missing", "number", ["5", "-", "7"], {"x": 5.0}, "5", notes=DASH),
    reads("nothing but missing", "category", ["", "", "?"], {"x[missing]": 1.0}, ""),
    wrong("infinity", labelled("x", "5", "inf"), "row 2, column 'x': the number is infinite"),
    reads("a word named missing", "number", ["5", "unknown", "7"], {"x": 5.0}, plan={"na_values": ["unknown"]}),
    reads("commas and a unit", "number", ["1,5 km", "2 km", "1.003,25 km"], {"x": 1.5}, 1.5, delimiter=";"),
    reads("leading zeros", "category", ["01234", "10115", "1234"], {"x=01234": 1.0}, notes=ZEROS),
    reads("leading zeros that are numbers", "number", ["01234", "10115"], {"x": 1234.0}, 1234, plan={"numeric": ["x"]}),
    reads("hexadecimal", "category", ["0x1F", "7"], {"x=0x1F": 1.0}, notes=ZEROS),
    reads("dates", "moment", ["2024-01-31", "2024-02-01"], {"x[year=2024]": 1.0}),
    reads("times of day", "time", ["10:15", "23:59"], {"x[hour=10]": 1.0}),
    reads("afternoons", "time", ["10:15 PM", "9:05AM", "12:30:10 am"], {"x[hours]": 22.25, "x[hour=22]": 1.0}),
    reads("yes and no", "boolean", ["yes", "No", "YES", ""], {"x=true": 1.0}),
    reads("true and false", "boolean", ["TRUE", "False", "true"], {"x=true": 1.0}, True),
    reads("a third word", "category", ["Y", "N", "unknown"], {"x=Y": 1.0}),
    reads("titles", "text", [f"red shirt {chr(97 + k)}{k}" for k in range(24)], {"x=red shirt": 0.693}),
    reads("names", "category", [f"Anna M{k}" for k in range(24)], {"x=Anna M0": 1.0}, notes=DIFFERENT),
)


def source_of(dirty: Dirty, path: str):
    return open_source(path, encoding=dirty.encoding)


def plan_of(dirty: Dirty) -> Plan:
    return Plan(target="y", learner="scinol2", **dirty.plan)


def check_notes(notes: list[str], dirty: Dirty) -> None:
    assert len(notes) == len(dirty.notes), notes
    for note, part in zip(notes, dirty.notes, strict=True):
        assert part in note


def options_of(dirty: Dirty, *names: str) -> list[str]:
    said = {"encoding": dirty.encoding} | {name: dirty.plan[name] for name in names if name in dirty.plan}
    words = {name: [value] if isinstance(value, str) else value for name, value in said.items() if value}
    return [word for name, several in words.items() for word in (f"--{name.replace('_', '-')}", *several)]


def train_on_the_command_line(done, dirty: Dirty, path: str, model: str, status: int = 0):
    said = [*options_of(dirty, *dirty.plan), "--learner", "scinol2", "-o", model]
    out, err = done("train", path, "-t", "y", *said, status=status)
    notes = dict.fromkeys(line for line in (out + err).splitlines() if line.startswith("note: "))  # columns' come twice
    return [*notes], err


@pytest.mark.parametrize("dirty", [dirty for dirty in DIRTY if not dirty.error], ids=lambda dirty: dirty.name)
def test_dirty_files_are_read_as_they_are_meant(done, tmp_path, dirty):
    model, path = str(tmp_path / "m.model"), tabular.text(tmp_path / f"dirty{dirty.ending}", dirty.content)
    types, bad = plan_of(dirty).column_types, BadRows(skip=True)
    [chunk] = source_of(dirty, path).chunks(bad=bad, named={"y"})
    encoder = source_of(dirty, path).encoder(chunk, "y", column_types=types)
    first = named_rows(encoder, encoder.encode(chunk, True, bad))[0]
    assert {name: first.get(name) for name in dirty.first} == pytest.approx(dirty.first, abs=1e-3)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        trained = tunefree.train(source_of(dirty, path), plan=plan_of(dirty)).trained_
    check_notes([str(warning.message) for warning in caught if warning.category is DataWarning], dirty)
    assert {column.name: column.kind for column in trained.encoder.columns} == dirty.kinds
    assert trained.progress.progressive[0].rows == dirty.rows
    check_notes(train_on_the_command_line(done, dirty, path, model)[0], dirty)
    done("predict", model, path, *options_of(dirty, "on_bad_row"), "-o", tmp_path / "p.csv")
    predicted = list(csv.DictReader((tmp_path / "p.csv").open()))
    assert len(predicted) == dirty.rows
    with Service(trained) as service:
        [answer] = service.predict([dirty.sent])
    for label, probability in answer["probabilities"].items():
        assert float(predicted[0][f"probability[{label}]"]) == pytest.approx(probability)


@pytest.mark.parametrize("dirty", [dirty for dirty in DIRTY if dirty.error], ids=lambda dirty: dirty.name)
def test_dirty_files_that_cannot_be_read_are_errors_that_tell_where(done, tmp_path, dirty):
    path = tabular.text(tmp_path / f"dirty{dirty.ending}", dirty.content)
    with pytest.raises(TunefreeError) as raised:
        tunefree.train(source_of(dirty, path), plan=plan_of(dirty))
    assert dirty.error in as_options(str(raised.value)) and "--" not in str(raised.value)
    _, err = train_on_the_command_line(done, dirty, path, str(tmp_path / "m.model"), status=2)
    assert dirty.error in " ".join(err.split())
