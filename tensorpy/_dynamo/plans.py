"""Plans of calls of compiled functions, for people: what ran together, what did not and why, what was asked for early.

A plan is what the region of one call told (csrc/plan/explain.c). Nothing is told where nobody asks.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tensorpy._dynamo._plan_svg import in_words, svg

MOST_KEPT = 64


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


@dataclass
class Plan:
    """What became of a call.

    Arguments:
        units: in the order in which they ran
        flushes: in their order, the function's end among them
        at_once: the calls that did not wait

    Example:
        >>> plan = tp.compiler.explain(lambda x: x * 2 + 1)(tp.ones(512, 512))
        >>> plan.calls, len(plan.groups), plan.units[0].shape
        (2, 1, (512, 512))
    """

    units: list[Unit] = field(default_factory=list)
    flushes: list[Flush] = field(default_factory=list)
    at_once: list[AtOnce] = field(default_factory=list)

    @property
    def groups(self) -> list[Unit]:
        return [unit for unit in self.units if unit.kind != "call"]

    @property
    def calls(self) -> int:
        return sum(len(unit.operators) for unit in self.units)

    @property
    def unstored(self) -> int:
        return sum(flush.unstored for flush in self.flushes)

    @property
    def peak(self) -> int:
        return max((flush.peak for flush in self.flushes), default=0)

    @property
    def again(self) -> int:
        return sum(flush.again for flush in self.flushes)

    @property
    def breaks(self) -> list[Flush]:
        """The flushes before the function's end."""
        return [flush for flush in self.flushes if flush.why is not None]

    def __str__(self) -> str:
        groups = sum(unit.kind == "group" for unit in self.units)
        tiles = sum(unit.kind == "tiles" for unit in self.units)
        lines = [
            f"{_count(self.calls, 'call')} -> {len(self.units)} ({_count(groups, 'group')}, "
            f"{_count(tiles, 'run')} of tiles), {_count(len(self.breaks), 'flush')} before the end",
            f"intermediates: {in_words(self.unstored)} never in memory, {in_words(self.peak)} at a time",
        ]
        if self.again:
            lines.append(f"saved values: {in_words(self.again)} given up, to be computed again in backward")
        for number, unit in enumerate(self.units, 1):
            parts = (f"{unit.kind} {number}", ", ".join(unit.operators), unit.elements, unit.moves)
            lines.append("  ".join(part for part in parts if part))
        for flush in self.breaks:
            lines.append(f"flush  {flush.asked}  {flush.line}")
        for (operator, why, line), count in Counter((a.operator, a.why, a.line) for a in self.at_once).items():
            times = f", {count} times" if count > 1 else ""
            lines.append(f"at once  {operator}: {why}{times}  {line}")
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_svg_(self) -> str:
        """The picture that a notebook shows."""
        return svg(self)


def _count(number: int, thing: str) -> str:
    plural = thing + ("es" if thing.endswith("sh") else "s")
    return f"{number} {thing if number == 1 else plural}"


def plan_of(rows: list[Any]) -> Plan:
    """The plan that a region's rows tell."""
    plan = Plan()
    for kind, operators, sizes, dtype, moved, alone, unstored, peak, again, why, line in rows:
        if kind == "flush":
            asked = operators[0] if operators else None
            plan.flushes.append(Flush(why, asked, line, unstored, peak, again, len(plan.units)))
        elif kind == "at once":
            plan.at_once.append(AtOnce(operators[0], why, line))
        else:
            plan.units.append(Unit(kind, operators, sizes, dtype, moved, alone, why))
    return plan


def explained(compiled: Any) -> Callable[..., Plan]:
    """A function that calls a compiled one, and gives the plan of the call, which the compiled one keeps."""

    @functools.wraps(compiled)
    def call(*args: Any, **kwargs: Any) -> Plan:
        rows: list[Any] = []
        compiled._tell(rows)
        try:
            compiled(*args, **kwargs)
        finally:
            compiled._tell(None)
        plan = plan_of(rows)
        kept = compiled.__dict__.setdefault("_plans", [])
        if plan not in kept:
            kept.append(plan)
        del kept[:-MOST_KEPT]
        return plan

    return call


__all__ = ["AtOnce", "Flush", "Plan", "Unit", "explained", "plan_of"]
