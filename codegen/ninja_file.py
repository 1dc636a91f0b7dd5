"""Writes build.ninja: every C source of the tree and of the generator, found by folder.

Each folder of csrc/ is compiled with only what it may see: Python.h is on the include path of csrc/python and
gen/python alone, and `TP_FOLDER_<name>` lets a header refuse a folder. Files of csrc/cpu and gen/cpu that use TP_CAP
are compiled once per CPU capability. What depends on Python is named by its version, so that builds for several share
the rest.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from codegen import packed_relocations
from codegen.old_glibc import write_libraries

CAPABILITY_FLAGS = {
    "baseline": [],
    "avx2": ["-mavx2", "-mfma", "-mf16c", "-mbmi", "-mbmi2"],
    "avx512": [
        "-mavx512f",
        "-mavx512bw",
        "-mavx512dq",
        "-mavx512vl",
        "-mavx2",
        "-mfma",
        "-mf16c",
        "-mbmi",
        "-mbmi2",
        "-mprefer-vector-width=512",
    ],
}

COMMON = [
    "-std=gnu11",
    "-fPIC",
    "-fvisibility=hidden",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-ffp-contract=off",
    "-fno-semantic-interposition",
    "-Wall",
    "-Wextra",
    "-Wshadow",
    "-Wstrict-prototypes",
    "-Wno-unused-parameter",
    "-Werror=implicit-function-declaration",
]

# Flags for code that decides and passes arguments on: the loops are elsewhere. No call was measured to be slower than
# with -O2, which takes half as long again; calls at a function's end stay jumps, equal ends of branches are joined.
CALM = {"release": ["-O1", "-foptimize-sibling-calls", "-fcaller-saves", "-fcrossjumping"]}
CALM_FOLDERS = ("native", "python")
# Those of folders whose code is seldom on a call's way, or that a device's launch outweighs: small in a wheel, and soon
# compiled in a build that stays here.
SELDOM = {"release": ["-Os"]}
# In a wheel alone: what decides for operators whose calls are long.
LONG_CALLS = ("native/layout", "native/linalg", "native/nn")
SELDOM_FOLDERS = ("batched", "conjugate", "distributed", "functionalize", "nested", "opencl", "outside")

# Loops that take whole blocks: vectors, but no unrolled ends of loops, which are a third of the size and little time.
LOOPS = {"release": ["-O2", "-ftree-vectorize"]}
# Where the compiler knows it: what is left after the last whole vector is taken one by one, not by another vector loop
# of half the width, which would be a fifth of the size.
LOOPS_PLAIN_ENDS = ["--param=vect-epilogues-nomask=0"]
# In a build that has AVX2's loops as well, those for CPUs without it have vectors only where a loop takes whole blocks
# of them: as operators of floats do, whose time stays, in a quarter less code.
LOOPS_WHOLE_BLOCKS = ["-fvect-cost-model=very-cheap"]
# Without AVX2 all files of csrc/cpu have these flags: CPUs of before 2013 take twice as long for sums that stand in
# small arrays, in half the code. Where the CPU has vectors of AVX2 at least, -O3 takes such arrays apart into
# registers, and ends of loops are short rows, but for files that gain nothing by it and are twice as large, and those
# whose rows are long.
WITHOUT_FULL = ("cast",)
LONG_ROWS = ("extreme", "fft_loops")

# A build from source has AVX2's loops in full, and AVX-512's if this CPU has them: an image may move it to another. In
# place, where `make native` is at hand, it has those of this CPU alone. Loops for CPUs without AVX2 are left out unless
# this is one. A wheel has all, as a build with TENSORPY_CAPABILITIES=all has; =avx2 compiles those from AVX2 on, and
# with =baseline the oldest are there to be tested: right, but soon compiled.
SPARE = {"release": ["-O1"]}

# Flags for generated glue, which passes arguments on: more than -Os adds only size; no call was measured to be slower.
# That of operators is a fifth of the build's time: -O1 takes a quarter less for it than -Os, for an eighth more bytes.
GLUE = {"release": ["-Os"]}
GLUE_OPS = {**GLUE, **CALM}
# A wheel is built once and is to be small: -Os, but for families whose calls are short, which take a twentieth longer
# with it (`add` of one element 162 and 173 ns).
SHORT_CALLS = ("activation", "copy", "factory", "index", "join", "matmul", "pointwise", "reduce", "shape", "view")
LONG_OF_THESE = ("factory_like", "pointwise_bessel", "pointwise_polynomial", "pointwise_special", "view_scatter")
# Where the compiler knows it: arguments that are handed on over the stack are moved by 8 bytes, as they were written. A
# load of 16 has to wait until both halves have left the store buffer, 15 ns of `t[2, 3]`.
GLUE_TUNED = ["-mtune-ctrl=^sse_unaligned_load_optimal,^sse_unaligned_store_optimal"]
GLUE_FOLDERS = ("gen", "ops", "python")

# Under the sanitizers products of matrices take twice as long with -O0, and their loops are soon compiled.
PRODUCTS = {"asan": ["-O1"]}
PRODUCT_LOOPS = ("panels_loops", "sgemm_loops")

# A float that no integer holds has no meaning as one in C, and gcc's checks of what is undefined leave that out. Loops
# over elements convert what a tensor has, as the CPU does it; whoever decides asks first, or takes what saturates.
CASTS = {"asan": ["-fsanitize=float-cast-overflow"]}

SYMBOLS = ".debug"  # after the module's name

MODES = {
    "release": ["-O3", "-g1", "-fno-asynchronous-unwind-tables", "-ffunction-sections", "-fdata-sections"],
    "debug": ["-O1", "-g", "-DTENSORPY_DEBUG"],
    "tsan": ["-O0", "-g1", "-DTENSORPY_DEBUG", "-fsanitize=thread"],  # for a few C tests: what compiles fast
    "asan": [  # what compiles fast, too: optimized, each check of a loop would be one in every copy of its body
        "-O0",
        "-g1",
        "-DTENSORPY_DEBUG",
        "-fsanitize=address,undefined",
        "-fno-sanitize-recover=undefined",
        "-fno-omit-frame-pointer",
    ],
}


@dataclass(frozen=True)
class Options:
    root: Path
    build: Path
    compiler: str = "cc"
    mode: str = "release"
    werror: bool = False
    extra: Sequence[str] = field(default_factory=list)
    glibc: str = ""  # the oldest that the module is to run on, where that is not this machine's
    libraries: str = ""  # a folder to look for libraries in before the compiler's
    in_place: bool = False  # the module stays in the tree, where it is soon built again
    python: str = field(default_factory=lambda: sysconfig.get_paths()["include"])
    suffix: str = field(default_factory=lambda: str(sysconfig.get_config_var("EXT_SUFFIX")))

    @property
    def flags(self) -> list[str]:
        return [*COMMON, *MODES[self.mode], *(["-Werror"] if self.werror else []), *self.extra]

    @cached_property
    def triple(self) -> str:
        """What the compiler makes code for, as it says: aarch64-linux-gnu."""
        command = [*shlex.split(self.compiler), "-dumpmachine"]
        try:
            return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
        except (OSError, subprocess.CalledProcessError):
            return f"{platform.machine()}-linux-gnu"  # the build says that there is no compiler

    @property
    def machine(self) -> str:
        return self.triple.split("-")[0]

    @property
    def module(self) -> str:
        """The extension module, in the build folder."""
        return f"{'portable/' if self.glibc else ''}_C{self.suffix}"


@dataclass(frozen=True)
class Unit:
    source: Path
    object: str
    flags: tuple[str, ...]


def link_flags(options: Options) -> list[str]:
    """Flags that link the module: what no table leads to is dropped; a pointer in a table costs a bit of the file, not
    24 bytes, where linker and loader know how.
    """
    if options.mode != "release":
        return []
    version = platform.libc_ver()
    here = not options.glibc and options.machine == platform.machine()
    loads = here and version[0] == "glibc" and tuple(map(int, version[1].split("."))) >= (2, 36)
    strip = [] if splits_symbols(options) else ["-s"]
    return ["-Wl,--gc-sections", "-Wl,-O1", *strip, *([packed_relocations.LINK] if loads and _packs(options) else [])]


def _packs(options: Options) -> bool:
    """Whether the linker writes pointers as bits."""
    return _takes(options, "-shared", packed_relocations.LINK, "-Wl,--fatal-warnings")


def _packs_for_old(options: Options) -> bool:
    """Whether the module mends such pointers itself, for loaders of an older glibc."""
    return options.mode == "release" and bool(options.glibc) and _packs(options)


def _takes(options: Options, *flags: str) -> bool:
    """Whether the compiler makes a file with these flags, and has nothing to say: a linker passes over some of them."""
    probe = [*shlex.split(options.compiler), *flags, "-x", "c", os.devnull, "-o", os.devnull]
    done = subprocess.run(probe, capture_output=True)
    return done.returncode == 0 and not done.stderr


def _glue(options: Options) -> dict[str, list[str]]:
    """Flags by folder."""
    tuned = _release_flags(options, GLUE_TUNED)
    flags = {"gen": GLUE_OPS, "ops": GLUE_OPS, "python": GLUE, "long": GLUE}
    return {folder: [*modes.get(options.mode, []), *tuned] for folder, modes in flags.items()}


def _release_flags(options: Options, flags: list[str]) -> list[str]:
    """Flags of a release's, if the compiler takes them."""
    return flags if options.mode == "release" and _takes(options, "-c", *flags) else []


