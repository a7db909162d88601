"""The pool as scikit-learn estimators: nothing to choose, not even the number of passes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from tunefree.core.errors import ModelError
from tunefree.estimators import tables, validation
from tunefree.estimators.base import OnlineClassifierBase, OnlineEstimator, OnlineRegressorBase
from tunefree.estimators.fit_display import FitDisplay
from tunefree.losses import loss_of
from tunefree.model import batch_phase
from tunefree.model.kernel_bank import KernelConfig
from tunefree.model.members import Setting
from tunefree.model.mixture import predictive_shares, without
from tunefree.model.model import Model
from tunefree.model.pool import is_kernel
from tunefree.model.selection import Found, find_passes

HELD_OUT = 10  # one round of so many is held out while the number of passes is found
HELD_OUT_OF_FEW = 5  # where there are fewer than MANY rounds, and kernels whose widths are to be told apart
MANY = 10_000
FEWEST = 40  # rounds that are too few to hold any out
FEW_PASSES = 10  # of so few rounds
MOST_ROUNDS = 4_000_000  # of all passes together, in search of their number
MOST_PASSES = 32
LEAST_PASSES = 3
LEAST_SHARE = 0.005  # of a kernel learner


class Pooled(OnlineEstimator):
    """What the two estimators share: they find the number of passes of each member."""

    epochs: Any
    passes_: list[int]
    kernel: bool
    max_support: Any
    device: str | None
    pairs: Any
    _display: FitDisplay  # while rows are fitted

    def _learner(self) -> tuple[str, dict[str, float]]:
        return "kernel-pool" if self.kernel else "pool", {}

    def _kernel_config(self) -> KernelConfig:
        return KernelConfig(device=self.device, max_support=self.max_support)

    def _pairs(self) -> list[tuple[int, int]] | None:
        """The pairs of columns as a model takes them."""
        if isinstance(self.pairs, str) and self.pairs == "auto":
            return None
        encoder = tables.encoder_of(self)
        names = list(getattr(self, "feature_names_in_", ()))
        found: list[tuple[int, int]] = []
        for pair in self.pairs:
            columns = [names.index(column) if column in names else column for column in pair]
            known = [isinstance(c, Integral) and int(c) in range(self.n_features_in_) for c in columns]
            if len(set(columns)) != 2 or not all(known):
                raise ModelError(f"pairs: {pair!r} is not two columns; give their numbers from 0, or their names")
            sources = [[int(c)] if encoder is None else encoder.sources(encoder.columns[int(c)].name) for c in columns]
            found += product(sources[0], sources[1])
        return found

    def _check_parameters(self) -> None:
        if self.epochs != "auto":
            validation.whole(epochs=self.epochs)
        if self.max_support is not None:
            validation.whole(max_support=self.max_support)
        validation.switches(kernel=self.kernel, shuffle=self.shuffle, warm_start=self.warm_start, verbose=self.verbose)
        loss_of(self._task, str(self.loss))

    def _epochs(self, X: Any, y: np.ndarray, weight: np.ndarray) -> None:
        with FitDisplay(type(self).__name__, bool(self.verbose)) as self._display:
            try:
                self._find_and_fit(X, y, weight)
            finally:
                del self._display

    def _blocks(self, X: Any, rounds: validation.Rounds) -> Iterator[tuple[slice, Any]]:
        display = getattr(self, "_display", None)
        for place, block in super()._blocks(X, rounds):
            yield place, block
            if display is not None:
                display.advance(place.stop / len(rounds.row))

    def _pass(self, X: Any, y: Any, rounds: validation.Rounds, first: bool) -> None:
        display = getattr(self, "_display", None)
        if display is not None:
            display.begins(f"a pass over {len(rounds.row):,} rounds")
        super()._pass(X, y, rounds, first)
        if display is not None:
            display.say(f"a pass over {len(rounds.row):,} rounds, progressive loss {self.progressive_loss_:.6g}")

    def _find_and_fit(self, X: Any, y: np.ndarray, weight: np.ndarray) -> None:
        again = self.t_ > 0
        few = np.count_nonzero(weight) < FEWEST
        if self.epochs != "auto" or again or few:
            passes = self.epochs if self.epochs != "auto" else 1 if again else FEW_PASSES
            self._fixed_epochs(X, y, weight, passes)
            self.passes_ = [self.n_iter_] * len(self._learned.model.members)
            return
        random = check_random_state(self.random_state)
        rounds = validation.spread(X, y, weight) if self.shuffle else validation.as_given(weight)
        has_batch_phase = not self.kernel and batch_phase.suits(self._learned.model)
        if has_batch_phase and len(rounds.row) >= MANY:
            drawn = validation.shuffled(rounds, weight, random) if self.shuffle else rounds
            self._by_one_pass(X, y, drawn)
        else:
            self._by_passes(X, y, weight, rounds, random, has_batch_phase)

    def _by_one_pass(self, X: Any, y: np.ndarray, drawn: validation.Rounds) -> None:
        """Make one pass, and a batch phase that is stopped by a tenth of the rounds before these are learned."""
        settings = batch_phase.settings_before(self._learned.model)
        self._start(X, drawn, True, member_settings=settings)
        model = self._learned.model
        held, rest = validation.split(drawn, HELD_OUT)
        self._pass(X, y, rest, first=True)
        model.freeze()
        found = self._batch_phase(X, y, rest, held, None)
        self._pass(X, y, held, first=True)
        self._join(X, y, drawn, found, [1] * len(model.members))

    def _start(self, X: Any, drawn: validation.Rounds, has_batch_phase: bool, **settings: Any) -> None:
        """Begin with a model that has seen nothing, and that is judged by rows held out."""
        self._begin_again(Model(**_settings_of(self._learned.model), **settings))
        self._learned.model.deployment = None  # rows held out are evidence of how members predict new rows
        if has_batch_phase:
            some = drawn.row[:: 1 + (len(drawn.row) - 1) // batch_phase.SAMPLED]
            batch_phase.prepare(self._learned.model, validation.block(X[some], self._intercept()), len(drawn.row))

    def _batch_phase(
        self, X: Any, y: np.ndarray, rest: validation.Rounds, held: validation.Rounds, predictions: Any
    ) -> batch_phase.Found:
        """Find where to stop the batch phase."""
        self._display.begins("search of where to stop the batch phase")
        blocks, held_blocks = self._labelled(X, y, rest), self._labelled(X, y, held)
        found = batch_phase.found(self._learned.model, blocks, held_blocks, predictions)
        for name, stopped in found.of_views.items():
            self._display.say(f"batch phase, {name}: {stopped.iterations} iterations, held-out loss {stopped.loss:.6g}")
        return found

    def _join(
        self, X: Any, y: np.ndarray, drawn: validation.Rounds, found: batch_phase.Found, passes: list[int]
    ) -> None:
        """Let the members of the batch phase, on all rounds, join those that made so many passes."""
        self._display.begins(f"batch phase on all {len(drawn.row):,} rounds")
        batch_phase.join(self._learned.model, found, self._labelled(X, y, drawn))
        self.passes_, self.n_iter_ = batch_phase.iterations(found, self._learned.model, passes), max(passes)

    def _labelled(self, X: Any, y: np.ndarray, rounds: validation.Rounds) -> Iterator[batch_phase.Labelled]:
        """Blocks of rounds, with targets as objectives take them."""
        for place, block in super()._blocks(X, rounds):
            yield block, self._learned.model.targets(self._targets(y, rounds.row[place])), rounds.weight[place]

    def _by_passes(
        self, X: Any, y: np.ndarray, weight: np.ndarray, rounds: validation.Rounds, random: Any, has_batch_phase: bool
    ) -> None:
        """Find the number of passes of each member, and make as many over all rounds."""
        drawn = validation.shuffled(rounds, weight, random) if self.shuffle else rounds
        self._start(X, drawn, has_batch_phase)
        model = self._learned.model
        found, phase = self._search(X, y, drawn, model, random, has_batch_phase)
        member_settings = [
            setting
            for setting, share in zip(model.member_settings, predictive_shares(found.mixture), strict=True)
            if _pays(setting, share)
        ]
        self._start(X, drawn, has_batch_phase, member_settings=member_settings, may_prune=not self.kernel)
        self._pass(X, y, drawn, first=True)
        kept = self._adopt(found, model)
        self._display.say(f"members make up to {max(kept)} passes over all {len(drawn.row):,} rounds")
        for number in range(2, max(kept) + 1):
            drawn = validation.shuffled(rounds, weight, random) if self.shuffle else rounds
            self._display.begins(f"pass {number} of {max(kept)}")
            self._replay(X, y, drawn, self._learned.model, [m for m, most in enumerate(kept) if most >= number])
            self.t_ += len(drawn.row)
        self._learned.model.freeze()
        scalings = dict(zip(map(repr, model.member_settings), found.scalings, strict=True))
        for bank in self._learned.model.kernel_banks:
            for member in bank.members:
                member.calibration = scalings[repr(member.setting)]
        self.passes_, self.n_iter_ = kept, max(kept)
        if phase is not None:
            self._join(X, y, drawn, phase, kept)

    def _search(
        self, X: Any, y: np.ndarray, drawn: validation.Rounds, model: Model, random: Any, has_batch_phase: bool
    ) -> tuple[Found, batch_phase.Found | None]:
        """Train a model on nine tenths of the rounds, looking at the others."""
        one_of = HELD_OUT_OF_FEW if self.kernel and len(drawn.row) < MANY else HELD_OUT
        held, rest = validation.split(drawn, one_of)

        def learn_pass(number: int, members: list[int]) -> None:
            self._display.begins(f"search, pass {number} of at most {most}: {len(members)} members")
            if number == 1:
                for place, block in self._blocks(X, rest):
                    model.learn(block, self._targets(y, rest.row[place]), rest.weight[place])
            else:
                order = random.permutation(len(rest.row)) if self.shuffle else np.arange(len(rest.row))
                self._replay(X, y, validation.Rounds(*(part[order] for part in rest)), model, members)
            told = f"{len(members)} members on {len(rest.row):,} rounds"
            self._display.say(f"search, pass {number} of at most {most}: {told}")

        most = int(np.clip(MOST_ROUNDS // len(rest.row), LEAST_PASSES, MOST_PASSES))
        rows = validation.block(X[held.row], self._intercept())
        found = find_passes(model, learn_pass, rows, self._targets(y, held.row), held.weight, most)
        return found, self._batch_phase(X, y, rest, held, found.predictions) if has_batch_phase else None

    def _replay(self, X: Any, y: np.ndarray, rounds: validation.Rounds, model: Model, members: list[int]) -> None:
        model.begin_pass(members)
        for place, block in self._blocks(X, rounds):
            model.replay(block, self._targets(y, rounds.row[place]), rounds.weight[place], members)

    def _adopt(self, found: Found, searched: Model) -> list[int]:
        """Take shares over from the search; returns how many passes each member is to make."""
        model = self._learned.model
        model.mixture = found.mixture
        stays = np.array([setting in model.member_settings for setting in searched.member_settings])
        if not stays.all():
            model.mixture = without(found.mixture, stays)
        return [number for number, kept in zip(found.passes, stays, strict=True) if kept]

    @property
    def members_(self) -> list[dict[str, Any]]:
        """The members of the pool: name, weight (share) in predictions, and passes of the latest ``fit``."""
        check_is_fitted(self)
        model = self._learned.model
        passes = getattr(self, "passes_", [1] * len(model.members))
        rows = zip(model.shares_by_member().items(), passes, strict=False)
        return [{"member": name, "share": share, "passes": number} for (name, share), number in rows]


def _pays(setting: Setting, share: float) -> bool:
    """Whether a member is worth the time to learn all rows; linear ones take little."""
    return share >= LEAST_SHARE or not is_kernel(setting.learner)


def _settings_of(model: Model) -> dict[str, Any]:
    """What makes a model like this that has seen nothing."""
    names = ("task", "learner", "loss", "kernel_config", "pairs")
    made = {name: getattr(model.options, name) for name in names}
    return made | {"n_features": model.n_features, "classes": model.classes}


class TuneFreeClassifier(Pooled, OnlineClassifierBase):
    """A classifier with nothing to tune: a pool of online learners, mixed.

    Seventeen learners (second-order and first-order, scale-invariant and adaptive, with several rates, on raw and on
    robustly standardised rows) are trained in parallel, and their probabilities are averaged with Bayesian weights
    [1]_. Five of them learn additive models, piecewise linear in each column, three of these with interactions of pairs
    of columns; they are for dense rows of at most 128 columns, and join after 256 rows. On a stream (``partial_fit``,
    sample weights up to 1) the total log-loss of the mixture exceeds that of its best member by at most
    ln 17 + ln(rounds + 1). ``fit`` ends with exact gradients of all rows (L-BFGS), stopped early.

    Parameters
    ----------
    loss : {"logistic"}, default="logistic"
        The loss that is minimised.
    kernel : bool, default=False
        Whether PiSTOL [2]_ with Gaussian kernels of nine bandwidths, on two views of the rows, joins the pool. Time and
        memory then grow with the number of rows of small margin.
    max_support : int, optional
        Maximum number of support points of each view, with ``kernel``. Beyond it the functions continue in random
        Fourier features, with bounded memory and a warning.
    device : str, optional
        PyTorch device for the evaluation of kernels, ``"cuda"`` or ``"cpu"``; by default compiled code is used.
    pairs : "auto" or list of (column, column), default="auto"
        Pairs of columns whose products are learned beside curves of single columns, by their names or numbers from 0.
        ``"auto"`` finds the pairs that pay; an empty list learns none.
    epochs : "auto" or int, default="auto"
        Number of passes over the rows in ``fit``. ``"auto"`` selects it by early stopping on a held-out tenth of the
        rows and then fits all rows. With fewer than 40 rows it is ten; a ``fit`` that continues (``warm_start``) makes
        one pass.
    fit_intercept : bool, default=True
        Whether to fit an intercept.
    shuffle : bool, default=True
        Whether ``fit`` shuffles the rows; the model then depends only on the weighted set of rows. With False the rows
        are learned in the given order, as by ``partial_fit``.
    n_jobs : int, default=-1
        Threads that work at once, by scikit-learn's rules: -1 for as many as there are processors, None for one. The
        model does not depend on it.
    random_state : int, RandomState instance or None, default=0
        Controls the order of the rows. The default gives reproducible results; None uses NumPy's global generator.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, which multiply the sample weights (1 for classes not given).
        ``"balanced"``, in ``fit`` only: inversely proportional to the total weights of the classes.
    warm_start : bool, default=False
        Whether ``fit`` continues from the present model instead of starting again.
    verbose : bool, default=False
        Whether ``fit`` prints a line for each pass, and one when code is compiled. On a terminal it also draws a bar.
    categorical_features : array-like of str, int or bool, optional
        Columns that are one-hot encoded even if they hold numbers, by their names, by numbers from 0, or as a mask. In
        a table, strings, categories and booleans are encoded in any case.
    text_features : array-like of str, int or bool, optional
        Columns whose words become features; an empty list for none. By default long strings that are mostly different
        from each other are taken for texts.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels known to the classifier, sorted.
    members_ : list of dict
        The members of the pool: ``member``, its weight (``share``) in predictions, and its number of ``passes``.
    coef_, intercept_ : ndarray
        The linear function that is nearest to the model, in the units of the columns, if each column is one number;
        :meth:`feature_weights` has that of all features, and how much of the model's variance it explains.
    feature_importances_ : ndarray of shape (n_features_in_,)
        How much predictions vary with each column, whatever its units.
    progressive_loss_ : float
        Progressive validation loss: the mean loss of the rows, each predicted before it is learned.
    t_ : int
        Number of rounds so far.
    n_iter_ : int
        Largest number of passes of a member that learns row by row in the latest ``fit``.
    n_features_in_ : int
        Number of features seen during ``fit``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features. Defined only when X has feature names that are all strings.

    References
    ----------
    .. [1] V. Vovk. Aggregating strategies. COLT 1990.
    .. [2] F. Orabona. Simultaneous model selection and optimization through parameter-free stochastic learning.
       NIPS 2014.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from tunefree import TuneFreeClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = TuneFreeClassifier().fit(X[:400], y[:400])
    >>> model.score(X[400:], y[400:]) > 0.95
    True

    Incremental learning, with a class that appears later:

    >>> model = TuneFreeClassifier().partial_fit([[0.0], [1.0]], ["no", "yes"])
    >>> model.partial_fit([[2.0]], ["perhaps"]).classes_.tolist()
    ['no', 'perhaps', 'yes']
    """

    def __init__(
        self,
        *,
        loss: str = "logistic",
        kernel: bool = False,
        max_support: int | None = None,
        device: str | None = None,
        pairs: Any = "auto",
        epochs: Any = "auto",
        fit_intercept: bool = True,
        shuffle: bool = True,
        n_jobs: int | None = -1,
        random_state: Any = 0,
        class_weight: Any = None,
        warm_start: bool = False,
        categorical_features: Any = None,
        text_features: Any = None,
        verbose: bool = False,
    ) -> None:
        self.loss = loss
        self.kernel = kernel
        self.max_support = max_support
        self.device = device
        self.pairs = pairs
        self.epochs = epochs
        self.fit_intercept = fit_intercept
        self.shuffle = shuffle
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.categorical_features = categorical_features
        self.text_features = text_features
        self.verbose = verbose


class TuneFreeRegressor(Pooled, OnlineRegressorBase):
    """A regressor with nothing to tune: a pool of online learners, mixed.

    Seventeen learners (second-order and first-order, scale-invariant and adaptive, with several rates, on raw and on
    robustly standardised rows) are trained in parallel. Five of them learn additive models, piecewise linear in each
    column, three of these with interactions of pairs of columns; they are for dense rows of at most 128 columns, and
    join after 256 rows. Predictions are averaged with exponential weights and an adaptive rate, as in AdaHedge [1]_.
    ``fit`` ends with exact gradients of all rows (L-BFGS), stopped early.

    Parameters
    ----------
    loss : str, default="square"
        ``"square"`` predicts the mean, ``"absolute"`` the median, ``"quantile:0.9"`` a quantile; also
        ``"power:1.5"``, ``"epsilon-insensitive:0.1"`` and ``"huber:1"``, with the parameter after the colon.
    kernel : bool, default=False
        Whether PiSTOL [2]_ with Gaussian kernels of nine bandwidths, on two views of the rows, joins the pool. Time and
        memory then grow with the number of rows of small margin.
    max_support : int, optional
        Maximum number of support points of each view, with ``kernel``. Beyond it the functions continue in random
        Fourier features, with bounded memory and a warning.
    device : str, optional
        PyTorch device for the evaluation of kernels, ``"cuda"`` or ``"cpu"``; by default compiled code is used.
    pairs : "auto" or list of (column, column), default="auto"
        Pairs of columns whose products are learned beside curves of single columns, by their names or numbers from 0.
        ``"auto"`` finds the pairs that pay; an empty list learns none.
    epochs : "auto" or int, default="auto"
        Number of passes over the rows in ``fit``. ``"auto"`` selects it by early stopping on a held-out tenth of the
        rows and then fits all rows. With fewer than 40 rows it is ten; a ``fit`` that continues (``warm_start``) makes
        one pass.
    shuffle : bool, default=True
        Whether ``fit`` shuffles the rows; the model then depends only on the weighted set of rows. With False the rows
        are learned in the given order, as by ``partial_fit``.
    n_jobs : int, default=-1
        Threads that work at once, by scikit-learn's rules: -1 for as many as there are processors, None for one. The
        model does not depend on it.
    random_state : int, RandomState instance or None, default=0
        Controls the order of the rows. The default gives reproducible results; None uses NumPy's global generator.
    warm_start : bool, default=False
        Whether ``fit`` continues from the present model instead of starting again.
    verbose : bool, default=False
        Whether ``fit`` prints a line for each pass, and one when code is compiled. On a terminal it also draws a bar.
    categorical_features : array-like of str, int or bool, optional
        Columns that are one-hot encoded even if they hold numbers, by their names, by numbers from 0, or as a mask. In
        a table, strings, categories and booleans are encoded in any case.
    text_features : array-like of str, int or bool, optional
        Columns whose words become features; an empty list for none. By default long strings that are mostly different
        from each other are taken for texts.

    Attributes
    ----------
    members_ : list of dict
        The members of the pool: ``member``, its weight (``share``) in predictions, and its number of ``passes``.
    coef_, intercept_ : ndarray
        The linear function that is nearest to the model, in the units of the columns, if each column is one number;
        :meth:`feature_weights` has that of all features, and how much of the model's variance it explains.
    feature_importances_ : ndarray of shape (n_features_in_,)
        How much predictions vary with each column, whatever its units.
    progressive_loss_ : float
        Progressive validation loss: the mean loss of the rows, each predicted before it is learned.
    t_ : int
        Number of rounds so far.
    n_iter_ : int
        Largest number of passes of a member that learns row by row in the latest ``fit``.
    n_features_in_ : int
        Number of features seen during ``fit``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features. Defined only when X has feature names that are all strings.

    References
    ----------
    .. [1] S. de Rooij, T. van Erven, P. D. Grünwald, W. M. Koolen. Follow the leader if you can, hedge if you must.
       JMLR 15, 2014.
    .. [2] F. Orabona. Simultaneous model selection and optimization through parameter-free stochastic learning.
       NIPS 2014.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from tunefree import TuneFreeRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = TuneFreeRegressor().fit(X[:300], y[:300])
    >>> model.score(X[300:], y[300:]) > 0.45
    True
    """

    def __init__(
        self,
        *,
        loss: str = "square",
        kernel: bool = False,
        max_support: int | None = None,
        device: str | None = None,
        pairs: Any = "auto",
        epochs: Any = "auto",
        shuffle: bool = True,
        n_jobs: int | None = -1,
        random_state: Any = 0,
        warm_start: bool = False,
        categorical_features: Any = None,
        text_features: Any = None,
        verbose: bool = False,
    ) -> None:
        self.loss = loss
        self.kernel = kernel
        self.max_support = max_support
        self.device = device
        self.pairs = pairs
        self.epochs = epochs
        self.shuffle = shuffle
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.warm_start = warm_start
        self.categorical_features = categorical_features
        self.text_features = text_features
        self.verbose = verbose
