"""What every learner obeys.

A learner is an immutable NamedTuple of arrays, which change in place, and parameters. Its functions return no state, so
that compiled code need not count references to its arrays row by row.

A learner must have

- a class method ``create(n_features, n_outputs=1, **settings)``, which returns a state that has seen nothing, and a
  method ``blank(n_features, n_outputs)``, which returns such a state with room for so many features and outputs;
- the fields ``features`` (d,), a record of what is known of each feature; ``coordinates`` (d, K), a record of what is
  known of each feature and output, both made by :func:`records`; and ``outputs``, made by :func:`outputs`. Other arrays
  of an output have shape (1, K) and are made by :func:`tunefree.core.coordinates.row_of_outputs`, since compiled loops
  over ``range(len(state.outputs))`` go beyond K, to whole vectors; single numbers that change are arrays of shape (),
  read and written as ``array[()]``;
- bodies of :func:`predict`, :func:`update`, :func:`coordinate`, :func:`factor` and :func:`magnitude`.

It may have :class:`Traits`: what is special about it, and differs from the defaults there. A learner whose traits say
so learns a new feature later than the row that it is met in, by :func:`replay`. For that it may have bodies of
:func:`shared` and :func:`leave_out` too.

A learner sees a row before it predicts, then the gradient of the round's loss in its K margins. Its margins must be
linear in the row, up to what it learns from the row itself before it predicts. Its weight for feature j and output k is
``coordinate(state, j, k) * factor(state, k) / magnitude(state, j)``: a number near 1 whatever the scale of the feature,
a factor shared by all features (so that shrinking costs nothing), and the feature's own unit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from tunefree.core import compiled
from tunefree.core.coordinates import coordinates, room
from tunefree.core.coordinates import outputs as outputs
from tunefree.core.generic import generic, generic_apart, generic_with_default

_LINE = 8  # numbers in a cache line
_FEW_LINES = 2  # that the statistics of a feature may fill up to the end; more would leave too much empty


class Traits(NamedTuple):
    """What is special about a learner; nothing is, unless its class says so with :func:`traits`.

    What is promised of invariances is exact, and holds to the last bit for powers of two.
    """

    classifies_only: bool = False  # it is for classes only: it uses no more of a slope than its sign
    margins_are_log_odds: bool = True  # with the logistic loss; if not, probabilities are learned of the margins
    second_order: bool = False  # it uses the second derivative of the loss
    can_be_averaged: bool = True  # a coordinate stands still in rounds without its feature, so that the average of the
    #   iterates can be kept at the cost of a row's non-zeros
    rate: str | None = None  # the setting that is a step size, which users have to tune
    dimension: str | None = None  # the setting that is the number of features where that is known beforehand; without
    #   it those seen so far are counted
    takes_slopes_as_they_come: bool = False  # of classes, where the loss has no Lipschitz constant; the others get them
    #   clipped at the steepest so far
    invariant_to_scale_of: str = "nothing"  # "each feature", or "all features alike", may be multiplied by a constant
    #   without changing a prediction
    invariant_to_slopes: bool = False  # multiplying all slopes and their bounds by a constant changes no prediction
    can_replay: bool = False  # a feature that was left out of a row is learned by :func:`replay` as by the row
    even: tuple[str, ...] = ()  # statistics of outputs that are the same where all slopes have the other sign, and
    #   that alone leave an output's weights at 0
    odd: tuple[str, ...] = ()  # statistics of coordinates that have the other sign then; with them the weights do
    halved: tuple[str, ...] = ()  # statistics of coordinates that weights are proportional to, the others being equal
    scratch: tuple[str, ...] = ()  # fields, of the state or its records, that are written before they are read, and so
    #   need not be saved
    well_conditioned: bool = True  # rounding errors stay small with features scaled by 2^-20 to 2^20; if not, with
    #   features scaled by 2^-5 to 2^5


def traits(**special: Any) -> Callable[[type], type]:
    """Decorate a learner's class with what is special about it.

    Parameters
    ----------
    **special
        Fields of :class:`Traits`, where they differ from the defaults.

    Examples
    --------
    >>> @traits(rate="eta")
    ... class Fixed(NamedTuple):
    ...     eta: float
    >>> traits_of(Fixed).rate, traits_of(Fixed).can_be_averaged
    ('eta', True)
    """

    def decorate(learner: type) -> type:
        learner.traits = Traits(**special)  # type: ignore[attr-defined]
        return learner

    return decorate


def traits_of(learner: type) -> Traits:
    """What is special about a learner's class."""
    return getattr(learner, "traits", Traits())


class Scale(NamedTuple):
    """What is known of a round before its target."""

    slope: float  # bound on the absolute weighted slope of the round
    margin: float  # natural size of a margin, which never shrinks: 1, or for regression the spread of the target
    weight: float  # the sample's weight


