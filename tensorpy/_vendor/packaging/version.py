"""Versions as the package `packaging` reads and compares them."""

from __future__ import annotations

from packaging.version import InvalidVersion as InvalidVersion
from packaging.version import Version as Version
from packaging.version import parse as parse
