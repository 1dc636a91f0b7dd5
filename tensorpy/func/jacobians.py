"""jvp, jacrev, jacfwd, hessian and linearize.

A Jacobian is a vjp for each element of the outputs, or a jvp for each of the inputs, under vmap. A jvp is the gradient
of a vjp, which is linear in its cotangents: every backward formula is differentiable.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
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


def jvp(func: Callable[..., Any], primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False) -> Any:
    """The outputs of `func` and their tangents: (output, tangent), or (output, tangent, aux)."""
    if not isinstance(primals, tuple) or not primals or not isinstance(tangents, tuple):
        raise RuntimeError("jvp: primals and tangents are tuples that are not empty")
    kept: list[Any] = []

    def without_aux(*args: Any) -> Any:
        output, aux = with_aux(f"jvp({name_of(func)})", func(*args), has_aux)
        kept.append(aux)
        return output

    output, forward = linearize(without_aux, *primals)
    result = output, forward(*tangents)
    return (*result, _detached(kept[0])) if has_aux else result


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
