"""Tensors of a module that are computed from others.

The module's class becomes a subclass of its own with a property in the tensor's place; the original tensors, and the
modules that compute it, are in `module.parametrizations`.
"""

from __future__ import annotations

import copy
from contextlib import contextmanager
from typing import Any

from tensorpy.__future__ import get_swap_module_params_on_conversion
from tensorpy._C import Tensor
from tensorpy.autograd.grad_mode import no_grad
from tensorpy.nn.modules.container import ModuleDict, ModuleList
from tensorpy.nn.modules.module import Module
from tensorpy.nn.parameter import Parameter
from tensorpy.utils._python_dispatch import is_traceable_wrapper_subclass
from tensorpy.utils._swap import swap_tensors

__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
    "transfer_parametrizations_and_params",
    "type_before_parametrizations",
]

_caching = 0
_cache: dict[tuple[int, str], Any] = {}


@contextmanager
def cached() -> Any:
    """Inside, each parametrised tensor is computed once.

    Returns: a context manager.

    Example:
        >>> import tensorpy.nn.utils.parametrize as parametrize
        >>> layer = nn.utils.parametrizations.weight_norm(nn.Linear(2, 2))
        >>> with parametrize.cached():
        ...     print(layer.weight is layer.weight)
        True
    """
    global _caching
    _caching += 1
    try:
        yield
    finally:
        _caching -= 1
        if not _caching:
            _cache.clear()


def _add_tensor(module: Module, name: str, value: Tensor) -> None:
    if isinstance(value, Parameter):
        module.register_parameter(name, value)
    else:
        module.register_buffer(name, value)


def _put(original: Tensor, value: Tensor) -> None:
    """Gives a tensor another one's value and keeps the object, which optimizers hold: by swapping where that is opted
    into, and for wrappers of other tensors, whose class has to move with what it wraps; else by the memory alone."""
    if value is original:
        return
    if not (get_swap_module_params_on_conversion() or is_traceable_wrapper_subclass(original)):
        original.data = value.data
        return
    if isinstance(original, Parameter) and not isinstance(value, Parameter):
        value = Parameter(value, original.requires_grad)
    swap_tensors(original, value)


class ParametrizationList(ModuleList):
    """The modules that compute one tensor, first to last, and what they start from: `original`, or `original0`,
    `original1`, ... where the first gives several.

    Arguments:
        modules: the modules
        unsafe: whether the checks of shapes and dtypes are left out

    Example:
        >>> import tensorpy.nn.utils.parametrize as parametrize
        >>> class Positive(nn.Module):
        ...     def forward(self, x):
        ...         return x.exp()
        >>> layer = parametrize.register_parametrization(nn.Linear(2, 2), "weight", Positive())
        >>> type(layer.parametrizations["weight"]).__name__
        'ParametrizationList'
    """

    is_tensor: Any
    ntensors: Any

    def __init__(self, modules: Any, original: Any, unsafe: bool = False) -> None:
        modules = list(modules)
        if not modules:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        value: Any = original
        with no_grad():
            for module in reversed(modules):
                if hasattr(module, "right_inverse"):
                    try:
                        value = module.right_inverse(value)
                    except NotImplementedError:
                        pass
        if not isinstance(value, (Tensor, tuple, list)):
            raise ValueError(
                "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). Got "
                f"{type(value).__name__}"
            )
        self.is_tensor = isinstance(value, Tensor)
        self.ntensors = 1 if self.is_tensor else len(value)
        if isinstance(value, Tensor):
            if value.dtype != original.dtype:
                raise ValueError(
                    "When `right_inverse` outputs one tensor, it may not change the dtype.\n"
                    f"original.dtype: {original.dtype}\nright_inverse(original).dtype: {value.dtype}"
                )
            if value.device != original.device:
                raise ValueError(
                    "When `right_inverse` outputs one tensor, it may not change the device.\n"
                    f"original.device: {original.device}\nright_inverse(original).device: {value.device}"
                )
            with no_grad():
                _put(original, value)
            _add_tensor(self, "original", original)
        else:
            for i, each in enumerate(value):
                if not isinstance(each, Tensor):
                    raise ValueError(
                        "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). Got element "
                        f"{i} of the sequence with type {type(each).__name__}."
                    )
                kept = Parameter(each, original.requires_grad) if isinstance(original, Parameter) else each
                _add_tensor(self, f"original{i}", kept)
        if not unsafe:
            self._check(original)

    def _check(self, original: Tensor) -> None:
        _check_made(
            self(),
            original,
            "Registering a parametrization may not change the {what} of the tensor, unless `unsafe` flag is enabled.\n"
            "unparametrized {what}: {before}\nparametrized {what}: {made}",
        )

    def _originals(self) -> list[Any]:
        return [self.original] if self.is_tensor else [getattr(self, f"original{i}") for i in range(self.ntensors)]

    @no_grad()
    def right_inverse(self, value: Tensor) -> None:
        """Gives the originals the values from which `value` is computed."""
        made: Any = value
        for module in reversed(list(self)):
            if not hasattr(module, "right_inverse"):
                raise RuntimeError(f"parametrization {type(module).__name__} does not implement right_inverse.")
            made = module.right_inverse(made)
        if self.is_tensor:
            if not isinstance(made, Tensor):
                raise ValueError(f"`right_inverse` should return a tensor. Got {type(made).__name__}")
            parts: list[Any] = [made]
        else:
            if not isinstance(made, (tuple, list)):
                raise ValueError(f"'right_inverse' must return a sequence of tensors. Got {type(made).__name__}.")
            parts = list(made)
        if len(parts) != self.ntensors:
            raise ValueError(
                f"'right_inverse' must return a sequence of tensors of length {self.ntensors}. Got a sequence of "
                f"length {len(parts)}."
            )
        for i, (original, part) in enumerate(zip(self._originals(), parts, strict=True)):
            number = "" if self.is_tensor else str(i)
            if not isinstance(part, Tensor):
                raise ValueError(
                    f"'right_inverse' must return a sequence of tensors. Got element {i} of type {type(part).__name__}"
                )
            if part.dtype != original.dtype:
                raise ValueError(
                    f"Tensor {number} returned by `right_inverse` has dtype {part.dtype} while `original{number}` has "
                    f"dtype {original.dtype}"
                )
            _put(original, part)

    def forward(self) -> Tensor:
        modules = list(self)
        value = modules[0](*self._originals())
        for module in modules[1:]:
            value = module(value)
        return value


