"""torch.utils.weak: weak references and dictionaries whose keys are compared as objects: tensors may be keys."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

from tensorpy._C import Tensor

WeakRef = weakref.ref


class WeakIdRef(weakref.ref):  # type: ignore[type-arg]
    """A weak reference that is equal to another where both are of one living object.

    Arguments:
        key: the object
        callback: what is called with the reference once the object has gone

    Example:
        >>> from tensorpy.utils.weak import WeakIdRef
        >>> x = tp.ones(2)
        >>> WeakIdRef(x) == WeakIdRef(x), WeakIdRef(x) == WeakIdRef(x.clone())
        (True, False)
    """

    __slots__ = ("_id",)

    def __init__(self, key: Any, callback: Any = None) -> None:
        super().__init__(key, callback)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
        self._id = self._number(key)

    @staticmethod
    def _number(key: Any) -> int:
        return id(key)

    def __hash__(self) -> int:
        return self._id

    def __eq__(self, other: Any) -> bool:
        mine, others = self(), other()
        if mine is None or others is None:  # the number of an object that has gone may be another's by now
            return self is other
        return self._number(mine) == self._number(others)


class _WeakHashRef(WeakIdRef):
    """The same by the objects' hashes."""

    __slots__ = ()

    @staticmethod
    def _number(key: Any) -> int:
        return hash(key)


class WeakIdKeyDictionary(weakref.WeakKeyDictionary[Any, Any]):
    """A dictionary whose entries go with their keys, which are compared as objects.

    Arguments:
        dict: what it begins with
        ref_type: the class of the references to keys

    Example:
        >>> from tensorpy.utils.weak import WeakIdKeyDictionary
        >>> x = tp.ones(2)
        >>> notes = WeakIdKeyDictionary({x: "a note"})
        >>> notes[x], x.clone() in notes
        ('a note', False)
    """

    data: Any
    _remove: Any
    _dirty_len: bool

    def __init__(self, dict: Any = None, ref_type: Any = WeakIdRef) -> None:
        self.ref_type = ref_type
        super().__init__(dict)

    def _pairs(self) -> Iterator[tuple[Any, Any]]:
        """The living keys with their values; none of them goes meanwhile."""
        return iter(list(self.items()))

    def __getitem__(self, key: Any) -> Any:
        return self.data[self.ref_type(key)]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.data[self.ref_type(key, self._remove)] = value

    def __delitem__(self, key: Any) -> None:
        self._dirty_len = True
        del self.data[self.ref_type(key)]

    def __contains__(self, key: Any) -> bool:
        try:
            return self.ref_type(key) in self.data
        except TypeError:  # what has no weak references
            return False

    def get(self, key: Any, default: Any = None) -> Any:
        """The value of a key, or another."""
        return self.data.get(self.ref_type(key), default)

    def pop(self, key: Any, *args: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Takes an entry out, and gives its value."""
        self._dirty_len = True
        return self.data.pop(self.ref_type(key), *args)

    def setdefault(self, key: Any, default: Any = None) -> Any:
        """The value of a key, which is put there if there is none."""
        return self.data.setdefault(self.ref_type(key, self._remove), default)

    def update(self, dict: Any = None, /, **kwargs: Any) -> None:
        """Takes over the entries of another dictionary, or pairs."""
        given = {} if dict is None else dict
        pairs = given.items() if hasattr(given, "items") else type({})(given).items()
        for key, value in (*pairs, *kwargs.items()):
            self[key] = value

    def copy(self) -> WeakIdKeyDictionary:
        """Another dictionary with the same keys and values."""
        return self._like(self._pairs())

    __copy__ = copy

    def __deepcopy__(self, memo: Any) -> WeakIdKeyDictionary:
        return self._like((key, deepcopy(value, memo)) for key, value in self._pairs())

    def _like(self, pairs: Any) -> WeakIdKeyDictionary:
        made = type(self)(ref_type=self.ref_type)
        for key, value in pairs:
            made[key] = value
        return made

    def __or__(self, other: Any) -> Any:
        return self._like((*self._pairs(), *other.items())) if isinstance(other, Mapping) else NotImplemented

    def __ror__(self, other: Any) -> Any:
        return self._like((*other.items(), *self._pairs())) if isinstance(other, Mapping) else NotImplemented

    def __ior__(self, other: Any) -> Any:
        self.update(other)
        return self

    def __eq__(self, other: Any) -> Any:
        if not isinstance(other, Mapping):
            return NotImplemented
        return {id(k): v for k, v in self.items()} == {id(k): v for k, v in other.items()}

    __hash__ = None  # type: ignore[assignment]


WeakTensorKeyDictionary = WeakIdKeyDictionary


class TensorWeakRef:
    """A weak reference to a tensor: called, it gives the tensor, or None once that has gone.

    Arguments:
        tensor: the tensor

    Example:
        >>> from tensorpy.utils.weak import TensorWeakRef
        >>> x = tp.ones(2)
        >>> TensorWeakRef(x)() is x
        True
    """

    def __init__(self, tensor: Tensor) -> None:
        if not isinstance(tensor, Tensor):
            raise AssertionError(f"expected torch.Tensor, got {type(tensor)}.")
        self.ref = weakref.ref(tensor)

    def __call__(self) -> Tensor | None:
        return self.ref()


__all__ = ["TensorWeakRef", "WeakIdKeyDictionary", "WeakIdRef", "WeakTensorKeyDictionary"]
