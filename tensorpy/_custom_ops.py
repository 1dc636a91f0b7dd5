"""Operators in Python as PyTorch had them before torch.library: a kernel, what it gives on Meta, and the two halves of
its gradient, each registered by the operator's name."""

from __future__ import annotations

import re
from collections import namedtuple
from collections.abc import Callable, Iterable
from types import NoneType
from typing import Any

from tensorpy import _C, library
from tensorpy._C import Tensor
from tensorpy._library.function_schema import parse_schema
from tensorpy._library.infer_schema import infer_schema
from tensorpy._library.registration import backend_key, registered
from tensorpy._library.utils import (
    is_functional_schema,
    is_tensor_like_type,
    is_tensorlist_like_type,
    parse_namespace,
)
from tensorpy.utils._pytree import tree_flatten, tree_unflatten

__all__ = ["custom_op", "impl", "impl_abstract", "impl_backward", "impl_save_for_backward"]

_halves: dict[str, dict[str, Callable[..., Any]]] = {}  # of gradients: an operator's, until both are there
_without_gradient: dict[str, list[int]] = {}  # an operator's results that have none, by their numbers


class CustomOp:
    """An operator that `custom_op` declared, with the library of all that is registered for it."""

    def __init__(self, qualname: str, schema: str) -> None:
        self._qualname = qualname
        self._lib = library.Library(parse_namespace(qualname)[0], "FRAGMENT")
        library.define(qualname, schema, lib=self._lib)
        declared[qualname] = self

    def __repr__(self) -> str:
        return f'<CustomOp(op="{self._qualname}")>'

    def _destroy(self) -> None:
        """Takes the operator out, and what is registered for it."""
        self._lib._destroy()
        del declared[self._qualname]
        _halves.pop(self._qualname, None)
        _without_gradient.pop(self._qualname, None)


declared: dict[str, CustomOp] = {}  # by their names


def _library_of(qualname: str) -> Any:
    """The library of an operator that `custom_op` declared; None for another, whose registrations stay."""
    return declared[qualname]._lib if qualname in declared else None


def custom_op(qualname: str, func_or_schema: Any = None) -> Any:
    """Declares an operator: of a schema, "(Tensor x) -> Tensor", or of a function's annotations, as a decorator.

    ValueError for a name with an overload, for what writes its arguments, gives views of them or nothing, and for an
    argument called self; AssertionError for a text that is no schema.
    """
    if "." in qualname:
        raise ValueError(f"custom_op does not handle overloads, which have a '.' in their names, as {qualname} has")

    def of_schema(signature: str) -> None:
        space, name = parse_namespace(qualname)
        schema = parse_schema(name + signature, f"{space}::")
        if not is_functional_schema(schema):
            raise ValueError(
                "custom_op only supports functional operators (ops that do not mutate any inputs, do not return views "
                f"of the inputs, and has at least one return). Got the following non-functional schema: {schema}"
            )
        if any(a.name == "self" for a in schema.arguments):
            raise ValueError(
                f"custom_op does not support arguments named 'self'. Please rename your argument. Got: {schema}"
            )
        CustomOp(qualname, signature)

    def declare(func: Callable[..., Any]) -> Callable[..., Any]:
        of_schema(infer_schema(func, mutates_args=()))
        return func

    if not isinstance(func_or_schema, str):
        return declare if func_or_schema is None else declare(func_or_schema)
    if not re.fullmatch(r"\(.*\)\s*->\s*\S.*", func_or_schema, re.DOTALL):
        raise AssertionError(f"Invalid function schema: {parse_namespace(qualname)[1]}{func_or_schema}")
    of_schema(func_or_schema)
    return None


def _stand_in_the_way(qualname: str, keys: Iterable[str | None]) -> list[str]:
    return [key for key in keys if key is not None and (qualname, key) in registered]


def impl(qualname: str, *, device_types: str | Iterable[str] = ("cpu", "cuda"), func: Any = None) -> Any:
    """Registers a kernel for types of devices; also a decorator. An operator that has one for them keeps it."""
    types = [device_types] if isinstance(device_types, str) else list(device_types)

    def register(fn: Callable[..., Any]) -> Callable[..., Any]:
        composites = ("CompositeImplicitAutograd", "CompositeExplicitAutograd")
        if found := _stand_in_the_way(qualname, (*(backend_key(t) for t in types), *composites)):
            raise RuntimeError(f"impl: the operator {qualname} already has an implementation, for {found[0]}")
        library.impl(qualname, types, fn, lib=_library_of(qualname))
        return fn

    return register if func is None else register(func)


def impl_abstract(qualname: str, *, func: Any = None) -> Any:
    """library.register_fake: what an operator gives on Meta and in fake mode."""
    return library.register_fake(qualname, func, lib=_library_of(qualname))


def _check_gradient(what: str, qualname: str) -> Any:
    overload = _C._op_overload(qualname)
    schema = overload._schema
    problem = "no returns" if not schema.returns else None
    if problem is None and not is_functional_schema(schema):
        problem = "non-functional schema: it writes an argument" if schema.is_mutable else "operator that returns views"
    if problem is not None:
        raise RuntimeError(f"{what}: {qualname} has no gradient of its own: {problem}: {schema}")
    keys = ("CompositeImplicitAutograd", "Autograd", *(k for k in _C._KEYS if k.startswith("Autograd")))
    if found := _stand_in_the_way(qualname, keys):
        raise RuntimeError(f"{what}: {qualname} already has a kernel for {found[0]}, which says what its gradient is")
    return overload