def _objcopy(options: Options) -> str | None:
    """The one that belongs to the compiler, which may be another machine's."""
    command = [*shlex.split(options.compiler), "-print-prog-name=objcopy"]
    return shutil.which(subprocess.run(command, capture_output=True, text=True).stdout.strip() or "objcopy")


def splits_symbols(options: Options) -> bool:
    """Whether names and lines go to a file of their own beside the module, where gdb and perf look for them."""
    return options.mode == "release" and _objcopy(options) is not None


def _link(options: Options) -> str:
    """The command. A file of its own for the symbols is named in the module by name and checksum (.gnu_debuglink)."""
    libraries = [f"-L{options.libraries}"] if options.libraries else []
    after = []
    if options.glibc:
        folder = options.build / f"glibc-{options.glibc}"
        libraries += write_libraries(folder, options.compiler, options.glibc)
        if _packs_for_old(options):
            libraries += packed_relocations.write(folder, options.compiler)
            after = [f"{shlex.join([sys.executable, packed_relocations.__file__])} $out"]
    link = (
        f"{options.compiler} $cflags {shlex.join(link_flags(options))} -shared -o $out @$out.rsp "
        f"{shlex.join(libraries)} -fopenmp -lm -lpthread -ldl"
    )
    objcopy = _objcopy(options)
    if not splits_symbols(options):
        return " && ".join([link, *after])
    return " && ".join(
        [
            link,
            f"{objcopy} --only-keep-debug --compress-debug-sections $out $out{SYMBOLS}",
            f"{objcopy} --strip-all --add-gnu-debuglink=$out{SYMBOLS} $out",
            *after,
        ]
    )


