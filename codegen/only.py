"""`python -m codegen --only digits.plan --out build/only`: libtensorpy_only.a, with what saved plans call and no more.

With `--device opencl` it runs them on OpenCL: the kernels' sources that they need, and of the CPU's what copies.

A library that a C program links in libtensorpy.a's place (tensorpy/plan.h): the tables of primitives, programs and
kernels' families name only what the plans need, so that the linker drops all else. The objects are those of a build
(`python setup.py native libtensorpy.a`); four tables are compiled anew, and what converts dtypes that are formats of
memory only, where the plans have none. A file of names, a line each (prim::product, add.Tensor), stands for a plan.
"""

from __future__ import annotations

import json
import re
import shlex
import struct
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from . import emit_opencl_sources
from .catalog import Catalog
from .emit_pointwise_cpu import emit_table
from .emit_primitives import emit_primitives_c
from .emit_reduction_cpu import emit_table as emit_reduction_table
from .errors import suggest
from .pointwise import with_cases
from .primitives import NAMESPACE, Primitive
from .sources import files_of_kernels

MAGIC = b"tpplan1\0"
WITHOUT_OPENCL = """\
#include "core/error.h"
#include "embed/parts.h"
int tp_embed_find(const char *name, tp_device *device) {
    if (tp_device_parse(name, device) < 0) return -1;
    return device->type == TP_DEVICE_CPU ? 0 : tp_fail(TP_RuntimeError, "this library has no %.40s: it was made "
           "by python -m codegen --only without --device opencl", name);
}
"""
ALWAYS = ("copy", "fill")  # what the library itself calls
FUSED = ("fused.map", "fused.reduce")  # what calls of map are joined to, on OpenCL, and on the CPU
LEAST_JOINED = 64 << 10  # where a tensor has so many bytes (csrc/plan/fuse.c)
ROOTS = "open open_on read read_on close inputs outputs input output run error".split()  # tp_plan_*


class OnlyError(Exception):
    """A file or a build that cannot be used, and what to do."""


ANY_DTYPE = 1 << 30  # beyond all numbers: a list of names says none


@dataclass
class Needs:
    primitives: set[str]
    programs: set[str]
    dtypes: set[int]  # of tensors, by their numbers


# ---- what is needed ----


class _Reader:
    """The words of a saved plan (csrc/plan/saved.h)."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 24
        self.dtypes: set[int] = set()

    def number(self) -> int:
        (value,) = struct.unpack_from("<q", self.data, self.at)
        self.at += 8
        return int(value)

    def text(self) -> str:
        length = self.number()
        text = self.data[self.at : self.at + length].decode("ascii")
        self.at += (length + 8) // 8 * 8
        return text

    def tensor(self) -> None:
        _slot, dtype, _flags, ndim, _offset = (self.number() for _ in range(5))
        self.dtypes.add(dtype)
        self.at += 16 * ndim

    def scalar(self) -> None:
        is_complex = self.number() == 4
        self.at += 16 if is_complex else 8

    def value(self, name: str) -> str | None:
        """Passes over one, and gives the name of the program that it is."""
        match self.number():
            case 0 | 17:
                pass
            case 1:
                self.tensor()
            case 2:
                for _ in range(self.number()):
                    if self.number():
                        self.tensor()
            case 4:
                self.scalar()
            case 13:
                for _ in range(self.number()):
                    self.scalar()
            case 10 | 11 | 12:
                count = self.number()
                self.at += 8 * count
            case 9:
                self.text()
            case _:
                self.at += 8
                if name == "program":
                    return self.text()
        return None


def _needs_of_plan(data: bytes, primitives: dict[str, Primitive]) -> Needs:
    reader = _Reader(data)
    needs = Needs(set(), set(), reader.dtypes)
    slots, arguments, results, calls = (reader.number() for _ in range(4))
    places = [(reader.number(), reader.number()) for _ in range(slots)]  # bytes, and 0 for what is made
    if any(size >= LEAST_JOINED and not kind for size, kind in places):
        needs.primitives |= set(FUSED)
    for _ in range(arguments + results):
        reader.tensor()
    for _ in range(calls):
        name = reader.text().removeprefix(f"{NAMESPACE}::")
        needs.primitives.add(name)
        for argument in primitives[name].schema.arguments:
            program = reader.value(argument.name)
            needs.programs |= {program} if program else set()
    return needs


def _needs_of_list(text: str) -> Needs:
    words = {line.partition("#")[0].strip() for line in text.splitlines()} - {""}
    named = {word.removeprefix(f"{NAMESPACE}::") for word in words if word.startswith(f"{NAMESPACE}::")}
    return Needs(named, {word for word in words if not word.startswith(f"{NAMESPACE}::")}, {ANY_DTYPE})


def read_needs(paths: Sequence[Path], catalog: Catalog) -> Needs:
    """What plans and lists name together; OnlyError for a name that is none's."""
    primitives = {p.name: p for p in catalog.primitives}
    programs = {op.name for op in with_cases(catalog.pointwise())} | {op.name for op in catalog.reductions()}
    all_of_them = Needs(set(), set(), set())
    for path in paths:
        try:
            data = path.read_bytes()
            needs = _needs_of_plan(data, primitives) if data.startswith(MAGIC) else _needs_of_list(data.decode())
        except OSError as error:
            raise OnlyError(f"{path} cannot be read: {error.strerror}") from error
        except (struct.error, KeyError, UnicodeDecodeError) as error:
            raise OnlyError(f"{path}: neither a saved plan of this release nor a list of names") from error
        for name, known in [(n, primitives) for n in needs.primitives] + [(n, programs) for n in needs.programs]:
            if name not in known:
                raise OnlyError(f"{path}: there is no '{name}'\n  fix: {suggest(name, known, 'name what is there')}")
        all_of_them.primitives |= needs.primitives
        all_of_them.programs |= needs.programs
        all_of_them.dtypes |= needs.dtypes
    return all_of_them


