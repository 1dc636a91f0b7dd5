"""Modules called with other parameters than their own."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tensorpy._C import Tensor

__all__ = ["functional_call"]


_ABSENT: Any = object()


def _tied(module: Any) -> dict[str, list[str]]:
    """The names of each parameter and buffer; those that share one have the same list."""
    names: dict[int, list[str]] = {}
    tied = {}
    for found in (module.named_parameters, module.named_buffers):
        for name, tensor in found(remove_duplicate=False):
            tied[name] = names.setdefault(id(tensor), [])
            tied[name].append(name)
    return tied


def _untied(module: Any, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The tensors under every name of those they stand for. Raises ValueError where two names of one differ."""
    tied = _tied(module)
    out = dict(tensors)
    for name, tensor in tensors.items():
        names = tied.get(name, [name])
        given = sorted(other for other in names if other in tensors)
        if any(tensors[other] is not tensor for other in given):
            raise ValueError(
                f"functional_call got multiple values for keys {given}, which are tied. "
                "Consider using tie_weights=False"
            )
        out.update(dict.fromkeys(names, tensor))
    return out


def _check_all_named(module: Any, tensors: dict[str, Tensor]) -> None:
    own = _tied(module)
    keys = {"Unexpected": sorted(tensors.keys() - own), "Missing": sorted(own.keys() - tensors)}
    lines = [f"{which} key(s): {', '.join(map(repr, names))}." for which, names in keys.items() if names]
    if lines:
        raise RuntimeError(f"Error(s) in reparametrizing for {module._get_name()}:\n\t" + "\n\t".join(lines))


def _owner(module: Any, path: str) -> Any:
    """The submodule at a path of attributes, which may go in circles."""
    for name in path.split(".") if path else ():
        if not hasattr(module, name):
            raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
        module = getattr(module, name)
    return module


def _swap(owner: Any, name: str, tensor: Any) -> Any:
    """Puts a tensor under a name, or with _ABSENT takes it out, and gives what was there (_ABSENT: nothing)."""
    for table in (owner._parameters, owner._buffers):
        if name in table:
            before = table[name]
            if tensor is _ABSENT:
                del table[name]
            else:
                table[name] = tensor
            return before
    before = getattr(owner, name, _ABSENT)
    if before is not _ABSENT and before is not None and not isinstance(before, Tensor):
        raise TypeError(f"attribute `{name}`: {before} is not an instance of torch.Tensor")
    if tensor is not _ABSENT:
        setattr(owner, name, tensor)
    elif before is not _ABSENT:
        delattr(owner, name)
    return before


@contextmanager
def _replaced(module: Any, given: dict[str, Tensor], tie_weights: bool, strict: bool) -> Iterator[None]:
    tensors = _untied(module, given) if tie_weights else given
    for name, tensor in tensors.items():
        if not name.rpartition(".")[2]:
            raise KeyError(f"tensor name can't be empty string: '{name}'")
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(f"{tensor} is not an instance of torch.Tensor: '{name}'")
    if strict:
        _check_all_named(module, tensors)
    before: list[tuple[str, Any, str, Any]] = []
    try:
        for path, tensor in tensors.items():
            where, _, name = path.rpartition(".")
            owner = _owner(module, where)
            before.append((path, owner, name, _swap(owner, name, tensor)))
        yield
    finally:
        left = {path: _swap(owner, name, tensor) for path, owner, name, tensor in reversed(before)}
        for path in given:  # what forward has assigned in their places
            if left.get(path, _ABSENT) is not _ABSENT and left[path] is not given[path]:
                given[path] = left[path]


@contextmanager
def _reparametrize_module(
    module: Any,
    parameters_and_buffers: dict[str, Tensor],
    tie_weights: bool = False,
    strict: bool = False,
    stack_weights: bool = False,
) -> Iterator[None]:
    """A context in which a module has other parameters and buffers; libraries know it by this name. stack_weights says
    how PyTorch puts its own back, which is all the same here."""
    with _replaced(module, parameters_and_buffers, tie_weights, strict):
        yield


def _functional_call(
    module: Any,
    parameters_and_buffers: Any,
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """func.functional_call, which says what it does; libraries know it by this name."""
    dicts = parameters_and_buffers
    if isinstance(dicts, (list, tuple)):
        if any(not isinstance(d, dict) for d in dicts):
            raise ValueError("Expected all elements of parameters_and_buffers to be dictionaries")
        names = [name for d in dicts for name in d]
        if repeated := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"{repeated} appeared in multiple dictionaries; behavior of functional call is ambiguous")
        dicts = {name: tensor for d in dicts for name, tensor in d.items()}
    if not isinstance(dicts, dict):
        raise ValueError(
            f"Expected parameters_and_buffers to be a dict, or a list/tuple of dicts, but got {type(dicts)}"
        )
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    with _replaced(module, dicts, tie_weights, strict):
        return module(*args, **(kwargs or {}))


def functional_call(
    module: Any,
    parameters_and_buffers: Any,
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """func.functional_call under its older name, with a FutureWarning.

    Arguments:
        module: the module
        parameters_and_buffers: the tensors by name that stand for the module's own; what the call assigns in their
            places is in them afterwards
        args: the arguments by position
        kwargs: the keyword arguments
        tie_weights: whether a parameter that is shared is replaced everywhere
        strict: whether all of the module's parameters and buffers have to be given, and no others

    Returns: what the module gives.

    Example:
        >>> model = nn.Linear(2, 1, bias=False)
        >>> nn.utils.stateless.functional_call(model, {"weight": tp.ones(1, 2)}, tp.ones(1, 2))
        tensor([[2.]])
    """
    warnings.warn(
        "nn.utils.stateless.functional_call is deprecated. Please use `torch.func.functional_call`: it is the same.",
        FutureWarning,
        stacklevel=2,
    )
    return _functional_call(module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict)