_PER_CAPABILITY = re.compile(r"^[^/\n]*\bTP_CAP\(", re.M)  # it defines what is named after the capability
_NAMES_LEVELS = re.compile(r"\bTP_(AVX512|AVX2|BASELINE|WITHOUT_\w+)\b")  # it is another file where loops are left out
_WITH_THREADS = re.compile(r"^#include <omp\.h>", re.M)


@dataclass(frozen=True)
class Capabilities:
    """What loops are compiled for: in full, or spare, which is small and soon compiled."""

    compiled: tuple[str, ...]
    spare: frozenset[str] = frozenset()


def capabilities(options: Options) -> Capabilities:
    """A build from source has loops of the CPU that builds, and AVX2's, unless it stays in its place."""
    if options.machine != "x86_64":
        return Capabilities(("baseline",))
    every = tuple(CAPABILITY_FLAGS)
    here = not options.glibc and platform.machine() == "x86_64"
    asked = os.environ.get("TENSORPY_CAPABILITIES", "")
    if not here or asked == "all":
        return Capabilities(every)
    try:
        has = set(re.findall(r"\bavx2\b|\bavx512bw\b", Path("/proc/cpuinfo").read_text()))
    except OSError:
        return Capabilities(every)
    newest = ("avx512",) if "avx512bw" in has else ()
    if newest and options.in_place and asked not in ("avx2", "baseline"):
        return Capabilities(newest)
    if "avx2" in has and asked != "baseline":
        return Capabilities(("avx2", *newest))
    return Capabilities(("baseline", "avx2", *newest), frozenset({"baseline"} if "avx2" in has else ()))


