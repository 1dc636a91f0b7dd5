"""A family of the tree, built as a library from outside, passes its own rows (tests/outside/family_outside.py)."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent.parent

# The files whose tests reach operators by the names that the library takes: tables, gradients, tangents, vmap, out=.
FILES = (
    "operators/test_table.py",
    "autograd/test_gradients.py",
    "autograd/test_forward_ad.py",
    "autograd/test_vmap.py",
    "autograd/test_functionalize.py",
)


@pytest.mark.parametrize("family", ["scan"])
def test_a_family_of_the_tree_as_a_library(family: str, tmp_path: Path) -> None:
    """In a process of its own, where the tree's operators of the family refuse to run."""
    variables = {
        "FAMILY_OUTSIDE": family,
        "FAMILY_OUTSIDE_FOLDER": str(tmp_path),
        "PYTHONPATH": os.pathsep.join([str(TESTS / "outside"), str(TESTS), str(TESTS.parent)]),
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "family_outside", "-p", "no:cacheprovider"]
    command += ["-k", "not sparse-"]  # kernels of sparse tensors call the tree's operators
    done = subprocess.run(
        [*command, *(str(TESTS / name) for name in FILES)],
        cwd=TESTS.parent,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None and int(passed[1]) > 90, done.stdout[-2000:]
    assert "compliance of cpu: 100.0 % of" in done.stdout
