"""Registration from outside is a transaction: what a library gets wrong is refused and leaves nothing behind."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import tensorpy as tp

# One library with an entry for each case, which the environment chooses.
SOURCE = r"""
#include "tensorpy/library.h"

#include <stdlib.h>
#include <string.h>

#define CASE(c) if (strcmp(getenv("CASE"), #c) == 0)

static void *allocate(int device, size_t nbytes, void **context) { return *context = malloc(nbytes ? nbytes : 1); }
static void release(int device, void *data, size_t nbytes, void *context) { free(context); }
static int copy(int device, void *to, const void *from, size_t nbytes) { return memmove(to, from, nbytes), 0; }
static int one(void) { return 1; }
static int none(void) { return 0; }
static int minus(void) { return -1; }
static int nothing(int device) { return 0; }

#define KERNEL(name) int name(const tp_op *op, tp_keyset ks, tp_value *args, tp_value *results, void *context)
KERNEL(gives_nothing) { return 0; }
KERNEL(wrapped) { return tp_call_on_host(op, ks, args, results); }
KERNEL(twice) {
    return tp_call_on_host(op, ks, args, results) < 0 || tp_call_on_host(op, ks, args, results) < 0 ? -1 : 0;
}
KERNEL(seven) { return 7; }
KERNEL(fails) { return tp_fail(TP_ValueError, "as it likes"); }
KERNEL(fails_but_says_it_did_not) { return tp_fail(TP_RuntimeError, "in truth it failed"), 0; }

#ifndef NO_BACKEND
TENSORPY_BACKEND(mine, b) {
    b->allocate = allocate, b->release = release, b->copy_from_host = copy, b->copy_to_host = copy;
    b->copy_inside = copy, b->device_count = one, b->synchronize = nothing;
    CASE(size_0) b->size = 0;
    CASE(small) b->size = offsetof(tensorpy_backend, copy_to_host);
    CASE(older) b->size = offsetof(tensorpy_backend, copy_inside);
    CASE(newer) b->size += 64;
    CASE(no_optional) b->copy_inside = NULL, b->device_count = NULL, b->synchronize = NULL;
    CASE(no_name) b->name = NULL;
    CASE(no_allocate) b->allocate = NULL;
    CASE(no_devices) b->device_count = none;
    CASE(minus_one) b->device_count = minus;
    CASE(named) b->name = getenv("NAME");
}
#endif
#ifdef AGAIN
static void again(tensorpy_backend *b) {
    b->allocate = allocate, b->release = release, b->copy_from_host = copy, b->copy_to_host = copy;
}
TENSORPY_PART(again, TENSORPY_PART_BACKEND, "mine", "", NULL, again)
#endif

TENSORPY_LIBRARY_IMPL(prim, mine, m) {
    CASE(half_way) return tp_impl_boxed(m, "take", wrapped, NULL, NULL);
    return 0;
}
TENSORPY_LIBRARY_IMPL(aten, mine, m) {
    CASE(null_operator) return tp_impl_boxed(m, NULL, wrapped, NULL, NULL);
    CASE(no_operator) return tp_impl_boxed(m, "nothing.at_all", wrapped, NULL, NULL);
    CASE(two_kernels) if (tp_impl_boxed(m, "mm", gives_nothing, NULL, NULL) < 0) return -1;
    CASE(half_way) return tp_impl_boxed(m, "mm", wrapped, NULL, NULL) < 0 ? 0 : -1;
    CASE(half_way_with_a_word) return tp_fail(TP_RuntimeError, "no hardware here");
    CASE(everything) return tp_fallback(m, wrapped, NULL, NULL);
    CASE(declares) return tp_def(m, "f(Tensor x) -> Tensor");
    struct { const char *name, *op; tp_boxed_fn kernel; } kernels[] = {
        {"gives_nothing", "mm", gives_nothing}, {"gives_nothing", "max.dim", gives_nothing},
        {"gives_nothing", "unbind.int", gives_nothing}, {"gives_nothing", "equal", gives_nothing},
        {"gives_nothing", "add_.Tensor", gives_nothing}, {"wrapped", "mm", wrapped}, {"twice", "mm", twice},
        {"seven", "mm", seven}, {"fails", "mm", fails},
        {"fails_but_says_it_did_not", "mm", fails_but_says_it_did_not}, {"two_kernels", "mm", wrapped},
    };
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        if (strcmp(kernels[i].name, getenv("CASE")) == 0 &&
            tensorpy_functions->implement_boxed(m, kernels[i].op, kernels[i].kernel, NULL, NULL, kernels[i].name) < 0)
            return -1;
    return 0;
}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("library")
    (folder / "mine.c").write_text(SOURCE)
    compiler = os.environ.get("CC", "cc").split()
    command = [*compiler, "-w", "-shared", "-fPIC", "-I", tp.backends.include(), "mine.c"]
    subprocess.run([*command, "-o", "mine.so"], cwd=folder, check=True)
    subprocess.run([*command, "-DAGAIN", "-o", "again.so"], cwd=folder, check=True)
    subprocess.run([*command, "-DNO_BACKEND", "-o", "without.so"], cwd=folder, check=True)
    return folder / "mine.so"


