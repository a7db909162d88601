"""Sums over a support by PyTorch, on a GPU or on the processor.

The device keeps a copy of the points and coefficients. Sums are computed in two parts. For thousands of rows at a time,
enough to keep a device busy, the sums over the present support are computed by large matrix products, ahead of
learning. The rows are then learned a block at a time, and for each block sums over the points that have changed
meanwhile, which are few, are added. Learning itself handles single numbers, and stays on the processor.

Matrix products have the full precision of single precision. They never use a format with fewer digits. Sums of tiles
are added up in double precision.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch

from tunefree.core.errors import ModelError
from tunefree.papers.kernel.backend import Backend, ExpansionTerms, IncomingRows
from tunefree.papers.kernel.gaussian import Gaussian
from tunefree.papers.kernel.kernel_sums import TINY, rungs_of
from tunefree.papers.kernel.laplacian import Laplacian
from tunefree.papers.kernel.points import BLOCK, DensePoints

AHEAD = 8192  # rows whose sums are computed before they are learned
PAIRS = 2**26  # kernel values of a tile
UNIT = 1024  # points of tiles and of room are multiples of it: loads are widest where rows of numbers begin evenly
WIDEST = 4096  # features of sparse rows that are laid out as dense ones
LAID_OUT = 8192  # points laid out at a time
REMEDY = "learn with fewer support points or with random Fourier features, or leave the device out"


class Rows(NamedTuple):
    """Points on the device."""

    values: Any  # (n, d) tensor
    norms: Any  # (n,) tensor


class Support:
    """Points on the device and the coefficients of functions, with spare capacity.

    Parameters
    ----------
    device : torch.device
    dtype : torch.dtype
    shape : (int, int)
        How many functions and outputs there are.
    """

    def __init__(self, device: Any, dtype: Any, shape: tuple[int, int]) -> None:
        self.n = 0
        self.points = Rows(*(torch.zeros(empty, dtype=dtype, device=device) for empty in ((0, 0), (0,))))
        self.coefficients = torch.zeros((*shape, 0), dtype=dtype, device=device)  # (M, K, room)

    @property
    def width(self) -> int:
        return self.points.values.shape[1]

    def make_room(self, n: int, width: int) -> None:
        """Reserve capacity for n points with so many features."""
        before, width = len(self.points.norms), max(width, self.width)
        if n <= before and width == self.width:
            return
        values, norms, coefficients = *self.points, self.coefficients
        room = self._room(before if n <= before else n, width)
        grown = Rows(values.new_zeros((room, width)), norms.new_zeros(room))
        grown.values[: self.n, : self.width] = values[: self.n]
        grown.norms[: self.n] = norms[: self.n]
        self.coefficients = coefficients.new_zeros((*coefficients.shape[:2], room))
        self.coefficients[:, :, : self.n] = coefficients[:, :, : self.n]
        self.points = grown

    def _room(self, n: int, width: int) -> int:
        """Twice what is there, or what memory lasts for."""
        values, norms, coefficients = *self.points, self.coefficients
        number, free = values.element_size(), free_memory(values.device)
        of_point = (width + 1 + math.prod(coefficients.shape[:2])) * number
        n = -(-n // UNIT) * UNIT
        for room in (max(n, 2 * len(norms)), n):
            if room * of_point + 2 * PAIRS * number <= free:
                return room
        gigabytes = (n * of_point + 2 * PAIRS * number) / 1e9
        raise ModelError(
            f"{n} support points of {width} features take {gigabytes:.1f} GB more on device {values.device}, of which"
            f" {free / 1e9:.1f} are free; {REMEDY}"
        )

    def extend(self, rows: Rows) -> None:
        """Put points behind those that are there; their coefficients are 0."""
        n, width = len(rows.norms), rows.values.shape[1]
        self.make_room(self.n + n, width)
        self.points.values[self.n : self.n + n, :width] = rows.values
        self.points.norms[self.n : self.n + n] = rows.norms
        self.n += n

    def sums(self, kernel: Any, steps: np.ndarray, rows: Rows, coefficients: Any) -> Any:
        """Sums (R, M, K) over the points, in double precision."""
        total = torch.zeros((len(rows.norms), *coefficients.shape[:2]), dtype=torch.float64, device=rows.norms.device)
        if len(rows.norms) > 0 and len(steps) > 0:
            width = max(PAIRS // len(rows.norms) // UNIT, 1) * UNIT
            with full_precision():
                for start in range(0, self.n, width):
                    here = slice(start, min(start + width, self.n))
                    tile = Rows(self.points.values[here], self.points.norms[here])
                    total += sums_of_tile(kernel, steps, rows, tile, coefficients[:, :, here])
        return total


class Ahead(NamedTuple):
    """Rows that are learned next, and their sums over the support as it was before any of them was learned."""

    points: Any  # those that they come from
    start: int  # of the first of them
    rows: Rows
    sums: Any  # (R, M, K) float64 tensor
    since: Support  # rows of blocks closed since, with what came to their coefficients


class TorchBackend(Backend):
    """Sums by PyTorch; see :class:`tunefree.papers.kernel.backend.Backend`.

    Parameters
    ----------
    device : str
        ``"cpu"``, ``"cuda"``, or ``"cuda:1"`` and so on.
    ahead : int
        For how many rows sums are computed at a time, at most.
    """

    def __init__(self, device: str, ahead: int = AHEAD) -> None:
        self.device, self.ahead = usable(device), max(ahead, BLOCK)
        self.invalidate()

    def invalidate(self) -> None:
        self._support: Support | None = None  # a copy of the expansion's
        self._stale: Any = ...  # places of coefficients that have changed since; at first all
        self._ahead: Ahead | None = None
        self._read: tuple[Any, Any] = (None, None)  # coefficients for predicting, there and here

    def sums(self, expansion: ExpansionTerms, incoming: IncomingRows) -> np.ndarray:
        first, last = incoming.rows
        start, stop = incoming.start, incoming.start + last - first
        seen = self._ahead
        fits = seen is not None and seen.points is incoming.points
        if seen is None or not (fits and seen.start <= start and stop <= seen.start + len(seen.rows.norms)):
            seen = self._ahead = self._sums_ahead(expansion, incoming)
        here = slice(start - seen.start, stop - seen.start)
        rows = Rows(seen.rows.values[here], seen.rows.norms[here])
        changes = seen.since.sums(expansion.kernel, expansion.steps, rows, seen.since.coefficients)
        n_functions, n_outputs = seen.sums.shape[1:]
        sums = np.zeros((n_functions, BLOCK, n_outputs))
        sums[:, first:last] = (seen.sums[here] + changes).permute(1, 0, 2).cpu().numpy()
        return sums

    def _sums_ahead(self, expansion: ExpansionTerms, incoming: IncomingRows) -> Ahead:
        """Compute the sums of the next rows over the present support."""
        stop = min(incoming.start + self.ahead, incoming.points.size)
        points = incoming.points.cut(incoming.start, stop)
        width = max(width_of(points), width_of(incoming.block.cut(0, BLOCK)))
        support = self._support_of(expansion, width)
        places = slice(0, expansion.n) if self._stale is ... else np.array(sorted(set(self._stale)), np.int64)
        support.coefficients[:, :, self._index(places)] = self._tensor(expansion.coefficients[:, :, places], support)
        self._stale = []
        rows = self._rows(points, support.width)
        sums = support.sums(expansion.kernel, expansion.steps, rows, support.coefficients)
        since = Support(self.device, rows.norms.dtype, expansion.coefficients.shape[:2])
        since.make_room(stop - incoming.start + BLOCK, support.width)
        return Ahead(incoming.points, incoming.start, rows, sums, since)

    def support_changed(self, block: Any, active: np.ndarray, places: np.ndarray, coefficients: np.ndarray) -> None:
        if self._stale is not ...:
            self._stale.extend(places.tolist())
        if self._ahead is not None and len(active) > 0:
            since = self._ahead.since
            values, norms = laid_out(block, since.width)[active], block.norms[active]
            since.extend(Rows(self._tensor(values, since), self._tensor(norms, since)))
            added = self._tensor(coefficients[:, :, active], since)
            since.coefficients[:, :, since.n - len(active) : since.n] = added

    def values(self, expansion: ExpansionTerms, rows: Any) -> np.ndarray:
        support = self._support_of(expansion, 0)
        if self._read[0] is not expansion.coefficients:
            coefficients = expansion.coefficients[:, :, : expansion.n]
            self._read = (expansion.coefficients, self._tensor(coefficients, support))
        n_functions, n_outputs, _ = expansion.coefficients.shape
        values = np.zeros((n_functions, rows.size, n_outputs))
        for start in range(0, rows.size, self.ahead):
            here = slice(start, min(start + self.ahead, rows.size))
            those = self._rows(rows.cut(here.start, here.stop), support.width)
            sums = support.sums(expansion.kernel, expansion.steps, those, self._read[1])
            values[:, here] = sums.permute(1, 0, 2).cpu().numpy()
        return values

    def _support_of(self, expansion: ExpansionTerms, width: int) -> Support:
        """The copy of the support, with all its points and capacity for features."""
        if self._support is None:
            dtype = torch.float64 if expansion.store.norms.dtype == np.float64 else torch.float32
            self._support = Support(self.device, dtype, expansion.coefficients.shape[:2])
        support = self._support
        width = max(width, width_of(expansion.store.cut(support.n, expansion.n)))
        support.make_room(expansion.n, width)
        for start in range(support.n, expansion.n, LAID_OUT):
            new = expansion.store.cut(start, min(start + LAID_OUT, expansion.n))
            support.extend(self._rows(new, support.width))
        return support

    def _rows(self, points: Any, width: int) -> Rows:
        values, norms = laid_out(points, width), points.norms
        return Rows(*(torch.tensor(array, device=self.device) for array in (values, norms)))

    def _tensor(self, array: np.ndarray, like: Support) -> Any:
        return torch.tensor(array, dtype=like.coefficients.dtype, device=self.device)

    def _index(self, places: Any) -> Any:
        return places if isinstance(places, slice) else torch.tensor(places, dtype=torch.int64, device=self.device)


def usable(name: str) -> Any:
    """The device of that name.

    Raises
    ------
    ModelError
        If there is none, or PyTorch does not reach it.
    """
    try:
        device = torch.device(name)
    except RuntimeError:
        device = None
    if device is None or device.type not in ("cpu", "cuda"):
        raise ModelError(f"unknown device {name!r}; choose 'cuda', 'cuda:1' and so on, 'cpu', or leave the device out")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        reason = f"PyTorch finds {torch.cuda.device_count()} NVIDIA devices" if torch.version.cuda else ""
        raise ModelError(
            f"there is no device {name!r}: {reason or 'this PyTorch was built for the processor only'}; install a"
            " PyTorch and a driver that know it, or leave the device out"
        )
    return device


def free_memory(device: Any) -> float:
    """Free bytes of a GPU's memory; infinite for the processor."""
    if device.type != "cuda":
        return math.inf
    free, _ = torch.cuda.mem_get_info(device)
    return free + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)


