"""Regularised stochastic gradient descent in a kernel's space, in scikit-learn's manner."""

from __future__ import annotations

import math
from typing import Any

from sklearn.utils.validation import check_is_fitted

from tunefree.estimators import validation
from tunefree.estimators.base import OnlineClassifierBase
from tunefree.estimators.kernel import KernelEstimator
from tunefree.kernel.regularized_sgd import BY_THEOREM, LEAST_OFFSET, TUNED
from tunefree.model.pool import FOLLOW_THE_LEADER

OFFSETS = {"auto": BY_THEOREM, "tuned": TUNED}


class KernelSGDClassifier(KernelEstimator, OnlineClassifierBase):
    """Regularised SGD with kernels, with exponential convergence of the classification error under low noise.

    Stochastic gradient descent on the loss plus (lambda / 2) ||f||^2 in a kernel's space, with rates
    2 / (lambda (gamma + t)) and a weighted average of the iterates: Algorithm 1 of [1]_. In one pass over independent
    rows, its expected classification error converges exponentially fast to that of the Bayes rule, under the conditions
    of [1]_: class probabilities are bounded away from 1/2, and lambda is small enough. Several values of lambda share
    their kernel values; the one with the least progressive loss predicts.

    Parameters
    ----------
    loss : str, default="logistic"
        ``"logistic"`` is multinomial with more than two classes. The others are one-against-all: ``"smoothed-hinge"``,
        ``"squared-hinge"``, ``"exponential"``, ``"square"``, ``"hinge"``.
    penalty : "ladder" or float, default="ladder"
        lambda. ``"ladder"``: 0.1, 0.01, 0.001 and 0.0001, as in the paper's experiments.
    offset : {"auto", "tuned"} or float, default="auto"
        gamma of the rates, at least 3. ``"auto"`` is the least that the theorems allow: the first rate is then about
        1 / (H k(x, x)), with H the smoothness of the loss. ``"tuned"`` selects one of seven first rates for each
        lambda, by the progressive loss on the first 1000 rows; so does ``"auto"`` for the hinge loss, which is not
        smooth.
    radius : float, optional
        Radius of the ball onto which f is projected after each step. By default there is no projection for losses with
        bounded slopes. For the others the radius is sqrt(2 / lambda), an upper bound on the norm of a minimiser, and at
        most 3 / sqrt(max k(x, x)) for the exponential loss.
    kernel : {"rbf", "laplacian", "poly", "linear", "precomputed"} or callable, default="rbf"
        A callable takes two arrays of rows and returns the matrix of their kernel values.
    gamma : "median", "ladder" or float, default="median"
        gamma of the kernel. ``"median"``: 1 / (2 m^2), with m the median distance between rows of different classes.
        ``"ladder"``: that times powers of two from a quarter to 64, each with every lambda; the pair with the least
        progressive loss predicts. For the polynomial kernel the default is 1.
    degree, coef0 : int, default=3, and float, default=1.0
        Parameters of the polynomial kernel (gamma x.z + coef0)^degree.
    view : {"steady", "level", "centred", "raw"}, default="steady"
        Transformation of dense numbers: robustly standardised by column (``"steady"``) or with a common scale
        (``"level"``), centred, or none. It is fixed after the first 1024 rows, which are buffered and then learned.
    passes : int, default=5
        Number of passes over the rows in ``fit``. The theorems hold for one pass; further passes approach the minimum
        of the regularised empirical risk. lambda is selected by the first pass.
    average : bool, default=True
        Whether to predict with the average of the iterates of the last pass, weighted by gamma + t - 1, instead of the
        last iterate.
    precision : {"single", "double"}, default="single"
        Precision of kernel values.
    device : str, optional
        PyTorch device for the evaluation of kernels, ``"cuda"`` or ``"cpu"``; by default compiled code is used.
    max_support : int, optional
        Maximum number of support points, for the kernels rbf and laplacian. Beyond it the functions continue in random
        Fourier features, with bounded memory and a warning.
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
    penalty_, offset_ : float
        lambda and gamma of the function that predicts.
    penalties_ : list of dict
        What was chosen from: each lambda, as ``penalty``, with its ``gamma`` and ``offset``, and its mean progressive
        ``loss``.
    gamma_ : float
        gamma of the kernel of the function that predicts.
    n_support_ : int
        Rows that the model is made of: with the logistic loss, all.
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
    .. [1] A. Nitanda, T. Suzuki. Stochastic gradient descent with exponential convergence rates of expected
       classification errors. AISTATS 2019.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from tunefree import KernelSGDClassifier
    >>> X, y = make_moons(400, noise=0.2, random_state=0)
    >>> model = KernelSGDClassifier(gamma="ladder").fit(X[:300], y[:300])
    >>> model.score(X[300:], y[300:]) > 0.93
    True
    """

    def __init__(
        self,
        *,
        loss: str = "logistic",
        penalty: Any = "ladder",
        offset: Any = "auto",
        radius: Any = None,
        kernel: Any = "rbf",
        gamma: Any = "median",
        degree: int = 3,
        coef0: float = 1.0,
        view: str = "steady",
        passes: int = 5,
        average: bool = True,
        precision: str = "single",
        device: str | None = None,
        max_support: int | None = None,
        shuffle: bool = True,
        n_jobs: int | None = -1,
        random_state: Any = 0,
        class_weight: Any = None,
        warm_start: bool = False,
        categorical: Any = None,
        text: Any = None,
    ) -> None:
        self.loss = loss
        self.penalty, self.offset, self.radius = penalty, offset, radius
        self.kernel = kernel
        self.gamma = gamma
        self.degree, self.coef0 = degree, coef0
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

    def _learner(self) -> tuple[str, dict[str, float]]:
        settings = {} if self._has_ladder() else validation.positive(penalty=self.penalty)
        if not self._has_ladder_of_widths():
            settings["width"] = 1.0
        if isinstance(self.offset, str):
            if self.offset not in OFFSETS:
                raise ValueError(f"offset must be 'auto', 'tuned' or a number from 3 on, not {self.offset!r}")
            settings["offset"] = OFFSETS[self.offset]
        else:
            settings |= validation.positive(offset=self.offset)
            if settings["offset"] < LEAST_OFFSET:
                raise ValueError(f"offset must be at least {LEAST_OFFSET:g}, not {self.offset!r}")
        return FOLLOW_THE_LEADER, settings | ({} if self.radius is None else validation.positive(radius=self.radius))

    def _has_ladder(self) -> bool:
        if isinstance(self.penalty, str) and self.penalty != "ladder":
            raise ValueError(f"penalty must be 'ladder' or a number above 0, not {self.penalty!r}")
        return isinstance(self.penalty, str)

    def _leader(self) -> int:
        return self._learned.model.leader

    @property
    def penalty_(self) -> float:
        """lambda of the function that predicts."""
        check_is_fitted(self)
        return float(self._learned.model.members[self._leader()].setting.settings["penalty"])

    @property
    def offset_(self) -> float:
        """gamma in the rates of the function that predicts; not a number before the first 1024 rows of a stream."""
        return float(self.penalties_[self._leader()]["offset"])

    @property
    def penalties_(self) -> list[dict[str, float]]:
        """What was chosen from: each lambda, its gamma and offset, and its mean progressive loss."""
        check_is_fitted(self)
        found = []
        for member in self._learned.model.members:
            state, offset = member.state, member.state.settings["offset"]
            weight = state.counted_weight[0]
            loss = float(state.counted_loss[0] / weight) if weight > 0.0 else math.nan
            offset = offset if offset >= LEAST_OFFSET else math.nan
            penalty, gamma = member.setting.settings["penalty"], self._gamma_of(member)
            found.append({"penalty": float(penalty), "gamma": gamma, "offset": offset, "loss": loss})
        return found

    def _gamma_of(self, member: Any) -> float:
        return float(self._learned.model.kernel_banks[0].gamma * member.setting.settings["width"])

    @property
    def gamma_(self) -> float:
        """gamma of the kernel of the function that predicts."""
        check_is_fitted(self)
        return self._gamma_of(self._learned.model.members[self._leader()])
