"""Operators whose entry says `warns`: a warning at the first call in a process, which begins as PyTorch's."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import tensorpy as tp
from codegen.__main__ import load_catalog

CALLS = {
    "cholesky": "t.cholesky(t.eye(2))",
    "qr": "t.eye(2).qr()",
    "lu_solve": "t.ones(2, 1).lu_solve(*t.linalg.lu_factor(t.eye(2)))",
    "triangular_solve": "t.triangular_solve(t.ones(2, 1), t.eye(2))",
    "index_reduce": "t.ones(3).index_reduce(0, t.tensor([0]), t.ones(1), 'mean')",
    "scatter": "t.ones(3).scatter(0, t.tensor([0]), t.ones(1), reduce='add')",
}
PROGRAM = """
import sys, warnings, {package} as t
calls = sys.argv[1:]
for call in calls * 2:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        eval(call)
    print(len(seen), str(seen[0].message).splitlines()[0] if seen else "")
"""


def lines_of(package: str) -> list[str]:
    command = [sys.executable, "-c", PROGRAM.format(package=package), *CALLS.values()]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def test_the_list_is_what_the_entries_say() -> None:
    catalog = load_catalog(Path(__file__).resolve().parents[2] / "yaml")
    said = {op.schema.name.base for op in catalog if op.function.origin.warns is not None}
    assert said == set(CALLS)


def test_each_warns_once_in_a_process() -> None:
    first, again = (lambda all: (all[: len(CALLS)], all[len(CALLS) :]))(lines_of("tensorpy"))
    assert all(line == "0 " for line in again)
    assert all(line.startswith("1 ") and len(line) > 40 for line in first)


def test_the_warnings_begin_as_pytorchs() -> None:
    pytest.importorskip("torch")
    for ours, theirs in zip(lines_of("tensorpy")[: len(CALLS)], lines_of("torch"), strict=False):
        assert ours[:50] == theirs[:50]


def test_range_warns_at_each_call() -> None:
    """Its warning is that of PyTorch's Python function, which no call is spared."""
    for _ in range(2):
        with pytest.warns(UserWarning, match="^torch.range is deprecated and will be removed in a future release"):
            tp.range(0, 1)


def test_set_warn_always_makes_each_call_warn() -> None:
    assert not tp.is_warn_always_enabled()
    tp.set_warn_always(True)
    try:
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            for _ in range(3):
                tp.cholesky(tp.eye(2))
    finally:
        tp.set_warn_always(False)
    assert len(seen) == 3
    with pytest.raises(RuntimeError, match="setWarnOnlyOnce expects a bool, but got int"):
        tp.set_warn_always(1)  # type: ignore[arg-type]
