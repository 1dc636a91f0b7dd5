"""The Python face of the operators: which names exist and which signatures each has.

A signature joins a functional variant and its out= variant, as in PyTorch: `add(input, other, *, alpha=1, out=None)`.
The C emitter, the stubs and the reference are all made from this.
"""

from __future__ import annotations

import keyword
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from .c_types import c_arguments, c_result
from .catalog import Catalog, Operator
from .model import Argument, BaseType, ListType, NativeFunction, OptionalType, Type, base_of

# Functions that take numbers for tensors, as PyTorch's parser has it.
NUMBERS_AS_TENSORS = frozenset("add sub subtract mul multiply div divide true_divide floor_divide copy_".split())


# What Python may leave out though the schema asks for it, as in PyTorch: to("cpu"), to(device=None).
LEFT_OUT = {"to.device": ("device", "dtype")}

# They take the options of a factory, but what they give has the gradient's history of their argument.
COPIES = frozenset({"to", "_to_copy"})


@dataclass(frozen=True, slots=True)
class Parameter:
    """`name` is what Python calls it; `argument` is None for those that only Python has (requires_grad)."""

    name: str
    type: Type
    default: str | None
    keyword: bool
    role: str = "argument"  # "argument", "out", "requires_grad"

    @property
    def optional(self) -> bool:
        return isinstance(self.type, OptionalType) or self.default == "None"


@dataclass(frozen=True, slots=True)
class Signature:
    """One overload as Python sees it: the operator, and the out= variant that shares its signature."""

    op: Operator
    out: Operator | None
    parameters: tuple[Parameter, ...]
    method: bool

    @property
    def varargs(self) -> bool:
        """view(2, 3): the first parameter after self is a list of ints and the only positional one."""
        positional = [p for p in self.parameters if not p.keyword]
        if positional and self.is_self(positional[0]):
            positional = positional[1:]
        if not positional or any(p.default is None for p in positional[1:]):
            return False
        type_ = positional[0].type
        return len(positional) == 1 and isinstance(strip(type_), ListType) and base_of(type_).name in ("int", "SymInt")

    def spreads(self, parameter: Parameter) -> bool:
        """Whether that is the list of ints that may be spread."""
        return self.varargs and not parameter.keyword and isinstance(strip(parameter.type), ListType)

    @property
    def shown(self) -> tuple[Parameter, ...]:
        """The parameters but for the object of a method, which may stand anywhere: where(condition, self, other)."""
        return tuple(p for p in self.parameters if not (self.method and p.name == "self"))

    def is_self(self, parameter: Parameter) -> bool:
        return (
            bool(self.op.schema.positional)
            and parameter is self.parameters[0]
            and self.op.schema.positional[0].name == "self"
        )


@dataclass(frozen=True, slots=True)
class Merged:
    """One parameter of the signature that stands for all overloads of a function."""

    name: str
    kind: str  # "positional", "spread" (the ints of view(2, 3)), "keyword"
    default: str | None  # None: every overload asks for it; "...": an overload can do without


@dataclass(frozen=True, slots=True)
class Told:
    """What the entries of a name say to those who call it: see help_text.py."""

    doc: str | None = None
    arguments: Mapping[str, str] = field(default_factory=dict)
    returns: str | None = None
    raises: str | None = None
    example: str | None = None

    def before(self, other: Told) -> Told:
        """This, and of the other what is missing."""
        return Told(
            self.doc or other.doc,
            {**other.arguments, **self.arguments},
            self.returns or other.returns,
            self.raises or other.raises,
            self.example or other.example,
        )


def told_by(function: NativeFunction) -> Told:
    given = function.arguments.items() if function.arguments is not None else ()
    arguments = {name: text for name, text in given if isinstance(text, str)}
    return Told(function.doc, arguments, function.returns, function.raises, function.example)


