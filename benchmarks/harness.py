"""Measures cases side by side: tensorpy, NumPy and torch in one process, interleaved, medians and ratios.

A case names what it measures and gives one callable per library; libraries that are missing are left out. Each round
times every library once, so that a slow moment of the machine hits all of them; the median over rounds is reported.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

Call = Callable[[], object]
# With several threads, seconds before each library's turn: for the threads of the library before to fall asleep
# (OpenBLAS's spin for some 25 ms, on a CPU of the next one), and for the own ones to be spread over the CPUs.
PAUSE, WARMING = 0.04, 0.06
# What a table calls each thing that is measured; in this order.
TITLES = {
    "tensorpy": "tensorpy",
    "numpy": "NumPy",
    "torch": "torch",
    "eager": "not compiled",
    "compiled": "torch.compile",
    "jax": "jax.jit",
    "gcc": "gcc's loop",
    "openblas": "OpenBLAS from C",
    "cpu": "tensorpy's CPU",
    "plain": "plain OpenCL",
    "copy": "driver's copy",
    "loop": "loop in Python",
    "padded": "the same, padded",
    "float32": "the same in float32",
    "clblast": "CLBlast",
}


@dataclass(frozen=True)
class Case:
    """`bars`: the largest allowed ratio of tensorpy's time to a library's; "best" is the better of NumPy and torch.
    `over`: the most seconds that tensorpy may take over another's.
    """

    name: str
    calls: dict[str, Call]
    bars: dict[str, float] = field(default_factory=dict)
    family: str = ""
    over: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    case: Case
    threads: int
    seconds: dict[str, float]

    def ratio(self, library: str) -> float | None:
        """tensorpy's time over the library's."""
        if library == "best":
            others = [t for name, t in self.seconds.items() if name in ("numpy", "torch")]
            return self.seconds["tensorpy"] / min(others) if others else None
        return self.seconds["tensorpy"] / self.seconds[library] if library in self.seconds else None

    @property
    def verdicts(self) -> list[tuple[str, float, float]]:
        """(library, ratio, bar) for each bar that could be measured."""
        return [(name, ratio, bar) for name, bar in self.case.bars.items() if (ratio := self.ratio(name)) is not None]

    @property
    def overs(self) -> list[tuple[str, float, float]]:
        """(library, seconds over it, the most that is allowed)."""
        spent = self.seconds["tensorpy"]
        return [(name, spent - self.seconds[name], bar) for name, bar in self.case.over.items() if name in self.seconds]

    @property
    def missed(self) -> bool:
        return any(found > bar for _, found, bar in self.verdicts + self.overs)


def _repeats(call: Call, target: float) -> int:
    """How many calls take about `target` seconds; the first one, which finds nothing warm, does not count."""
    call()
    n = 1
    while True:
        start = time.perf_counter()
        for _ in range(n):
            call()
        spent = time.perf_counter() - start
        if spent > target / 4 or n > 10**7:
            return max(1, int(n * target / max(spent, 1e-9)))
        n *= 4


def _time(call: Call, n: int) -> float:
    start = time.perf_counter()
    for _ in range(n):
        call()
    return (time.perf_counter() - start) / n


def _change_to(call: Call) -> None:
    time.sleep(PAUSE)
    start = time.perf_counter()
    while time.perf_counter() - start < WARMING:
        call()


def measure(case: Case, threads: int, rounds: int = 15, target: float = 0.02) -> Outcome:
    repeats = {name: _repeats(call, target) for name, call in case.calls.items()}
    samples: dict[str, list[float]] = {name: [] for name in case.calls}
    for _ in range(rounds):
        for name, call in case.calls.items():
            if threads > 1:
                _change_to(call)
            samples[name].append(_time(call, repeats[name]))
    return Outcome(case, threads, {name: statistics.median(values) for name, values in samples.items()})


def unit(seconds: float) -> str:
    for scale, name in ((1, "s"), (1e-3, "ms"), (1e-6, "us")):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {name}"
    return f"{seconds * 1e9:.3g} ns"


def table(outcomes: Sequence[Outcome]) -> str:
    """A Markdown table; a missed bar is marked with an exclamation mark."""
    seen = {name for o in outcomes for name in o.seconds}
    columns = [name for name in TITLES if name in seen]
    titles = " | ".join(TITLES[name] for name in columns)
    head = f"| family | case | threads | {titles} | bars |\n|{'---|' * (len(columns) + 4)}\n"
    rows = []
    for o in outcomes:
        times = " | ".join(unit(o.seconds[name]) if name in o.seconds else "" for name in columns)
        found = [(f"{ratio:.2f}x {name} (bar {bar:g})", ratio <= bar) for name, ratio, bar in o.verdicts]
        found += [(f"{unit(s)} over {name} (bar {unit(bar)})", s <= bar) for name, s, bar in o.overs]
        bars = ", ".join(text + ("" if kept else " **!**") for text, kept in found)
        rows.append(f"| {o.case.family} | {o.case.name} | {o.threads} | {times} | {bars} |\n")
    return head + "".join(rows)