@generic_apart
def predict(state: Any, x: Any, scale: Scale, margins: np.ndarray) -> None:
    """Write the K margins of row ``x``; statistics of the features (never of the target) may be updated.

    Like ``gradient`` and ``curvature`` below ``margins`` has room for whole vectors of outputs.
    """
    raise TypeError(f"{type(state).__name__} is not a learner")


@generic_apart
def update(state: Any, x: Any, gradient: np.ndarray, curvature: np.ndarray) -> None:
    """Learn from the gradient (K,) of the loss in the margins just predicted for ``x``.

    ``curvature`` (K,) holds the second derivatives, which first-order learners ignore.
    """
    raise TypeError(f"{type(state).__name__} is not a learner")


@generic_with_default
def leave_out(state: Any, scale: Scale, n_features: int) -> None:
    """Be told that of the row to come ``n_features`` are left out, of each of which nothing is known so far.

    Their weights are 0, so the margins are those of the whole row. What they tell of all features together has to be
    taken into account here.
    """


@generic_with_default
def shared(state: Any) -> float:
    """What an update takes from all features of a row together, between :func:`predict` and :func:`update`; 0 where
    each feature is updated by itself."""
    return 0.0


@generic_with_default
def replay(
    state: Any, x: Any, scale: Scale, past: float, margins: np.ndarray, gradient: np.ndarray, curvature: np.ndarray
) -> None:
    """Learn the one entry of ``x``, of a feature of which nothing is known, which was left out of an earlier row.

    ``scale``, ``gradient`` and ``curvature`` are those of that row, and ``past`` was then :func:`shared`; ``margins``
    may be written. What is known of all features together stays as it is, or each :func:`predict` writes it anew.
    """
    predict(state, x, scale, margins)
    update(state, x, gradient, curvature)


@compiled.inline
def matters(state, x_j):
    """Whether to go through the outputs of an entry: a zero changes nothing of them, and of an image most entries are.

    With one output the loop over entries is faster without asking, and the compiler leaves the question out.
    """
    return len(state.outputs) == 1 or x_j != 0.0


@generic
def coordinate(state: Any, j: int, k: int) -> float:
    """The part of the weight of feature ``j`` for output ``k`` that is its own.

    Only rows with feature ``j`` change it, unless the learner cannot be averaged.
    """
    raise TypeError(f"{type(state).__name__} is not a learner")


@generic
def factor(state: Any, k: int) -> float:
    """The part of the weights for output ``k`` that all features share."""
    raise TypeError(f"{type(state).__name__} is not a learner")


@generic
def magnitude(state: Any, j: int) -> float:
    """The unit in which feature ``j`` is measured; 0 while it has not been seen."""
    raise TypeError(f"{type(state).__name__} is not a learner")


