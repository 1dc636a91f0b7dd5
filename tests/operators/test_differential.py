"""Random calls compared with PyTorch's: some thousand of a fixed seed here, for as long as one likes by `make fuzz`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from opencl_programs import ROOT, needs_device

pytest.importorskip("torch")


def compare(tmp_path: Path, *options: str, program: str = "differential.py") -> None:
    """The program in a process of its own; what it was at when it died is in its journal."""
    journal = tmp_path / "journal"
    done = subprocess.run(
        [sys.executable, str(ROOT / "tests/operators" / program), f"--journal={journal}", *options],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    at = journal.read_text() if journal.exists() else ""
    assert done.returncode == 0, f"{done.stdout[-6000:]}{done.stderr[-3000:]}\nat {at}"


@pytest.mark.parametrize("seed", [0, 2, 3, 4])
def test_as_in_pytorch(seed: int, tmp_path: Path) -> None:
    compare(tmp_path, f"--seed={seed}", "--calls=4000")


@pytest.mark.parametrize("seed", [0, 1])
def test_sparse_tensors_as_in_pytorch(seed: int, tmp_path: Path) -> None:
    compare(tmp_path, f"--seed={seed}", "--calls=2000", program="differential_sparse.py")


@needs_device
def test_as_in_pytorch_on_opencl(tmp_path: Path) -> None:
    """A few, since each may have to build its kernels."""
    compare(tmp_path, "--seed=100", "--calls=60", "--device=opencl")
