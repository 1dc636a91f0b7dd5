"""allow_mutation_on_saved_tensors: tensors that were saved for backward are copied just before they are written.

A saved tensor stands in the graph as a `Handle`. The context knows which tensor each is of, by its memory, geometry and
version. A mode sees the calls below autograd, and copies what a call is about to write, where a handle is of it; the
copies live as long as their handles, which the graph holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

from tensorpy._C import Tensor
from tensorpy.autograd.grad_mode import no_grad
from tensorpy.utils import _pytree
from tensorpy.utils._python_dispatch import TorchDispatchMode


class Handle:
    """What stands in a graph for a saved tensor."""

    __slots__ = ("__weakref__",)


def _written_memory(t: Tensor) -> tuple[int, int]:
    """The memory of a tensor, and how often it has been written: what a write of it changes for all of its views."""
    return t.untyped_storage()._cdata, t._version


class CopiesOfSaved:
    """What is saved inside of a context, and the copies."""

    def __init__(self) -> None:
        self.cloned: WeakKeyDictionary[Handle, Tensor] = WeakKeyDictionary()
        self.original: WeakKeyDictionary[Handle, Tensor] = WeakKeyDictionary()
        self.tid_to_weakhandle: WeakValueDictionary[Any, Handle] = WeakValueDictionary()
        self.sid_to_tid: dict[tuple[int, int], set[Any]] = {}

    def clear(self) -> None:
        """Forgets all: the graphs that were made inside have no values any more."""
        self.cloned.clear()
        self.original.clear()
        self.tid_to_weakhandle.clear()
        self.sid_to_tid.clear()

    def pack(self, t: Tensor) -> Handle:
        """The handle that stands for a tensor as it is now: one for all that save it."""
        sid = _written_memory(t)
        tid = (*sid, t.storage_offset(), tuple(t.shape), t.stride(), t.dtype, t.is_conj(), t.is_neg())
        handle = self.tid_to_weakhandle.get(tid)
        if handle is None:
            handle = self.tid_to_weakhandle[tid] = Handle()
            self.original[handle] = t
            self.sid_to_tid.setdefault(sid, set()).add(tid)
        return handle

    def unpack(self, handle: Handle) -> Tensor:
        """The tensor as it was when it was saved."""
        for there in (self.cloned, self.original):
            if handle in there:
                return there[handle]
        raise AssertionError(
            "Trying to backward outside of the 'allow_mutation_on_saved_tensors' context in which the graph was "
            "originally recorded."
        )

    def copy_before_write(self, t: Tensor) -> None:
        """Copies all that was saved of a tensor's memory as it is now."""
        for tid in self.sid_to_tid.pop(_written_memory(t), ()):
            handle = self.tid_to_weakhandle.get(tid)
            if handle is not None and handle in self.original:
                with no_grad():
                    self.cloned[handle] = self.original.pop(handle).clone()


class CopiesWhatIsWritten(TorchDispatchMode):
    """Sees the calls of a context and tells it what they write."""

    def __init__(self, copies: CopiesOfSaved) -> None:
        super().__init__()
        self.copies = copies

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        for t in _written(func, args, kwargs or {}):
            self.copies.copy_before_write(t)
        return func(*args, **(kwargs or {}))


def _written(func: Any, args: Any, kwargs: Any) -> Iterator[Tensor]:
    """The tensors that a call writes, by the operator's schema."""
    for i, argument in enumerate(func._schema.arguments):
        if argument.is_write:
            value = args[i] if i < len(args) else kwargs.get(argument.name)
            yield from (t for t in _pytree.tree_leaves(value) if isinstance(t, Tensor))
