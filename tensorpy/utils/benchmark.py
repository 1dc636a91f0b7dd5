"""How long statements take: Timer runs them until the time is known well enough, Measurement says what came out."""

from __future__ import annotations

import statistics
import timeit as _timeit
from dataclasses import dataclass, field
from typing import Any

import tensorpy as _tp
from tensorpy import _C

__all__ = ["Compare", "Measurement", "TaskSpec", "Timer", "timer"]

timer = _timeit.default_timer


@dataclass(frozen=True)
class TaskSpec:
    """What is measured, and under which names it is shown.

    Arguments:
        stmt: the statement that is timed
        setup: a statement that runs first
        global_setup: code that is compiled first, for C++
        label: what is measured, for tables
        sub_label: a part of it
        description: the column in tables
        env: the environment, for tables
        num_threads: how many threads it ran on

    Example:
        >>> from tensorpy.utils.benchmark import Compare, Timer
        >>> measured = Timer("x + 1", globals={"x": tp.ones(2)}).timeit(10)
        >>> measured.median > 0
        True
    """

    stmt: str
    setup: str = "pass"
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        """The label, or the statement."""
        return (self.label or self.stmt) + (f": {self.sub_label}" if self.sub_label else "")


@dataclass
class Measurement:
    """The seconds of several runs of `number_per_run` calls each.

    Arguments:
        raw_times: the seconds of each block
        task_spec: what was measured
        metadata: what else is known

    Example:
        >>> from tensorpy.utils.benchmark import Compare, Timer
        >>> measured = Timer("x + 1", globals={"x": tp.ones(2)}).timeit(10)
        >>> measured.median > 0
        True
    """

    number_per_run: int
    raw_times: list[float]
    task_spec: TaskSpec
    metadata: dict[Any, Any] | None = field(default=None)

    @property
    def times(self) -> list[float]:
        """The seconds of one call, for each run."""
        return [t / self.number_per_run for t in self.raw_times]

    @property
    def mean(self) -> float:
        """The mean of the seconds of one call."""
        return statistics.fmean(self.times)

    @property
    def median(self) -> float:
        """The median of the seconds of one call."""
        return statistics.median(self.times)

    @property
    def iqr(self) -> float:
        """The distance of the quartiles."""
        if len(self.times) < 2:
            return 0.0
        low, _, high = statistics.quantiles(self.times, n=4, method="inclusive")
        return high - low

    @property
    def has_warnings(self) -> bool:
        """Whether the runs differ so much that the median says little."""
        return self.iqr > 0.25 * self.median

    def __repr__(self) -> str:
        unit, scale = _unit(self.median)
        runs = f"{len(self.times)} run{'s' if len(self.times) != 1 else ''}"
        return (
            f"{self.task_spec.title}\n  Median: {self.median / scale:.2f} {unit}\n  IQR:    {self.iqr / scale:.2f} "
            f"{unit}\n  {runs}, {self.number_per_run} calls a run, {self.task_spec.num_threads} thread(s)"
        )


def _unit(seconds: float) -> tuple[str, float]:
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            return unit, scale
    return "ns", 1e-9


