"""The schema model: what an entry of native_functions/ or derivatives/ says, as immutable values.

Invariant: `str()` of a parsed schema is the schema as PyTorch writes it, character for character. Locations do not
take part in equality.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, TypeAlias

from .errors import Location

Kind: TypeAlias = Literal["functional", "inplace", "out", "mutable", "scratch"]

BASE_TYPES = frozenset(
    "Tensor int SymInt float SymFloat bool SymBool str Scalar ScalarType Generator Layout Device DeviceIndex "
    "MemoryFormat Dimname Storage QScheme Stream".split()
)

# Python's operators that have an augmented form: `__iand__` is the in-place `__and__`.
AUGMENTED = frozenset("add sub mul matmul truediv floordiv div mod pow lshift rshift and xor or".split())

# The keyword arguments that say what kind of tensor a factory makes; an out= variant is told by its out tensor.
TENSOR_OPTIONS = ("dtype", "layout", "device", "pin_memory")


@dataclass(frozen=True, slots=True)
class BaseType:
    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class OptionalType:
    elem: Type

    def __str__(self) -> str:
        return f"{self.elem}?"


@dataclass(frozen=True, slots=True)
class ListType:
    elem: Type
    size: int | None = None

    def __str__(self) -> str:
        return f"{self.elem}[{'' if self.size is None else self.size}]"


Type: TypeAlias = BaseType | OptionalType | ListType

TENSOR = BaseType("Tensor")


def base_of(type_: Type) -> BaseType:
    """The type inside all the lists and optionals."""
    while not isinstance(type_, BaseType):
        type_ = type_.elem
    return type_


def is_tensor_like(type_: Type) -> bool:
    return base_of(type_) == TENSOR


@dataclass(frozen=True, slots=True)
class Annotation:
    """`a`, `a!`, `a|b`, `a -> *`, `a! -> a|b`: the alias sets before the call, whether it writes, and those after."""

    before: tuple[str, ...]
    is_write: bool = False
    after: tuple[str, ...] = ()
    of_list: bool = False  # it is written after the list's brackets

    def __str__(self) -> str:
        text = "|".join(self.before) + ("!" if self.is_write else "")
        return f"{text} -> {'|'.join(self.after)}" if self.after else text


def _type_text(type_: Type, annotation: Annotation | None) -> str:
    """The annotation stands directly after `Tensor`, inside any list or optional, or after the list: `Tensor[](a!)`."""
    text = str(type_)
    if annotation is None:
        return text
    if annotation.of_list:
        return f"{text}({annotation})"
    base = str(base_of(type_))
    return f"{base}({annotation}){text[len(base) :]}"


@dataclass(frozen=True, slots=True)
class Argument:
    name: str
    type: Type
    default: str | None = None  # as written, quotes and all
    annotation: Annotation | None = None

    @property
    def is_write(self) -> bool:
        return self.annotation is not None and self.annotation.is_write

    @property
    def is_optional(self) -> bool:
        return isinstance(self.type, OptionalType)

    def bare(self) -> Argument:
        """Without annotation and default."""
        return Argument(self.name, self.type)

    def __str__(self) -> str:
        default = "" if self.default is None else f"={self.default}"
        return f"{_type_text(self.type, self.annotation)} {self.name}{default}"


@dataclass(frozen=True, slots=True)
class Return:
    name: str | None
    type: Type
    annotation: Annotation | None = None

    @property
    def is_write(self) -> bool:
        return self.annotation is not None and self.annotation.is_write

    def __str__(self) -> str:
        text = _type_text(self.type, self.annotation)
        return text if self.name is None else f"{text} {self.name}"


# tp_<name> is a function or a macro of the core already (core/, autograd/node.h, library.h).
TAKEN_C_NAMES = frozenset(
    (
        *("can_cast", "data", "is_complex", "is_contiguous", "is_leaf", "new_empty", "new_empty_strided"),
        *("promote_types", "resize", "resize_out", "retain_grad", "storage_offset", "take"),
    )
)


@dataclass(frozen=True, slots=True)
class OperatorName:
    """`base` has neither the in-place underscore nor the dunder underscores: `add_` is add, `__iand__` is and.

    `namespace` is that of an entry that names one, `space::name`: `tensorpy.ops.space` has it, and no Python function
    or method. Without one the operator is of `aten`.
    """

    base: str
    inplace: bool = False
    dunder_method: bool = False
    overload: str = ""
    namespace: str = ""

    @staticmethod
    def of(name: str, overload: str = "", namespace: str = "") -> OperatorName:
        if name.startswith("__") and name.endswith("__") and len(name) > 4:
            base = name[2:-2]
            inplace = base.startswith("i") and base[1:] in AUGMENTED
            return OperatorName(base[1:] if inplace else base, inplace, True, overload, namespace)
        if name.endswith("_") and name != "_":
            return OperatorName(name[:-1], True, False, overload, namespace)
        return OperatorName(name, False, False, overload, namespace)

    @property
    def unqualified(self) -> str:
        """The name without the overload."""
        if self.dunder_method:
            return f"__{'i' if self.inplace else ''}{self.base}__"
        return self.base + ("_" if self.inplace else "")

    @property
    def qualified(self) -> str:
        """The same with the namespace, where it has one."""
        return f"{self.namespace}::{self.unqualified}" if self.namespace else self.unqualified

    @property
    def c_name(self) -> str:
        """A C identifier: `add_`, `add_Tensor`, `add__Tensor`. check.py sees to it that no two operators share one."""
        name = self.qualified.replace("::", "_")
        name = f"{name}_{self.overload}" if self.overload else name
        return f"op_{name}" if name in TAKEN_C_NAMES else name

    def __str__(self) -> str:
        return f"{self.qualified}.{self.overload}" if self.overload else self.qualified


@dataclass(frozen=True)
class FunctionSchema:
    """Arguments in the order of the call: positional, keyword-only, out.

    What the emitters ask of one again and again is kept, its hash too.
    """

    name: OperatorName
    positional: tuple[Argument, ...]
    kwarg_only: tuple[Argument, ...]
    out: tuple[Argument, ...]
    returns: tuple[Return, ...]

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.name, self.arguments, self.returns))

    @cached_property
    def arguments(self) -> tuple[Argument, ...]:
        return self.positional + self.kwarg_only + self.out

    @cached_property
    def kind(self) -> Kind:
        if any(a.name.startswith("_scratch_") for a in self.out):
            return "scratch"
        if self.name.inplace:
            return "inplace"
        if self.out:
            return "out"
        return "mutable" if any(a.is_write for a in self.arguments) else "functional"

    def argument(self, name: str) -> Argument | None:
        return next((a for a in self.arguments if a.name == name), None)

    @cached_property
    def is_factory(self) -> bool:
        """Takes all of dtype, layout, device and pin_memory by keyword."""
        return {a.name for a in self.kwarg_only}.issuperset(TENSOR_OPTIONS)

    def without_tensor_options(self) -> tuple[Argument, ...]:
        """The keyword-only arguments, less the tensor options of a factory."""
        if not self.is_factory:
            return self.kwarg_only
        return tuple(a for a in self.kwarg_only if a.name not in TENSOR_OPTIONS)

    def signature(self) -> str:
        """The key under which the functional, in-place, out= and mutable variants of one operator meet.

        Overload, in-place mark, out arguments, tensor options, defaults, annotations and returns are left out; so is
        the suffix `_functional`, by which PyTorch names the functional variant of an operator that also mutates.
        """
        base = self.name.base.removesuffix("_functional")
        parts = [str(a.bare()) for a in self.positional]
        if kwarg_only := self.without_tensor_options():
            parts += ["*", *(str(a.bare()) for a in kwarg_only)]
        space = f"{self.name.namespace}::" if self.name.namespace else ""
        return f"{space}{'__' if self.name.dunder_method else ''}{base}({', '.join(parts)})"

    def __str__(self) -> str:
        parts = [str(a) for a in self.positional]
        if self.kwarg_only or self.out:
            parts += ["*", *map(str, self.kwarg_only), *map(str, self.out)]
        returns = ", ".join(map(str, self.returns))
        if len(self.returns) != 1:
            returns = f"({returns})"
        return f"{self.name}({', '.join(parts)}) -> {returns}"


RawValue: TypeAlias = "str | RawMapping | RawList"


@dataclass(frozen=True, slots=True)
class RawList:
    """A YAML list that an emitter interprets. Every leaf is a string, as written."""

    items: tuple[RawValue, ...]
    locations: tuple[Location, ...] = field(compare=False)

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> RawValue:
        return self.items[index]

    def __iter__(self) -> Iterator[RawValue]:
        return iter(self.items)


@dataclass(frozen=True, slots=True)
class RawMapping:
    """A YAML mapping that an emitter interprets, in order, with the line of each key. Every leaf is a string."""

    entries: tuple[tuple[str, RawValue], ...]
    location: Location = field(compare=False)
    locations: Mapping[str, Location] = field(compare=False)

    def at(self, key: str) -> Location:
        return self.locations.get(key, self.location)

    def get(self, key: str) -> RawValue | None:
        return next((value for name, value in self.entries if name == key), None)

    def text(self, key: str) -> str | None:
        """The value of a key if it is a string."""
        value = self.get(key)
        return value if isinstance(value, str) else None

    def keys(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.entries)

    def items(self) -> tuple[tuple[str, RawValue], ...]:
        return self.entries

    def __contains__(self, key: object) -> bool:
        return any(name == key for name, _ in self.entries)

    def __getitem__(self, key: str) -> RawValue:
        value = self.get(key)
        if value is None:
            raise KeyError(key)
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __len__(self) -> int:
        return len(self.entries)


@dataclass(frozen=True, slots=True)
class Kernel:
    """One dispatch key and the kernel's name."""

    key: str
    name: str
    location: Location = field(compare=False)


