"""PiSTOL with kernels, in scikit-learn's manner."""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tunefree.estimators import validation
from tunefree.estimators.base import OnlineClassifierBase, OnlineEstimator
from tunefree.estimators.pistol import PRESETS, check_preset
from tunefree.estimators.regressor import OnlineRegressorBase
from tunefree.kernel import feature_expansion
from tunefree.kernel.kernels import is_ladder, kernel_of
from tunefree.losses import loss_of
from tunefree.model.kernel_bank import KernelConfig
from tunefree.theory.bounds import pistol_parameter
from tunefree.theory.kernel_certificates import KernelCertificate, certificate_of

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
        settings = {"a": pistol_parameter(), "b": 1.0} if self.preset == "theory" else {"a": 0.25 / lipschitz}
        given = {name: value for name, value in (("a", self.a), ("b", self.b)) if value is not None}
        settings |= {name: value / lipschitz for name, value in validation.positive(**given).items()}
        return "kernel-pistol", settings | ({} if self._has_ladder_of_widths() else {"width": 1.0})

    def _has_ladder_of_widths(self) -> bool:
        return isinstance(self.gamma, str) and self.gamma == "ladder" and is_ladder(kernel_of(self.kernel, 1.0))

    def _kernel_config(self) -> KernelConfig:
        gamma = 0.0 if self.gamma in GAMMAS else float(self.gamma)
        made = KernelConfig(self.kernel, gamma, self.degree, float(self.coef0), self.precision == "double", self.device)
        return made._replace(max_support=self.max_support)

    def _view(self) -> str:
        return "raw" if self.kernel == "precomputed" else self.view

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_preset(getattr(self, "preset", PRESETS[0]))
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

    def _passes(self, X: Any, y: np.ndarray, weight: np.ndarray) -> None:
        if self.kernel == "precomputed" and X.shape[0] != X.shape[1]:
            raise ValueError(
                f"Precomputed matrix must be a square matrix. Input is a {X.shape[0]}x{X.shape[1]} matrix."
            )
        super()._passes(self._placed(X, np.arange(len(y))), y, weight)

    def _prepared(self, X: Any) -> Any:
        return self._placed(X, np.full(X.shape[0], -1))

    def _placed(self, X: Any, places: np.ndarray) -> Any:
        """Rows of a matrix made beforehand know their place in it; other rows are as they are."""
        return np.column_stack([places, X]) if self.kernel == "precomputed" else X

    def _pass(self, X: Any, y: Any, rounds: validation.Rounds, *observers: Any) -> None:
        if self.kernel == "precomputed" and X.shape[1] == self.n_features_in_:
            raise ValueError(
                "partial_fit cannot learn from a precomputed matrix: its rows are of other rows than these"
            )
        super()._pass(X, y, rounds, *observers)

    @property
    def gamma_(self) -> float:
        """gamma of the kernel: the given one, or that of the median heuristic, multiples of which form the grid."""
        check_is_fitted(self)
        return self._learned.model.kernel_banks[0].gamma

    @property
    def n_support_(self) -> int:
        """Number of support points."""
        check_is_fitted(self)
        return self._learned.model.n_support

    @property
    def certificates_(self) -> list[KernelCertificate]:
        """For each bandwidth lower bounds on the loss of every function of its kernel's space, on the first pass.

        Rows learned after a second pass, or once functions have gone on in Fourier features, are not counted.
        """
        check_is_fitted(self)
        bank = self._learned.model.kernel_banks[0]
        found = [certificate_of(member, bank.gamma_of(member)) for member in bank.members]
        return [certificate for certificate in found if certificate is not None]

    @property
    def widths_(self) -> list[dict[str, float]]:
        """gamma of each bandwidth and its weight (share) in predictions."""
        check_is_fitted(self)
        model = self._learned.model
        rows = zip(model.members, model.shares_by_member().values(), strict=True)
        return [{"gamma": self.gamma_ * member.setting.settings["width"], "share": share} for member, share in rows]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.input_tags.sparse = isinstance(self.kernel, str) and self.kernel != "precomputed"
        return tags


