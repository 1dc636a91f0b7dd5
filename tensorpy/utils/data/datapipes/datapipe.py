"""The bases of pipes: datasets that are iterated or indexed, with the registered pipes as methods."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

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
            return functools.partial(type(self).functions[name], self)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

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

    def __repr__(self) -> str:
        return type(self).__qualname__


class IterDataPipe(_Functional, IterableDataset[T_co]):
    """A pipe of samples one after the other: a subclass has `__iter__`.

    Example:
        >>> issubclass(tp.utils.data.IterDataPipe, tp.utils.data.Dataset)
        True
    """

    functions: ClassVar[dict[str, Callable[..., Any]]] = {}
    _registering = "tensorpy.utils.data.datapipes.iter"

    def reset(self) -> None:
        """Goes back to the beginning, where a pipe keeps where it is: iterating begins there anyway."""


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
