"""Containers: modules and parameters by place or by name. Members are kept under their place or name as text, which is
what state_dict shows."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy.nn.modules.module import Module, _indented
from tensorpy.nn.parameter import Parameter

__all__ = ["Container", "ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]


class Container(Module):
    """An older base of modules that are given by name; Module does the same.

    Example:
        >>> nn.Container(a=nn.ReLU()).a
        ReLU()
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__()
        for name, module in kwargs.items():
            self.add_module(name, module)


def _place(index: Any, length: int) -> int:
    """A place from the start, of one that may count from the end."""
    place = operator.index(index)
    if not -length <= place < length:
        raise IndexError(f"index {place} is out of range")
    return place % length


class _ModuleSequence(Module):
    """Modules under the names "0", "1", ..., which stay without gaps."""

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.isdigit()]

    def _renumber(self, modules: Iterable[Any]) -> None:
        self._modules = {str(i): module for i, module in enumerate(list(modules))}

    def __setitem__(self, idx: int, module: Module) -> None:
        setattr(self, list(self._modules)[_place(idx, len(self))], module)

    def __delitem__(self, idx: Any) -> None:
        names = list(self._modules)
        for name in names[idx] if isinstance(idx, slice) else [names[_place(idx, len(self))]]:
            delattr(self, name)
        self._renumber(self._modules.values())

    def pop(self, key: Any) -> Any:
        """Takes out the module at a place and returns it."""
        module = self[key]  # type: ignore[index]  # pyright: ignore[reportIndexIssue]
        del self[key]
        return module

    def append(self, module: Module) -> Any:
        """Adds a module at the end."""
        self.add_module(str(len(self)), module)
        return self


class Sequential(_ModuleSequence):
    """Modules of which each computes with what the one before returned; given one by one or as an OrderedDict.

    Input and output are those of the first and the last module.

    Raises: TypeError for what is no module.

    Example:
        >>> model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
        >>> model(tp.ones(3, 4)).shape
        tensorpy.Size([3, 2])
    """

    def __init__(self, *args: Module | OrderedDict[str, Module]) -> None:
        super().__init__()
        given: Any = args
        named = args[0].items() if len(args) == 1 and isinstance(args[0], OrderedDict) else None
        for name, module in named or ((str(i), module) for i, module in enumerate(given)):
            self.add_module(name, module)

    def __getitem__(self, idx: Any) -> Any:
        if isinstance(idx, slice):
            return type(self)(OrderedDict(list(self._modules.items())[idx]))
        return next(islice(self._modules.values(), _place(idx, len(self)), None))

    def forward(self, input: Any) -> Any:
        for module in self._modules.values():
            input = module(input)
        return input

    def insert(self, index: int, module: Module) -> Sequential:
        """Puts a module before the one at a place."""
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        if not -len(self) <= index <= len(self):
            raise IndexError(f"Index out of range: {index}")
        modules = list(self._modules.values())
        modules.insert(index if index >= 0 else index + len(self), module)
        self._modules = {str(i): each for i, each in enumerate(modules)}
        return self

    def extend(self, sequential: Iterable[Module]) -> Sequential:
        """Adds modules at the end."""
        for module in list(sequential):
            self.append(module)
        return self

    def __add__(self, other: Any) -> Sequential:
        return Sequential(*self, *self._other(other))

    def __iadd__(self, other: Any) -> Sequential:
        return self.extend(self._other(other))

    def _other(self, other: Any) -> Any:
        if not isinstance(other, Sequential):
            raise ValueError(f"add operator supports only objects of Sequential class, but {type(other)} is given.")
        return other

    def _times(self, other: Any) -> int:
        if not isinstance(other, int):
            raise TypeError(f"unsupported operand type(s) for *: {type(self)} and {type(other)}")
        if other <= 0:
            raise ValueError(f"Non-positive multiplication factor {other} for {type(self)}")
        return other

    def __mul__(self, other: int) -> Sequential:
        return Sequential(*list(self) * self._times(other))

    __rmul__ = __mul__

    def __imul__(self, other: int) -> Sequential:
        return self.extend(list(self) * (self._times(other) - 1))


