"""The plan of a training: the target, the columns, and the learner."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from tunefree import learners, losses
from tunefree.core.docstrings import described
from tunefree.core.errors import ModelError, nearest
from tunefree.core.parameters import COLUMNS, EXPERTS, LEARNING, ROWS, Parameters, Scope, option, parameter, refuse
from tunefree.core.registry import names_in

if TYPE_CHECKING:
    from tunefree.stream.batch import BadRows
    from tunefree.stream.notation import ColumnTypes


ON_BAD = ERROR, SKIP = "error", "skip"
TASKS = "classification", "regression"
NOTATIONS = "decimal", "thousands", "na_values", "date"  # formats of columns
TYPES = ("decimal", "thousands", "na_values", "numeric", "categorical", "date")  # formats and types of columns
# Parameters of the problem. The others are for learning row by row.
PROBLEM = ("target", "task", "loss", "sample_weight", "ignore", "text", "hash_bits", "on_bad_row", "unlabelled", *TYPES)
READING = ("on_bad_row", "unlabelled", "shuffle", "random_state")  # parameters of reading rows
EXCLUSIVE = (
    ("target", "sample_weight", "exposure", "groups", "ignore"),
    ("ignore", "text", "numeric", "categorical"),
)  # roles that a column cannot combine
OF_NUMBERS = "`classes` is for classes, and the target is a number to predict; leave it out"
SIGNS = {"+": 1, "-": -1, "1": 1, "+1": 1, "-1": -1, "1.0": 1, "-1.0": -1}  # of monotone columns, by notation

SINGLE = Scope(
    "is for single learners: the pool makes one pass, has nothing to set, and mixes its members",
    "name a learner by `learner`, on one machine",
)
POOLED = Scope("is for the pool", "leave `learner` out")
WITH_KERNEL = Scope("is for learners in a kernel's space", "name one of these by `learner`")
SHARDS = Scope("is for shards", "learn these by `workers`")
ONE_MACHINE = Scope("is for one machine", "learn no shards")
DRAWN = Scope("is of the order that `shuffle` draws", "pass `shuffle=True`")


def signs_of(monotone: Iterable[str]) -> dict[str, int]:
    """The signs of monotone columns by name.

    >>> signs_of(["age=+,price=-1"])
    {'age': 1, 'price': -1}
    >>> signs_of(["age=0"])
    Traceback (most recent call last):
    tunefree.core.errors.ModelError: `monotone`: 'age' has the sign '0'; choose 1 (+) or -1 (-), or leave it out
    """
    signs: dict[str, int] = {}
    for text in [part for several in monotone for part in re.split(r"(?<==[+-])1?,", several)]:
        name, _, sign = text.rpartition("=")
        if not name:
            name = text.strip("=+-") or "COLUMN"
            raise ModelError(f"`monotone`: {text!r} has no sign; write '{name}=+' or '{name}=-', or leave it out")
        if sign not in SIGNS:
            raise ModelError(f"`monotone`: {name!r} has the sign {sign!r}; choose 1 (+) or -1 (-), or leave it out")
        if signs.setdefault(name, SIGNS[sign]) != SIGNS[sign]:
            raise ModelError(f"`monotone` names {name!r} with both signs; leave one out")
    return signs


def plan_of(parameters: dict[str, Any], others: Iterable[str] = ()) -> Plan:
    """The plan with these parameters, or an error for unknown ones; ``others`` are parameters of the calling function.

    >>> plan_of({"hash_bit": 18})
    Traceback (most recent call last):
    tunefree.core.errors.ModelError: there is no parameter 'hash_bit'; did you mean 'hash_bits'?
    """
    for name in parameters:
        if name not in (known := [field.name for field in fields(Plan)]):
            known += others
            matches = [other for other in known if option(other) == f"--{name}"]
            remedy = f"did you mean {matches[0]!r}?" if matches else nearest(name, known, "parameters", len(known))
            raise ModelError(f"there is no parameter {name!r}; {remedy}")
    return Plan(**parameters)


@described
@dataclass(frozen=True)
class Plan(Parameters):
    """The parameters of reading and learning a source. All fields have defaults; only a table needs a target.

    Examples
    --------
    >>> Plan(ignore="id", class_weight={"yes": 5}) == Plan(ignore=("id",), class_weight=("yes=5.0",))
    True
    """

    target: str | None = parameter(
        None, "Column to predict; lines of svmlight and Vowpal Wabbit text have a label instead.", ROWS, short="-t"
    )
    task: str | None = parameter(
        None, "classification or regression; inferred from the target's values by default.", ROWS, choices=TASKS
    )
    sample_weight: str | None = parameter(None, "Column of sample weights.", ROWS, metavar="COLUMN")
    on_bad_row: str = parameter(
        ERROR, "Whether to stop with an error at an unusable row, or to skip and count it.", ROWS, choices=ON_BAD
    )
    unlabelled: str = parameter(
        ERROR, "Whether to stop with an error at a row without a label, or to skip and count it.", ROWS, choices=ON_BAD
    )
    ignore: tuple[str, ...] = parameter((), "Columns to ignore.", COLUMNS, metavar="COLUMN")
    numeric: tuple[str, ...] = parameter((), "Columns to read as numbers.", COLUMNS, metavar="COLUMN")
    categorical: tuple[str, ...] = parameter(
        (), "Columns to read as categories, whatever their values.", COLUMNS, metavar="COLUMN"
    )
    text: tuple[str, ...] = parameter((), "Columns of free text; words become features.", COLUMNS, metavar="COLUMN")
    date: tuple[str, ...] = parameter(
        (), "Columns of dates, optionally with their format, such as day=%d.%m.%Y.", COLUMNS, metavar="COLUMN[=FORMAT]"
    )
    decimal: str | None = parameter(
        None, "Decimal separator of numbers in text, . or , ; guessed by default.", COLUMNS, choices=(".", ",")
    )
    thousands: str | None = parameter(
        None,
        "Thousands separator of numbers in text: . , ' or a space; guessed by default.",
        COLUMNS,
        choices=(".", ",", "'", " "),
        metavar="MARK",
    )
    monotone: tuple[str, ...] = parameter(
        (),
        "Numeric columns with which predictions may only rise (age=+) or only fall (age=-); with two classes, the "
        "probability of the class sorted last.",
        COLUMNS,
        scopes=(POOLED, ONE_MACHINE),
        metavar="COLUMN=+|-",
    )
    na_values: tuple[str, ...] = parameter((), "Additional texts to read as missing values.", COLUMNS, metavar="TEXT")
    groups: str | None = parameter(
        None,
        "Column of groups of related rows, such as patients; sort the rows by it. It is not a feature.",
        LEARNING,
        scopes=(POOLED, ONE_MACHINE),
        metavar="COLUMN",
    )
    class_weight: tuple[str, ...] = parameter(
        (),
        "Weight of the rows of a class; or balanced, for equal total weights of all classes.",
        LEARNING,
        metavar="LABEL=W",
    )
    classes: tuple[str, ...] = parameter(
        (),
        "All class labels; rows with other labels are unusable. By default each new label becomes a class.",
        LEARNING,
        scopes=(ONE_MACHINE,),
        metavar="LABEL",
    )
    shuffle: bool = parameter(
        False,
        "Learn the rows in random order, using temporary files on disk; useful if the data are sorted.",
        LEARNING,
        scopes=(ONE_MACHINE,),
    )
    random_state: int = parameter(0, "Seed of the random order of `shuffle`.", low=0, scopes=(DRAWN,))
    kernel: str | None = parameter(
        None,
        "Kernel of a kernel learner: rbf, laplacian, poly or linear.",
        scopes=(WITH_KERNEL, ONE_MACHINE),
    )
    loss: str | None = parameter(
        None,
        f"Loss: {', '.join(losses.usage('classification'))}; in regression {', '.join(losses.usage('regression'))}.",
        EXPERTS,
    )
    exposure: str | None = parameter(
        None,
        "Column of exposures, such as years; their logarithms are offsets of predictions. For losses of counts.",
        EXPERTS,
        scopes=(ONE_MACHINE,),
        metavar="COLUMN",
    )
    learner: str = parameter(
        learners.POOL,
        "pool (a mixture of linear learners and incrementally trained trees), or a single learner: "
        f"{', '.join(learners.ALL)}; with a kernel, kernel-pistol.",
        EXPERTS,
        metavar="NAME",
        scopes=(ONE_MACHINE,),
    )
    settings: dict[str, float] = parameter(
        dict, "Parameters of a single learner, by name.", scopes=(SINGLE, ONE_MACHINE)
    )
    view: str | None = parameter(
        None,
        "Scaling of numeric columns for a single learner: raw (none) or steady (robust, by column); by default "
        "steady with a kernel, otherwise raw.",
        scopes=(SINGLE, ONE_MACHINE),
    )
    average: bool = parameter(
        False, "Predict with the average of a single learner's iterates.", scopes=(SINGLE, ONE_MACHINE)
    )
    passes: int = parameter(1, "Number of passes over the rows.", low=1, scopes=(SINGLE, ONE_MACHINE))
    hash_bits: int = parameter(
        0, "Hash features into 2^BITS buckets instead of an exact dictionary.", EXPERTS, low=0, high=30, metavar="BITS"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        signs = signs_of(self.monotone)
        object.__setattr__(self, "monotone", tuple(f"{name}={'+' if signs[name] > 0 else '-'}" for name in signs))
        self._check_loss()
        wrong = [f"{name}={value:g}" for name, value in self.settings.items() if not 0.0 <= value <= sys.float_info.max]
        labels = f"`classes={list(self.classes)}`"
        for is_wrong, message in (
            (wrong, f"`settings`: {', '.join(wrong)}: give finite numbers of at least 0"),
            (self.decimal and self.decimal == self.thousands, "`decimal` and `thousands` differ"),
            (any(not label for label in self.classes), "`classes`: a label is empty"),
            (len(set(self.classes)) < len(self.classes), f"{labels}: name each label once"),
            (len(self.classes) == 1, f"{labels}: name at least two labels"),
            (self.classes and self.task == "regression", OF_NUMBERS),
            (
                self.groups is not None and self.shuffle,
                "`groups` keeps the rows of a group together, and `shuffle` parts them; leave `shuffle` out, and sort "
                "the file by the column of the groups",
            ),
        ):
            if is_wrong:
                raise ModelError(message)
        self._check_names()
        self.check_scopes(self.scopes)
        self._check_roles()

    def _check_loss(self) -> None:
        """Losses of counts imply regression; an exposure requires such a loss."""
        from tunefree.losses.rates import check_has_rates, has_rates  # imported here because it loads the losses

        if has_rates(self.loss):
            if self.task is None:
                object.__setattr__(self, "task", "regression")
        elif self.exposure is not None:
            check_has_rates(self.loss)

    def _check_names(self) -> None:
        """Raise an error for an unknown learner."""
        if self.learner != learners.POOL and self.learner not in learners.ALL:
            names = [learners.POOL, *learners.ALL.search()]
            remedy = nearest(self.learner, names, "learners", len(names))
            raise ModelError(f"unknown `learner` {self.learner!r}; {remedy}")
        family = learners.family_of(self.learner)
        if family is not None:
            family.config_of(self)  # raises an error for unknown names

    def _check_roles(self) -> None:
        """Raise an error if a column has two exclusive roles."""
        for roles in EXCLUSIVE:
            owner: dict[str, str] = {}
            for role in roles:
                for name in names_in(getattr(self, role)):
                    if owner.setdefault(name, role) != role:
                        raise ModelError(f"`{owner[name]}` and `{role}` name the same column, {name!r}; leave one out")

    @property
    def is_pool(self) -> bool:
        """Whether the learner is the pool."""
        return self.learner == learners.POOL

    @property
    def scopes(self) -> set[Scope]:
        """The scopes of a training with this plan."""
        is_active = {
            SINGLE: not self.is_pool,
            POOLED: self.is_pool,
            WITH_KERNEL: learners.family_of(self.learner) is not None,
            DRAWN: self.shuffle,
            ONE_MACHINE: True,
        }
        return {scope for scope, applies in is_active.items() if applies}

    @property
    def column_types(self) -> ColumnTypes:
        """The declared types of columns; the column of groups is categorical."""
        from tunefree.stream.notation import ColumnTypes

        types = ColumnTypes(*(getattr(self, name) for name in TYPES))
        return types if self.groups is None else types._replace(categorical=(*types.categorical, self.groups))

    def bad_rows(self) -> BadRows:
        """The handling of unusable rows, with their counts."""
        from tunefree.stream.batch import BadRows

        skip, unlabelled = self.on_bad_row == SKIP, self.unlabelled == SKIP
        options = "on_bad_row", "unlabelled", "categorical"
        return BadRows(skip, unlabelled, classes=self.classes, target=self.target, loss=self.loss, options=options)

    def further(self, asked: Plan) -> Plan:
        """The plan for learning further rows with a model of this plan, in one pass.

        ``asked`` has the parameters of reading. Raises a ModelError if its other parameters differ from this plan.

        >>> Plan(target="income", learner="nag", passes=3).further(Plan(learner="nag", on_bad_row="skip")).passes
        1
        """
        refuse(asked, ["passes"], "is for a new model; further rows are learned in one pass")
        others = [field.name for field in fields(Plan) if field.name not in READING]
        differing = [name for name in others if getattr(asked, name) != getattr(self, name)]
        refuse(asked, differing, "differs from its value in the training; leave it out to go on with that value")
        return replace(self, passes=1, **{name: getattr(asked, name) for name in READING})
