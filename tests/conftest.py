"""Options of the whole suite: `--device=NAME` runs the table's tests on a device of the tree (tests/devices.py).

A device that is not there skips these tests by name, and the summary says so; under CI (the variable of that name)
it fails them, so that a missing driver is not taken for success. `--part` takes a part of the operators (parts.py).

A test that takes more than ten seconds is named while it runs. The rooms with short tests come first, so that a run
shows soon that all is well; those that compile, or start processes, come last.
"""

from __future__ import annotations

import gc
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from devices import declared
from parts import Part, part_of

from tensorpy.testing.device import Device


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--device", default="cpu", help="the device that the operator tests run on")
    parser.addoption("--dtypes", default="", help="only these dtypes of the table: float32,int64")
    parser.addoption("--part", default="", help="a part of the operators, and those that changed: 2/3, auto/9")


PART = pytest.StashKey[Part | None]()


def pytest_configure(config: pytest.Config) -> None:
    declared(config.getoption("--device")).set_up()
    try:
        config.stash[PART] = part_of(config.getoption("--part"))
    except ValueError as error:
        raise pytest.UsageError(str(error)) from None


def _operator(item: pytest.Item) -> str | None:
    """The operator, or function of torch, that a test is about: its parameter `info`."""
    callspec = getattr(item, "callspec", None)
    return getattr(callspec.params.get("info"), "name", None) if callspec else None


ROOMS = "tensor operators random nn autograd data tracing dispatch files codegen package opencl outside".split()


def _place(item: pytest.Item) -> int:
    """Where its room stands; the rooms that are not named come at the end."""
    room = Path(item.nodeid).parts[1] if item.nodeid.startswith("tests/") else ""
    return ROOMS.index(room) if room in ROOMS else len(ROOMS)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    items.sort(key=_place)
    part = config.stash[PART]
    if part is None:
        return
    names = {item: _operator(item) for item in items}
    left_out = [item for item, name in names.items() if name is not None and not part.takes(name)]
    items[:] = [item for item, name in names.items() if name is None or part.takes(name)]
    config.hook.pytest_deselected(items=left_out)


def pytest_collection_finish(session: pytest.Session) -> None:
    """What pytest keeps of 50,000 tests is no garbage: a collection that a test asks for takes 2 ms, not 600."""
    gc.collect()
    gc.freeze()


class Watcher:
    """Names the test that is running when it takes long."""

    def __init__(self, reporter: pytest.TerminalReporter) -> None:
        self.reporter = reporter
        self.running: tuple[str, float] | None = None
        self.named = ""
        self.ended = threading.Event()
        threading.Thread(target=self.watch, daemon=True).start()

    def watch(self) -> None:
        while not self.ended.wait(1):
            running = self.running
            if running and running[0] != self.named and time.monotonic() - running[1] > LONG:
                self.named = running[0]
                self.reporter.write_line("")
                self.reporter.write_line(f"{self.named} has been running for {LONG} s")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.running = (item.nodeid, time.monotonic())
        try:
            return (yield)
        finally:
            self.running = None

    def pytest_sessionfinish(self) -> None:
        self.ended.set()


LONG = 10  # seconds


def pytest_sessionstart(session: pytest.Session) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None:
        session.config.pluginmanager.register(Watcher(reporter))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """At the end, where a quiet run shows it too."""
    if part := config.stash[PART]:
        terminalreporter.write_line(str(part))


@pytest.fixture
def declaration(request: pytest.FixtureRequest) -> Device:
    """What the device says of itself."""
    return declared(request.config.getoption("--device"))


@pytest.fixture
def device(declaration: Device) -> str:
    reason = declaration.missing()
    if reason and os.environ.get("CI"):
        pytest.fail(reason)
    if reason:
        pytest.skip(reason)
    return declaration.name