def _property(name: str) -> property:
    def get(self: Any) -> Any:
        if not _caching:
            return self.parametrizations[name]()
        key = (id(self), name)
        if key not in _cache:
            _cache[key] = self.parametrizations[name]()
        return _cache[key]

    def put(self: Any, value: Tensor) -> None:
        self.parametrizations[name].right_inverse(value)

    return property(get, put)


def _refuse_pickle(self: Any) -> Any:
    raise RuntimeError("Serialization of parametrized modules is only supported through state_dict().")


def _deepcopy(self: Any, memo: dict[int, Any]) -> Any:
    if id(self) not in memo:
        made = self.__new__(type(self))
        memo[id(self)] = made
        made.__dict__.update(copy.deepcopy(self.__dict__, memo))
        _own_class(made, type_before_parametrizations(self))
        for name in made.parametrizations:
            setattr(type(made), name, _property(name))
    return memo[id(self)]


def _own_class(module: Any, base: type) -> None:
    members: dict[str, Any] = {"__getstate__": _refuse_pickle}
    if not hasattr(base, "__deepcopy__"):
        members["__deepcopy__"] = _deepcopy
    module.__class__ = type(f"Parametrized{base.__name__}", (base,), members)


def _check_alike(made: Tensor, before: Tensor, complaint: str) -> None:
    for what in ("dtype", "shape"):
        if getattr(made, what) != getattr(before, what):
            raise ValueError(complaint.format(what=what, before=getattr(before, what), made=getattr(made, what)))


