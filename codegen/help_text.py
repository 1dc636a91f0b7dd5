"""The text of help() for an operator: one text for the docstring, the stub, reference.md and the site.

An entry says what an operator does (`doc`), and where names and types do not say it, what an argument means
(`arguments`), what comes back (`returns`), what is raised (`raises`), and an `example`. What follows from the entry
otherwise (types, shapes that are broadcast, dtypes, gradients, views, variants) is written here.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from .c_types import c_result
from .catalog import Operator
from .glossary import ARGUMENTS
from .python_api import Parameter, PythonFunction, has_names, python_type, text_signature
from .text import wrapped

DIMS = ("dim", "dim0", "dim1")  # numbers of dimensions

_CLASSES = {
    "bool": "bool",
    "uint": "unsigned integers",
    "sint": "integers",
    "float": "floats",
    "complex": "complex numbers",
}


def _operands(op: Operator) -> int:
    return len(op.pointwise.inputs) if op.pointwise is not None else 0


def _meaning(function: PythonFunction, name: str, types: list[str]) -> str:
    """What an argument is; nothing where only its type is known."""
    told = function.told.arguments
    own = told.get(name) or (told.get("self") if name == "input" else None)
    if own is not None:
        return own
    words = [ARGUMENTS[key] for type_ in types if (key := f"{name}: {type_}") in ARGUMENTS]
    if not words and name in ARGUMENTS:
        words = [ARGUMENTS[name]]
    text = "; or ".join(dict.fromkeys(words))
    most = max(_operands(s.op) for s in function.signatures)
    shape = ", of any shape" if most == 1 else ", broadcast with the others" if most else ""
    target = ", of the input's shape" if function.signatures[0].op.schema.name.base.endswith("loss") else ""
    if "{shape}" in text:
        text = text.replace("{shape}", shape)
    return text.replace("{target}", target)


def parameters(function: PythonFunction) -> Iterator[tuple[str, str, str]]:
    """Name, types and meaning of each parameter that the signature shows."""
    for merged in function.merged:
        found: list[Parameter] = [p for s in function.signatures for p in s.shown if p.name == merged.name]
        types = list(dict.fromkeys(python_type(p.type) for p in found))
        shown = " or ".join(types) + (" or None" if any(p.optional for p in found) else "")
        yield merged.name, shown, _meaning(function, merged.name, types)


def _result(op: Operator) -> str:
    names = [r.name for r in op.schema.returns if r.name]
    count = len(op.schema.returns)
    if op.kind == "inplace":
        return "self, written in place"
    if op.is_view:
        several = c_result(op.schema).kind == "seq"
        return "views, which share memory with self" if several else "a view, which shares memory with self"
    if op.pointwise is not None:
        shape = "of the broadcast shape" if len(op.pointwise.inputs) > 1 else "of the same shape"
        kind = {
            "always_bool": "a tensor of bool",
            "int_to_float": "a tensor of floats",
            "complex_to_float": "a tensor of the dtype, of real numbers",
        }.get(op.pointwise.promotion, "a tensor")
        dtype = " and the promoted dtype" if kind == "a tensor" and len(op.pointwise.inputs) > 1 else ""
        return f"{kind} {shape}{dtype}"
    result = c_result(op.schema)
    match result.kind:
        case "tensor":
            return "a tensor"
        case "seq":
            return "a tuple of tensors"
        case "tensors" if has_names(op):
            return f"a named tuple ({', '.join(names)})"
        case "tensors":
            return f"a tuple of {count} tensors"
        case "status":
            return "self" if op.schema.returns else "nothing"
        case _:
            return " or ".join(dict.fromkeys(python_type(r.type) for r in op.schema.returns))


def _dtypes(op: Operator) -> str | None:
    computed = op.pointwise or op.reduction
    if computed is None:
        return None
    expressions = computed.expressions
    if len(expressions) == len(_CLASSES):
        return "Any dtype."
    names = [words for leaf, words in _CLASSES.items() if leaf in expressions]
    if "sint" in expressions and "uint" in expressions:
        names.remove("unsigned integers")
    if op.pointwise is not None and op.pointwise.promotion == "int_to_float":
        names = ["bool", "integers", *(n for n in names if n not in ("bool", "integers"))]
    return f"Dtypes: {', '.join(names)}."


def _gradient(op: Operator) -> str | None:
    if op.function.origin.no_gradient:
        return f"No gradient: {op.function.origin.no_gradient}."
    if op.derivative is not None and op.derivative.formulas:
        zeros = ("zeros_like(", "grad.new_zeros(")
        formulas = [f for f in op.derivative.formulas if not f.non_differentiable and not f.text.startswith(zeros)]
        names = list(dict.fromkeys(n for f in formulas for n in f.names))
        return f"Differentiable in {', '.join(names)}." if names else "No gradient."
    return None


def _facts(function: PythonFunction) -> str:
    op = function.signatures[0].op
    variants = [m.name.unqualified for m in (op.group.inplace, op.group.functional) if m is not None and m.variants]
    other = [n for n in variants if n != op.schema.name.unqualified]
    place = {"functional": "In place", "inplace": "Not in place"}.get(op.kind)
    twin = f"{place}: {other[0]}." if other and place else None
    return " ".join(fact for fact in (_dtypes(op), _gradient(op), twin) if fact)


def _as_called(text: str, function: PythonFunction) -> str:
    """The words of an entry speak of `self`, which a function calls `input`."""
    if function.method or not any(p.name == "input" for s in function.signatures for p in s.parameters):
        return text
    return re.sub(r"\bSelf\b", "Input", re.sub(r"\bself\b", "input", text))


@dataclass(frozen=True, slots=True)
class Help:
    """What is said of a function: its arguments by name, types and meaning; paragraphs of what comes back and holds."""

    doc: str
    arguments: tuple[tuple[str, str, str], ...]
    returns: str
    raises: str
    facts: str
    example: str


def _said(function: PythonFunction) -> str:
    """What it does; a gradient's function is named after what it is the gradient of."""
    of, _, rest = function.name.rpartition("_backward")
    return function.doc or (f"The gradients of {of}." if of and not rest else "")


