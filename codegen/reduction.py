"""A reduction: what the `reduction` mapping of a YAML entry says, checked against the schema.

    reduction:
      promotion: sum          # optional: default (the input's dtype), sum (integers to int64), always_bool
      dtypes: number          # optional, all: the dtype classes that it takes
      start: 0                # what an accumulator begins with, and the result of no elements
      step: acc + abs(x)      # an element into an accumulator
      join: a + b             # two accumulators into one; `step` with acc, x for a, b where it is left out
      finish: acc / count     # optional: the result from an accumulator and the number of elements

The schema is (Tensor self[, int[1]? dim, bool keepdim][, *, ScalarType? dtype]). The expressions are those of pointwise
operators (scalar_expr.py), in the accumulator's dtype: the 16-bit floats accumulate in float32. `join` must not depend
on the order but for rounding: elements are folded in a tree whose shape does not depend on the number of threads. It is
tried on a few numbers of the expressions' domain, and refused where there are none.
"""

from __future__ import annotations

import ast
import cmath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from .errors import Location, YamlError, suggest
from .model import FunctionSchema, RawMapping
from .pointwise import CLASS_KEYS
from .scalar_eval import NoValue, Number, close, evaluate
from .scalar_expr import parse
from .scalar_ir import Block, Kind, Name
from .scalar_lower import COMPUTE_DTYPES, DtypeInfo
from .scalar_math import LEAF_CLASSES, LeafClass

KEYS = ("promotion", "dtypes", "start", "step", "join", "finish")
PROMOTIONS = ("default", "sum", "always_bool")
FORMS = (["self"], ["self", "dtype"], ["self", "dim", "keepdim"], ["self", "dim", "keepdim", "dtype"])


@dataclass(frozen=True, slots=True)
class Expressions:
    """The expressions of one dtype class: `start`; `step` of acc, x; `join` of a, b; `finish` of acc, count."""

    start: Block
    step: Block
    join: Block
    finish: Block


@dataclass(frozen=True)
class ReductionOp:
    name: str
    c_name: str
    promotion: str
    expressions: Mapping[LeafClass, Expressions]
    has_dims: bool
    has_dtype: bool
    location: Location = field(compare=False)

    @property
    def dtypes(self) -> tuple[DtypeInfo, ...]:
        """The dtypes of accumulators."""
        kept = [d for d in COMPUTE_DTYPES if d.leaf in self.expressions]
        if self.promotion == "sum":
            kept = [d for d in kept if d.leaf in ("float", "complex") or d.name == "int64"]
        return tuple(kept)

    @property
    def takes(self) -> tuple[str, ...]:
        """The dtypes of inputs."""
        leaves = set(self.expressions)
        if self.promotion == "sum" and "sint" in leaves:
            leaves |= {"bool", "uint"}
        names = [d.name for d in COMPUTE_DTYPES if d.leaf in leaves]
        names += ["float16", "bfloat16"] if "float" in leaves else []
        return (*names, *(["complex32"] if "complex" in leaves else []))


def _leaves(raw: RawMapping) -> tuple[LeafClass, ...]:
    text = raw.text("dtypes") or "all"
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in CLASS_KEYS:
            fix = suggest(name, CLASS_KEYS, f"use {', '.join(CLASS_KEYS)}, several joined by commas")
            raise YamlError(raw.at("dtypes"), f"unknown dtype class '{name}'", fix)
    return tuple(leaf for leaf in LEAF_CLASSES if any(leaf in CLASS_KEYS[name] for name in names))


