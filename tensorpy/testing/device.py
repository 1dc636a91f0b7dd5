"""Tests for a device: a backend declares itself in one small file and gets the whole table of operators as its tests.

    # test_mine.py, anywhere
    import mine
    from tensorpy.testing.device import Device, DeviceTests, Refusal

    class TestMine(DeviceTests):
        device = Device(
            "mine",
            set_up=mine.load,
            dtypes=("float32", "int64", "bool"),
            tolerances={"float32": (1e-5, 1e-5)},
            operator_tolerances={"exp": {"float32": (1e-4, 1e-4)}},
            refusals=[Refusal("conv*", "no convolutions yet")],
        )

`pytest test_mine.py` then runs every check of checks.py on every operator, and the device's own checks of
device_checks.py, and prints a compliance table at its end: family of operators x check, counted in operators x dtypes:
so many passed, passed with the CPU's help, refused, failed. `python -m tensorpy.testing.device test_mine.py
--compliance=FILE` keeps it, with a line for each operator.

An operator may raise on a device what a Refusal declares; everything else that it raises, and every wrong value, fails.
"""

from __future__ import annotations

import dataclasses
import fnmatch
import json
import math
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tensorpy import backends

from . import device_checks
from .checks import CHECKS, Check
from .samples import TABLE, OpInfo
from .samples.table import ALL_DTYPES, TOLERANCES

REFUSING = (RuntimeError, TypeError, ValueError, IndexError)  # NotImplementedError is a RuntimeError


@dataclass(frozen=True)
class Refusal:
    """Operators (a pattern: "conv*") that may raise on a device: in some dtypes or checks, or in all of them; with
    `message`, only an error that says so.

    Arguments:
        operators: the operators
        reason: why
        dtypes: the dtypes that it has

    Example:
        >>> tp.testing.device.Refusal(("fft_*",), "no transforms").reason
        'no transforms'
    """

    operators: str
    reason: str
    dtypes: Sequence[str] = ()
    checks: Sequence[str] = ()
    message: str = ""

    def covers(self, info: OpInfo, check: str, dtype: str, error: str) -> bool:
        """Whether it stands for an operator in a dtype."""
        named = fnmatch.fnmatchcase(info.name, self.operators) or fnmatch.fnmatchcase(info.base, self.operators)
        there = (not self.dtypes or dtype in self.dtypes) and (not self.checks or check in self.checks)
        return named and there and self.message in error


@dataclass(frozen=True)
class Device:
    """What a device says of itself. `tolerances` are (rtol, atol) by dtype; `operator_tolerances` by operator first.

    Arguments:
        name: the name
        dtypes: the dtypes that it has
        refusals: what it refuses, and why
        set_up: what runs first
        missing: says why it is not here; None: it is

    Example:
        >>> tp.testing.device.Device("cpu").type
        'cpu'
    """

    name: str
    dtypes: Sequence[str] = ALL_DTYPES
    tolerances: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    operator_tolerances: Mapping[str, Mapping[str, tuple[float, float]]] = field(default_factory=dict)
    refusals: Sequence[Refusal] = ()
    set_up: Callable[[], None] = lambda: None
    missing: Callable[[], str | None] = lambda: None  # why the device is not there

    @property
    def type(self) -> str:
        return self.name.partition(":")[0]

    def info(self, info: OpInfo) -> OpInfo:
        """An operator with the device's dtypes and, where they are wider, its tolerances."""
        own = self.operator_tolerances.get(info.name, self.operator_tolerances.get(info.base, {}))
        wider = {}
        for dtype in TOLERANCES:
            given = own.get(dtype) or self.tolerances.get(dtype, (0.0, 0.0))
            usual = info.tolerance(dtype)
            wider[dtype] = (max(given[0], usual[0]), max(given[1], usual[1]))
        dtypes = tuple(d for d in info.dtypes if d in self.dtypes)
        return dataclasses.replace(info, tolerances={**info.tolerances, **wider}, dtypes=dtypes)

    def refusal(self, info: OpInfo, check: str, dtype: str, error: str) -> Refusal | None:
        """The refusal that stands for an operator in a dtype, or None."""
        return next((r for r in self.refusals if r.covers(info, check, dtype, error)), None)

    def fallbacks(self) -> int:
        """How many calls the CPU has done for the device so far."""
        return int(backends.fallback_calls(self.type))


# ---- outcomes ----

PASSED, FALLBACK, REFUSED, FAILED = "passed", "fallback", "refused", "failed"
OUTCOMES = (PASSED, FALLBACK, REFUSED, FAILED)


