"""Builds with AddressSanitizer and UBSan and runs the C tests and the Python suite under them.

The interpreter is not instrumented, so the sanitizer's runtime is preloaded, and its leak check, which would report the
interpreter's own blocks, is left to the leak tests. Arguments are pytest's: `--part=auto/9`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).parent.parent
BUILD = ROOT / "build" / "asan"
# Left out: what measures memory, forks, builds, trains, asks other programs, or compares at length.
SKIPPED = [
    "tests/codegen",
    "tests/distributed",
    "tests/outside/test_abi.py",
    "tests/outside/test_headers.py",
    "tests/outside/test_adding_an_operator.py",
    "tests/operators/test_against_torch.py",
    "tests/package/test_editors.py",
    "tests/package/test_examples.py",
    "tests/operators/test_leaks.py",
    "tests/operators/test_memory.py",
    "tests/nn/test_nn_against_torch.py",
]


def runtime(name: str) -> str:
    found = subprocess.run(["cc", f"-print-file-name={name}"], capture_output=True, text=True, check=True)
    return str(Path(found.stdout.strip()).resolve())


def main() -> int:
    environment = os.environ | {
        "TENSORPY_BUILD": "asan",
        "TENSORPY_CAPABILITIES": "baseline",  # the loops that can run here, which tests ask for one by one
        "ASAN_OPTIONS": ":".join(
            ["detect_leaks=0", "detect_odr_violation=0", "allocator_may_return_null=1", "max_allocation_size_mb=4096"]
        ),
        "UBSAN_OPTIONS": "print_stacktrace=1",
    }
    setup = [sys.executable, "setup.py", "native"]
    module = f"_C{sysconfig.get_config_var('EXT_SUFFIX')}"
    subprocess.run([*setup, module, "ctests"], cwd=ROOT, env=environment, check=True)
    for program in sorted((BUILD / "ctest").glob("test_*")):
        if not program.suffix:
            subprocess.run([program], env=environment, check=True)
    package = BUILD / "package"
    shutil.rmtree(package, ignore_errors=True)
    shutil.copytree(ROOT / "tensorpy", package / "tensorpy", ignore=shutil.ignore_patterns("_C*.so", "__pycache__"))
    shutil.copyfile(BUILD / module, package / "tensorpy" / module)
    for folder in ("codegen", "yaml", "csrc"):  # what lies beside the package in the tree
        shutil.copytree(ROOT / folder, package / folder, ignore=shutil.ignore_patterns("__pycache__"))
    environment |= {
        "PYTHONPATH": f"{package}:{ROOT}",
        "LD_PRELOAD": f"{runtime('libasan.so')} {runtime('libubsan.so')}",
    }
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "--maxfail=5",
        "--capture=sys",  # a report of the sanitizer goes to the real standard error
        "-p",
        "no:cacheprovider",
        "-o",
        f"pythonpath={package} {ROOT} {ROOT}/tests",
        "tests",
        *(f"--ignore={s}" for s in SKIPPED),
        *sys.argv[1:],
    ]
    return subprocess.run(command, cwd=ROOT, env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())