# ---- the tables ----


def tables(needs: Needs, catalog: Catalog, csrc: Path, device: str) -> dict[str, str]:
    """File name -> text of what stands in the place of the generated tables."""
    on_cpu = set(ALWAYS) if device == "opencl" else needs.primitives | set(ALWAYS)
    on_opencl = needs.primitives | {*ALWAYS, *FUSED} if device == "opencl" else set()

    def chosen(p: Primitive) -> Primitive:
        keys = {"CPU": p.name in on_cpu, "OpenCL": p.name in on_opencl}
        backends = tuple(key for key in p.backends if keys[key])
        return replace(p, backends=backends, shortcuts=tuple(key for key in p.shortcuts if key in backends))

    primitives = [chosen(p) for p in catalog.primitives]
    loops = device == "cpu"
    files = {"Primitives.c": emit_primitives_c(primitives, files_of_kernels(catalog, csrc), on_cpu | on_opencl)}
    files |= emit_table(catalog.pointwise(), only=needs.programs, loops=loops)
    files |= emit_reduction_table([op for op in catalog.reductions() if op.name in needs.programs], kernels=loops)
    return files if device == "opencl" else {**files, "opencl.c": WITHOUT_OPENCL}


def sources(objects: Objects, roots: Iterable[str], csrc: Path, programs: str) -> dict[str, str]:
    """The texts of the OpenCL kernels that are reached, and the math helpers that `programs` call."""
    kernels = objects.build / "obj" / "opencl" / "kernels"
    reached = [csrc / "opencl" / "kernels" / f"{p.stem}.c" for p in objects.reached(roots) if p.parent == kernels]
    names = {name for path in reached for name in re.findall(r'"(\w+\.cl)"', path.read_text())}
    special = any(f"TP_STEP_{name.upper()}" in programs for name in emit_opencl_sources.special_functions(csrc))
    return emit_opencl_sources.emit(csrc, names, special=special)


def without_stored(needs: Needs, csrc: Path) -> dict[str, str]:
    """cpu/cast_stored.c without its loops, where no tensor has a dtype that is a format of memory only."""
    header = (csrc / "include" / "tensorpy" / "types.h").read_text()
    computed = header.partition("#define TP_FORALL_STORED_DTYPES")[0].count("    X(")
    if any(dtype >= computed for dtype in needs.dtypes):
        return {}
    return {"cast_stored.c": "#define TP_WITHOUT_STORED\n" + (csrc / "cpu" / "cast_stored.c").read_text()}


def choice_of_kernels(families: Iterable[str], csrc: Path) -> str:
    """cpu/select.c with these families alone."""
    rows = " ".join(f"X({name})" for name in sorted(families))
    head = f'#include "cpu/kernels.h"\n#undef TP_FORALL_CPU_FAMILIES\n#define TP_FORALL_CPU_FAMILIES(X) {rows}\n'
    return head + (csrc / "cpu" / "select.c").read_text()


# ---- the objects ----


