"""How the estimators of the pool fit rows: the passes of each member, the batch phase, and whether kernels join."""

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
from tunefree.estimators.base import OnlineEstimator
from tunefree.estimators.fit_display import FitDisplay
from tunefree.losses import loss_of
from tunefree.model import additive_bank, batch_phase
from tunefree.model.kernel_bank import KernelConfig
from tunefree.model.members import Setting
from tunefree.model.mixture import predictive_shares, without
from tunefree.model.model import Model
from tunefree.model.pool import is_kernel, settings_of_members
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
FEWEST_FOR_KERNELS = 2**11  # rounds from which on kernels join by themselves: half of them fix the widths
MOST_FOR_KERNELS = 2**14  # rounds up to which they do: time grows with the square of their number
MOST_COEFFICIENTS = 2**23  # of rounds, outputs and kernels, up to which they do


class Pooled(OnlineEstimator):
    """What the two estimators share: they find the number of passes of each member."""

    learner: str
    epochs: Any
    passes_: list[int]
    kernel: Any
    max_support: Any
    device: str | None
    pairs: Any
    _display: FitDisplay  # while rows are fitted

    def _learner(self) -> tuple[str, dict[str, float]]:
        return "kernel-pool" if self._kernel_always else "pool", {}

    @property
    def _kernel_always(self) -> bool:
        """Whether kernels are in the pool whatever the rows."""
        return self.kernel != "auto" and bool(self.kernel)

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
        self._check_learner()
        if self.epochs != "auto":
            validation.whole(epochs=self.epochs)
        if self.max_support is not None:
            validation.whole(max_support=self.max_support)
        if self.kernel != "auto":
            validation.switches(kernel=self.kernel)
        validation.switches(shuffle=self.shuffle, warm_start=self.warm_start, verbose=self.verbose)
        loss_of(self._task, str(self.loss))

    def _check_learner(self) -> None:
        """Whether the learner is known, and all that is chosen has an effect with it."""
        return

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
        self._pass_in_random_order(X, y, weight)
        return
        again = self.t_ > 0
        few = np.count_nonzero(weight) < FEWEST
        if self.epochs != "auto" or again or few:
            passes = self.epochs if self.epochs != "auto" else 1 if again else FEW_PASSES
            self._fixed_epochs(X, y, weight, passes)
            self.passes_ = [self.n_iter_] * len(self._learned.model.members)
            return
        random = check_random_state(self.random_state)
        rounds = validation.spread(X, y, weight) if self.shuffle else validation.as_given(weight)
        has_batch_phase = not self._kernel_always and batch_phase.suits(self._learned.model)
        settings = self._settings(X, len(rounds.row), has_batch_phase)
        if has_batch_phase and len(rounds.row) >= max(MANY, X.shape[1]):  # of wider rows one pass leaves much to learn
            drawn = validation.shuffled(rounds, weight, random) if self.shuffle else rounds
            self._by_one_pass(X, y, drawn, random, settings)
        else:
            self._by_passes(X, y, weight, rounds, random, has_batch_phase, settings)

    def _pass_in_random_order(self, X: Any, y: np.ndarray, weight: np.ndarray) -> None:
        """One pass, in an order that is drawn by the seed, and its end."""
        rounds = validation.merged(X, y, weight) if self.shuffle else validation.as_given(weight)
        if self.shuffle:
            order = check_random_state(self.random_state).permutation(len(rounds.row))
            rounds = validation.Rounds(*(part[order] for part in rounds))
        self._pass(X, y, rounds, first=True)
        self._learned.model.freeze()
        self.n_iter_ = 1
        self.passes_ = [1] * len(self._learned.model.shares_by_member())

    def _settings(self, X: Any, n_rounds: int, has_batch_phase: bool) -> list[Setting]:
        """The members: those of the pool, and kernels where they join by themselves."""
        model = self._learned.model
        joins = self.kernel == "auto" and has_batch_phase and FEWEST_FOR_KERNELS <= n_rounds <= MOST_FOR_KERNELS
        if not joins or not additive_bank.suits(validation.block(X[:1], self._intercept())):
            return model.member_settings
        with_kernels = settings_of_members("kernel-pool", {}, "raw")
        coefficients = n_rounds * model.n_outputs * sum(map(_has_kernel, with_kernels))
        return with_kernels if coefficients <= MOST_COEFFICIENTS else model.member_settings

    def _by_one_pass(
        self, X: Any, y: np.ndarray, drawn: validation.Rounds, random: Any, settings: list[Setting]
    ) -> None:
        """Make one pass, or several of kernel members, and a batch phase; a tenth of the rounds stops these, before it
        is learned."""
        self._start(X, drawn, True, batch_phase.settings_before(settings))
        held, rest = validation.split(drawn, HELD_OUT)
        if any(map(_has_kernel, settings)):
            passes = self._search(X, y, rest, held, random, kernels_only=True).passes
        else:
            self._first_pass(X, y, rest)
            passes = [1] * len(self._learned.model.members)
        found = self._batch_phase(X, y, rest, held)
        passes = self._drop_idle_kernels(found, passes)
        self._pass(X, y, held, first=True)
        self._join(X, y, drawn, found, passes)

    def _start(
        self, X: Any, drawn: validation.Rounds, has_batch_phase: bool, settings: list[Setting], **more: Any
    ) -> None:
        """Begin with a model that has seen nothing, and that is judged by rows held out."""
        self._begin_again(batch_phase.blank(self._learned.model, settings, **more))
        if has_batch_phase:
            some = drawn.row[batch_phase.sampled(len(drawn.row))]
            batch_phase.prepare(self._learned.model, validation.block(X[some], self._intercept()), len(drawn.row))

    def _batch_phase(
        self, X: Any, y: np.ndarray, rest: validation.Rounds, held: validation.Rounds, predictions: Any = None
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

    def _drop_idle_kernels(self, found: batch_phase.Found, passes: list[int]) -> list[int]:
        """Go on without kernel members that do not pay; returns the passes of the others."""
        model = self._learned.model
        shares = dict(zip(map(repr, found.settings), predictive_shares(found.mixture).tolist(), strict=True))
        stays = np.array([_pays(setting, shares[repr(setting)]) for setting in model.member_settings])
        model.prune(~stays)
        return [number for number, kept in zip(passes, stays, strict=True) if kept]

    def _labelled(self, X: Any, y: np.ndarray, rounds: validation.Rounds) -> Iterator[batch_phase.Labelled]:
        """Blocks of rounds, with targets as objectives take them."""
        for place, block in super()._blocks(X, rounds):
            yield block, self._learned.model.targets(self._targets(y, rounds.row[place])), rounds.weight[place]

    def _by_passes(
        self,
        X: Any,
        y: np.ndarray,
        weight: np.ndarray,
        rounds: validation.Rounds,
        random: Any,
        has_batch_phase: bool,
        settings: list[Setting],
    ) -> None:
        """Find the number of passes of each member, and make as many over all rounds."""
        drawn = validation.shuffled(rounds, weight, random) if self.shuffle else rounds
        has_kernels = any(map(_has_kernel, settings))
        self._start(X, drawn, has_batch_phase, settings)
        model = self._learned.model
        one_of = HELD_OUT_OF_FEW if has_kernels and len(drawn.row) < MANY else HELD_OUT
        held, rest = validation.split(drawn, one_of)
        found = self._search(X, y, rest, held, random)
        phase = self._batch_phase(X, y, rest, held, found.predictions) if has_batch_phase else None
        member_settings = [
            setting
            for setting, share in zip(model.member_settings, predictive_shares(found.mixture), strict=True)
            if _pays(setting, share)
        ]
        self._start(X, drawn, has_batch_phase, member_settings, may_prune=not has_kernels)
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
        self, X: Any, y: np.ndarray, rest: validation.Rounds, held: validation.Rounds, random: Any, **search: bool
    ) -> Found:
        """Train the model on some rounds, looking at those held out; all members, or kernel members only, make more
        than one pass."""
        model = self._learned.model

        def learn_pass(number: int, members: list[int]) -> None:
            self._display.begins(f"search, pass {number} of at most {most}: {len(members)} members")
            if number == 1:
                self._first_pass(X, y, rest)
            else:
                order = random.permutation(len(rest.row)) if self.shuffle else np.arange(len(rest.row))
                self._replay(X, y, validation.Rounds(*(part[order] for part in rest)), model, members)
            told = f"{len(members)} members on {len(rest.row):,} rounds"
            self._display.say(f"search, pass {number} of at most {most}: {told}")

        most = int(np.clip(MOST_ROUNDS // len(rest.row), LEAST_PASSES, MOST_PASSES))
        rows = validation.block(X[held.row], self._intercept())
        return find_passes(model, learn_pass, rows, self._targets(y, held.row), held.weight, most, **search)

    def _first_pass(self, X: Any, y: np.ndarray, rest: validation.Rounds) -> None:
        """Learn all rounds but those held out; members learn what they kept back, too."""
        self._pass(X, y, rest, first=True)
        self._learned.model.freeze()

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
    return share >= LEAST_SHARE or not _has_kernel(setting)


def _has_kernel(setting: Setting) -> bool:
    return is_kernel(setting.learner)
