"""Operators by their full names: `tensorpy.ops.aten.add.Tensor(a, b)`.

`ops.aten.add` is a packet of overloads; calling it resolves the overload as the plain function does.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from tensorpy import _C


class OpOverloadPacket(_C._OpPacket):  # type: ignore[misc]
    """All overloads of one operator name.

    Example:
        >>> tp.ops.aten.add.Tensor(tp.ones(2), tp.ones(2))
        tensor([2., 2.])
    """

    def __init__(self, name: str, overloads: list[str]) -> None:
        self._own_name = name  # with its namespace where that is not aten
        self.__name__ = name.rpartition("::")[2]
        self.__module__ = f"{type(self).__module__.partition('.')[0]}._ops.{name.rpartition('::')[0] or 'aten'}"
        self._overloads = overloads
        if len(overloads) == 1:
            self._set_single(getattr(self, self.overloads()[0]))

    def overloads(self) -> list[str]:
        """The overloads' names; "default" is the one without a name."""
        return [name or "default" for name in self._overloads]

    def __getattr__(self, overload: str) -> Any:
        name = "" if overload == "default" else overload
        if overload.startswith("__") or name not in self._overloads:
            raise AttributeError(f"operator '{self._own_name}' has no overload '{overload}'; it has {self.overloads()}")
        value = _C._op_overload(f"{self._own_name}.{name}" if name else self._own_name)
        setattr(self, overload, value)
        return value

    @property
    def op(self) -> OpOverloadPacket:
        """What a call of it calls: itself."""
        return self

    @property
    def _schema(self) -> str:
        """The schema of the one overload, or those of all, each on a line."""
        return "\n".join(getattr(self, overload)._schema for overload in self.overloads())

    def redispatch(self, *args: Any, **kwargs: Any) -> Any:
        """Redispatches the overload without a name: see OpOverload.redispatch.

        Returns: what the kernel gives.
        """
        return self.default.redispatch(*args, **kwargs)

    def _resolve(self, /, *args: Any, **kwargs: Any) -> Any:
        """What a call does: tries the overloads in the order of the YAML; a single one is called at once (ops.c)."""
        complaints = []
        for overload in self.overloads():
            try:
                return getattr(self, overload)(*args, **kwargs)
            except RuntimeError as error:
                if not hasattr(error, "_fits_no_overload"):
                    raise
                complaints.append(f" * {overload}: {error}")
        raise RuntimeError(f"no overload of '{self._own_name}' takes these arguments:\n" + "\n".join(complaints))

    @property
    def _qualified_op_name(self) -> str:
        """The name with its namespace: "aten::add"."""
        return self._own_name if "::" in self._own_name else f"aten::{self._own_name}"

    def __copy__(self) -> OpOverloadPacket:
        return self

    def __deepcopy__(self, memo: Any) -> OpOverloadPacket:
        return self

    def __repr__(self) -> str:
        space, _, name = self._own_name.rpartition("::")
        return f"<OpOverloadPacket(op='{space or 'aten'}.{name}')>"

    def __str__(self) -> str:
        return self._qualified_op_name.replace("::", ".")


class OpNamespace:
    """The operators of one library.

    Arguments:
        name: the name

    Example:
        >>> tp.ops.aten.add.Tensor(tp.ones(2), tp.ones(2))
        tensor([2., 2.])
    """

    def __init__(self, name: str) -> None:
        self.__name__ = name
        self._prefix = "" if name == "aten" else f"{name}::"

    def _names(self) -> list[str]:
        """Full names without the namespace: "add.Tensor"."""
        names = _C._operators()
        if self._prefix:
            return [name.removeprefix(self._prefix) for name in names if name.startswith(self._prefix)]
        return [name for name in names if "::" not in name]

    def __getattr__(self, name: str) -> OpOverloadPacket:
        found = [full.partition(".")[2] for full in self._names() if full.partition(".")[0] == name]
        if not found:
            raise AttributeError(f"'{self.__name__}' has no operator '{name}'")
        packet = OpOverloadPacket(self._prefix + name, found)
        setattr(self, name, packet)
        return packet

    def __dir__(self) -> list[str]:
        own = (name for name in vars(self) if not name.startswith("_"))
        return sorted({*(full.partition(".")[0] for full in self._names()), *own})

    def __repr__(self) -> str:
        return f"<OpNamespace '{self.__name__}'>"


