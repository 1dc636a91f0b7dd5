"""An OpenCL loader in front of the real one, that fails on demand: made from the list of functions in
opencl/runtime/cl.h.

`build(folder)` compiles it; TENSORPY_OPENCL_LIBRARY is set to its path. A test's program asks it for faults:

    fake = ctypes.CDLL(os.environ["TENSORPY_OPENCL_LIBRARY"])
    fake.fail_call(b"clCreateBuffer", 1, 1, -4)  # the first call from here on, one call, gives -4
    fake.calls(b"clCreateBuffer")                # how many there were
    fake.fail_call(b"*", 1, -1, -2)              # every call from here on: the driver is gone
    fake.spoil_sources(1)                        # the next source does not compile

The environment changes what it shows: FAKE_OPENCL_DEVICES=2 (each device twice), FAKE_OPENCL_HIDE=cl_khr_fp64 (a part
of the extensions' text), FAKE_OPENCL_PLATFORMS=0, FAKE_OPENCL_FULL=1 (no file can be written),
FAKE_OPENCL_BEFORE (lines in front of every source), FAKE_OPENCL_REAL (the library behind it).
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

HEAD = r"""
#include "opencl/runtime/cl.h"
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define MOST 64
typedef struct { const char *name; int calls, from, left; cl_int code; } fault;
static fault faults[MOST];
static int known;

static fault *of(const char *name) {
    for (int i = 0; i < known; i++)
        if (strcmp(faults[i].name, name) == 0) return &faults[i];
    faults[known] = (fault){.name = strdup(name)};
    return &faults[known++];
}

void fail_call(const char *name, int nth, int times, int code) {
    fault *f = of(name);
    f->calls = 0, f->from = nth, f->left = times, f->code = code;
}
int calls(const char *name) { return of(name)->calls; }

static cl_int one_fails(fault *f) {
    f->calls++;
    if (!f->left || f->calls < f->from) return 0;
    f->left--;
    return f->code;
}

/* 0: the call goes on to the driver. */
static cl_int fails(const char *name) {
    cl_int code = one_fails(of(name)), all = one_fails(of("*"));
    return code ? code : all;
}

static int spoiled;
void spoil_sources(int n) { spoiled = n; }
/* In front of every source: what a device without the hidden extension's type does not have. */
static const char *before_source(void) {
    const char *hidden = getenv("FAKE_OPENCL_HIDE"), *given = getenv("FAKE_OPENCL_BEFORE");
    if (given) return given;
    if (spoiled && spoiled--) return "#error spoiled on purpose\n";
    if (!hidden || strcmp(hidden, "cl_khr_fp64") != 0) return "\n";
    return "#undef cl_khr_fp64\n#undef __opencl_c_fp64\n#define double no_double_on_this_device\n";
}

static void *real(const char *name) {
    static void *library;
    const char *named = getenv("FAKE_OPENCL_REAL");
    if (!library) library = dlopen(named ? named : "libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
    return library ? dlsym(library, name) : NULL;
}

static cl_int shown(const char *name, cl_int status, cl_uint room, void *ids, cl_uint *n) {
    const char *devices = getenv("FAKE_OPENCL_DEVICES"), *platforms = getenv("FAKE_OPENCL_PLATFORMS");
    if (strcmp(name, "clGetPlatformIDs") == 0 && platforms && *platforms == '0') return *n = 0, -1001;
    if (strcmp(name, "clGetDeviceIDs") == 0 && devices && status == 0 && *n == 1 && room > 1)
        ((void **)ids)[1] = *(void **)ids, *n = 2;
    return status;
}

/* With FAKE_OPENCL_FULL no file can be written whole while a program is put on disk. */
static void limit_files(rlim_t bytes) {
    struct rlimit limit;
    if (!getenv("FAKE_OPENCL_FULL")) return;
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &limit);
}

static void hide(char *text) {
    const char *hidden = getenv("FAKE_OPENCL_HIDE");
    char *at = hidden ? strstr(text, hidden) : NULL;
    if (at) memset(at, ' ', strlen(hidden));
}
"""


def _functions() -> list[tuple[str, str, list[str]]]:
    text = (ROOT / "csrc/opencl/runtime/cl.h").read_text()
    table = text[text.index("#define TP_FORALL_CL(X)") : text.index("typedef struct {\n#define TP_CL_MEMBER")]
    table = re.sub(r"\\\n\s*", " ", table)
    found = re.findall(r"X\((\w+(?: \*)?), (\w+),\s*\((.*?)\)\)\s*(?=X\(|$)", table.partition("(X)")[2].strip(), re.S)
    return [(result, name, _split(parameters)) for result, name, parameters in found]


def _split(parameters: str) -> list[str]:
    """At the commas that are not inside a function's parameters."""
    parts, depth, last = [], 0, 0
    for i, c in enumerate(parameters):
        depth += (c == "(") - (c == ")")
        if c == "," and depth == 0:
            parts.append(parameters[last:i].strip())
            last = i + 1
    return [*parts, parameters[last:].strip()]


def _named(parameter: str, i: int) -> str:
    return parameter.replace("(*)", f"(*a{i})", 1) if "(*)" in parameter else f"{parameter} a{i}"


def _wrapper(result: str, name: str, parameters: list[str]) -> str:
    given = ", ".join(f"a{i}" for i in range(len(parameters)))
    declared = ", ".join(_named(p, i) for i, p in enumerate(parameters))
    last = len(parameters) - 1
    lines = [f"{result} {name}({declared}) {{", f'    cl_int code = fails("{name}");']
    if result == "cl_int":
        lines.append("    if (code) return code;")
    else:
        lines.append(f"    if (code) return *a{last} = code, ({result})NULL;")
    lines.append(f"    static {result} (*go)({', '.join(parameters)});")
    lines.append(f'    if (!go) *(void **)&go = real("{name}");')
    lines.append(f"    if (!go) return ({result}){-1001 if result == 'cl_int' else 'NULL'};")
    if name in ("clGetPlatformIDs", "clGetDeviceIDs"):
        lines.append(f'    return shown("{name}", go({given}), a{last - 2}, a{last - 1}, a{last});')
    elif name == "clCreateProgramWithSource":
        lines.append("    const char *both[] = {before_source(), *a2};")
        lines.append("    return go(a0, 2, both, NULL, a4);")
    elif name == "clGetProgramInfo":
        lines.append(f"    code = go({given});")
        lines.append("    return limit_files(100), code;")
    elif name == "clCreateKernel":
        lines.append(f"    return limit_files(RLIM_INFINITY), go({given});")
    elif name == "clGetDeviceInfo":
        lines.append(f"    code = go({given});")
        lines.append("    if (code == 0 && a1 == CL_DEVICE_EXTENSIONS && a3) hide(a3);")
        lines.append("    return code;")
    else:
        lines.append(f"    return go({given});")
    return "\n".join([*lines, "}"])


def names() -> list[str]:
    """Every function that tensorpy calls."""
    return [name for _, name, _ in _functions()]


def build(folder: Path) -> Path:
    """The library, compiled into a folder."""
    source, library = folder / "fake_opencl.c", folder / "libFakeOpenCL.so"
    source.write_text(HEAD + "\n".join(_wrapper(*f) for f in _functions()))
    compiler = os.environ.get("CC", "cc").split()
    command = [*compiler, "-shared", "-fPIC", "-w", "-I", str(ROOT / "csrc"), str(source), "-o", str(library), "-ldl"]
    subprocess.run(command, check=True)
    return library
