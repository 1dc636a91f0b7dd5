"""Builds tensorpy: runs the generator, writes build.ninja, runs ninja.

TENSORPY_BUILD picks release (the default), debug or asan; TENSORPY_WERROR=1 makes warnings errors; CC the compiler;
TENSORPY_CFLAGS adds flags; TENSORPY_CAPABILITIES=all compiles the loops of all CPUs, as a wheel has them, and =avx2
those from AVX2 on; TENSORPY_NATIVE=beside leaves an editable install without the module, which `setup.py native` makes
in another process. For modules that go to other machines (codegen/wheels.py): TENSORPY_GLIBC is the oldest glibc that
they are to run on, TENSORPY_LIBRARIES a folder to look for libraries in, TENSORPY_PYTHON_INCLUDE where another
machine's Python.h is.
"""

from __future__ import annotations

import gzip
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from setuptools import Extension, find_packages, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py
from setuptools.command.editable_wheel import editable_wheel

if TYPE_CHECKING:
    from codegen.ninja_file import Options

ROOT = Path(__file__).parent.resolve()
sys.path.insert(0, str(ROOT))


def ninja_command() -> list[str]:
    try:
        import ninja
    except ImportError:
        return ["ninja"]
    return [str(Path(ninja.BIN_DIR) / "ninja")]


def generate_into(out: Path) -> None:
    """What the YAML makes, unless it lies there already; what another mode's build has of the same YAML is copied."""
    from codegen import stamp

    inputs = stamp.digest(ROOT)
    if stamp.is_fresh(out, inputs):
        return
    from codegen.__main__ import generate, load_catalog, write_changed
    from codegen.errors import YamlError, YamlErrors
    from codegen.sources import check_sources

    files = stamp.built(ROOT, inputs)
    try:
        if not files:
            catalog = load_catalog(ROOT / "yaml")
            check_sources(catalog, ROOT / "csrc")
            files = generate(catalog, fork=True)
    except (YamlError, YamlErrors) as error:
        sys.exit(str(error))
    write_changed(out, files)
    stamp.write(out, inputs, files)


def refuse(options: Options) -> None:
    from codegen.platforms import this_platform, why_not

    if reason := why_not(this_platform(options.triple)):
        sys.exit(f"tensorpy: {reason}; docs/deployment.md says what stands in the way")


def build_native(targets: tuple[str, ...] = (), in_place: bool = True) -> Path:
    """Generates and compiles; returns the extension module's path in the build tree. In place, it is for this CPU."""
    from codegen.ninja_file import Options, write_ninja

    mode = os.environ.get("TENSORPY_BUILD", "release")
    options = Options(
        root=ROOT,
        build=ROOT / "build" / mode,
        compiler=os.environ.get("CC", "cc"),
        mode=mode,
        werror=os.environ.get("TENSORPY_WERROR", "") == "1",
        extra=shlex.split(os.environ.get("TENSORPY_CFLAGS", "")),
        glibc=os.environ.get("TENSORPY_GLIBC", ""),
        libraries=os.environ.get("TENSORPY_LIBRARIES", ""),
        in_place=in_place,
    )
    if python := os.environ.get("TENSORPY_PYTHON_INCLUDE", ""):
        options = replace(options, python=python)
    # What is for others' machines has a folder of its own: a build in place may run at the same time.
    folder = mode + ("-portable" if options.glibc else "")
    if options.machine != platform.machine():
        folder += f"-{options.machine}"
    options = replace(options, build=ROOT / "build" / folder)
    refuse(options)
    began = time.monotonic()
    generate_into(options.build / "gen")
    module = write_ninja(options)
    first = not module.exists() and not targets
    if first:
        print(estimate((options.build / "build.ninja").read_text().count(": cc ")), flush=True)
    status = {"NINJA_STATUS": "[%f/%t, %es] "} | os.environ
    if subprocess.run([*ninja_command(), "-C", str(options.build), *targets], env=status).returncode != 0:
        sys.exit("tensorpy: the C build failed; the compiler's message is above")
    if first:
        print(f"tensorpy: compiled in {duration(time.monotonic() - began)}", flush=True)
    return module


CPU_SECONDS = 0.4  # of a file, on a core of 2023


