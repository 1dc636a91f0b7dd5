"""python/of_<family>.c: signature tables. python/Calls.c: one short C function per shape of a call, which the tables
point to beside the C functions of their overloads. python/Lists.c: all families' functions and methods.

An overload by its full name (`ops.aten.add.Tensor`) has no table: csrc/python/ops.c makes one of its schema.

Overload resolution and conversion are one parser's work (csrc/python/parse.c); nothing of it is repeated here.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from zlib import crc32

from .c_types import NAMED_DEFAULTS, CType, c_arguments, c_result, c_type, signature_code, value_decl
from .catalog import Catalog, Operator
from .emit_functions import YAML, declaration
from .model import BaseType, ListType, Type, base_of
from .python_api import (
    NUMBERS_AS_TENSORS,
    Parameter,
    PythonFunction,
    Signature,
    has_names,
    named_results,
    python_functions,
    python_type,
    strip,
)
from .text import Tables, banner, c_string

HEAD = """#include "dispatch/boxing.h"
#include "python/parse.h"
#include "python/returns.h"

"""


def _default_value(type_: Type, default: str) -> str:
    """The initialiser of a tp_value."""
    if default == "None":
        return "{.tag = TP_NONE}"
    if default in NAMED_DEFAULTS:
        return f"{{.tag = {NAMED_DEFAULTS[default]}}}"
    c = c_type(type_)
    value = ast.literal_eval({"True": "True", "False": "False"}.get(default, default))
    match c.member:
        case "scalar":
            macro = (
                "TP_SCALAR_B" if isinstance(value, bool) else "TP_SCALAR_I" if isinstance(value, int) else "TP_SCALAR_F"
            )
            return f"{{.tag = TP_SCALAR, .scalar = {macro}({str(value).lower()})}}"
        case "ints":
            if not isinstance(value, list):
                assert isinstance(strip(type_), ListType)
                value = [value] * (getattr(strip(type_), "size", None) or 1)
            data = f"(const int64_t[]){{{', '.join(map(str, value)) or '0'}}}"
            return f"{{.tag = TP_INTS_, .ints = {{{data}, {len(value)}}}}}"
        case "bools":
            return (
                f"{{.tag = TP_BOOLS, .bools = {{(const bool[]){{{', '.join(str(v).lower() for v in value)}}}, "
                f"{len(value)}}}}}"
            )
        case "b":
            return f"{{.tag = TP_BOOL_, .b = {str(bool(value)).lower()}}}"
        case "str":
            return f"{{.tag = TP_STR, .str = {c_string(value)}}}"
        case "f":
            return f"{{.tag = TP_FLOAT, .f = {float(value)!r}}}"
        case "tensors":
            return "{.tag = TP_TENSORS}"
        case _:
            return f"{{.tag = {c.tag}, .{c.member} = {value}}}"


def _size(parameter: Parameter, op: Operator) -> int:
    type_ = strip(parameter.type)
    if type_ == BaseType("ScalarType"):
        return int("quantized_dtypes" in op.function.tags)
    if not isinstance(type_, ListType):
        return 0
    if base_of(type_) == BaseType("Tensor"):
        return int(not isinstance(type_.elem, BaseType))
    if type_.size is None:
        return 0
    return 255 if type_.size == 1 else type_.size


def _parameter_row(parameter: Parameter, op: Operator, defaults: Tables) -> str:
    flags = []
    if parameter.optional:
        flags.append("TP_PARAM_OPTIONAL")
    if parameter.default is not None:
        flags.append("TP_PARAM_DEFAULT")
    if parameter.keyword:
        flags.append("TP_PARAM_KEYWORD")
    if parameter.role == "out":
        flags.append("TP_PARAM_OUT")
    c: CType = c_type(parameter.type)
    value = "NULL"
    if parameter.default is not None:
        value = defaults.name(f"    {_default_value(parameter.type, parameter.default)},\n")
    return (
        f"    {{{c_string(parameter.name)}, {c_string(python_type(parameter.type))}, {c.tag}, "
        f"{' | '.join(flags) or '0'}, "
        f"{_size(parameter, op)}, {value}}},\n"
    )


def _places(op: Operator) -> dict[str, int]:
    """Where the parsed values of the arguments stand, by their names in the schema."""
    taken = {a.name for a in op.schema.out}
    return {name: i for i, name in enumerate(a.name for a in c_arguments(op.schema) if a.name not in taken)}


def _arguments(op: Operator, places: dict[str, int] | None = None) -> str:
    """The C arguments of a call, read out of the parsed values: in order, or at the places of another overload."""
    own = _places(op)
    return ", ".join(
        f"tp_unbox_{a.c.code}(&v[{(places or own)[a.name]}])" for a in c_arguments(op.schema) if a.name in own
    )


def _return_type(op: Operator, out: str = "") -> str:
    """The struct sequence of a result with names, else NULL; `out` is "_out" of a call with out=."""
    if not has_names(op):
        return "NULL"
    return f"tp_return_type_{op.schema.name.unqualified}{out}()"


def _called(op: Operator, field: str) -> str:
    """The C function in a field of the signature, as the type that it has."""
    result = c_result(op.schema)
    types = [a.c.decl.strip() for a in c_arguments(op.schema)]
    if result.kind == "value":
        types.append(f"{value_decl(result)}*")
    if result.kind == "values":
        types.append("tp_value *")
    return f"(({result.decl}(*)({', '.join(types) or 'void'}))s->{field})"


def _return(op: Operator) -> str:
    """The statement that makes the call and converts its result."""
    result = c_result(op.schema)
    called = _called(op, "fn")
    call = f"{called}({_arguments(op)})"
    match result.kind:
        case "tensor":
            return f"    return tp_py_wrap_steal({call});\n"
        case "seq":
            return f"    return tp_py_wrap_seq_steal({call});\n"
        case "tensors":
            type_ = _return_type(op)
            return f"    {result.decl}r = {call};\n    return tp_py_wrap_tuple_steal(r.v, {result.count}, {type_});\n"
        case "status":
            returned = "a->self" if op.schema.returns or op.function.origin.each else "Py_None"
            return f"    return tp_py_return_object({call}, {returned});\n"
        case "values":
            return (
                f"    tp_value results[{result.count}] = {{{{TP_NONE}}}};\n"
                f"    return tp_py_return_values({called}({_arguments(op)}, results), results, {result.count});\n"
            )
        case _:
            assert result.value is not None
            arguments = _arguments(op)
            comma = ", " if arguments else ""
            return f"    TP_PY_RETURN_VALUE_{result.value.code}({called}({arguments}{comma}&result));\n"


def _out_branch(signature: Signature, requires_grad: int | None) -> str:
    assert signature.out is not None
    index = next(i for i, p in enumerate(signature.parameters) if p.role == "out")
    outs = signature.out.schema.out
    arguments = _arguments(signature.out, _places(signature.op))
    comma = ", " if arguments else ""
    called = _called(signature.out, "out_fn")
    if len(outs) == 1:
        given = f"v[{index}].{c_type(outs[0].type).member}"
        call = f"{called}({arguments}{comma}{given})"
        if requires_grad is not None:
            call = f"tp_py_out_of_factory({call}, {given}, v[{requires_grad}].b)"
        lines = f"        return tp_py_return_object({call}, a->out);\n"
    else:
        given = ", ".join(f"v[{index}].tensors.data[{i}]" for i in range(len(outs)))
        lines = (
            f"        if (tp_py_check_out_count(&v[{index}], {len(outs)}) < 0) return NULL;\n"
            f"        int status = {called}({arguments}{comma}{given});\n"
            f"        return tp_py_return_outs(status, {len(outs)}, v[{index}].tensors.data, "
            f"{_return_type(signature.op, '_out')});\n"
        )
    return f"    if (v[{index}].tag != TP_NONE) {{\n{lines}    }}\n"


def _names(signature: Signature) -> str:
    """The overload and its out= variant by name: what explain says of a call."""
    out = "NULL" if signature.out is None else c_string(str(signature.out.schema.name))
    return f"{c_string(str(signature.op.schema.name))}, {out}"


class _Family:
    """The tables of parameters and their defaults: what is equal is written once."""

    def __init__(self) -> None:
        self.defaults = Tables("const tp_value ", "default")
        self.params = Tables("const tp_py_param ", "params")

    def signature(self, s: Signature, function: str) -> str:
        """The initialiser of a tp_py_signature."""
        rows = "".join(_parameter_row(p, s.op, self.defaults) for p in s.parameters)
        positional = sum(not p.keyword for p in s.parameters)
        numbers = str(function in NUMBERS_AS_TENSORS).lower()
        self_at = next((i for i, p in enumerate(s.parameters) if p.name == "self"), 0)
        out_fn = f"(tp_fn)tp_{s.out.c}" if s.out is not None else "NULL"
        return (
            f"    {{{call_of(s)[0]}, (tp_fn)tp_{s.op.c}, {out_fn}, {self.params.name(rows)}, {len(s.parameters)}, "
            f"{positional}, {self_at}, {numbers}, {str(s.varargs).lower()}, {_names(s)}}},\n"
        )

    def text(self) -> str:
        return self.defaults.text() + self.params.text()


def _call(signature: Signature) -> str:
    body = ""
    requires_grad = next((i for i, p in enumerate(signature.parameters) if p.role == "requires_grad"), None)
    if signature.out is not None:
        body += _out_branch(signature, requires_grad)
    if requires_grad is not None:
        body += (
            f"    return tp_py_wrap_factory_steal({_called(signature.op, 'fn')}({_arguments(signature.op)}), "
            f"v[{requires_grad}].b);\n"
        )
    else:
        body += _return(signature.op)
    return body


def call_of(signature: Signature) -> tuple[str, str]:
    """The name of the C function that makes the call, which all signatures of its shape share, and its body."""
    body = _call(signature)
    shape = signature_code(signature.op.schema)
    if body != _return(signature.op):  # an out= branch, requires_grad
        shape += f"_{crc32(body.encode()):08x}"
    elif "tp_return_type_" in body:
        shape += f"_{signature.op.schema.name.unqualified}"
    elif "Py_None" in body:
        shape += "_none"
    return f"tp_py_call_{shape}", body


def _call_head(name: str) -> str:
    return f"PyObject *{name}(tp_py_args *a, const tp_py_signature *s)"


def emit_python_calls(catalog: Catalog) -> str:
    """python/Calls.c."""
    bodies: dict[str, str] = {}
    for name, body in (call_of(s) for f in python_functions(catalog) for s in f.signatures):
        assert bodies.setdefault(name, body) == body, name
    calls = (
        f"{_call_head(name)};\n{_call_head(name)} {{\n    const tp_value *v = a->values;\n    (void)v;\n{body}}}\n"
        for name, body in sorted(bodies.items())
    )
    return "".join(
        [
            banner("emit_python.py", YAML, "The calls that Python makes, one function per shape."),
            '#include "return_types.h"\n',
            HEAD,
            *calls,
        ]
    )


def _table(function: PythonFunction, family: _Family) -> str:
    rows = [family.signature(s, function.name) for s in function.signatures]
    self = "self" if function.method else "NULL"
    module = c_string(f"_{function.module}") if function.module and not function.method else "NULL"
    unused = "" if function.method else "    (void)self;\n"
    return (
        f"static const tp_py_signature signatures_{function.c}[] = {{\n{''.join(rows)}}};\n"
        f"const tp_py_function tp_py_table_{function.c} = {{{c_string(function.name)}, "
        f"signatures_{function.c}, {len(function.signatures)}, {module}, NULL}};\n"
        f"static PyObject *py_{function.c}(PyObject *self, PyObject *const *args, Py_ssize_t nargs, "
        f"PyObject *kwnames) {{\n"
        f"{unused}    return tp_py_call(&tp_py_table_{function.c}, {self}, args, nargs, kwnames);\n}}\n\n"
    )


def _method_row(function: PythonFunction) -> str:
    """Without a docstring: _C.help has it (emit_help.py)."""
    return (
        f"    {{{c_string(function.name)}, (PyCFunction)(void (*)(void))py_{function.c}, "
        "METH_FASTCALL | METH_KEYWORDS, NULL},\n"
    )


def modules_of(functions: Sequence[PythonFunction]) -> list[str]:
    return sorted({f.module for f in functions if not f.method})


def _rows(name: str, functions: Iterable[PythonFunction]) -> str:
    return f"PyMethodDef {name}[] = {{\n{''.join(map(_method_row, functions))}    {{NULL, NULL, 0, NULL}},\n}};\n"


def emit_python_family(name: str, functions: Sequence[PythonFunction]) -> str:
    """`functions` are those whose first overload is the family's."""
    family = _Family()
    tables = "".join(_table(f, family) for f in functions)
    signatures = [s for f in functions for s in f.signatures]
    called = {op.c: op for s in signatures for op in (s.op, s.out) if op is not None}
    return "".join(
        [
            banner("emit_python.py", f"{YAML}{name}.yaml", f"The operators of {name} as Python calls them."),
            HEAD,
            *(declaration(op) for op in called.values()),
            *(f"{_call_head(call)};\n" for call in sorted({call_of(s)[0] for s in signatures})),
            "\n",
            family.text(),
            tables,
            *(
                _rows(f"tp_py_{module or 'top'}_{name}", (f for f in functions if not f.method and f.module == module))
                for module in modules_of(functions)
            ),
            _rows(f"tp_py_methods_{name}", (f for f in functions if f.method)),
        ]
    )


