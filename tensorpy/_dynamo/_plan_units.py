"""What a plan is made of: units that ran, flushes, calls that did not wait."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


def in_words(count: int) -> str:
    """A number of bytes."""
    for unit, size in (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)):
        if count >= size:
            return f"{count / size:.3g} {unit}" if count < 1000 * size else f"{count // size} {unit}"
    return f"{count} bytes"


@dataclass(frozen=True)
class Unit:
    """Calls that ran as one.

    Arguments:
        kind: "group": block by block in the L1 cache; "tiles": some rows at a time in the L2 cache; "call": one call
        operators: the operators that the calls come from
        shape: of what the last call writes
        dtype: of the same
        moved: bytes that were read and written
        alone: bytes that the calls would have read and written one by one
        ends: why the next call is not in it
    """

    kind: str
    operators: tuple[str, ...]
    shape: tuple[int, ...] | None
    dtype: Any
    moved: int
    alone: int
    ends: str

    @property
    def elements(self) -> str:
        """`(256, 256) float32`; nothing where the shape is not known."""
        return "" if self.shape is None else f"{self.shape} {str(self.dtype).rpartition('.')[2]}"

    @property
    def moves(self) -> str:
        """`moves 2 MB instead of 7 MB; nothing follows`"""
        instead = "" if self.kind == "call" else f" instead of {in_words(self.alone)}"
        return f"moves {in_words(self.moved)}{instead}; {self.ends}"


@dataclass(frozen=True)
class Flush:
    """What was noted ran: before the function's end, where something asked for it.

    Arguments:
        why: what asked; None at the end
        operator: that was being called
        line: of the program, `file:line`; None at the end
        unstored: bytes of tensors that never got memory
        peak: the most bytes at a time of tensors that had memory and that nobody held
        again: bytes of saved values that were given up, to be computed again in backward
        after: how many of the plan's units had run before the next ones
    """

    why: str | None
    operator: str | None
    line: str | None
    unstored: int
    peak: int
    again: int
    after: int = 0

    @property
    def asked(self) -> str:
        """`memory is read or lent in _local_scalar_dense`"""
        return f"{self.why} in {self.operator}" if self.operator else f"{self.why}"


@dataclass(frozen=True)
class AtOnce:
    """A call that did not wait.

    Arguments:
        operator: that was called
        why: it did not wait
        line: of the program, `file:line`
    """

    operator: str
    why: str
    line: str
