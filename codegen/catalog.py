"""The catalogue: every operator with all that the YAML says of it, resolved once for all emitters.

It answers the questions that several emitters share: which C function is behind an operator for a key, which entry's
derivative applies to which variant, which operators are views. The order of operators is that of the YAML, a derived
variant right after its source.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from .by_hand import ByHand
from .c_types import NoCType, c_result, c_type
from .each import called_by, groups_by_name
from .errors import ErrorCollector, YamlError, YamlErrors
from .keys import DEVICES, OF_ENTRIES
from .model import (
    AutocastEntry,
    DerivativeEntry,
    FunctionSchema,
    NativeFunction,
    NativeFunctionsGroup,
    Tag,
)
from .pointwise import PointwiseOp, parse_pointwise
from .primitives import Primitive
from .reduction import ReductionOp, parse_reduction
from .support import kernels_here
from .tag_rules import view_of


@dataclass(frozen=True, slots=True)
class KernelSource:
    """How the kernel of one operator for one key comes about.

    kind: `direct` (a C function `name` with the operator's signature), `pointwise` (inner loops under the shared
    driver), `reduction` (folds under the shared driver), `structured` (a meta function and a C function `name` that
    computes into outputs), `formula` (lowered from Python syntax), `each` (calls the operator `name` for each place of
    its lists), `view_copy` (calls the view `name` and copies what it gives), `functional` (calls the functional variant
    and copies), `writing` (copies what the variant that writes writes, and calls it). `declines`: it takes only some
    calls.
    """

    key: str
    kind: str
    name: str = ""
    declines: bool = False


@dataclass(frozen=True, slots=True)
class Operator:
    function: NativeFunction
    group: NativeFunctionsGroup
    pointwise: PointwiseOp | None = None
    reduction: ReductionOp | None = None
    kernels: tuple[KernelSource, ...] = ()
    prims: tuple[str, ...] = ()  # the primitives that its kernel for Dense calls
    derivative: DerivativeEntry | None = None
    keyed: tuple[tuple[str, DerivativeEntry], ...] = ()  # what holds for one autograd key instead of `derivative`
    autocast: tuple[AutocastEntry, ...] = ()
    prefix: str = "tp_"  # of the C function that calls it; outside the tree, "<namespace>_"

    @property
    def schema(self) -> FunctionSchema:
        return self.function.func

    @property
    def c(self) -> str:
        return self.schema.name.c_name

    @property
    def call(self) -> str:
        """The C function that calls it through the dispatcher."""
        return self.prefix + self.c

    @property
    def kind(self) -> str:
        return self.schema.kind

    @property
    def family(self) -> str:
        """The stem of the file that declares it, as a part of C names."""
        return re.sub(r"\W", "_", Path(self.function.location.file).stem)

    @property
    def is_view(self) -> bool:
        """Some return aliases an argument without being written: `Tensor(a)`."""
        return any(r.annotation is not None and not r.is_write for r in self.schema.returns)

    @property
    def autograd_keys(self) -> tuple[str, ...]:
        """Where its autograd kernel goes: the alias, or, for a composite that some backends have a kernel of their own
        of, these backends' keys; the others differentiate its parts."""
        keys = {k.key for k in self.kernels}
        if "CompositeImplicitAutograd" not in keys:
            return ("Autograd",)
        own = DEVICES if "Dense" in keys else [device for device in DEVICES if device in keys]
        return tuple(f"Autograd{device}" for device in own)

    @property
    def is_implicit(self) -> bool:
        return all(k.key == "CompositeImplicitAutograd" for k in self.kernels if k.key != "Batched")

    def autocast_on(self, backend: str) -> str | None:
        """What autocast does with it for a backend; None: nothing."""
        policies = {entry.device: entry.policy for entry in self.autocast}
        policy = policies.get(backend, policies.get(None))
        return None if policy == "fallthrough" else policy

    @property
    def tensor_arguments(self) -> tuple[str, ...]:
        return tuple(a.name for a in self.schema.arguments if c_type(a.type).member in ("tensor", "tensors"))


