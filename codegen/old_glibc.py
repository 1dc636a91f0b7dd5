"""What the linker sees of an older glibc, so that a module that is built here loads there.

A symbol of glibc has versions, and a linker takes the newest that the machine's own library has: `dlopen` of 2.34,
which an older system lacks, though the same library still has that of 2.2.5. The folder that is made here has libraries
without code that name every symbol with its newest version up to the one that is asked for. What came later is not in
them: a module that needs it has a symbol without a version, which `newer` finds.
"""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path

# Those that a module may need; a name that a compiler gives back unchanged is none of this machine's.
LIBRARIES = ("libc.so.6", "libm.so.6", "libmvec.so.1", "libdl.so.2", "libpthread.so.0")
LOADERS = ("ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1")

# Functions that programs call, and that no shared library of an older glibc has: fstat came in 2.33, the names of C23's
# strtol and its kin in 2.38, and pthread_atfork is linked into each module from an archive.
INLINE = """\
#include <sys/stat.h>
#define C23(type, name) \\
    type old_##name(const char *text, char **end, int base) __asm__(#name); \\
    __attribute__((visibility("hidden"))) type __isoc23_##name(const char *text, char **end, int base); \\
    type __isoc23_##name(const char *text, char **end, int base) { return old_##name(text, end, base); }
C23(long, strtol)
C23(long long, strtoll)
C23(unsigned long, strtoul)
C23(unsigned long long, strtoull)
#ifdef __x86_64__
#define STAT_VERSION 1
#else
#define STAT_VERSION 0
#endif
int __fxstat(int version, int file, struct stat *found);
__attribute__((visibility("hidden"))) int fstat(int file, struct stat *found) {
    return __fxstat(STAT_VERSION, file, found);
}
int large_fstat(int file, struct stat *found) __asm__("fstat64") __attribute__((visibility("hidden")));
int large_fstat(int file, struct stat *found) { return __fxstat(STAT_VERSION, file, found); }
typedef void (*handler)(void);
extern void *__dso_handle __attribute__((visibility("hidden")));
int __register_atfork(handler prepare, handler parent, handler child, void *module);
__attribute__((visibility("hidden"))) int pthread_atfork(handler prepare, handler parent, handler child) {
    return __register_atfork(prepare, parent, child, __dso_handle);
}
"""

_SYMBOL = re.compile(
    r"\s(?P<size>\d+|0x\w+)\s+(?P<type>FUNC|IFUNC|OBJECT|NOTYPE)\s+(?:GLOBAL|WEAK)\s+DEFAULT\s+(?P<section>\w+)"
    r"\s+(?P<name>\w+)@@?GLIBC_(?P<version>[\d.]+)$",
    re.M,
)


def _number(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def symbols(listing: str, limit: str) -> dict[str, tuple[str, str, int]]:
    """Reads a listing of readelf's: for each name its newest version up to the limit, its type and its size."""
    newest: dict[str, tuple[str, str, int]] = {}
    for found in _SYMBOL.finditer(listing):
        name, version = found["name"], found["version"]
        if found["section"] == "UND" or _number(version) > _number(limit):
            continue
        if name not in newest or _number(newest[name][0]) < _number(version):
            kind = "object" if found["type"] == "OBJECT" else "function"
            newest[name] = (version, kind, int(found["size"], 0))
    return newest


def _assembly(chosen: dict[str, tuple[str, str, int]]) -> str:
    lines = ['.section .note.GNU-stack,"",%progbits', ".data"]
    for number, (name, (version, kind, size)) in enumerate(sorted(chosen.items())):
        own = f"symbol_{number}"
        lines += [f".globl {own}", f".type {own}, %{kind}", f".size {own}, {size if kind == 'object' else 4}"]
        lines += [f"{own}: .zero {max(size, 1) if kind == 'object' else 4}", f".symver {own}, {name}@@@GLIBC_{version}"]
    return "\n".join(lines) + "\n"


def _run(command: Sequence[object]) -> str:
    return subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True).stdout


def _write(path: Path, text: str) -> bool:
    """Whether it is another text than was there."""
    if path.exists() and path.read_text() == text:
        return False
    path.write_text(text)
    return True


def write_libraries(folder: Path, compiler: str, limit: str) -> list[str]:
    """The libraries, into a folder; the flags that let a compiler link with them and no others.

    What is as it should be stays, so that a linked module is as new.
    """
    cc = shlex.split(compiler)
    folder.mkdir(parents=True, exist_ok=True)
    for library in (*LIBRARIES, *LOADERS):
        own = Path(_run([*cc, f"-print-file-name={library}"]).strip())
        if not own.is_absolute():
            continue
        chosen = symbols(_run(["readelf", "--dyn-syms", "--wide", own]), limit)
        source, script = folder / f"{library}.s", folder / f"{library}.map"
        versions = sorted({version for version, _, _ in chosen.values()}, key=_number)
        named = folder / (library.split(".so")[0] + ".so")
        fresh = _write(source, _assembly(chosen))
        fresh |= _write(script, "".join(f"GLIBC_{version} {{}};\n" for version in versions))
        if fresh or not named.exists():
            script_flag = [f"-Wl,--version-script={script}"] if versions else []
            _run([*cc, "-shared", "-nostdlib", f"-Wl,-soname,{library}", *script_flag, source, "-o", named])
    inline, made = folder / "inline.c", folder / "inline.o"
    if _write(inline, INLINE) or not made.exists():
        _run([*cc, "-O2", "-fPIC", "-c", inline, "-o", made])
    return [f"-L{folder}", str(made), "-Wl,--as-needed", *map(str, sorted(folder.glob("*.so")))]


def newer(module: Path, limit: str) -> list[str]:
    """What a module needs that glibc of this version has not."""
    listing = _run(["readelf", "--dyn-syms", "--wide", module])
    found = []
    for line in listing.splitlines():
        words = line.split()
        if len(words) < 8 or words[6] != "UND" or words[4] == "WEAK":
            continue
        name, _, version = words[7].partition("@")
        if re.fullmatch(r"GLIBC_[\d.]+", version):
            if _number(version.removeprefix("GLIBC_")) > _number(limit):
                found.append(words[7])
        elif not version and not re.match(r"_?Py", name):
            found.append(name)
    return found + re.findall(r"GLIBC_ABI_\w+", _run(["readelf", "--version-info", "--wide", module]))
