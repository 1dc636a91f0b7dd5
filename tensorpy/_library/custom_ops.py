"""custom_op: an operator of a function and its annotations; triton_op and opencl_op are kinds of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, overload

from tensorpy import _C
from tensorpy._library.effects import EffectType, register_effect
from tensorpy._library.function_schema import FunctionSchema, parse_schema
from tensorpy._library.infer_schema import infer_schema
from tensorpy._library.registering import (
    register_autocast,
    register_autograd,
    register_fake,
    register_torch_dispatch,
    register_vmap,
)
from tensorpy._library.registration import (
    COMPOSITE,
    Registration,
    add_kernel,
    backend_key,
    declare,
    definitions,
    keys_of,
    names_of_tags,
    registered,
    where_called,
)
from tensorpy._library.rules import ByDevice, giving_new, giving_written
from tensorpy._library.tags import Tag
from tensorpy.autograd.grad_mode import no_grad


class CustomOpDef:
    """An operator that a decorated function became: call it, and register more for it.

    Arguments:
        name: the operator's name with its namespace: 'mine::op'
        schema: the schema; None makes one of the annotations
        fn: the function
        device_types: one or several types of device; None for all
        where: the names of arguments, and what is done with them
        tags: tags of the operator

    Example:
        >>> @tp.library.custom_op("help_CustomOpDef::triple", mutates_args=())
        ... def triple(x: tp.Tensor) -> tp.Tensor:
        ...     return x * 3
        >>> triple(tp.ones(2))
        tensor([3., 3.])
    """

    __name__: Any
    __wrapped__: Callable[..., Any]

    def __init__(
        self,
        name: str,
        schema: str,
        fn: Callable[..., Any],
        device_types: Any,
        where: str,
        tags: tuple[str, ...] = (Tag.pt2_compliant_tag.value,),
    ) -> None:
        self._qualname = declare(f"{name}{schema}", where, True, tags, opaque=True)
        self._namespace, _, self._name = self._qualname.partition("::")
        self._op = self._opoverload = _C._op_overload(self._qualname)
        self._schema: FunctionSchema = self._op._schema
        self._init_fn = fn
        self.__name__, self.__doc__, self.__wrapped__ = fn.__name__, fn.__doc__, fn
        self._by_device: ByDevice | None = None
        definitions[self._qualname] = self
        self._register(device_types, fn)

    def _checked(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        checked = giving_written if {"inplace", "out"} & set(self._op.tags) else giving_new
        # Without a graph, whatever the arguments: `numpy()` of one that requires grad works in a kernel.
        return checked(self._qualname, self._schema, no_grad()(fn))

    def _register(self, device_types: Any, fn: Callable[..., Any]) -> None:
        """For tensors on devices of these types, or, where the operator takes no tensors, for its argument `device`."""
        fn = self._checked(fn)
        to_all = device_types in (None, "default")
        if any("Tensor" in a.type for a in self._schema.arguments) or (to_all and self._by_device is None):
            for key in keys_of(device_types):
                add_kernel(self, key, fn, None)
            return
        if self._by_device is None:
            self._by_device = ByDevice(self._qualname, self._schema)
            there = registered.get((self._qualname, COMPOSITE))
            self._by_device.default = None if there is None else there.fn
            add_kernel(self, COMPOSITE, self._by_device, None)
        if to_all:
            self._by_device.default = fn
            return
        for kind in [device_types] if isinstance(device_types, str) else device_types:
            self._by_device.kernels[_C.device(kind).type] = fn

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._op(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    def register_kernel(self, device_types: Any, fn: Callable[..., Any] | None = None, /) -> Any:
        """A kernel for device types: see library.register_kernel.

        Returns: the function, or without one a decorator.
        """

        def register(given: Callable[..., Any]) -> Callable[..., Any]:
            self._register(device_types, given)
            return given

        return register if fn is None else register(fn)

    @contextmanager
    def set_kernel_enabled(self, device_type: str, enabled: bool = True) -> Iterator[None]:
        """A scope in which the kernel for a device type is there or not: without it the function runs that the operator
        was made of."""
        key = backend_key(device_type)
        there = registered.get((self._qualname, key or ""))
        if there is None or enabled:
            yield
            return
        instead = Registration(self._qualname, there.key, self._checked(self._init_fn), False, there.where)
        try:
            yield
        finally:
            instead.remove()

    def register_fake(self, fn: Callable[..., Any], /) -> Any:
        """What the operator does on Meta: see library.register_fake.

        Returns: the function.
        """
        return register_fake(self, fn)

    def register_autograd(
        self, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None
    ) -> None:
        """The operator's gradient: see library.register_autograd."""
        register_autograd(self, backward, setup_context=setup_context)

    def register_torch_dispatch(self, torch_dispatch_class: type, fn: Callable[..., Any] | None = None, /) -> Any:
        """What the operator does for a class of tensors or a mode: see library.register_torch_dispatch.

        Returns: the function, or without one a decorator.
        """
        return register_torch_dispatch(self, torch_dispatch_class, fn)

    def register_vmap(self, func: Callable[..., Any] | None = None, /) -> Any:
        """How the operator is computed for a batch: see library.register_vmap.

        Returns: the function, or without one a decorator.
        """
        return register_vmap(self, func)

    def register_effect(self, effect: EffectType | None) -> None:
        """That the operator does more than its schema says: see library.EffectType; None takes it back."""
        register_effect(self._qualname, effect)

    def register_autocast(self, device_type: str, cast_inputs: Any) -> None:
        """What autocast does to its arguments: see library.register_autocast."""
        register_autocast(self, device_type, cast_inputs)


