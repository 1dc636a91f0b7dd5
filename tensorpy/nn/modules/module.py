"""Module: what every layer and network is made of.

A module owns its parameters, buffers and modules in three dictionaries; attributes of these kinds go there and are
found there by `__getattr__`. The rest of the file walks that tree: names, dtypes and devices, state dictionaries,
hooks.
"""

from __future__ import annotations

import functools
import sys
import warnings
import weakref
from collections import OrderedDict, namedtuple
from collections.abc import Callable, Iterator, Mapping
from types import ModuleType
from typing import Any, TypeVar

import tensorpy as tp
from tensorpy import _C
from tensorpy.__future__ import get_overwrite_module_params_on_conversion, get_swap_module_params_on_conversion
from tensorpy._C import Tensor
from tensorpy._compile import compile as compiled
from tensorpy.autograd.grad_mode import no_grad
from tensorpy.nn.modules import _hooks
from tensorpy.nn.modules._hooks import (
    register_module_backward_hook,
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from tensorpy.nn.parameter import Buffer, Parameter, is_lazy
from tensorpy.utils._swap import swap_tensors
from tensorpy.utils.hooks import BackwardHook, RemovableHandle

__all__ = [
    "Module",
    "register_module_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]

Self = TypeVar("Self", bound="Module")
_EXTRA_STATE_KEY_SUFFIX = "_extra_state"  # libraries know it by this name


class _IncompatibleKeys(namedtuple("_IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    __slots__ = ()

    def __repr__(self) -> str:
        return super().__repr__() if self.missing_keys or self.unexpected_keys else "<All keys matched successfully>"

    __str__ = __repr__


def _indented(text: str, spaces: int) -> str:
    first, *rest = text.split("\n")
    return "\n".join([first, *(" " * spaces + line for line in rest)])


def _type_name(value: Any) -> str:
    return value.type() if isinstance(value, Tensor) else type(value).__name__


class _BoundHook:
    """A hook of load_state_dict that also gets the module, without keeping it alive."""

    def __init__(self, hook: Callable[..., Any], module: Module | None) -> None:
        self.hook = hook
        self.with_module = module is not None
        self.module = weakref.ref(module) if module is not None else None
        functools.update_wrapper(self, hook)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.module is None:
            return self.hook(*args, **kwargs)
        module = self.module()
        if module is None:
            raise RuntimeError("You are trying to call the hook of a dead Module!")
        return self.hook(module, *args, **kwargs)

    def __getstate__(self) -> dict[str, Any]:
        return {"hook": self.hook, "module": self.module() if self.module else None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["hook"], state["module"])  # type: ignore[misc]


def _to_arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any, bool, Any]:
    """The device, dtype, non_blocking and memory format of Module.to: (device, dtype), (dtype) or (tensor)."""
    names = ["device", "dtype", "non_blocking", "copy"]
    if args and isinstance(args[0], tp.dtype):
        names = names[1:]
    elif args and isinstance(args[0], Tensor):
        names = ["tensor", *names[2:]]
    if len(args) > len(names):
        raise TypeError(f"to() takes at most {len(names)} positional arguments, got {len(args)}")
    given = dict(zip(names, args, strict=False))
    for keyword, value in kwargs.items():
        if keyword in given or keyword not in ("device", "dtype", "tensor", "non_blocking", "copy", "memory_format"):
            raise TypeError(f"to() got an unexpected or repeated keyword argument '{keyword}'")
        given[keyword] = value
    device, dtype, like = given.get("device"), given.get("dtype"), given.get("tensor")
    if like is not None:
        device, dtype = like.device, like.dtype
    if dtype is not None and not isinstance(dtype, tp.dtype):
        raise TypeError(f"to(): argument 'dtype' must be a dtype, not {type(dtype).__name__}")
    if isinstance(device, str):
        device = tp.device(device)
    return device, dtype, bool(given.get("non_blocking", False)), given.get("memory_format")


def _no_forward(self: Any, *input: Any) -> Any:
    """What a call computes; every subclass has its own, with arguments of its own.

    Returns: what the subclass says.

    Raises: NotImplementedError in a class that has none.
    """
    raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')


def _missed_by_old_hooks(args: Any, result: Any, last: Any) -> str:
    """Why hooks on the last operator of a forward, the node `last`, are no hooks of the module; "" where they are."""
    results = result if isinstance(result, tuple) else (result,)
    if not all(isinstance(r, Tensor) for r in results):
        return "non-full backward hooks on a Module that does not return a single Tensor or a tuple of Tensors"
    if not all(isinstance(a, Tensor) for a in args):
        return "non-full backward hooks on a Module that does not take as input a single Tensor or a tuple of Tensors"
    if len({r.grad_fn for r in results} - {None}) > 1:
        return "a non-full backward hook when outputs are generated by different autograd Nodes"
    if {a.grad_fn for a in args} - {None} != {node for node, _ in last.next_functions}:
        return "a non-full backward hook when the forward contains multiple autograd Nodes"
    return ""


def _load_parts(
    module: Module, part: Any, prefix: str, metadata: Any, assign: bool, keys: _IncompatibleKeys, errors: list[str]
) -> None:
    """load_state_dict of a module and its children. No function of its own inside of that one: it would be a cycle."""
    local = {} if metadata is None else metadata.get(prefix[:-1], {})
    if assign:
        local["assign_to_params_buffers"] = True
    module._load_from_state_dict(part, prefix, local, True, keys.missing_keys, keys.unexpected_keys, errors)
    for name, child in module._modules.items():
        if child is not None:
            below = f"{prefix}{name}."
            inner = {k: v for k, v in part.items() if k.startswith(below)}
            _load_parts(child, inner, below, metadata, assign, keys, errors)
    for hook in module._load_state_dict_post_hooks.values():
        if hook(module, keys) is not None:
            raise AssertionError("a load_state_dict post-hook changes the keys in place and returns None")


class Module:
    """The base of every layer and network: subclass it, make parameters and modules in `__init__`, compute in
    `forward`.

    Example:
        >>> class Twice(nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.inner = nn.Linear(2, 2)
        ...     def forward(self, x):
        ...         return self.inner(self.inner(x))
        >>> Twice()(tp.ones(3, 2)).shape
        tensorpy.Size([3, 2])
    """

    _compiled_as: Any = None  # what compile() makes of a module: nn/modules/compiled.py
    dump_patches = False
    training: bool
    _version = 1
    call_super_init = False
    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    _modules: dict[str, Any]
    _is_full_backward_hook: bool | None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        _quicken(cls)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not self.call_super_init and (args or kwargs):
            given = f"an unexpected keyword argument '{next(iter(kwargs))}'" if kwargs else ""
            given = f"got {given}" if given else f"takes 1 positional argument but {len(args) + 1} were given"
            raise TypeError(f"{type(self).__name__}.__init__() {given}")
        put = super().__setattr__
        put("training", True)
        put("_parameters", {})
        put("_buffers", {})
        put("_non_persistent_buffers_set", set())
        for name in _HOOK_TABLES:
            put(name, OrderedDict())
        put("_is_full_backward_hook", None)
        put("_modules", {})
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    forward: Callable[..., Any] = _no_forward

    # ---- adding ----

    def _check_name(self, kind: str, name: Any, table: dict[str, Any]) -> None:
        if "_parameters" not in self.__dict__:
            raise AttributeError(f"cannot assign {kind} before Module.__init__() call")
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {type(name).__name__}")
        if "." in name:
            raise KeyError(f'{kind} name can\'t contain "."' + (f", got: {name}" if kind == "module" else ""))
        if name == "":
            raise KeyError(f'{kind} name can\'t be empty string ""')
        if hasattr(self, name) and name not in table:
            raise KeyError(f"attribute '{name}' already exists")

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Adds a tensor that is no parameter but moves with the module; state_dict has it unless persistent=False."""
        self._check_name("buffer", name, self.__dict__.get("_buffers", {}))
        _C._module_changed()
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"cannot assign '{type(tensor).__name__}' object to buffer '{name}' (torch Tensor or None required)"
            )
        self._buffers[name] = _hooks.replaced(_hooks.buffer_registration, self, name, tensor)
        hidden = self.__dict__["_non_persistent_buffers_set"]
        (hidden.discard if persistent else hidden.add)(name)

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Adds a parameter, or None in a parameter's place."""
        self._check_name("parameter", name, self.__dict__.get("_parameters", {}))
        _C._module_changed()
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(
                f"cannot assign '{_type_name(param)}' object to parameter '{name}' (torch.nn.Parameter or None "
                "required)"
            )
        if param is not None and param.grad_fn is not None:
            raise ValueError(
                f"Cannot assign non-leaf Tensor to parameter '{name}': a parameter is a leaf. To express it as a "
                "function of another tensor, compute it in forward()."
            )
        self._parameters[name] = _hooks.replaced(_hooks.parameter_registration, self, name, param)

    def add_module(self, name: str, module: Module | None) -> None:
        """Adds a module, or None in a module's place."""
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{type(module).__name__} is not a Module subclass")
        self._check_name("module", name, self.__dict__.get("_modules", {}))
        _C._module_changed()
        self._modules[name] = _hooks.replaced(_hooks.module_registration, self, name, module)

    def register_module(self, name: str, module: Module | None) -> None:
        """add_module by another name."""
        self.add_module(name, module)

    # ---- by path ----

    def get_submodule(self, target: str) -> Module:
        """The module at a path of names with dots; "" is this one."""
        module: Module = self
        for name in target.split(".") if target else ():
            if not hasattr(module, name):
                raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
            module = getattr(module, name)
            if not isinstance(module, Module):
                raise AttributeError(f"`{name}` is not an nn.Module")
        return module

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Puts a module at a path; with strict one has to be there already."""
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        path, _, name = target.rpartition(".")
        if not isinstance(module, Module):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        parent = self.get_submodule(path)
        if strict and not hasattr(parent, name):
            raise AttributeError(f"{parent._get_name()} has no attribute `{name}`")
        if hasattr(parent, name) and not isinstance(getattr(parent, name), Module):
            raise AttributeError(f"`{name}` is not an nn.Module")
        setattr(parent, name, module)

    def _get_leaf(self, target: str) -> tuple[Module, str, Any]:
        path, _, name = target.rpartition(".")
        owner = self.get_submodule(path)
        if not hasattr(owner, name):
            raise AttributeError(f"{owner._get_name()} has no attribute `{name}`")
        return owner, name, getattr(owner, name)

    def get_parameter(self, target: str) -> Parameter:
        """The parameter at a path."""
        _, name, found = self._get_leaf(target)
        if not isinstance(found, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return found

    def get_buffer(self, target: str) -> Tensor:
        """The buffer at a path."""
        owner, name, found = self._get_leaf(target)
        if name not in owner._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return found

    def get_extra_state(self) -> Any:
        """What state_dict keeps beside tensors, for a subclass that defines this and set_extra_state.

        Returns: anything that pickle can write.
        """
        raise RuntimeError("get_extra_state() is called only where a subclass defines it")

    def set_extra_state(self, state: Any) -> None:
        """Takes what get_extra_state gave."""
        raise RuntimeError("set_extra_state() is called only where a subclass defines it")

    # ---- attributes ----

    def __getattr__(self, name: str) -> Any:
        own = self.__dict__
        for table in ("_parameters", "_buffers", "_modules"):
            if table in own and name in own[table]:
                return own[table][name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name: str, value: Any) -> None:
        _C._module_changed()
        own = self.__dict__
        parameters = own.get("_parameters")
        if isinstance(value, Parameter):
            if parameters is None:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            self._forget(name, keep="_parameters")
            self.register_parameter(name, value)
        elif parameters is not None and name in parameters:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{_type_name(value)}' as parameter '{name}' (torch.nn.Parameter or None expected)"
                )
            self.register_parameter(name, None)
        elif isinstance(value, Module):
            if "_modules" not in own:
                raise AttributeError("cannot assign module before Module.__init__() call")
            self._forget(name, keep="_modules")
            self._modules[name] = _hooks.replaced(_hooks.module_registration, self, name, value)
        elif name in own.get("_modules", ()):
            if value is not None:
                raise TypeError(
                    f"cannot assign '{_type_name(value)}' as child module '{name}' (torch.nn.Module or None expected)"
                )
            self._modules[name] = _hooks.replaced(_hooks.module_registration, self, name, value)
        elif isinstance(value, Buffer) or name in own.get("_buffers", ()):
            self._set_buffer(name, value)
        else:
            super().__setattr__(name, value)

    def _set_buffer(self, name: str, value: Any) -> None:
        if value is not None and not isinstance(value, Tensor):
            raise TypeError(
                f"cannot assign '{_type_name(value)}' as buffer '{name}' (torch.nn.Buffer, torch.Tensor or None "
                "expected)"
            )
        if isinstance(value, Buffer):
            self._forget(name, keep="_buffers")
            self.register_buffer(name, value, value.persistent)
        else:
            self._buffers[name] = _hooks.replaced(_hooks.buffer_registration, self, name, value)

    def _forget(self, name: str, keep: str) -> None:
        """Takes a name out of all tables but one."""
        own = self.__dict__
        for table in (own, own.get("_parameters"), own.get("_buffers"), own.get("_modules")):
            if table is not None and table is not own.get(keep):
                table.pop(name, None)
        if keep != "_buffers":
            own.get("_non_persistent_buffers_set", set()).discard(name)

    def __delattr__(self, name: str) -> None:
        _C._module_changed()
        for table in (self._parameters, self._buffers, self._modules):
            if name in table:
                del table[name]
                self.__dict__["_non_persistent_buffers_set"].discard(name)
                return
        super().__delattr__(name)

    def __dir__(self) -> list[str]:
        names = {*dir(type(self)), *self.__dict__, *self._parameters, *self._modules, *self._buffers}
        return sorted(name for name in names if not name[0].isdigit())

    # ---- dtype, device, memory ----

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Any:
        """Replaces every parameter, gradient and buffer by what a function makes of it."""
        _C._module_changed()
        if recurse:
            for module in self.children():
                module._apply(fn)
        for name, param in self._parameters.items():
            if param is not None:
                self._parameters[name] = _applied(param, fn, f"{self._get_name()}.{name}")
        for name, buffer in self._buffers.items():
            if buffer is not None and is_lazy(buffer):
                buffer.data = fn(buffer).data
            elif buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def apply(self: Self, fn: Callable[[Module], None]) -> Self:
        """Calls a function with every module inside, and with this one last."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def _cast(self, dtype: Any) -> Any:
        return self._apply(lambda t: t.to(dtype) if t.is_floating_point() else t)

    def float(self: Self) -> Self:
        """Floating parameters and buffers as float32."""
        return self._cast(tp.float32)

    def double(self: Self) -> Self:
        """Floating parameters and buffers as float64."""
        return self._cast(tp.float64)

    def half(self: Self) -> Self:
        """Floating parameters and buffers as float16."""
        return self._cast(tp.float16)

    def bfloat16(self: Self) -> Self:
        """Floating parameters and buffers as bfloat16."""
        return self._cast(tp.bfloat16)

    def type(self: Self, dst_type: Any) -> Self:
        """All parameters and buffers as one dtype."""
        return self._apply(lambda t: t.type(dst_type))

    def cpu(self: Self) -> Self:
        """Moved to the CPU."""
        return self._apply(lambda t: t.cpu())

    def cuda(self: Self, device: Any = None) -> Self:
        """Moved to a CUDA device."""
        return self.to("cuda" if device is None else tp.device("cuda", device) if isinstance(device, int) else device)

    def to(self: Self, *args: Any, **kwargs: Any) -> Self:
        """Moved to a device, or with floating parameters and buffers as a dtype, in place: `to(device, dtype,
        non_blocking)`, `to(dtype)`, `to(tensor)`, `to(memory_format=...)`."""
        device, dtype, non_blocking, memory_format = _to_arguments(args, kwargs)
        if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
            raise TypeError(
                f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={dtype}"
            )

        if dtype is not None and dtype.is_complex:
            warnings.warn(
                "Complex modules are a new feature under active development whose design may change, and some modules "
                "might not work as expected when using complex tensors as parameters or buffers.",
                stacklevel=2,
            )

        def convert(t: Tensor) -> Tensor:
            fits = dtype is not None and (t.is_floating_point() or t.is_complex())
            form = {"memory_format": memory_format} if memory_format is not None and t.dim() in (4, 5) else {}
            try:
                return t.to(
                    device=t.device if device is None else device,
                    dtype=dtype if fits else t.dtype,
                    non_blocking=non_blocking,
                    **form,
                )
            except NotImplementedError as error:
                if t.device.type != "meta":
                    raise
                raise NotImplementedError(
                    "Cannot copy out of meta tensor; no data! Please use torch.nn.Module.to_empty() instead of "
                    "torch.nn.Module.to() when moving module from meta to a different device."
                ) from error

        return self._apply(convert)

    def to_empty(self: Self, *, device: Any, recurse: bool = True) -> Self:
        """Moved to a device without the values."""
        return self._apply(lambda t: tp.empty_like(t, device=device), recurse=recurse)

    def share_memory(self: Self) -> Self:
        """Moves parameters and buffers to memory that processes share."""
        return self._apply(lambda t: t.share_memory_())

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Compiles the calls of this module: its `forward`, with the arguments of tensorpy.compile."""
        plain = self.__dict__.pop("_plain_forward", None) or self.forward
        forward = compiled(plain, *args, **kwargs)
        if forward is not plain:
            self.__dict__.update(forward=forward, _plain_forward=plain)

    @property
    def _compiled_call_impl(self) -> Any:
        """What compile() has made of the calls, or None: programs ask whether it has."""
        return self.__dict__["forward"] if "_plain_forward" in self.__dict__ else None

    # ---- modes ----

    def train(self: Self, mode: bool = True) -> Self:
        """Says whether the module trains, for layers such as dropout and batch norm."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self: Self) -> Self:
        """train(False)."""
        return self.train(False)

    def requires_grad_(self: Self, requires_grad: bool = True) -> Self:
        """Says whether the parameters get gradients."""
        for param in self.parameters():
            param.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drops the parameters' gradients, or sets them to zero."""
        for param in self.parameters():
            if param.grad is None:
                continue
            if set_to_none:
                param.grad = None
                continue
            if param.grad.grad_fn is not None:
                param.grad.detach_()
            else:
                param.grad.requires_grad_(False)
            param.grad.zero_()

    # ---- walking ----

    def _named_members(
        self,
        get_members_fn: Callable[[Module], Any],
        prefix: str = "",
        recurse: bool = True,
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Any]]:
        seen: set[Any] = set()
        modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]
        for path, module in modules:
            for name, member in get_members_fn(module):
                if member is None or member in seen:
                    continue
                if remove_duplicate:
                    seen.add(member)
                yield f"{path}.{name}" if path else name, member

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """The parameters with their paths."""
        yield from self._named_members(lambda m: m._parameters.items(), prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """The parameters, each once."""
        for _, param in self.named_parameters(recurse=recurse):
            yield param

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """The buffers with their paths."""
        yield from self._named_members(lambda m: m._buffers.items(), prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """The buffers, each once."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The modules right below with their names."""
        seen: set[Module] = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self) -> Iterator[Module]:
        """The modules right below."""
        for _, module in self.named_children():
            yield module

    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """This module and all below it with their paths."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(memo, f"{prefix}.{name}" if prefix else name, remove_duplicate)

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """This module and all below it."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    # ---- hooks ----

    def _hooked(
        self, table: dict[int, Any], hook: Any, marks: tuple[dict[int, bool], ...], flags: tuple[bool, ...], first: bool
    ) -> RemovableHandle:
        handle = RemovableHandle(table, extra_dict=list(marks))
        table[handle.id] = hook
        for mark, flag in zip(marks, flags, strict=True):
            if flag:
                mark[handle.id] = True
        if first:
            entries: Any = table
            entries.move_to_end(handle.id, last=False)
        return handle

    def register_forward_pre_hook(
        self, hook: _hooks.PreHook, *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Calls `hook(module, args)` before forward; what it returns replaces the arguments. With `with_kwargs`,
        `hook(module, args, kwargs)`, which returns both."""
        marks = (self._forward_pre_hooks_with_kwargs,)
        return self._hooked(self._forward_pre_hooks, hook, marks, (with_kwargs,), prepend)

    def register_forward_hook(
        self, hook: _hooks.ForwardHook, *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> RemovableHandle:
        """Calls `hook(module, args, output)` after forward; what it returns replaces the output. With `with_kwargs`,
        `hook(module, args, kwargs, output)`; with `always_call` also if forward raises."""
        marks = (self._forward_hooks_with_kwargs, self._forward_hooks_always_called)
        return self._hooked(self._forward_hooks, hook, marks, (with_kwargs, always_call), prepend)

    def _backward_kind(self, full: bool) -> None:
        if self._is_full_backward_hook is not None and self._is_full_backward_hook != full:
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a single Module. Please use only "
                "one of them."
            )
        self._is_full_backward_hook = full

    def register_backward_hook(self, hook: _hooks.BackwardHook) -> RemovableHandle:
        """An older form of register_full_backward_hook, which sees the gradients of the last operator only."""
        self._backward_kind(False)
        return self._hooked(self._backward_hooks, hook, (), (), False)

    def register_full_backward_pre_hook(self, hook: _hooks.BackwardPreHook, prepend: bool = False) -> RemovableHandle:
        """Calls `hook(module, grad_output)` when the outputs' gradients are there; it may return others."""
        return self._hooked(self._backward_pre_hooks, hook, (), (), prepend)

    def register_full_backward_hook(self, hook: _hooks.BackwardHook, prepend: bool = False) -> RemovableHandle:
        """Calls `hook(module, grad_input, grad_output)` when the inputs' gradients are there; it may return others."""
        self._backward_kind(True)
        return self._hooked(self._backward_hooks, hook, (), (), prepend)

    def register_state_dict_post_hook(self, hook: _hooks.StateHook) -> RemovableHandle:
        """Calls `hook(module, state_dict, prefix, local_metadata)` after state_dict; it changes in place."""
        marked: Any = hook
        marked._from_public_api = True
        return self._hooked(self._state_dict_hooks, hook, (), (), False)

    def _register_state_dict_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError("the hook was previously registered via register_state_dict_post_hook")
        return self._hooked(self._state_dict_hooks, hook, (), (), False)

    def register_state_dict_pre_hook(self, hook: _hooks.StatePreHook) -> RemovableHandle:
        """Calls `hook(module, prefix, keep_vars)` before state_dict."""
        return self._hooked(self._state_dict_pre_hooks, hook, (), (), False)

    def _register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], with_module: bool = False
    ) -> RemovableHandle:
        bound = _BoundHook(hook, self if with_module else None)
        return self._hooked(self._load_state_dict_pre_hooks, bound, (), (), False)

    def register_load_state_dict_pre_hook(self, hook: _hooks.LoadPreHook) -> RemovableHandle:
        """Calls `hook(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)`
        before load_state_dict."""
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def register_load_state_dict_post_hook(self, hook: _hooks.LoadPostHook) -> RemovableHandle:
        """Calls `hook(module, incompatible_keys)` after load_state_dict."""
        return self._hooked(self._load_state_dict_post_hooks, hook, (), (), False)

    # ---- calling ----

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        own = self.__dict__
        if (
            own["_forward_hooks"]
            or own["_forward_pre_hooks"]
            or own["_backward_hooks"]
            or own["_backward_pre_hooks"]
            or _hooks.called()
        ):
            return self._call_with_hooks(args, kwargs)
        return self.forward(*args, **kwargs)

    def _call_impl(self, *args: Any, **kwargs: Any) -> Any:
        return Module.__call__(self, *args, **kwargs)

    def _call_with_hooks(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        done: set[int] = set()
        try:
            return self._call_in_order(args, kwargs, done)
        except Exception:
            self._call_always(args, kwargs, done)
            raise

    def _call_in_order(self, args: tuple[Any, ...], kwargs: dict[str, Any], done: set[int]) -> Any:
        """Pre-hooks, forward, hooks, and between them the identities that lead backward to the backward hooks."""
        full, old = self._get_backward_hooks()
        pre = [*_hooks.backward_pre.values(), *self._backward_pre_hooks.values()]
        for key, hook in (*_hooks.forward_pre.items(), *self._forward_pre_hooks.items()):
            args, kwargs = self._pre_hooked(key, hook, args, kwargs)
        passing = BackwardHook(self, full, pre) if full or pre else None
        if passing:
            args = passing.setup_input_hook(args)
        result = self.forward(*args, **kwargs)
        for key, hook in (*_hooks.forward.items(), *self._forward_hooks.items()):
            done.add(key)
            changed = self._forward_hooked(key, hook, args, kwargs, result)
            result = result if changed is None else changed
        if passing:
            if not isinstance(result, (Tensor, tuple)):
                warnings.warn(
                    "For backward hooks to be called, module output should be a Tensor or a tuple of Tensors but "
                    f"received {type(result)}",
                    stacklevel=4,
                )
            result = passing.setup_output_hook(result)
        if old:
            self._hook_last_operator(args, result, old)
        return result

    def _get_backward_hooks(self) -> tuple[list[Any], list[Any]]:
        """The full backward hooks, and those of the older form."""
        full: list[Any] = []
        old: list[Any] = []
        (full if _hooks.full_backward else old).extend(_hooks.backward.values())
        (full if self._is_full_backward_hook else old).extend(self._backward_hooks.values())
        return full, old

    def _pre_hooked(self, key: int, hook: Any, args: Any, kwargs: Any) -> tuple[Any, Any]:
        if key not in self._forward_pre_hooks_with_kwargs:
            changed = hook(self, args)
            return args if changed is None else changed if isinstance(changed, tuple) else (changed,), kwargs
        changed = hook(self, args, kwargs)
        if changed is None:
            return args, kwargs
        if not (isinstance(changed, tuple) and len(changed) == 2):
            raise RuntimeError(
                f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {changed}."
            )
        return changed

    def _forward_hooked(self, key: int, hook: Any, args: Any, kwargs: Any, result: Any) -> Any:
        if key in self._forward_hooks_with_kwargs or key in _hooks.forward_with_kwargs:
            return hook(self, args, kwargs, result)
        return hook(self, args, result)

    def _call_always(self, args: Any, kwargs: Any, done: set[int]) -> None:
        """The hooks that are called even if forward raised, with no result; their own errors are warnings."""
        for key, hook in (*_hooks.forward.items(), *self._forward_hooks.items()):
            wanted = key in _hooks.forward_always or key in self._forward_hooks_always_called
            if not wanted or key in done:
                continue
            try:
                self._forward_hooked(key, hook, args, kwargs, None)
            except Exception as error:
                warnings.warn(
                    f"module forward hook with always_call=True raised an exception that was silenced as another error "
                    f"was raised in forward: {error!s}",
                    stacklevel=5,
                )

    def _hook_last_operator(self, args: Any, result: Any, hooks: list[Any]) -> None:
        last = result
        while not isinstance(last, Tensor):
            last = next(v for v in last.values() if isinstance(v, Tensor)) if isinstance(last, dict) else last[0]
        if last.grad_fn is None:
            return
        for hook in hooks:
            last.grad_fn.register_hook(functools.partial(hook, self))
        missed = _missed_by_old_hooks(args, result, last.grad_fn)
        if missed:
            warnings.warn(
                f"Using {missed} is deprecated: such hooks see the last operator alone. A hook of "
                "register_full_backward_hook sees the module's inputs and outputs.",
                FutureWarning,
                stacklevel=5,
            )

    # ---- state ----

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        for name, param in self._parameters.items():
            if param is not None:
                destination[prefix + name] = param if keep_vars else param.detach()
        for name, buffer in self._buffers.items():
            if buffer is not None and name not in self._non_persistent_buffers_set:
                destination[prefix + name] = buffer if keep_vars else buffer.detach()
        if type(self).get_extra_state is not Module.get_extra_state:
            destination[prefix + _EXTRA_STATE_KEY_SUFFIX] = self.get_extra_state()

    def state_dict(self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> Any:
        """The parameters and persistent buffers by path; not copies, and detached unless keep_vars.

        Returns: an OrderedDict of tensors.
        """
        if args:
            warnings.warn("state_dict takes its arguments by keyword", FutureWarning, stacklevel=2)
            destination = args[0] if destination is None else destination
            prefix = args[1] if len(args) > 1 and prefix == "" else prefix
            keep_vars = args[2] if len(args) > 2 and keep_vars is False else keep_vars
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        local = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = local
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        for hook in self._state_dict_hooks.values():
            changed = hook(self, destination, prefix, local)
            if getattr(hook, "_from_public_api", False):
                if changed is not None:
                    raise RuntimeError("state_dict post-hook must return None")
            elif changed is not None:
                destination = changed
        return destination

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Copies what belongs to this module alone; keeps account of what is missing, left over or wrong."""
        for hook in self._load_state_dict_pre_hooks.values():
            hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        saved = {name for name in self._buffers if name not in self._non_persistent_buffers_set}
        own = {**self._parameters, **{name: self._buffers[name] for name in self._buffers if name in saved}}
        assign = local_metadata.get("assign_to_params_buffers", False)
        for name, target in own.items():
            key = prefix + name
            if target is None:
                continue
            if key in state_dict:
                problem = self._load_one(name, target, state_dict[key], key, assign)
                error_msgs.extend([problem] if problem else [])
            elif strict:
                missing_keys.append(key)
        extra = prefix + _EXTRA_STATE_KEY_SUFFIX
        if type(self).set_extra_state is not Module.set_extra_state:
            if extra in state_dict:
                self.set_extra_state(state_dict[extra])
            elif strict:
                missing_keys.append(extra)
        elif strict and extra in state_dict:
            unexpected_keys.append(extra)
        if strict:
            unexpected_keys.extend(self._unknown_keys(state_dict, prefix, own))

    def _unknown_keys(self, state_dict: Any, prefix: str, own: dict[str, Any]) -> Iterator[str]:
        for key in state_dict:
            if key.startswith(prefix) and key != prefix + _EXTRA_STATE_KEY_SUFFIX:
                name, _, rest = key[len(prefix) :].partition(".")
                if (rest and name not in self._modules) or (not rest and name not in own):
                    yield key

    def _load_one(self, name: str, target: Any, given: Any, key: str, assign: bool) -> str | None:
        """Copies or assigns one tensor; what is wrong with it, or None."""
        if not isinstance(given, Tensor):
            return (
                f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like object from '
                f"checkpoint but received {type(given)}"
            )
        if not is_lazy(target):
            if target.dim() == 0 and given.dim() == 1 and len(given) == 1:
                given = given[0]  # numbers were saved with one dimension once
            if given.shape != target.shape:
                return (
                    f"size mismatch for {key}: copying a param with shape {given.shape} from checkpoint, the shape in "
                    f"current model is {target.shape}."
                )
        if target.is_meta and not given.is_meta and not assign:
            warnings.warn(
                f"for {key}: copying from a non-meta parameter in the checkpoint to a meta parameter in the current "
                "model, which is a no-op. (Did you mean to pass `assign=True` to assign items in the state dictionary "
                "to their corresponding key in the module instead of copying them in place?)",
                stacklevel=2,
            )
        try:
            with no_grad():
                self._put(name, target, given, assign)
        except Exception as error:
            doing = "swapping" if get_swap_module_params_on_conversion() else "copying"
            return (
                f'While {doing} the parameter named "{key}", whose dimensions in the model are {target.size()} and '
                f"whose dimensions in the checkpoint are {given.size()}, an exception occurred : {error.args}."
            )
        return None

    def _put(self, name: str, target: Any, given: Any, assign: bool) -> None:
        if get_swap_module_params_on_conversion():
            self._swap(target, given, assign)
            return
        if not assign:
            target.copy_(given)
            return
        if isinstance(target, Parameter) and not isinstance(given, Parameter):
            given = Parameter(given, requires_grad=target.requires_grad)
        elif isinstance(target, Parameter):
            given.requires_grad_(target.requires_grad)
        setattr(self, name, given)

    def _swap(self, target: Any, given: Any, assign: bool) -> None:
        made = target.module_load(given, assign=assign)
        if made is target or made is given:
            raise RuntimeError(
                "module_load returned one of self or other, please .detach() the result if returning one of the inputs "
                "in module_load"
            )
        if isinstance(target, Parameter) and not isinstance(made, Parameter):
            made = Parameter(made, requires_grad=target.requires_grad)
        elif isinstance(target, Parameter):
            made.requires_grad_(target.requires_grad)
        swap_tensors(target, made)

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:
        """Copies the tensors of a state_dict into this module's, or with assign puts them in their place; with strict,
        both have to have the same keys.

        Returns: a named tuple (missing_keys, unexpected_keys).

        Raises: RuntimeError for keys or shapes that do not fit, TypeError for what is no mapping.
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        missing: list[str] = []
        unexpected: list[str] = []
        errors: list[str] = []
        metadata = getattr(state_dict, "_metadata", None)
        rest: Any = OrderedDict(state_dict)
        if metadata is not None:
            rest._metadata = metadata

        keys = _IncompatibleKeys(missing, unexpected)
        _load_parts(self, rest, "", metadata, assign, keys, errors)
        if strict:
            for title, names in (("Unexpected", unexpected), ("Missing", missing)):
                if names:
                    quoted = ", ".join(f'"{name}"' for name in names)
                    errors.insert(0, f"{title} key(s) in state_dict: {quoted}. ")
        if errors:
            lines = "\n\t".join(errors)
            raise RuntimeError(f"Error(s) in loading state_dict for {type(self).__name__}:\n\t{lines}")
        return keys

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        if "_plain_forward" in state:  # what is compiled is no part of a module that is copied or saved
            plain = state.pop("_plain_forward")
            del state["forward"]
            if getattr(plain, "__func__", None) is not type(self).forward:
                state["forward"] = plain
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for name in _HOOK_TABLES:
            self.__dict__.setdefault(name, OrderedDict())
        self.__dict__.setdefault("_non_persistent_buffers_set", set())
        self.__dict__.setdefault("_is_full_backward_hook", None)

    def _replicate_for_data_parallel(self) -> Any:
        """A shallow copy with tables of its own, and no parameters: whoever asks fills them in."""
        replica = self.__new__(type(self))
        replica.__dict__ = self.__dict__.copy()
        replica._parameters, replica._buffers, replica._modules = {}, self._buffers.copy(), self._modules.copy()
        replica.__dict__["_is_replica"] = True
        return replica

    # ---- printing ----

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """What repr shows between the parentheses."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = [f"({name}): {_indented(repr(module), 2)}" for name, module in self._modules.items()]
        if not children and len(lines) <= 1:
            return f"{self._get_name()}({extra})"
        return f"{self._get_name()}(\n  " + "\n  ".join(lines + children) + "\n)"


_GETATTR, _CALL = Module.__getattr__, Module.__call__
_C._set_nn_module(_GETATTR, _CALL, _hooks.forward, _hooks.forward_pre, _hooks.backward, _hooks.backward_pre)


def _quicken(cls: type[Module]) -> None:
    """What a class leaves as it is here is done by csrc/python/nn_module.c."""
    plain = cls.__getattribute__ is object.__getattribute__
    _C._nn_module(cls, plain and cls.__getattr__ is _GETATTR, plain and cls.__call__ is _CALL)


_quicken(Module)


def _swapped(old: Any, new: Any, name: str) -> Any:
    """The object of the one with what the other has."""
    try:
        swap_tensors(old, new)
    except Exception as error:
        raise RuntimeError(f"_apply(): Couldn't swap {name}") from error
    return old


def _applied_by_swaps(param: Any, made: Tensor, fn: Callable[[Tensor], Tensor], name: str) -> Any:
    grad, param.grad = param.grad, None
    try:
        _swapped(param, Parameter(made, requires_grad=param.requires_grad), name)
    except RuntimeError:
        param.grad = grad
        raise
    if grad is not None:
        with no_grad():
            changed = fn(grad)
        param.grad = _swapped(grad, changed.requires_grad_(grad.requires_grad), f"{name}.grad")
    return param


def _applied(param: Any, fn: Callable[[Tensor], Tensor], name: str) -> Any:
    """A parameter and its gradient after a function: the same object where it stays on its device, or as
    tensorpy.__future__ says."""
    with no_grad():
        made = fn(param)
    if get_swap_module_params_on_conversion() and not is_lazy(param):
        return _applied_by_swaps(param, made, fn, name)
    grad = param.grad
    same = made.device.type == param.device.type and not get_overwrite_module_params_on_conversion()
    if is_lazy(param) or same:
        param.data = made.data
        result = param
    else:
        result = Parameter(made, param.requires_grad)
    if grad is not None:
        with no_grad():
            changed = fn(grad)
        if same and changed.device.type == grad.device.type:
            grad.data = changed.data  # whoever holds the gradient sees it change with the parameter
        else:
            result.grad = changed.requires_grad_(grad.requires_grad)
    return result


_HOOK_TABLES = (
    "_backward_pre_hooks",
    "_backward_hooks",
    "_forward_hooks",
    "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called",
    "_forward_pre_hooks",
    "_forward_pre_hooks_with_kwargs",
    "_state_dict_hooks",
    "_state_dict_pre_hooks",
    "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
)


# The tables of hooks that see every module, by PyTorch's names.
_GLOBAL_TABLES = {
    "_global_forward_pre_hooks": _hooks.forward_pre,
    "_global_forward_hooks": _hooks.forward,
    "_global_forward_hooks_with_kwargs": _hooks.forward_with_kwargs,
    "_global_forward_hooks_always_called": _hooks.forward_always,
    "_global_backward_pre_hooks": _hooks.backward_pre,
    "_global_backward_hooks": _hooks.backward,
    "_global_buffer_registration_hooks": _hooks.buffer_registration,
    "_global_module_registration_hooks": _hooks.module_registration,
    "_global_parameter_registration_hooks": _hooks.parameter_registration,
}
globals().update(_GLOBAL_TABLES)


class _WithTables(ModuleType):
    """This module: a table that is assigned to a name of a global one is what that one holds from then on."""

    def __setattr__(self, name: str, value: Any) -> None:
        table = _GLOBAL_TABLES.get(name)
        if table is None:
            super().__setattr__(name, value)
        elif table is not value:
            new = dict(value)
            table.clear()
            table.update(new)


sys.modules[__name__].__class__ = _WithTables
