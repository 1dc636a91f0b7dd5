"""What a device has and what it lacks: tensorpy.backends.report("mirror")."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field

from tensorpy import _C, dispatch


@dataclass(frozen=True)
class Step:
    """Primitives to write together, the operators that the device then computes itself, and their calls so far."""

    primitives: list[str]
    operators: list[str] = field(repr=False)
    calls: int


@dataclass(frozen=True)
class Report:
    """Primitives that a device has and lacks, operators by what computes them, and the calls that the CPU has computed.

    `saves` has, for each missing primitive that is the last one some operators lack, those operators. `next` is the one
    of them that most calls so far were waiting for, and where there were none, the most operators. `steps` has what to
    write in which order: each step is what takes the most off the CPU by each primitive that it asks for.
    """

    device: str
    there: list[str]
    missing: list[str]
    own: list[str] = field(repr=False)  # operators with a kernel of the device's own
    made: list[str] = field(repr=False)  # made of its primitives, or of other operators
    on_host: list[str] = field(repr=False)
    host_calls: dict[str, int]
    saves: dict[str, list[str]] = field(repr=False)
    steps: list[Step] = field(repr=False)

    def calls_saved(self, primitive: str) -> int:
        """How many of the CPU's calls so far the device would have done itself with one primitive more."""
        return sum(self.host_calls.get(name, 0) for name in self.saves.get(primitive, ()))

    @property
    def next(self) -> str | None:
        """The primitive to write next; None where no single one helps."""
        return max(self.saves, key=lambda p: (self.calls_saved(p), len(self.saves[p])), default=None)

    def __str__(self) -> str:
        total = len(self.there) + len(self.missing)
        lines = [
            f"{self.device}: {len(self.there)} of {total} primitives; of its operators {len(self.own)} have a kernel "
            f"of its own, {len(self.made)} are made of what it has, {len(self.on_host)} are computed by the CPU",
            *_wrapped("there: ", self.there),
            *_wrapped("missing: ", self.missing),
            f"computed by the CPU so far: {sum(self.host_calls.values())} calls",
        ]
        busiest = sorted(self.host_calls.items(), key=lambda item: -item[1])[:20]
        lines += [f"  {count:>8}  {name}" for name, count in busiest]
        if self.next is not None:
            lines.append(
                f"next: {self.next} takes {len(self.saves[self.next])} operators off the CPU, and "
                f"{self.calls_saved(self.next)} of these calls"
            )
        return "\n".join([*lines, *self.advice()])

    def advice(self, most: int = 8) -> list[str]:
        """Lines that say what to write, the first steps."""
        if not self.steps:
            return []
        return [
            "what to write, by what it takes off the CPU:",
            *(
                f"  {len(step.operators):>4} operators, {step.calls} calls: {', '.join(step.primitives)}"
                for step in self.steps[:most]
            ),
        ]


def _wrapped(title: str, names: list[str]) -> list[str]:
    return textwrap.wrap(title + (", ".join(names) or "none"), 118, subsequent_indent="  ", break_on_hyphens=False)


def make(device: str) -> Report:
    """The report of a device type, "opencl" or one from outside."""
    key = dispatch.backend_key(device)
    entries = {name: {e.key: e for e in dispatch.table(name)} for name in dispatch.operators()}
    optional = {p for p in dispatch.primitives() if dispatch.is_optional(p)}
    there = {p for p in dispatch.primitives() if any(e.key == key and e.kind != "fallback" for e in dispatch.table(p))}
    own: list[str] = []
    made: list[str] = []
    on_host: list[str] = []
    saves: dict[str, list[str]] = {}
    lacking: dict[str, frozenset[str]] = {}  # of the operators that primitives would take off the CPU
    for name, of in entries.items():
        entry = of.get(key)
        if entry is None or "CPU" not in of:  # operators of layouts take parts, whose devices do not matter
            continue
        if entry.kind == "fallback":
            on_host.append(name)
            if of["CPU"].registered_as == "Dense":
                lacking[name] = frozenset(dispatch.needs(name)) - there - optional
                if len(lacking[name]) == 1:
                    (last,) = lacking[name]
                    saves.setdefault(last, []).append(name)
        else:
            (own if entry.registered_as == key else made).append(name)
    missing = [p for p in dispatch.primitives() if p not in there | optional]
    calls = _C._host_calls(device)
    return Report(device, sorted(there), missing, own, made, on_host, calls, saves, _steps(lacking, calls))


def _steps(lacking: dict[str, frozenset[str]], calls: dict[str, int]) -> list[Step]:
    """Greedy: the set that some operator lacks which brings the most calls, and then operators, per primitive."""
    steps = []
    left = {name: wanted for name, wanted in lacking.items() if wanted}
    while left:
        best: tuple[tuple[float, float], list[str], list[str]] = ((-1.0, -1.0), [], [])
        for wanted in sorted(set(left.values()), key=sorted):
            done = [name for name in left if left[name] <= wanted]
            value = sum(calls.get(n, 0) for n in done) / len(wanted), len(done) / len(wanted)
            if value > best[0]:
                best = value, sorted(wanted), done
        _, primitives, done = best
        steps.append(Step(primitives, done, sum(calls.get(n, 0) for n in done)))
        left = {name: wanted - set(primitives) for name, wanted in left.items() if name not in done}
    return steps
