"""Options of the whole suite: `--device=NAME` runs the table's tests on a device.

A device that is not there skips these tests by name, and the summary says so; under CI (the variable of that name)
it fails them, so that a missing driver is not taken for success.
"""

from __future__ import annotations

import os

import pytest

import tensorpy as tp


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--device", default="cpu", help="the device that the operator tests run on")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--device").startswith("opencl"):
        tp.opencl.fallback = "allow"  # what has no kernel is tested as a user meets it; test_opencl.py keeps the list


@pytest.fixture
def device(request: pytest.FixtureRequest) -> str:
    name = str(request.config.getoption("--device"))
    if name.startswith("opencl") and not tp.opencl.is_available():
        reason = f"no OpenCL device: {tp.opencl.why_not_available()}"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return name
