"""PyTorch's names for a device from outside: its one device "privateuse1" is here a backend that brings its own name
(docs/backends.md), whose tensor methods and module come with it.
"""

from __future__ import annotations

import sys
import types
from typing import Any

import tensorpy
from tensorpy import _C

__all__ = ["generate_methods_for_privateuse1_backend", "rename_privateuse1_backend"]

_chosen: str | None = None  # what programs mean by privateuse1
_given: dict[str, Any] = {}  # modules that programs registered


def rename_privateuse1_backend(backend_name: str) -> None:
    """Says which backend a program means: one that is loaded, or that an installed package names. Once a process.

    Arguments:
        backend_name: the name

    Example:
        >>> tp.utils.rename_privateuse1_backend("mine")  # doctest: +SKIP
    """
    global _chosen
    from tensorpy.backends._entry_points import find

    if _chosen not in (None, backend_name):
        raise RuntimeError(f"torch.register_privateuse1_backend() has already been set! Current backend: {_chosen}")
    if backend_name not in _C._outside_devices() and not find(backend_name):
        raise RuntimeError(
            f"no backend '{backend_name}' is loaded: tensorpy.backends.load(library), or an installed package that "
            "names it; a backend has its name from its library"
        )
    _chosen = backend_name


def privateuse1_backend_name() -> str:
    """The backend that was chosen, or else the first one that is loaded, or else PyTorch's word for none."""
    loaded = _C._outside_devices()
    return _chosen or (loaded[0] if loaded else "privateuseone")


def generate_methods_for_privateuse1_backend(
    for_tensor: bool = True,
    for_module: bool = True,
    for_packed_sequence: bool = True,
    for_storage: bool = False,
    unsupported_dtype: list[Any] | None = None,
) -> None:
    """`x.is_<name>`, `x.<name>()` of tensors and modules, which a backend has since it was loaded; also those of packed
    sequences.

    Arguments:
        for_tensor: whether Tensor gets them
        for_module: whether Module gets them
        for_packed_sequence: whether PackedSequence gets them
        for_storage: whether storages get them
        unsupported_dtype: dtypes that are refused

    Example:
        >>> tp.utils.generate_methods_for_privateuse1_backend()  # doctest: +SKIP
    """
    from tensorpy.backends._generated import add_names
    from tensorpy.nn.utils.rnn import PackedSequence

    name = privateuse1_backend_name()
    if name not in _C._outside_devices():
        raise RuntimeError("no backend is loaded whose methods could be made: tensorpy.backends.load(library)")
    add_names()
    if for_packed_sequence and not hasattr(PackedSequence, name):

        def to(self: Any, *args: Any, **kwargs: Any) -> Any:
            return self.to(name, *args, **kwargs)

        to.__name__, to.__doc__ = name, f"The sequences on the device {name}."
        setattr(PackedSequence, name, to)
        setattr(PackedSequence, f"is_{name}", property(lambda self: self.data.device.type == name))


def _register_device_module(device_type: str, module: types.ModuleType | Any) -> None:
    """A module of a program's own as `tensorpy.<device>`, in the place of the one that came with the backend."""
    kind = _C.device(device_type).type
    if kind not in _C._outside_devices() or kind in _given:
        there = getattr(tensorpy, kind, None)
        raise RuntimeError(f"The runtime module of '{kind}' has already been registered with '{there}'")
    _given[kind] = module
    generated = getattr(tensorpy, kind, None)
    for name, value in vars(generated).items() if generated is not None else ():
        if not name.startswith("__") and not hasattr(module, name):
            setattr(module, name, value)
    setattr(tensorpy, kind, module)
    sys.modules[f"tensorpy.{kind}"] = module
