"""The plan of a training: what is to be learned, from which columns, and by which learner."""

from __future__ import annotations

import math
import numbers
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from fractions import Fraction
from typing import Any

from tunefree.core.errors import ModelError
from tunefree.core.registry import names_in
from tunefree.model.pool import FOLLOW_THE_LEADER, POOLS, is_kernel
from tunefree.stream.batch import BadRows
from tunefree.stream.notation import ColumnTypes

METHODS = POOL, KERNEL_SGD, EARLY_STOPPING = "pool", "kernel-sgd", "early-stopping"
# Fields of a plan that say what is to be learned from which rows. The others are for learning row by row.
TYPES = ("decimal", "thousands", "na_values", "numeric", "categorical", "date")  # what is said of columns
PROBLEM = (
    "target",
    "task",
    "loss",
    "weight",
    "ignore",
    "text",
    "hash_bits",
    "skip_bad_rows",
    "skip_unlabelled",
    *TYPES,
)
# Fields that have no effect on the pool, and why.
NOT_OF_THE_POOL = {
    "passes": "is for single learners: the pool makes one pass",
    "settings": "is for single learners: the pool has nothing to set",
    "view": "is for single learners: members of the pool have their views",
    "average": "is for single learners: the pool mixes its members",
}
OF_KERNELS = ("max_support", "device")  # fields that have no effect on learners without a kernel
READING = ("skip_bad_rows", "skip_unlabelled", "shuffle")  # fields that say how rows are read
NAMES = ("ignore", "text", "na_values", "numeric", "categorical", "date", "class_weight", "classes")  # one or several
EXCLUSIVE = (("target", "weight", "group", "ignore"), ("ignore", "text", "numeric", "categorical"))  # of one column
OPTIONS = {
    "settings": "set",
    "skip_bad_rows": "on-bad-row",
    "skip_unlabelled": "unlabelled",
}  # fields whose option has another name
OF_NUMBERS = "--classes is for classes, and the target is a number to predict; leave it out"
FINEST = 10**9  # largest denominator of a share held out


