"""Runs a reduced table of operators under oclgrind, which simulates a device and sees every access of every kernel.

Reported, with the operator at hand: reads and writes out of bounds, races of two work-items, wrong arguments of OpenCL
calls. Each operator that has an OpenCL kernel runs a few samples, of more than one dtype where `--all` says so, in the
tuning for CPUs and in the one for GPUs. `python tests/run_oclgrind.py [--all] [PATTERN...]`.
"""

from __future__ import annotations

import fnmatch
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIBRARIES = ("/usr/lib/oclgrind/liboclgrind-rt.so", "/usr/lib/x86_64-linux-gnu/oclgrind/liboclgrind-rt.so")
OPTIONS = ("--data-races", "--check-api", "--max-errors", "20")


def start(tuning: str, arguments: list[str]) -> int:
    """This program once more, on oclgrind's device."""
    library = next((path for path in LIBRARIES if Path(path).exists()), None)
    if library is None or shutil.which("oclgrind") is None:
        print("oclgrind is not installed: the package is called oclgrind")
        return 1
    with tempfile.TemporaryDirectory() as folder:
        log = str(Path(folder, "log"))
        environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "TENSORPY_OPENCL_LIBRARY": library,
            "TENSORPY_OPENCL_TUNING": tuning,
            "TENSORPY_OPENCL_CACHE": "",  # a simulator's programs are no one else's
            "OCLGRIND_LOG_OF_TENSORPY": log,
        }
        command = ["oclgrind", "--log", log, *OPTIONS, sys.executable, __file__, *arguments]
        return subprocess.run(command, cwd=ROOT, env=environment).returncode


def chosen(patterns: list[str]) -> Iterator[object]:
    from tensorpy.testing.samples import TABLE
    from tensorpy.testing.support import kernel_of

    for name in sorted(TABLE):
        if kernel_of(TABLE[name].op, "OpenCL") in ("pointwise", "reduction", "kernel", "parts"):
            if not patterns or any(fnmatch.fnmatchcase(name, p) for p in patterns):
                yield TABLE[name]


def new_text(log: Path, seen: int) -> str:
    return log.read_text(errors="replace")[seen:] if log.exists() else ""


def table(every_dtype: bool, patterns: list[str]) -> int:
    """On the device at hand; the number of operators with reports."""
    import tensorpy as tp
    from tensorpy.testing.checks import like_the_cpu

    tp.opencl.fallback = "allow"
    log, seen, bad, count = Path(os.environ["OCLGRIND_LOG_OF_TENSORPY"]), 0, 0, 0
    begun = time.monotonic()
    for info in chosen(patterns):
        count += 1
        complaint = ""
        for dtype in info.some_dtypes if every_dtype else [info.main_dtype]:
            for sample in info.samples(dtype, 4 if every_dtype else 2):
                try:
                    like_the_cpu(info, sample, "opencl")
                    tp.opencl.synchronize()
                except Exception as error:
                    complaint = complaint or f"{sample}: {type(error).__name__}: {error}"
        text = new_text(log, seen)
        seen += len(text)
        found = re.sub(r"\n\s*\n+", "\n", text).strip()
        if found or complaint:
            bad += 1
            print(f"== {info.name}\n{complaint}\n{found[:1500]}", flush=True)
    print(f"{count} operators, {bad} with reports, {time.monotonic() - begun:.0f} s", flush=True)
    return bad


def main() -> int:
    arguments = sys.argv[1:]
    if "OCLGRIND_LOG_OF_TENSORPY" in os.environ:
        return table("--all" in arguments, [a for a in arguments if a != "--all"]) > 0
    return max([start(tuning, arguments) for tuning in ("cpu", "gpu")])


if __name__ == "__main__":
    sys.exit(main())
