"""Formulas: Python expressions over operators, checked against the schemas and lowered to C.

    formula   = {statement} result            one a line, or separated by `;`
    statement = name = expression | a, b = expression | expression.op_(...) | if condition: ... [else: ...]
              | raise RuntimeError("text") | warn("text")
    result    = expression | return expression

What is known of every value is its kind: a schema type without list sizes, SymInt read as int ("Tensor?", "int[]").
Operators are chosen by the kinds of their arguments, as a Python call would choose the overload. One of a namespace is
called as in Python: `ops.space.name(...)`.

A kind that ends in "?" is passed to what cannot be None only after a test (`x if x is not None else y`).

`used` says what of each variable a formula needs, so that autograd saves shapes where shapes are enough;
formula_lower.py checks a formula and writes the C.
"""

from __future__ import annotations

import ast
import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from .c_types import CResult, c_arguments, c_result, has_optional_outputs
from .errors import Location, YamlError
from .model import BaseType, FunctionSchema, ListType, OptionalType, Type

# ---------------------------------------------------------------------------------------------------------------------
# Kinds and values
# ---------------------------------------------------------------------------------------------------------------------

_PLAIN = {"SymInt": "int", "SymFloat": "float", "SymBool": "bool"}

# The C declaration of a variable of a kind that is no tensor.
DECLARATIONS = {
    "int": "int64_t ",
    "float": "double ",
    "bool": "bool ",
    "Scalar": "tp_scalar ",
    "str": "const char *",
    "ScalarType": "tp_dtype ",
    "Device": "tp_device ",
    "Layout": "tp_layout ",
    "MemoryFormat": "tp_memory_format ",
    "int?": "tp_opt_int ",
    "float?": "tp_opt_float ",
    "bool?": "tp_opt_bool ",
    "int[]": "tp_ints ",
    "int[]?": "tp_ints ",
    "float[]": "tp_floats ",
    "bool[]": "tp_bools ",
}
NUMBERS = ("bool", "int", "float", "Scalar")  # each holds all values of those before it
TENSORS = ("Tensor", "Tensor?")

DTYPES = (
    "bool uint8 uint16 uint32 uint64 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex32 "
    "complex64 complex128"
).split()
_DTYPE_ALIASES = {"long": "int64", "half": "float16", "double": "float64", "float": "float32", "int": "int32"}
_MEMORY_FORMATS = {
    "contiguous_format": "TP_CONTIGUOUS_FORMAT",
    "preserve_format": "TP_PRESERVE_FORMAT",
    "channels_last": "TP_CHANNELS_LAST",
    "channels_last_3d": "TP_CHANNELS_LAST_3D",
}
_LAYOUTS = ("strided", "sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc")
_REDUCTIONS = {"Mean": 1, "Sum": 2}

# Operators that read of one argument its pattern, as tensors of layouts have one: which.
PATTERNS = {"_layout_at": 1, "_layout_like": 0, "_nested_beside": 0}

# What is known of a tensor without its elements: attribute or method -> the part of the tensor that it reads.
ATTRIBUTES = {
    "shape": "sizes",
    "ndim": "sizes",
    "strides": "strides",
    "dtype": "dtype",
    "device": "device",
    "requires_grad": "requires_grad",
}
METHODS = {
    "numel": "sizes",
    "dim": "sizes",
    "size": "sizes",
    "stride": "strides",
    "storage_offset": "offset",
    "by_columns": "by_columns",  # of a matrix: its transpose is contiguous
    "is_complex": "dtype",
    "is_floating_point": "dtype",
}


@dataclass(frozen=True, slots=True)
class Part:
    """What is known of a tensor without its elements, in C."""

    type: str
    value: str

    def of(self, tensor: str) -> str:
        return self.value.format(tensor)


PARTS = {
    "sizes": Part("tp_ints", "tp_sizes({})"),
    "strides": Part("tp_ints", "tp_strides({})"),
    "dtype": Part("tp_dtype", "tp_dtype_of({})"),
    "device": Part("tp_device", "tp_device_of({})"),
    "offset": Part("int64_t", "tp_storage_offset({})"),
    "requires_grad": Part("bool", "tp_requires_grad({})"),
    "by_columns": Part("bool", "tp_by_columns({})"),
    "defined": Part("bool", "{} != NULL"),
}
_NUMBER_FUNCTIONS = ("abs", "min", "max", "sqrt", "exp", "log")
BUILTINS = ("undefined", "is_grad_enabled", "len", "float", "int", "bool", *_NUMBER_FUNCTIONS)


