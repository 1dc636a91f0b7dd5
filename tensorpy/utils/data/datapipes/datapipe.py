"""The bases of pipes: datasets that are iterated or indexed, with the registered pipes as methods."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from tensorpy.utils.data.datapipes._hook_iterator import _SnapshotState, of_one_iterator
from tensorpy.utils.data.dataset import Dataset, IterableDataset, T_co

__all__ = ["DFIterDataPipe", "DataChunk", "IterDataPipe", "MapDataPipe", "functional_datapipe"]


class _Functional:
    """Methods by registration: `pipe.name(...)` is `Registered(pipe, ...)`."""

    functions: ClassVar[dict[str, Callable[..., Any]]]
    _registering: ClassVar[str]  # the module whose pipes are methods from the start

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_"):
            importlib.import_module(self._registering)
        if name in type(self).functions:
            made = type(self).functions[name]
            method = functools.partial(made, self)
            functools.update_wrapper(method, made, ("__doc__", "__name__", "__qualname__", "__module__"), ())
            return method
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __dir__(self) -> list[str]:
        importlib.import_module(self._registering)
        return sorted({*super().__dir__(), *self.functions})

    @classmethod
    def register_datapipe_as_function(cls, function_name: str, cls_to_register: Any, **options: Any) -> None:
        """Makes a class of pipes a method."""
        if function_name in cls.functions:
            raise Exception(f"Unable to add DataPipe function name {function_name} as it is already taken")
        cls.functions[function_name] = cls_to_register

    @classmethod
    def register_function(cls, function_name: str, function: Callable[..., Any]) -> None:
        """Makes a function, whose first argument is the pipe, a method."""
        cls.functions[function_name] = function

    getstate_hook: ClassVar[Callable[[Any], Any] | None] = None
    reduce_ex_hook: ClassVar[Callable[[Any], Any] | None] = None
    str_hook: ClassVar[Callable[[Any], str] | None] = None
    repr_hook: ClassVar[Callable[[Any], str] | None] = None
    _transient: ClassVar[tuple[str, ...]] = ()  # attributes that are not pickled

    @classmethod
    def set_getstate_hook(cls, hook_fn: Callable[[Any], Any] | None) -> None:
        """Sets what makes the state that is pickled of a pipe's attributes; one at a time."""
        if cls.getstate_hook is not None and hook_fn is not None:
            raise RuntimeError("Attempt to override existing getstate_hook")
        cls.getstate_hook = hook_fn

    @classmethod
    def set_reduce_ex_hook(cls, hook_fn: Callable[[Any], Any] | None) -> None:
        """Sets what pickles a pipe, unless it raises NotImplementedError; one at a time."""
        if cls.reduce_ex_hook is not None and hook_fn is not None:
            raise RuntimeError("Attempt to override existing reduce_ex_hook")
        cls.reduce_ex_hook = hook_fn

    def __getstate__(self) -> Any:
        state = {name: value for name, value in vars(self).items() if name not in self._transient}
        hook = type(self).getstate_hook
        return state if hook is None else hook(state)

    def __reduce_ex__(self, protocol: Any) -> Any:
        hook = type(self).reduce_ex_hook
        if hook is not None:
            try:
                return hook(self)
            except NotImplementedError:
                pass
        return super().__reduce_ex__(protocol)

    def __repr__(self) -> str:
        hook = type(self).repr_hook
        return type(self).__qualname__ if hook is None else hook(self)

    def __str__(self) -> str:
        hook = type(self).str_hook
        return type(self).__qualname__ if hook is None else hook(self)


class IterDataPipe(_Functional, IterableDataset[T_co]):
    """A pipe of samples one after the other: a subclass has `__iter__`.

    Example:
        >>> issubclass(tp.utils.data.IterDataPipe, tp.utils.data.Dataset)
        True
    """

    functions: ClassVar[dict[str, Callable[..., Any]]] = {}
    _registering = "tensorpy.utils.data.datapipes.iter"
    _transient: ClassVar[tuple[str, ...]] = ("_fast_forward_iterator", "_snapshot_state")
    _valid_iterator_id: int | None = None
    _number_of_samples_yielded = 0
    _snapshot_state = _SnapshotState.NotStarted
    _fast_forward_iterator: Any = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "__iter__" in cls.__dict__:
            setattr(cls, "__iter__", of_one_iterator(cls.__dict__["__iter__"]))  # noqa: B010 (checkers know the class's own)

    def reset(self) -> None:
        """Goes back to the beginning, where a pipe keeps where it is. It is called whenever an iterator begins."""

    def _begin(self) -> int:
        """Makes a new iterator the only one, and gives its number; what was restored goes on where it is."""
        self._valid_iterator_id = 0 if self._valid_iterator_id is None else self._valid_iterator_id + 1
        self._restart()
        return self._valid_iterator_id

    def _restart(self) -> None:
        if self._snapshot_state is not _SnapshotState.Restored:
            self._number_of_samples_yielded = 0
            self.reset()
        self._snapshot_state = _SnapshotState.Iterating

    def _is_read_by(self, number: int) -> bool:
        """Whether the iterator of this number is the last one that began."""
        return self._valid_iterator_id == number


class DFIterDataPipe(IterDataPipe[Any]):
    """A pipe of frames of columns.

    Example:
        >>> issubclass(tp.utils.data.DFIterDataPipe, tp.utils.data.IterDataPipe)
        True
    """


class MapDataPipe(_Functional, Dataset[T_co]):
    """A pipe of samples by index: a subclass has `__getitem__` and mostly `__len__`.

    Example:
        >>> issubclass(tp.utils.data.MapDataPipe, tp.utils.data.Dataset)
        True
    """

    functions: ClassVar[dict[str, Callable[..., Any]]] = {}
    _registering = "tensorpy.utils.data.datapipes.map"
    __len__: Callable[[], int]

    def __iter__(self) -> Iterator[Any]:
        length: int = self.__len__()
        return (self[i] for i in range(length))


class DataChunk(list):  # type: ignore[type-arg]
    """A batch of samples, as a list.

    Arguments:
        items: the items

    Example:
        >>> list(tp.utils.data.DataChunk([1, 2]))
        [1, 2]
    """

    def __init__(self, items: Any) -> None:
        items = list(items)
        super().__init__(items)
        self.items = items

    def as_str(self, indent: str = "") -> str:
        """The samples as a text."""
        return indent + "[" + ", ".join(str(item) for item in self) + "]"

    def raw_iterator(self) -> Iterator[Any]:
        """The samples."""
        yield from self.items


def functional_datapipe(name: str, enable_df_api_tracing: bool = False) -> Callable[[Any], Any]:
    """A decorator: the class of pipes becomes the method `name` of pipes of its kind.

    Arguments:
        name: the name
        enable_df_api_tracing: is taken, and changes nothing here

    Returns: a decorator.

    Example:
        >>> @tp.utils.data.functional_datapipe("mine")  # doctest: +SKIP
        ... class Pipe(tp.utils.data.IterDataPipe): ...
    """

    def decorator(cls: Any) -> Any:
        for base in (IterDataPipe, MapDataPipe):
            if isinstance(cls, type) and issubclass(cls, base):
                base.register_datapipe_as_function(name, cls)
                return cls
        raise TypeError("`functional_datapipe` can only decorate IterDataPipe or MapDataPipe")

    return decorator
