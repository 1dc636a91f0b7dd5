"""func.functionalize: a function without writes, from one that writes.

The layer at the key Functionalize does it (Note [Functional tensors] in csrc/functionalize/functionalize.h): inside the
function tensors are stand-ins. Here are the two ends: arguments become stand-ins, and get what was written to them by
one copy; results become views of arguments, or values.
"""

from __future__ import annotations

import functools
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor

_layer: Any = _C._functionalize


def _map(value: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, dict):
        return {key: _map(item, change) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        items = [_map(item, change) for item in value]
        named = hasattr(value, "_fields") and isinstance(value, tuple)
        return type(value)(*items) if named else type(value)(items)
    return value


def _place(t: Tensor) -> int:
    """The address of the tensor's memory; 0 for a tensor without."""
    if _C._is_wrapper(t) or t.device.type == "meta" or t.numel() == 0:
        return 0
    return t.untyped_storage().data_ptr()


def _gather(value: Any) -> list[Tensor]:
    found: list[Tensor] = []
    _map(value, found.append)
    return found


class _Arguments:
    """Stand-ins for the tensors among the arguments; those that share memory do so here too."""

    def __init__(self, tensors: Iterable[Tensor]) -> None:
        self.made: dict[int, tuple[Tensor, Tensor]] = {}
        self.memories: dict[int, Tensor] = {}
        self.uses = Counter(_place(t) for t in {id(t): t for t in tensors}.values())

    def stand_in(self, t: Tensor) -> Tensor:
        if id(t) not in self.made:
            made = self._make(t)
            _layer.mark(made)
            self.made[id(t)] = (t, made)
        return self.made[id(t)][1]

    def _make(self, t: Tensor) -> Tensor:
        place = _place(t)
        if place == 0 or self.uses[place] == 1:
            return _layer.wrap(t)
        if place not in self.memories:
            whole = t.as_strided((t.untyped_storage().nbytes() // t.itemsize,), (1,), 0)
            self.memories[place] = _layer.wrap(whole)
        memory = self.memories[place]
        if t.dtype != memory.dtype:
            raise RuntimeError("functionalize: two arguments share memory and have different dtypes")
        return memory.as_strided(t.shape, t.stride(), t.storage_offset())

    def write_back(self) -> None:
        """What was written to an argument's memory is copied to it; what was turned is turned."""
        for t, made in self.made.values():
            _layer.write_back(t, made)

    def result(self, value: Any, level: int) -> Any:
        """What the function returns: an argument, a view of one, or a value."""
        if not _layer.is_of(value, level):
            return value
        for t, made in self.made.values():
            if made is value:
                return t
        for t, made in self.made.values():
            view = _layer.as_view(t, made, value)
            if view is not None:
                return view
        return _layer.value(value)


class _Level(threading.local):
    """The level of this thread between enable() and disable(), or that to come: stand-ins may be made before."""

    number, opened = 0, False


_level = _Level()


def to_functional_tensor(t: Tensor, *, mirror_autograd_meta: bool = False) -> Tensor:
    """A stand-in for a tensor, of the level that enable() opens, or has opened."""
    if _level.opened:
        return _layer.wrap(t)
    _level.number = _layer.open(False, _level.number)
    try:
        return _layer.wrap(t)
    finally:
        _layer.close(_level.number)


def enable(*, reapply_views: bool = False) -> None:
    """Has operators of this thread work on stand-ins; without `reapply_views` views are copies."""
    if _level.opened:
        raise RuntimeError("functionalization is enabled already")
    _level.number, _level.opened = _layer.open(not reapply_views, _level.number), True


def disable() -> None:
    """Ends what enable() began."""
    if _level.opened:
        _layer.close(_level.number)
    _level.number, _level.opened = 0, False


def is_functional_tensor(t: Any) -> bool:
    """Whether it is a stand-in."""
    return isinstance(t, Tensor) and _layer.is_of(t, 0)


def from_functional_tensor(t: Tensor) -> Tensor:
    """What a stand-in stands for, with what was written since."""
    if not is_functional_tensor(t):
        raise RuntimeError("_from_functional_tensor() takes a functional tensor")
    return _layer.value(t)


def sync(t: Tensor) -> None:
    """Computes what a stand-in stands for."""
    from_functional_tensor(t)


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> Callable[..., Any]:
    """The function without writes: what it runs are operators that give new tensors, and views.

    Its results are those of `func`. A tensor among its arguments that `func` writes gets its new value by one `copy_`
    at the end. With `remove="mutations_and_views"` views run as the operators that copy.

    Returns: a function of the same arguments.

    Raises: RuntimeError for an unknown remove.

    Example:
        >>> def f(x):
        ...     y = x.clone()
        ...     y.add_(1)
        ...     return y
        >>> tp.func.functionalize(f)(tp.zeros(2))
        tensor([1., 1.])
    """
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(f"functionalize: remove is 'mutations' or 'mutations_and_views', not {remove!r}")

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        arguments = _Arguments(_gather((args, kwargs)))
        level = _layer.open(remove == "mutations_and_views")
        try:
            returned = func(*_map(args, arguments.stand_in), **_map(kwargs, arguments.stand_in))
        finally:
            _layer.close(level)
        arguments.write_back()
        return _map(returned, lambda value: arguments.result(value, level))

    return wrapped
