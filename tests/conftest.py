"""Options of the whole suite: `--device=NAME` runs the table's tests on a device of the tree (tests/devices.py).

A device that is not there skips these tests by name, and the summary says so; under CI (the variable of that name)
it fails them, so that a missing driver is not taken for success.
"""

from __future__ import annotations

import os

import pytest
from devices import declared

from tensorpy.testing.device import Device


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--device", default="cpu", help="the device that the operator tests run on")
    parser.addoption("--dtypes", default="", help="only these dtypes of the table: float32,int64")


def pytest_configure(config: pytest.Config) -> None:
    declared(config.getoption("--device")).set_up()


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