@dataclass(frozen=True, eq=False)
class Catalog:
    """All operators, or those of one family (`families`); `by_name` always has all.

    A mistake in a formula is raised when it is lowered, or goes into `mistakes`, if that is there.
    """

    operators: tuple[Operator, ...]
    tags: Mapping[str, Tag]
    by_name: Mapping[str, Operator] = field(default_factory=dict)
    primitives: tuple[Primitive, ...] = ()
    by_hand: tuple[ByHand, ...] = ()
    mistakes: ErrorCollector | None = None
    called: dict[str, tuple[Operator, ...]] = field(default_factory=dict)  # kept by emit_formula.operators_called

    def __iter__(self) -> Iterator[Operator]:
        return iter(self.operators)

    def primitive(self, name: str) -> Primitive:
        return next(p for p in self.primitives if p.name == name)

    def overloads(self, name: str) -> tuple[Operator, ...]:
        """All overloads of a name, in YAML order."""
        return self._overloads.get(name, ())

    @cached_property
    def _overloads(self) -> dict[str, tuple[Operator, ...]]:
        found: dict[str, list[Operator]] = {}
        for op in self.by_name.values():
            found.setdefault(op.schema.name.qualified, []).append(op)
        return {name: tuple(ops) for name, ops in found.items()}

    def families(self) -> dict[str, Catalog]:
        """By name: what is compiled together. An operator that is added changes its family alone."""
        parts: dict[str, list[Operator]] = {}
        for op in self.operators:
            parts.setdefault(op.family, []).append(op)
        return {name: replace(self, operators=tuple(ops)) for name, ops in sorted(parts.items())}

    def pointwise(self) -> tuple[PointwiseOp, ...]:
        """Each pointwise description once, under the name of its functional variant."""
        seen: dict[str, PointwiseOp] = {}
        for op in self.operators:
            if op.pointwise is not None:
                seen.setdefault(op.pointwise.name, op.pointwise)
        return tuple(seen.values())

    def reductions(self) -> tuple[ReductionOp, ...]:
        """Each reduction that is given as expressions once, under the name of its functional variant."""
        return tuple({op.reduction.name: op.reduction for op in self.operators if op.reduction is not None}.values())


@contextmanager
def every_formula(catalog: Catalog) -> Iterator[Catalog]:
    """The catalogue, whose formulas' mistakes are collected, and raised together at the end."""
    errors = ErrorCollector()
    try:
        yield replace(catalog, mistakes=errors)
    except (YamlError, YamlErrors) as error:
        errors.take(error)
    errors.raise_if_any()


def _structured_entry(function: NativeFunction, group: NativeFunctionsGroup) -> NativeFunction | None:
    """The entry that holds the structured kernel of this function's group."""
    if function.structured:
        return function
    for member in group.members():
        if member.structured and (function.structured_delegate in (None, member.name) or member is group.functional):
            if function.structured_delegate is not None or function.origin is member.origin:
                return member
    return None


def structured_name(group: NativeFunctionsGroup) -> str:
    """The stem of `<stem>_meta`: the functional variant's C name."""
    member = group.functional or group.out or group.inplace
    assert member is not None
    return member.name.c_name


def _is_composite(function: NativeFunction) -> bool:
    """Without any kernel of a backend: its parts are differentiated."""
    if (
        function.pointwise is not None
        or function.reduction is not None
        or function.structured
        or function.structured_delegate is not None
    ):
        return False
    return all(k.key == "CompositeImplicitAutograd" for k in function.dispatch)


def _kernels(
    function: NativeFunction, groups: Mapping[str, NativeFunctionsGroup], by_name: Mapping[str, NativeFunction]
) -> list[KernelSource]:
    origin, group = function.origin, groups[str(function.name)]
    own = [KernelSource(k.key, "direct", k.name, k.key in function.declines) for k in kernels_here(function)]
    batched = [k for k in own if k.key == "Batched"]
    if origin.manual_kernel_registration:  # a module registers the others
        return own if isinstance(origin.manual_kernel_registration, str) else []
    if origin.pointwise is not None:
        return [KernelSource("Dense", "pointwise"), *own]
    if origin.reduction is not None:
        return [KernelSource("Dense", "reduction"), *own]
    if origin.each and (not function.autogenerated or function.kind == "inplace"):
        return [KernelSource("CompositeImplicitAutograd", "each", str(called_by(function, groups).name))]
    structured = _structured_entry(function, group)
    if structured is not None:
        given = (k for k in kernels_here(structured.origin) if k.key != "Batched")
        declines = structured.origin.declines
        sources = [KernelSource(k.key, "structured", k.name, k.key in declines) for k in given]
        if all(s.key not in ("Meta", "Dense") for s in sources):
            sources.append(KernelSource("Meta", "structured"))
        # A delegate has kernels of its own for layouts, which the structured one does not serve.
        if function.structured:
            return [*sources, *batched]
        named = {k.key for k in own}
        return [*(s for s in sources if s.key not in named), *own]
    if function.autogenerated:
        boxed = c_result(function.func).kind == "values"
        key = "CompositeImplicitAutograd" if boxed or _is_composite(origin) else "CompositeExplicitAutograd"
        return [KernelSource(key, "functional" if origin.kind == "functional" else "writing")]
    if function.composite is not None:
        return [KernelSource("CompositeImplicitAutograd", "formula"), *batched]
    if function.dispatch:
        return own
    if "view_copy" in function.tags:
        view = view_of(function, by_name, function.at("tags"))
        key = "CompositeImplicitAutograd" if _is_composite(by_name[str(view)]) else "CompositeExplicitAutograd"
        return [KernelSource(key, "view_copy", str(view))]
    return [KernelSource("CompositeImplicitAutograd", "direct", function.name.c_name + "_composite")]


