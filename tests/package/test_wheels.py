"""What makes wheels: where a build is refused, which versions of glibc's symbols a linked module needs, and that a
module mends its own pointers.
"""

import os
import re
import runpy
import shutil
import subprocess
from pathlib import Path

import pytest

from codegen import packed_relocations, stamp
from codegen.__main__ import generate, load_catalog
from codegen.old_glibc import newer, symbols, write_libraries
from codegen.platforms import Platform, why_not

LISTING = """
Symbol table '.dynsym' contains 5 entries:
   Num:    Value          Size Type    Bind   Vis      Ndx Name
     1: 0000000000085500   144 FUNC    GLOBAL DEFAULT   16 dlopen@GLIBC_2.2.5
     2: 0000000000085500   144 FUNC    GLOBAL DEFAULT   16 dlopen@@GLIBC_2.34
     3: 00000000001d4840     8 OBJECT  GLOBAL DEFAULT   33 stderr@@GLIBC_2.2.5
     4: 00000000000f7800    52 FUNC    WEAK   DEFAULT   16 fstat@@GLIBC_2.33
     5: 0000000000000000     0 FUNC    GLOBAL DEFAULT  UND malloc@GLIBC_2.2.5 (2)
     6: 00000000000f7801    52 FUNC    GLOBAL DEFAULT   16 _dl_x@@GLIBC_PRIVATE
"""

PROGRAM = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
static pthread_once_t once = PTHREAD_ONCE_INIT;
static void nothing(void) {}
double answer(double x, const char *text);
double answer(double x, const char *text) {
    struct stat found;
    pthread_once(&once, nothing);
    return exp(x) + (dlopen(0, RTLD_NOW) != 0) + fstat(0, &found) + (double)strtol(text, NULL, 10);
}
"""


@pytest.mark.parametrize(
    "where, says",
    [
        (Platform(), None),
        (Platform(triple="aarch64-linux-gnu"), None),
        (Platform(free_threaded=True), "free-threaded"),
        (Platform(implementation="PyPy"), "PyPy"),
        (Platform(system="win32", triple="x86_64-w64-mingw32"), "Windows"),
        (Platform(system="darwin", triple="arm64-apple-darwin23"), "macOS"),
        (Platform(system="freebsd14", triple="x86_64-unknown-freebsd14"), "freebsd14"),
        (Platform(triple="x86_64-linux-musl"), "musl"),
        (Platform(triple="x86_64-alpine-linux-musl"), "musl"),
        (Platform(triple="i686-linux-gnu", bits=32), "64-bit"),
        (Platform(triple="s390x-linux-gnu", little_endian=False), "little-endian"),
    ],
)
def test_platforms_that_are_refused(where, says):
    reason = why_not(where)
    assert (reason is None) if says is None else (reason is not None and says in reason)


def test_newest_version_up_to_the_limit_is_chosen():
    assert symbols(LISTING, "2.28") == {"dlopen": ("2.2.5", "function", 144), "stderr": ("2.2.5", "object", 8)}
    assert symbols(LISTING, "2.34")["dlopen"][0] == "2.34"
    assert symbols(LISTING, "2.34")["fstat"][0] == "2.33"


def test_linked_module_needs_no_newer_glibc(tmp_path):
    if not shutil.which("cc") or not shutil.which("readelf"):
        pytest.skip("there is no compiler")
    source, module = tmp_path / "answer.c", tmp_path / "answer.so"
    source.write_text(PROGRAM)
    compile_it = ["cc", "-shared", "-fPIC", "-O1", "-fno-math-errno", str(source), "-o", str(module)]
    libraries = ["-lm", "-ldl", "-lpthread"]
    flags = write_libraries(tmp_path / "glibc", "cc", "2.28")
    subprocess.run([*compile_it, *flags, *libraries], check=True)
    assert newer(module, "2.28") == []
    assert newer(module, "2.0") != []
    run = f"import ctypes; f = ctypes.CDLL({str(module)!r}).answer; f.restype = ctypes.c_double; "
    run += "print(f(ctypes.c_double(0), b'40'))"
    done = subprocess.run(["python3", "-c", run], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True)
    assert float(done.stdout) == 42.0
    # The machine's own libraries, where they are newer, leave symbols that an older system lacks.
    subprocess.run([*compile_it, *libraries], check=True)
    listing = subprocess.run(["readelf", "--dyn-syms", "--wide", module], capture_output=True, text=True).stdout
    own = [tuple(map(int, version.split("."))) for version in re.findall(r"@GLIBC_([\d.]+)", listing)]
    assert bool(newer(module, "2.28")) == (max(own) > (2, 28))


# Rows far enough apart for runs of bits and gaps between them; the pointers to functions cannot be written to.
TABLES = """
static int numbers[4] = {1, 2, 3, 4};
static int one(void) { return 1; }
static int two(void) { return 2; }
typedef struct { long many[70]; int *number; int (*call)(void); } row;
static row rows[40] = {[3] = {.number = numbers, .call = one}, [39] = {.number = numbers + 3, .call = two}};
static int (*const functions[200])(void) = {one, two, one, [199] = two};
static int *last = numbers + 3;
static int seen;
static volatile int at = 199;
__attribute__((constructor)) static void look(void) { seen = *last; }
int answer(void) {
    return seen * 10000 + *rows[39].number * 1000 + rows[39].call() * 100 + rows[3].call() * 10 + functions[at]();
}
const void *table(void) { return functions; }
"""


def linked_with_packed_pointers(tmp_path, text):
    flags = ["-shared", "-fPIC", "-O1"]
    if not shutil.which("cc") or not shutil.which("readelf"):
        pytest.skip("there is no compiler")
    probe = ["cc", *flags, packed_relocations.LINK, "-Wl,--fatal-warnings", "-x", "c", os.devnull, "-o", os.devnull]
    done = subprocess.run(probe, capture_output=True)
    if done.returncode != 0 or done.stderr:
        pytest.skip("the linker writes no packed relocations")
    source, module = tmp_path / "tables.c", tmp_path / "tables.so"
    source.write_text(text)
    own = [*write_libraries(tmp_path / "glibc", "cc", "2.28"), *packed_relocations.write(tmp_path / "glibc", "cc")]
    subprocess.run(["cc", *flags, source, "-o", module, *own], check=True)
    return module


def test_module_mends_its_own_pointers(tmp_path):
    module = linked_with_packed_pointers(tmp_path, TABLES)
    assert newer(module, "2.28") == ["GLIBC_ABI_DT_RELR"]
    packed_relocations.hide(module)
    assert newer(module, "2.28") == []
    dynamic = subprocess.run(["readelf", "-dW", module], capture_output=True, text=True, check=True).stdout
    assert "RELR" not in dynamic and "NULL" in dynamic
    relocations = subprocess.run(["readelf", "-rW", module], capture_output=True, text=True, check=True).stdout
    assert "R_X86_64_RELATIVE" not in relocations and "R_AARCH64_RELATIV" not in relocations
    program = f"""
