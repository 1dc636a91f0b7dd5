"""Modules called with other parameters than their own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tensorpy._C import Tensor

__all__ = ["functional_call"]


def _places(module: Any, tie_weights: bool) -> dict[str, list[tuple[dict[str, Any], str]]]:
    """Where each parameter and buffer is: the tables, and the keys in them; one that is shared is in several."""
    places: dict[str, list[tuple[dict[str, Any], str]]] = {}
    shared: dict[int, list[tuple[dict[str, Any], str]]] = {}
    for path, part in module.named_modules(remove_duplicate=False):
        for table in (part._parameters, part._buffers):
            for name, tensor in table.items():
                full = f"{path}.{name}" if path else name
                here = shared.setdefault(id(tensor), []) if tie_weights and tensor is not None else []
                if not any(t is table and n == name for t, n in here):
                    here.append((table, name))
                places[full] = here
    return places


def _refuse_two_values(tensors: dict[str, Tensor], places: dict[str, list[tuple[dict[str, Any], str]]]) -> None:
    """Raises ValueError where names of one shared tensor are given tensors that differ."""
    given: dict[int, list[str]] = {}
    for name in tensors:
        given.setdefault(id(places[name]), []).append(name)
    for names in given.values():
        if any(tensors[name] is not tensors[names[0]] for name in names):
            raise ValueError(
                f"functional_call got multiple values for keys {sorted(names)}, which are tied. "
                "Consider using tie_weights=False"
            )


@contextmanager
def _replaced(module: Any, tensors: dict[str, Tensor], tie_weights: bool, strict: bool) -> Iterator[None]:
    places = _places(module, tie_weights)
    for name, tensor in tensors.items():
        if not name.rpartition(".")[2]:
            raise KeyError(f"tensor name can't be empty string: '{name}'")
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(f"{tensor} is not an instance of torch.Tensor: '{name}'")
    unknown = [name for name in tensors if name not in places]
    missing = sorted(name for name in places if name not in tensors and strict)
    if missing or (strict and unknown):
        lines = [
            f"{w} key(s): {', '.join(map(repr, n))}." for w, n in (("Unexpected", unknown), ("Missing", missing)) if n
        ]
        raise RuntimeError(f"Error(s) in reparametrizing for {module._get_name()}:\n\t" + "\n\t".join(lines))
    for name in unknown:  # one that the module has no place for is left alone, in a module that is there
        module.get_submodule(name.rpartition(".")[0])
    tensors = {name: tensor for name, tensor in tensors.items() if name in places}
    _refuse_two_values(tensors, places)
    before = [(table, key, table[key]) for name in tensors for table, key in places[name]]
    try:
        for name, tensor in tensors.items():
            for table, key in places[name]:
                table[key] = tensor
        yield
    finally:
        for table, key, tensor in reversed(before):
            table[key] = tensor


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
    parameters_and_buffers: dict[str, Tensor],
    args: Any = None,
    kwargs: Any = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """functional_call of one dictionary; libraries know it by this name."""
    if not isinstance(args, tuple):
        args = () if args is None else (args,)
    return functional_call(module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict)


def functional_call(
    module: Any,
    parameter_and_buffer_dicts: Any,
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Calls a module with the given parameters and buffers, by path, in place of its own. One that is shared is
    replaced everywhere unless tie_weights=False; strict=True wants all of them.

    Arguments:
        module: the module
        parameter_and_buffer_dicts: the tensors by name that stand for the module's own
        args: the arguments by position
        kwargs: the keyword arguments
        strict: whether it is an error where an output does not depend on an input

    Example:
        >>> model = nn.Linear(2, 1, bias=False)
        >>> nn.utils.stateless.functional_call(model, {"weight": tp.ones(1, 2)}, tp.ones(1, 2))
        tensor([[2.]])
    """
    dicts = parameter_and_buffer_dicts
    if isinstance(dicts, (list, tuple)):
        if any(not isinstance(d, dict) for d in dicts):
            raise ValueError("Expected all elements of parameter_and_buffer_dicts to be dictionaries")
        names = [name for d in dicts for name in d]
        if repeated := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"{repeated} appeared in multiple dictionaries; behavior of functional call is ambiguous")
        dicts = {name: tensor for d in dicts for name, tensor in d.items()}
    if not isinstance(dicts, dict):
        raise ValueError(
            f"Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got {type(dicts)}"
        )
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    with _replaced(module, dicts, tie_weights, strict):
        return module(*args, **(kwargs or {}))