def _release(root: Path) -> str:
    """The version that pyproject.toml says."""
    path = root / "pyproject.toml"
    found = re.search(r'^version = "([^"]+)"', path.read_text(), re.M) if path.exists() else None
    return found[1] if found else "unknown"


def _include(options: Options) -> list[Path]:
    return [options.root / "csrc", options.root / "csrc/include", options.build / "gen"]


def _seen_from(options: Options, path: Path) -> str:
    """A path from the build folder: a copy of the tree with its build folder has nothing to compile again."""
    return os.path.relpath(path, options.build)


def _units(options: Options) -> tuple[list[Unit], list[Unit]]:
    """The library's units, and those of the Python module."""
    library: list[Unit] = []
    module: list[Unit] = []
    include = [f"-I{_seen_from(options, folder)}" for folder in _include(options)]
    # Its headers ask of each tuple whether it is one, and end the process: in a release nobody asks.
    python = ["-I" + options.python, *(["-DNDEBUG"] if options.mode == "release" else [])]
    version = options.suffix.strip(".").removesuffix(".so")
    csrc, gen = options.root / "csrc", options.build / "gen"
    glue = _glue(options)
    plain_ends, whole_blocks = (_release_flags(options, each) for each in (LOOPS_PLAIN_ENDS, LOOPS_WHOLE_BLOCKS))
    loops = [*LOOPS.get(options.mode, []), *plain_ends]
    for_cpus = capabilities(options)
    left_out = [c for c in CAPABILITY_FLAGS if options.machine == "x86_64" and c not in for_cpus.compiled]
    for source in sorted(csrc.rglob("*.c")) + sorted(gen.rglob("*.c")):
        generated = gen in source.parents
        stem = source.relative_to(gen if generated else csrc).with_suffix("")
        folder = stem.parts[0] if stem.parent.name else gen.name
        name = f"gen/{stem}" if generated else str(stem)
        seen = [f"-I{_seen_from(options, gen)}/seen/{stem}"]  # codegen/emit_seen.py
        flags = [*([] if generated else seen), *include, f"-DTP_FOLDER_{folder}"]
        if not generated and folder != "cpu":
            flags += CASTS.get(options.mode, [])
        if folder == "outside":
            flags.append(f'-DTENSORPY_RELEASE="{_release(options.root)}"')
        if generated and folder in GLUE_FOLDERS:
            is_short = source.stem.startswith(SHORT_CALLS) and source.stem not in LONG_OF_THESE
            is_long = folder != "python" and options.glibc and not is_short
            flags += ["-fwrapv", *glue["long" if is_long else folder]]  # a formula's sum of two huge sizes is no size
        elif folder in CALM_FOLDERS:
            is_seldom = options.glibc and stem.parent.as_posix() in LONG_CALLS
            flags += (SELDOM if is_seldom else CALM).get(options.mode, [])
        elif folder in SELDOM_FOLDERS:
            flags += (SELDOM if options.glibc else CALM).get(options.mode, [])
        text = source.read_text()
        if folder == "python":
            module.append(Unit(source, f"obj/{version}/{name}.o", tuple(flags + python)))
        elif folder == "cpu" and "TP_CAP(" in text and _PER_CAPABILITY.search(text):
            for capability in for_cpus.compiled:
                extra = [*CAPABILITY_FLAGS[capability], f"-DTP_CAPABILITY={capability}"]
                if source.stem in PRODUCT_LOOPS:
                    extra += PRODUCTS.get(options.mode, [])
                old = capability == "baseline" and len(for_cpus.compiled) > 1
                kind = capability
                if capability in for_cpus.spare and options.mode in SPARE:
                    extra += SPARE[options.mode]
                    kind += ".spare"
                elif generated or old:
                    extra += loops + (whole_blocks if old else [])
                elif source.stem in WITHOUT_FULL:
                    extra += LOOPS.get(options.mode, [])
                elif source.stem in LONG_ROWS:
                    extra += plain_ends
                library.append(Unit(source, f"obj/{name}.{kind}.o", tuple(flags + extra)))
        elif left_out and _NAMES_LEVELS.search(text):
            flags += [f"-DTP_WITHOUT_{capability.upper()}" for capability in left_out]
            library.append(Unit(source, f"obj/{name}.without_{'_'.join(left_out)}.o", tuple(flags)))
        elif _WITH_THREADS.search(text):
            library.append(Unit(source, f"obj/{name}.o", (*flags, "-fopenmp")))
        else:
            library.append(Unit(source, f"obj/{name}.o", tuple(flags)))
    return library, module


