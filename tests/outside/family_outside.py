"""A family of the tree as a library from outside: built of its own YAML and C files, which are not changed.

The C files include the tree's headers and call the tree's functions by their names; as those are hidden in tensorpy's
own shared object, `bridge` writes a file that has functions of these names, each on the public interface: operators
through the dispatcher (the family's own are the library's), primitives, and the few of the core.

As a plugin of pytest (`-p family_outside`, with FAMILY_OUTSIDE naming the family) it puts the library's operators in
the place of the tree's, in the package and in Tensor, has the tree's refuse to run, and keeps the family's rows alone.
"""

from __future__ import annotations

import functools
import os
import re
import runpy
import shutil
from pathlib import Path
from typing import Any

import pytest

import tensorpy as tp
from codegen.__main__ import EMITTERS, load_catalog, write_changed
from codegen.c_types import c_arguments, c_result, parameters
from codegen.catalog import Catalog, Operator
from codegen.emit_library import generate_library, handle
from codegen.emit_primitives import emit_primitives_h
from codegen.library import load_library
from codegen.model import AutocastEntry
from tensorpy.testing.samples import OpInfo
from tensorpy.utils.extension import load

ROOT = Path(__file__).resolve().parents[2]
HEADERS = ("Functions.h", "NativeFunctions.h")

# Functions of the core that families call, on the public interface. The tree's tp_release calls the first two for the
# last reference, and for one that others hold too.
CORE = """
void bridge_tensor_free(tp_tensor *t) __asm__("tp_tensor_free");
void bridge_tensor_free(tp_tensor *t) { tp_release(t); }
void bridge_release_contended(tp_tensor *t) __asm__("tp_release_contended");
void bridge_release_contended(tp_tensor *t) { tp_release(t); }
tp_tensor *bridge_new_empty(tp_ints sizes, tp_dtype dtype, tp_device device) __asm__("tp_new_empty");
tp_tensor *bridge_new_empty(tp_ints sizes, tp_dtype dtype, tp_device device) {
    return tp_new_empty(sizes, dtype, device);
}
int64_t bridge_wrap_dim(int64_t dim, int64_t ndim) __asm__("tp_wrap_dim");
int64_t bridge_wrap_dim(int64_t dim, int64_t ndim) { return tp_wrap_dim(dim, ndim); }
int bridge_meta_output(tp_meta *m, int i, tp_ints sizes, tp_ints strides, tp_dtype dtype, tp_device device)
    __asm__("tp_meta_output");
int bridge_meta_output(tp_meta *m, int i, tp_ints sizes, tp_ints strides, tp_dtype dtype, tp_device device) {
    return tp_meta_output(m, i, sizes, strides, dtype, device);
}
TENSORPY_HANDLE(int, call_copy, "aten::copy_", (tp_tensor *, self), (tp_tensor *, src), (bool, non_blocking))
int bridge_copy_data(tp_tensor *dst, tp_tensor *src) __asm__("tp_copy_data");
int bridge_copy_data(tp_tensor *dst, tp_tensor *src) { return call_copy(dst, src, false); }
TENSORPY_HANDLE(tp_tensor *, call_as_strided, "aten::as_strided", (tp_tensor *, self), (tp_ints, size),
                (tp_ints, stride), (tp_opt_int, storage_offset))
tp_tensor *bridge_new_alias(tp_tensor *t, tp_ints sizes, tp_ints strides, int64_t byte_offset) __asm__("tp_new_alias");
tp_tensor *bridge_new_alias(tp_tensor *t, tp_ints sizes, tp_ints strides, int64_t byte_offset) {
    return call_as_strided(t, sizes, strides, (tp_opt_int){true, byte_offset / tp_itemsize(tp_view_of(t).dtype)});
}
int bridge_fail(tp_error_class cls, const char *format, ...) __asm__("tp_fail");
int bridge_fail(tp_error_class cls, const char *format, ...) {
    char text[4096];
    va_list given;
    va_start(given, format);
    vsnprintf(text, sizeof text, format, given);
    va_end(given);
    return tp_fail(cls, "%s", text);
}
"""


def _operator(op: Operator, own: bool) -> str:
    """A function of the tree's name for the operator, on the handle of the public interface."""
    result, names = c_result(op.schema), ", ".join(a.name_in_c for a in c_arguments(op.schema))
    head = f"{result.decl}bridge_{op.c}({parameters(op.schema)})".replace("struct tp_generator", "tp_generator")
    text = "" if own else handle(op)
    return f'{text}{head} __asm__("tp_{op.c}");\n{head} {{ return {op.call}({names}); }}\n'


