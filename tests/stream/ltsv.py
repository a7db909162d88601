"""A format that is not in the package: labelled tab-separated values, a table."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tunefree.stream.batch import Columns
from tunefree.stream.columns import with_row_numbers
from tunefree.stream.contract import TableReader
from tunefree.stream.formats import Format
from tunefree.stream.lines import read_lines, read_sample, whole_lines


def is_ltsv(line):
    """Whether all fields of a line have a label, and there are several."""
    fields = line.split("\t")
    return len(fields) > 1 and all(":" in field for field in fields)


def parse(line):
    """The values of a line by label."""
    fields = [field.partition(":") for field in line.decode().rstrip("\r").split("\t")]
    if not all(colon for _, colon, _ in fields):
        raise ValueError("a field has no label")
    return {label: value for label, _, value in fields}


def is_number(value):
    try:
        return bool(np.isfinite(float(value)))
    except ValueError:
        return False


def schema(file, options):
    """The columns of the first mebibyte. A column is numeric if all its values there are numbers."""
    lines = [line for line in whole_lines(read_sample(file)).split(b"\n") if is_ltsv(line.decode("utf-8", "replace"))]
    values = {}
    for line in lines:
        for label, value in parse(line).items():
            values.setdefault(label, []).append(value)
    inferred = {label: pa.float64() if all(map(is_number, found)) else pa.string() for label, found in values.items()}
    return pa.schema([(label, options.types.get(label, type_)) for label, type_ in inferred.items()])


def columns(file, schema, options):
    """Any row may lack a label, so a further file has the same columns, of types that it does not fix."""
    return dict.fromkeys(schema.names, pa.null())


def chunks(file, start, schema, options, bad):
    numeric = [field.name for field in schema if field.type == pa.float64()]
    for lines in read_lines([file], start, options.block_size):
        records, numbers = [], []
        for number, line in enumerate(lines.data.tobytes().split(b"\n"), lines.row):
            problem = None
            try:
                record = parse(line) if line.strip() else {}
                record |= {label: float(record[label]) for label in numeric if label in record}
            except ValueError as error:
                problem = str(error)
            if problem:
                bad.report(problem, lines.file, number)
            elif record:
                records.append(record)
                numbers.append(number)
        batch = with_row_numbers(pa.RecordBatch.from_pylist(records, schema), np.array(numbers))
        yield Columns(batch, lines.file, lines.row, lines.position)


LTSV = Format("ltsv", "LTSV", (".ltsv",), is_ltsv, reader=TableReader(schema, columns, chunks))
