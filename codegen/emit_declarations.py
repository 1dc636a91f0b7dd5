"""RegistrationDeclarations.h and RegistrationMinimal.h, for backend writers; reference.md, for callers.

A line of the first two is the C function that a kernel is, and in a comment, as JSON, its schema and what a backend
wants to know: whether a kernel for a key can be registered (`dispatch`), whether something serves every backend that
has none (`default`) once it has certain primitives (`prims`), and how the kernel begins (`kernel`; tensorpy/library.h).
The first file has every operator and primitive; the second what a backend brings: the primitives, and the operators
that nothing serves by default. Of the other operators `kernel` says only that one is boxed (0.3 MB less to install);
else it is TENSORPY_KERNEL(result, name, (type, parameter), ...) of the declaration.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from .c_types import c_arguments, c_result, parameters, value_decl
from .catalog import Catalog, Operator
from .emit_functions import YAML
from .help_text import markdown
from .model import FunctionSchema
from .primitives import NAMESPACE, Primitive
from .python_api import PythonFunction, python_functions
from .text import banner

DEFAULT_KEYS = (
    "CompositeImplicitAutograd",
    "CompositeExplicitAutograd",
    "CompositeExplicitAutogradNonFunctional",
    "Dense",
)
OUT_CODES = "JFB"  # numbers that a kernel gives through a pointer: int, float, bool
MOST_PARAMETERS = 24  # of TENSORPY_KERNEL


def has_default(op: Operator) -> bool:
    """Some kernel serves every backend, if need be by primitives."""
    return any(k.key in DEFAULT_KEYS for k in op.kernels)


def must_be_written(op: Operator) -> bool:
    """A new backend brings a kernel of its own, or the host computes the operator: nothing serves it by default."""
    return not has_default(op)


def _pairs(schema: FunctionSchema) -> Iterator[tuple[str, str]]:
    """The parameters of the C function: types and names."""
    for a in c_arguments(schema):
        yield a.c.decl.strip().removeprefix("struct "), a.name_in_c
    result = c_result(schema)
    if result.kind == "value":
        yield f"{value_decl(result)}*".replace("* *", "**"), "result"
    if result.kind == "values":
        yield "tp_value *", "results"


def kernel_head(schema: FunctionSchema, name: str) -> str | None:
    """How a kernel begins; None where only a boxed one can be: a result that is a dtype, any number, or one of several
    types."""
    result, pairs = c_result(schema), list(_pairs(schema))
    boxed = result.kind == "values" or (result.value is not None and result.value.code not in OUT_CODES)
    if boxed or not 0 < len(pairs) <= MOST_PARAMETERS:
        return None
    return f"TENSORPY_KERNEL({result.decl.strip()}, {name}, {', '.join(f'({t}, {n})' for t, n in pairs)})"


def _line(namespace: str, schema: FunctionSchema, **facts: object) -> str:
    name = f"{namespace}_{schema.name.c_name}"
    own = "my_" + name.removeprefix("aten_")
    head = kernel_head(schema, own)
    begins = {} if head and facts.get("default") == "True" and namespace == "aten" else {"kernel": head or "boxed"}
    facts = {name: value for name, value in facts.items() if value}
    said = {"schema": str(schema) if schema.name.namespace else f"{namespace}::{schema}", **facts, **begins}
    declaration = f"{c_result(schema).decl}{name}({parameters(schema)});".replace("struct tp_", "tp_")
    return f"{declaration} // {json.dumps(said, separators=(',', ':'))}\n"


def _operators(operators: Iterable[Operator]) -> Iterator[str]:
    for op in operators:
        facts = {"dispatch": str(not op.is_implicit), "default": str(has_default(op))}
        yield _line("aten", op.schema, **facts, prims=list(op.prims))


def _primitives(primitives: Iterable[Primitive], uses: Mapping[str, int] | None = None) -> Iterator[str]:
    for p in primitives:
        words = " ".join(p.doc.split())
        if uses is not None:
            words += f" Operators that are made of it: {uses[p.name]}."
        yield f"/* {words} */\n" + _line(NAMESPACE, p.schema, dispatch="True", default=str(p.name in ("copy", "fill")))


def _file(name: str, what: str, *parts: Iterable[str]) -> str:
    guard = f"TENSORPY_{name}_H"
    body = "\n".join("".join(part) for part in parts)
    return (
        banner("emit_declarations.py", YAML, what)
        + f'#ifndef {guard}\n#define {guard}\n\n#include "tensorpy/types.h"\n\n'
        + '#ifdef __cplusplus\nextern "C" {\n#endif\n\n'
        + body
        + "\n#ifdef __cplusplus\n}\n#endif\n#endif\n"
    )


def emit_registration_declarations(catalog: Catalog) -> str:
    what = (
        "Every primitive and operator as a backend sees it. Where a line has no `kernel`, that begins as the\n"
        " * declaration says: TENSORPY_KERNEL(result, my_name, (type, parameter), ...)."
    )
    return _file("REGISTRATION_DECLARATIONS", what, _primitives(catalog.primitives), _operators(catalog))


_SUFFICE = """Four functions of a TENSORPY_BACKEND suffice (backend.h): allocate, release, copy_from_host, copy_to_host.
With them every operator works, and the host computes it. What follows takes operators off the host: the primitives,
those first that most operators are made of (map alone brings the pointwise ones); then the operators that nothing
serves by default. tensorpy.backends.report(device) says in which order they bring most for your calls."""


def emit_registration_minimal(catalog: Catalog) -> str:
    what = "What a backend brings, so that it runs every operator itself; what it leaves out the host computes."
    needed = (op for op in catalog if must_be_written(op))
    uses = Counter(name for op in catalog for name in op.prims)
    ordered = sorted(catalog.primitives, key=lambda p: -uses[p.name])
    what += f"\n{_SUFFICE}".replace("\n", "\n * ")
    return _file("REGISTRATION_MINIMAL", what, _primitives(ordered, uses), _operators(needed))


def entry(function: PythonFunction, module: str = "tensorpy") -> str:
    """What reference.md says of one function."""
    inside = f"{module}.{function.module}" if function.module else module
    name = f"{'Tensor' if function.method else inside}.{function.name}"
    first = function.signatures[0].op.function.origin
    tags = sorted({t for s in function.signatures for t in s.op.function.tags})
    lines = [f"### {name}\n", f"{markdown(function)}\n"]
    lines += [f"    {s.op.schema}" for s in function.signatures]
    lines.append(f"\nDeclared at {first.location.in_tree}" + (f"; tags: {', '.join(tags)}" if tags else "") + ".\n")
    return "\n".join(line for line in lines if line)


def emit_reference(catalog: Catalog) -> str:
    functions = sorted(python_functions(catalog), key=lambda f: (f.method, f.module, f.name))
    head = (
        "<!-- Generated by codegen/emit_declarations.py from yaml/native_functions/. Do not edit. -->\n"
        "# Operator reference\n\n"
    )
    count = sum(1 for _ in catalog)
    parts = [head + f"{count} operators under {len(functions)} names.\n", "## Functions\n"]
    parts += [entry(f) for f in functions if not f.method]
    parts.append("## Methods\n")
    parts += [entry(f) for f in functions if f.method]
    return "\n".join(parts)