class Timer:
    """A statement to be timed, with what is to run before it; `num_threads` threads for operators.

    Arguments:
        stmt: the statement that is timed
        setup: a statement that runs first
        global_setup: code that is compiled first, for C++
        timer: a clock
        globals: the names that the statement sees
        label: what is measured, for tables
        sub_label: a part of it
        description: the column in tables
        env: the environment, for tables
        num_threads: how many threads it ran on
        language: the language

    Example:
        >>> from tensorpy.utils.benchmark import Compare, Timer
        >>> measured = Timer("x + 1", globals={"x": tp.ones(2)}).timeit(10)
        >>> measured.median > 0
        True
    """

    def __init__(
        self,
        stmt: str = "pass",
        setup: str = "pass",
        global_setup: str = "",
        timer: Any = timer,
        globals: dict[str, Any] | None = None,
        label: str | None = None,
        sub_label: str | None = None,
        description: str | None = None,
        env: str | None = None,
        num_threads: int = 1,
        language: Any = "python",
    ) -> None:
        if str(getattr(language, "value", language)).lower() not in ("python", "py", "0"):
            raise ValueError("a Timer runs statements of Python")
        self._task = TaskSpec(stmt, setup, global_setup, label, sub_label, description, env, num_threads)
        self._timer = _timeit.Timer(stmt, setup, timer, globals={**(globals or {}), "torch": _tp})

    def _run(self, number: int) -> float:
        before = _C.get_num_threads()
        _C.set_num_threads(self._task.num_threads)
        try:
            return self._timer.timeit(number)
        finally:
            _C.set_num_threads(before)

    def timeit(self, number: int = 1_000_000) -> Measurement:
        """One run of `number` calls, after a shorter one that warms up."""
        self._run(max(number // 100, 2))
        return Measurement(number, [self._run(number)], self._task)

    def _calls_per_run(self, seconds: float) -> int:
        """So many calls that a run takes a thousandth of the time there is, and at least 0.1 ms."""
        number = 1
        while self._run(number) < max(seconds / 1000, 1e-4):
            number *= 4
        return number

    def blocked_autorange(self, callback: Any = None, min_run_time: float = 0.2) -> Measurement:
        """Runs of equal size until so many seconds have gone."""
        number, times = self._calls_per_run(min_run_time), [0.0] * 0
        while sum(times) < min_run_time:
            times.append(self._run(number))
            if callback is not None:
                callback(number, times[-1])
        return Measurement(number, times, self._task)

    def adaptive_autorange(
        self,
        threshold: float = 0.1,
        *,
        min_run_time: float = 0.01,
        max_run_time: float = 10.0,
        callback: Any = None,
    ) -> Measurement:
        """Runs until the quartiles are near each other (`threshold` of the median), or the longest time has gone."""
        number, times = self._calls_per_run(min_run_time), [0.0] * 0
        while sum(times) < max_run_time:
            times.append(self._run(number))
            if callback is not None:
                callback(number, times[-1])
            found = Measurement(number, times, self._task)
            if len(times) > 3 and sum(times) > min_run_time and found.iqr < threshold * found.median:
                break
        return Measurement(number, times, self._task)


class Compare:
    """A table of measurements: a row for each sub_label, a column for each description.

    Arguments:
        results: the measurements

    Example:
        >>> from tensorpy.utils.benchmark import Compare, Timer
        >>> measured = Timer("x + 1", globals={"x": tp.ones(2)}).timeit(10)
        >>> measured.median > 0
        True
    """

    def __init__(self, results: list[Measurement]) -> None:
        self._results = list(results)

    def extend_results(self, results: list[Measurement]) -> None:
        """Adds measurements."""
        self._results += results

    def trim_significant_figures(self) -> None:
        """Kept for programs: three figures are shown anyway."""

    def colorize(self, rowwise: bool = False) -> None:
        """Kept for programs: the table has no colours."""

    def highlight_warnings(self) -> None:
        """Kept for programs."""

    def __str__(self) -> str:
        tables: dict[str, dict[str, dict[str, float]]] = {}
        for m in self._results:
            spec = m.task_spec
            row = tables.setdefault(spec.label or spec.stmt, {}).setdefault(spec.sub_label or spec.stmt, {})
            row[spec.description or ""] = m.median
        lines = []
        for label, rows in tables.items():
            columns = list(dict.fromkeys(column for row in rows.values() for column in row))
            unit, scale = _unit(min(value for row in rows.values() for value in row.values()))
            width = max(len(name) for name in rows)
            lines.append(f"[ {label} ] (medians in {unit})")
            lines.append(" " * width + "".join(f" | {column:>10}" for column in columns))
            for name, row in rows.items():
                cells = (f"{row[c] / scale:10.3g}" if c in row else " " * 10 for c in columns)
                lines.append(f"{name:{width}}" + "".join(f" | {cell}" for cell in cells))
        return "\n".join(lines)

    def print(self) -> None:
        """Prints the table."""
        print(str(self))
