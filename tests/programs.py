"""Programs of their own, for what could hang or crash the interpreter."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

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