def estimate(files: int) -> str:
    """What a first build says before it begins."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    takes = duration(files * CPU_SECONDS / cores)
    return f"tensorpy: compiling {files} files on {cores} cores, which takes about {takes} if they are idle"


def duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.1f} minutes"


def install(built: Path, folder: Path) -> None:
    """Copies the module, its docstrings, the stubs and the generated header into the package; what may be loaded or
    mapped by a rename."""
    folder.mkdir(parents=True, exist_ok=True)
    for source in (generated(built) / "_C.help", built):
        fresh = folder / (source.name + ".new")
        shutil.copyfile(source, fresh)
        fresh.replace(folder / source.name)
    install_stubs(built, folder)
    headers = folder / "include" / "tensorpy"
    headers.mkdir(parents=True, exist_ok=True)
    (headers / "RegistrationDeclarations.h").unlink(missing_ok=True)  # `python -m tensorpy.codegen --file` writes it
    shutil.copyfile(generated(built) / "RegistrationMinimal.h", headers / "RegistrationMinimal.h")


def generated(built: Path) -> Path:
    """The folder with what the YAML makes, beside a built module or above it."""
    return next(folder / "gen" for folder in built.parents if (folder / "gen").is_dir())


def install_stubs(built: Path, folder: Path) -> None:
    from codegen.emit_package_stub import emit_package_stub

    for stub in generated(built).glob("*.pyi"):  # beside the module, or in the package, that it is of
        package = folder / stub.stem
        (package / "__init__.pyi" if package.is_dir() else folder / stub.name).write_text(stub.read_text())
    extension = (generated(built) / "_C.pyi").read_text()
    (folder / "__init__.pyi").write_text(emit_package_stub(ROOT / "tensorpy", extension))


def install_symbols(built: Path) -> None:
    """Into the tree, where gdb and perf find them beside the module; a wheel has none."""
    from codegen.ninja_file import SYMBOLS

    symbols = built.with_name(built.name + SYMBOLS)
    if symbols.exists():
        shutil.copyfile(symbols, ROOT / "tensorpy" / symbols.name)


class NinjaBuild(build_ext):
    def run(self) -> None:
        if not (self.editable_mode and os.environ.get("TENSORPY_NATIVE") == "beside"):
            super().run()

    def build_extension(self, ext: Extension) -> None:
        editable = bool(getattr(self, "editable_mode", False))
        built = build_native(in_place=editable)
        install(built, Path(self.get_ext_fullpath(ext.name)).parent)
        if editable:
            install_stubs(built, ROOT / "tensorpy")
            install_symbols(built)


# What an entry says for help(), up to the next key of its own; _C.help has it, and the stubs.
SAID_FOR_HELP = re.compile(r"^  (?:doc|arguments|returns|raises|example):.*\n(?:    .*\n|\n)*|^#.*\n", re.M)


class Package(build_py):
    """The installed entries, which projects' own formulas are checked by, are without what help() says: 0.15 MB. Their
    lines stay where they are. PyTorch's names, which are seldom asked for, are compressed: 0.08 MB."""

    def build_package_data(self) -> None:
        super().build_package_data()
        for path in Path(self.build_lib, "tensorpy", "yaml", "native_functions").glob("*.yaml"):
            path.write_text(SAID_FOR_HELP.sub(lambda said: "\n" * said[0].count("\n"), path.read_text()))
        for names in Path(self.build_lib).glob("tensorpy/_as_torch/names.txt"):
            names.with_suffix(".txt.gz").write_bytes(gzip.compress(names.read_bytes(), mtime=0))
            names.unlink()


class EditableWheel(editable_wheel):
    """An editable install that editors and type checkers find: they read paths, but run no finder.

    setuptools makes a finder, since what BESIDE names lies elsewhere; the path of the tree stands beside it.
    """

    def _select_strategy(self, *args: Any, **kwargs: Any) -> Any:
        strategy = super()._select_strategy(*args, **kwargs)
        return strategy if self.mode else WithPath(strategy)


class WithPath:
    """A strategy of setuptools', and a .pth with the path of the tree."""

    def __init__(self, strategy: Any) -> None:
        self.strategy = strategy

    def __enter__(self) -> WithPath:
        self.strategy.__enter__()
        return self

    def __exit__(self, *how: Any) -> Any:
        return self.strategy.__exit__(*how)

    def __call__(self, wheel: Any, *args: Any) -> None:
        self.strategy(wheel, *args)
        wheel.writestr("tensorpy_source.pth", f"{ROOT}\n")


# What lies beside the package in the tree and is installed inside it.
BESIDE = {
    "tensorpy.codegen": "codegen",
    "tensorpy.yaml": "yaml",
    "tensorpy.yaml.native_functions": "yaml/native_functions",
    "tensorpy.yaml.derivatives": "yaml/derivatives",
    "tensorpy.include": "csrc/include",
    "tensorpy.include.tensorpy": "csrc/include/tensorpy",
}

if __name__ == "__main__":
    if sys.argv[1:2] == ["native"]:  # make native: rebuild in place, without pip
        built = build_native(tuple(sys.argv[2:]))
        if not sys.argv[2:]:
            install(built, ROOT / "tensorpy")
            install_symbols(built)
    else:
        setup(
            ext_modules=[Extension("tensorpy._C", sources=[])],
            cmdclass={"build_ext": NinjaBuild, "build_py": Package, "editable_wheel": EditableWheel},
            # The generator, the YAML and the public headers are installed too: outside projects use the same ones.
            packages=[*find_packages(include=["tensorpy*"]), *BESIDE],
            package_dir=BESIDE,
            package_data={
                "tensorpy": ["*.pyi", "py.typed"],
                "tensorpy._as_torch": ["names.txt", "reasons.txt", "path/*/*.py", "path/*/METADATA"],
                "tensorpy._inductor": ["settings.txt"],
                **{name: ["*.yaml"] for name in BESIDE if name.startswith("tensorpy.yaml")},
                "tensorpy.include.tensorpy": ["*.h", "*.inc"],
            },
        )
