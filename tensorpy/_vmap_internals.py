"""vmap under the names that it had before torch.func: `_vmap`, and `vmap`, which says where it is now."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

from tensorpy.func.vmap import vmap as _new_vmap

in_dims_t = int | tuple[Any, ...]
out_dims_t = int | tuple[int, ...]


def _vmap(
    func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, allow_none_pass_through: bool = False
) -> Callable[..., Any]:
    """torch.func.vmap. With `allow_none_pass_through` a result of None stays None."""
    if not allow_none_pass_through:
        return _new_vmap(func, in_dims, out_dims)

    @functools.wraps(func)
    def mapped(*args: Any) -> Any:
        single, nones = [True], [0]

        def without_none(*given: Any) -> Any:
            results = func(*given)
            single[0] = not isinstance(results, (tuple, list))
            listed = (results,) if single[0] else tuple(results)
            nones[:] = [place for place, r in enumerate(listed) if r is None]
            return tuple(r for r in listed if r is not None)

        dims = out_dims if isinstance(out_dims, int) else out_dims[0]
        found = list(_new_vmap(without_none, in_dims, dims)(*args))
        for place in nones:
            found.insert(place, None)
        return found[0] if single[0] else tuple(found)

    return mapped


def vmap(func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0) -> Callable[..., Any]:
    """torch.func.vmap, with a warning."""
    warnings.warn("Please use `torch.vmap` instead of `torch._vmap_internals.vmap`.", FutureWarning, stacklevel=2)
    return _vmap(func, in_dims, out_dims)
