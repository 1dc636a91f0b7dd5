"""vmap: a function of one sample as a function of all of them at once.

The arguments become batched tensors of a level of their own (Note [Batched tensors] in csrc/batched/batched.h), the
function runs once, and what it returns gets its batch back as a dimension.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy.utils._pytree import TreeSpec, broadcast_to_leaves, tree_flatten, tree_unflatten

RANDOMNESS = ("error", "different", "same")


def name_of(func: Callable[..., Any]) -> str:
    """For messages."""
    return getattr(func, "__name__", None) or repr(func)


@contextmanager
def level(size: int, randomness: str) -> Iterator[int]:
    """A level that is open for the length of the block."""
    number = _C._vmap_open(size, randomness)
    try:
        yield number
    finally:
        _C._vmap_close(number)


# ---- arguments ----


def _check_in_dim(func: str, dim: Any, value: Any) -> None:
    if dim is None:
        return
    if isinstance(dim, bool) or not isinstance(dim, int):
        raise ValueError(f"{func}: an in_dim is an int or None, got {dim!r}")
    if not isinstance(value, Tensor):
        raise ValueError(
            f"{func}: in_dim={dim} is for an argument of type {type(value).__name__}, which has no dimensions: give it "
            "the in_dim None"
        )
    if not -value.ndim <= dim < value.ndim:
        raise ValueError(f"{func}: in_dim={dim} is out of range for a tensor of {value.ndim} dimensions")


def _flat_arguments(func: str, in_dims: Any, args: tuple[Any, ...]) -> tuple[list[Any], list[Any], TreeSpec, int]:
    """The leaves of the arguments, the dimension that is mapped of each, their structure, and the size of that."""
    if not isinstance(in_dims, (int, tuple, list)):
        raise ValueError(f"{func}: in_dims is an int or a tuple in the structure of the arguments, got {in_dims!r}")
    if not args:
        raise ValueError(f"{func}: there are no positional arguments to map over")
    leaves, spec = tree_flatten(args)
    dims = broadcast_to_leaves(tuple(in_dims) if isinstance(in_dims, list) else in_dims, spec)
    if dims is None:
        raise ValueError(f"{func}: in_dims={in_dims} does not have the structure of the arguments, {spec}")
    for dim, leaf in zip(dims, leaves, strict=True):
        _check_in_dim(func, dim, leaf)
    sizes = [leaf.shape[dim] for dim, leaf in zip(dims, leaves, strict=True) if dim is not None]
    if not sizes:
        raise ValueError(f"{func}: no argument is mapped: at least one in_dim has to be an int")
    if any(size != sizes[0] for size in sizes):
        raise ValueError(f"{func}: the mapped dimensions have different sizes: {sizes}")
    return leaves, dims, spec, sizes[0]


# ---- results ----


def _flat_out_dims(func: str, out_dims: Any, spec: TreeSpec) -> list[Any]:
    given = out_dims
    if spec.is_leaf() and isinstance(out_dims, (tuple, list)) and len(out_dims) == 1:
        given = out_dims[0]
    dims = broadcast_to_leaves(given, spec)
    if dims is None or any(not (d is None or (isinstance(d, int) and not isinstance(d, bool))) for d in dims):
        raise ValueError(f"{func}: out_dims={out_dims} does not have the structure of what is returned, {spec}")
    return dims


def _unbatched(func: str, value: Any, dim: int | None, number: int, size: int) -> Any:
    if dim is None:
        if isinstance(value, Tensor) and _C._batch_number(value) == number:
            raise ValueError(f"{func}: what is different for each sample is returned with the out_dim None")
        return value
    if not isinstance(value, Tensor):
        raise ValueError(
            f"{func}: only tensors are returned, got {type(value).__name__}; give what is no tensor the out_dim None"
        )
    result = _C._vmap_remove(value, number, size)
    if not -result.ndim <= dim < result.ndim:
        raise IndexError(f"{func}: out_dim={dim} is out of range for a result of {result.ndim} dimensions")
    return result if dim == 0 else result.movedim(0, dim)


# ---- one run ----


def _run(
    func: Callable[..., Any],
    name: str,
    leaves: list[Any],
    dims: list[Any],
    spec: TreeSpec,
    size: int,
    out_dims: Any,
    randomness: str,
    kwargs: dict[str, Any],
) -> tuple[list[Any], list[Any], TreeSpec]:
    """The leaves of the result, the dimension of each that counts the samples, and its structure."""
    with level(size, randomness) as number:
        batched = [v if d is None else _C._vmap_add(v, d, number) for v, d in zip(leaves, dims, strict=True)]
        results, out_spec = tree_flatten(func(*tree_unflatten(batched, spec), **kwargs))
        where = _flat_out_dims(name, out_dims, out_spec)
        return [_unbatched(name, r, d, number, size) for r, d in zip(results, where, strict=True)], where, out_spec


def _joined(parts: list[list[Any]], dims: list[Any]) -> list[Any]:
    """The results of chunks as those of one run."""
    return [
        part[0] if dim is None else _C.cat(list(part), dim)
        for part, dim in zip(zip(*parts, strict=True), dims, strict=True)
    ]


def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """The function that maps `func` over a dimension of its arguments, computed for all samples at once.

    `in_dims` says which dimension of each argument counts the samples, None for an argument that all share; `out_dims`
    where that dimension is in what is returned. Both are ints, or have the structure of the arguments and the result.
    Keyword arguments are shared. `randomness` says whether an operator that draws random numbers is an "error", draws
    "different" ones for each sample or the "same" for all. `chunk_size` bounds how many samples are computed at once.
    """
    if randomness not in RANDOMNESS:
        raise RuntimeError(f"vmap: randomness is 'error', 'different' or 'same', got {randomness!r}")
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError(f"vmap: chunk_size is None or greater than 0, got {chunk_size}")
    name = f"vmap({name_of(func)})"

    @functools.wraps(func)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        leaves, dims, spec, size = _flat_arguments(name, in_dims, args)
        if chunk_size is None or chunk_size >= size:
            results, _, out_spec = _run(func, name, leaves, dims, spec, size, out_dims, randomness, kwargs)
            return tree_unflatten(results, out_spec)
        runs = []
        for start in range(0, size, chunk_size):
            n = min(chunk_size, size - start)
            some = [v if d is None else v.narrow(d, start, n) for v, d in zip(leaves, dims, strict=True)]
            runs.append(_run(func, name, some, dims, spec, n, out_dims, randomness, kwargs))
        _, where, out_spec = runs[0]
        return tree_unflatten(_joined([results for results, _, _ in runs], where), out_spec)

    return mapped


def debug_unwrap(tensor: Tensor, *, recurse: bool = True) -> Tensor:
    """A batched tensor's values, with the batch (of every level, or of one) as its first dimensions: for debuggers."""
    sizes = {number: size for number, size, _ in _C._vmap_levels()}
    while _C._is_batched(tensor):
        number = _C._batch_number(tensor)
        tensor = _C._vmap_remove(tensor, number, sizes[number])
        if not recurse:
            break
    return tensor