class _HigherOrder(OpNamespace):
    """The operators that take functions: those of control flow, and those that programs make."""

    def __init__(self) -> None:
        from tensorpy._higher_order_ops import operators
        from tensorpy._higher_order_ops.higher_order import operators as made

        super().__init__("higher_order")
        self._made: dict[str, Any] = made
        assert operators.OPERATORS.keys() <= made.keys()

    def __getattr__(self, name: str) -> Any:
        return self._made[name] if name in self._made else super().__getattr__(name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._made})


aten: OpNamespace = OpNamespace("aten")


def _forget(name: str) -> None:
    """An overload was declared ("myops::scale.by"): its packet is made anew."""
    space, _, rest = name.partition("::")
    vars(globals().get(space, aten)).pop(rest.partition(".")[0], None)


def _find(name: str) -> Any:
    """The operator of a full name, for pickles."""
    return _C._op_overload(name)


def __getattr__(name: str) -> OpNamespace:
    """The operators of a library: tensorpy.ops.myops."""
    if name.startswith("__"):
        raise AttributeError(f"module 'tensorpy.ops' has no attribute '{name}'")
    if name == "c10d_functional":  # the older namespace, by whose names CommDebugMode counts
        space = globals()[name] = __getattr__("_c10d_functional")
        return space
    space = globals()[name] = _HigherOrder() if name == "higher_order" else OpNamespace(name)
    if name == "quantized":  # loaded here: few programs quantize
        from tensorpy.ao.nn.quantized import (
            arithmetic,
            packed,
            packed_conv,
            packed_conv_transpose,
            packed_embedding,
            single,
        )

        for module in (arithmetic, packed, packed_conv, packed_conv_transpose, packed_embedding, single):
            vars(space).update((operator, getattr(module, operator)) for operator in module.__all__)
    return space


def __dir__() -> list[str]:
    return sorted(
        {"aten", "higher_order", "quantized", *(name.partition("::")[0] for name in _C._operators() if "::" in name)}
    )


loaded_libraries: set[str] = set()
_methods: dict[str, list[str]] = {}  # that a library adds to Tensor, by its path


def _add_methods(path: str) -> None:
    """Those of a library that was just loaded; it is taken out again if Tensor has one of a name already."""
    names = list(dict.fromkeys(name.partition(".")[0] for name in _C._library_methods(path)))
    for name in names:
        method = name.partition("::")[2]
        if hasattr(_C.Tensor, method):
            unload_library(path)
            raise RuntimeError(f"{name} is a method, and Tensor has one of the name '{method}' already")
        setattr(_C.Tensor, method, _method_of(name, method))
        _methods.setdefault(path, []).append(method)


def _method_of(name: str, method: str) -> Any:
    space, _, operator = name.partition("::")

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(namespace, operator)(self, *args, **kwargs)

    namespace = globals().get(space) or __getattr__(space)
    call.__name__, call.__qualname__ = method, f"Tensor.{method}"
    call.__doc__ = f"tensorpy.ops.{space}.{operator} of this tensor."
    return call


_OF_PYTORCH = os.fspath(Path(__file__).resolve().parent / "lib" / "libtorch")  # how their paths begin


def load_library(path: str | os.PathLike[str]) -> None:
    """Loads a shared object of operators, kernels or devices (docs/extending); all of it is there then, or nothing.

    One that is loaded already is left as it is. OSError if it cannot be opened. For one of PyTorch's own,
    which programs look for beside its package (`lib/libtorch_cpu.so`), there is nothing to load.

    Arguments:
        path: the library's path

    Example:
        >>> tp.ops.load_library("mine.so")  # doctest: +SKIP
    """
    full = os.fspath(Path(path).resolve())
    if full.startswith(_OF_PYTORCH) and not os.path.exists(full):
        return
    try:
        names = _C._load_library(full)
    except RuntimeError as error:
        raise (OSError(str(error)) if "cannot be opened" in str(error) else error) from None
    for name in names:
        _forget(name)
    if full not in loaded_libraries:
        _add_methods(full)
    if library := sys.modules.get("tensorpy.library"):
        for name in names:
            library.declared(name)
    loaded_libraries.add(full)
    if _C._outside_devices():
        from tensorpy.backends._generated import add_names

        add_names()


def unload_library(path: str | os.PathLike[str]) -> None:
    """Takes out what a library declared and registered: its operators end with an error then. Devices stay.

    Arguments:
        path: the library's path

    Example:
        >>> tp.ops.unload_library("mine.so")  # doctest: +SKIP
    """
    full = os.fspath(Path(path).resolve())
    for name in _C._unload_library(full):
        _forget(name)
    loaded_libraries.discard(full)
    for method in _methods.pop(full, ()):
        delattr(_C.Tensor, method)
