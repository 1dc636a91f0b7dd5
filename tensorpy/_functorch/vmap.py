"""See tensorpy.func.vmap; and vmap without an end: what is mapped comes out with the dimension of its batch."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy.func.vmap import level
from tensorpy.func.vmap import vmap as vmap
from tensorpy.utils._pytree import broadcast_to_leaves, tree_flatten, tree_unflatten


def restore_vmap(func: Callable[..., Any], in_dims: Any, batch_size: int, randomness: str) -> Callable[..., Any]:
    """The function that gives what func gives for each sample, and the tree of dimensions with the batches, where None
    is a value that no sample changes."""

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        values, spec = tree_flatten(args)
        dims = broadcast_to_leaves(in_dims, spec)
        if dims is None:
            raise ValueError(f"restore_vmap: in_dims {in_dims} does not fit the arguments {spec}")
        with level(batch_size, randomness) as number:
            given = [v if d is None else _C._vmap_add(v, d, number) for v, d in zip(values, dims, strict=True)]
            outputs, out_spec = tree_flatten(func(*tree_unflatten(given, spec), **kwargs))
            mapped = [isinstance(o, Tensor) and _C._batch_number(o) == number for o in outputs]
            outputs = [_C._vmap_remove(o, number, batch_size) if m else o for o, m in zip(outputs, mapped, strict=True)]
        return tree_unflatten(outputs, out_spec), tree_unflatten([0 if m else None for m in mapped], out_spec)

    return wrapped
