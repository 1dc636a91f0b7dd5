"""Runs a reduced table of operators under oclgrind, which simulates a device and sees every access of every kernel.

Reported, with the operator at hand: reads and writes out of bounds, races of two work-items, wrong arguments of OpenCL
calls. Each operator that has an OpenCL kernel runs a few samples, of more than one dtype where `--all` says so, and
after them come the large calls of opencl_large.py; all this in the tuning for CPUs and in the one for GPUs.
That races are seen at all is tried first, on kernels whose barriers are taken out.

`python tests/run_oclgrind.py [--all] [--part=auto/9] [PATTERN...]`; the large calls are in every part (parts.py).
"""

from __future__ import annotations

import fnmatch
import functools
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import fake_opencl
import opencl_large
from parts import Part, part_of

import tensorpy as tp
from tensorpy.testing.checks import like_the_cpu
from tensorpy.testing.samples import TABLE, OpInfo
from tensorpy.testing.support import kernel_of

ROOT = Path(__file__).resolve().parent.parent
LIBRARIES = ("/usr/lib/oclgrind/liboclgrind-rt.so", "/usr/lib/x86_64-linux-gnu/oclgrind/liboclgrind-rt.so")
LOG = "OCLGRIND_LOG_OF_TENSORPY"
OPTIONS = ("--data-races", "--check-api", "--max-errors", "20", "--build-options", "-O0")


def start(library: str, tuning: str, arguments: list[str], **more: str) -> int:
    """This program once more, on oclgrind's device."""
    with tempfile.TemporaryDirectory() as folder:
        log = str(Path(folder, "log"))
        environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "TENSORPY_OPENCL_LIBRARY": library,
            "TENSORPY_OPENCL_TUNING": tuning,
            "TENSORPY_OPENCL_CACHE": "",  # a simulator's programs are no one else's
            LOG: log,
            **more,
        }
        command = ["oclgrind", "--log", log, *OPTIONS, sys.executable, __file__, *arguments]
        errors = Path(folder, "errors")  # the simulator's compiler has a line for each kernel
        with errors.open("w") as file:
            code = subprocess.run(command, cwd=ROOT, env=environment, stderr=file).returncode
        said = [
            line for line in errors.read_text().splitlines() if not re.fullmatch(r"\d+ warnings? generated\.", line)
        ]
        print(*said, sep="\n", file=sys.stderr)
        return code


def sees_races(library: str) -> bool:
    """Whether it reports a softmax whose barriers are taken out."""
    with tempfile.TemporaryDirectory() as folder:
        loader = {"TENSORPY_OPENCL_LIBRARY": str(fake_opencl.build(Path(folder))), "FAKE_OPENCL_REAL": library}
        taken_out = {"FAKE_OPENCL_BEFORE": "#define barrier(fence)\n"}
        return start(library, "gpu", ["large: softmax", "--quietly"], **loader, **taken_out) != 0


def with_kernels(part: Part | None) -> list[OpInfo]:
    found = [TABLE[name] for name in sorted(TABLE) if kernel_of(TABLE[name].op, "OpenCL")]
    return [info for info in found if part is None or part.takes(info.name)]


def of_samples(info: OpInfo, every_dtype: bool) -> str:
    """Runs an operator's samples; what went wrong, or nothing."""
    complaint = ""
    for dtype in info.some_dtypes if every_dtype else [info.main_dtype]:
        for sample in info.samples(dtype, 4 if every_dtype else 2):
            try:
                like_the_cpu(info, sample, "opencl")
            except (AssertionError, RuntimeError, TypeError, ValueError, IndexError) as error:
                complaint = complaint or f"{sample}: {type(error).__name__}: {error}"
    return complaint


def table(every_dtype: bool, quietly: bool, part: Part | None, patterns: list[str]) -> int:
    """On the device at hand; how many operators and large calls have reports."""
    tp.opencl.fallback = "allow"
    log, seen, bad, begun = Path(os.environ[LOG]), 0, 0, time.monotonic()
    runs = [(info.name, functools.partial(of_samples, info, every_dtype)) for info in with_kernels(part)]
    runs += [
        (f"large: {name}", functools.partial(opencl_large.differences, name, "opencl")) for name in opencl_large.CALLS
    ]
    runs = [run for run in runs if not patterns or any(fnmatch.fnmatchcase(run[0], p) for p in patterns)]
    for name, run in runs:
        complaint = run()
        tp.opencl.synchronize()
        text = log.read_text(errors="replace")[seen:] if log.exists() else ""
        seen += len(text)
        found = re.sub(r"\n\s*\n+", "\n", text).strip()
        bad += bool(found or complaint)
        if (found or complaint) and not quietly:
            print(f"== {name}\n{complaint}\n{found[:1500]}", flush=True)
    if not quietly:
        print(f"{len(runs)} operators and calls, {bad} with reports, {time.monotonic() - begun:.0f} s", flush=True)
        if part:
            print(part)
    return bad


def main() -> int:
    arguments = sys.argv[1:]
    if LOG in os.environ:
        patterns = [a for a in arguments if not a.startswith("--")]
        part = next((part_of(a.partition("=")[2]) for a in arguments if a.startswith("--part=")), None)
        return table("--all" in arguments, "--quietly" in arguments, part, patterns) > 0
    library = next((path for path in LIBRARIES if Path(path).exists()), None)
    if library is None or shutil.which("oclgrind") is None:
        print("oclgrind is not installed: the package is called oclgrind")
        return 1
    if not sees_races(library):
        print("oclgrind did not see the races of kernels without barriers: its silence says nothing")
        return 1
    with ThreadPoolExecutor() as threads:
        return max(threads.map(lambda tuning: start(library, tuning, arguments), ("cpu", "gpu")))


if __name__ == "__main__":
    sys.exit(main())
