"""How a schema's types are written in C: declarations, boxed values, results.

The one place that knows both sides; dispatch/value.h and core/list.h are its counterparts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from .model import Argument, BaseType, FunctionSchema, ListType, OptionalType, Type, base_of


@dataclass(frozen=True, slots=True)
class CType:
    """`decl` ends so that a name can follow directly; `tag` and `member` say how a tp_value holds it."""

    decl: str
    tag: str
    member: str
    code: str  # one or two letters that stand for the type in a signature's name
    none: str | None = None  # the C expression for None, where the type is optional

    def declare(self, name: str) -> str:
        return f"{self.decl}{name}"


_BASE = {
    "Tensor": CType("tp_tensor *", "TP_TENSOR", "tensor", "T", "NULL"),
    "Scalar": CType("const tp_scalar *", "TP_SCALAR", "scalar", "S", "NULL"),
    "int": CType("int64_t ", "TP_INT", "i", "J"),
    "SymInt": CType("int64_t ", "TP_INT", "i", "J"),
    "DeviceIndex": CType("int64_t ", "TP_INT", "i", "J"),
    "float": CType("double ", "TP_FLOAT", "f", "F"),
    "bool": CType("bool ", "TP_BOOL_", "b", "B"),
    "SymBool": CType("bool ", "TP_BOOL_", "b", "B"),
    "str": CType("const char *", "TP_STR", "str", "Z", "NULL"),
    "ScalarType": CType("tp_dtype ", "TP_DTYPE", "i", "D", "TP_NO_DTYPE"),
    "Layout": CType("tp_layout ", "TP_LAYOUT", "i", "L", "TP_NO_LAYOUT"),
    "MemoryFormat": CType("tp_memory_format ", "TP_MEMORY_FORMAT", "i", "M", "TP_NO_FORMAT"),
    "Device": CType("tp_device ", "TP_DEVICE", "device", "V", "TP_NO_DEVICE"),
    "Generator": CType("struct tp_generator *", "TP_GENERATOR", "generator", "G", "NULL"),
    "Storage": CType("tp_storage *", "TP_STORAGE", "storage", "O", "NULL"),
    "Stream": CType("tp_stream ", "TP_STREAM", "stream", "Q", "TP_NO_STREAM"),
}
_OPTIONAL = {
    "int": CType("tp_opt_int ", "TP_INT", "i", "Jo", "TP_NO_INT"),
    "SymInt": CType("tp_opt_int ", "TP_INT", "i", "Jo", "TP_NO_INT"),
    "float": CType("tp_opt_float ", "TP_FLOAT", "f", "Fo", "TP_NO_FLOAT"),
    "bool": CType("tp_opt_bool ", "TP_BOOL_", "b", "Bo", "-1"),
}
_LIST = {
    "Tensor": CType("tp_tensors ", "TP_TENSORS", "tensors", "Tl", "((tp_tensors){NULL, -1})"),
    "Scalar": CType("tp_scalars ", "TP_SCALARS", "scalars", "Sl", "((tp_scalars){NULL, -1})"),
    "int": CType("tp_ints ", "TP_INTS_", "ints", "Jl", "TP_NO_INTS"),
    "SymInt": CType("tp_ints ", "TP_INTS_", "ints", "Jl", "TP_NO_INTS"),
    "float": CType("tp_floats ", "TP_FLOATS", "floats", "Fl", "((tp_floats){NULL, -1})"),
    "bool": CType("tp_bools ", "TP_BOOLS", "bools", "Bl", "((tp_bools){NULL, -1})"),
}


# Defaults that are names, as the initialiser of a tp_value. Others are literals.
NAMED_DEFAULTS = {
    "Mean": "TP_INT, .i = 1",
    "Sum": "TP_INT, .i = 2",
    "contiguous_format": "TP_MEMORY_FORMAT, .i = TP_CONTIGUOUS_FORMAT",
    "preserve_format": "TP_MEMORY_FORMAT, .i = TP_PRESERVE_FORMAT",
    "long": "TP_DTYPE, .i = TP_INT64",
    "float": "TP_DTYPE, .i = TP_FLOAT32",
}


class NoCType(Exception):
    """A type of the grammar that no operator of tensorpy uses (Dimname, QScheme, ...)."""


@cache
def c_type(type_: Type) -> CType:
    try:
        match type_:
            case BaseType(name):
                return _BASE[name]
            case OptionalType(BaseType(name)):
                return _OPTIONAL.get(name) or _BASE[name]
            case OptionalType(ListType() as inner):
                return c_type(inner)
            case ListType(BaseType(name)):
                return _LIST[name]
            case ListType(OptionalType(BaseType("Tensor"))):
                return _LIST["Tensor"]
    except KeyError:
        pass
    raise NoCType(str(type_))


def is_optional(type_: Type) -> bool:
    return isinstance(type_, OptionalType)


# ---- results ----


@dataclass(frozen=True, slots=True)
class CResult:
    """What the C function gives back.

    kind: `status` (nothing, or only arguments that were written), `tensor`, `tensors` (a tuple of n), `seq` (Tensor[]),
    `value` (a number or the like, through a last parameter `result`), `values` (several of different types, boxed,
    through a last parameter `results`).
    """

    kind: str
    decl: str
    code: str
    failed: str  # the expression to return after an error
    count: int = 1
    value: CType | None = None

    def is_error(self, name: str) -> str:
        """A C condition: the call that gave `name` failed."""
        match self.kind:
            case "tensor" | "seq":
                return f"!{name}"
            case "tensors":
                return f"!{name}.v[0]"
            case _:
                return f"{name} < 0"


@cache
def c_result(schema: FunctionSchema) -> CResult:
    returns = schema.returns
    if all(r.is_write for r in returns):
        return CResult("status", "int ", "v", "-1", 0)
    types = [r.type for r in returns]
    tensor = BaseType("Tensor")
    if types == [tensor]:
        return CResult("tensor", "tp_tensor *", "t", "NULL")
    if types[0] == tensor and all(t in (tensor, OptionalType(tensor)) for t in types) and 2 <= len(types) <= 5:
        n = len(types)
        return CResult("tensors", f"tp_tensor{n} ", f"t{n}", f"(tp_tensor{n}){{{{NULL}}}}", n)
    if len(types) == 1 and isinstance(types[0], ListType) and base_of(types[0]) == tensor:
        return CResult("seq", "tp_tensor_seq *", "q", "NULL")
    if (
        len(types) == 1
        and isinstance(types[0], BaseType)
        and types[0].name in ("int", "SymInt", "float", "bool", "SymBool", "Scalar", "ScalarType")
    ):
        value = _BASE[types[0].name]
        return CResult("value", "int ", "r" + value.code, "-1", 1, value)
    if len(types) > 1 and all(c_type(t).member in ("tensor", "tensors", "i", "f", "b") for t in types):
        return CResult("values", "int ", f"w{len(types)}", "-1", len(types))
    raise NoCType(str([str(t) for t in types]))


def has_optional_outputs(schema: FunctionSchema) -> bool:
    """`output_mask` leaves outputs undefined, so that a NULL output is no sign of failure."""
    return any(a.name == "output_mask" for a in schema.arguments)


def value_decl(result: CResult) -> str:
    """The pointed-to type of the `result` parameter of a function of kind `value`."""
    assert result.value is not None
    return "tp_scalar " if result.value.member == "scalar" else result.value.decl


def parameters(schema: FunctionSchema, *, keyset: bool = False) -> str:
    parts = ["tp_keyset ks"] if keyset else []
    parts += [c_type(a.type).declare(a.name_in_c) for a in c_arguments(schema)]
    result = c_result(schema)
    if result.kind == "value":
        parts.append(f"{value_decl(result)}*result")
    if result.kind == "values":
        parts.append("tp_value *results")
    return ", ".join(parts) or "void"


@dataclass(frozen=True, slots=True)
class CArgument:
    name: str
    name_in_c: str
    type: Type
    argument: Argument

    @property
    def c(self) -> CType:
        return c_type(self.type)


C_KEYWORDS = frozenset(
    "auto break case char const continue default do double else enum extern float for goto if inline int long register "
    "restrict return short signed sizeof static struct switch typedef union unsigned void volatile while asm typeof "
    "_Alignas _Alignof _Atomic _Bool _Complex _Generic _Imaginary _Noreturn _Static_assert _Thread_local".split()
)
# Names that C does not allow for a parameter, that its headers define, or that our own generated code uses.
_RESERVED = C_KEYWORDS | frozenset(
    "bool true false complex I NULL errno stdin stdout stderr unix linux result results ks op ops kernels infos args "
    "got guard fn node m made inputs outs params given".split()
)


@cache
def c_arguments(schema: FunctionSchema) -> tuple[CArgument, ...]:
    return tuple(
        CArgument(a.name, a.name + "_" if a.name in _RESERVED else a.name, a.type, a) for a in schema.arguments
    )


def call_arguments(
    schema: FunctionSchema, *, keyset: str | None = None, replaced: Mapping[str, str] | None = None
) -> str:
    """The arguments passed on as they came, but for those that `replaced` gives another expression for, by name."""
    parts = [keyset] if keyset else []
    parts += [(replaced or {}).get(a.name, a.name_in_c) for a in c_arguments(schema)]
    kind = c_result(schema).kind
    if kind in ("value", "values"):
        parts.append("result" if kind == "value" else "results")
    return ", ".join(parts)


# By the type's code: what hands a struct on member by member (Note in core/list.h).
PASSED_BY_PARTS = {"Jo": "tp_pass_opt_int", "Fo": "tp_pass_opt_float"}


def passed_by_parts(schema: FunctionSchema) -> dict[str, str]:
    """For `replaced` of call_arguments, where a layer passes its own arguments on."""
    return {
        a.name: f"{PASSED_BY_PARTS[a.c.code]}({a.name_in_c})"
        for a in c_arguments(schema)
        if a.c.code in PASSED_BY_PARTS
    }


def signature_code(schema: FunctionSchema) -> str:
    """A name that is equal for two operators if and only if their C types are: `T_TTS` becomes `t_TTS`."""
    codes = "_".join(a.c.code for a in c_arguments(schema)) or "none"
    return f"{c_result(schema).code}__{codes}"


def function_type(schema: FunctionSchema) -> str:
    return f"tp_fn_{signature_code(schema)}"
