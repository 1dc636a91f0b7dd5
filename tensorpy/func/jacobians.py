"""jvp, jacrev, jacfwd, hessian and linearize.

A jvp is one call of the function with tangents: forward mode. A Jacobian is a vjp for each element of the outputs, or a
linear map for each of the inputs, under vmap: `linearize` calls the function once, where a jvp would for each column.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy.autograd.forward_ad import make, tangent_of
from tensorpy.func.gradients import _chosen, _replaced, linearize, vjp, with_aux
from tensorpy.func.vmap import name_of, vmap
from tensorpy.utils._pytree import tree_flatten, tree_unflatten


def _basis(like: list[Tensor]) -> list[Tensor]:
    """For each of the tensors, as many of its shape as all have elements: a 1 in another place in each."""
    total = sum(t.numel() for t in like)
    made, start = [], 0
    for t in like:
        part = _C.zeros((total, t.numel()), dtype=t.dtype, device=t.device)
        part.narrow(0, start, t.numel()).fill_diagonal_(1)
        made.append(part.view((total, *t.shape)))
        start += t.numel()
    return made


def _split(t: Tensor, shapes: list[Any], first: bool) -> list[Tensor]:
    """Parts of dimension 0 in the given shapes; dimension 0 comes first in the results, or last."""
    parts, start = [], 0
    for shape in shapes:
        n = 1
        for size in shape:
            n *= size
        part = t.narrow(0, start, n)
        rest = part.shape[1:]
        parts.append(part.reshape((*shape, *rest)) if first else part.movedim(0, -1).reshape((*rest, *shape)))
        start += n
    return parts


class _Function:
    """A function of some of its arguments, the others kept."""

    def __init__(
        self, what: str, func: Callable[..., Any], args: Any, argnums: Any, kwargs: Any, has_aux: bool
    ) -> None:
        self.what, self.func, self.args, self.kwargs, self.has_aux = what, func, args, kwargs, has_aux
        self.single = isinstance(argnums, int)
        self.places, self.tree = _chosen(what, args, argnums)
        self.spec: Any = None

    def __call__(self, tree: Any) -> Any:
        """The leaves of the output."""
        full = _replaced(self.args, self.places, self.single, tree)
        output, aux = with_aux(self.what, self.func(*full, **self.kwargs), self.has_aux)
        leaves, self.spec = tree_flatten(output)
        if not leaves or not all(isinstance(o, Tensor) for o in leaves):
            raise RuntimeError(f"{self.what}: the function returns tensors, got {type(output).__name__}")
        return (leaves, aux) if self.has_aux else leaves


def jacrev(
    func: Callable[..., Any],
    argnums: int | tuple[int, ...] = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """The function that gives the Jacobian of `func`, a row at a time: of shape (*output, *input), in the structure of
    the outputs, in that of the arguments. `chunk_size` bounds how many rows are computed at once."""
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError(f"jacrev: chunk_size is None or greater than 0, got {chunk_size}")
    what = f"jacrev({name_of(func)})"

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        inner = _Function(what, func, args, argnums, kwargs, has_aux)
        outputs, back, *aux = vjp(inner, inner.tree, has_aux=has_aux)
        (rows,) = vmap(back, chunk_size=chunk_size)(_basis(outputs))
        leaves, spec = tree_flatten(rows)
        columns = [_split(leaf, [o.shape for o in outputs], True) for leaf in leaves]
        jacobian = [tree_unflatten(parts, spec) for parts in zip(*columns, strict=True)]
        result = tree_unflatten(jacobian, inner.spec)
        return (result, aux[0]) if has_aux else result

    return wrapper


@contextmanager
def _forward_level() -> Iterator[int]:
    """A level of forward mode that is open for the length of the block."""
    number = _C._forward_open()
    try:
        yield number
    finally:
        _C._forward_close(number)


def _check_tangents(what: str, primals: Any, tangents: Any) -> tuple[list[Tensor], list[Tensor], Any]:
    """The leaves of both, and their structure."""
    given, spec = tree_flatten(primals)
    along, other = tree_flatten(tangents)
    if spec != other:
        raise RuntimeError(f"{what}: the tangents have the structure {other}, the arguments {spec}")
    for value, tangent in zip(given, along, strict=True):
        if not isinstance(value, Tensor) or not isinstance(tangent, Tensor):
            raise RuntimeError(f"{what}: only tensors can be differentiated by, got {type(value).__name__}")
        if value.shape != tangent.shape:
            raise RuntimeError(
                f"{what}: a tangent of shape {tuple(tangent.shape)} for an argument of shape {tuple(value.shape)}"
            )
    return given, along, spec


def jvp(func: Callable[..., Any], primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False) -> Any:
    """The outputs of `func` and their tangents: (output, tangent), or (output, tangent, aux). With `strict` an output
    that does not depend on the arguments is an error, and else its tangent is zeros."""
    what = f"jvp({name_of(func)})"
    if not isinstance(primals, tuple) or not primals or not isinstance(tangents, tuple):
        raise RuntimeError(f"{what}: primals and tangents are tuples that are not empty")
    given, along, spec = _check_tangents(what, primals, tangents)
    with _forward_level() as number:
        duals = [make(x, t, number) for x, t in zip(given, along, strict=True)]
        output, aux = with_aux(what, func(*tree_unflatten(duals, spec)), has_aux)
        outputs, out_spec = tree_flatten(output)
        if not outputs or not all(isinstance(o, Tensor) for o in outputs):
            raise RuntimeError(f"{what}: the function returns tensors, got {type(output).__name__}")
        moved = [tangent_of(o, number) for o in outputs]
        if strict and any(t is None for t in moved):
            raise RuntimeError(f"{what}: with strict=True each output depends on the arguments, and one does not")
        filled = [_C.zeros_like(o) if t is None else t for o, t in zip(outputs, moved, strict=True)]
    result = output, tree_unflatten(filled, out_spec)
    return (*result, aux) if has_aux else result


def _detached(tree: Any) -> Any:
    leaves, spec = tree_flatten(tree)
    return tree_unflatten([v.detach() if isinstance(v, Tensor) else v for v in leaves], spec)


def jacfwd(
    func: Callable[..., Any],
    argnums: int | tuple[int, ...] = 0,
    has_aux: bool = False,
    *,
    randomness: str = "error",
) -> Callable[..., Any]:
    """The function that gives the Jacobian of `func`, a column at a time: of shape (*output, *input)."""
    what = f"jacfwd({name_of(func)})"

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        inner = _Function(what, func, args, argnums, kwargs, has_aux)
        kept: list[Any] = []

        def outputs_of(tree: Any) -> Any:
            result = inner(tree)
            if has_aux:
                kept.append(result[1])
            return result[0] if has_aux else result

        _, forward = linearize(outputs_of, inner.tree)
        inputs, spec = tree_flatten(inner.tree)
        directions = tree_unflatten(_basis(inputs), spec)
        columns = vmap(forward, randomness=randomness)(directions)
        shapes = [x.shape for x in inputs]
        jacobian = [tree_unflatten(_split(column, shapes, False), spec) for column in columns]
        result = tree_unflatten(jacobian, inner.spec)
        return (result, _detached(kept[0])) if has_aux else result

    return wrapper


def hessian(func: Callable[..., Any], argnums: int | tuple[int, ...] = 0) -> Callable[..., Any]:
    """The function that gives the second derivatives of `func`: the Jacobian of its Jacobian."""
    return jacrev(jacrev(func, argnums), argnums)
