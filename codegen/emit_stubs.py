"""_C.pyi: the types of the extension module, for editors and type checkers.

Operators come from the YAML; the hand-written rest of the module is in stub_text.py.
"""

from __future__ import annotations

import ast
import keyword
import textwrap
from dataclasses import replace

from .c_types import c_result
from .catalog import Catalog
from .help_text import body, summary
from .model import BaseType, ListType, OptionalType, Type, base_of
from .python_api import (
    NUMBERS_AS_TENSORS,
    Parameter,
    PythonFunction,
    Signature,
    has_names,
    named_results,
    python_functions,
)
from .stub_text import DTYPES, FORMATS, IMPORTS, LAYOUTS, PRIVATE, TYPES, tensor_members


def python_hint(type_: Type) -> str:
    match type_:
        case OptionalType(elem):
            return f"{python_hint(elem)} | None"
        case ListType(elem, size):
            inner = python_hint(elem)
            if base_of(type_) in (BaseType("int"), BaseType("SymInt")):
                return "Union[builtins.int, _Size]" if size is not None else "_Size"
            return f"Sequence[{inner}]"
        case BaseType(name):
            names = {
                "Scalar": "Number",
                "int": "builtins.int",
                "SymInt": "builtins.int",
                "float": "builtins.float",
                "bool": "builtins.bool",
                "ScalarType": "_dtype",
                "Device": "Union[_device, str, builtins.int]",
                "Layout": "_layout",
                "MemoryFormat": "memory_format",
                "DeviceIndex": "builtins.int",
                "Storage": "Any",
                "Stream": "Any",
            }
            return names.get(name, name)


def _takes_numbers(function: PythonFunction, p: Parameter) -> bool:
    """Where no overload of its own says so already."""
    same = [q.type for s in function.signatures for q in s.parameters if q.name == p.name]
    return function.name in NUMBERS_AS_TENSORS and BaseType("Scalar") not in same


def _parameter(p: Parameter, numbers: bool) -> str:
    hint = python_hint(p.type)
    if numbers and p.type == BaseType("Tensor"):
        hint = "Union[Tensor, Number]"
    if p.default == "None" and not hint.endswith("| None"):
        hint += " | None"
    name = f"{p.name}_" if keyword.iskeyword(p.name) else p.name  # random_'s `from`, given by position
    return f"{name}: {hint}" + (" = ..." if p.default is not None else "")


def _result(signature: Signature, named: bool) -> str:
    result = c_result(signature.op.schema)
    match result.kind:
        case "tensor":
            return "Tensor"
        case "seq":
            return "tuple[Tensor, ...]"
        case "tensors" if named and has_names(signature.op):
            return f"return_types.{signature.op.schema.name.unqualified}"
        case "tensors":
            return f"tuple[{', '.join(['Tensor'] * result.count)}]"
        case "status":
            return "Tensor" if signature.op.schema.returns else "None"
        case _:
            returned = signature.op.schema.returns[0].type
            return "_Item" if returned == BaseType("Scalar") else python_hint(returned)


def _parameters(function: PythonFunction, signature: Signature, spread: bool) -> str:
    """In one of the two forms of a list of ints: view((2, 3)), which may be given by name, or view(2, 3)."""
    parts = ["self"] if function.method else []
    starred = False
    for p in signature.shown:
        if p.keyword and not starred:
            parts.append("*")
        if spread and signature.spreads(p):
            parts.append(f"*{p.name}: builtins.int")
        else:
            parts.append(_parameter(p, _takes_numbers(function, p)))
        starred = starred or p.keyword or (spread and signature.spreads(p))
    return ", ".join(parts)


def function_stub(function: PythonFunction, indent: str = "", static: bool = False, named: bool = True) -> str:
    """The function's lines in a .pyi; `named`: its results may be named tuples."""
    if keyword.iskeyword(function.name):
        return ""
    forms = [(s, spread) for s in function.signatures for spread in ([False, True] if s.varargs else [False])]
    mark = f"{indent}@staticmethod\n" * static + f"{indent}@overload\n" * (len(forms) > 1)
    heads = [
        f"{mark}{indent}def {function.name}({_parameters(function, s, x)}) -> {_result(s, named)}:" for s, x in forms
    ]
    return f"{heads[0]}\n{_docstring(function, indent)}" + "".join(f"{head} ...\n" for head in heads[1:])


