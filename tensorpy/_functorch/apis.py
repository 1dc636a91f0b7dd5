"""See tensorpy.func."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorpy._C import Tensor
from tensorpy.func import grad as grad
from tensorpy.func import grad_and_value as grad_and_value
from tensorpy.func import vmap as vmap
from tensorpy.utils._pytree import broadcast_to_leaves, tree_leaves, tree_structure


def chunk_vmap(
    func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", chunks: int = 2
) -> Callable[..., Any]:
    """vmap in as many calls as `chunks` says."""

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        dims = broadcast_to_leaves(in_dims, tree_structure(args)) or ()
        leaves = tree_leaves(args)
        sizes = [v.size(d) for v, d in zip(leaves, dims, strict=False) if d is not None and isinstance(v, Tensor)]
        size = -(-sizes[0] // chunks) if sizes and chunks > 1 else None
        return vmap(func, in_dims, out_dims, randomness, chunk_size=size)(*args, **kwargs)

    return wrapped