@dataclass(frozen=True)
class Outcome:
    """What came of one check of one operator in one dtype.

    Arguments:
        operator: the operator, or its name
        family: the family of operators
        dtype: the dtype; None takes the usual one
        outcome: what happened
        reason: why

    Example:
        >>> callable(tp.testing.device.Outcome)
        True
    """

    operator: str
    family: str
    check: str
    dtype: str
    outcome: str
    reason: str = ""


def run_check(device: Device, check: Check, given: OpInfo) -> Iterator[Outcome]:
    """An outcome for each dtype that the check takes and the device has.

    Arguments:
        device: where the elements are: a device or its name; None takes the default
        given: the device, and what is run

    Returns: an iterator of Outcomes.

    Example:
        >>> callable(tp.testing.device.run_check)
        True
    """
    info = device.info(given)
    if not info.dtypes:
        return
    for dtype in (d for d in check.dtypes(info) if d in info.dtypes):
        before, reason = device.fallbacks(), ""
        try:
            check.run(info, dtype, device.name)
            outcome = FALLBACK if device.fallbacks() > before else PASSED
        except AssertionError as error:
            outcome, reason = FAILED, str(error)
        except REFUSING as error:
            refusal = device.refusal(info, check.name, dtype, str(error))
            outcome, reason = FAILED, f"{info.name} in {dtype}: {type(error).__name__}: {error}"
            if refusal:
                outcome, reason = REFUSED, refusal.reason
            elif device.type != "cpu" and not check.against_cpu and _cpu_refuses(check, info, dtype):
                outcome, reason = PASSED, ""
        yield Outcome(info.name, info.family, check.name, dtype, outcome, reason)


def _cpu_refuses(check: Check, info: OpInfo, dtype: str) -> bool:
    try:
        check.run(info, dtype, "cpu")
    except REFUSING:
        return True
    except AssertionError:
        return False
    return False


class Report:
    """The outcomes of a run, as a table and as lines.

    Arguments:
        device: where the elements are: a device or its name; None takes the default

    Example:
        >>> callable(tp.testing.device.Report)
        True
    """

    def __init__(self, device: str) -> None:
        self.device = device
        self.outcomes: list[Outcome] = []

    def add(self, outcome: Outcome) -> None:
        """Takes an outcome in."""
        self.outcomes.append(outcome)

    def table(self, row: Callable[[Outcome], str] = lambda o: o.family) -> list[list[str]]:
        """Per family and check: passed, +by the CPU, -refused, !failed, counted in operators x dtypes."""
        names = [name for name in CHECKS if any(o.check == name for o in self.outcomes)]
        names += sorted({o.check for o in self.outcomes} - set(names))
        counts: dict[tuple[str, str], Counter[str]] = {}
        for o in self.outcomes:
            for key in ((row(o), o.check), ("all", o.check)):
                counts.setdefault(key, Counter())[o.outcome] += 1
        rows = [*sorted({r for r, _ in counts} - {"all"}), "all"] if counts else []
        return [["", *names], *([r, *(_cell(counts.get((r, n), Counter())) for n in names)] for r in rows)]

    def compliance(self) -> float:
        """Per cent of the outcomes that are right and the device's own: neither the CPU's nor refused."""
        own = sum(o.outcome == PASSED for o in self.outcomes)
        return 100.0 * own / len(self.outcomes) if self.outcomes else 0.0

    def text(self) -> str:
        """The table by family and the one by dtype, and what failed."""
        per_cent = math.floor(self.compliance() * 10) / 10  # so that 100.0 means all
        parts = [
            f"compliance of {self.device}: {per_cent} % of {len(self.outcomes)} checks",
            "passed, +by the CPU, -refused, !failed (operators x dtypes)",
        ]
        parts += [_columns(self.table()), _columns(self.table(lambda o: o.dtype))]
        refused = Counter(o.reason for o in self.outcomes if o.outcome == REFUSED)
        parts += [f"refused, {n}: {reason}" for reason, n in refused.most_common()]
        if any(o.outcome == FALLBACK for o in self.outcomes):
            parts += backends.report(self.device.partition(":")[0]).advice()
        return "\n".join(parts)

    def markdown(self) -> str:
        """The same for a page, with a line for each operator."""
        parts = [f"# Compliance of {self.device}\n"]
        for title, row in (("family", lambda o: o.family), ("dtype", lambda o: o.dtype), ("operator", _operator)):
            head, *rows = self.table(row)
            lines = [f"| {title} |{'|'.join(f' {h} ' for h in head[1:])}|", "|---" * len(head) + "|"]
            lines += ["| " + " | ".join(cells) + " |" for cells in rows]
            parts.append("\n".join(lines) + "\n")
        return "\n".join(parts)

    def write(self, path: Path) -> None:
        """Markdown, or every outcome as JSON for a name that ends so."""
        outcomes = [dataclasses.asdict(o) for o in self.outcomes]
        path.write_text(json.dumps(outcomes, indent=0) if path.suffix == ".json" else self.markdown())


