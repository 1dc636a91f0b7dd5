"""A version that compares with strings, tuples and versions by its numbers."""

from __future__ import annotations

import re
from typing import Any


def _key(version: Any) -> tuple[int, ...]:
    """The numbers that a version begins with: "2.13.0+cpu" and (2, 13) alike."""
    if isinstance(version, tuple):
        return tuple(int(part) for part in version)
    found = re.match(r"\d+(\.\d+)*", str(version))
    if found is None:
        raise ValueError(f"not a version: {version!r}")
    return tuple(int(part) for part in found.group().split("."))


class TorchVersion(str):
    """A version as a str, whose order is that of its numbers: `TorchVersion("2.13.0") >= (2, 2)`.

    Example:
        >>> tp.torch_version.TorchVersion("2.13.0") > "2.9"
        True
    """

    __slots__ = ()

    def _compare(self, other: Any) -> int:
        mine, theirs = _key(self), _key(other)
        length = max(len(mine), len(theirs))
        mine, theirs = (v + (0,) * (length - len(v)) for v in (mine, theirs))
        return (mine > theirs) - (mine < theirs)

    def __lt__(self, other: Any) -> bool:
        return self._compare(other) < 0

    def __le__(self, other: Any) -> bool:
        return self._compare(other) <= 0

    def __gt__(self, other: Any) -> bool:
        return self._compare(other) > 0

    def __ge__(self, other: Any) -> bool:
        return self._compare(other) >= 0

    def __eq__(self, other: Any) -> bool:
        try:
            return self._compare(other) == 0
        except (TypeError, ValueError):
            return str.__eq__(self, other)

    def __ne__(self, other: Any) -> bool:
        return not self == other

    __hash__: Any = str.__hash__