PROGRAM = """
import os, sys
import tensorpy as tp

def outcome(f):
    try:
        print(f())
    except Exception as error:
        print(type(error).__name__, str(error).replace(chr(10), " "))

keys = [e.op + e.key for n in ("mm", "prim::take", "add.Tensor") for e in tp.dispatch.table(n)]
outcome(lambda: tp.backends.load(os.environ["LIBRARY"]))
print(keys == [e.op + e.key for n in ("mm", "prim::take", "add.Tensor") for e in tp.dispatch.table(n)])
def there():
    x = tp.tensor([[1.0, 2.0], [3.0, 4.0]], device="mine")
    return (x.t() + x.clone()).tolist()
outcome(there)
os.environ["CASE"] = ""
outcome(lambda: tp.backends.load(os.environ["LIBRARY"]))
"""


def run(library: Path, case: str, program: str = PROGRAM, name: str = "") -> list[str]:
    given = os.environ | {"CASE": case, "LIBRARY": str(library), "NAME": name, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", program], env=given, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


REFUSED = {
    "size_0": "size is 0; a tensorpy_backend has at least",
    "small": "has at least",
    "no_name": "name is not filled in",
    "no_allocate": "allocate is not filled in",
    "no_devices": "mine has 0 devices, not 1 to 127",
    "minus_one": "mine has -1 devices",
    "null_operator": "the operator is NULL",
    "no_operator": "there is no operator nothing.at_all",
    "half_way": "this part of the library failed and set no error",
    "half_way_with_a_word": "no hardware here",
    "two_kernels": "mm already has a kernel for PrivateUse1, registered from gives_nothing at mine.c:",
    "everything": "a fallback is for all namespaces: TENSORPY_LIBRARY_IMPL(_, mine, m)",
    "declares": "tp_def() in an IMPL part",
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_load_that_fails_leaves_nothing(library: Path, case: str) -> None:
    """Neither kernels nor the device; and the library may be loaded again, by its own name."""
    first, unchanged, there, second = run(library, case)
    assert first.startswith(("RuntimeError", "ValueError")) and REFUSED[case] in first
    assert "mine.c:" in first or "TENSORPY_BACKEND" in first or "devices" in first
    if case == "two_kernels":
        assert "this one comes from two_kernels at mine.c:" in first
    assert unchanged == "True" and "at start of device string: mine" in there
    assert second == "None"


def test_what_a_load_finds_taken(library: Path) -> None:
    """Two backends of one name in a library, and kernels for a device that nobody has brought."""
    first, unchanged, there, _ = run(library.with_name("again.so"), "")
    assert "there is a backend mine already" in first and unchanged == "True"
    assert "at start of device string: mine" in there
    first, unchanged, _, _ = run(library.with_name("without.so"), "wrapped")
    assert "there is no dispatch key 'mine'" in first and unchanged == "True"


NAMES = ["", "cuda", "mps", "xpu", "cpu", "meta", "opencl", "privateuseone", "none"]
NAMES += ["a-b", "1st", "a b", "ä", "x" * 32, "a:0"]


@pytest.mark.parametrize("name", NAMES)
def test_names_that_no_backend_may_have(library: Path, name: str) -> None:
    first, unchanged, _, _ = run(library, "named", name=name)
    assert f"invalid backend name '{name}'" in first and unchanged == "True"


@pytest.mark.parametrize("case", ["older", "newer", "no_optional"])
def test_backends_of_other_releases_load(library: Path, case: str) -> None:
    """One that was built when the struct was shorter, one with more in it, one that leaves out what it may."""
    first, unchanged, there, second = run(library, case)
    assert first == "None" and unchanged == "False"
    assert there == "[[2.0, 5.0], [5.0, 8.0]]"
    assert second == "None"  # it is loaded already


CALLS = """
import os
import tensorpy as tp
tp.backends.load(os.environ["LIBRARY"])
x = tp.ones(2, 2, device="mine")
for call in (lambda: x @ x, lambda: x.max(0), lambda: x.unbind(0), lambda: tp.equal(x, x), lambda: x.add_(x)):
    try:
        result = call()
        print("ok", [t.tolist() for t in result] if isinstance(result, tuple) else result.tolist())
    except Exception as error:
        print(type(error).__name__, str(error).replace(chr(10), " "))
"""


def test_a_kernel_that_gives_no_results(library: Path) -> None:
    """By the schema: what returns its argument gives none."""
    lines = run(library, "gives_nothing", CALLS)
    for line, op in zip(lines[:4], ("mm", "max.dim", "unbind.int", "equal"), strict=True):
        assert line.startswith(f"RuntimeError {op}: its kernel gives_nothing at mine.c:") and "gave no results" in line
    assert lines[4] == "ok [[1.0, 1.0], [1.0, 1.0]]"


def test_what_kernels_return(library: Path) -> None:
    product = "ok [[2.0, 2.0], [2.0, 2.0]]"
    for case, expected in {
        "wrapped": product,
        "twice": product,
        "seven": "RuntimeError mm: its kernel seven at mine.c:",
        "fails": "ValueError as it likes",
        "fails_but_says_it_did_not": "RuntimeError in truth it failed",
    }.items():
        assert run(library, case, CALLS)[0].startswith(expected), case
