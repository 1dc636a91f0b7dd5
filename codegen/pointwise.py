"""A pointwise operator: what the `pointwise` mapping of a YAML entry says, checked against the schema.

    pointwise:
      promotion: int_to_float        # optional; how the compute dtype comes from the inputs (TP_PROMOTE_*)
      float8: true                   # optional; the 8-bit floats are taken too, by way of float32
      operands: {other: operand}     # optional; a Scalar argument that is an input, or an input's own dtype
      check: nonzero_divisor         # optional; tp_check_<name> of native/pointwise/pointwise_checks.c, called first
      expanded: fill                 # optional; tp_expanded_<name> there, which writes expanded tensors in place
      cost: 3                        # optional; the grain of a parallel loop is TP_GRAIN >> cost
      real: self + alpha * other     # one expression per dtype class; the most specific class
                                     # wins, and `none` takes a class out
      cases:                         # optional; other expressions where a number has one value
        exponent == 2: {number: self * self}

Tensor arguments are inputs. All else are parameters, the same for all elements. A class without an expression is not
supported by the operator.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import get_args

from .errors import Location, YamlError, suggest
from .model import Argument, BaseType, FunctionSchema, OptionalType, RawMapping
from .scalar_expr import parse
from .scalar_ir import Block, Kind, Name, cost_of
from .scalar_lower import COMPUTE_DTYPES, DtypeInfo
from .scalar_math import FORMS, HELPERS, LEAF_CLASSES, LeafClass

PROMOTIONS = ("default", "no_opmath", "int_to_float", "always_bool", "complex_to_float", "bool_to_long")

# What each key covers, the most specific first.
CLASS_KEYS: Mapping[str, tuple[LeafClass, ...]] = {
    "bool": ("bool",),
    "uint": ("uint",),
    "sint": ("sint",),
    "float": ("float",),
    "complex": ("complex",),
    "int": ("uint", "sint"),
    "real": ("uint", "sint", "float"),
    "number": ("uint", "sint", "float", "complex"),
    "all": LEAF_CLASSES,
}

MAX_INPUTS = 4
FIXED_DTYPES: Mapping[str, Kind] = {"bool": Kind.B, "int64": Kind.I}
_PARAM_KINDS = {"Scalar": Kind.T, "int": Kind.I, "SymInt": Kind.I, "bool": Kind.B, "str": Kind.S, "float": Kind.D}


@dataclass(frozen=True, slots=True)
class Input:
    """`dtype` is the input's own, outside promotion; None takes part in it."""

    name: str
    dtype: str | None


@dataclass(frozen=True, slots=True)
class Param:
    name: str
    type: str  # the schema type without `?`
    optional: bool

    def kind(self, leaf: LeafClass) -> Kind:
        if self.type == "float" and leaf in ("float", "complex"):
            return Kind.R if leaf == "complex" else Kind.T
        return _PARAM_KINDS[self.type]


@dataclass(frozen=True)
class Case:
    """Expressions that take the place of the operator's where the input, a number, is `value`."""

    input: int
    value: float
    op: PointwiseOp
    own: frozenset[LeafClass]  # the classes that it has an expression of its own for


@dataclass(frozen=True)
class PointwiseOp:
    name: str  # "add.Tensor"
    c_name: str
    inputs: tuple[Input, ...]
    params: tuple[Param, ...]
    promotion: str
    expressions: Mapping[LeafClass, Block]
    location: Location = field(compare=False)
    given_cost: int | None = None
    check: str | None = None
    cases: tuple[Case, ...] = ()
    expanded: str | None = None
    float8: bool = False  # takes the 8-bit floats too, by way of float32

    @cached_property
    def cost(self) -> int:
        if self.given_cost is not None:
            return self.given_cost
        return max((cost_of(block) for block in self.expressions.values()), default=0)

    @property
    def dtypes(self) -> tuple[DtypeInfo, ...]:
        """The dtypes that have loops; the 16-bit floats run through float32's."""
        return tuple(d for d in COMPUTE_DTYPES if d.leaf in self.expressions)


def _base(argument: Argument) -> tuple[str, bool]:
    type_ = argument.type
    optional = isinstance(type_, OptionalType)
    if isinstance(type_, OptionalType):
        type_ = type_.elem
    return (type_.name if isinstance(type_, BaseType) else str(type_)), optional


