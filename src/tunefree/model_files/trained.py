"""Trained models and their files: a model with the encoder of its rows, its plan, and its progress."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from tunefree.core import storage
from tunefree.core.errors import ModelError, TunefreeError
from tunefree.core.part import Saved, restored
from tunefree.core.registry import UnknownNameError
from tunefree.core.schema import Record, check_arrays, check_header
from tunefree.model_files import schemas
from tunefree.model_files.column_samples import ColumnSamples
from tunefree.model_files.plan import Plan, plan_of
from tunefree.model_files.progress import Progress
from tunefree.model_files.schemas import KINDS
from tunefree.stream import batch
from tunefree.stream.batch import Batch, Position
from tunefree.theory.exchangeability import TargetSample
from tunefree.theory.rises import LossRises

PATH_PROBLEM = (
    "it holds a regularization path, which is not certified, explained or gone on with; train by another `learner`"
)
MOST_SHOWN = 500  # characters of an error message, which may quote a file
_STATE_ERRORS = (ArithmeticError, AttributeError, AssertionError, LookupError, MemoryError, TypeError, ValueError)


@dataclass
class Trained:
    """The contents of a model file: a model, the encoder of its features, and the progress of its training."""

    model: Any  # its ``kind`` is a key of ``KINDS``
    encoder: Any
    kind: str  # of the encoder: "table", or a text format such as "svmlight"
    plan: Plan
    progress: Progress
    order: TargetSample | None = None  # tests whether targets depend on the order of rows; None if unknown
    held: Batch | None = None  # in a checkpoint, rows that wait for the rest of their group
    rises: LossRises | None = None  # of the loss along the stream; None if unknown
    samples: ColumnSamples | None = None  # to find the columns that changed at a rise
    estimator: dict[str, Any] | None = None  # state of a saved estimator, see :mod:`tunefree.estimators.model_file`

    def saved(self, encoder: Saved | None = None) -> Saved:
        """The contents of the file: arrays, named by part, and the header."""
        parts = {"model": self.model.save_state(), "encoder": encoder or self.encoder.state()}
        for name in schemas.OF_STREAM:
            if getattr(self, name) is not None:
                parts[name] = getattr(self, name).save_state()
        if self.held is not None:
            parts["held"] = batch.save_state(self.held)
        header = {"kind": self.model.kind, "source": self.kind, "plan": self.plan.changed()}
        header |= {"progress": asdict(self.progress)} | {name: part_header for name, (_, part_header) in parts.items()}
        arrays = {f"{part}.{name}": array for part, (saved, _) in parts.items() for name, array in saved.items()}
        return arrays, header if self.estimator is None else header | {"estimator": self.estimator}

    def save(
        self,
        path: str | os.PathLike[str],
        encoder: Saved | None = None,
        only_for_prediction: bool = False,
    ) -> None:
        """Write the model to a file. If this raises a ModelError, an earlier file of this name is unchanged.

        ``encoder``: the state of the encoder after the last row learned, if the encoder has read more rows since.
        ``only_for_prediction``: whether to leave out the parts of a pool that only learning and certificates need.
        """
        check_name(path)
        trained = self
        if only_for_prediction:
            trained = replace(self, model=copy.deepcopy(self.model), order=None, rises=None, samples=None)
            trained.model.reduce()
        storage.save(path, *trained.saved(encoder))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Trained:
        """Read a model that learns row by row from a file."""
        return load(path, "linear")


def check_name(path: str | os.PathLike[str]) -> None:
    """Raise a ModelError if a file name has the extension of an exported model."""
    if os.fspath(path).lower().endswith(".onnx"):
        remedy = "name a .model, and write ONNX with `tunefree export`, in Python with `model.export(path)`"
        raise ModelError(f"{path}: models that go on learning are not written as ONNX; {remedy}")


def load(path: str | os.PathLike[str], kind: str | None = None, encoder_class: Any = None) -> Trained:
    """Read a model from a file, which may be malicious: a valid checksum proves nothing.

    ``kind`` is the only accepted kind, such as "linear"; all are accepted if it is None. ``encoder_class`` is the class
    of the encoder, by default chosen by the source of the model. Raises a ModelError if the file cannot be read or its
    kind is not accepted.
    """
    arrays, header = storage.load(path)
    file_kind = header.get("kind")
    if not isinstance(file_kind, str) or file_kind not in KINDS:
        problem = f"a model of kind {repr(file_kind)[:MOST_SHOWN]}, which this tunefree does not know"
        raise ModelError(f"{path}: {problem}; upgrade tunefree")
    if kind is not None and file_kind != kind:
        raise ModelError(f"{path}: {PATH_PROBLEM}")
    with refused(path):
        model_kind = KINDS[file_kind]
        check_header(header, model_kind.header)
        check_arrays(arrays, *model_kind.declared(header, arrays))
        trained = _restored(arrays, header, encoder_class)
        model_kind.check(trained)
    return trained


def _restored(arrays: dict[str, np.ndarray], header: dict[str, Any], encoder_class: Any) -> Trained:
    """The model of a file whose parts have been checked."""
    if encoder_class is None:
        from tunefree.stream.source import encoder_of  # imports Arrow, which predictions do not need

        encoder_class = encoder_of(header["source"])
    parts: dict[str, dict[str, np.ndarray]] = {"encoder": {}}
    for key, array in arrays.items():
        part, _, rest = key.partition(".")
        parts.setdefault(part, {})[rest] = array
    present = {name: part for name, part in schemas.OF_STREAM.items() if name in header}
    return Trained(
        KINDS[header["kind"]].restored(parts["model"], header),
        encoder_class.restore(parts["encoder"], header["encoder"]),
        header["source"],
        plan_of(header["plan"]),
        check_header(header["progress"], Record(Progress), "progress"),
        held=batch.restored(parts["held"], header["held"]) if "held" in header else None,
        estimator=header.get("estimator"),
        **{name: restored(part(), name, arrays, header[name]) for name, part in present.items()},
    )


@contextmanager
def refused(path: Any) -> Iterator[None]:
    """A context that converts any error into a ModelError about the file."""
    remedy = "train again or restore it from a backup"
    try:
        yield
    except UnknownNameError as error:
        remedy = "if another package adds it, install that here, or register it in Python before `tunefree.load`"
        raise ModelError(f"{path}: {str(error)[:MOST_SHOWN]}; {remedy}") from None
    except TunefreeError as error:
        ending = "" if getattr(error, "remedy", None) else f"; {remedy}"
        raise ModelError(f"{path}: {str(error)[:MOST_SHOWN]}{ending}") from None
    except _STATE_ERRORS as error:
        raise ModelError(f"{path}: its parts do not fit together ({repr(error)[:MOST_SHOWN]}); {remedy}") from None


def continued(trained: Trained) -> Trained:
    """A completely trained model, set back to the end of its first pass so that this pass can be continued.

    Raises a ModelError if the model is a checkpoint.
    """
    progress = trained.progress
    if not progress.complete:
        raise ModelError("the model is a checkpoint of a training that has not ended; go on with that by `resume=True`")
    first, rows = progress.progressive[:1], progress.progressive[0].rows
    begun = replace(progress, complete=False, number=0, position=Position(), progressive=first, rows=rows)
    # Further rows may add columns, which an estimator of arrays does not support.
    estimator = None if trained.estimator is None else {**trained.estimator, "fitted": None}
    return replace(trained, progress=begun, estimator=estimator)


def ended(trained: Trained, passes: int = 1) -> Trained:
    """The model with its last pass completed."""
    return replace(trained, progress=replace(trained.progress, complete=True, number=passes, rows=0))