import ctypes
module = ctypes.CDLL({str(module)!r})
module.table.restype = ctypes.c_void_p
print(module.answer())
for line in open("/proc/self/maps"):
    begin, end = (int(word, 16) for word in line.split()[0].split("-"))
    if begin <= module.table() < end:
        print(line.split()[1])
"""
    done = subprocess.run(["python3", "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["44212", "r--p"]


def test_pointers_in_variables_of_threads_are_refused(tmp_path):
    text = TABLES + "_Thread_local int *mine = numbers; int *of_thread(void) { return mine; }"
    module = linked_with_packed_pointers(tmp_path, text)
    with pytest.raises(SystemExit, match="1 pointers in them"):
        packed_relocations.hide(module)


def test_an_installed_entry_says_all_but_what_help_says(tmp_path: Path) -> None:
    """A project's generator reads it: everything but the texts of help() comes out of it, from the same lines."""
    root = Path(__file__).resolve().parents[2]
    said = runpy.run_path(str(root / "setup.py"), run_name="setup")["SAID_FOR_HELP"]
    shutil.copytree(root / "yaml", tmp_path / "yaml")
    for path in (tmp_path / "yaml" / "native_functions").glob("*.yaml"):
        path.write_text(said.sub(lambda text: "\n" * text[0].count("\n"), path.read_text()))
    whole = stamp.built(root, stamp.digest(root)) or generate(load_catalog(root / "yaml"))
    installed = generate(load_catalog(tmp_path / "yaml"))
    other = {name for name in whole if whole[name] != installed[name]}
    assert {name for name in other if not name.endswith(".pyi")} == {"reference.md", "_C.help"}
