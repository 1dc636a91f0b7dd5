"""Hooks that see every module: tables that `Module` looks into, and the functions that fill them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tensorpy.utils.hooks import RemovableHandle

if TYPE_CHECKING:
    # What a hook is called with: the module, and what each register_ function says.
    PreHook = Callable[[Any, tuple[Any, ...]], Any] | Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]
    ForwardHook = (
        Callable[[Any, tuple[Any, ...], Any], Any] | Callable[[Any, tuple[Any, ...], dict[str, Any], Any], Any]
    )
    BackwardPreHook = Callable[[Any, Any], Any]
    BackwardHook = Callable[[Any, Any, Any], Any]
    StateHook = Callable[[Any, dict[str, Any], str, dict[str, Any]], Any]
    StatePreHook = Callable[[Any, str, bool], Any]
    LoadPreHook = Callable[[Any, dict[str, Any], str, dict[str, Any], bool, list[str], list[str], list[str]], Any]
    LoadPostHook = Callable[[Any, Any], Any]

forward_pre: dict[int, Any] = OrderedDict()
forward: dict[int, Any] = OrderedDict()
forward_with_kwargs: dict[int, bool] = OrderedDict()
forward_always: dict[int, bool] = OrderedDict()
backward_pre: dict[int, Any] = OrderedDict()
backward: dict[int, Any] = OrderedDict()
buffer_registration: dict[int, Any] = OrderedDict()
module_registration: dict[int, Any] = OrderedDict()
parameter_registration: dict[int, Any] = OrderedDict()
CALLED = (forward_pre, forward, forward_with_kwargs, forward_always, backward_pre, backward)  # by calls of modules
full_backward: bool | None = None  # which kind of backward hooks there are


def _entered(table: dict[int, Any], hook: Callable[..., Any]) -> RemovableHandle:
    handle = RemovableHandle(table)
    table[handle.id] = hook
    return handle


def register_module_forward_pre_hook(hook: PreHook) -> RemovableHandle:
    """Calls `hook(module, args)` before the forward of any module; what it returns replaces the arguments.

    Returns: a handle, whose remove() takes the hook out.

    Example:
        >>> def shown(module, args):
        ...     print(type(module).__name__)
        >>> handle = nn.modules.module.register_module_forward_pre_hook(shown)
        >>> y = nn.ReLU()(tp.ones(2))
        ReLU
        >>> handle.remove()
    """
    return _entered(forward_pre, hook)


def register_module_forward_hook(
    hook: ForwardHook, *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Calls `hook(module, args, output)` after the forward of any module; what it returns replaces the output.

    Arguments:
        hook: the function
        with_kwargs: whether the hook takes the keyword arguments too
        always_call: whether the hook runs even where forward raised

    Returns: a handle, whose remove() takes the hook out.

    Example:
        >>> def shown(module, args, output):
        ...     print(type(module).__name__)
        >>> handle = nn.modules.module.register_module_forward_hook(shown)
        >>> y = nn.ReLU()(tp.ones(2))
        ReLU
        >>> handle.remove()
    """
    handle = RemovableHandle(forward, extra_dict=[forward_with_kwargs, forward_always])
    forward[handle.id] = hook
    if with_kwargs:
        forward_with_kwargs[handle.id] = True
    if always_call:
        forward_always[handle.id] = True
    return handle


def _backward_kind(full: bool) -> None:
    global full_backward
    if full_backward is not None and full_backward != full and backward:
        raise RuntimeError(
            "Cannot use both regular backward hooks and full backward hooks as a global Module hook. Please use only "
            "one of them."
        )
    full_backward = full


def register_module_backward_hook(hook: BackwardHook) -> RemovableHandle:
    """An older form of register_module_full_backward_hook, which sees the gradients of the last operator only.

    Arguments:
        hook: the function

    Returns: a handle, whose remove() takes the hook out.

    Raises: RuntimeError where there are hooks of the full kind.

    Example:
        >>> handle = nn.modules.module.register_module_backward_hook(lambda module, grad_input, grad_output: None)
        >>> handle.remove()
    """
    _backward_kind(False)
    return _entered(backward, hook)


def register_module_full_backward_pre_hook(hook: BackwardPreHook) -> RemovableHandle:
    """Calls `hook(module, grad_output)` when the gradients of any module's outputs are there.

    Returns: a handle, whose remove() takes the hook out.

    Example:
        >>> handle = nn.modules.module.register_module_full_backward_pre_hook(lambda module, grad_output: None)
        >>> handle.remove()
    """
    return _entered(backward_pre, hook)


def register_module_full_backward_hook(hook: BackwardHook) -> RemovableHandle:
    """Calls `hook(module, grad_input, grad_output)` when the gradients of any module's inputs are there.

    Returns: a handle, whose remove() takes the hook out.

    Raises: RuntimeError where there are hooks of the older kind.

    Example:
        >>> handle = nn.modules.module.register_module_full_backward_hook(lambda module, grad_input, grad_output: None)
        >>> handle.remove()
    """
    _backward_kind(True)
    return _entered(backward, hook)


def register_module_buffer_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls `hook(module, name, buffer)` when a buffer is added; what it returns is added instead.

    Returns: a handle, whose remove() takes the hook out.

    Example:
        >>> handle = nn.modules.module.register_module_buffer_registration_hook(lambda module, name, value: None)
        >>> handle.remove()
    """
    return _entered(buffer_registration, hook)


def register_module_module_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls `hook(module, name, submodule)` when a module is added; what it returns is added instead.

    Returns: a handle, whose remove() takes the hook out.

    Example:
        >>> handle = nn.modules.module.register_module_module_registration_hook(lambda module, name, value: None)
        >>> handle.remove()
    """
    return _entered(module_registration, hook)


def register_module_parameter_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls `hook(module, name, parameter)` when a parameter is added; what it returns is added instead.

    Returns: a handle, whose remove() takes the hook out.

    Example:
        >>> handle = nn.modules.module.register_module_parameter_registration_hook(lambda module, name, value: None)
        >>> handle.remove()
    """
    return _entered(parameter_registration, hook)


def called() -> bool:
    """Whether a call of a module has a global hook to call."""
    return bool(forward_pre or forward or backward_pre or backward)


def replaced(table: dict[int, Any], *args: Any) -> Any:
    """The last argument, or what the hooks of a registration made of it."""
    *where, value = args
    for hook in table.values():
        changed = hook(*where, value)
        value = value if changed is None else changed
    return value