@dataclass(frozen=True, slots=True)
class Tag:
    name: str
    desc: str
    location: Location = field(compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeFunction:
    """One operator. `source` is the entry from whose `autogen` it was derived, if it has no entry of its own."""

    func: FunctionSchema
    location: Location = field(compare=False)
    locations: Mapping[str, Location] = field(default_factory=dict, compare=False, repr=False)
    variants: tuple[str, ...] = ("function",)
    dispatch: tuple[Kernel, ...] = ()
    prims: tuple[str, ...] = ()  # the primitives that its kernel for Dense calls
    structured: bool = False
    structured_delegate: OperatorName | None = None
    structured_inherits: str | None = None
    precomputed: tuple[str, ...] = ()
    autogen: tuple[str, ...] = ()
    ops_only: tuple[str, ...] = ()  # derived as those are, but called through tensorpy.ops only
    tags: tuple[str, ...] = ()
    device_check: str = "ExactSame"
    device_guard: bool = True
    python_module: str | None = None
    manual_cpp_binding: bool = False
    manual_kernel_registration: bool | str = False  # a str: the module that registers them when it is imported
    use_const_ref_for_mutable_tensors: bool = False
    category_override: str | None = None
    cpp_no_default_args: tuple[str, ...] = ()
    ufunc_inner_loop: RawMapping | str | None = None
    pointwise: RawMapping | None = None
    reduction: RawMapping | None = None
    composite: str | None = None
    each: tuple[str, ...] = ()  # see each.py
    doc: str | None = None
    arguments: RawMapping | None = None  # what arguments mean, where their names and types do not say it
    returns: str | None = None
    raises: str | None = None
    example: str | None = None  # a session of Python's prompt, which the tests run
    inplace_variants: tuple[str, ...] | None = None
    no_gradient: str | None = None  # why it has none
    no_sample: str | None = None  # why it stands in no table of samples: what tests it
    out_dtype: str | None = None  # see out_dtype.py
    batching: str | None = None  # see batching.py
    layouts: str | None = None  # of sparse tensors: see layouts.py
    inplace_layouts: str | None = None  # of the in-place variant, where it is not to compute the functional one
    quantized: str | None = None  # of quantized ones, likewise
    nested: str | None = None  # of nested ones
    inverse: str | None = None  # of a view: see functional.py
    rounding: str | None = None  # see rounding.py
    out_overlap: str | None = None  # "refused": an out= that shares memory with an input
    out_size: str | None = None  # "counted": an out= that has another number of elements is told so
    empty_list: str | None = None  # the class of the error where a list has no tensors, in other words than usual
    asked_as: str | None = None  # the overload as which a __torch_dispatch__ is asked: one that takes tensors
    warns: str | None = None  # a warning that the first call in a process gives
    declines: tuple[str, ...] = ()  # the keys whose kernels take only some calls: Note [Declining] in dispatch/op.h
    autogenerated: bool = False
    source: NativeFunction | None = field(default=None, repr=False)

    @property
    def name(self) -> OperatorName:
        return self.func.name

    @property
    def kind(self) -> Kind:
        return self.func.kind

    @property
    def is_function(self) -> bool:
        return "function" in self.variants

    @property
    def is_method(self) -> bool:
        return "method" in self.variants

    @property
    def origin(self) -> NativeFunction:
        """The entry in the YAML: itself, or the one it was derived from."""
        return self if self.source is None else self.source

    @property
    def rounds_once(self) -> bool:
        return (self.rounding or "").startswith("once")

    @property
    def rounded_if(self) -> str | None:
        """The flag of `rounding: once if FLAG`."""
        return (self.rounding or "").partition(" if ")[2] or None

    def kernel(self, key: str) -> str | None:
        return next((k.name for k in self.dispatch if k.key == key), None)

    def at(self, key: str) -> Location:
        """The line of a key of the entry."""
        return self.locations.get(key, self.location)


@dataclass(frozen=True, slots=True)
class NativeFunctionsGroup:
    """The variants of one operator that share a signature."""

    signature: str
    functional: NativeFunction | None = None
    inplace: NativeFunction | None = None
    out: NativeFunction | None = None
    mutable: NativeFunction | None = None
    scratch: NativeFunction | None = None

    def members(self) -> tuple[NativeFunction, ...]:
        slots = (self.functional, self.inplace, self.out, self.mutable, self.scratch)
        return tuple(f for f in slots if f is not None)

    @property
    def shown(self) -> NativeFunction | None:
        """The functional variant, unless it is only there for graphs (`ops_only`)."""
        return self.functional if self.functional is not None and self.functional.variants else None

    def variant(self, kind: Kind) -> NativeFunction | None:
        match kind:
            case "functional":
                return self.functional
            case "inplace":
                return self.inplace
            case "out":
                return self.out
            case "mutable":
                return self.mutable
            case "scratch":
                return self.scratch

    def with_variant(self, function: NativeFunction) -> NativeFunctionsGroup:
        match function.kind:
            case "functional":
                return replace(self, functional=function)
            case "inplace":
                return replace(self, inplace=function)
            case "out":
                return replace(self, out=function)
            case "mutable":
                return replace(self, mutable=function)
            case "scratch":
                return replace(self, scratch=function)


def group_native_functions(functions: Iterable[NativeFunction]) -> list[NativeFunctionsGroup]:
    """In the order of the first member. The first of two members for one slot stays; check.py reports the second."""
    groups: dict[str, NativeFunctionsGroup] = {}
    for function in functions:
        key = function.func.signature()
        group = groups.setdefault(key, NativeFunctionsGroup(key))
        if group.variant(function.kind) is None:
            groups[key] = group.with_variant(function)
    return list(groups.values())


@dataclass(frozen=True, slots=True)
class Formula:
    """The gradient of the named inputs; or, forward mode, the tangent of the named outputs."""

    names: tuple[str, ...]
    text: str
    location: Location = field(compare=False)

    @property
    def non_differentiable(self) -> bool:
        return self.text == "non_differentiable" or self.refused

    @property
    def refused(self) -> bool:
        """An input that requires grad is an error: there is a gradient, and nobody has written it."""
        return self.text == "refused"


@dataclass(frozen=True, slots=True)
class KeyedFormulas:
    """The formulas that hold for one autograd key instead of the entry's own."""

    key: str
    formulas: tuple[Formula, ...]
    forward: tuple[Formula, ...]


@dataclass(frozen=True, slots=True)
class DerivativeEntry:
    name: FunctionSchema
    function: NativeFunction = field(repr=False)
    formulas: tuple[Formula, ...]
    forward: tuple[Formula, ...] = ()
    output_differentiability: tuple[bool | str, ...] | None = None  # a str is a condition
    per_key: tuple[KeyedFormulas, ...] = ()
    rounding: str | None = None  # see rounding.py
    location: Location = field(default=Location("", 0), compare=False)
    shows: str = ""  # what the node keeps to be seen from Python alone: arguments, parts of them
    key: str = "Default"  # of one of `per_key` as an entry of its own: its autograd key

    def for_key(self, key: str) -> tuple[Formula, ...]:
        return next((k.formulas for k in self.per_key if k.key == key), self.formulas)


@dataclass(frozen=True, slots=True)
class AutocastEntry:
    """What autocast does with one operator; on every device, or on the one named."""

    policy: str
    function: NativeFunction = field(repr=False)
    device: str | None = None
    location: Location = field(default=Location("", 0), compare=False)
