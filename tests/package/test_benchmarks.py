"""Every family that `make bench` measures has its cases; the small ones run, and name what they are compared with."""

from __future__ import annotations

import importlib

import pytest

import tensorpy as tp
from benchmarks import __main__ as bench
from benchmarks.bench_compile import beside, five
from benchmarks.harness import TITLES, measure, table


@pytest.mark.parametrize("device", ["cpu", "opencl"])
def test_families_have_cases(device: str) -> None:
    families = bench.families(device)
    assert len(families) > 5 and set(families) <= set(bench.FAMILIES)
    for module in families.values():
        assert callable(importlib.import_module(module, "benchmarks").cases), module


def test_a_family_is_measured() -> None:
    threads = tp.get_num_threads()
    tp.set_num_threads(1)
    try:
        case = beside("five, 1, replayed", five, (tp.ones(1), tp.ones(1)), {"eager": 0.6}, "reduce-overhead")
        outcome = measure(case, 1, rounds=3, target=1e-4)
    finally:
        tp.set_num_threads(threads)
    assert set(outcome.seconds) <= set(TITLES) and outcome.ratio("eager")
    assert "five, 1, replayed" in table([outcome])
