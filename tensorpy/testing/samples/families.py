"""Samples that follow from an operator's schema: pointwise operators and reductions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .table import LEAF_OF, Make, Samples

if TYPE_CHECKING:
    from codegen.catalog import Operator
    from codegen.model import Argument

# Shapes of one, two and three tensor arguments: same, broadcast both ways, zero-dimensional, without elements.
SHAPES = {
    1: [((3, 4),), ((),), ((0, 3),), ((2, 3, 2),), ((1,),), ((70,),), ((2, 1, 3),), ((5, 5),), ((3, 0),), ((33,),)],
    2: [
        ((3, 4), (3, 4)), ((2, 1, 3), (4, 1)), ((), (3,)), ((3,), ()), ((0, 3), (1, 3)), ((), ()), ((5,), (2, 5)),
        ((2, 3, 2), (3, 1)), ((1,), (4, 1)), ((40,), (40,)),
    ],
    3: [
        ((3, 4), (3, 4), (3, 4)), ((2, 1, 3), (3,), (4, 1)), ((), (3,), ()), ((0, 3), (1, 3), ()), ((), (), ()),
        ((3, 4), (4,), ()), ((4,), (3, 4), (3, 1)), ((1,), (1, 1), (2, 3)), ((2, 3), (), (3,)), ((5,), (5,), (1,)),
        ((2, 1, 2), (3, 1), (2, 3, 2)), ((40,), (40,), (40,)),
    ],
}  # fmt: skip

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


# Orders of norms, the usual one first.
ORDERS = (2, 1, 0, 3, 0.5, float("inf"), -float("inf"), -1)


def reduction(op: Operator) -> Samples:
    """No dimension, one, several; kept or not; norms of every order; with NaN, where it is left out."""
    names = {a.name: str(a.type) for a in op.schema.arguments}
    order = next((name for name in ("p", "ord") if name in names), None)
    keyword = order is not None or [a.name for a in op.schema.positional][1:2] != ["dim"]

    def dimensions(shape: tuple[int, ...]) -> list[Any]:
        dims: list[Any] = [0, -1] if shape else [0]
        if len(shape) > 2:
            dims.append(1)
        if "[" in names["dim"]:
            several = [[0, -1], [1, 0], list(range(len(shape)))] if len(shape) > 1 else []
            dims = [*several, *([d] for d in dims)]
        return [*dims, None] if names["dim"].endswith("?") else dims

    def generate(make: Make) -> Iterator[Any]:
        spread = op.schema.name.base.split("_")[0] in ("var", "std")  # one element has none
        draw = make.with_nan if "nan" in op.schema.name.base else make.distinct if _compares(op) else make
        for shape in ((3, 4), (2, 3, 2), (4, 1, 3), (33,), (2, 2, 2, 2), *(() if spread else ((), (1,)))):
            if spread and shape == (4, 1, 3):
                shape = (4, 2, 3)
            for which in ORDERS if order else (None,):
                given: dict[str, Any] = {order: which} if order else {}
                if "dtype" in names and not any(a.default for a in op.schema.arguments if a.name == "dtype"):
                    given["dtype"] = make.given
                if "dim" not in names:
                    yield draw(*shape), given
                    continue
                for i, dim in enumerate(dimensions(shape)):
                    for keepdim in (False, True) if order is None else (bool(i % 2),):
                        kept = {"keepdim": keepdim} if "keepdim" in names else {}
                        if keyword:
                            yield draw(*shape), {"dim": dim, **given, **kept}
                        else:
                            yield draw(*shape), dim, {**given, **kept}

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
    if ("reduction" in tags or base == "nanmean") and len(tensor_arguments(op)) == 1:
        return reduction(op)
    return None


__all__ = ["LEAF_OF", "family_of", "pointwise", "reduction", "tensor_arguments"]