def _register_half(qualname: str, half: str, func: Callable[..., Any]) -> Callable[..., Any]:
    if qualname not in _halves:
        overload = _check_gradient(f"impl_{half}", qualname)
        _halves[qualname] = {}
        _register_gradient(qualname, overload, _halves[qualname])
    _halves[qualname][half] = func
    if len(_halves[qualname]) == 2:
        del _halves[qualname]
    return func


def _check_gradients(expected: str, found: Any, names: set[str], lengths: dict[str, int]) -> None:
    """RuntimeError where what a backward gave is no dict of a gradient, or list of gradients, for each tensor.

    expected: how messages begin
    names: of the arguments that are tensors or lists of them
    lengths: how many tensors a list has, by its argument's name
    """
    if not isinstance(found, dict):
        raise RuntimeError(f"{expected} a dict of gradients by the arguments' names, but got {type(found)}")
    if set(found) != names:
        said = f"{expected} its dict to have keys {names or {}} but got {list(found)}"
        raise RuntimeError(f"{said}: arguments of non-Tensor-like types have no gradient, those of tensors one or None")
    for name, grads in found.items():
        if name not in lengths:
            if not isinstance(grads, (Tensor, NoneType)):
                raise RuntimeError(f"{expected} for {name!r} either None or a Tensor, but got {type(grads)}")
        elif not isinstance(grads, (list, tuple)):
            raise RuntimeError(f"{expected} for {name!r} a list of gradients, but got {type(grads)}")
        elif len(grads) != lengths[name]:
            raise RuntimeError(f"{expected} for {name!r} a list of {lengths[name]} gradients but got {len(grads)}")
        elif wrong := [i for i, grad in enumerate(grads) if not isinstance(grad, (Tensor, NoneType))]:
            kind = type(grads[wrong[0]])
            raise RuntimeError(f"{expected} for {name!r} a list of None or Tensor, but got {kind} at index {wrong[0]}")


def _register_gradient(qualname: str, overload: Any, halves: dict[str, Callable[..., Any]]) -> None:
    arguments = overload._schema.arguments
    names = [a.name for a in arguments if not a.kwarg_only]
    tensors = {a.name for a in arguments if is_tensor_like_type(a.type) or is_tensorlist_like_type(a.type)}
    given = namedtuple("given", names)  # type: ignore[misc]

    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        for half in ("save_for_backward", "backward"):
            if half not in halves:
                raise RuntimeError(f"{qualname}: unable to find a '{half}': impl_{half} registers it")
        kept, spec = tree_flatten(halves["save_for_backward"](given(*inputs), output))
        ctx.saved_places = [i for i, value in enumerate(kept) if isinstance(value, Tensor)]
        ctx.save_for_backward(*(kept[i] for i in ctx.saved_places))
        ctx.saved_values = [None if isinstance(value, Tensor) else value for value in kept], spec
        results = output if isinstance(output, tuple) else (output,)
        plain = tree_flatten([results[i] for i in _without_gradient.get(qualname, ())])[0]
        ctx.mark_non_differentiable(*(value for value in plain if isinstance(value, Tensor)))
        ctx.lengths = {name: len(value) for name, value in zip(names, inputs, strict=False) if isinstance(value, list)}

    def backward(ctx: Any, *grads: Any) -> Any:
        values, spec = ctx.saved_values
        values = list(values)
        for place, tensor in zip(ctx.saved_places, ctx.saved_tensors, strict=True):
            values[place] = tensor
        found = halves["backward"](ctx, tree_unflatten(values, spec), *grads)
        _check_gradients(f"the backward of {qualname}: expected", found, tensors, ctx.lengths)
        return tuple(found.get(name) for name in names)

    library.register_autograd(qualname, backward, setup_context=setup_context, lib=_library_of(qualname))


def impl_save_for_backward(qualname: str, *, func: Any = None) -> Any:
    """Registers what of a call is kept for its gradient: `func(inputs, output)`; also a decorator.

    inputs has the arguments as attributes. The gradient stands when impl_backward has come, too.
    """

    def register(fn: Callable[..., Any]) -> Callable[..., Any]:
        return _register_half(qualname, "save_for_backward", fn)

    return register if func is None else register(func)


def impl_backward(qualname: str, output_differentiability: Any = None, *, func: Any = None) -> Any:
    """Registers a gradient: `func(ctx, saved, *grads)` gives a dict of gradients by the arguments' names; a decorator.

    output_differentiability says which results have a gradient, a list of bools; all do where it is None. RuntimeError
    for what is no list of a bool for each result.
    """
    given = output_differentiability
    if given is not None:
        is_list = isinstance(given, list) and all(isinstance(whether, bool) for whether in given)
        if not is_list or len(given) != len(_C._op_overload(qualname)._schema.returns):
            raise RuntimeError(
                "impl_backward: expected output_differentiability to be a list of bools, as long as the operator has "
                f"results, but got {given}"
            )

    def register(fn: Callable[..., Any]) -> Callable[..., Any]:
        _register_half(qualname, "backward", fn)
        _without_gradient[qualname] = [i for i, differentiable in enumerate(given or ()) if not differentiable]
        return fn

    return register if func is None else register(func)