@dataclass(frozen=True, slots=True)
class PythonFunction:
    name: str
    module: str  # "" is tensorpy itself; "nn", "linalg", ...
    method: bool
    signatures: tuple[Signature, ...]
    told: Told  # an in-place function's is that of the functional one, where it has none itself

    @property
    def doc(self) -> str | None:
        return self.told.doc

    @property
    def merged(self) -> tuple[Merged, ...]:
        """What `inspect.signature` shows: every call that an overload takes, by the names that it takes."""
        names: list[str] = []
        for signature in sorted(self.signatures, key=lambda s: -len(s.parameters)):
            after = 0
            for p in sorted(signature.shown, key=lambda p: p.keyword):
                if p.name not in names:
                    names.insert(after, p.name)
                after = names.index(p.name) + 1
        return _in_order([self._merge(name) for name in names])

    def _merge(self, name: str) -> Merged:
        found = [(s, p) for s in self.signatures for p in s.shown if p.name == name]
        spread = all(s.spreads(p) for s, p in found)
        kind = "spread" if spread else "keyword" if all(p.keyword for _, p in found) else "positional"
        defaults = [p.default for _, p in found if p.default is not None]
        required = len(found) == len(self.signatures) and not defaults
        without = "None" if all(p.optional for _, p in found) else "..."
        return Merged(name, kind, None if required or spread else defaults[0] if defaults else without)

    @property
    def c(self) -> str:
        return ("method_" if self.method else f"{self.module}_" if self.module else "function_") + self.name


def _in_order(parameters: list[Merged]) -> tuple[Merged, ...]:
    """As Python wants them: positional ones, those with a default last, then the rest by keyword."""
    spread = [p for p in parameters if p.kind == "spread"]
    positional = [p for p in parameters if p.kind == "positional"]
    if spread:  # nothing that follows it has a place
        at = parameters.index(spread[0])
        positional = [p for p in positional if parameters.index(p) < at]
    first = next((i for i, p in enumerate(positional) if p.default is not None), len(positional))
    positional[first:] = [replace(p, default=p.default or "...") for p in positional[first:]]
    placed = {p.name for p in positional + spread}
    return (*positional, *spread, *(replace(p, kind="keyword") for p in parameters if p.name not in placed))


def strip(type_: Type) -> Type:
    return type_.elem if isinstance(type_, OptionalType) else type_


def python_type(type_: Type) -> str:
    names = {
        "SymInt": "int",
        "ScalarType": "dtype",
        "MemoryFormat": "memory_format",
        "Device": "device",
        "Layout": "layout",
        "Scalar": "Number",
    }
    match type_:
        case BaseType(name):
            return names.get(name, name)
        case OptionalType(elem):
            return python_type(elem)
        case ListType(elem):
            return f"tuple of {python_type(elem)}s"


def _python_name(argument: Argument, method: bool) -> str:
    return "input" if argument.name == "self" and not method else argument.name


def make_signature(op: Operator, out: Operator | None, method: bool) -> Signature:
    named = {a.name for a in op.schema.kwarg_only}
    parameters = []
    for a in op.schema.positional + op.schema.kwarg_only:
        type_, default = a.type, a.default
        if a.name in LEFT_OUT.get(str(op.schema.name), ()):
            type_, default = OptionalType(type_), "None"
        parameters.append(Parameter(_python_name(a, method), type_, default, a.name in named))
    if out is not None:
        outs = out.schema.out
        given: Type = outs[0].type if len(outs) == 1 else ListType(BaseType("Tensor"), len(outs))
        parameters.append(Parameter("out", OptionalType(given), "None", True, "out"))
    if op.schema.is_factory and op.schema.name.base not in COPIES:
        parameters.append(Parameter("requires_grad", BaseType("bool"), "False", True, "requires_grad"))
    return Signature(op, out, tuple(parameters), method)


_RANK = {"Tensor": 0, "ScalarType": 1, "int": 2, "SymInt": 2, "bool": 3, "str": 4, "float": 5, "Scalar": 6}


def _rank(signature: Signature) -> tuple[int, ...]:
    """Narrower parameter types are tried first: a Tensor before a number, an int before a Scalar."""
    ranks = []
    for p in signature.parameters:
        if p.keyword:
            break
        ranks.append(_RANK.get(base_of(p.type).name, 4) * 2 + isinstance(strip(p.type), ListType))
    return tuple(ranks)


