"""The recorded graph: nodes, their hooks, and what they save."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tensorpy import _C
from tensorpy._C import Node, Tensor


class saved_tensors_hooks:
    """Inside, each tensor that a call saves for backward goes through `pack_hook`, and what that returns is kept in its
    stead; `unpack_hook` makes a tensor of it again when backward needs one. Used to move or to compress saved
    values."""

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> None:
        self.hooks = (pack_hook, unpack_hook)

    def __enter__(self) -> None:
        self.previous = _C._set_saved_hooks(self.hooks)

    def __exit__(self, *unused: Any) -> None:
        _C._set_saved_hooks(self.previous)


class save_on_cpu(saved_tensors_hooks):
    """Inside, what is saved for backward is kept in host memory."""

    def __init__(self, pin_memory: bool = False, device_type: str = "cpu") -> None:
        def pack(t: Tensor) -> tuple[Any, Tensor]:
            return t.device, t.to(device="cpu", copy=t.is_cpu)

        def unpack(packed: tuple[Any, Tensor]) -> Tensor:
            device, t = packed
            return t.to(device=device)

        super().__init__(pack, unpack)


def get_gradient_edge(tensor: Tensor) -> tuple[Node, int]:
    """The node that a tensor's gradient flows into, and which of its inputs."""
    if not tensor.requires_grad:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    if tensor.grad_fn is not None:
        return tensor.grad_fn, tensor.output_nr
    view = tensor.view_as(tensor).grad_fn
    assert view is not None
    node, place = view.next_functions[0]
    assert node is not None
    return node, place


def increment_version(tensor: Tensor | Sequence[Tensor]) -> None:
    """Marks tensors as written, as an in-place operator does: for code that changes their memory in another way."""
    for t in (tensor,) if isinstance(tensor, Tensor) else tensor:
        _C._bump_version(t)


__all__ = ["Node", "get_gradient_edge", "increment_version", "save_on_cpu", "saved_tensors_hooks"]
