"""Functions of parts, and plain tensors beside distributed ones: names of torch.distributed.tensor.experimental."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tensorpy._C import Tensor
from tensorpy.distributed.device_mesh import DeviceMesh
from tensorpy.distributed.tensor import _dispatch
from tensorpy.distributed.tensor._api import DTensor
from tensorpy.utils._pytree import tree_flatten, tree_unflatten

__all__ = ["implicit_replication", "local_map"]


@contextlib.contextmanager
def implicit_replication() -> Iterator[None]:
    """Inside of it a plain tensor beside a distributed one is the same in all processes.

    Example:
        >>> from tensorpy.distributed.tensor import DTensor, Shard
        >>> from tensorpy.distributed.tensor.experimental import implicit_replication
        >>> x = DTensor.from_local(tp.ones(2), tp.distributed.init_device_mesh("cpu", (1,)), [Shard(0)])
        >>> with implicit_replication():
        ...     y = x + tp.ones(2)
        >>> y.to_local()
        tensor([2., 2.])
    """
    _dispatch.replicating.append(None)
    try:
        yield
    finally:
        _dispatch.replicating.pop()


def _part(value: Any, wanted: Any, grads: Any, redistributes: bool) -> Any:
    """The part of an argument, under the placements that are said of it."""
    if not isinstance(value, DTensor):
        if wanted is not None:
            raise TypeError(f"local_map: placements are said of {type(value).__name__}, which is no DTensor")
        return value
    if wanted is not None and value.placements != tuple(wanted):
        if not redistributes:
            raise ValueError(
                f"local_map: an argument is distributed as {value.placements}, and in_placements says {tuple(wanted)}: "
                "redistribute_inputs=True brings it there"
            )
        value = value.redistribute(placements=wanted)
    return value.to_local(grad_placements=grads)


def _several(said: Any, count: int, name: str) -> Sequence[Any]:
    if said is None:
        return [None] * count
    if len(said) != count:
        raise ValueError(f"local_map: {name} says {len(said)} placements, and there are {count} values")
    return list(said)


def local_map(
    func: Callable[..., Any] | None = None,
    out_placements: Any = None,
    in_placements: Any = None,
    in_grad_placements: Any = None,
    device_mesh: DeviceMesh | None = None,
    *,
    redistribute_inputs: bool = False,
) -> Callable[..., Any]:
    """A function of parts as one of distributed tensors.

    Arguments:
        func: gets each process's parts; without it a decorator is returned
        out_placements: what the results are, for each of them a list of placements, or None for one that stays plain
        in_placements: what the arguments are, for each of them a list, or None; nothing is checked if nothing is said
        in_grad_placements: what the gradients of the parts are, for each argument
        device_mesh: the processes; those of the first distributed argument if nothing is said
        redistribute_inputs: whether arguments are brought to in_placements; else other ones are errors

    Example:
        >>> from tensorpy.distributed.tensor import DTensor, Partial, Shard
        >>> from tensorpy.distributed.tensor.experimental import local_map
        >>> total = local_map(lambda part: part.sum(), out_placements=[Partial()], in_placements=([Shard(0)],))
        >>> x = DTensor.from_local(tp.ones(2), tp.distributed.init_device_mesh("cpu", (1,)), [Shard(0)])
        >>> total(x).full_tensor()
        tensor(2.)
    """
    if func is None:
        return functools.partial(
            local_map, out_placements=out_placements, in_placements=in_placements,
            in_grad_placements=in_grad_placements, device_mesh=device_mesh, redistribute_inputs=redistribute_inputs,
        )  # fmt: skip

    @functools.wraps(func)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        flat, tree = tree_flatten(args)
        mesh = device_mesh or next((a.device_mesh for a in flat if isinstance(a, DTensor)), None)
        wanted = _several(in_placements, len(flat), "in_placements")
        grads = _several(in_grad_placements, len(flat), "in_grad_placements")
        parts = [_part(*each, redistribute_inputs) for each in zip(flat, wanted, grads, strict=True)]
        outs, out_tree = tree_flatten(func(*tree_unflatten(parts, tree), **kwargs))
        said = out_placements if isinstance(out_placements, tuple) else (out_placements,)
        if mesh is None:
            return tree_unflatten(outs, out_tree)
        made = [
            out if placements is None or not isinstance(out, Tensor) else DTensor.from_local(out, mesh, placements)
            for out, placements in zip(outs, _several(said, len(outs), "out_placements"), strict=True)
        ]
        return tree_unflatten(made, out_tree)

    return mapped
