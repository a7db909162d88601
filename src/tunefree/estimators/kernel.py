"""PiSTOL with kernels, in scikit-learn's manner."""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tunefree.estimators import validation
from tunefree.estimators.base import OnlineClassifierBase, OnlineEstimator, OnlineRegressorBase
from tunefree.kernel import feature_expansion
from tunefree.kernel.kernels import LADDERS, kernel_of
from tunefree.losses import loss_of
from tunefree.model.kernel_bank import KernelConfig
from tunefree.model.mixture import predictive_shares

GAMMAS = ("ladder", "median")
VIEWS = ("raw", "centred", "steady", "level")


class KernelEstimator(OnlineEstimator):
    """What the two estimators share."""

    fit_intercept = True  # kernels take no notice of the constant
    kernel: Any
    gamma: Any
    view: str
    max_support: Any
    _gammas = GAMMAS  # those with a name

    def _learner(self) -> tuple[str, dict[str, float]]:
        loss = loss_of(self._task, str(self.loss))
        lipschitz = loss.lipschitz if loss.lipschitz < math.inf else 1.0
        settings = validation.positive(a=self.a) | ({} if self.b is None else validation.positive(b=self.b))
        settings = {name: value / lipschitz for name, value in settings.items()}
        is_ladder = self.gamma == "ladder" and self.kernel in LADDERS
        return "kernel-pistol", settings | ({} if is_ladder else {"width": 1.0})

    def _kernel_config(self) -> KernelConfig:
        gamma = 0.0 if self.gamma in GAMMAS else float(self.gamma)
        made = KernelConfig(self.kernel, gamma, self.degree, float(self.coef0), self.precision == "double", self.device)
        return made._replace(max_support=self.max_support)

    def _view(self) -> str:
        return "raw" if self.kernel == "precomputed" else self.view

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not isinstance(self.gamma, str):
            validation.positive(gamma=self.gamma)
        elif self.gamma not in self._gammas:
            names = " or ".join(repr(name) for name in self._gammas)
            raise ValueError(f"gamma must be a number above 0, {names}, not {self.gamma!r}")
        if self.view not in VIEWS:
            raise ValueError(f"view must be one of {', '.join(VIEWS)}, not {self.view!r}")
        if self.precision not in ("single", "double"):
            raise ValueError(f"precision must be 'single' or 'double', not {self.precision!r}")
        if not isinstance(self.coef0, numbers.Real):
            raise ValueError(f"coef0 must be a number, not {self.coef0!r}")
        validation.whole(degree=self.degree)
        if self.max_support is not None:
            validation.whole(max_support=self.max_support)
            feature_expansion.check(kernel_of(self.kernel, 1.0, self.degree, float(self.coef0)), self.max_support)
        kernel_of(self.kernel, 1.0, self.degree, float(self.coef0))

    def _epochs(self, X: Any, y: np.ndarray, weight: np.ndarray) -> None:
        if self.kernel == "precomputed" and X.shape[0] != X.shape[1]:
            raise ValueError(
                f"Precomputed matrix must be a square matrix. Input is a {X.shape[0]}x{X.shape[1]} matrix."
            )
        super()._epochs(self._placed(X, np.arange(len(y))), y, weight)

    def _prepared(self, X: Any) -> Any:
        return self._placed(X, np.full(X.shape[0], -1))

    def _placed(self, X: Any, places: np.ndarray) -> Any:
        """Rows of a matrix made beforehand know their place in it; other rows are as they are."""
        return np.column_stack([places, X]) if self.kernel == "precomputed" else X

    def _pass(self, X: Any, y: Any, rounds: validation.Rounds, first: bool) -> None:
        if self.kernel == "precomputed" and X.shape[1] == self.n_features_in_:
            raise ValueError(
                "partial_fit cannot learn from a precomputed matrix: its rows are of other rows than these"
            )
        super()._pass(X, y, rounds, first)

    @property
    def gamma_(self) -> float:
        """gamma of the kernel: the one given, or the median rule's, of which the ladder's are multiples."""
        check_is_fitted(self)
        return self._learned.model.kernel_banks[0].gamma

    @property
    def n_support_(self) -> int:
        """Rows that the model is made of."""
        check_is_fitted(self)
        return self._learned.model.n_support

    @property
    def widths_(self) -> list[dict[str, float]]:
        """The widths learned: gamma, and its share in predictions."""
        check_is_fitted(self)
        model = self._learned.model
        rows = zip(model.members, predictive_shares(model.mixture).tolist(), strict=True)
        return [{"gamma": self.gamma_ * member.setting.settings["width"], "share": share} for member, share in rows]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.input_tags.sparse = self.kernel in ("rbf", "laplacian", "poly", "linear")
        return tags