class KernelPiSTOLClassifier(KernelEstimator, OnlineClassifierBase):
    """A kernel classifier with nothing to tune: PiSTOL with a grid of bandwidths.

    PiSTOL is an online learner in a reproducing kernel Hilbert space that adapts to the unknown norm of the best
    function [1]_, so no regularisation parameter C is needed. Learners with gamma from a quarter to 64 times that of
    the median heuristic share their matrix products, and their probabilities are averaged with Bayesian weights. Time
    and memory grow with the number of rows of small margin.

    The default is what the paper's experiments run and a little more: its ``a`` and ``b`` lie outside the conditions of
    its theorems, and there are five passes, of which the last is averaged. No theorem covers that. With
    ``preset="theory"`` each learner's predictions in the first pass have the regret bound of Theorem 1 against every
    function of its kernel's space, for losses with a Lipschitz constant: ``certificates_[i].theorem(norm)``. With
    ``passes=1`` the average of the pass is that of the paper. Errors are then larger (docs/results.md, *Presets*).
    Lower bounds on the loss of every function on the rows of the first pass hold for both presets: ``certificates_``.

    Parameters
    ----------
    loss : str, default="smoothed-hinge"
        The default is that of the paper, with which few rows become support points. The others are ``"logistic"``
        (multinomial with more than two classes), ``"hinge"``, ``"squared-hinge"``, ``"exponential"`` and ``"square"``.
    kernel : {"rbf", "laplacian", "poly", "linear", "precomputed"} or callable, default="rbf"
        A callable takes two arrays of rows and returns the matrix of their kernel values.
    gamma : "ladder", "median" or float, default="ladder"
        ``"median"``: 1 / (2 m^2), with m the median distance between rows of different classes. ``"ladder"``: multiples
        of it. For the polynomial kernel the default is 1.
    degree, coef0 : int, default=3, and float, default=1.0
        Parameters of the polynomial kernel (gamma x.z + coef0)^degree.
    preset : {"practice", "theory"}, default="practice"
        Values of ``a`` and ``b``. ``"practice"``: those of the paper's experiments, a = 0.25 and b = sqrt(2 a L t)
        after t rounds, L the Lipschitz constant of the loss. ``"theory"``: the ``a`` with the least bound of the
        theorem after 10,000 rounds against a function of norm 1, 3.09 L, and b = L.
    a : float, optional
        Parameter a of the paper, instead of the preset's; the theorem requires 2.25 L.
    b : float, optional
        Parameter b of the paper, instead of the preset's.
    view : {"steady", "level", "centred", "raw"}, default="steady"
        Transformation of dense numbers: robustly standardised by column (``"steady"``) or with a common scale
        (``"level"``), centred, or none. It is fixed after the first 1024 rows, which are buffered and then learned.
    passes : int, default=5
        Number of passes over the rows in ``fit``. Passes after the first change the coefficients of support points; the
        theorem covers the predictions of the first.
    average : bool, default=True
        Whether to predict with the average of the iterates of the last pass instead of the last iterate.
    precision : {"single", "double"}, default="single"
        Precision of kernel values.
    max_support : int, optional
        Maximum number of support points, for the kernels rbf and laplacian. Beyond it the functions continue in random
        Fourier features, with bounded memory and a warning.
    device : str, optional
        PyTorch device for the evaluation of kernels, ``"cuda"`` or ``"cpu"``; by default compiled code is used.
    shuffle : bool, default=True
        Whether ``fit`` shuffles the rows before each pass.
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
    categorical : array-like of str, int or bool, optional
        Columns that are one-hot encoded even if they hold numbers, by their names, by numbers from 0, or as a mask. In
        a table, strings, categories and booleans are encoded in any case.
    text : array-like of str, int or bool, optional
        Columns whose words become features, beside strings that are mostly different from each other and long or of
        several words; ``categorical`` takes a column away from these.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels known to the classifier, sorted.
    gamma_ : float
        gamma of the kernel, of which those of the grid are multiples.
    widths_ : list of dict
        ``gamma`` and weight (``share``) in predictions of each bandwidth.
    n_support_ : int
        Number of support points.
    certificates_ : list of tunefree.theory.KernelCertificate
        For each bandwidth lower bounds on the loss of every function of its kernel's space, on the rows of the first
        pass, and the regret bound of the paper's theorem where it covers ``a`` and ``b``.
    progressive_loss_ : float
        Progressive validation loss: the mean loss of the rows, each predicted before it is learned.
    t_, n_iter_ : int
        Number of rounds so far; number of passes of the latest ``fit``.
    n_features_in_ : int
        Number of features seen during ``fit``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features. Defined only when X has feature names that are all strings.

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
        preset: str = "practice",
        a: Any = None,
        b: Any = None,
        view: str = "steady",
        passes: int = 5,
        average: bool = True,
        precision: str = "single",
        max_support: int | None = None,
        device: str | None = None,
        shuffle: bool = True,
        n_jobs: int | None = -1,
        random_state: Any = 0,
        class_weight: Any = None,
        warm_start: bool = False,
        categorical: Any = None,
        text: Any = None,
    ) -> None:
        self.loss = loss
        self.kernel, self.gamma = kernel, gamma
        self.degree, self.coef0 = degree, coef0
        self.preset = preset
        self.a, self.b = a, b
        self.view = view
        self.passes = passes
        self.average = average
        self.precision = precision
        self.max_support, self.device = max_support, device
        self.shuffle = shuffle
        self.n_jobs, self.random_state = n_jobs, random_state
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.categorical, self.text = categorical, text


class KernelPiSTOLRegressor(KernelEstimator, OnlineRegressorBase):
    """A kernel regressor with nothing to tune: PiSTOL with a grid of bandwidths.

    PiSTOL is an online learner in a reproducing kernel Hilbert space that adapts to the unknown norm of the best
    function [1]_. Learners with gamma from a quarter to 64 times that of the median heuristic share their matrix
    products, and their predictions are averaged with exponential weights. The paper's theorem covers no preset: it does
    not allow for stakes that follow the spread of the targets. ``certificates_`` has lower bounds on the loss of every
    function.

    Parameters
    ----------
    loss : str, default="absolute"
        ``"absolute"`` predicts the median, ``"square"`` the mean, ``"quantile:0.9"`` a quantile; also
        ``"absolute-power:1.5"``, ``"epsilon-insensitive:0.1"`` and ``"huber:1"``, with the parameter after the colon.
    kernel : {"rbf", "laplacian", "poly", "linear", "precomputed"} or callable, default="rbf"
        A callable takes two arrays of rows and returns the matrix of their kernel values.
    gamma : "ladder", "median" or float, default="ladder"
        ``"median"``: 1 / (2 m^2), with m the median distance between rows whose targets lie on different sides of their
        median. ``"ladder"``: multiples of it. For the polynomial kernel the default is 1.
    degree, coef0 : int, default=3, and float, default=1.0
        Parameters of the polynomial kernel (gamma x.z + coef0)^degree.
    preset : {"practice", "theory"}, default="practice"
        Values of ``a`` and ``b``. ``"practice"``: those of the paper's experiments, a = 0.25 and b = sqrt(2 a L t)
        after t rounds, L the Lipschitz constant of the loss. ``"theory"``: the ``a`` with the least bound of the
        theorem after 10,000 rounds against a function of norm 1, 3.09 L, and b = L.
    a : float, optional
        Parameter a of the paper, instead of the preset's; the theorem requires 2.25 L.
    b : float, optional
        Parameter b of the paper, in units of the target's mean absolute deviation, instead of the preset's.
    view : {"steady", "level", "centred", "raw"}, default="steady"
        Transformation of dense numbers: robustly standardised by column (``"steady"``) or with a common scale
        (``"level"``), centred, or none. It is fixed after the first 1024 rows, which are buffered and then learned.
    passes : int, default=5
        Number of passes over the rows in ``fit``.
    average : bool, default=True
        Whether to predict with the average of the iterates of the last pass instead of the last iterate.
    precision : {"single", "double"}, default="single"
        Precision of kernel values.
    max_support : int, optional
        Maximum number of support points, for the kernels rbf and laplacian. Beyond it the functions continue in random
        Fourier features, with bounded memory and a warning.
    device : str, optional
        PyTorch device for the evaluation of kernels, ``"cuda"`` or ``"cpu"``; by default compiled code is used.
    shuffle : bool, default=True
        Whether ``fit`` shuffles the rows before each pass.
    n_jobs : int, default=-1
        Threads that work at once, by scikit-learn's rules: -1 for as many as there are processors, None for one. The
        model does not depend on it.
    random_state : int, RandomState instance or None, default=0
        Controls the order of the rows. The default gives reproducible results; None uses NumPy's global generator.
    warm_start : bool, default=False
        Whether ``fit`` continues from the present model instead of starting again.
    categorical : array-like of str, int or bool, optional
        Columns that are one-hot encoded even if they hold numbers, by their names, by numbers from 0, or as a mask. In
        a table, strings, categories and booleans are encoded in any case.
    text : array-like of str, int or bool, optional
        Columns whose words become features, beside strings that are mostly different from each other and long or of
        several words; ``categorical`` takes a column away from these.

    Attributes
    ----------
    gamma_ : float
        gamma of the kernel, of which those of the grid are multiples.
    widths_ : list of dict
        ``gamma`` and weight (``share``) in predictions of each bandwidth.
    n_support_ : int
        Number of support points.
    certificates_ : list of tunefree.theory.KernelCertificate
        For each bandwidth lower bounds on the loss of every function of its kernel's space, on the rows of the first
        pass, and the regret bound of the paper's theorem where it covers ``a`` and ``b``.
    progressive_loss_ : float
        Progressive validation loss: the mean loss of the rows, each predicted before it is learned.
    t_, n_iter_ : int
        Number of rounds so far; number of passes of the latest ``fit``.
    n_features_in_ : int
        Number of features seen during ``fit``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features. Defined only when X has feature names that are all strings.

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
        preset: str = "practice",
        a: Any = None,
        b: Any = None,
        view: str = "steady",
        passes: int = 5,
        average: bool = True,
        precision: str = "single",
        max_support: int | None = None,
        device: str | None = None,
        shuffle: bool = True,
        n_jobs: int | None = -1,
        random_state: Any = 0,
        warm_start: bool = False,
        categorical: Any = None,
        text: Any = None,
    ) -> None:
        self.loss = loss
        self.kernel, self.gamma = kernel, gamma
        self.degree, self.coef0 = degree, coef0
        self.preset = preset
        self.a, self.b = a, b
        self.view = view
        self.passes = passes
        self.average = average
        self.precision = precision
        self.max_support, self.device = max_support, device
        self.shuffle = shuffle
        self.n_jobs, self.random_state = n_jobs, random_state
        self.warm_start = warm_start
        self.categorical, self.text = categorical, text