def _operator(o: Outcome) -> str:
    return o.operator


def _cell(count: Counter[str]) -> str:
    marks = {PASSED: "", FALLBACK: "+", REFUSED: "-", FAILED: "!"}
    return " ".join(f"{marks[o]}{count[o]}" for o in OUTCOMES if count[o])


def _columns(table: list[list[str]]) -> str:
    widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))] if table else []
    return "\n".join("  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in table)


# ---- pytest ----


class _Plugin:
    """Keeps the reports of a run and prints them at its end."""

    NAME = "tensorpy-compliance"

    def __init__(self) -> None:
        self.reports: dict[str, Report] = {}

    @classmethod
    def of(cls, config: pytest.Config) -> _Plugin:
        found = config.pluginmanager.get_plugin(cls.NAME)
        if not isinstance(found, cls):
            found = cls()
            config.pluginmanager.register(found, cls.NAME)
        return found

    def report(self, device: str) -> Report:
        return self.reports.setdefault(device, Report(device))

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        for report in self.reports.values():
            terminalreporter.section("compliance")
            terminalreporter.write_line(report.text())
            if path := os.environ.get("TENSORPY_COMPLIANCE"):
                report.write(Path(path))


class DeviceTests:
    """Tests of one device: a subclass whose name begins with Test names it.

    `checks`, `operators` and `device_wide` (tests of the device itself) may leave out.

    Example:
        >>> callable(tp.testing.device.DeviceTests)
        True
    """

    device: ClassVar[Device]
    checks: ClassVar[Sequence[str]] = tuple(CHECKS)
    operators: ClassVar[Callable[[OpInfo], Any]] = staticmethod(lambda info: True)
    device_wide: ClassVar[Sequence[str]] = tuple(device_checks.CHECKS)

    @classmethod
    def declared(cls, config: pytest.Config) -> Device:
        """The device under test; the repository's own tests take it from the command line."""
        return cls.device

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """One test for each check and operator."""
        device = self.declared(metafunc.config)
        if "check" in metafunc.fixturenames:
            chosen = [CHECKS[name] for name in self.checks if device.type != "cpu" or not CHECKS[name].against_cpu]
            infos = [TABLE[name] for name in sorted(TABLE) if type(self).operators(TABLE[name])]
            cases = [(c, i) for c in chosen for i in infos if c.when(i)]
            metafunc.parametrize("check,info", cases, ids=[f"{c.name.replace(' ', '_')}-{i.name}" for c, i in cases])
        if "device_check" in metafunc.fixturenames:
            checks = [device_checks.CHECKS[name] for name in self.device_wide]
            metafunc.parametrize("device_check", checks, ids=self.device_wide)

    @pytest.fixture(autouse=True)
    def _ready(self, request: pytest.FixtureRequest) -> None:
        device = self.declared(request.config)
        reason = device.missing()
        if reason and os.environ.get("CI"):
            pytest.fail(reason)  # a missing driver is not success
        if reason:
            pytest.skip(reason)
        if device not in _SET_UP:
            device.set_up()
            _SET_UP.append(device)

    def test_operator(self, check: Check, info: OpInfo, request: pytest.FixtureRequest) -> None:
        """One operator in one dtype, against the CPU."""
        device = self.declared(request.config)
        outcomes = list(run_check(device, check, info))
        report = _Plugin.of(request.config).report(device.name)
        for o in outcomes:
            report.add(o)
        failures = [o.reason for o in outcomes if o.outcome == FAILED]
        if failures:
            pytest.fail("\n".join(failures), pytrace=False)
        if outcomes and all(o.outcome == REFUSED for o in outcomes):
            pytest.skip(outcomes[0].reason)

    def test_device(self, device_check: device_checks.Run, request: pytest.FixtureRequest) -> None:
        """What every device has: copies, streams, errors."""
        device = self.declared(request.config)
        device_check(device.name, device.dtypes)


_SET_UP: list[Device] = []


def main(arguments: Sequence[str]) -> int:
    """`python -m tensorpy.testing.device FILE [--compliance=TABLE.md] [options of pytest]`.

    Arguments:
        arguments: the command line's words; None takes sys.argv

    Returns: int.

    Example:
        >>> tp.testing.device.main(["my_device.py"])  # doctest: +SKIP
    """
    rest = []
    for argument in arguments:
        if argument.startswith("--compliance="):
            os.environ["TENSORPY_COMPLIANCE"] = argument.partition("=")[2]
        else:
            rest.append(argument)
    return int(pytest.main(["-q", "-p", "no:cacheprovider", *rest]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