def python_families(catalog: Catalog) -> dict[str, list[PythonFunction]]:
    """By the family of the overload that is tried first."""
    families: dict[str, list[PythonFunction]] = {name: [] for name in catalog.families()}
    for function in python_functions(catalog):
        families[function.signatures[0].op.family].append(function)
    return families


def with_functions(families: Mapping[str, Sequence[PythonFunction]], module: str) -> list[str]:
    """The families that have functions of a module."""
    return [name for name, functions in families.items() if module in modules_of(functions)]


def documented(catalog: Catalog) -> Iterator[PythonFunction]:
    """In the order of tp_py_documented: the rows of all tables."""
    families = python_families(catalog)
    for module in modules_of([f for functions in families.values() for f in functions]):
        for name in with_functions(families, module):
            yield from (f for f in families[name] if not f.method and f.module == module)
    for functions in families.values():
        yield from (f for f in functions if f.method)


def help_names(catalog: Catalog) -> list[str]:
    """The functions of _C.help in its order (emit_help.py)."""
    return [*(f.c for f in documented(catalog)), *(entry.name for entry in catalog.by_hand)]


def help_digest(catalog: Catalog) -> str:
    return sha256("\n".join(help_names(catalog)).encode()).hexdigest()[:16]


def help_lists(catalog: Catalog) -> str:
    rows = "".join(f"    {c_string(entry.name)},\n" for entry in catalog.by_hand)
    return (
        f'const char tp_py_help_digest[] = "{help_digest(catalog)}";\n'
        f"const char *const tp_py_help_by_hand[] = {{\n{rows}    NULL,\n}};\n"
    )