class KernelPiSTOLClassifier(KernelEstimator, OnlineClassifierBase):
    """A kernel classifier with nothing to tune: PiSTOL, at every width.

    PiSTOL learns in the space of a kernel, row by row, with a guarantee against every function of that space that is
    as good as if its norm had been known [1]_: no C is chosen. Nor is a width: those of a ladder, from a quarter to 64
    times the median rule's gamma, learn from the same matrix products, and their probabilities are averaged with
    shares that follow Bayes' rule. Time and memory grow with the number of rows whose margin is small.

    Parameters
    ----------
    loss : str, default="smoothed-hinge"
        The paper's own, for which few rows become support points. ``"logistic"`` (multinomial with more than two
        classes), ``"hinge"``, ``"squared-hinge"``, ``"exponential"`` and ``"square"`` are possible too.
    kernel : {"rbf", "laplacian", "poly", "linear", "precomputed"} or callable, default="rbf"
        A callable takes two arrays of rows and returns the matrix of their kernel values.
    gamma : "ladder", "median" or float, default="ladder"
        ``"median"``: 1 / (2 m^2), m the median distance between rows of different classes; the ladder's are multiples
        of it. Of the polynomial kernel it is 1 unless given.
    degree, coef0 : int, default=3, and float, default=1.0
        Of the polynomial kernel, (gamma x.z + coef0)^degree.
    a : float, default=0.25
        The paper's, as in its experiments; its theory asks for at least 2.25 times the Lipschitz constant of the loss.
    b : float, optional
        The paper's. By default sqrt(2 a L t) after t rounds, the value of its experiments had they ended there.
    view : {"steady", "level", "centred", "raw"}, default="steady"
        How the kernel sees dense numbers: robustly scaled, each column or all alike, centred, or as they are. It is
        fixed by the first 1024 rows, which are learned all at once when they are complete.
    epochs : int, default=5
        Passes over the rows in ``fit``. In later ones support points have their coefficients changed; no theorem on
        new rows covers them.
    average : bool, default=True
        Predict with the average of the functions of the last pass instead of the last function.
    precision : {"single", "double"}, default="single"
        Of kernel values.
    max_support : int, optional
        Support points at most. Beyond them the functions go on in random Fourier features, about as many, in memory
        that no longer grows; a warning tells when. For the kernels rbf and laplacian.
    device : str, optional
        Where PyTorch computes sums over the support, ``"cuda"`` or ``"cpu"``; by default compiled code does.
    shuffle : bool, default=True
        Whether ``fit`` takes the rows in random order, new in each epoch.
    random_state : int, RandomState instance or None, default=0
        For the order. The default gives the same model each time; None draws from NumPy's global generator.
    class_weight : dict, "balanced" or None, default=None
        Weight of each class, by which its rows' sample weights are multiplied (1 for classes not named).
        ``"balanced"``, in ``fit`` only: inversely proportional to the classes' total weights.
    warm_start : bool, default=False
        Whether ``fit`` goes on from where the model stands.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels known, sorted.
    gamma_ : float
        gamma of the kernel, of which the ladder's are multiples.
    widths_ : list of dict
        Each width's ``gamma`` and ``share`` in predictions.
    n_support_ : int
        Rows that the model is made of.
    progressive_loss_ : float
        Mean loss of the rows, each predicted before it was learned: an honest estimate without a test set.
    t_, n_iter_ : int
        Rounds of learning so far; passes made by the latest ``fit``.
    n_features_in_ : int
        Features seen in ``fit``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where X has names that are all strings.

    References
    ----------
    .. [1] F. Orabona. Simultaneous model selection and optimization through parameter-free stochastic learning.
       NIPS 2014.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from tunefree import KernelPiSTOLClassifier
    >>> X, y = make_moons(400, noise=0.2, random_state=0)
    >>> model = KernelPiSTOLClassifier().fit(X[:300], y[:300])
    >>> model.score(X[300:], y[300:]) > 0.93
    True
    """

    def __init__(
        self,
        *,
        loss: str = "smoothed-hinge",
        kernel: Any = "rbf",
        gamma: Any = "ladder",
        degree: int = 3,
        coef0: float = 1.0,
        a: float = 0.25,
        b: Any = None,
        view: str = "steady",
        epochs: int = 5,
        average: bool = True,
        precision: str = "single",
        max_support: int | None = None,
        device: str | None = None,
        shuffle: bool = True,
        random_state: Any = 0,
        class_weight: Any = None,
        warm_start: bool = False,
    ) -> None:
        self.loss = loss
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.a = a
        self.b = b
        self.view = view
        self.epochs = epochs
        self.average = average
        self.precision = precision
        self.max_support = max_support
        self.device = device
        self.shuffle = shuffle
        self.random_state = random_state
        self.class_weight = class_weight
        self.warm_start = warm_start


