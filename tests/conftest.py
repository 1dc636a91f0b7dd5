"""Options of the whole suite: `--device=NAME` runs the table's tests on a device of the tree (tests/devices.py).

A device that is not there skips these tests by name, and the summary says so; under CI (the variable of that name)
it fails them, so that a missing driver is not taken for success. `--part` takes a part of the operators, `--files`
one of the files (parts.py).

A test that takes more than ten seconds is named while it runs. The rooms with short tests come first, so that a run
shows soon that all is well; those that compile, or start processes, come last.
"""

from __future__ import annotations

import gc
import os
import re
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from devices import declared
from parts import Files, Part, files_of, part_of

import tensorpy as tp
from tensorpy.testing.device import Device


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--device", default="cpu", help="the device that the operator tests run on")
    parser.addoption("--dtypes", default="", help="only these dtypes of the table: float32,int64")
    parser.addoption("--part", default="", help="a part of the operators, and those that changed: 2/3, auto/9")
    parser.addoption("--files", default="", help="a part of the files of tests, and those about what changed: auto/8")
    parser.addoption("--tree", action="store_true", help="with --files: those that read the whole tree too")


# Programs of tests say what the tests expect, whether the driver has their kernels in its cache or compiles them.
os.environ.setdefault("TENSORPY_OPENCL_QUIET", "1")

PART = pytest.StashKey[Part | None]()
FILES = pytest.StashKey[Files | None]()


def pytest_configure(config: pytest.Config) -> None:
    declared(config.getoption("--device")).set_up()
    try:
        config.stash[PART] = part_of(config.getoption("--part"))
        config.stash[FILES] = files_of(config.getoption("--files"), config.getoption("--tree"))
    except ValueError as error:
        raise pytest.UsageError(str(error)) from None


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    files = config.stash[FILES]
    is_test = collection_path.name.startswith("test_") and collection_path.suffix == ".py"
    return True if files is not None and is_test and not files.takes(collection_path) else None


def _operator(item: pytest.Item) -> str | None:
    """The operator, or function of torch, that a test is about: its parameter `info`."""
    callspec = getattr(item, "callspec", None)
    return getattr(callspec.params.get("info"), "name", None) if callspec else None


ROOMS = "tensor operators random nn autograd data tracing dispatch files codegen package opencl outside".split()


def _place(item: pytest.Item) -> int:
    """Where its room stands; the rooms that are not named come at the end."""
    room = Path(item.nodeid).parts[1] if item.nodeid.startswith("tests/") else ""
    return ROOMS.index(room) if room in ROOMS else len(ROOMS)


@pytest.hookimpl(tryfirst=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Of a parameter `info` only what the part takes becomes tests: to make the others and deselect them is most of a
    short run's time. Where nothing of it is taken all are made, and deselected.
    """
    part, parametrize = metafunc.config.stash[PART], metafunc.parametrize
    if part is None:
        return

    def chosen(names: str | Sequence[str], values: Iterable[Any], *rest: Any, **given: Any) -> None:
        words = [word.strip() for word in names.split(",")] if isinstance(names, str) else list(names)
        every, ids = list(values), given.get("ids")
        if "info" in words and every:
            infos = [_one(value, words.index("info"), len(words)) for value in every]
            taken = [i for i, info in enumerate(infos) if part.takes(info.name)]
            if taken:
                every = [every[i] for i in taken]
                given["ids"] = ids if ids is None or callable(ids) else [list(ids)[i] for i in taken]
        parametrize(names, every, *rest, **given)

    metafunc.parametrize = chosen  # type: ignore[method-assign]


MARKED = type(pytest.param())


def _one(value: Any, place: int, words: int) -> Any:
    """A parameter of a test, among several that are given as one value, with marks or without."""
    if isinstance(value, MARKED):
        return value.values[place]
    return value[place] if words > 1 else value


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if unsteady := [item.nodeid for item in items if re.search(r" at 0x[0-9a-f]{6}", item.nodeid)]:
        raise pytest.UsageError(f"tests that are named by an address have another name in each run: {unsteady[:5]}")
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


@pytest.fixture(scope="module", autouse=True)
def what_a_file_leaves_is_kept() -> Iterator[None]:
    """Nor is what its tests imported and what the table drew for them, which is as much again."""
    yield
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
    for part in (config.stash[PART], config.stash[FILES]):
        if part:
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


@pytest.fixture(scope="session", autouse=True)
def declarations_are_complete() -> Iterator[None]:
    """built_ins.cl declares what the kernels that were built call, so that none was built a second time."""
    yield
    if tp.opencl.cache_info()["built_with_header"] > 0:
        pytest.fail("built_ins.cl lacks a function that a kernel of the tree calls: its compiler's error is above")
