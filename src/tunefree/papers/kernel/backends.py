"""The backend of a device: compiled code on the processor, or PyTorch."""

from __future__ import annotations

from importlib.util import find_spec

from tunefree.core.errors import ModelError
from tunefree.papers.kernel.backend import Backend


def backend_of(device: str | None) -> Backend:
    """The backend of a device: compiled code on the processor for None, PyTorch for ``"cuda:1"`` or ``"cpu"``.

    Raises
    ------
    ModelError
        If PyTorch is not installed, or knows no such device.

    Examples
    --------
    >>> backend_of(None)  # doctest: +ELLIPSIS
    <tunefree.papers.kernel.backend.Backend object at ...>
    """
    if device is None:
        return Backend()
    check_device(device)
    from tunefree.papers.kernel.torch_backend import TorchBackend

    return TorchBackend(device)


def check_device(device: str | None) -> None:
    """Raise a ModelError unless there is such a device, and PyTorch to reach it."""
    if device is None:
        return
    if find_spec("torch") is None:
        raise ModelError(
            f"device {device!r} needs PyTorch, which is not installed; run pip install 'tunefree[torch]', or leave"
            " the device out"
        )
    from tunefree.papers.kernel.torch_backend import usable

    usable(device)


def at_hand(device: str | None) -> str | None:
    """The device if this machine has it, else None, so that a model can be used on a machine without its device.

    Examples
    --------
    >>> at_hand("abacus")
    """
    try:
        check_device(device)
    except ModelError:
        return None
    return device