class KernelPiSTOLRegressor(KernelEstimator, OnlineRegressorBase):
    """A kernel regressor with nothing to tune: PiSTOL, at every width.

    PiSTOL learns in the space of a kernel, row by row, with a guarantee against every function of that space that is
    as good as if its norm had been known [1]_. The widths of a ladder, from a quarter to 64 times the median rule's
    gamma, learn from the same matrix products, and their predictions are averaged with shares that follow their losses.

    Parameters
    ----------
    loss : str, default="absolute"
        ``"absolute"`` predicts the median, ``"square"`` the mean, ``"quantile:0.9"`` a quantile; also ``"power:1.5"``,
        ``"epsilon-insensitive:0.1"`` and ``"huber:1"``, with their parameters behind the colon. The theory is for
        losses with a Lipschitz constant, which the square has not.
    kernel : {"rbf", "laplacian", "poly", "linear", "precomputed"} or callable, default="rbf"
        A callable takes two arrays of rows and returns the matrix of their kernel values.
    gamma : "ladder", "median" or float, default="ladder"
        ``"median"``: 1 / (2 m^2), m the median distance between rows whose targets lie on different sides of their
        median; the ladder's are multiples of it. Of the polynomial kernel it is 1 unless given.
    degree, coef0 : int, default=3, and float, default=1.0
        Of the polynomial kernel, (gamma x.z + coef0)^degree.
    a : float, default=0.25
        The paper's, as in its experiments; its theory asks for at least 2.25 times the Lipschitz constant of the loss.
    b : float, optional
        The paper's, in units of the target's spread. By default sqrt(2 a L t) after t rounds.
    view : {"steady", "level", "centred", "raw"}, default="steady"
        How the kernel sees dense numbers: robustly scaled, each column or all alike, centred, or as they are. It is
        fixed by the first 1024 rows, which are learned all at once when they are complete.
    epochs : int, default=5
        Passes over the rows in ``fit``.
    average : bool, default=True
        Predict with the average of the functions of the last pass instead of the last function.
    precision : {"single", "double"}, default="single"
        Of kernel values.
    max_support : int, optional
        Support points at most. Beyond them the functions go on in random Fourier features, about as many, in memory
        that no longer grows; a warning tells when. For the kernels rbf and laplacian.
    device : str, optional
        Where PyTorch computes sums over the support, ``"cuda"`` or ``"cpu"``; by default compiled code does.
    shuffle : bool, default=True
        Whether ``fit`` takes the rows in random order, new in each epoch.
    random_state : int, RandomState instance or None, default=0
        For the order. The default gives the same model each time; None draws from NumPy's global generator.
    warm_start : bool, default=False
        Whether ``fit`` goes on from where the model stands.

    Attributes
    ----------
    gamma_ : float
        gamma of the kernel, of which the ladder's are multiples.
    widths_ : list of dict
        Each width's ``gamma`` and ``share`` in predictions.
    n_support_ : int
        Rows that the model is made of.
    progressive_loss_ : float
        Mean loss of the rows, each predicted before it was learned: an honest estimate without a test set.
    t_, n_iter_ : int
        Rounds of learning so far; passes made by the latest ``fit``.
    n_features_in_ : int
        Features seen in ``fit``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where X has names that are all strings.

    References
    ----------
    .. [1] F. Orabona. Simultaneous model selection and optimization through parameter-free stochastic learning.
       NIPS 2014.

    Examples
    --------
    >>> import numpy as np
    >>> from tunefree import KernelPiSTOLRegressor
    >>> X = np.linspace(-3, 3, 600)[:, None]
    >>> y = np.sin(2 * X[:, 0])
    >>> model = KernelPiSTOLRegressor().fit(X, y)
    >>> model.score(X, y) > 0.98
    True
    """

    def __init__(
        self,
        *,
        loss: str = "absolute",
        kernel: Any = "rbf",
        gamma: Any = "ladder",
        degree: int = 3,
        coef0: float = 1.0,
        a: float = 0.25,
        b: Any = None,
        view: str = "steady",
        epochs: int = 5,
        average: bool = True,
        precision: str = "single",
        max_support: int | None = None,
        device: str | None = None,
        shuffle: bool = True,
        random_state: Any = 0,
        warm_start: bool = False,
    ) -> None:
        self.loss = loss
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.a = a
        self.b = b
        self.view = view
        self.epochs = epochs
        self.average = average
        self.precision = precision
        self.max_support = max_support
        self.device = device
        self.shuffle = shuffle
        self.random_state = random_state
        self.warm_start = warm_start
