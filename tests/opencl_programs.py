"""What the tests of the OpenCL runtime share: the mark of those that need a device, and programs of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import tensorpy as tp

ROOT = Path(__file__).resolve().parents[1]
reason = tp.opencl.why_not_available()
needs_device = pytest.mark.skipif(reason is not None, reason=f"no OpenCL device: {reason}")


def run(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A program in an interpreter of its own."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )


def output_of(program: str, **environment: str) -> str:
    done = run(program, **environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
