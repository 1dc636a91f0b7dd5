"""Builds the library with ThreadSanitizer and runs the C tests in which several threads share something.

They use no OpenMP threads, since libgomp's own synchronisation is invisible to the sanitizer, and what an OpenCL driver
does inside is its own affair.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
TESTS = ("test_cell", "test_lock", "test_threads", "test_regions", "test_opencl_threads", "test_profiler")


def main() -> int:
    options = "halt_on_error=0:second_deadlock_stack=1:ignore_noninstrumented_modules=1"
    environment = os.environ | {"TENSORPY_BUILD": "tsan", "TENSORPY_CAPABILITIES": "", "TSAN_OPTIONS": options}
    programs = [f"ctest/{test}" for test in TESTS]
    subprocess.run([sys.executable, "setup.py", "native", *programs], cwd=ROOT, env=environment, check=True)
    failed = 0
    for program in programs:
        failed |= subprocess.run([ROOT / "build" / "tsan" / program], env=environment).returncode
    return failed


if __name__ == "__main__":
    sys.exit(main())
