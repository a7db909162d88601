"""A model: it predicts each row of a stream before it learns it.

The command line, the streaming fit and the estimators share this class. A model takes rows and raw targets, adds a new
class at the first row that has it, and reserves capacity for new features. It consists of linear learners
(:mod:`tunefree.pool.linear_group`), a predictor, and the record of the first pass (:mod:`tunefree.pool.first_pass`).
The predictor is the pool (:mod:`tunefree.pool.pool`), a single learner (:mod:`tunefree.pool.single`), or the predictor
of a learner that is not linear (:class:`tunefree.pool.rows.Family`).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np

from tunefree.core.errors import DataError, ModelError, TunefreeError
from tunefree.core.part import FIXED, RECORD, Part
from tunefree.core.part import restored as restored_part
from tunefree.core.rows import n_rows, part, reach
from tunefree.learners import POOL, family_of
from tunefree.losses import loss_of
from tunefree.losses.objectives import measured
from tunefree.pool import calibration
from tunefree.pool.first_pass import FirstPassRecord, PredictedRows
from tunefree.pool.linear_group import LinearGroup, Setting
from tunefree.pool.members import Members
from tunefree.pool.occurrences import EVERY, FirstMeetings
from tunefree.pool.options import ModelOptions, Monotone, objective_of_mixture
from tunefree.pool.pool import Pool
from tunefree.pool.rows import PIECE, LabelledRows
from tunefree.pool.single import Single
from tunefree.pool.slots import TREES
from tunefree.pool.snapshot import Copies
from tunefree.pool.targets import ScoredModel, check_room, join_margins
from tunefree.pool.waiting import Waiting
from tunefree.theory.evidence import Certificate

FEWEST_FEATURES = 2  # the constant and one more
OPTIONS = ("task", "learner", "loss", "average", "settings", "view", "replays")  # options saved as JSON unchanged
OF_MODEL = ("classes", "n_features")  # attributes of the model saved as JSON unchanged


def last_class(classes: Sequence[Any]) -> Any:
    """The last of two sorted classes, whose probability rises with a monotone column; None for other models."""
    first, second = classes if len(classes) == 2 else (None, None)
    return first if type(first) is type(second) and first is not None and second < first else second


def whole(change: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a method that changes a model: after an unexpected error in it, the model refuses to go on.

    Errors of this package are raised between pieces, so a model can go on after them.
    """

    @wraps(change)
    def changed(model: Any, *arguments: Any, **options: Any) -> Any:
        model._check_whole()
        try:
            return change(model, *arguments, **options)
        except TunefreeError:
            raise
        except BaseException as error:
            model.ended_by = type(error).__name__
            raise

    return changed


