"""Small data for learning over shards."""

import numpy as np
import pyarrow as pa
from pyarrow import csv, parquet

from tunefree.distributed import training
from tunefree.distributed.engines import Engine
from tunefree.distributed.shards import Cut, Shard, pieces_of, shards_of
from tunefree.model_files.plan import Plan
from tunefree.stream.source import open_source


class Here(Engine):
    """Calls functions in this process, one after the other; a handle is what one of them returns."""

    def __init__(self):
        pass

    def each(self, stage, function, items):
        return [function(*item) for item in items]

    def values(self, handles):
        return list(handles)


def people(n=1200, seed=0):
    """Rows of a number, a category with rare values, and a class that depends on both."""
    random = np.random.default_rng(seed)
    age = random.normal(40.0, 12.0, n)
    jobs = ["clerk", "cook", "pilot", *(f"rare{k}" for k in range(20))]
    job = random.choice(jobs, n, p=[0.4, 0.3, 0.2, *[0.005] * 20])
    margin = 0.1 * (age - 40.0) + np.where(job == "pilot", 2.0, -0.5)
    rich = np.where(random.random(n) < 1.0 / (1.0 + np.exp(-margin)), "yes", "no")
    return pa.table({"age": age, "job": job, "rich": rich})


def parquet_of(folder, table, n_shards, name="people.parquet"):
    """A Parquet file with so many row groups."""
    parquet.write_table(table, folder / name, row_group_size=-(-len(table) // n_shards))
    return folder / name


def csv_of(folder, table, name="people.csv"):
    """A CSV file."""
    csv.write_csv(table, folder / name)
    return folder / name


def shards(data, cut=Cut(1)):  # noqa: B008 - an immutable tuple
    """The shards of files, or of a source."""
    source = open_source(data)
    pieces = [piece for file in source.files for piece in pieces_of(file, source.format, source.delimiter, cut)]
    return shards_of(source, pieces, cut)


def learned(data, plan=Plan(target="rich"), engine=Here(), tell=lambda line: None, cut=Cut(1), **options):  # noqa: B008
    """The model of the shards of a file, or of tables, learned in this process."""
    if isinstance(data, list):
        parts = training.Parts([Shard(number) for number in range(len(data))], [[table] for table in data])
    else:
        parts = training.Parts(cut_up := shards(data, cut), [[] for _ in cut_up])
    return training.learn(engine, parts, plan, tell, **options)
