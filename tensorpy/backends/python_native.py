"""Operators that are written in languages of kernels inside Python: there are none."""

from __future__ import annotations

available_dsls: list[str] = []
all_dsls: list[str] = []
