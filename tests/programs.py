"""Programs of their own: for what could hang or crash the interpreter, and for loops of CPUs that have less."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import tensorpy as tp

ROOT = Path(__file__).resolve().parents[1]
SANITIZED = "asan" in os.environ.get("LD_PRELOAD", "")
HANGS_AFTER = 120  # seconds; what is tested takes one or two


def run(code: str) -> str:
    """Runs a program in a fresh interpreter, with the build that is tested and not the one of the folder; what it
    printed. A crash, a hang or an exception fails the test.
    """
    program = "import os, signal, threading, time, gc\nimport tensorpy as tp\n" + textwrap.dedent(code)
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", program],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONSAFEPATH": "1"},
        timeout=HANGS_AFTER,
    )
    assert done.returncode == 0, f"status {done.returncode}\n{done.stdout}\n{done.stderr[-4000:]}"
    return done.stdout


LESSER = ("baseline", "avx2")
OWN = {"DEFAULT": 0, "AVX2": 1}.get(tp.backends.cpu.get_cpu_capability(), len(LESSER))  # the place of this CPU's


def on_lesser_cpu(capability: str, file: str, chosen: str) -> None:
    """Runs the tests of a file that `chosen` takes (pytest's -k) with the loops of a CPU that has less than this one.

    In the build that is tested, and without conftest.py: the table of operators takes longer to load than they run.
    """
    if LESSER.index(capability) >= OWN:
        pytest.skip("the loops of this CPU, with which the tests run anyhow")
    path = f"pythonpath={Path(tp.__file__).parents[1]} {ROOT / 'tests'}"
    command = [sys.executable, "-m", "pytest", "-q", "--noconftest", "-p", "no:cacheprovider", "-o", path, file]
    environment = {**os.environ, "TENSORPY_CPU_CAPABILITY": capability}
    done = subprocess.run([*command, "-k", chosen], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:]
