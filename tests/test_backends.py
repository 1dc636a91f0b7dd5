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
#include "tensorpy/backend.h"

#include <stdlib.h>
#include <string.h>

static const tensorpy_functions *tp;

static void *allocate(int device, size_t nbytes, void **context) { return *context = malloc(nbytes ? nbytes : 1); }
static void release(int device, void *data, size_t nbytes, void *context) { free(context); }
static int copy(int device, void *to, const void *from, size_t nbytes) { return memmove(to, from, nbytes), 0; }
static int one(void) { return 1; }
static int none(void) { return 0; }
static int minus(void) { return -1; }
static int nothing(int device) { return 0; }

int gives_nothing(tensorpy_call *call, void *context) { return 0; }
int wrapped(tensorpy_call *call, void *context) { return tp->on_cpu(call); }
int twice(tensorpy_call *call, void *context) { return tp->on_cpu(call) < 0 || tp->on_cpu(call) < 0 ? -1 : 0; }
int seven(tensorpy_call *call, void *context) { return 7; }
int fails(tensorpy_call *call, void *context) { return tp->fail("as it likes"); }
int fails_without_a_word(tensorpy_call *call, void *context) { return tp->fail(NULL); }
int fails_but_says_it_did_not(tensorpy_call *call, void *context) { return tp->fail("in truth it failed"), 0; }

int TENSORPY_BACKEND_ENTRY(const tensorpy_functions *given) {
    tensorpy_backend backend = {sizeof backend, "mine", allocate, release, copy, copy, copy, one, nothing};
    const char *name = getenv("CASE"), *text = getenv("NAME");
    tp = given;
#define CASE(c) if (strcmp(name, #c) == 0)
    CASE(null_backend) return tp->register_backend(NULL);
    CASE(size_0) backend.size = 0;
    CASE(small) backend.size = offsetof(tensorpy_backend, copy_to_host);
    CASE(older) backend.size = offsetof(tensorpy_backend, copy_inside);
    CASE(newer) backend.size += 64;
    CASE(no_optional) backend.copy_inside = NULL, backend.device_count = NULL, backend.synchronize = NULL;
    CASE(no_name) backend.name = NULL;
    CASE(no_allocate) backend.allocate = NULL;
    CASE(no_devices) backend.device_count = none;
    CASE(minus_one) backend.device_count = minus;
    CASE(named) backend.name = text;
    CASE(again) if (tp->register_backend(&backend) < 0) return -1;
    CASE(kernel_before) return tp->register_kernel("mine", "mm", wrapped, NULL);
    if (tp->register_backend(&backend) < 0) return -1;
    CASE(null_kernel) return tp->register_kernel("mine", "mm", NULL, NULL);
    CASE(null_operator) return tp->register_kernel("mine", NULL, wrapped, NULL);
    CASE(null_name) return tp->register_kernel(NULL, "mm", wrapped, NULL);
    CASE(other_name) return tp->register_kernel("yours", "mm", wrapped, NULL);
    CASE(no_operator) return tp->register_kernel("mine", "nothing.at_all", wrapped, NULL);
    CASE(two_kernels) if (tp->register_kernel("mine", "mm", gives_nothing, NULL) < 0) return -1;
    CASE(half_way) {
        if (tp->register_kernel("mine", "mm", wrapped, NULL) < 0) return -1;
        if (tp->register_kernel("mine", "prim::take", wrapped, NULL) < 0) return -1;
        return -1;
    }
    CASE(half_way_with_a_word) return tp->fail("no hardware here");
    struct { const char *name, *op; tensorpy_kernel kernel; } kernels[] = {
        {"gives_nothing", "mm", gives_nothing}, {"gives_nothing", "max.dim", gives_nothing},
        {"gives_nothing", "unbind.int", gives_nothing}, {"gives_nothing", "equal", gives_nothing},
        {"gives_nothing", "add_.Tensor", gives_nothing}, {"wrapped", "mm", wrapped}, {"twice", "mm", twice},
        {"seven", "mm", seven}, {"fails", "mm", fails}, {"fails_without_a_word", "mm", fails_without_a_word},
        {"fails_but_says_it_did_not", "mm", fails_but_says_it_did_not}, {"two_kernels", "mm", wrapped},
    };
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        if (strcmp(kernels[i].name, name) == 0 &&
            tp->register_kernel("mine", kernels[i].op, kernels[i].kernel, NULL) < 0) return -1;
    return 0;
}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("library")
    (folder / "mine.c").write_text(SOURCE)
    compiler = os.environ.get("CC", "cc").split()
    command = [*compiler, "-w", "-shared", "-fPIC", "-I", tp.backends.include(), "mine.c", "-o", "mine.so"]
    subprocess.run(command, cwd=folder, check=True)
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
    "null_backend": "not NULL",
    "size_0": "size is 0; a tensorpy_backend has at least",
    "small": "has at least",
    "no_name": "name is not filled in",
    "no_allocate": "allocate is not filled in",
    "no_devices": "mine has 0 devices, not 1 to 127",
    "minus_one": "mine has -1 devices",
    "again": "there is a backend mine already",
    "kernel_before": "register_kernel(): there is no backend mine",
    "null_kernel": "register_kernel(mine, mm): the kernel is NULL",
    "null_operator": "register_kernel(mine, NULL): the operator is NULL",
    "null_name": "register_kernel(NULL, mm): the backend is NULL",
    "other_name": "there is no backend yours",
    "no_operator": "mine: there is no operator nothing.at_all",
    "half_way": "mine.so failed in tensorpy_backend_load",
    "half_way_with_a_word": "no hardware here",
    "two_kernels": "mm already has a kernel for PrivateUse1, registered from mine: gives_nothing in ",
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_load_that_fails_leaves_nothing(library: Path, case: str) -> None:
    """Neither kernels nor the device; and the library may be loaded again, by its own name."""
    first, unchanged, there, second = run(library, case)
    assert first.startswith("RuntimeError") and REFUSED[case] in first
    if case == "two_kernels":
        assert first.endswith(f"this one comes from mine: wrapped in {library}")
    assert unchanged == "True" and "'mine' is no device" in there
    assert second == "None"


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
    assert "there is a backend mine already" in second or "a device has it already" in second


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
        assert line == f"RuntimeError {op}: its kernel of mine: gives_nothing in {library} gave no results"
    assert lines[4] == "ok [[1.0, 1.0], [1.0, 1.0]]"


def test_what_kernels_return(library: Path) -> None:
    product = "ok [[2.0, 2.0], [2.0, 2.0]]"
    for case, expected in {
        "wrapped": product,
        "twice": product,
        "seven": f"RuntimeError mm failed in its kernel of mine: seven in {library}",
        "fails": "RuntimeError as it likes",
        "fails_without_a_word": "RuntimeError a backend failed",
        "fails_but_says_it_did_not": "RuntimeError in truth it failed",
    }.items():
        assert run(library, case, CALLS)[0] == expected, case
