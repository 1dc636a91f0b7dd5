"""Which modules a program is in, in forward and in backward."""

from __future__ import annotations

from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy.autograd.graph import register_multi_grad_hook
from tensorpy.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from tensorpy.utils._pytree import tree_leaves


def _differentiated(values: Any) -> list[Tensor]:
    """The tensors in arguments or results that a gradient flows to."""
    return [leaf for leaf in tree_leaves(values) if isinstance(leaf, Tensor) and leaf.requires_grad]


class ModuleTracker:
    """In its scope `parents` are the names of the modules that are being called, "Global" among them.

    In a backward pass they are those whose gradients are computed: a module is entered with the first gradient of its
    results, and left with the last one of its arguments, or with the end of the pass.

    Example:
        >>> from tensorpy.utils.module_tracker import ModuleTracker
        >>> with ModuleTracker() as tracker:
        ...     tracker.parents
        {'Global'}
    """

    parents: set[str]

    def __init__(self) -> None:
        self.parents = {"Global"}
        self._known: dict[int, str] = {}
        self._calls: list[str] = []
        self._backward: set[str] = set()
        self._handles: list[Any] = []

    def _name(self, module: Any) -> str:
        """The path of a module in the first one that was called; of that, its class."""
        if id(module) not in self._known:
            root = type(module).__name__
            self._known.update((id(m), f"{root}.{n}" if n else root) for n, m in module.named_modules())
        return self._known[id(module)]

    def _changed(self) -> None:
        self.parents = {"Global", *self._calls, *self._backward}

    def _before(self, module: Any, args: Any) -> None:
        name = self._name(module)
        self._calls.append(name)
        self._changed()
        if tensors := _differentiated(args):
            self._handles.append(register_multi_grad_hook(tensors, lambda grads: self._leave(name)))

    def _after(self, module: Any, args: Any, result: Any) -> None:
        name = self._calls.pop()
        self._changed()
        if tensors := _differentiated(result):
            self._handles.append(register_multi_grad_hook(tensors, lambda grad: self._enter(name), mode="any"))

    def _enter(self, name: str) -> None:
        if not self._backward:
            _C._queue_callback(self._end_backward)
        self._backward.add(name)
        self._changed()

    def _leave(self, name: str) -> None:
        self._backward.discard(name)
        self._changed()

    def _end_backward(self) -> None:
        self._backward.clear()
        self._changed()

    @property
    def is_bw(self) -> bool:
        """Whether a backward pass runs."""
        return bool(_C._current_graph_task_id() != -1)

    def __enter__(self) -> ModuleTracker:
        before = register_module_forward_pre_hook(self._before)
        self._handles = [before, register_module_forward_hook(self._after, always_call=True)]
        return self

    def __exit__(self, *unused: object) -> None:
        for handle in self._handles:
            handle.remove()


__all__ = ["ModuleTracker"]