def _operands(raw: RawMapping, schema: FunctionSchema) -> dict[str, str]:
    value = raw.get("operands")
    if value is None:
        return {}
    if not isinstance(value, RawMapping):
        raise YamlError(raw.at("operands"), "'operands' is not a mapping", "write 'operands: {condition: bool}'")
    arguments = {a.name: a for a in schema.positional + schema.kwarg_only}
    result: dict[str, str] = {}
    for name, dtype in value.items():
        if name not in arguments:
            fix = suggest(name, arguments, f"use one of {', '.join(arguments)}")
            raise YamlError(value.at(name), f"'operands' names '{name}', which {schema.name} does not have", fix)
        base, _ = _base(arguments[name])
        valid = ("operand",) if base == "Scalar" else tuple(FIXED_DTYPES)
        if base not in ("Scalar", "Tensor") or not isinstance(dtype, str) or dtype not in valid:
            raise YamlError(
                value.at(name),
                f"'{name}: {dtype}' in 'operands', where '{name}' is a {base}",
                "a Scalar that takes part as an input is 'operand'; a Tensor may have the dtype "
                + " or ".join(FIXED_DTYPES),
            )
        result[name] = dtype
    return result


def _arguments(
    raw: RawMapping, schema: FunctionSchema, location: Location
) -> tuple[tuple[Input, ...], tuple[Param, ...]]:
    operands = _operands(raw, schema)
    inputs: list[Input] = []
    params: list[Param] = []
    for argument in schema.positional + schema.kwarg_only:
        base, optional = _base(argument)
        if argument.name in HELPERS or argument.name in FORMS:
            raise YamlError(location, f"argument '{argument.name}' has a helper's name", "rename the helper")
        if base == "Tensor" or operands.get(argument.name) == "operand":
            if optional:
                raise YamlError(
                    location,
                    f"the input '{argument}' of {schema.name} may be None",
                    "declare it without `?`, and choose between operators in a composite",
                )
            inputs.append(Input(argument.name, None if base == "Scalar" else operands.get(argument.name)))
        elif base in _PARAM_KINDS:
            params.append(Param(argument.name, base, optional))
        else:
            raise YamlError(
                location,
                f"argument '{argument}' of {schema.name} has no place in a scalar expression",
                "a pointwise operator takes Tensor, Scalar, int, float, bool and str",
            )
    if not 1 <= len(inputs) <= MAX_INPUTS:
        raise YamlError(
            location,
            f"{schema.name} has {len(inputs)} inputs",
            f"a pointwise operator has between 1 and {MAX_INPUTS}; write a kernel for this one",
        )
    return tuple(inputs), tuple(params)


def _names(inputs: tuple[Input, ...], params: tuple[Param, ...], leaf: LeafClass) -> dict[str, Name]:
    names = {i.name: Name(Kind.T if i.dtype is None else FIXED_DTYPES[i.dtype]) for i in inputs}
    for p in params:
        names[p.name] = Name(p.kind(leaf), uniform=True, optional=p.optional)
    return names


def _function(raw: RawMapping, key: str) -> str | None:
    """What a C function has as its name after a prefix: the `check` of values, what is done with `expanded` tensors."""
    name = raw.text(key)
    if name is not None and not (name.isascii() and name.isidentifier()):
        what = f"the {key} '{name}' is no name of a C function"
        raise YamlError(raw.at(key), what, "use letters, digits and underscores")
    return name


def check_declaration(name: str) -> str:
    """Declares the C function that a `check` names, with its prefix."""
    return f"int {name}(const tp_pointwise *p, const tp_operand *inputs, const tp_value *params);\n"