def emit_python_lists(catalog: Catalog) -> str:
    families = python_families(catalog)
    modules = modules_of([f for functions in families.values() for f in functions])
    out = [
        banner("emit_python.py", YAML, "Every function and method, family by family."),
        '#include "python/parse.h"\n#include "python/returns.h"\n\n',
    ]
    for module in modules:
        names = [f"tp_py_{module or 'top'}_{name}" for name in with_functions(families, module)]
        out += [f"extern PyMethodDef {name}[];\n" for name in names]
        out.append(f"static PyMethodDef *const functions_{module or 'top'}[] = {{{', '.join(names)}, NULL}};\n")
    for name, wanted in (("tp_py_functions", False), ("tp_py_methods", True)):
        listed = [f for functions in families.values() for f in functions if bool(f.method) == wanted]
        out += [f"extern const tp_py_function tp_py_table_{f.c};\n" for f in listed]
        rows = "".join(f"    &tp_py_table_{f.c},\n" for f in listed)
        out.append(f"const tp_py_function *const {name}[] = {{\n{rows}    NULL,\n}};\n")
    names = [f"tp_py_methods_{name}" for name in families]
    out += [f"extern PyMethodDef {name}[];\n" for name in names]
    out.append(f"PyMethodDef *const tp_py_generated_methods[] = {{{', '.join(names)}, NULL}};\n")
    tables = [f"tp_py_{module or 'top'}_{name}" for module in modules for name in with_functions(families, module)]
    out.append(f"PyMethodDef *const tp_py_documented[] = {{{', '.join([*tables, *names])}, NULL}};\n")
    out.append(help_lists(catalog) + "\n")
    out.append(
        "int tp_py_init_functions(PyObject *m) {\n    if (tp_py_add_functions(m, NULL, functions_top) < 0) return -1;\n"
    )
    for module in filter(None, modules):
        out.append(f'    if (tp_py_add_functions(m, "_{module}", functions_{module}) < 0) return -1;\n')
    out.append("    return 0;\n}\n")
    return "".join(out)