def kind_of(type_: Type) -> str:
    match type_:
        case BaseType(name):
            return _PLAIN.get(name, name)
        case OptionalType(elem):
            return kind_of(elem) + "?"
        case ListType(elem):
            return kind_of(elem).rstrip("?") + "[]"


@dataclass(frozen=True, slots=True)
class Variable:
    """A name that a formula may use.

    `parts` stands for a tensor of which only parts are there: part -> C expression. `items` makes it a tuple
    (`grads[1]`). `length` is that of a list, where it is known.
    """

    kind: str
    c: str = ""
    parts: Mapping[str, str] | None = None
    items: tuple[Variable, ...] = ()
    writable: bool = False
    length: int | None = None

    @staticmethod
    def of(type_: Type, c: str, *, writable: bool = False) -> Variable:
        length = type_.size if isinstance(type_, ListType) and kind_of(type_) == "bool[]" else None
        return Variable(kind_of(type_), c, writable=writable, length=length)


@dataclass(frozen=True, slots=True)
class Value:
    """What an expression came to.

    `owner` is the C variable that holds the reference, made in block number `block`. A list display keeps its `items`
    and is written out where it is used; its kind is "[]" while it is empty.
    """

    kind: str
    c: str = ""
    items: tuple[Value, ...] | None = None
    literal: object = None
    owner: str = ""
    block: int = 0
    parts: Mapping[str, str] | None = None
    writable: bool = False
    length: int | None = None
    text: str = ""

    @property
    def is_tensor(self) -> bool:
        return self.kind in TENSORS

    @property
    def is_number(self) -> bool:
        return self.kind in NUMBERS


NONE = Value("none", "NULL")


def int_value(value: int) -> Value:
    c = str(value) if abs(value) < 2**31 else f"INT64_C({value})"
    return Value("int", f"({c})" if value < 0 else c, literal=value)


def literal_value(value: object) -> Value | None:
    match value:
        case None:
            return NONE
        case bool():
            return Value("bool", "true" if value else "false", literal=value)
        case int():
            return int_value(value)
        case float():
            if math.isinf(value):
                return Value("float", "INFINITY" if value > 0 else "(-INFINITY)", literal=value)
            return Value("float", repr(value) if value >= 0 else f"({value!r})", literal=value)
        case complex():
            return Value("Scalar", f"TP_SCALAR_C(CMPLX({value.real!r}, {value.imag!r}))", literal=value)
        case str():
            escaped = value.replace("\\", "\\\\").replace('"', '\\"')
            return Value("str", f'"{escaped}"', literal=value)
        case _:
            return None


def named_constant(name: str) -> Value | None:
    if name in _MEMORY_FORMATS:
        return Value("MemoryFormat", _MEMORY_FORMATS[name])
    if name in _LAYOUTS:
        return Value("Layout", f"TP_{name.upper()}")
    dtype = _DTYPE_ALIASES.get(name, name)
    if dtype in DTYPES:
        return Value("ScalarType", f"TP_{dtype.upper()}")
    if name == "inf":
        return literal_value(math.inf)
    return int_value(_REDUCTIONS[name]) if name in _REDUCTIONS else None


def default_value(text: str) -> Value | None:
    """A default of a schema."""
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return named_constant(text)
    if isinstance(value, list):
        items = tuple(item for item in map(literal_value, value) if item is not None)
        return Value(f"{items[0].kind}[]" if items else "[]", items=items)
    return literal_value(value)


# ---------------------------------------------------------------------------------------------------------------------
# How the value of a formula leaves the C function
# ---------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Slot:
    """Where a gradient goes: an lvalue, or for a list the address of the first of `count` of them."""

    c: str
    count: str = ""


@dataclass(frozen=True, slots=True)
class Result:
    """form: that of a CResult, or `slots`: each value is stored, the function returns a status."""

    form: str
    decl: str
    failed: str
    kinds: tuple[str, ...]
    slots: tuple[Slot, ...] = ()

    @staticmethod
    def of_schema(schema: FunctionSchema) -> Result:
        r: CResult = c_result(schema)
        kinds = () if r.kind == "status" else tuple(kind_of(t.type) for t in schema.returns)
        if has_optional_outputs(schema):
            kinds = tuple(f"{kind}?" if kind == "Tensor" else kind for kind in kinds)
        return Result(r.kind, r.decl, r.failed, kinds)

    @staticmethod
    def of_slots(slots: Sequence[Slot]) -> Result:
        kinds = tuple("Tensor[]" if slot.count else "Tensor?" for slot in slots)
        return Result("slots", "int ", "-1", kinds, tuple(slots))


