"""get_kernel: what an operator runs at a key, as an object that stays callable when another kernel takes its place."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tensorpy import _C
from tensorpy._library.registration import known_key


def _word(keys: Any) -> int:
    """A set of keys as kernels get it: a number, a key's name, or several names."""
    if isinstance(keys, int):
        return keys
    if not isinstance(keys, (str, Iterable)):
        raise TypeError(f"call_boxed: the first argument is a set of dispatch keys, not {type(keys).__name__}")
    names = [keys] if isinstance(keys, str) else list(keys)
    if not all(isinstance(name, str) for name in names):
        raise TypeError(
            "call_boxed: the first argument is a set of dispatch keys, as a kernel with its key set gets it"
        )
    word = 0
    for name in map(known_key, names):
        word |= 0 if name is None else _C._KEYS.get(name, 0)
    return word


class SafeKernelFunction:
    """A kernel of an operator, as get_kernel gives it.

    Example:
        >>> kernel = tp.library.get_kernel("aten::neg", "CPU")
        >>> kernel.call_boxed(tp.dispatch.keys(tp.ones(2)), tp.ones(2))
        tensor([-1., -1.])
    """

    _op: Any
    _key: str
    _held: Any

    def __init__(self, *_: Any) -> None:
        raise TypeError("SafeKernelFunction: get_kernel makes them")

    @classmethod
    def _of(cls, op: Any, key: str, held: Any) -> SafeKernelFunction:
        made = cls.__new__(cls)
        made._op, made._key, made._held = op, key, held
        return made

    @property
    def op_handle(self) -> Any:
        """The operator whose kernel it is.

        Returns: its overload.
        """
        return self._op

    def call_boxed(self, keyset: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Calls the kernel, below all layers: `keyset` is what a kernel that was registered `with_keyset` gets.

        Returns: what the kernel gives.

        Raises: TypeError for a first argument that is no set of keys.
        """
        return self._held.call(_word(keyset), *args, **kwargs)

    def __repr__(self) -> str:
        return f"SafeKernelFunction({self._op._name}, {self._key})"


def get_kernel(op: Any, dispatch_key: str) -> SafeKernelFunction:
    """What an operator runs at a dispatch key now: its own kernel, or that of an alias key. It stays what it is when
    another kernel is registered there, so that the other can call it for what it leaves.

    Arguments:
        op: an overload, or its name, 'aten::add.Tensor'
        dispatch_key: 'CPU', 'AutogradCPU', ...; no alias key

    Returns: a SafeKernelFunction.

    Raises: ValueError for what is no operator or no key, RuntimeError where there is no such operator, or no kernel.

    Example:
        >>> before = tp.library.get_kernel("aten::neg", "CPU")
        >>> def kernel(keyset, x):
        ...     return before.call_boxed(keyset, x) * 2
        >>> lib = tp.library.Library("aten", "IMPL")
        >>> lib.impl("neg", kernel, "CPU", with_keyset=True)
        >>> tp.neg(tp.ones(2))
        tensor([-2., -2.])
        >>> lib._destroy()
    """
    if not isinstance(op, (str, _C.OpOverload)):
        raise ValueError(f"get_kernel: an operator is an overload or its name, not {type(op).__name__}")
    if isinstance(op, str):
        if "::" not in op or op.removeprefix("aten::") not in _C._operators():
            raise RuntimeError(f"get_kernel: operator {op} does not exist")
        op = _C._op_overload(op)
    if dispatch_key in _C._ALIAS_KEYS:
        raise RuntimeError(f"get_kernel: the alias key {dispatch_key} stands for several keys, and runs nothing")
    key = known_key(dispatch_key)
    if key is not None and key not in (*_C._KEYS, "Undefined"):
        raise ValueError(f"get_kernel: there is no dispatch key {dispatch_key!r}")
    held = None if key is None else _C._hold_kernel(op, key)
    if held is None:
        raise RuntimeError(f"get_kernel: no kernel for {dispatch_key} for {op._name}")
    return SafeKernelFunction._of(op, dispatch_key, held)