def bridge(catalog: Catalog, source: str, ns: str) -> str:
    called = set(re.findall(r"\btp_(\w+)", source))
    parts = [f'#include "{ns}_kernels.h"\n#include <stdarg.h>\n#include <stdio.h>\n', CORE]
    own = {op.c for op in catalog}
    for op in catalog.by_name.values():
        if op.c in called and c_result(op.schema).kind != "value":
            parts.append(_operator(op, op.c in own))
    for p in catalog.primitives:
        if f"prim_{p.c}" in called:
            names = ", ".join(a.name_in_c for a in c_arguments(p.schema))
            head = f"{c_result(p.schema).decl}bridge_prim_{p.c}({parameters(p.schema)})"
            parts.append(f'{head} __asm__("tp_prim_{p.c}");\n{head} {{ return tp_prim_{p.c}({names}); }}\n')
    return "".join(parts)


def _autocast(entries: list[AutocastEntry]) -> str:
    """The part of autocast.yaml that is about these."""
    found: dict[str | None, dict[str, list[str]]] = {}
    for e in entries:
        found.setdefault(e.device, {}).setdefault(e.policy, []).append(str(e.function.name))
    lines = [f"{policy}: [{', '.join(names)}]\n" for policy, names in found.pop(None, {}).items()]
    lines += ["devices:\n"] if found else []
    for device, policies in found.items():
        lines.append(f"  {device}:\n")
        lines += [f"    {policy}: [{', '.join(names)}]\n" for policy, names in policies.items()]
    return "".join(lines)


def _yaml(family: str, folder: Path) -> tuple[Path, Path]:
    """(the family's files as they are, the tree's without them)."""
    own, tree = folder / "yaml", folder / "tree"
    shutil.copytree(ROOT / "yaml", tree)
    for kind in ("native_functions", "derivatives"):
        (own / kind).mkdir(parents=True)
        shutil.move(tree / kind / f"{family}.yaml", own / kind / f"{family}.yaml")
    text = _autocast([e for op in load_catalog(ROOT / "yaml") if op.family == family for e in op.autocast])
    if text:
        (own / "autocast.yaml").write_text(text)
    return own, tree


def build(family: str, folder: Path) -> tuple[str, Catalog]:
    """Builds and loads it, in the namespace `outside_<family>`: (its path, its operators)."""
    ns = f"outside_{family}"
    own, tree = _yaml(family, folder)
    catalog = load_library(own, ns, tree)
    (source,) = (ROOT / "csrc" / "native").rglob(f"{family}.c")
    out, headers = folder / "out", folder / "headers"
    files = generate_library(catalog, ns)
    write_changed(out, {**files, "bridge.c": bridge(catalog, source.read_text(), ns)})
    whole = load_catalog(ROOT / "yaml")
    write_changed(
        headers, {n: EMITTERS[n](whole) for n in HEADERS} | {"Primitives.h": emit_primitives_h(whole.primitives)}
    )
    sources = [str(out / name) for name in (*files, "bridge.c") if name.endswith(".c")]
    sources += [str(source), *(str(ROOT / "csrc" / name) for name in ("core/dtype.c", "prim/pieces.c"))]
    flags = [f"-I{out}", f"-I{headers}", f"-I{ROOT / 'csrc'}", "-std=gnu11", "-O1", "-Wl,--no-undefined-version"]
    path = load(ns, sources, extra_cflags=flags, build_directory=folder)
    return path, catalog


# ---- the plugin ----


def _refuse(*args: Any, **kwargs: Any) -> Any:
    raise AssertionError("the tree's own operator was called")


def _function(function: Any, before: Any) -> Any:
    """The library's operator, with the signature that the tree's function shows."""

    @functools.wraps(before)
    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return call


def _take_the_place(catalog: Catalog, ops: dict[str, Any]) -> None:
    """The package's names of the family are the library's; who calls the tree's operators fails."""
    library: Any = tp.library.Library("aten", "IMPL")
    for op in catalog:
        if op.function.is_function and op.kind != "out":
            name = op.schema.name.unqualified
            function = _function(ops[name], getattr(tp._C, name))
            setattr(tp._C, name, function)
            if hasattr(tp, name):
                setattr(tp, name, function)
        for key in {k.key for k in op.kernels if k.key != "Batched"}:
            keys = ("CPU", "Meta") if key in ("Dense", "Meta") else (key,)
            for one in keys:
                library.impl(str(op.schema.name), _refuse, one, allow_override=True)
    _refusing.append(library)


_refusing: list[Any] = []  # the library whose kernels refuse; it stays
_family = os.environ.get("FAMILY_OUTSIDE", "")


def pytest_configure(config: pytest.Config) -> None:
    folder = Path(os.environ["FAMILY_OUTSIDE_FOLDER"])
    for op in load_catalog(ROOT / "yaml"):
        if op.family == _family and op.function.is_method and hasattr(tp.Tensor, op.schema.name.unqualified):
            delattr(tp.Tensor, op.schema.name.unqualified)
    _, catalog = build(_family, folder)
    _take_the_place(catalog, runpy.run_path(str(folder / "out" / "ops.py")))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    def is_of_family(item: pytest.Item) -> bool:
        info = item.callspec.params.get("info") if hasattr(item, "callspec") else None
        return isinstance(info, OpInfo) and info.op.family == _family

    items[:] = [item for item in items if is_of_family(item)]
