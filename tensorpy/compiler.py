"""torch.compiler's names: there is nothing to compile, so functions are given back and the answers are no."""

from __future__ import annotations

import functools
from contextlib import nullcontext
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy._compile import compile


def is_compiling() -> bool:
    """Whether this is being compiled: never."""
    return False


def is_dynamo_compiling() -> bool:
    """Whether this is being compiled: never."""
    return False


def is_exporting() -> bool:
    """Whether this is being exported: never."""
    return False


class _Nothing(nullcontext[None]):
    """A context and a decorator that change nothing."""

    def __call__(self, fn: Any) -> Any:
        return fn


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """The function itself; without one, a context and decorator that change nothing."""
    return _Nothing() if fn is None else fn


def set_stance(stance: str = "default", **options: Any) -> Any:
    """A context that changes nothing."""
    return _Nothing()


def allow_in_graph(fn: Any) -> Any:
    """The function itself."""
    return fn


def assume_constant_result(fn: Any) -> Any:
    """The function itself."""
    return fn


def substitute_in_graph(original_fn: Any, **options: Any) -> Any:
    """A decorator that gives the function itself."""
    return lambda fn: fn


def cudagraph_mark_step_begin() -> None:
    """Nothing: there are no recorded graphs."""


def reset() -> None:
    """Forgets what was compiled: nothing was."""


def list_backends(exclude_tags: Any = ()) -> list[str]:
    """The compilers there are: none."""
    return []


def _keep_all(guards: Any) -> list[bool]:
    """A filter of what compiled code checks: there is none, so nothing is left out."""
    return [True for _ in guards]


keep_portable_guards_unsafe = keep_tensor_guards_unsafe = skip_all_guards_unsafe = _keep_all
skip_guard_on_all_nn_modules_unsafe = skip_guard_on_globals_unsafe = _keep_all
skip_guard_on_inbuilt_nn_modules_unsafe = _keep_all
_backend = "inductor"


def get_default_backend() -> str:
    """The name that was set: it changes nothing."""
    return _backend


def set_default_backend(backend: Any) -> None:
    """Sets it."""
    global _backend
    _backend = backend


def nested_compile_region(fn: Any = None, **options: Any) -> Any:
    """The function itself."""
    return fn if fn is not None else lambda fn: fn


def wrap_numpy(fn: Any) -> Any:
    """A function of NumPy arrays as one of tensors."""
    from tensorpy.utils._pytree import tree_map

    def array(leaf: Any) -> Any:
        return leaf.detach().numpy() if isinstance(leaf, Tensor) else leaf

    def tensor(leaf: Any) -> Any:
        return _C.as_tensor(leaf) if hasattr(leaf, "__array__") and not isinstance(leaf, Tensor) else leaf

    @functools.wraps(fn)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return tree_map(tensor, fn(*tree_map(array, args), **tree_map(array, kwargs)))

    return wrapped


def save_cache_artifacts() -> None:
    """What was compiled, as bytes: nothing was."""


def load_cache_artifacts(serialized_artifacts: bytes) -> None:
    """Takes it: nothing comes of it."""


__all__ = ["compile"]
