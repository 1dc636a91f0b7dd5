"""jvp, jacrev, jacfwd, hessian and linearize.

A jvp is one call of the function with tangents: forward mode. A Jacobian is a vjp for each element of the outputs, or a
linear map for each of the inputs, under vmap: `linearize` calls the function once, where a jvp would for each column.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy.autograd.forward_ad import check_smooth, make, tangent_of
from tensorpy.func.custom import VmapInfo, sample_by_sample
from tensorpy.func.gradients import _replaced, checked_outputs, chosen, linearize, vjp, with_aux
from tensorpy.func.vmap import Forward, level, plain, transforming, vmap
from tensorpy.utils._pytree import tree_flatten, tree_map, tree_unflatten

if TYPE_CHECKING:
    from tensorpy.func.signatures import OfTensors


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


def _one_by_one(function: Callable[..., Any]) -> Callable[[list[Tensor]], Any]:
    """What vmap gives, of calls for one sample each."""
    rule = sample_by_sample(function)
    return lambda basis: rule(VmapInfo(len(basis[0]), "error"), [0] * len(basis), basis)[0]


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


def _check_real(name: str, what: str, values: list[Any]) -> None:
    for i, value in enumerate(values):
        if isinstance(value, Tensor) and value.is_complex():
            raise RuntimeError(
                f"{name}: Expected all {what} to be real but received complex tensor at flattened input idx: {i}"
            )


class _Function:
    """A function of some of its arguments, the others kept."""

    def __init__(
        self, name: str, what: str, func: Callable[..., Any], args: Any, argnums: Any, kwargs: Any, has_aux: bool
    ) -> None:
        self.name, self.what, self.func, self.args, self.kwargs, self.has_aux = name, what, func, args, kwargs, has_aux
        self.single = isinstance(argnums, int)
        self.places, self.tree = chosen(what, args, argnums)
        self.spec: Any = None
        _check_real(name, "inputs", tree_flatten(self.tree)[0])

    def __call__(self, tree: Any) -> Any:
        """The leaves of the output."""
        full = _replaced(self.args, self.places, self.single, tree)
        output, aux = with_aux(self.what, self.func(*full, **self.kwargs), self.has_aux)
        leaves, self.spec = checked_outputs(self.what, output)
        _check_real(self.name, "outputs", leaves)
        return (leaves, aux) if self.has_aux else leaves


def jacrev(
    func: OfTensors[Any],
    argnums: int | tuple[int, ...] = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Callable[..., Any]:
    """The function that gives the Jacobian of `func`, a row at a time: of shape (*output, *input), in the structure of
    the outputs, in that of the arguments. `chunk_size` bounds how many rows are computed at once; with 1 there are no
    batches, so that what cannot be batched runs. The last argument is how PyTorch joins the chunks, which changes
    nothing here.

    Arguments:
        func: the function
        argnums: which arguments, by position, are differentiated: an int or a tuple
        has_aux: whether func returns (output, aux), and aux is handed on

    Returns: a function of the same arguments.

    Raises: ValueError for a chunk_size below 1.

    Example:
        >>> tp.func.jacrev(lambda x: x**2)(tp.tensor([1.0, 2.0]))
        tensor([[2., 0.],
                [0., 4.]])
    """
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError(f"jacrev: `chunk_size` should be greater than 0, got {chunk_size}.")

    @functools.wraps(plain(func))
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        inner = _Function("jacrev", "vjp(f, *primals)", func, args, argnums, kwargs, has_aux)
        outputs, back, *aux = vjp(inner, inner.tree, has_aux=has_aux)
        single = chunk_size == 1 and any(o.numel() for o in outputs)
        rows = _one_by_one if single else functools.partial(vmap, chunk_size=chunk_size)
        leaves, spec = tree_flatten(rows(back)(_basis(outputs))[0])
        columns = [_split(leaf, [o.shape for o in outputs], True) for leaf in leaves]
        jacobian = [tree_unflatten(parts, spec) for parts in zip(*columns, strict=True)]
        result = tree_unflatten(jacobian, inner.spec)
        return (result, aux[0]) if has_aux else result

    return wrapper


@contextmanager
def _forward_level() -> Iterator[int]:
    """A level of forward mode that is open for the length of the block, where tangents are computed."""
    number, enabled = _C._forward_open(), _C._forward_enable(True)
    try:
        yield number
    finally:
        _C._forward_enable(enabled)
        _C._forward_close(number)


def _check_tangents(what: str, primals: Any, tangents: Any) -> tuple[list[Tensor], list[Tensor], Any]:
    """The leaves of both, and their structure."""
    if not isinstance(primals, tuple):
        raise RuntimeError(
            f"{what}: Expected primals to be a tuple. E.g. it should be valid to call f(*primals), got {type(primals)}"
        )
    given, spec = tree_flatten(primals)
    along, other = tree_flatten(tangents)
    if spec != other:
        raise RuntimeError(
            f"{what}: Expected primals and tangents to have the same python structure. Got primals with structure "
            f"{spec} and tangents with structure {other}"
        )
    for name, values in (("primals", given), ("tangents", along)):
        if not values:
            raise RuntimeError(f"{what}: Expected {name} to contain at least one Tensor.")
        for value in values:
            if not isinstance(value, Tensor):
                raise RuntimeError(f"{what}: Expected {name} to only contain Tensors, got {type(value)}")
    for value, tangent in zip(given, along, strict=True):
        if value.shape != tangent.shape:
            raise RuntimeError(
                "Trying to set a forward gradient that has a different size than that of the original Tensor, this is "
                f"not supported. Tensor is of size {list(value.shape)} while the given forward gradient is of size "
                f"{list(tangent.shape)}: {what}"
            )
        check_smooth("primal", value)
        check_smooth("tangent", tangent)
    return given, along, spec


def jvp(func: OfTensors[Any], primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False) -> Any:
    """The outputs of `func` and their tangents: (output, tangent), or (output, tangent, aux). With `strict` an output
    that does not depend on the arguments is an error, and else its tangent is zeros.

    Arguments:
        func: the function
        primals: the values
        strict: whether it is an error where an output does not depend on an input
        has_aux: whether func returns (output, aux), and aux is handed on

    Returns: a tuple.

    Raises: RuntimeError for tangents that do not fit the arguments, ValueError for what is no float.

    Example:
        >>> value, tangent = tp.func.jvp(lambda x: x**2, (tp.tensor([1.0, 2.0]),), (tp.ones(2),))
        >>> tangent
        tensor([2., 4.])
    """
    what = "jvp(f, primals, tangents)"
    given, along, spec = _check_tangents(what, primals, tangents)
    with _forward_level() as number, transforming(Forward(number)):
        duals = [make(x, t, number) for x, t in zip(given, along, strict=True)]
        output, aux = with_aux(what, func(*tree_unflatten(duals, spec)), has_aux)
        outputs, out_spec = checked_outputs(what, output)
        moved = [tangent_of(o, number) for o in outputs]
        if strict and any(t is None for t in moved):
            raise RuntimeError(f"{what}: with strict=True each output depends on the arguments, and one does not")
        filled = [_C.zeros_like(o) if t is None else t for o, t in zip(outputs, moved, strict=True)]
    result = output, tree_unflatten(filled, out_spec)
    return (*result, aux) if has_aux else result


def _drawing(func: OfTensors[Any], randomness: str) -> OfTensors[Any]:
    """`func`, which runs once for all columns: a number that it draws is refused, or the same for each."""

    @functools.wraps(plain(func))
    def drawing(*args: Any, **kwargs: Any) -> Any:
        with level(1, randomness) as number:
            result = func(*args, **kwargs)
            # What transforms within the function give has the level's batch.
            return tree_map(lambda t: _C._vmap_remove(t, number, 1)[0] if _is_batched(t) else t, result)

    return drawing


def _is_batched(t: Any) -> bool:
    return isinstance(t, Tensor) and _C._is_batched(t)


def jacfwd(
    func: OfTensors[Any],
    argnums: int | tuple[int, ...] = 0,
    has_aux: bool = False,
    *,
    randomness: str = "error",
) -> Callable[..., Any]:
    """The function that gives the Jacobian of `func`, a column at a time: of shape (*output, *input).

    Arguments:
        func: the function
        argnums: which arguments, by position, are differentiated: an int or a tuple
        has_aux: whether func returns (output, aux), and aux is handed on
        randomness: 'error', 'different' or 'same': what a draw in a batch is

    Returns: a function of the same arguments.

    Example:
        >>> tp.func.jacfwd(lambda x: x**2)(tp.tensor([1.0, 2.0]))
        tensor([[2., 0.],
                [0., 4.]])
    """

    @functools.wraps(plain(func))
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        inner = _Function("jacfwd", "jvp(f, primals, tangents)", func, args, argnums, kwargs, has_aux)
        inputs, spec = tree_flatten(inner.tree)

        run: Callable[..., Any] = inner if randomness == "different" else _drawing(inner, randomness)
        kept: list[Any] = []

        def outputs_of(tree: Any) -> Any:
            result = run(tree)
            if not has_aux:
                return result
            kept[:] = [result[1]]
            return result[0]

        def column(direction: Any) -> tuple[Any, Any]:
            """A column, and aux. The function runs here where what it draws is drawn in a batch."""
            return linearize(outputs_of, inner.tree)[1](direction), kept

        basis = tree_unflatten(_basis(inputs), spec)
        if randomness == "different":
            columns, aux = vmap(column, randomness=randomness)(basis)
            kept = tree_map(lambda t: t[0], aux)
        else:
            columns = vmap(linearize(outputs_of, inner.tree)[1])(basis)
        shapes = [x.shape for x in inputs]
        jacobian = [tree_unflatten(_split(column, shapes, False), spec) for column in columns]
        result = tree_unflatten(jacobian, inner.spec)
        return (result, tree_map(lambda t: t.detach(), kept[0])) if has_aux else result

    return wrapper


def hessian(func: OfTensors[Any], argnums: int | tuple[int, ...] = 0) -> Callable[..., Any]:
    """The function that gives the second derivatives of `func`: the Jacobian of its Jacobian.

    Arguments:
        func: the function
        argnums: which arguments, by position, are differentiated: an int or a tuple

    Returns: a function of the same arguments.

    Example:
        >>> tp.func.hessian(lambda x: (x**3).sum())(tp.tensor([1.0, 2.0]))
        tensor([[ 6.,  0.],
                [ 0., 12.]])
    """

    return jacrev(jacrev(_drawing(func, "error"), argnums), argnums)