# ---------------------------------------------------------------------------------------------------------------------
# Parsing, and what a formula uses
# ---------------------------------------------------------------------------------------------------------------------


def place_in(location: Location, text: str, line: int) -> Location:
    """A text of several lines is a YAML block, which starts in the line after its key."""
    return Location(location.file, location.line + line) if "\n" in text.strip() else location


def parse(text: str, location: Location) -> list[ast.stmt]:
    try:
        body = ast.parse(textwrap.dedent(text).strip()).body
    except SyntaxError as error:
        raise YamlError(
            place_in(location, text, error.lineno or 1),
            f"not Python syntax: {error.msg} in `{(error.text or text).strip()}`",
            "write `name = expression` lines and a last expression; put one that is broken over lines in parentheses",
        ) from None
    if not body:
        raise YamlError(location, "an empty formula", "write an expression")
    return body


@dataclass(slots=True)
class Use:
    """How a formula uses a variable: all of it, or parts, constant indices, lengths along a dimension.

    `elements`: more than the pattern of a tensor of a layout is needed of the whole.
    `read` has what is read of the parts: ("sizes", ""), or of its sizes alone ("numel", "") or one ("size", "-1").
    """

    whole: bool = False
    elements: bool = False
    parts: set[str] = field(default_factory=set)
    indices: set[int] = field(default_factory=set)
    sizes_along: set[str] = field(default_factory=set)
    read: set[tuple[str, str]] = field(default_factory=set)

    def merge(self, other: Use) -> None:
        self.whole |= other.whole
        self.elements |= other.elements
        self.parts |= other.parts
        self.indices |= other.indices
        self.sizes_along |= other.sizes_along
        self.read |= other.read


_NOWHERE = Location("<formula>", 0)


def _read_by(method: str, arguments: list[ast.expr]) -> tuple[str, str]:
    """What a method reads of a part."""
    if method in ("numel", "dim"):
        return method, ""
    found = ast.unparse(arguments[0]) if method == "size" and arguments else ""
    return ("size", found) if found.lstrip("-").isdecimal() else (METHODS[method], "")


def used(text: str, location: Location = _NOWHERE) -> dict[str, Use]:
    """Every name that the formula reads (its own locals too) and how."""
    uses: dict[str, Use] = {}

    def of(name: str) -> Use:
        return uses.setdefault(name, Use())

    def visit(node: ast.AST) -> None:
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Attribute(value=ast.Name(id="ops"))), args=args, keywords=keywords
            ):
                for child in (*args, *keywords):
                    visit(child)
                return
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="sizes"), args=[dim]):
                of(name).sizes_along.add(ast.unparse(dim))
                return
            case ast.Call(func=ast.Name(id="len"), args=[ast.Name(id=name)]):
                of(name).parts.add("length")
                return
            case ast.Call(func=ast.Name(id=called), args=args, keywords=keywords):
                for i, child in enumerate((*args, *keywords)):
                    if isinstance(child, ast.Name) and PATTERNS.get(called) == i:
                        of(child.id).whole = True
                    else:
                        visit(child)
                return
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attr), args=args) if attr in METHODS:
                of(name).parts.add(METHODS[attr])
                of(name).read.add(_read_by(attr, args))
                for argument in args:
                    visit(argument)
                return
            case ast.Attribute(value=ast.Name(id=name), attr=attr) if attr in ATTRIBUTES:
                of(name).parts.add(ATTRIBUTES[attr])
                of(name).read.add((ATTRIBUTES[attr], ""))
                return
            case ast.Compare(left=ast.Name(id=name), ops=[ast.Is() | ast.IsNot()]):
                of(name).parts.add("defined")
                return
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=int() as index)):
                of(name).indices.add(index)
                return
            case ast.Compare(
                left=ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=int() as index)),
                ops=[ast.Is() | ast.IsNot()],
            ):
                of(f"{name}[{index}]").parts.add("defined")
                return
            case ast.Name(id=name, ctx=ast.Load()):
                of(name).whole = of(name).elements = True
                return
        for child in ast.iter_child_nodes(node):
            visit(child)

    for statement in parse(text, location):
        visit(statement)
    return uses


def schema_variables(schema: FunctionSchema) -> dict[str, Variable]:
    """The arguments as they stand in the operator's own C function."""
    return {a.name: Variable.of(a.type, a.name_in_c, writable=a.argument.is_write) for a in c_arguments(schema)}