def _raised(function: PythonFunction) -> str:
    """What the entries do not say, but what follows from them: dimensions are checked, and shapes broadcast."""
    if function.name.startswith("_"):
        return ""
    ops = [s.op for s in function.signatures]
    dims = dict.fromkeys(a.name for op in ops for a in op.schema.arguments if a.name in DIMS and str(a.type) == "int")
    facts = [f"IndexError for a {' or '.join(dims)} out of range"] if dims else []
    if max(map(_operands, ops)) > 1:
        facts.append("RuntimeError for shapes that do not broadcast")
    return f"{', '.join(facts)}." if facts else ""


def help_of(function: PythonFunction) -> Help:
    told, op = function.told, function.signatures[0].op
    raises = told.raises or _raised(function)
    returns = told.returns if told.returns and op.kind != "inplace" else _result(op)

    def called(text: str) -> str:
        return _as_called(text, function)

    return Help(
        called(_said(function)),
        tuple((name, types, called(meaning)) for name, types, meaning in parameters(function)),
        called(f"Returns: {returns.rstrip('.')}."),
        called(f"Raises: {raises}") if raises else "",
        called(_facts(function)),
        told.example or "",
    )


def body(function: PythonFunction) -> str:
    """As text: all but the signature and the schemas."""
    told = help_of(function)
    rows = [
        wrapped(f"{n} ({t})" + (f": {words}" if words else ""), "    ", "        ") for n, t, words in told.arguments
    ]
    parts = [wrapped(told.doc), "Arguments:\n" + "\n".join(rows) if rows else "", wrapped(told.returns, "", "    ")]
    parts += [wrapped(told.raises, "", "    "), wrapped(told.facts)]
    parts.append(f"Example:\n{textwrap.indent(told.example, '    ')}" if told.example else "")
    return "\n\n".join(filter(None, parts))


def summary(function: PythonFunction) -> str:
    """What it does, and nothing else of it."""
    return wrapped(help_of(function).doc)


def markdown(function: PythonFunction, escaped: Callable[[str], str] = str) -> str:
    """The same for pages."""
    told = help_of(function)
    rows = [f"- `{n}` ({escaped(t)})" + (f": {escaped(words)}" if words else "") for n, t, words in told.arguments]
    parts = [escaped(told.doc), "\n".join(rows), *map(escaped, (told.returns, told.raises, told.facts))]
    parts.append(f"```pycon\n{told.example}\n```" if told.example else "")
    return "\n\n".join(filter(None, parts))


def docstring(function: PythonFunction) -> str:
    """As CPython takes it of a function in C: the first line is what `inspect.signature` reads."""
    schemas = "\n".join(f"    {s.op.schema}" for s in function.signatures)
    return f"{text_signature(function)}\n--\n\n{body(function)}\n\nSchemas:\n{schemas}"
