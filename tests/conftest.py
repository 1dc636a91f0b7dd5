"""Options of the whole suite: `--device=NAME` runs the table's tests on a device of the tree (tests/devices.py).

A device that is not there skips these tests by name, and the summary says so; under CI (the variable of that name)
it fails them, so that a missing driver is not taken for success. `--part` takes a part of the operators (parts.py).
"""

from __future__ import annotations

import gc
import os

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


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
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
