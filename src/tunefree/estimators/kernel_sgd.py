"""Regularised stochastic gradient descent in a kernel's space, in scikit-learn's manner."""

from __future__ import annotations

import math
from typing import Any

from sklearn.utils.validation import check_is_fitted

from tunefree.estimators import validation
from tunefree.estimators.base import OnlineClassifierBase
from tunefree.estimators.kernel import KernelEstimator
from tunefree.kernel.kernels import LADDERS
from tunefree.kernel.sgd import BY_THEOREM, LEAST_OFFSET, TUNED
from tunefree.model.mixture import leader
from tunefree.model.pool import FOLLOW_THE_LEADER

OFFSETS = {"auto": BY_THEOREM, "tuned": TUNED}


class KernelSGDClassifier(KernelEstimator, OnlineClassifierBase):
    """A kernel classifier whose classification error falls exponentially where labels are far from a coin's toss.

    Stochastic gradient descent on the loss plus (lambda / 2) ||f||^2 in a kernel's space, with rates
    2 / (lambda (gamma + t)) and a weighted average of the functions: Algorithm 1 of [1]_. In one pass over fresh rows
    its expected classification error approaches the best possible one exponentially fast, if the probability of a class
    is nowhere near 1/2. Of several lambda, which learn from the same kernel values, the one with the least progressive
    loss predicts.

    Parameters
    ----------
    loss : str, default="logistic"
        Multinomial with more than two classes. Others learn each class against the others: ``"smoothed-hinge"``,
        ``"squared-hinge"``, ``"exponential"``, ``"square"``, ``"hinge"``.
    penalty : "ladder" or float, default="ladder"
        lambda. The ladder is 0.1, 0.01, 0.001 and 0.0001, as in the paper's experiments.
    offset : {"auto", "tuned"} or float, default="auto"
        gamma of the rates, at least 3. ``"auto"`` is the least that the theorems allow: the first rate is then about
        1 / (H k(x, x)), H the smoothness of the loss. ``"tuned"`` tries seven first rates on the first 1000 rows and
        takes the one with the least progressive loss, for each lambda; so does ``"auto"`` for the hinge, which is not
        smooth.
    radius : float, optional
        Of the ball onto which f is projected after each step. By default there is none for losses whose slopes are
        bounded, and sqrt(2 / lambda) for the others, beyond which no minimiser lies; at most 3 / sqrt(max k(x, x)) for
        the exponential loss.
    kernel : {"rbf", "laplacian", "poly", "linear", "precomputed"} or callable, default="rbf"
        A callable takes two arrays of rows and returns the matrix of their kernel values.
    gamma : "median", "ladder" or float, default="median"
        Of the kernel. ``"median"``: 1 / (2 m^2), m the median distance between rows of different classes.
        ``"ladder"``: that times powers of two from a quarter to 64, each with every lambda, of which one is chosen as
        lambda is. Of the polynomial kernel it is 1 unless given.
    degree, coef0 : int, default=3, and float, default=1.0
        Of the polynomial kernel, (gamma x.z + coef0)^degree.
    view : {"steady", "level", "centred", "raw"}, default="steady"
        How the kernel sees dense numbers: robustly scaled, each column or all alike, centred, or as they are. It is
        fixed by the first 1024 rows, which are learned all at once when they are complete.
    epochs : int, default=5
        Passes over the rows in ``fit``. The theorems are of one pass; later ones approach the regularised minimum on
        these rows. lambda is chosen by the first pass.
    average : bool, default=True
        Predict with the average of the functions of the last pass, each weighted by gamma + t - 1, instead of the last
        function.
    precision : {"single", "double"}, default="single"
        Of kernel values.
    device : str, optional
        Where PyTorch computes sums over the support, ``"cuda"`` or ``"cpu"``; by default compiled code does.
    max_support : int, optional
        Support points at most. Beyond them the functions go on in random Fourier features, about as many, in memory
        that no longer grows; a warning tells when. For the kernels rbf and laplacian.
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
        Mean loss of the rows, each predicted before it was learned.
    t_, n_iter_ : int
        Rounds of learning so far; passes made by the latest ``fit``.
    n_features_in_ : int
        Features seen in ``fit``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where X has names that are all strings.

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
        epochs: int = 5,
        average: bool = True,
        precision: str = "single",
        device: str | None = None,
        max_support: int | None = None,
        shuffle: bool = True,
        random_state: Any = 0,
        class_weight: Any = None,
        warm_start: bool = False,
    ) -> None:
        self.loss = loss
        self.penalty = penalty
        self.offset = offset
        self.radius = radius
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.view = view
        self.epochs = epochs
        self.average = average
        self.precision = precision
        self.device = device
        self.max_support = max_support
        self.shuffle = shuffle
        self.random_state = random_state
        self.class_weight = class_weight
        self.warm_start = warm_start

    def _learner(self) -> tuple[str, dict[str, float]]:
        settings = {} if self._has_ladder() else validation.positive(penalty=self.penalty)
        if self.gamma != "ladder" or self.kernel not in LADDERS:
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
        return leader(self._learned.model.mixture)

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
            record, offset = member.record, member.state.offset
            loss = float(record.loss[()] / record.weight[()]) if record.weight[()] > 0.0 else math.nan
            offset = float(offset) if offset >= LEAST_OFFSET else math.nan
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