def _expressions(
    raw: RawMapping, inputs: tuple[Input, ...], params: tuple[Param, ...], promotion: str
) -> dict[LeafClass, Block]:
    result = {"always_bool": Kind.B, "complex_to_float": Kind.R}.get(promotion, Kind.T)
    expressions: dict[LeafClass, Block] = {}
    for leaf in get_args(LeafClass):
        covering = [k for k, leaves in CLASS_KEYS.items() if leaf in leaves and k in raw]
        if not covering or (promotion == "int_to_float" and leaf not in ("float", "complex")):
            continue
        if promotion == "bool_to_long" and leaf == "bool":
            continue
        source = raw.text(covering[0])
        if source is None:
            raise YamlError(raw.at(covering[0]), f"'{covering[0]}' is not text", f"write '{covering[0]}: expression'")
        if source != "none":
            names = _names(inputs, params, leaf)
            expressions[leaf] = parse(source, names, leaf, result, raw.at(covering[0]))
    return expressions


def _case(op: PointwiseOp, key: str, value: object, location: Location, number: int) -> Case:
    found = re.fullmatch(r"(\w+) == (-?\d+(?:\.\d+)?)", key)
    names = [i.name for i in op.inputs]
    if not found or found[1] not in names or not isinstance(value, RawMapping) or not len(value):
        raise YamlError(location, f"case '{key}'", f"write '{names[-1]} == 2: {{number: expression}}'")
    for name in value.keys():
        if name not in CLASS_KEYS:
            fix = suggest(name, CLASS_KEYS, f"use one of {', '.join(CLASS_KEYS)}")
            raise YamlError(value.at(name), f"unknown class '{name}' in the case '{key}'", fix)
    own = _expressions(value, op.inputs, op.params, op.promotion)
    missing = sorted(set(own) - set(op.expressions))
    if missing:
        raise YamlError(location, f"case '{key}' has '{missing[0]}', which {op.name} does not have", "leave it out")
    cost = max(cost_of(block) for block in own.values())
    special = replace(
        op, c_name=f"{op.c_name}_{number}", expressions={**op.expressions, **own}, given_cost=cost, cases=()
    )
    return Case(names.index(found[1]), float(found[2]), special, frozenset(own))


def _cases(op: PointwiseOp, raw: RawMapping) -> tuple[Case, ...]:
    value = raw.get("cases")
    if value is None:
        return ()
    if not isinstance(value, RawMapping):
        raise YamlError(raw.at("cases"), "'cases' is not a mapping", "write 'cases: {exponent == 2: {number: ...}}'")
    return tuple(_case(op, key, v, value.at(key), k) for k, (key, v) in enumerate(value.items()))


def with_cases(ops: Sequence[PointwiseOp]) -> list[PointwiseOp]:
    """The operators, each followed by its cases: what has a number and loops."""
    return [one for op in ops for one in (op, *(case.op for case in op.cases))]


def parse_pointwise(raw: RawMapping, schema: FunctionSchema, location: Location) -> PointwiseOp:
    keys = ("promotion", "operands", "cost", "check", "expanded", "cases", "float8", *CLASS_KEYS)
    for key in raw.keys():
        if key not in keys:
            fix = suggest(key, keys, f"use one of {', '.join(keys)}")
            raise YamlError(raw.at(key), f"unknown key '{key}' in 'pointwise'", fix)
    promotion = raw.text("promotion") or "default"
    if promotion not in PROMOTIONS:
        fix = suggest(promotion, PROMOTIONS, f"use one of {', '.join(PROMOTIONS)}")
        raise YamlError(raw.at("promotion"), f"unknown promotion '{promotion}'", fix)
    cost = raw.text("cost")
    if cost is not None and not (cost.isdigit() and int(cost) <= 8):
        raise YamlError(raw.at("cost"), f"cost '{cost}'", "write a whole number from 0 (an addition) to 8")
    float8 = raw.text("float8")
    if float8 not in (None, "true"):
        raise YamlError(raw.at("float8"), f"float8 '{float8}'", "write 'float8: true', or leave it out")
    inputs, params = _arguments(raw, schema, location)
    expressions = _expressions(raw, inputs, params, promotion)
    if not expressions:
        raise YamlError(location, f"{schema.name} has no expression", f"give one under one of {', '.join(CLASS_KEYS)}")
    op = PointwiseOp(
        str(schema.name),
        schema.name.c_name,
        inputs,
        params,
        promotion,
        expressions,
        location,
        None if cost is None else int(cost),
        _function(raw, "check"),
        expanded=_function(raw, "expanded"),
        float8=float8 is not None,
    )
    return replace(op, cases=_cases(op, raw))
