"""Parameters and buffers: tensors that a module takes for its own when they are assigned to it.

What a call gives on a Parameter is a Tensor. A tensor of another subclass stays of that class and is marked instead:
`isinstance` looks at the mark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from tensorpy import _C
from tensorpy._C import Tensor

__all__ = [
    "Buffer",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "UninitializedTensorMixin",
    "is_lazy",
]

if TYPE_CHECKING:
    from typing_extensions import Self


_make_subclass: Any = getattr(Tensor, "_make_subclass")  # noqa: B009


class _ParameterMeta(type(Tensor)):  # type: ignore[misc]
    def __instancecheck__(cls, instance: Any) -> bool:
        if cls is Parameter and isinstance(instance, Tensor) and getattr(instance, "_is_param", False):
            return True
        return type.__instancecheck__(cls, instance)


class _BufferMeta(type(Tensor)):  # type: ignore[misc]
    def __instancecheck__(cls, instance: Any) -> bool:
        if cls is Buffer:
            return isinstance(instance, Tensor) and getattr(instance, "_is_buffer", False)
        return type.__instancecheck__(cls, instance)


class Parameter(Tensor, metaclass=_ParameterMeta):
    """A tensor that is a module's parameter once it is an attribute of the module.

    Arguments:
        data: the data
        requires_grad: whether autograd records what is done with the tensor

    Raises: RuntimeError for an object of a subclass whose detach() does not give its class.

    Example:
        >>> nn.Parameter(tp.ones(2)).requires_grad
        True
    """

    __torch_function__: Any = _C._disabled_torch_function_impl

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Self:
        if data is None:
            data = _C.empty(0)
        if type(data) is Tensor or isinstance(data, Parameter):
            return _make_subclass(cls, data, requires_grad)
        marked = _C._want_gradient(data.detach(), requires_grad)
        if type(marked) is not type(data):
            raise RuntimeError(
                f"Creating a Parameter from an instance of type {type(data).__name__} requires that detach() returns "
                f"an instance of the same type, but return type {type(marked).__name__} was found instead."
            )
        marked._is_param = True
        return marked

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        """The values alone: gradients and attributes stay with the original."""
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.data.clone(), self.requires_grad)
        return memo[id(self)]

    def __repr__(self, **unused: Any) -> str:
        return f"Parameter containing:\n{super().__repr__()}"


class Buffer(Tensor, metaclass=_BufferMeta):
    """`Buffer(data)` marks a tensor that is a module's buffer once it is an attribute of the module.

    Arguments:
        data: the data
        persistent: whether the buffer is part of the state_dict

    Example:
        >>> class Counter(nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.count = nn.Buffer(tp.zeros(1))
        >>> list(Counter().state_dict())
        ['count']
    """

    __torch_function__: Any = _C._disabled_torch_function_impl
    persistent: bool

    def __new__(cls, data: Any = None, *, persistent: bool = True) -> Any:
        data = _C.empty(0) if data is None else data
        marked = _C._want_gradient(data.detach(), data.requires_grad)
        marked.persistent = persistent
        marked._is_buffer = True
        return marked


# ---- tensors whose shape is not known yet ----

_CALL_FIRST = "Call `forward` first: a lazy module gets its shapes from its first input."
# What may be called on a tensor without a shape, by the functions' names; attributes but the shape may all be read.
_ALLOWED = frozenset({
    "__hash__", "_make_subclass", "char", "copy_", "cpu", "cuda", "bfloat16", "detach", "detach_", "double", "float",
    "get_device", "half", "int", "is_complex", "is_floating_point", "long", "requires_grad_", "retain_grad", "short",
    "size", "to", "type", "untyped_storage",
})  # fmt: skip


class UninitializedTensorMixin:
    """A tensor that has a dtype and a device, but no shape before `materialize` gives it one.

    Example:
        >>> issubclass(nn.parameter.UninitializedParameter, nn.parameter.UninitializedTensorMixin)
        True
    """

    cls_to_become: Any

    def materialize(self: Any, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Makes this object a tensor of a shape, without values, and of the class that it stands for."""
        plain = self.data
        made = _C.empty(shape, device=device or plain.device, dtype=dtype or plain.dtype)
        self.data = made
        self.__class__ = self.cls_to_become

    @property
    def shape(self) -> Any:
        """The sizes: an error, there are none yet."""
        raise RuntimeError(f"Can't access the shape of an uninitialized parameter or buffer. {_CALL_FIRST}")

    def share_memory_(self) -> NoReturn:
        """Raises: there is no memory to share yet."""
        raise RuntimeError(f"Can't share memory on an uninitialized parameter or buffer. {_CALL_FIRST}")

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        is_attribute = type(func).__name__ == "method-wrapper"
        if is_attribute or getattr(func, "__name__", "") in _ALLOWED:
            with _C.DisableTorchFunctionSubclass():
                return func(*args, **(kwargs or {}))
        raise ValueError(f"Attempted to use an uninitialized parameter in {func}. {_CALL_FIRST}")

    def __repr__(self, **unused: Any) -> str:
        return f"<{type(self).__name__}>"


def is_lazy(param: Any) -> bool:
    """Whether a parameter or buffer waits for its shape.

    Arguments:
        param: the parameter

    Returns: bool.

    Example:
        >>> nn.parameter.is_lazy(nn.LazyLinear(3).weight)
        True
    """
    return isinstance(param, UninitializedTensorMixin)


def refuse_uninitialized(weight: Any, what: str) -> None:
    """Raises ValueError for a weight without a shape, from which `what` cannot be computed."""
    if is_lazy(weight):
        raise ValueError(f"The module passed to `{what}` can't have uninitialized parameters. {_CALL_FIRST}")


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A parameter whose shape is known at the first call of its module.

    Arguments:
        requires_grad: whether autograd records what is done with the tensor
        device: where the elements are: a device or its name; None takes the default
        dtype: the dtype; None takes the usual one

    Example:
        >>> nn.parameter.is_lazy(nn.parameter.UninitializedParameter())
        True
    """

    cls_to_become = Parameter

    def __new__(cls, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> Any:
        return _make_subclass(cls, _C.empty(0, device=device, dtype=dtype), requires_grad)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.requires_grad, self.data.device, self.data.dtype)
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any) -> Any:
        return UninitializedParameter, (self.requires_grad, self.data.device, self.data.dtype)


class UninitializedBuffer(UninitializedTensorMixin, Tensor):
    """A buffer whose shape is known at the first call of its module.

    Arguments:
        requires_grad: whether autograd records what is done with the tensor
        device: where the elements are: a device or its name; None takes the default
        dtype: the dtype; None takes the usual one
        persistent: whether the buffer is part of the state_dict

    Example:
        >>> nn.parameter.is_lazy(nn.parameter.UninitializedBuffer())
        True
    """

    cls_to_become = Buffer
    persistent: bool

    def __new__(
        cls, requires_grad: bool = False, device: Any = None, dtype: Any = None, persistent: bool = True
    ) -> Any:
        made = _make_subclass(cls, _C.empty(0, device=device, dtype=dtype), requires_grad)
        made.persistent = persistent
        made._is_buffer = True
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.requires_grad, self.data.device, self.data.dtype, self.persistent)
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any) -> Any:
        return UninitializedBuffer, (self.requires_grad, self.data.device, self.data.dtype, self.persistent)
