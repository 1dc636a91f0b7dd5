"""vmap: a function of one sample as a function of all of them at once.

The arguments become batched tensors of a level of their own (Note [Batched tensors] in csrc/batched/batched.h), the
function runs once, and what it returns gets its batch back as a dimension.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy.autograd.forward_ad import tangent_of
from tensorpy.utils._pytree import (
    TreeSpec,
    broadcast_to_leaves,
    tree_flatten,
    tree_leaves,
    tree_structure,
    tree_unflatten,
)

if TYPE_CHECKING:
    from tensorpy.func.signatures import OfTensors, T

RANDOMNESS = ("error", "different", "same")


def plain(func: OfTensors[T]) -> Callable[..., T]:
    """The function, whatever its arguments are to a checker of types."""
    return func


def name_of(func: Callable[..., Any]) -> str:
    """For messages."""
    return getattr(func, "__name__", None) or repr(func)


class Forward:
    """A level of tangents that a transform has opened."""

    def __init__(self, number: int) -> None:
        self.number = number

    def has_tangent(self, t: Tensor) -> bool:
        """Whether a tensor has a tangent of the level."""
        return tangent_of(t, self.number) is not None


class _Open(threading.local):
    """The transforms that a thread is inside of, the outermost first: a vmap's number, or the leaves of what is
    differentiated, or nothing."""

    def __init__(self) -> None:
        self.transforms: list[int | Forward | Sequence[Tensor]] = []


opened: Any = _Open()


_GRAPHS = sum(bit for name, bit in _C._KEYS.items() if name.startswith(("Autograd", "ADInplaceOrView", "ForwardAD")))


@contextmanager
def recording() -> Iterator[None]:
    """What is differentiated has a graph, whatever layers the caller has left out of its own."""
    include, exclude = _C._get_dispatch_sets()
    _C._set_dispatch_sets(include, exclude & ~_GRAPHS)
    try:
        yield
    finally:
        _C._set_dispatch_sets(include, exclude)


@contextmanager
def transforming(of: int | Forward | Sequence[Tensor] = ()) -> Iterator[None]:
    """The function of a transform runs: what it says about the gradient of a tensor (requires_grad_) is an error."""
    differentiates = not isinstance(of, int)
    inference = differentiates and _C.is_inference_mode_enabled()
    _C._transform(1, differentiates)
    opened.transforms.append(of)
    if inference:
        _C._set_inference_mode(False)  # what is differentiated keeps a history, whatever the caller wants of its own
    try:
        yield
    finally:
        if inference:
            _C._set_inference_mode(True)
        opened.transforms.pop()
        _C._transform(-1, differentiates)


def _behind(t: Tensor, leaves: Sequence[Tensor]) -> bool:
    """Whether the graph of a tensor leads back to one of the leaves."""
    ends = [leaf.grad_fn for leaf in leaves if leaf.grad_fn is not None]
    seen: list[Any] = []
    nodes = [t.grad_fn]  # the nodes themselves: an object of a node is one as long as it is held
    while nodes:
        node = nodes.pop()
        if node is None or any(node is s for s in seen):
            continue
        seen.append(node)
        variable = getattr(node, "variable", None)
        if any(node is end for end in ends) or any(variable is leaf for leaf in leaves):
            return True
        nodes += [n for n, _ in node.next_functions]
    return any(t is leaf for leaf in leaves)


def _whole(t: Tensor) -> Tensor:
    return debug_unwrap(t) if _C._is_batched(t) else t


def transformed(t: Tensor, depth: int | None = None) -> tuple[int, str, Tensor] | None:
    """The innermost transform, of the first `depth`, that a tensor belongs to: its place from 1 on, "vmap" or "grad",
    and the value below, which for "grad" is the tensor itself. For printing."""
    for place in range(len(opened.transforms) if depth is None else depth, 0, -1):
        of = opened.transforms[place - 1]
        if isinstance(of, int):
            if _C._batch_number(t) == of:
                return place, "vmap", _C._vmap_remove(t, of, 0)
        elif isinstance(of, Forward):
            if of.has_tangent(t):
                return place, "grad", t
        elif of and _behind(_whole(t), of):
            return place, "grad", t
    return None


@contextmanager
def level(size: int, randomness: str) -> Iterator[int]:
    """A level that is open for the length of the block."""
    number = _C._vmap_open(size, randomness)
    try:
        with transforming(number):
            yield number
    finally:
        _C._vmap_close(number)


# ---- arguments ----


def _check_in_dim(what: str, dim: Any, value: Any) -> None:
    if dim is None:
        return
    if isinstance(dim, bool) or not isinstance(dim, int):
        raise ValueError(
            f"{what}: Got in_dim={dim} for an input but in_dim must be either an integer dimension or None."
        )
    if not isinstance(value, Tensor):
        raise ValueError(
            f"{what}: Got in_dim={dim} for an input but the input is of type {type(value)}. We cannot vmap over "
            "non-Tensor arguments, please use None as the respective in_dim"
        )
    if not -value.ndim <= dim < value.ndim:
        raise ValueError(
            f"{what}: Got in_dim={dim} for some input, but that input is a Tensor of dimensionality {value.ndim} so "
            f"expected in_dim to satisfy -{value.ndim} <= in_dim < {value.ndim}."
        )


def _flat_arguments(func: str, in_dims: Any, args: tuple[Any, ...]) -> tuple[list[Any], list[Any], TreeSpec, int]:
    """The leaves of the arguments, the dimension that is mapped of each, their structure, and the size of that."""
    what = f"vmap({func}, in_dims={in_dims}, ...)(<inputs>)"
    if not isinstance(in_dims, (int, tuple, list)):
        raise ValueError(
            f"{what}: expected `in_dims` to be int or a (potentially nested) tuple matching the structure of inputs, "
            f"got: {type(in_dims)}."
        )
    if not args:
        raise ValueError(
            f"vmap({func})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to vmap over a "
            "function with no inputs. The latter is unsupported."
        )
    leaves, spec = tree_flatten(args)
    dims = broadcast_to_leaves(tuple(in_dims) if isinstance(in_dims, list) else in_dims, spec)
    if dims is None:
        raise ValueError(
            f"{what}: in_dims is not compatible with the structure of `inputs`. in_dims has structure "
            f"{tree_structure(in_dims)} but inputs has structure {spec}."
        )
    for dim, leaf in zip(dims, leaves, strict=True):
        _check_in_dim(what, dim, leaf)
    sizes = [leaf.size(dim) for dim, leaf in zip(dims, leaves, strict=True) if dim is not None]
    if not sizes:
        raise ValueError(f"vmap: Expected at least one Tensor to vmap over: {what}")
    if any(size != sizes[0] for size in sizes):
        raise ValueError(
            f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sizes} for the "
            "mapped dimension"
        )
    return leaves, dims, spec, sizes[0]


# ---- results ----


def _flat_out_dims(func: str, out_dims: Any, spec: TreeSpec) -> list[Any]:
    given = out_dims
    if spec.is_leaf() and isinstance(out_dims, (tuple, list)) and len(out_dims) == 1:
        given = out_dims[0]
    what = f"vmap({func}, ..., out_dims={out_dims})"
    if any(not (d is None or (isinstance(d, int) and not isinstance(d, bool))) for d in tree_leaves(out_dims)):
        raise ValueError(
            f"{what}: `out_dims` must be an int, None or a python collection of ints representing where in the outputs "
            "the vmapped dimension should appear."
        )
    dims = broadcast_to_leaves(given, spec)
    if dims is None:
        raise ValueError(
            f"{what}(<inputs>): out_dims is not compatible with the structure of `outputs`. out_dims has structure "
            f"{tree_structure(out_dims)} but outputs has structure {spec}."
        )
    return dims


def _unbatched(func: str, value: Any, dim: int | None, number: int, size: int) -> Any:
    if dim is None:
        if isinstance(value, Tensor) and _C._batch_number(value) == number:
            raise ValueError(f"vmap({func}, ...): `{func}` can not return a BatchedTensor when out_dim is None")
        return value
    if not isinstance(value, Tensor):
        raise ValueError(
            f"vmap({func}, ...): `{func}` must only return Tensors, got type {type(value)}. Did you mean to set "
            "out_dims= to None for output?"
        )
    result = _C._vmap_remove(value, number, size)
    if not -result.ndim <= dim < result.ndim:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-result.ndim}, {result.ndim - 1}], but got {dim}): "
            f"out_dim of vmap({func})"
        )
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


def _of_nested(
    run: Callable[[list[Any], list[Any], int], tuple[list[Any], list[Any], TreeSpec]],
    name: str,
    leaves: list[Any],
    dims: list[Any],
    size: int,
) -> tuple[list[Any], TreeSpec]:
    """The same where some arguments are nested: a run for each piece, whose results are nested."""
    if any(
        d not in (None, 0) for d, leaf in zip(dims, leaves, strict=True) if isinstance(leaf, Tensor) and leaf.is_nested
    ):
        raise ValueError(f"vmap({name}): a nested tensor is mapped over its dimension 0")
    runs: list[list[Any]] = []
    where: list[Any] = []
    out_spec: Any = None
    for i in range(size):
        some = [v if d is None else v.select(d, i).unsqueeze(0) for v, d in zip(leaves, dims, strict=True)]
        inner = [None if d is None else 0 for d in dims]
        results, where, out_spec = run(some, inner, 1)
        if any(d not in (None, 0) for d in where):
            raise ValueError(f"vmap({name}): results of a nested tensor's pieces have out_dims 0 or None")
        runs.append(results)
    if not runs:
        raise ValueError(f"vmap({name}): a nested tensor without pieces")
    parts = zip(zip(*runs, strict=True), where, strict=True)
    return [p[0] if d is None else _C._nested_from_list([r[0] for r in p], False) for p, d in parts], out_spec


def _joined(parts: list[list[Any]], dims: list[Any]) -> list[Any]:
    """The results of chunks as those of one run."""
    return [
        part[0] if dim is None else _C.cat(list(part), dim)
        for part, dim in zip(zip(*parts, strict=True), dims, strict=True)
    ]


def vmap(
    func: OfTensors[T],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., T]:
    """The function that maps `func` over a dimension of its arguments, computed for all samples at once.

    `in_dims` says which dimension of each argument counts the samples, None for an argument that all share; `out_dims`
    where that dimension is in what is returned. Both are ints, or have the structure of the arguments and the result.
    Keyword arguments are shared. `randomness` says whether an operator that draws random numbers is an "error", draws
    "different" ones for each sample or the "same" for all. `chunk_size` bounds how many samples are computed at once.

    Returns: a function of the same arguments, each with one dimension more.

    Raises: ValueError for in_dims that do not fit the arguments, or a chunk_size below 1; RuntimeError for an unknown
        randomness.

    Example:
        >>> tp.vmap(tp.dot)(tp.tensor([[1.0, 2.0], [3.0, 4.0]]), tp.tensor([[1.0, 1.0], [2.0, 2.0]]))
        tensor([ 3., 14.])
    """
    if randomness not in RANDOMNESS:
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")
    name = name_of(func)

    @functools.wraps(plain(func))
    def mapped(*args: Any, **kwargs: Any) -> Any:
        leaves, dims, spec, size = _flat_arguments(name, in_dims, args)

        def run(some: list[Any], dims: list[Any], size: int) -> tuple[list[Any], list[Any], TreeSpec]:
            return _run(func, name, some, dims, spec, size, out_dims, randomness, kwargs)

        if any(d is not None and leaf.is_nested for d, leaf in zip(dims, leaves, strict=True)):
            nested, out_spec = _of_nested(run, name, leaves, dims, size)
            return tree_unflatten(nested, out_spec)
        if chunk_size is None or chunk_size >= size:
            results, _, out_spec = run(leaves, dims, size)
            return tree_unflatten(results, out_spec)
        runs = []
        for start in range(0, size, chunk_size):
            n = min(chunk_size, size - start)
            some = [v if d is None else v.narrow(d, start, n) for v, d in zip(leaves, dims, strict=True)]
            runs.append(run(some, dims, n))
        _, where, out_spec = runs[0]
        return tree_unflatten(_joined([results for results, _, _ in runs], where), out_spec)

    return mapped


def debug_unwrap(tensor: Tensor, *, recurse: bool = True) -> Tensor:
    """A batched tensor's values, with the batch (of every level, or of one) as its first dimensions: for debuggers.

    Arguments:
        tensor: the tensor
        recurse: whether all levels are taken off

    Returns: a tensor.

    Example:
        >>> tp.func.debug_unwrap(tp.ones(2))
        tensor([1., 1.])
    """
    sizes = {number: size for number, size, _ in _C._vmap_levels()}
    while _C._is_batched(tensor):
        number = _C._batch_number(tensor)
        tensor = _C._vmap_remove(tensor, number, sizes[number])
        if not recurse:
            break
    return tensor