@dataclass(frozen=True)
class Plan:
    """What is to be learned, and how. All of it has a default; only a table needs a target.

    Parameters
    ----------
    target : str, optional
        Column to predict. None for text formats, whose lines carry their label.
    task : {"classification", "regression"}, optional
        Found from the target if None.
    learner, loss, average, settings, view
        As in :class:`tunefree.model.model.Model`.
    passes : int, default 1
        Passes over the data of a single learner. The pool makes one.
    max_support : int, optional
        Largest number of support points of a kernel learner. Beyond it, the learner continues in random Fourier
        features.
    device : str, optional
        Where PyTorch computes sums of kernel learners; by default compiled code computes them on the processor.
    weight : str, optional
        Column of sample weights.
    group : str, optional
        Column that names the group of a row, which is not learned. Rows of one group belong together, such as visits of
        one patient: they are predicted before any of them is learned, and say nothing of how rows of other groups are
        predicted once the group is known. For the pool, on files whose groups are contiguous.
    ignore, text : str or sequences of str
        Columns to leave out; columns of texts, beside those that are guessed. Here and below, a string is one name.
    hash_bits : int, default 0
        0 for an exact dictionary of features, else features are hashed to 2^hash_bits of them.
    holdout : float, default 0
        Share of the rows that is predicted but never learned. It measures, and chooses nothing.
    skip_bad_rows : bool, default False
        Count and skip rows that cannot be used instead of stopping at the first.
    skip_unlabelled : bool, default False
        Count and skip rows without a label; otherwise they are rows that cannot be used.
    shuffle : int, optional
        Seed of a random order in which the rows are learned, by way of files on the disk
        (:mod:`tunefree.stream.shuffle`). None for the order in which they come.
    decimal, thousands : str, optional
        In numbers that are written as texts; guessed if None.
    na_values : str or sequence of str
        What stands for a missing value, beside what always does.
    numeric, categorical, date : str or sequences of str
        Columns of numbers, of categories, and of dates, the latter followed by ``=FORMAT`` or not; others are guessed.
    class_weight : dict, "balanced", or sequence of str
        What rows of a class weigh more or less: ``{label: weight}``, or texts ``"label=weight"``. With ``"balanced"``
        all classes weigh the same.
    classes : sequence of labels
        All labels; a row with another label cannot be used. By default a label that is new becomes a class.

    Examples
    --------
    >>> Plan(target="income", holdout=0.4).holdout_share
    Fraction(2, 5)
    >>> Plan(ignore="id", class_weight={"yes": 5}) == Plan(ignore=("id",), class_weight=("yes=5.0",))
    True
    """

    target: str | None = None
    task: str | None = None
    learner: str = "pool"
    loss: str | None = None
    average: bool = False
    settings: dict[str, float] = field(default_factory=dict)
    view: str = "raw"
    passes: int = 1
    max_support: int | None = None
    device: str | None = None
    weight: str | None = None
    group: str | None = None
    ignore: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    hash_bits: int = 0
    holdout: float = 0.0
    skip_bad_rows: bool = False
    skip_unlabelled: bool = False
    shuffle: int | None = None
    decimal: str | None = None
    thousands: str | None = None
    na_values: tuple[str, ...] = ()
    numeric: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    date: tuple[str, ...] = ()
    class_weight: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in NAMES:
            object.__setattr__(self, name, _names(getattr(self, name), _defaults()[name]))
        wrong = [f"{name}={value:g}" for name, value in self.settings.items() if not 0.0 <= value < math.inf]
        for is_wrong, message in (
            (self.passes < 1, f"--passes must be at least 1, not {self.passes}"),
            (
                not (self.holdout == 0 or 1 / FINEST <= self.holdout <= 0.5),
                f"--holdout must be 0, or lie between {1 / FINEST:g} and 0.5, not {self.holdout}",
            ),
            (wrong, f"--set {', '.join(wrong)}: give finite numbers of at least 0"),
            (not 0 <= self.hash_bits <= 30, f"--hash-bits must lie between 0 and 30, not {self.hash_bits}"),
            (self.shuffle is not None and self.shuffle < 0, f"--seed must be at least 0, not {self.shuffle}"),
            (self.decimal not in (None, ".", ","), f"--decimal is a point or a comma, not {self.decimal!r}"),
            (self.thousands not in (None, *".,' "), f"--thousands is one of . , ' and a space, not {self.thousands!r}"),
            (self.decimal and self.decimal == self.thousands, "--decimal and --thousands differ"),
            (any(not label for label in self.classes), "--classes: a name is empty; write the labels as A,B"),
            (len(set(self.classes)) < len(self.classes), f"--classes {','.join(self.classes)}: name each label once"),
            (len(self.classes) == 1, f"--classes {','.join(self.classes)}: name at least two labels"),
            (self.classes and self.task == "regression", OF_NUMBERS),
            (self.task not in (None, "classification", "regression"), f"there is no task {self.task!r}"),
        ):
            if is_wrong:
                raise ModelError(message)
        self._refuse_what_has_no_effect()

    def _refuse_what_has_no_effect(self) -> None:
        """Raise an error if a field has no effect on the learner, or on the order of the rows."""
        if self.learner in POOLS:
            for name, why in NOT_OF_THE_POOL.items():
                self.refuse([name], f"{why}; leave it out, or name a learner by --learner")
        else:
            self.refuse(["group"], "is for the pool, which judges by groups; leave it out, or leave --learner out")
        if self.learner != "kernel-pool" and not is_kernel(self.learner):
            self.refuse(OF_KERNELS, "is for learners with a kernel; leave it out, or pass --kernel")
        for roles in EXCLUSIVE:
            known: dict[str, str] = {}
            named = [(name, role) for role in roles for name in names_in(getattr(self, role))]
            for name, role in named:
                if known.setdefault(name, role) != role:
                    raise ModelError(f"--{known[name]} and --{role} name the same column, {name!r}; leave one out")
        if self.shuffle is not None:
            self.refuse(
                ["group"],
                "keeps the rows of a group together, and --shuffle parts them; leave --shuffle out, and sort the file "
                "by the column of the groups",
            )

    @property
    def column_types(self) -> ColumnTypes:
        """What is said of columns instead of being guessed; groups are names."""
        types = ColumnTypes(*(getattr(self, name) for name in TYPES))
        return types if self.group is None else types._replace(categorical=(*types.categorical, self.group))

    def saved(self) -> dict[str, Any]:
        """The plan for JSON; what is said of columns and classes only where something is."""
        usual, seldom = _defaults(), (*TYPES, "class_weight", "classes", "group")
        return {
            name: value
            for name, value in asdict(self).items()
            if name not in seldom or getattr(self, name) != usual[name]
        }

    @property
    def holdout_share(self) -> Fraction:
        """The share of the rows that is held out, exactly as its decimals say."""
        return Fraction(str(float(self.holdout))).limit_denominator(FINEST)

    def bad_rows(self) -> BadRows:
        """What happens to rows that cannot be used, with a count of them."""
        skipped = self.skip_bad_rows, self.skip_unlabelled
        return BadRows(*skipped, classes=self.classes, target=self.target, names_columns=True)

    def refuse(self, names: Collection[str], why: str) -> None:
        """Raise an error if one of some fields differs from its default.

        Parameters
        ----------
        names : collection of str
            Fields that must have their defaults.
        why : str
            What the message says after the name of the option.

        Raises
        ------
        ModelError

        Examples
        --------
        >>> Plan(learner="nag", settings={"eta": 0.1}).refuse(["settings", "passes"], "is for single learners")
        Traceback (most recent call last):
        tunefree.core.errors.ModelError: --set is for single learners
        """
        usual = _defaults()
        for name in (option for option in usual if option in names):
            if getattr(self, name) != usual[name]:
                raise ModelError(f"--{OPTIONS.get(name, name.replace('_', '-'))} {why}")

    def further(self, asked: Plan) -> Plan:
        """The plan for further rows of a model of this plan, which are learned in one pass.

        Parameters
        ----------
        asked : Plan
            Says how these rows are read. What else it asks for must be what this plan has.

        Raises
        ------
        ModelError

        Examples
        --------
        >>> Plan(target="income", learner="nag", passes=3).further(Plan(learner="nag", skip_bad_rows=True)).passes
        1
        """
        asked.refuse(["passes"], "is for a new model; further rows are learned in one pass")
        others = [name for name in _defaults() if name not in READING]
        changed = [name for name in others if getattr(asked, name) != getattr(self, name)]
        asked.refuse(changed, "differs from what the model was made with; leave it out to go on with that")
        return replace(self, passes=1, **{name: getattr(asked, name) for name in READING})

    @classmethod
    def restore(cls, saved: dict[str, Any]) -> Plan:
        """The plan that a model file holds as JSON, which has lists for tuples."""
        return cls(**saved)