class Objects:
    """The objects of a build, by what they define and ask for."""

    def __init__(self, build: Path) -> None:
        self.build = build
        self.defined: dict[str, Path] = {}
        self.wants: dict[Path, set[str]] = {}
        paths = sorted(p for p in (build / "obj").rglob("*.o") if "cpython" not in str(p.relative_to(build)))
        if not paths or not (build / "libtensorpy.a").exists():
            raise OnlyError(f"{build}: there is no libtensorpy.a\n  fix: python setup.py native libtensorpy.a")
        line = (build / "build.ninja").read_text().partition("build libtensorpy.a: ar ")[2].partition("\n")[0]
        listed = set(line.split())
        self.add([p for p in paths if str(p.relative_to(build)) in listed])

    def add(self, paths: Sequence[Path]) -> None:
        """Those that come later stand for those before."""
        command = ["nm", "-A", "-g", "-P", *map(str, paths)]
        for line in subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines():
            place, name, kind, *_ = line.split()
            path = Path(place.rstrip(":"))
            if kind == "U":
                self.wants.setdefault(path, set()).add(name)
            else:
                self.defined[name] = path

    def reached(self, roots: Iterable[str]) -> set[Path]:
        waiting, found = list(roots), set[Path]()
        while waiting:
            path = self.defined.get(waiting.pop())
            if path is not None and path not in found:
                found.add(path)
                waiting += self.wants.get(path, ())
        return found


_CALLS = re.compile(r"\btp_cpu\.(\w+)")
_INCLUDES = re.compile(r'^#include "(cpu/[\w.]+)"', re.M)


def _families_of(source: Path, csrc: Path, seen: set[Path]) -> Iterator[str]:
    if source in seen or not source.exists():
        return
    seen.add(source)
    text = source.read_text()
    yield from _CALLS.findall(text)
    for header in _INCLUDES.findall(text):
        yield from _families_of(csrc / header, csrc, seen)


def families(objects: Objects, roots: Iterable[str], csrc: Path) -> set[str]:
    """The families of kernels that the objects which are reached call, of a build or compiled anew."""
    seen: set[Path] = set()
    names: set[str] = set()
    for path in objects.reached(roots):
        if path.parent == objects.build / "obj" / "cpu" or objects.build not in path.parents:
            names |= set(_families_of(csrc / "cpu" / f"{path.name.partition('.')[0]}.c", csrc, seen))
    return names


def _commands(build: Path) -> dict[str, list[str]]:
    """By the source's end: how it is compiled, but for the source."""
    listed = json.loads((build / "compile_commands.json").read_text())
    return {"/".join(Path(c["file"]).parts[-2:]): shlex.split(c["command"])[:-2] for c in listed}


FOLDERS = ("cpu", "embed", "gen")


def compile_tables(files: dict[str, str], build: Path, out: Path) -> list[Path]:
    out.mkdir(parents=True, exist_ok=True)
    commands, made = _commands(build), []
    for name, text in files.items():
        (out / name).write_text(text)
        if not name.endswith(".c"):
            continue
        command = next(commands[place] for folder in FOLDERS if (place := f"{folder}/{name}") in commands)
        made.append((out / f"{Path(name).stem}.o").resolve())
        words = [*command, f"-I{out.resolve()}", "-c", str((out / name).resolve()), "-o", str(made[-1])]
        subprocess.run(words, cwd=build, check=True)
    return made


def write_only(
    paths: Sequence[Path], catalog: Catalog, csrc: Path, build: Path, out: Path, device: str = "cpu"
) -> Path:
    """The library; OnlyError where the files or the build cannot be used."""
    if not csrc.is_dir():
        raise OnlyError("a small library is made in a clone, of the sources and a build's objects")
    needs = read_needs(paths, catalog)
    objects, roots = Objects(build.resolve()), [f"tp_plan_{name}" for name in ROOTS]
    files = tables(needs, catalog, csrc, device)
    objects.add(compile_tables(files | without_stored(needs, csrc), build, out))
    if device == "opencl":
        objects.add(compile_tables(sources(objects, roots, csrc, files["PointwiseTable.c"]), build, out))
    chosen = choice_of_kernels(families(objects, roots, csrc), csrc)
    objects.add(compile_tables({"select.c": chosen}, build, out))
    joined, library = out / "only.o", out / "libtensorpy_only.a"
    kept = [word for name in roots for word in ("-u", name)]
    reached = map(str, sorted(objects.reached(roots)))
    subprocess.run(["ld", "-r", "--gc-sections", "--strip-debug", *kept, *reached, "-o", str(joined)], check=True)
    library.unlink(missing_ok=True)
    subprocess.run(["ar", "qcs", str(library), str(joined)], check=True)
    return library