@overload
def custom_op(
    name: str,
    fn: Callable[..., Any],
    /,
    *,
    mutates_args: str | Iterable[str],
    device_types: str | Sequence[str] | None = None,
    schema: str | None = None,
    tags: str | Iterable[str] | None = None,
) -> CustomOpDef: ...
@overload
def custom_op(
    name: str,
    fn: None = None,
    /,
    *,
    mutates_args: str | Iterable[str],
    device_types: str | Sequence[str] | None = None,
    schema: str | None = None,
    tags: str | Iterable[str] | None = None,
) -> Callable[[Callable[..., Any]], CustomOpDef]: ...
def custom_op(
    name: str,
    fn: Callable[..., Any] | None = None,
    /,
    *,
    mutates_args: str | Iterable[str],
    device_types: str | Sequence[str] | None = None,
    schema: str | None = None,
    tags: str | Iterable[str] | None = None,
) -> Any:
    """Makes an operator of a function: its schema follows from the annotations, or is given: "(Tensor x) -> Tensor".

    `mutates_args` names the arguments that it writes; `device_types` what the function is for (None: all); `tags` are
    tensorpy.Tag's, or their names, beside pt2_compliant_tag, which such an operator has. Its results are new tensors.

    Arguments:
        name: the operator's name with its namespace: 'mine::op'
        fn: the function
        mutates_args: the arguments that are written: () for none
        device_types: one or several types of device; None for all
        schema: the schema; None makes one of the annotations
        tags: tags of the operator

    Returns: an operator, or without a function a decorator.

    Raises: ValueError for a name without a namespace, or annotations that are no schema.

    Example:
        >>> @tp.library.custom_op("help_custom_op::triple", mutates_args=())
        ... def triple(x: tp.Tensor) -> tp.Tensor:
        ...     return x * 3
        >>> triple(tp.ones(2))
        tensor([3., 3.])
    """
    if "::" not in name:
        raise ValueError(f"custom_op: the name is 'namespace::name', not {name!r}")
    where = where_called()
    marks = names_of_tags([Tag.pt2_compliant_tag, *names_of_tags(tags or ())])

    def make(function: Callable[..., Any]) -> CustomOpDef:
        text = schema if schema is not None else infer_schema(function, mutates_args=mutates_args, tags=marks)
        if schema is not None and mutates_args != "unknown":
            written = {a.name for a in parse_schema(f"{name}{schema.strip()}").arguments if a.is_write}
            said = set(mutates_args)
            if written != said:
                raise ValueError(
                    f"custom_op: mutates_args of {name} names {said or '{}'}, and its schema says that "
                    f"the op mutates {written or '{}'}"
                )
        return CustomOpDef(name, text.strip(), function, device_types, where, marks)

    return make if fn is None else make(fn)


def triton_op(
    name: str,
    fn: Callable[..., Any] | None = None,
    /,
    *,
    mutates_args: str | Iterable[str],
    schema: str | None = None,
) -> Any:
    """custom_op by the name that programs with kernels of triton call it; `name`, `fn`, `mutates_args` and `schema`
    are those of custom_op.

    Returns: an operator, or without a function a decorator.

    Example:
        >>> @tp.library.triton_op("help_triton::triple", mutates_args=())
        ... def triple(x: tp.Tensor) -> tp.Tensor:
        ...     return x * 3
        >>> triple(tp.ones(2))
        tensor([3., 3.])
    """
    made: Any = custom_op  # either of its forms
    return made(name, fn, mutates_args=mutates_args, schema=schema)


@overload
def opencl_op(
    name: str, fn: Callable[..., Any], /, *, mutates_args: str | Iterable[str], schema: str | None = None
) -> CustomOpDef: ...
@overload
def opencl_op(
    name: str, fn: None = None, /, *, mutates_args: str | Iterable[str], schema: str | None = None
) -> Callable[[Callable[..., Any]], CustomOpDef]: ...
def opencl_op(
    name: str, fn: Callable[..., Any] | None = None, /, *, mutates_args: str | Iterable[str], schema: str | None = None
) -> Any:
    """Makes an operator for OpenCL of a function that runs OpenCLKernels: custom_op with device_types="opencl".

    Other devices get theirs by register_kernel. `name`, `fn`, `mutates_args` and `schema` are those of custom_op.

    Returns: an operator, or without a function a decorator.

    Example:
        >>> @tp.library.opencl_op("help_opencl::triple", mutates_args=())
        ... def triple(x: tp.Tensor) -> tp.Tensor:
        ...     return x * 3
        >>> if tp.opencl.is_available():
        ...     y = triple(tp.ones(2, device="opencl"))
    """
    made: Any = custom_op  # either of its forms
    return made(name, fn, mutates_args=mutates_args, device_types="opencl", schema=schema)