def _prims(function: NativeFunction, group: NativeFunctionsGroup) -> tuple[str, ...]:
    """The primitives that the kernel for Dense calls."""
    if function.origin.pointwise is not None:
        return ("map",)
    if function.origin.reduction is not None:
        return ("reduce.program",)
    return (_structured_entry(function, group) or function).prims


def _says_something(entry: DerivativeEntry) -> bool:
    return bool(entry.formulas or entry.forward) or entry.output_differentiability is not None


def _by_key(entry: DerivativeEntry) -> tuple[tuple[str, DerivativeEntry], ...]:
    """The entries for single autograd keys; those of keys that are not here make nothing."""
    return tuple(
        (k.key, replace(entry, formulas=k.formulas, forward=(), per_key=(), key=k.key))
        for k in entry.per_key
        if k.key in OF_ENTRIES
    )


def _of_the_view(function: NativeFunction, derivative_of: Mapping[str, DerivativeEntry]) -> DerivativeEntry | None:
    """The gradient of a copy of what a view gives is that of the view."""
    entry = derivative_of.get(str(function.name).replace("_copy", "", 1))
    return replace(entry, name=function.func, function=function) if entry is not None else None


def build_catalog(
    functions: Iterable[NativeFunction],
    derivatives: Iterable[DerivativeEntry],
    autocast: Iterable[AutocastEntry],
    tags: Mapping[str, Tag],
    primitives: Iterable[Primitive] = (),
) -> Catalog:
    functions = list(functions)
    group_of = groups_by_name(functions)
    derivative_of = {str(d.name.name): d for d in derivatives}
    keyed_of = {id(d): _by_key(d) for d in derivative_of.values()}
    autocast_of: dict[str, list[AutocastEntry]] = {}
    for entry in autocast:
        autocast_of.setdefault(str(entry.function.name), []).append(entry)
    pointwise_of: dict[str, PointwiseOp] = {}
    reduction_of: dict[str, ReductionOp] = {}
    errors = ErrorCollector()
    by_name = {str(function.name): function for function in functions}
    operators = []
    for function in functions:
        name = str(function.name)
        for argument in function.func.arguments:
            c_type(argument.type)
        c_result(function.func)
        group = group_of[name]
        origin = function.origin
        key = str(origin.name)
        try:
            if origin.pointwise is not None and key not in pointwise_of:
                pointwise_of[key] = parse_pointwise(origin.pointwise, origin.func, origin.at("pointwise"))
            if origin.reduction is not None and key not in reduction_of:
                reduction_of[key] = parse_reduction(origin.reduction, origin.func, origin.at("reduction"))
        except (YamlError, YamlErrors) as error:
            errors.take(error)
        derivative = derivative_of.get(name)
        for twin in (group.functional, group.inplace, group.mutable):
            if derivative is None and twin is not None and function.kind != "out":
                derivative = derivative_of.get(str(twin.name))
        if derivative is None and "view_copy" in function.tags and function.kind == "functional":
            derivative = _of_the_view(function, derivative_of)
        operators.append(
            Operator(
                function,
                group,
                pointwise_of.get(key),
                reduction_of.get(key),
                tuple(_kernels(function, group_of, by_name)),
                _prims(function, group),
                derivative if derivative is not None and _says_something(derivative) else None,
                keyed_of.get(id(derivative), ()) if derivative is not None else (),
                tuple(autocast_of.get(name, ())),
            )
        )
    errors.raise_if_any()
    return Catalog(tuple(operators), tags, {str(op.schema.name): op for op in operators}, tuple(primitives))


__all__ = ["Catalog", "KernelSource", "NoCType", "Operator", "build_catalog", "structured_name"]
