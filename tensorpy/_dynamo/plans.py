"""Plans of calls of compiled functions, for people: what ran together, what did not and why, what was asked for early.

A plan is what the region of one call told (csrc/plan/explain.c). Nothing is told where nobody asks.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tensorpy._dynamo._plan_svg import svg
from tensorpy._dynamo._plan_units import AtOnce, Flush, Unit, in_words

MOST_KEPT = 64


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
        return svg(str(self).partition("\n")[0], self.units, self.breaks)


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