class Model(ScoredModel):
    """A model that learns.

    Its ``options`` are ``task``, ``learner``, ``loss``, ``average`` and others, see
    :class:`tunefree.pool.options.ModelOptions`. ``classes`` are the labels known in advance, in the order of the
    outputs; new labels are appended as they appear. ``n_features`` counts the known features including the constant,
    and grows likewise.

    The ``predictor`` trains the ``linear`` members, if there are any, and combines their predictions; ``record`` is the
    record of the first pass. A model ``has_weights`` if it is one learner that is linear in the features of its view.
    ``loss_is_log_loss`` if the loss of a class is minus the logarithm of its probability. ``ended_by`` is the type of
    the error that ended learning in the middle of rows.

    >>> from tunefree.core.rows import dense
    >>> from tunefree.pool.targets import Labels
    >>> model = Model("classification", "scinol2")
    >>> X = dense(np.array([[0.0], [1.0], [0.0], [1.0]] * 50))
    >>> _ = model.learn(X, Labels.of(["no", "yes"] * 100), np.ones(200))
    >>> model.classes, model.predict(X)[:2, 0].round()
    (['no', 'yes'], array([-2.,  4.]))
    """

    kind = "linear"  # kind of model, see tunefree.model_files.trained

    def __init__(
        self,
        task: str,
        learner: str = POOL,
        loss: str | None = None,
        average: bool = False,
        *,
        classes: Any = (),
        n_features: int = FEWEST_FEATURES,
        **chosen: Any,
    ) -> None:
        self.options = options = ModelOptions(task, learner, loss, average, **chosen)
        self.task, self.classes, self.monotone = task, list(classes), options.monotone
        self._check_monotone(self.classes)
        self.n_features = max(n_features, FEWEST_FEATURES)
        meetings = FirstMeetings(0 if options.replays_first_meetings else EVERY)
        member_arguments = options.objective(self.n_outputs), self.n_features, self.n_outputs, average, meetings
        monotone_features = [column.feature for column in self.monotone]
        self.linear = LinearGroup(options.linear_settings, *member_arguments, monotone_features)
        self.predictor = self._new_predictor()
        self.has_weights = bool(self.linear.members) and not options.is_pool
        self.loss_is_log_loss = task == "classification" and not options.is_calibrated
        self.first_pass = FirstPassRecord(options, meetings.n_slots(self.n_features), self.n_outputs)
        self.ended_by: str | None = None

    def _new_predictor(self) -> Any:
        options, n_classes = self.options, len(self.classes)
        if options.family is not None:
            return options.family.predictor(options, self.linear, self.n_outputs, n_classes)
        if options.is_pool:
            loss = loss_of(self.task, options.loss) if self.task == "regression" else None
            kinds = (*(TREES[:1] if self.monotone else TREES), *options.kinds)
            return Pool(Members(self.linear, n_classes, loss, kinds, self._signs()))
        return Single(self.linear, n_classes if options.is_calibrated else None)

    def _signs(self) -> dict[int, int]:
        """Signs of monotone columns by feature, for the class that is the second one for the members."""
        turn = -1 if self.classes[:1] == [last_class(self.classes)] else 1
        return {column.feature: turn * column.sign for column in self.monotone}

    def _check_monotone(self, classes: Sequence[Any]) -> None:
        if self.monotone and len(classes) > 2:
            problem = f"`monotone` is for numbers and two classes, and {classes[2]!r} is a third class"
            raise DataError(problem, remedy="leave `monotone` out, or predict one of the classes against the others")

    def _parts(self) -> dict[str, Part]:
        """The learned parts by their names in model files."""
        return {"linear": self.linear, "predictor": self.predictor, "record": self.record}

    def _check_whole(self) -> None:
        if self.ended_by is not None:
            problem = f"{self.ended_by} was raised while the model learned, and left it in the middle of rows"
            raise ModelError(f"{problem}; fit it anew, or load it from a file")

    def check_learns(self) -> None:
        """Raise a ModelError if the model cannot learn."""
        if self.predictor.only_predicts:
            raise ModelError("this model only predicts; go on from the model that it was made of")

    @property
    def pool(self) -> Any:
        """The pool, with all learned rows recorded; None for a single learner."""
        if not isinstance(self.predictor, Pool):
            return None
        self.predictor.flush()
        return self.predictor

    @property
    def record(self) -> FirstPassRecord:
        """The record of the first pass, with all learned rows recorded."""
        self.first_pass.prepare()
        return self.first_pass

    @property
    def objective(self) -> Any:
        """The objective, which computes predictions and losses from margins and targets."""
        if self.task == "classification" and self.options.is_mixed:
            return objective_of_mixture(self.n_outputs)
        return self._online_members()[0].objective

    def _online_members(self) -> list[Any]:
        return self.linear.members or list(self.predictor.bank.members)

    def reserve(self, n_features: int = 0, n_slots: int = 0, exactly: bool = False) -> None:
        """Reserve capacity for at least ``n_features`` features, and statistics for at least ``n_slots`` slots.

        Capacity doubles, unless ``exactly`` so many slots are asked for. Statistics are not copied while rows are
        learned.
        """
        self.check_learns()
        self.n_features = max(self.n_features, n_features)
        n_slots = max(n_slots, self.linear.meetings.n_slots(self.n_features))
        self.linear.reserve(self.n_features, n_slots, exactly)
        self.first_pass.reserve(n_slots, exactly)

    @whole
    def learn(
        self,
        X: Any,
        y: Any,
        weight: np.ndarray,
        again: bool = False,
        groups: np.ndarray | None = None,
        mass: np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Learn a block of rows in order.

        Parameters
        ----------
        X : block of rows
            The model gets capacity for its features, if :meth:`reserve` was not called before.
        y : Labels, or (n,) array of numbers in regression
        weight : (n,) array
            Sample weights; a row of weight 0 is predicted but not learned.
        again : bool, default False
            Whether the rows were learned before; then views, certificates and calibration learn nothing from them.
        groups, mass : (n,) arrays, optional
            For a pool, see :meth:`tunefree.pool.pool.Pool.learn`. A run of rows of one group must be in one call.

        Returns
        -------
        predictions : (n, K) array
            Predictions made before each row was learned: margins for classification.
        row_losses : (n,) array
            The loss of each row. NaN in regression for rows before the first learned target, when the size of targets
            is unknown. NaN for rows that all members keep back, see ``take_late_losses`` of the predictor.
        """
        self.check_learns()
        if reach(X) > self.n_features:  # compiled passes would write beyond the end of the members' arrays
            self.reserve(reach(X))
        codes, new = (np.asarray(y, np.float64), []) if self.task == "regression" else self.codes(y)
        rows, start = LabelledRows(X, codes, weight, groups, mass), 0
        margins, row_losses = [], [np.empty(0)]
        for stop, label in [*new, (n_rows(X), None)]:
            for predictions in self.predictor.learn(rows.part(start, stop), again):
                piece = rows.part(start, start + len(predictions))
                piece_margins, piece_losses = self._record(piece, self._margins(predictions), again)
                margins.append(piece_margins)
                row_losses.append(piece_losses)
                start += len(predictions)
            if label is not None:
                self.add_class(label)
        return join_margins(margins, self.n_outputs), np.concatenate(row_losses)

    def _record(self, rows: LabelledRows, margins: np.ndarray, again: bool) -> tuple[np.ndarray, np.ndarray]:
        """Predictions and losses of rows; adds them to the record of the first pass unless they come again."""
        is_kept_back, is_unknown = np.isnan(margins[:, 0]), np.zeros(len(margins), bool)
        margins[is_kept_back] = 0.0
        if self.task == "classification":
            targets = self.targets_of(rows.y)
        else:
            targets = rows.y.copy()  # the caller may write to the array before it is recorded
            if not again:
                means = self.first_pass.targets.add(rows.weight, rows.y)
                is_unknown = np.isnan(means)
                mean_predictions = self.objective.loss.prediction_of(np.nan_to_num(means))
                margins[is_kept_back, 0] = mean_predictions[is_kept_back]
        losses = measured(self.objective, targets, margins)
        entries, met = self.linear.latest
        if again:
            self.first_pass.is_over = True
            return margins, losses
        weights = np.where(is_kept_back, 0.0, rows.weight), np.where(is_unknown, 0.0, rows.weight)
        self.first_pass.add(PredictedRows(self.objective, entries, targets, *weights, margins, losses, met))
        is_late = is_kept_back & (rows.weight > 0.0)
        return margins, np.where(is_unknown | is_late, np.nan, losses)

    def _margins(self, predictions: np.ndarray) -> np.ndarray:
        """Margins (n, K) from log-probabilities, one margin for up to two classes; other predictions unchanged."""
        if self.task == "classification" and predictions.shape[1] > self.n_outputs:
            return predictions[:, 1:] - predictions[:, :1]
        return predictions

    @whole
    def freeze(self) -> None:
        """Finish learning: a pool grows its last trees, and members learn the rows that they kept back."""
        for monotone in self.monotone:
            growth = self.pool.members.growth
            if growth is None or growth.whole.n_kept < 2:
                break
            (column,) = growth.whole.kept(columns=growth.columns.places(np.array([monotone.feature])))["columns"].T
            if (column == column[0]).all():
                problem = "is monotone, and has the same value in all rows"
                raise DataError(problem, column=monotone.name, remedy="leave it out of `monotone`")
        self.predictor.finish()

    @whole
    def begin_pass(self) -> None:
        """Begin another pass over learned rows; from now on features get slots at their first occurrence."""
        self.check_learns()
        self.record.replay(self.linear.settle())
        self.predictor.begin_pass()

    def add_class(self, label: Any) -> None:
        """Add a class; a third class turns one margin into three, and the old margin becomes the margin of class 1."""
        check_room(len(self.classes))
        self._check_monotone([*self.classes, label])
        before = self.n_outputs
        self.classes.append(label)
        if self.monotone:
            self.predictor.members.signs.update(self._signs())
        self.predictor.add_class(self.options.objective(self.n_outputs), self.n_outputs, len(self.classes))
        if self.n_outputs > before:
            self.record.add_outputs(self.n_outputs, self.objective)

    def predict(self, X: Any) -> np.ndarray:
        """Margins (n, K), or in regression the predicted targets (n, 1), of a block of rows."""
        self._check_whole()
        starts = range(0, n_rows(X), PIECE)
        pieces = [self._margins(self.predictor.predict(part(X, start, start + PIECE))) for start in starts]
        return pieces[0] if len(pieces) == 1 else np.concatenate([np.empty((0, self.n_outputs)), *pieces])

    def _log_odds(self, margins: np.ndarray) -> np.ndarray:
        return calibration.log_odds(self.predictor.calibration, margins)

    def certificate(self) -> Certificate:
        """The certificate of every linear model on the rows of the first pass."""
        if self.predictor.only_predicts:
            raise ModelError("this model only predicts; certify the model that it was made of")
        return self.record.certificate(self.n_features, self.objective, self.linear.meetings)

    def mean_weights(self) -> np.ndarray:
        """Weights (d, K) of features, relative to the units of the features, of a model that ``has_weights``."""
        return self.linear.weights(self.n_features)[0]

    def reduce(self) -> None:
        """Keep only the state for predictions, without the state for learning, certificates and decisions."""
        if self.pool is None:
            raise ModelError("the model of a single learner predicts as it is; leave only_for_prediction out")
        self.pool.reduce()
        self.linear.reduce()
        self.first_pass = FirstPassRecord(self.options, FEWEST_FEATURES, self.n_outputs)

    def save_state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays and a header from which :func:`restored` makes the same model, to the last bit."""
        self._check_whole()
        header: dict[str, Any] = {name: getattr(self.options, name) for name in OPTIONS}
        header |= {name: getattr(self, name) for name in OF_MODEL}
        header |= {"kinds": [*self.options.kinds]} if self.options.kinds else {}
        header |= {"monotone": [column._asdict() for column in self.monotone]} if self.monotone else {}
        header["config"] = None if self.options.config is None else self.options.config._asdict()
        header["member_settings"] = [member.setting._asdict() for member in self._online_members()]
        self.linear.n_known = self.n_features
        n_slots = self.linear.meetings.n_slots(self.n_features)
        self.first_pass.n_known = 0 if self.predictor.only_predicts else n_slots
        arrays: dict[str, np.ndarray] = {}
        for name, child in self._parts().items():
            arrays_of_part, header[name] = child.save_state()
            arrays |= {f"{name}.{key}": array for key, array in arrays_of_part.items()}
        return arrays, header

    def __getstate__(self) -> dict[str, Any]:
        return dict(zip(("arrays", "header"), self.save_state(), strict=True))

    def __setstate__(self, saved: dict[str, Any]) -> None:
        self.__dict__.update(restored(**copy.deepcopy(saved)).__dict__)


def restored(arrays: dict[str, np.ndarray], header: dict[str, Any]) -> Model:
    """The model that :meth:`Model.save_state` saved."""
    family, config = family_of(header["learner"]), header["config"]
    chosen = {name: copy.copy(header[name]) for name in (*OPTIONS, *OF_MODEL)}
    config = None if family is None or config is None else family.restored_config(config)
    chosen["kinds"] = tuple(header.get("kinds", ()))
    chosen["monotone"] = [Monotone(**fields) for fields in header.get("monotone", ())]
    model = Model(**chosen, config=config, member_settings=[Setting(**fields) for fields in header["member_settings"]])
    for name, child in model._parts().items():
        restored_part(child, name, arrays, header[name])
    return model


def published(model: Model) -> Model:
    """A copy of a model for prediction, whose predictions stay the same to the bit while the model learns more.

    Arrays that learning changes in place are copied. Objects that learning replaces, or that predictions do not need,
    are shared: the nodes of trees, the rows kept for growing them, and the records of the pass. This does not wait for
    generations that are being grown. The model must not learn during the call.

    >>> from tunefree.core.rows import dense
    >>> from tunefree.pool.targets import Labels
    >>> model, X, y = Model("classification"), dense(np.array([[0.0], [1.0]] * 50)), Labels.of(["no", "yes"] * 50)
    >>> _ = model.learn(X, y, np.ones(100))
    >>> before = published(model)
    >>> predictions = before.predict(X)
    >>> _ = model.learn(X, y, np.ones(100))
    >>> bool((before.predict(X) == predictions).all()), bool((model.predict(X) == predictions).all())
    (True, False)
    """
    result = object.__new__(type(model))  # copy.copy would save the model, and wait for growing generations
    result.__dict__.update(model.__dict__)
    result.classes = list(model.classes)
    memo: dict[int, Any] = {id(model.options): model.options}
    result.linear = model.linear.copied(memo=memo)
    result.predictor = model.predictor.copied((FIXED, RECORD), memo)
    if result.pool is not None:
        result.pool.waiting, result.pool.copies = Waiting(), Copies(result.pool.members)
    return result
