"""The recorded graph: nodes, their hooks, and what they save."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple

from tensorpy import _C
from tensorpy._C import Node, Tensor
from tensorpy.utils.hooks import RemovableHandle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tensorpy.autograd.mutation import CopiesOfSaved


class _Refused(threading.local):
    """What a thread may not do: `why` is what disable_saved_tensors_hooks says."""

    why: str | None = None
    copies = False  # inside allow_mutation_on_saved_tensors


_refused = _Refused()


def _innermost_hooks() -> Any:
    """The thread's hooks of saved tensors, (pack, unpack, the outer ones); None without any."""
    found = _C._set_saved_hooks(None)
    _C._set_saved_hooks(found)
    return found


class saved_tensors_hooks:
    """Inside, each tensor that a call saves for backward goes through `pack_hook`, and what that returns is kept in its
    stead; `unpack_hook` makes a tensor of it again when backward needs one. Used to move or to compress saved
    values.

    Example:
        >>> x = tp.tensor([2.0], requires_grad=True)
        >>> with tp.autograd.graph.saved_tensors_hooks(lambda t: t.half(), lambda t: t.float()):
        ...     y = x**2
        >>> y.backward()
        >>> x.grad
        tensor([4.])
    """

    hooks: Any
    _keeps_values = False  # whether backward gets the values that were saved: a graph needs no hooks then

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> None:
        self.hooks = (pack_hook, unpack_hook)

    def __enter__(self) -> None:
        if _refused.why is not None:
            raise RuntimeError(_refused.why)
        if not self._keeps_values:
            _C._tracer.happens("tensors are saved by hooks")
        _C._push_saved_hooks(*self.hooks)

    def __exit__(self, *unused: Any) -> None:
        _C._pop_saved_hooks()


class save_on_cpu(saved_tensors_hooks):
    """Inside, what is saved for backward is kept in host memory.

    Arguments:
        pin_memory: whether the CPU's memory is pinned for copies to a device
        device_type: the type of device: 'cpu', 'opencl', ...

    Example:
        >>> x = tp.tensor([2.0], requires_grad=True)
        >>> with tp.autograd.graph.save_on_cpu():
        ...     y = x**2
        >>> y.backward()
        >>> x.grad
        tensor([4.])
    """

    _keeps_values = True

    def __init__(self, pin_memory: bool = False, device_type: str = "cpu") -> None:
        def pack(t: Tensor) -> tuple[Any, Tensor]:
            return t.device, t.to(device="cpu", copy=t.is_cpu)

        def unpack(packed: tuple[Any, Tensor]) -> Tensor:
            device, t = packed
            return t.to(device=device)

        super().__init__(pack, unpack)


@contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """Inside, to enter saved_tensors_hooks is an error with this message.

    Arguments:
        error_message: the error's message

    Returns: a context manager.

    Example:
        >>> with tp.autograd.graph.disable_saved_tensors_hooks("not here"):
        ...     pass
    """
    before = _refused.why
    _refused.why = error_message
    try:
        yield
    finally:
        _refused.why = before


@contextmanager
def allow_mutation_on_saved_tensors() -> Iterator[CopiesOfSaved]:
    """Inside, tensors that were saved for backward may be written: they are copied before. Backward runs inside, too.

    Returns: a context manager.

    Raises: RuntimeError inside of another one.

    Example:
        >>> x = tp.tensor([2.0], requires_grad=True)
        >>> with tp.autograd.graph.allow_mutation_on_saved_tensors():
        ...     y = x.clone()
        ...     z = y**2
        ...     y.zero_()
        ...     z.backward()
        tensor([0.], grad_fn=<ZeroBackward0>)
        >>> x.grad
        tensor([4.])
    """

    from tensorpy.autograd.mutation import CopiesOfSaved, CopiesWhatIsWritten

    if _refused.copies:
        raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
    copies = CopiesOfSaved()
    _refused.copies = True
    try:
        with CopiesWhatIsWritten(copies), saved_tensors_hooks(copies.pack, copies.unpack):
            yield copies
    finally:
        copies.clear()
        _refused.copies = False


class SavedTensor:
    """A value that a node has saved, `y.grad_fn._raw_saved_self`: it takes hooks, which then stand between."""

    _where: tuple[Node, int, int]

    def __init__(self) -> None:
        raise RuntimeError(
            "Trying to create a SavedTensor object from Python is forbidden: a node's _raw_saved_... are some"
        )

    @classmethod
    def _of(cls, node: Node, place: int, index: int = 0) -> SavedTensor:
        self = cls.__new__(cls)
        self._where = node, place, index
        return self

    def register_hooks(self, *hooks: Any) -> None:
        """Saves what pack_hook, the first, makes of the value in its place; unpack_hook gives it back for backward."""
        if len(hooks) != 2 or not all(map(callable, hooks)):
            raise TypeError(
                f"register_hooks(): incompatible function arguments: pack_hook and unpack_hook, not {hooks!r}"
            )
        _C._hook_saved(*self._where, hooks)