def _escape(path: object) -> str:
    return str(path).replace("$", "$$").replace(" ", "$ ").replace(":", "$:")


def write_ninja(options: Options) -> Path:
    library, module = _units(options)
    target = options.module
    lines = [
        "builddir = .",
        f"cflags = {shlex.join(options.flags)}",
        "rule cc",
        f"  command = {options.compiler} -MMD -MF $out.d $cflags $flags -c $in -o $out",
        "  depfile = $out.d",
        "  deps = gcc",
        "  description = $in",
        "rule ar",
        "  command = rm -f $out && ar qcs $out @$out.rsp",
        "  rspfile = $out.rsp",
        "  rspfile_content = $in_newline",
        "rule link",
        f"  command = {_link(options)}",
        "  description = $out",
        "  rspfile = $out.rsp",
        "  rspfile_content = $in_newline",
        "rule program",
        f"  command = {options.compiler} $cflags $flags -o $out $in -fopenmp -lm -lpthread -ldl",
        "",
    ]
    for unit in library + module:
        lines.append(f"build {unit.object}: cc {_escape(_seen_from(options, unit.source))}")
        lines.append(f"  flags = {shlex.join(unit.flags)}")
    objects = " ".join(u.object for u in library)
    lines.append(f"build libtensorpy.a: ar {objects}")
    linked = f" | glibc-{options.glibc}/inline.o" if options.glibc else ""
    linked += f" glibc-{options.glibc}/relocate.o" if _packs_for_old(options) else ""
    lines.append(f"build {target}: link {' '.join(u.object for u in library + module)}{linked}")
    tests = []
    include = [_seen_from(options, folder) for folder in [*_include(options), options.root / "tests/c"]]
    for source in sorted((options.root / "tests/c").glob("test_*.c")):
        tests.append(f"ctest/{source.stem}")
        lines.append(f"build {tests[-1]}: program {_escape(_seen_from(options, source))} libtensorpy.a")
        lines.append(f"  flags = {shlex.join(f'-I{folder}' for folder in include)}")
    lines.append(f"build ctests: phony {' '.join(tests)}")
    lines.append(f"default {target}")
    options.build.mkdir(parents=True, exist_ok=True)
    path = options.build / "build.ninja"
    text = "\n".join(lines) + "\n"
    if not path.exists() or path.read_text() != text:
        path.write_text(text)
    commands = [
        {
            "directory": str(options.build),
            "file": str(u.source),
            "command": shlex.join([*shlex.split(options.compiler), *options.flags, *u.flags, "-c", str(u.source)]),
        }
        for u in library + module
    ]
    (options.build / "compile_commands.json").write_text(json.dumps(commands, indent=1))
    return options.build / target
