"""Methods of Tensor that are written in Python: none of them is on a hot path."""

from __future__ import annotations

from tensorpy import _C
from tensorpy._C import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any


def is_tensor(obj: object) -> bool:
    """Whether obj is a Tensor."""
    return isinstance(obj, Tensor)


def backward(
    self: Tensor,
    gradient: Tensor | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Sequence[Tensor] | Tensor | None = None,
) -> None:
    """Adds the gradient of this tensor with respect to the graph's leaves to their `.grad`.

    `gradient` is the gradient of this tensor itself; it may be left out for one element. `inputs` restricts the leaves.
    """
    if inputs is not None:
        inputs = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
        if not inputs:
            raise RuntimeError("'inputs' argument to backward() cannot be empty.")
    keep = create_graph if retain_graph is None else retain_graph
    _C._run_backward((self,), (gradient,), keep, create_graph, inputs, True)


class RemovableHandle:
    """Takes a hook out again, with remove() or at the end of a `with`."""

    _next = 0

    def __init__(self, hooks: dict[int, Callable[..., Any]], hook: Callable[..., Any]) -> None:
        self.hooks = hooks
        self.id = RemovableHandle._next
        RemovableHandle._next += 1
        hooks[self.id] = hook

    def remove(self) -> None:
        self.hooks.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *unused: object) -> None:
        self.remove()


def register_hook(self: Tensor, hook: Callable[[Tensor], Tensor | None]) -> RemovableHandle:
    """Calls `hook(grad)` when this tensor's gradient has been computed; what it returns, if not None, replaces it."""
    if not self.requires_grad:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    return RemovableHandle(_C._tensor_hooks(self), hook)


def register_post_accumulate_grad_hook(self: Tensor, hook: Callable[[Tensor], None]) -> RemovableHandle:
    """Calls `hook(tensor)` each time backward has added to this leaf's `.grad`."""
    if not self.requires_grad:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    if self.grad_fn is not None:
        raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
    return RemovableHandle(_C._accumulate_hooks(self), hook)


def _node_register_hook(self: Any, hook: Callable[..., Any]) -> RemovableHandle:
    """Calls `hook(grad_inputs, grad_outputs)` after the node has run."""
    return RemovableHandle(self._post_hooks(), hook)


def _node_register_prehook(self: Any, hook: Callable[..., Any]) -> RemovableHandle:
    """Calls `hook(grad_outputs)` before the node runs."""
    return RemovableHandle(self._pre_hooks(), hook)


def _install() -> None:
    for function in (backward, register_hook, register_post_accumulate_grad_hook):
        _C._set_type_attribute(Tensor, function.__name__, function)
    _C._set_type_attribute(_C.Node, "register_hook", _node_register_hook)
    _C._set_type_attribute(_C.Node, "register_prehook", _node_register_prehook)


_install()