def _renamed(step: str) -> str:
    """`step` as `join`: a and b in place of acc and x. What is no Python stays as it is: `step` reports it."""

    class Renamer(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.Name:
            node.id = {"acc": "a", "x": "b"}.get(node.id, node.id)
            return node

    try:
        return ast.unparse(Renamer().visit(ast.parse(step)))
    except SyntaxError:
        return step


# Elements to try a join on, per dtype class: all sets that the expressions have values for.
_TRIALS: Mapping[LeafClass, tuple[tuple[Number, ...], ...]] = {
    "bool": ((True, False, True, True),),
    "uint": ((3, 1, 0, 2), (3, 1, 4, 2), (150, 75, 1, 200)),
    "sint": ((3, -1, 0, 2), (3, 1, 4, 2), (100, -75, 1, 120)),
    "float": (
        (1.5, -0.75, 0.5, 2.25),
        (1.5, 0.75, 0.5, 2.25),  # of logarithms and roots
        (0.5, -0.75, 0.25, -0.125),  # of inverse sines
        (1.5, 2.75, 1.25, 3.5),  # of the inverse of cosh
        (0.5, 0.75, 0.25, 0.125),
        (150.0, 275.0, 125.0, 1075.0),  # beyond a threshold
        (-150.0, -275.0, -125.0, -1075.0),
    ),
    "complex": ((1.5 + 1j, -0.75j, 0.5 + 0j, 2.25 - 0.5j), (1.5 + 1j, 0.75j, 0.5 + 0.25j, 2.25 - 0.5j)),
}


def _fold(parts: Expressions, elements: Sequence[Number], leaf: LeafClass) -> Number:
    acc = evaluate(parts.start, {}, leaf)
    for x in elements:
        acc = evaluate(parts.step, {"acc": acc, "x": x}, leaf)
    return acc


def _is_number(x: Number) -> bool:
    return cmath.isfinite(x)


def _prove(name: str, parts: Expressions, leaf: LeafClass, raw: RawMapping) -> None:
    """Tries that joining what two parts were folded to is folding the whole, in any order. Elements are taken from the
    expressions' domain; a rule that no numbers can be tried on is refused, as it would be taken on trust."""
    where = raw.at("join") if "join" in raw else raw.at("step")
    why, is_tried = "", False
    for trial in _TRIALS[leaf]:
        try:
            folded = [_fold(parts, trial[:i], leaf) for i in range(len(trial) + 1)]
            if not all(map(_is_number, folded[1:])):
                why = why or "its value is no number"
                continue
            _try_join(name, parts, leaf, trial, where)
        except NoValue as reason:
            why = why or str(reason)
            continue
        is_tried = is_tried or any(value != folded[0] for value in folded)
    if is_tried:
        return
    why = why or "none of them changes 'start'"
    what = f"the reduction {name} cannot be tried on any of the numbers there are for {leaf}: {why}"
    raise YamlError(
        where, what, "write 'step' and 'join' of functions that Python has too, or leave this class out of 'dtypes'"
    )


def _try_join(name: str, parts: Expressions, leaf: LeafClass, trial: Sequence[Number], where: Location) -> None:
    whole = _fold(parts, trial, leaf)
    for cut in range(len(trial) + 1):
        halves = _fold(parts, trial[:cut], leaf), _fold(parts, trial[cut:], leaf)
        for a, b in (halves, halves[::-1]):
            joined = evaluate(parts.join, {"a": a, "b": b}, leaf)
            if not close(joined, whole):
                shown = f"{list(trial[:cut])} and {list(trial[cut:])}"
                what = f"the reduction {name} joins {shown} to {joined}, folds them in one to {whole} ({leaf})"
                fix = "write a 'join' of the accumulators a and b; 'start' must change nothing in it"
                raise YamlError(where, what, fix)


def parse_reduction(raw: RawMapping, schema: FunctionSchema, location: Location) -> ReductionOp:
    for key in raw.keys():
        if key not in KEYS:
            fix = suggest(key, KEYS, f"use one of {', '.join(KEYS)}")
            raise YamlError(raw.at(key), f"unknown key '{key}' in 'reduction'", fix)
    arguments = [a.name for a in schema.positional + schema.kwarg_only]
    if arguments not in FORMS:
        raise YamlError(
            location,
            f"{schema.name} takes ({', '.join(arguments)}), which is no reduction's form",
            "write (Tensor self), (Tensor self, int[1]? dim=None, bool keepdim=False), each with or without "
            "'*, ScalarType? dtype=None'",
        )
    promotion = raw.text("promotion") or "default"
    if promotion not in PROMOTIONS:
        fix = suggest(promotion, PROMOTIONS, f"use one of {', '.join(PROMOTIONS)}")
        raise YamlError(raw.at("promotion"), f"unknown promotion '{promotion}'", fix)
    texts: dict[str, str] = {}
    for key in ("start", "step"):
        text = raw.text(key)
        if text is None:
            raise YamlError(location, f"the reduction {schema.name} has no '{key}'", f"write '{key}: expression'")
        texts[key] = text
    texts["join"] = raw.text("join") or _renamed(texts["step"])
    texts["finish"] = raw.text("finish") or "acc"
    names = {
        "start": (),
        "step": ("acc", "x"),
        "join": ("a", "b"),
        "finish": ("acc", "count"),
    }
    kind = Kind.B if promotion == "always_bool" else Kind.T
    kinds = {"x": Kind.T, "count": Kind.T}
    expressions: dict[LeafClass, Expressions] = {}
    for leaf in _leaves(raw):
        blocks = {}
        for key, variables in names.items():
            known = {name: Name(kinds.get(name, kind)) for name in variables}
            where = raw.at(key) if key in raw else raw.at("step")
            blocks[key] = parse(texts[key], known, leaf, kind, where)
        expressions[leaf] = Expressions(**blocks)
    for leaf, parts in expressions.items():
        _prove(str(schema.name), parts, leaf, raw)
    return ReductionOp(
        str(schema.name),
        schema.name.c_name,
        promotion,
        expressions,
        "dim" in arguments,
        "dtype" in arguments,
        location,
    )