def _docstring(function: PythonFunction, indent: str) -> str:
    """What the first overload does, which editors show for all. Private names, and what writes to its tensor, which has
    the arguments and the example of the function without a line under its name, say in short what they do: help()
    says more.
    """
    short = function.name.endswith("_") or function.name.startswith("_")
    text = textwrap.indent(summary(function) if short else body(function), f"{indent}    ").strip()
    if not text:
        return f"{indent}    ...\n"
    return f'{indent}    """{text}"""\n' if short else f'{indent}    """{text}\n{indent}    """\n'


def _defined(text: str) -> set[str]:
    """The names that the lines of a class define."""
    (tree,) = ast.parse(f"class _:\n{text}").body
    assert isinstance(tree, ast.ClassDef)
    found = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    return found | {ast.unparse(node.target) for node in tree.body if isinstance(node, ast.AnnAssign)}


def emit_stubs(catalog: Catalog) -> str:
    functions = python_functions(catalog)
    out = [IMPORTS + TYPES]
    out += [f"{name}: dtype\n" for name in DTYPES]
    out += [f"{name}: memory_format\n" for name in FORMATS]
    out += [f"{name}: layout\n" for name in LAYOUTS]
    out += [f"{name}: Any\n" for name in PRIVATE]
    members = tensor_members()
    known = _defined(members)
    out.append("default_generator: Generator\n\nclass Tensor:\n" + members)
    out += [function_stub(f, "    ") for f in functions if f.method and f.name not in known]
    out.append("\n")
    out += [function_stub(f) for f in functions if not f.method and not f.module]
    out.append("\nclass _nn:\n")
    out += [function_stub(f, "    ", static=True) for f in functions if f.module == "nn"]
    return "".join(out)


def emit_return_types_stub(catalog: Catalog) -> str:
    """return_types.pyi: the named tuples that calls give."""
    out = ["# Generated by codegen/emit_stubs.py from yaml/native_functions/. Do not edit.\n"]
    out.append("from typing import NamedTuple\n\nfrom tensorpy._C import Tensor\n")
    for name, fields in named_results(catalog).items():
        out.append(f"\nclass {name}(NamedTuple):\n" + "".join(f"    {field}: Tensor\n" for field in fields))
    return "".join(out)


# The modules whose functions are operators, and what else each has.
MODULES = {
    "fft": "",
    "linalg": "\nclass LinAlgError(RuntimeError): ...\n",
    "masked": "\nfrom tensorpy.masked.maskedtensor import MaskedTensor as MaskedTensor\n"
    "from tensorpy.masked.maskedtensor import as_masked_tensor as as_masked_tensor\n"
    "from tensorpy.masked.maskedtensor import is_masked_tensor as is_masked_tensor\n"
    "from tensorpy.masked.maskedtensor import masked_tensor as masked_tensor\n"
    "from tensorpy.masked._masks import _canonical_dim as _canonical_dim\n"
    "from tensorpy.masked._masks import _combine_input_and_mask as _combine_input_and_mask\n"
    "from tensorpy.masked._masks import _input_mask as _input_mask\n"
    "from tensorpy.masked._masks import _output_mask as _output_mask\n"
    "from tensorpy.masked._masks import _reduction_identity as _reduction_identity\n"
    "from tensorpy.masked._masks import _where as _where\n",
    "special": "",
}


def emit_module_stub(catalog: Catalog, module: str) -> str:
    """linalg.pyi and its kin: the operators of a module by their names there."""
    names = "Generator Number Size Tensor _Item _Size _device _dtype _layout layout memory_format return_types".split()
    functions = [
        replace(f, name=f.name.removeprefix(f"{module}_"))
        for f in python_functions(catalog)
        if f.module == module and not f.name.startswith("_")
    ]
    return (
        IMPORTS
        + "".join(f"from tensorpy._C import {name}\n" for name in names)
        + f"\n__all__ = {sorted(f.name for f in functions) + (['LinAlgError'] if module == 'linalg' else [])!r}\n\n"
        + "".join(map(function_stub, functions))
        + MODULES[module]
    )
