"""Options of the whole suite: `--device=NAME` runs the table's tests on a device."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--device", default="cpu", help="the device that the operator tests run on")


@pytest.fixture
def device(request: pytest.FixtureRequest) -> str:
    return request.config.getoption("--device")