def _out_of(op: Operator, outs: dict[str, Operator]) -> Operator | None:
    """The out= variant that a function shares its name with: sin's, but not sin_'s, which writes to its argument."""
    out = outs.get(op.schema.signature()) if op.kind in ("functional", "mutable") else None
    return out if out is not None and out.schema.name.base == op.schema.name.base else None


def _functions_of(
    name: str,
    module: str,
    method: bool,
    ops: Sequence[Operator],
    outs: dict[str, Operator],
    told: Mapping[str, Told],
) -> PythonFunction:
    signatures = [make_signature(op, None if method else _out_of(op, outs), method) for op in ops]
    own = Told()
    for op in ops:
        own = own.before(told_by(op.function.origin))
    own = own.before(told.get(name, Told())).before(told.get(name.rstrip("_"), Told()))
    return PythonFunction(name, module, method, tuple(sorted(signatures, key=_rank)), own)


@lru_cache(maxsize=2)
def python_functions(catalog: Catalog) -> tuple[PythonFunction, ...]:
    """All module functions, then all methods, in YAML order."""
    functions: dict[tuple[str, str], list[Operator]] = {}
    methods: dict[str, list[Operator]] = {}
    outs: dict[str, Operator] = {}
    told: dict[str, Told] = {}
    for op in catalog:
        name = op.schema.name.unqualified
        if op.schema.name.namespace:  # tensorpy.ops has it
            continue
        told[name] = told.get(name, Told()).before(told_by(op.function.origin))
        if op.kind == "out":
            if op.function.variants:  # without any: `ops_only`
                outs[op.schema.signature()] = op
            continue
        if op.function.manual_cpp_binding:
            continue
        if op.function.is_function:
            functions.setdefault((op.function.python_module or "", name), []).append(op)
        if op.function.is_method:
            methods.setdefault(name, []).append(op)
    result = [_functions_of(name, module, False, ops, outs, told) for (module, name), ops in functions.items()]
    # An out= operator without a functional twin of its own stands alone.
    result += [_functions_of(name, "", True, ops, outs, told) for name, ops in methods.items()]
    return tuple(result)


def has_names(op: Operator) -> bool:
    """Whether a call gives a struct sequence: as in PyTorch, functions of nn give plain tuples."""
    return op.function.python_module != "nn" and all(r.name for r in op.schema.returns)


def named_results(catalog: Catalog) -> dict[str, list[str]]:
    """By the struct sequence's name: the fields. Calls with out= give one of their own, as PyTorch's do."""
    fields: dict[str, list[str]] = {}
    for op in catalog:
        if c_result(op.schema).kind == "tensors" and has_names(op):
            fields.setdefault(op.schema.name.unqualified, [r.name or "" for r in op.schema.returns])
    for signature in (s for f in python_functions(catalog) for s in f.signatures):
        name = signature.op.schema.name.unqualified
        if signature.out is not None and name in fields:
            fields[f"{name}_out"] = fields[name]
    return fields


_SHOWN_DEFAULTS = {"[]": "()", "Mean": "1", "Sum": "2"} | dict.fromkeys(
    ("contiguous_format", "preserve_format", "long", "float"), "None"
)


def _shown(p: Merged) -> str:
    if p.kind == "spread":
        return f"*{p.name}"
    name = f"{p.name}_" if keyword.iskeyword(p.name) else p.name
    if p.default is None:
        return name
    default = _SHOWN_DEFAULTS.get(p.default, p.default)
    return f"{name}=({default[1:-1]},)" if default.startswith("[") else f"{name}={default}"


def text_signature(function: PythonFunction) -> str:
    """What `inspect.signature` reads."""
    parts = ["$self" if function.method else "$module"]
    starred = False
    for p in function.merged:
        if p.kind == "keyword" and not starred:
            parts.append("*")
        starred = starred or p.kind != "positional"
        parts.append(_shown(p))
    return f"{function.name}({', '.join(parts)})"


__all__ = ["Parameter", "PythonFunction", "Signature", "c_arguments", "python_functions", "text_signature"]
