"""Cross-compiles the wheel for AArch64 and runs tests of it under qemu: the C tests, and a part of the operator table.

    python tests/run_aarch64.py [--part=1/3] [--no-ctests] [pytest's arguments]

The machine that it runs on is a Debian root folder in build/aarch64/root, fetched by debootstrap and unpacked, whose
programs qemu's user mode runs one by one. A program there cannot start another one, so tests that do are left out.
What compiles is CC, or Debian's cross compiler.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))
WORK = ROOT / "build" / "aarch64"
MACHINE = WORK / "root"
SUITE = "bookworm"
PYTHON = "python3.11"  # the suite's; the build runs on the same version
PACKAGES = f"{PYTHON},lib{PYTHON}-dev,libgomp1"
NEEDED = ["numpy", "pytest", "hypothesis", "PyYAML", "scipy", "scipy-openblas32"]
# The tree as tests see it, without the package, which is the wheel's.
BESIDE = ("tests", "codegen", "yaml", "docs", "examples", "benchmarks", "csrc", "pyproject.toml", "setup.py")
# qemu's own choice has vectors of 2048 bits (SVE), for which OpenBLAS picks kernels that multiply wrongly there.
CPU = "neoverse-n1"
TABLE = ["tests/operators/test_table.py", "tests/operators/test_libmvec.py"]


def say(text: str) -> None:
    print(f"== {text} ({time.strftime('%M:%S', time.gmtime(time.monotonic() - START))})", flush=True)


def run(command: Sequence[object], **environment: str) -> None:
    subprocess.run([str(part) for part in command], check=True, cwd=ROOT, env={**os.environ, **environment})


def unpack_machine() -> None:
    """Packages are unpacked, not set up: nothing in them is run."""
    if (MACHINE / "usr/bin" / PYTHON).exists():
        return
    shutil.rmtree(MACHINE, ignore_errors=True)
    flags = ["--foreign", "--arch=arm64", "--variant=minbase", f"--include={PACKAGES}"]
    log = WORK / "debootstrap.log"
    WORK.mkdir(parents=True, exist_ok=True)
    with log.open("w") as file:
        subprocess.run(["debootstrap", *flags, SUITE, MACHINE], check=True, stdout=file)
    for package in sorted((MACHINE / "var/cache/apt/archives").glob("*.deb")):
        run(["dpkg", "-x", package, MACHINE])


def build(dist: Path) -> Path:
    """The wheel; this runs on the Python version that the machine has."""
    environment = {"CC": os.environ.get("CC", "aarch64-linux-gnu-gcc"), "PYTHONPATH": str(ROOT)}
    run([sys.executable, "-m", "codegen.wheels", "--root", MACHINE, "--dist", dist], **environment)
    return max(dist.glob("*aarch64.whl"), key=lambda path: path.stat().st_mtime)


def ctests() -> list[Path]:
    """The C tests, linked with what the wheel was made of."""
    from codegen.wheels import other_machine

    settings = other_machine(MACHINE, ROOT / "build" / "wheels")
    settings["CC"] = os.environ.get("CC", "aarch64-linux-gnu-gcc")
    run([sys.executable, "setup.py", "native", "ctests"], **settings)
    return [path for path in sorted((ROOT / "build/release-aarch64/ctest").glob("test_*")) if path.suffix != ".d"]


def emulated(command: Sequence[object], folder: Path, **environment: str) -> int:
    emulator = ["qemu-aarch64-static", "-cpu", CPU, "-L", MACHINE]
    given = {name: value for name, value in os.environ.items() if name not in ("LD_LIBRARY_PATH", "OPENBLAS_CORETYPE")}
    words = [str(part) for part in [*emulator, *command]]
    return subprocess.run(words, cwd=folder, env={**given, **environment}).returncode


def install(wheel: Path, site: Path) -> None:
    target = [word for minor in range(17, 29) for word in ("--platform", f"manylinux_2_{minor}_aarch64")]
    target += ["--platform", "manylinux2014_aarch64", "--only-binary=:all:"]
    target += ["--python-version", PYTHON.removeprefix("python"), "--target", site]
    shutil.rmtree(site, ignore_errors=True)
    run([sys.executable, "-m", "pip", "install", "-q", *target, *NEEDED])
    run([sys.executable, "-m", "pip", "install", "-q", "--no-deps", *target, wheel])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", default="1/3", help="of the operator table")
    parser.add_argument("--no-ctests", action="store_true")
    options, given = parser.parse_known_args()
    say("the machine")
    unpack_machine()
    say("the wheel")
    wheel = build(ROOT / "dist")
    failed = []
    if not options.no_ctests:
        say("C tests")
        for program in ctests():
            if emulated([program], WORK) != 0:
                failed.append(program.name)
    say("what the tests need")
    site, place = WORK / "site", WORK / "run"
    install(wheel, site)
    place.mkdir(exist_ok=True)
    for name in BESIDE:
        if not (place / name).exists():
            (place / name).symlink_to(ROOT / name)
    say("tests")
    tests = [word for word in given if word.startswith("tests/")] or TABLE
    words = [word for word in given if not word.startswith("tests/")]
    pytest = ["-m", "pytest", "-q", "-p", "no:cacheprovider", f"--part={options.part}", *words, *tests]
    # The part alone, without the families that changed: qemu takes twenty times as long.
    environment = {"PYTHONPATH": str(site), "OMP_NUM_THREADS": "2", "TENSORPY_BASE": "HEAD"}
    if emulated([MACHINE / "usr/bin" / PYTHON, *pytest], place, **environment) != 0:
        failed.append("pytest")
    say(f"failed: {', '.join(failed)}" if failed else "all passed")
    return bool(failed)


START = time.monotonic()
if __name__ == "__main__":
    sys.exit(main())