@contextmanager
def full_precision() -> Iterator[None]:
    """Compute matrix products in full single precision, whatever PyTorch is set to elsewhere."""
    settings = (torch.backends.cuda.matmul, torch.backends.mkldnn.matmul)
    before = [setting.fp32_precision for setting in settings]
    try:
        for setting in settings:
            setting.fp32_precision = "ieee"
        yield
    finally:
        for setting, precision in zip(settings, before, strict=True):
            setting.fp32_precision = precision


def narrow(width: int) -> int:
    """The number of features of sparse rows, if they may be laid out as dense ones."""
    if width > WIDEST:
        raise ModelError(
            f"sparse rows of more than {WIDEST} features do not fit a device; leave the device out, or make them fewer"
        )
    return width


def width_of(points: Any) -> int:
    """How many features points have as dense rows.

    That of sparse ones is rounded up, so that features that are new seldom ask for more capacity.
    """
    if isinstance(points, DensePoints):
        return points.values.shape[1]
    first, last = points.pointers[0], points.pointers[-1]
    return narrow(-(-(1 + int(points.features[first:last].max(initial=0))) // 64) * 64)


def laid_out(points: Any, width: int) -> np.ndarray:
    """Points as dense rows (n, width); features beyond are left out, with which no point of the support has any."""
    if isinstance(points, DensePoints):
        return points.values
    dense = np.zeros((points.size, width), points.values.dtype)
    here = slice(points.pointers[0], points.pointers[-1])
    owner = np.repeat(np.arange(points.size), np.diff(points.pointers))
    known = points.features[here] < width
    dense[owner[known], points.features[here][known]] = points.values[here][known]
    return dense


def sums_of_tile(kernel: Any, steps: np.ndarray, rows: Rows, tile: Rows, coefficients: Any) -> Any:
    """Sums (R, M, K) of kernel values of rows and points times coefficients (M, K, n)."""
    is_fused = isinstance(kernel, Gaussian | Laplacian) and rows.values.dtype == torch.float32
    fused = fused_kernels(rows.values.device) if is_fused else None
    if fused is not None:
        of_products = isinstance(kernel, Gaussian)
        values = rows.values, tile.values
        numbers = values[0] @ values[1].T if of_products else fused.absolute_distances(*values)
        norms = (rows.norms, tile.norms) if of_products else None
        rungs = [torch.tensor(part.astype(np.int32), device=rows.values.device) for part in rungs_of(steps)]
        return fused.ladder_sums(rungs, numbers, norms, kernel.gamma, coefficients)
    values = kernel.torch_similarity(rows, tile)
    sums = values.new_zeros((len(values), *coefficients.shape[:2]))
    order, starts = (part.tolist() for part in rungs_of(steps))
    for first, stop in pairwise(starts):
        for m in order[first:stop]:
            sums[:, m] = values @ coefficients[m].T
        if stop < len(order):
            values = torch.nn.functional.threshold_(values, TINY, 0.0).square_()
    return sums


@cache
def fused_kernels(device: Any) -> Any:
    """The module of kernels for the device, or None where PyTorch's own operations have to do."""
    if device.type != "cuda":
        return None
    try:
        from tunefree.papers.kernel import fused

        one = torch.ones((1, 1), device=device)
        rungs = [torch.tensor(part, dtype=torch.int32, device=device) for part in ([0], [0, 1])]
        total = fused.ladder_sums(rungs, fused.absolute_distances(one, one), None, 1.0, one[None])
        return fused if total.item() == 1.0 else None
    except Exception:  # no Triton, or none for this device, or no C compiler that it needs: each another class
        return None
