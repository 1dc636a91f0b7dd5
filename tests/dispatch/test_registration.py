"""RegistrationDeclarations.h and RegistrationMinimal.h: they compile, and what they say of an operator registers."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tensorpy as tp
from codegen.__main__ import load_catalog
from codegen.emit_declarations import emit_registration_declarations, emit_registration_minimal

ROOT = Path(__file__).resolve().parents[2]
NAMES = {
    "RegistrationDeclarations.h": emit_registration_declarations,
    "RegistrationMinimal.h": emit_registration_minimal,
}


@pytest.fixture(scope="module")
def headers() -> dict[str, str]:
    catalog = load_catalog(ROOT / "yaml")
    return {name: emit(catalog) for name, emit in NAMES.items()}


def lines(text: str) -> list[dict[str, Any]]:
    found = re.findall(r"^(.*); // (\{.*\})$", text, re.M)
    return [{"kernel": begins(declaration)} | json.loads(said) for declaration, said in found]


def begins(declaration: str) -> str:
    """How a kernel begins, as the declaration says."""
    match = re.fullmatch(r"(.*?)(\w+)\((.*)\)", declaration)
    assert match is not None, declaration
    pairs = [re.fullmatch(r"(.*?)(\w+)", parameter) for parameter in match[3].split(", ")]
    given = ", ".join(f"({p[1].strip()}, {p[2]})" for p in pairs if p is not None)
    return f"TENSORPY_KERNEL({match[1].strip()}, my_{match[2].removeprefix('aten_')}, {given})"


def test_one_is_installed(headers: dict[str, str]) -> None:
    name = "RegistrationMinimal.h"
    assert Path(tp.__file__).with_name("include").joinpath("tensorpy", name).read_text() == headers[name]


def test_the_other_is_written_on_demand(headers: dict[str, str], tmp_path: Path) -> None:
    name = "RegistrationDeclarations.h"
    subprocess.run([sys.executable, "-m", "tensorpy.codegen", "--file", name], cwd=tmp_path, check=True)
    assert (tmp_path / name).read_text() == headers[name]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("compiler", ["cc -x c -std=c11", "c++ -x c++ -std=c++17"])
def test_they_compile(headers: dict[str, str], tmp_path: Path, name: str, compiler: str) -> None:
    command = compiler.split()
    if shutil.which(command[0]) is None:
        pytest.skip(f"there is no {command[0]}")
    (tmp_path / name).write_text(headers[name] * 2)
    flags = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", f"-I{tp.backends.include()}"]
    done = subprocess.run([*command, *flags, name], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_every_operator_and_primitive_has_a_line(headers: dict[str, str]) -> None:
    said = {line["schema"].partition("(")[0] for line in lines(headers["RegistrationDeclarations.h"])}
    operators = {f"aten::{name}" for name in tp.dispatch.operators() if "::" not in name}
    of_spaces = {str(op.schema.name) for op in load_catalog(ROOT / "yaml") if op.schema.name.namespace}
    assert of_spaces <= set(tp.dispatch.operators())
    assert said == operators | of_spaces | set(tp.dispatch.primitives())


def test_what_a_backend_brings(headers: dict[str, str]) -> None:
    """The primitives, and the operators that neither a composite nor a kernel over primitives serves."""
    primitives = set(tp.dispatch.primitives())
    text = headers["RegistrationMinimal.h"]
    assert "allocate, release, copy_from_host, copy_to_host" in text
    uses = [int(n) for n in re.findall(r"Operators that are made of it: (\d+)\. \*/", text)]
    assert len(uses) == len(primitives) and uses == sorted(uses, reverse=True) and uses[0] > 300
    said = {line["schema"].partition("(")[0] for line in lines(headers["RegistrationMinimal.h"])}
    assert primitives <= said
    for name in tp.dispatch.operators():
        kernels = {e.registered_as for e in tp.dispatch.table(name) if e.key in ("CPU", "Meta", "OpenCL")}
        if "::" not in name:
            assert (f"aten::{name}" in said) == (kernels <= {"CPU", "Meta", "OpenCL"}), (name, kernels)


LIBRARY = """
#include "tensorpy/library.h"
#include "RegistrationDeclarations.h"
#include <stdlib.h>

static void *allocate(int device, size_t nbytes, void **context) {{
    (void)device;
    return *context = malloc(nbytes + 1);
}}
static void release(int device, void *data, size_t nbytes, void *context) {{
    (void)device, (void)data, (void)nbytes;
    free(context);
}}
static int copy(int device, void *to, const void *from, size_t nbytes) {{
    (void)device, (void)to, (void)from, (void)nbytes;
    return 0;
}}
TENSORPY_BACKEND(mine, b) {{
    b->allocate = allocate, b->release = release, b->copy_from_host = copy, b->copy_to_host = copy;
}}
{kernels}
TENSORPY_LIBRARY_IMPL(aten, mine, m) {{ return {aten}; }}
TENSORPY_LIBRARY_IMPL(prim, mine, m) {{ return {prim}; }}
"""

PROGRAM = """
import os
import tensorpy as tp
tp.backends.load(os.environ["MINE"])
x = tp.empty(2, device="mine")
for call in (lambda: x.neg(), lambda: x.cumsum(0), lambda: tp.equal(x, x)):
    try:
        call()
    except RuntimeError as error:
        print(error)
"""


def test_a_kernel_begun_as_a_line_says_registers(headers: dict[str, str], tmp_path: Path) -> None:
    """All of them, on a device of its own."""
    kernels, parts = [], dict[str, list[str]](aten=[], prim=[])
    for line in lines(headers["RegistrationDeclarations.h"]):
        head, (namespace, _, rest) = line["kernel"], line["schema"].partition("::")
        if (
            namespace not in parts or head == "boxed" or rest.startswith(("empty", "as_strided(", "set_"))
        ):  # of the memory that the test makes
            continue
        result, name = re.fullmatch(r"TENSORPY_KERNEL\((.*?), (\w+), .*\)", head).groups()  # type: ignore[union-attr]
        fails = f'tp_fail(TP_RuntimeError, "{name} ran")'
        many = result.startswith("tp_tensor") and result[-1].isdigit()
        body = (
            f"{result} none = {{{{NULL}}}}; {fails}; return none;"
            if many
            else f"return {fails};"
            if result == "int"
            else f"{fails}; return NULL;"
        )
        kernels.append(f"{head} {{ {body} }}")
        parts[namespace].append(f'tp_impl(m, "{rest.partition("(")[0]}", {name}) < 0')
    assert len(kernels) > 1500
    source = LIBRARY.format(
        kernels="\n".join(kernels), **{ns: f"({' || '.join(calls)}) ? -1 : 0" for ns, calls in parts.items()}
    )
    (tmp_path / "mine.c").write_text(source)
    (tmp_path / "RegistrationDeclarations.h").write_text(headers["RegistrationDeclarations.h"])
    compiler = os.environ.get("CC", "cc").split()
    command = [*compiler, "-O0", "-Wall", "-Werror", "-shared", "-fPIC", "-I", tp.backends.include(), "-I.", "mine.c"]
    subprocess.run([*command, "-o", "mine.so"], cwd=tmp_path, check=True)
    given = {**os.environ, "MINE": str(tmp_path / "mine.so"), "PYTHONPATH": os.pathsep.join(map(str, sys.path))}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=given, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["my_neg ran", "my_cumsum ran", "my_equal ran"]