class ModuleList(_ModuleSequence):
    """A list of modules, whose parameters are found.

    Raises: TypeError for what is no module.

    Example:
        >>> layers = nn.ModuleList([nn.Linear(2, 2) for _ in range(3)])
        >>> len(layers), len(list(layers.parameters()))
        (3, 6)
    """

    def __init__(self, modules: Iterable[Any] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def __getitem__(self, idx: Any) -> Any:
        if isinstance(idx, slice):
            return type(self)(list(self._modules.values())[idx])
        return self._modules[str(_place(idx, len(self)))]

    def insert(self, index: int, module: Module) -> None:
        """Puts a module before the one at a place."""
        modules = list(self._modules.values())
        modules.insert(index, module)
        self._renumber(modules)

    def extend(self, modules: Iterable[Any]) -> ModuleList:
        """Adds modules at the end."""
        if not isinstance(modules, Iterable):
            raise TypeError(f"ModuleList.extend should be called with an iterable, but got {type(modules).__name__}")
        for module in list(modules):
            self.append(module)
        return self

    def __iadd__(self, modules: Iterable[Any]) -> ModuleList:
        return self.extend(modules)

    def __add__(self, other: Iterable[Any]) -> ModuleList:
        return ModuleList(chain(self, other))

    def __repr__(self) -> str:
        """Neighbours that look the same take one line."""
        runs: list[list[Any]] = []  # first place, last place, text
        for i, text in enumerate(map(repr, self)):
            if runs and runs[-1][2] == text:
                runs[-1][1] = i
            else:
                runs.append([i, i, text])
        if not runs:
            return f"{self._get_name()}()"
        lines = [
            f"({first}): {text}" if first == last else f"({first}-{last}): {last - first + 1} x {text}"
            for first, last, text in runs
        ]
        return f"{self._get_name()}(\n  " + "\n  ".join(_indented(line, 2) for line in lines) + "\n)"


class ModuleDict(Module):
    """Modules by name, in the order in which they came.

    Arguments:
        modules: the modules, or a dict of them

    Raises: TypeError for what is no module.

    Example:
        >>> layers = nn.ModuleDict({"a": nn.Linear(2, 3), "b": nn.ReLU()})
        >>> list(layers.keys()), layers["a"](tp.ones(1, 2)).shape
        (['a', 'b'], tensorpy.Size([1, 3]))
    """

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Any:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        _C._module_changed()
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: str) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Takes all modules out."""
        _C._module_changed()
        self._modules.clear()

    def pop(self, key: str) -> Any:
        """Takes a module out and returns it.

        Returns: a module.
        """
        _C._module_changed()
        return self._modules.pop(key)

    def keys(self) -> Any:
        """The names.

        Returns: a view of str.
        """
        return self._modules.keys()

    def items(self) -> Any:
        """The names with their modules.

        Returns: a view of pairs.
        """
        return self._modules.items()

    def values(self) -> Any:
        """The modules.

        Returns: a view of modules.
        """
        return self._modules.values()

    def update(self, modules: Any) -> None:
        """Adds the modules of a mapping, or of pairs of a name and a module."""
        for name, module in _pairs("ModuleDict", modules):
            self[name] = module


def _pairs(owner: str, given: Any) -> list[tuple[Any, Any]]:
    if not isinstance(given, Iterable):
        raise TypeError(
            f"{owner}.update should be called with an iterable of key/value pairs, but got {type(given).__name__}"
        )
    if isinstance(given, (OrderedDict, ModuleDict, ParameterDict, Mapping)):
        return list(given.items())
    pairs = []
    for i, pair in enumerate(given):
        if not isinstance(pair, Iterable):
            raise TypeError(f"{owner} update sequence element #{i} should be Iterable; is {type(pair).__name__}")
        pair = tuple(pair)
        if len(pair) != 2:
            raise ValueError(f"{owner} update sequence element #{i} has length {len(pair)}; 2 is required")
        pairs.append(pair)
    return pairs


def _as_parameter(value: Any) -> Any:
    return Parameter(value) if isinstance(value, Tensor) and not isinstance(value, Parameter) else value


def _line(key: Any, value: Any, kind: str) -> str:
    if not isinstance(value, Tensor):
        return f"  ({key}): Object of type: {type(value).__name__}"
    label = "Parameter" if isinstance(value, Parameter) else "Tensor"
    size = "x".join(map(str, value.shape))
    where = "" if value.device.type == "cpu" else f" ({value.device})"
    return f"  ({key}): {label} containing: [{kind} of size {size}{where}]"


class ParameterList(Module):
    """A list of parameters; tensors become parameters, other values stay what they are.

    Example:
        >>> len(nn.ParameterList([nn.Parameter(tp.ones(2)), tp.zeros(3)]))
        2
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def __getitem__(self, idx: Any) -> Any:
        if isinstance(idx, slice):
            made = type(self)()
            return made.extend([self[i] for i in range(*idx.indices(self._size))])
        return getattr(self, str(_place(idx, self._size)))

    def __setitem__(self, idx: int, param: Any) -> None:
        setattr(self, str(_place(idx, self._size)), _as_parameter(param))

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return iter(self[i] for i in range(self._size))

    def __iadd__(self, parameters: Iterable[Any]) -> ParameterList:
        return self.extend(parameters)

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.isdigit()]

    def append(self, value: Any) -> ParameterList:
        """Adds a value at the end."""
        self._size += 1
        self[self._size - 1] = value
        return self

    def extend(self, values: Iterable[Any]) -> ParameterList:
        """Adds values at the end."""
        if not isinstance(values, Iterable) or isinstance(values, Tensor):
            raise TypeError(f"ParameterList.extend should be called with an iterable, but got {type(values).__name__}")
        for value in list(values):
            self.append(value)
        return self

    def extra_repr(self) -> str:
        return "\n".join(
            _line(i, value, str(value.dtype) if isinstance(value, Tensor) else "") for i, value in enumerate(self)
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("ParameterList should not be called.")


class ParameterDict(Module):
    """Parameters by name, in the order in which they came; tensors become parameters, other values stay.

    Example:
        >>> nn.ParameterDict({"a": nn.Parameter(tp.ones(2))})["a"].requires_grad
        True
    """

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def _key_to_attr(self, key: Any) -> str:
        if not isinstance(key, str):
            raise TypeError(
                f"Index given to ParameterDict cannot be used as a key as it is not a string (type is "
                f"'{type(key).__name__}')."
            )
        return key

    def __getitem__(self, key: str) -> Any:
        return getattr(self, self._key_to_attr(key))

    def __setitem__(self, key: str, value: Any) -> None:
        name = self._key_to_attr(key)
        self._keys[key] = None
        setattr(self, name, _as_parameter(value))

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, self._key_to_attr(key))

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(list(self._keys))

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def copy(self) -> ParameterDict:
        """Another ParameterDict with the same parameters."""
        return ParameterDict(OrderedDict(self.items()))

    def setdefault(self, key: str, default: Any = None) -> Any:
        """The parameter of a name; default is put there where there is none.

        Returns: a parameter, or what stands for one.
        """
        if key not in self:
            self[key] = default
        return self[key]

    def clear(self) -> None:
        """Takes all parameters out."""
        for key in list(self._keys):
            del self[key]

    def pop(self, key: str) -> Any:
        """Takes a parameter out and returns it.

        Returns: a parameter, or what stands for one.
        """
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[str, Any]:
        """Takes the last parameter out and returns its name and itself."""
        key = next(reversed(self._keys))
        return key, self.pop(key)

    def get(self, key: str, default: Any = None) -> Any:
        """The parameter of a name, or default.

        Returns: a parameter, or default.
        """
        return self[key] if key in self else default

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """A ParameterDict with one value under each of the names."""
        return ParameterDict((key, default) for key in keys)

    def keys(self) -> Any:
        """The names.

        Returns: a view of str.
        """
        return self._keys.keys()

    def items(self) -> Any:
        """The names with their parameters.

        Returns: an iterator of pairs.
        """
        return ((key, self[key]) for key in self._keys)

    def values(self) -> Any:
        """The parameters.

        Returns: an iterator of parameters.
        """
        return (self[key] for key in self._keys)

    def update(self, parameters: Any) -> None:
        """Adds the parameters of a mapping, in the order of its names where it promises none, or of pairs."""
        plain = isinstance(parameters, Mapping) and not isinstance(parameters, (OrderedDict, ParameterDict))
        for key, value in sorted(parameters.items()) if plain else _pairs("ParameterDict", parameters):
            self[key] = value

    def extra_repr(self) -> str:
        return "\n".join(
            _line(key, value, value.type() if isinstance(value, Tensor) else "") for key, value in self.items()
        )

    def __call__(self, input: Any) -> Any:
        raise RuntimeError("ParameterDict should not be called.")

    def __or__(self, other: Any) -> ParameterDict:
        made = self.copy()
        made.update(other)
        return made

    def __ror__(self, other: Any) -> ParameterDict:
        made = ParameterDict(other)
        made.update(self)
        return made

    def __ior__(self, other: Any) -> ParameterDict:
        self.update(other)
        return self