def emit_return_types(catalog: Catalog) -> str:
    """The struct sequences of operators whose results have names, as torch.return_types."""
    fields = named_results(catalog)
    out = [
        banner("emit_python.py", YAML, "Struct sequences for results with names."),
        '#include "python/returns.h"\n#include "return_types.h"\n\n',
    ]
    for name, names in fields.items():
        rows = "".join(f"{{{c_string(n)}, NULL}}, " for n in names)
        out.append(
            f"static PyStructSequence_Field fields_{name}[] = {{{rows}{{NULL, NULL}}}};\n"
            f"static PyStructSequence_Desc desc_{name} = {{\n"
            f'    "tensorpy.return_types.{name}", NULL, fields_{name}, {len(names)}}};\n'
            f"PyTypeObject *tp_return_type_{name}(void) {{\n    static PyTypeObject *type;\n"
            f"    if (!type) type = tp_py_new_return_type(&desc_{name});\n    return type;\n}}\n"
        )
    rows = "".join(f'    {{"{name}", tp_return_type_{name}}},\n' for name in sorted(fields))
    out.append(f"\nconst tp_py_named_type tp_py_return_types[] = {{\n{rows}    {{NULL, NULL}},\n}};\n")
    return "".join(out)


def emit_return_types_h(catalog: Catalog) -> str:
    out = [
        banner("emit_python.py", YAML, "Struct sequences for results with names."),
        '#pragma once\n\n#include "python/common.h"\n\n',
    ]
    out += [f"PyTypeObject *tp_return_type_{name}(void);\n" for name in named_results(catalog)]
    return "".join(out)