def records(
    of_feature: tuple[str, ...], of_coordinate: tuple[str, ...], n_features: int, n_outputs: int
) -> tuple[np.ndarray, np.ndarray]:
    """Statistics of each feature (d,) and of each coordinate, a feature and an output (d, K); all zero.

    Both are views of one block, in which the statistics of a feature share a cache line or begin with one, so that a
    sparse row touches few lines. Where they take more than two lines, those of features lie without gaps. Those of a
    coordinate are rows of outputs, see :mod:`tunefree.core.coordinates`.

    Parameters
    ----------
    of_feature, of_coordinate : tuples of str
        Names of the statistics.
    n_features, n_outputs : int

    Examples
    --------
    >>> features, coordinates = records(("largest",), ("gradients", "squares"), n_features=4, n_outputs=2)
    >>> coordinates[3, 1].squares += 2.0
    >>> features.largest.shape, coordinates.squares.sum()
    ((4,), np.float64(2.0))
    """
    n_features = max(n_features, 2)  # one record would count as contiguous, another type to compile for
    used = len(of_feature) + len(of_coordinate) * room(n_outputs)
    line = 1 << (used - 1).bit_length() if used <= _LINE else -(-used // _LINE) * _LINE
    line = line if line <= _FEW_LINES * _LINE else used
    numbers = np.zeros(n_features * line + _LINE)
    start = -numbers.ctypes.data // numbers.itemsize % _LINE
    block = numbers[start : start + n_features * line].reshape(n_features, line)
    fields = np.dtype([(name, np.float64) for name in of_feature])
    features = np.ndarray((n_features,), fields, numbers.data, start * numbers.itemsize, block.strides[:1])
    return features.view(np.recarray), coordinates(of_coordinate, block, len(of_feature), n_outputs)


def check_room(state: Any) -> None:
    """Check that a learner's arrays of outputs have the room that compiled loops take, see the top of this file.

    Raises
    ------
    TypeError
        If there is one of shape (1, K) that was made otherwise than by ``row_of_outputs``.
    """
    for name, array in zip(state._fields, state, strict=True):
        if hasattr(array, "_fields"):
            check_room(array)
        elif isinstance(array, np.ndarray) and array.ndim == 2 and len(array) == 1 and array.dtype.names is None:
            whole = array if array.base is None else array.base
            if np.size(whole) < room(array.shape[1]):
                raise TypeError(f"{type(state).__name__}.{name} must be made by row_of_outputs")


def _numbers(array: np.ndarray) -> np.ndarray:
    """Records as one more axis of numbers, which is much faster to copy."""
    names = array.dtype.names
    if not names:
        return array if names is None else array[..., None]
    fields: list[np.ndarray] = [np.asarray(array[name]) for name in names]
    apart = fields[-1].ctypes.data - fields[0].ctypes.data
    strides = *fields[0].strides, apart // max(len(names) - 1, 1)
    return as_strided(fields[0], (*array.shape, len(names)), strides)


def _places(old: tuple[int, ...], new: tuple[int, ...], first: int) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
    """Which part of a learner's array, (d, K), (K, d, d), (d,) or (), is copied to which part of one of another size.

    A matrix that has to be smaller with more outputs is cut.
    """
    kept = [slice(min(pair)) for pair in zip(old, new, strict=True)]
    placed = list(kept)
    if len(old) > 1:
        axis = 1 if len(old) == 2 else 0
        placed[axis] = slice(first, first + old[axis])
    return tuple(kept), tuple(placed)


def fresh(state: Any, n_features: int, n_outputs: int) -> Any:
    """A learner of the same settings that has seen nothing."""
    fields = zip(state._fields, state, state.blank(n_features, n_outputs), strict=True)
    return type(state)(**{name: new if hasattr(new, "__len__") else old for name, old, new in fields})


def grow(state: Any, n_features: int, n_outputs: int, first: int = 0) -> Any:
    """The same learner with room for more features and outputs, of which nothing is known yet.

    Parameters
    ----------
    state : learner
    n_features, n_outputs : int
        New sizes, at least the present ones.
    first : int, default 0
        The output that the first present output becomes.
    """
    fields = {}
    for name, old, new in zip(state._fields, state, state.blank(n_features, n_outputs), strict=True):
        if hasattr(old, "_fields"):
            fields[name] = grow(old, n_features, n_outputs, first)
        elif name != "outputs" and isinstance(old, np.ndarray):
            kept, placed = _places(old.shape, new.shape, first)
            _numbers(new)[placed] = _numbers(old)[kept]
            fields[name] = new
        else:
            fields[name] = new if name == "outputs" else old
    return type(state)(**fields)


def with_outputs(state: Any, n_outputs: int, first: int = 0, mirrors: bool = False) -> Any:
    """The same learner with more outputs, see :func:`grow`.

    Where one margin becomes those of several classes under a softmax, ``first`` is 1 and it ``mirrors``.
    """
    grown = grow(state, len(state.coordinates), n_outputs, first)
    if hasattr(grown, "begin_outputs"):
        grown.begin_outputs([k for k in range(n_outputs) if not first <= k < first + len(state.outputs)])
    if mirrors:
        mirror(grown)
    return grown


def _observed(state: Any) -> Any:
    """The features that a learner has seen; all of those whose statistics are 0 before."""
    names = getattr(state, "features", np.empty(0)).dtype.names or ()
    return np.flatnonzero(state.features["largest"] > 0.0) if "largest" in names else slice(None)


def begin_outputs(state: Any, begun: Any, places: Iterable[int]) -> None:
    """Let outputs begin with what a learner of one output and the same settings knows of its constant, in place."""
    for name, array, known in zip(state._fields, state, begun, strict=True):
        if hasattr(array, "_fields"):
            begin_outputs(array, known, places)
        elif name != "outputs" and isinstance(array, np.ndarray) and array.ndim == 2:
            for k in places:
                array[0, k] = known[0, 0]


def mirror(state: Any, features: np.ndarray | None = None) -> None:
    """Let outputs 0 and 1 have what output 1 has learned of the margin between them, in place.

    Slopes of class 0 were those of class 1 with the other sign. So output 0 takes over the statistics that do not
    depend on the sign: otherwise its first steps would be as long as those of a learner that has seen nothing. Where
    weights can be halved, each output has half of the margin, as if both had been learned from the start, so that a
    class to come is not taken for one like class 0.

    Parameters
    ----------
    state : learner
    features : array, optional
        Features whose coordinates are meant; by default all that it has seen, and the statistics of outputs, too.
    """
    special, coordinates = traits_of(type(state)), state.coordinates
    chosen = _observed(state) if features is None else features
    for name in (*special.even, *special.odd):
        if name not in state._fields:
            coordinates[name][chosen, 0] = coordinates[name][chosen, 1] * (-1.0 if name in special.odd else 1.0)
        elif features is None:
            of_outputs = getattr(state, name)
            by_output = of_outputs.T if of_outputs.ndim == 2 else of_outputs
            by_output[0] = by_output[1]
    for name in special.halved:
        coordinates[name][chosen, :2] *= 0.5
    for part in state:
        if hasattr(part, "_fields") and hasattr(part, "coordinates"):
            mirror(part, features)