def _raw_saved(node: Node, place: int, count: int) -> Any:
    """The SavedTensor at a place of a node, or of a list of values a tuple of them."""
    return SavedTensor._of(node, place) if count < 0 else tuple(SavedTensor._of(node, place, i) for i in range(count))


class _InputMetadata(NamedTuple):
    """What the gradient of an output of a node's call has to look like."""

    shape: tuple[int, ...]
    dtype: _C.dtype
    device: _C.device


class GradientEdge(NamedTuple):
    """Where a gradient flows: into which input of a node.

    Arguments:
        output_nr: which result of the node it is
        ownership_token: is taken, and keeps the node alive

    Example:
        >>> y = tp.tensor([2.0], requires_grad=True) * 3
        >>> edge = tp.autograd.graph.get_gradient_edge(y)
        >>> edge.node.name(), edge.output_nr
        ('MulBackward0', 0)
    """

    node: Node
    output_nr: int
    ownership_token: Node | None = None


class _MultiHandle(RemovableHandle):
    """Takes out the hooks of several tensors at once."""

    def __init__(self, handles: Sequence[RemovableHandle]) -> None:
        super().__init__({})
        self.handles = tuple(handles)

    def remove(self) -> None:
        for handle in self.handles:
            handle.remove()


def register_multi_grad_hook(
    tensors: Sequence[Tensor], fn: Callable[..., Any], *, mode: Literal["all", "any"] = "all"
) -> RemovableHandle:
    """Calls `fn(grads)` once a backward has computed all gradients of these tensors that it will compute, with None for
    the others, or with the mode "any" `fn(grad)` when it has computed the first one.

    Returns: a handle, whose remove() takes the hook out.

    Raises: ValueError for an unknown mode.

    Example:
        >>> a, b = tp.ones(1, requires_grad=True), tp.ones(1, requires_grad=True)
        >>> handle = tp.autograd.graph.register_multi_grad_hook((a, b), lambda grads: print(len(grads)))
        >>> (a * b).backward()
        2
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    lock = threading.Lock()
    nodes = [get_gradient_edge(t).node for t in tensors]
    under_way: dict[int, list[Any]] = {}  # by backward: the gradients so far, and how many are to come

    def tell(place: int) -> Callable[[Tensor], None]:
        def hook(grad: Tensor) -> None:
            task = _C._current_graph_task_id()
            with lock:
                if first := task not in under_way:
                    under_way[task] = [[None] * len(nodes), sum(map(_C._will_engine_execute_node, nodes))]
                found = under_way[task]
                found[0][place] = grad
                found[1] -= 1
                if complete := found[1] == 0:
                    del under_way[task]
            if mode == "any" and first:
                fn(grad)
            elif mode == "all" and complete:
                fn(found[0])

        return hook

    return _MultiHandle([t.register_hook(tell(i)) for i, t in enumerate(tensors)])


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """The node that a tensor's gradient flows into, and which of its inputs.

    Returns: a named tuple (node, output_nr, ownership_token).

    Raises: RuntimeError for a tensor that requires no gradient.

    Example:
        >>> y = tp.tensor([2.0], requires_grad=True) * 3
        >>> edge = tp.autograd.graph.get_gradient_edge(y)
        >>> edge.node.name(), edge.output_nr
        ('MulBackward0', 0)
    """
    if not tensor.requires_grad:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    if tensor.grad_fn is not None:
        return GradientEdge(tensor.grad_fn, tensor.output_nr)
    view = tensor.view_as(tensor).grad_fn
    assert view is not None
    node, place = view.next_functions[0]
    assert node is not None
    return GradientEdge(node, place, view)


def increment_version(tensor: Tensor | Sequence[Tensor]) -> None:
    """Marks tensors as written, as an in-place operator does: for code that changes their memory in another way.

    Arguments:
        tensor: the tensor

    Example:
        >>> x = tp.ones(2)
        >>> tp.autograd.graph.increment_version(x)
        >>> x._version
        1
    """
    for t in (tensor,) if isinstance(tensor, Tensor) else tensor:
        _C._bump_version(t)


__all__ = [
    "GradientEdge", "Node", "allow_mutation_on_saved_tensors", "disable_saved_tensors_hooks", "get_gradient_edge",
    "increment_version", "register_multi_grad_hook", "save_on_cpu", "saved_tensors_hooks",
]  # fmt: skip
