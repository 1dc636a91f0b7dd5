"""Samples that follow from an operator's schema: pointwise operators and reductions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from codegen.catalog import Operator
from codegen.model import Argument

from .table import LEAF_OF, Make, Samples

# Shapes of one, two and three tensor arguments: same, broadcast both ways, zero-dimensional, without elements.
SHAPES = {
    1: [((3, 4),), ((),), ((0, 3),), ((2, 3, 2),)],
    2: [((3, 4), (3, 4)), ((2, 1, 3), (4, 1)), ((), (3,)), ((3,), ()), ((0, 3), (1, 3)), ((), ())],
    3: [((3, 4), (3, 4), (3, 4)), ((2, 1, 3), (3,), (4, 1)), ((), (3,), ()), ((0, 3), (1, 3), ())],
}

# Values of arguments that are no tensors, by their name; where several are given, each is tried.
VALUES: dict[str, list[Any]] = {
    "decimals": [1, -1, 0],
    "rounding_mode": ["floor", "trunc", None],
    "n": [2],
    "exponent": [2, 3],
    "eps": [1e-3],
    "approximate": ["none", "tanh"],
    "min": [1, None],
    "max": [3],
    "lambd": [0.5],
    "value": [2],
    "alpha": [1, 2],
    "other": [2],
    "weight": [0.25, 0.75],
    "negative_slope": [0.01, 0.3],
    "threshold": [1],
    "nan": [None, 1.5],
}


def tensor_arguments(op: Operator) -> list[Argument]:
    return [a for a in op.schema.arguments if str(a.type) in ("Tensor", "Tensor?")]


def _value(a: Argument, turn: int, dtype: str) -> Any:
    choices = [v for v in VALUES.get(a.name, []) if v is not None or a.is_optional]
    if choices:
        return choices[turn % len(choices)]
    kind = str(a.type).removesuffix("?")
    return {"Scalar": 2, "float": 0.5, "int": 1, "SymInt": 1, "bool": bool(turn % 2)}.get(kind)


def pointwise(op: Operator) -> Samples:
    """All tensor arguments in broadcasting shapes; other arguments with their defaults and with other values."""

    def generate(make: Make) -> Iterator[Any]:
        tensors = tensor_arguments(op)
        fixed = {i.name: i.dtype for i in op.pointwise.inputs if i.dtype} if op.pointwise else {}
        turns = max([1] + [len(VALUES.get(a.name, [None])) for a in op.schema.arguments if a not in tensors])
        for turn, shapes in enumerate(SHAPES[min(len(tensors), 3)] + [None] * (turns - 1)):
            chosen = iter(shapes or SHAPES[min(len(tensors), 3)][0])
            args: list[Any] = []
            kwargs: dict[str, Any] = {}
            left_out = False
            for a in op.schema.arguments:
                if a in tensors:
                    value = make(next(chosen), dtype=fixed.get(a.name))
                elif a.default is not None and (turn == 0 or a.name not in VALUES):
                    left_out = True
                    continue
                else:
                    value = _value(a, turn, make.dtype)
                if left_out or a in op.schema.kwarg_only:
                    kwargs[a.name] = value
                else:
                    args.append(value)
            yield (*args, kwargs)

    return generate


def reduction(op: Operator) -> Samples:
    """No dimension, one, several; kept or not."""
    names = {a.name: str(a.type) for a in op.schema.arguments}
    others = {a.name: {"p": 2, "ord": 2}.get(a.name) for a in op.schema.arguments[1:] if a.default is None}
    required = {name: value for name, value in others.items() if value is not None}
    keyword = bool(required) or [a.name for a in op.schema.positional][1:2] != ["dim"]

    def dimensions(shape: tuple[int, ...]) -> list[Any]:
        dims: list[Any] = [0, -1] if shape else [0]
        if "[" in names["dim"]:
            dims = [*([[0, -1]] if len(shape) > 1 else []), *([d] for d in dims)]
        return [*dims, None] if names["dim"].endswith("?") else dims

    def generate(make: Make) -> Iterator[Any]:
        spread = op.schema.name.base.split("_")[0] in ("var", "std")  # one element has none
        for shape in ((3, 4), (2, 3, 2)) if spread else ((3, 4), (2, 3, 2), ()):
            draw = make.distinct if _compares(op) else make
            if "dim" not in names:
                yield draw(*shape), dict(required)
                continue
            for i, dim in enumerate(dimensions(shape)):
                given = {"keepdim": bool(i % 2)} if "keepdim" in names else {}
                yield (draw(*shape), {"dim": dim, **required, **given}) if keyword else (draw(*shape), dim, given)

    return generate


def _compares(op: Operator) -> bool:
    return any(word in op.schema.name.base for word in ("max", "min", "median", "sort", "kth", "mode"))


def family_of(op: Operator) -> Samples | None:
    base = op.schema.name.base
    if base.startswith("_") or base.endswith("_backward") or op.kind == "inplace":
        return None
    if not any(str(r.type).startswith("Tensor") for r in op.schema.returns):
        return None
    tags = {str(t) for t in op.function.tags}
    if (op.pointwise is not None or "pointwise" in tags) and 1 <= len(tensor_arguments(op)) <= 3:
        return pointwise(op)
    needs_dtype = any(a.name == "dtype" and a.default is None for a in op.schema.arguments)
    if "reduction" in tags and len(tensor_arguments(op)) == 1 and not needs_dtype:
        return reduction(op)
    return None


__all__ = ["LEAF_OF", "family_of", "pointwise", "reduction", "tensor_arguments"]