def _check_made(made: Any, before: Tensor, complaint: str) -> None:
    if not isinstance(made, Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {type(made).__name__}.")
    _check_alike(made, before, complaint)


def _check_further(parametrization: Any, before: Tensor) -> None:
    """One more parametrization on top of others: what it gives, and what leads back there, is as the tensor was."""
    after = parametrization(before)
    _check_made(
        after,
        before,
        "Registering a parametrization may not change the {what} of the tensor, unless the `unsafe` flag is enabled.\n"
        "before: {before}\nafter: {made}",
    )
    if not hasattr(parametrization, "right_inverse"):
        return
    try:
        back = parametrization.right_inverse(after)
    except NotImplementedError:
        return
    if not isinstance(back, Tensor):
        raise ValueError(f"parametrization.right_inverse must return a tensor. Got: {type(back).__name__}")
    _check_alike(
        back,
        before,
        "The tensor that parametrization.right_inverse returns must have the same {what} as the parametrized one, "
        "unless the `unsafe` flag is enabled.\nbefore: {before}\nreturned: {made}",
    )


def register_parametrization(module: Any, tensor_name: str, parametrization: Module, *, unsafe: bool = False) -> Any:
    """Has a module compute one of its tensors: `parametrization(original)`. With a method `right_inverse` it also takes
    values, and the first one leaves the tensor as it was; one more is computed of what was there. unsafe=True lets it
    change shape and dtype.

    Arguments:
        module: the module
        tensor_name: the name of the parameter or buffer
        unsafe: whether the checks of shapes and dtypes are left out

    Returns: the module.

    Raises: ValueError for a name that the module does not have, and for a parametrisation that changes the dtype or,
        unless unsafe, the shape.

    Example:
        >>> import tensorpy.nn.utils.parametrize as parametrize
        >>> class Positive(nn.Module):
        ...     def forward(self, x):
        ...         return x.exp()
        >>> layer = parametrize.register_parametrization(nn.Linear(2, 2), "weight", Positive())
        >>> bool((layer.weight > 0).all())
        True
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        parts = module.parametrizations[tensor_name]
        if not unsafe:
            _check_further(parametrization, getattr(module, tensor_name))
        parts.append(parametrization)
        parts.unsafe = parts.unsafe or unsafe
        return module
    if tensor_name not in module._buffers and tensor_name not in module._parameters:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name "
            f"'{tensor_name}'"
        )
    parts = ParametrizationList([parametrization], getattr(module, tensor_name), unsafe=unsafe)
    delattr(module, tensor_name)
    if not is_parametrized(module):
        _own_class(module, type(module))
        module.parametrizations = ModuleDict()
    setattr(type(module), tensor_name, _property(tensor_name))
    module.parametrizations[tensor_name] = parts
    return module


def is_parametrized(module: Any, tensor_name: str | None = None) -> bool:
    """Whether a module computes one of its tensors, or the one that is named.

    Arguments:
        module: the module
        tensor_name: the name of the parameter or buffer

    Returns: bool.

    Example:
        >>> import tensorpy.nn.utils.parametrize as parametrize
        >>> class Positive(nn.Module):
        ...     def forward(self, x):
        ...         return x.exp()
        >>> layer = parametrize.register_parametrization(nn.Linear(2, 2), "weight", Positive())
        >>> parametrize.is_parametrized(layer, "weight")
        True
    """
    found = getattr(module, "parametrizations", None)
    if not isinstance(found, ModuleDict):
        return False
    return len(found) > 0 if tensor_name is None else tensor_name in found


def remove_parametrizations(module: Any, tensor_name: str, leave_parametrized: bool = True) -> Any:
    """Takes a parametrisation out: the tensor has the computed value, or with leave_parametrized=False the original.

    Arguments:
        module: the module
        tensor_name: the name of the parameter or buffer

    Returns: the module.

    Raises: ValueError where there is none, or the tensor is made of several and leave_parametrized is False.

    Example:
        >>> import tensorpy.nn.utils.parametrize as parametrize
        >>> class Positive(nn.Module):
        ...     def forward(self, x):
        ...         return x.exp()
        >>> layer = parametrize.register_parametrization(nn.Linear(2, 2), "weight", Positive())
        >>> layer = parametrize.remove_parametrizations(layer, "weight")
        >>> parametrize.is_parametrized(layer)
        False
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    parts = module.parametrizations[tensor_name]
    original = parts._originals()[0]
    if not leave_parametrized and not parts.is_tensor:
        raise ValueError("Cannot leave unparametrized (`leave_parametrized=False`) a tensor made of several.")
    if leave_parametrized:
        if parts.is_tensor:
            with no_grad():
                _put(original, getattr(module, tensor_name))
        else:  # the originals that train tell whether what was made of them does
            value = getattr(module, tensor_name)
            original = Parameter(value) if value.requires_grad else value
    del module.parametrizations[tensor_name]
    delattr(type(module), tensor_name)
    _add_tensor(module, tensor_name, original)
    if not is_parametrized(module):
        delattr(module, "parametrizations")
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module: Any) -> type:
    """The class of a module, or what it was before it was parametrised.

    Returns: a class.

    Example:
        >>> import tensorpy.nn.utils.parametrize as parametrize
        >>> class Positive(nn.Module):
        ...     def forward(self, x):
        ...         return x.exp()
        >>> layer = parametrize.register_parametrization(nn.Linear(2, 2), "weight", Positive())
        >>> parametrize.type_before_parametrizations(layer).__name__
        'Linear'
    """
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(from_module: Any, to_module: Any, tensor_name: str | None = None) -> Any:
    """Gives a module the parametrisations, and the originals, of another.

    Arguments:
        from_module: the module that has them
        to_module: the module that gets them
        tensor_name: the name of the parameter or buffer

    Returns: to_module.

    Example:
        >>> import tensorpy.nn.utils.parametrize as parametrize
        >>> layer = nn.utils.parametrizations.weight_norm(nn.Linear(2, 2))
        >>> other = parametrize.transfer_parametrizations_and_params(layer, nn.Linear(2, 2))
        >>> parametrize.is_parametrized(other)
        True
    """
    if not is_parametrized(from_module):
        return to_module
    names = [tensor_name] if tensor_name is not None else list(from_module.parametrizations)
    for name in names:
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name)))
        parts = from_module.parametrizations[name]
        for module in parts:
            register_parametrization(to_module, name, copy.deepcopy(module), unsafe=True)
        taken = to_module.parametrizations[name]
        for mine, theirs in zip(taken._originals(), parts._originals(), strict=True):
            with no_grad():
                mine.data = theirs.data.clone()
    return to_module
