"""Operators by their full names: `tensorpy.ops.aten.add.Tensor(a, b)`.

`ops.aten.add` is a packet of overloads; calling it resolves the overload as the plain function does.
"""

from __future__ import annotations

from typing import Any

from tensorpy import _C


class OpOverloadPacket:
    """All overloads of one operator name."""

    def __init__(self, name: str, overloads: list[str]) -> None:
        self.__name__ = name
        self._overloads = overloads

    def overloads(self) -> list[str]:
        """The overloads' names; "default" is the one without a name."""
        return [name or "default" for name in self._overloads]

    def __getattr__(self, overload: str) -> Any:
        name = "" if overload == "default" else overload
        if overload.startswith("__") or name not in self._overloads:
            raise AttributeError(f"operator '{self.__name__}' has no overload '{overload}'; it has {self.overloads()}")
        value = _C._op_overload(f"{self.__name__}.{name}" if name else self.__name__)
        setattr(self, overload, value)
        return value

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Tries the overloads in the order of the YAML; the error of a single one is its own."""
        if len(self._overloads) == 1:
            return getattr(self, self.overloads()[0])(*args, **kwargs)
        complaints = []
        for overload in self.overloads():
            try:
                return getattr(self, overload)(*args, **kwargs)
            except TypeError as error:
                complaints.append(f" * {overload}: {error}")
        raise TypeError(f"no overload of '{self.__name__}' takes these arguments:\n" + "\n".join(complaints))

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='aten.{self.__name__}')>"


class OpNamespace:
    """The operators of one library."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __getattr__(self, name: str) -> OpOverloadPacket:
        found = [full.partition(".")[2] for full in _C._operators() if full.partition(".")[0] == name]
        if not found:
            raise AttributeError(f"'{self.__name__}' has no operator '{name}'")
        packet = OpOverloadPacket(name, found)
        setattr(self, name, packet)
        return packet


aten = OpNamespace("aten")