def _names(names: Any, default: Any) -> tuple[str, ...] | None:
    """Names as a plan has them; a string is one name, and what is said of names by a dict follows them."""
    if names is None:
        return default
    if isinstance(names, Mapping):
        said = {name: float(said) if isinstance(said, numbers.Real) else said for name, said in names.items()}
        names = [f"{name}={value}" for name, value in said.items()]
    return tuple(map(str, names_in(names)))


def _defaults() -> dict[str, Any]:
    """The default of each field of a plan."""
    defaults = {option.name: option.default for option in fields(Plan)}
    return defaults | {"settings": {}}  # the only one that is made anew


def learner_of(method: str, learner: str, average: bool, kernel: bool) -> tuple[str, bool]:
    """The learner that a method stands for, and whether it is averaged.

    Parameters
    ----------
    method : {"pool", "kernel-sgd", "early-stopping"}
    learner : str
        The learner asked for.
    average : bool
        Whether averages were asked for.
    kernel : bool
        Whether kernels were asked for.

    Returns
    -------
    (str, bool)

    Raises
    ------
    ModelError
        If there is no such method, or the method leaves no choice of what was asked for.

    Examples
    --------
    >>> learner_of("kernel-sgd", "pool", False, False), learner_of("pool", "pool", False, True)
    (('kernel-regularized-sgd', True), ('kernel-pool', False))
    """
    if method not in METHODS:
        raise ModelError(f"unknown method {method!r}; choose one of {', '.join(METHODS)}")
    if method == KERNEL_SGD:
        for option, given in (("learner", learner != "pool"), ("kernel", kernel)):
            if given:
                raise ModelError(f"{KERNEL_SGD} is a learner, and has kernels; leave --{option} out, or --method")
        return FOLLOW_THE_LEADER, True
    of_kernels = kernel and learner == "pool" and method != EARLY_STOPPING
    return "kernel-pool" if of_kernels else learner, average
