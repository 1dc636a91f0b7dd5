"""Operators in Python as PyTorch had them before torch.library: a kernel, what it gives on Meta, and the two halves of
its gradient, each registered by the operator's name."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Iterable
from typing import Any

from tensorpy import _C, library
from tensorpy._C import Tensor
from tensorpy._library.registration import backend_key, registered
from tensorpy._library.schema import infer_schema
from tensorpy._library.utils import is_functional_schema, parse_namespace
from tensorpy.utils._pytree import tree_flatten, tree_unflatten

__all__ = ["custom_op", "impl", "impl_abstract", "impl_backward", "impl_save_for_backward"]

_halves: dict[str, dict[str, Callable[..., Any]]] = {}  # of gradients: an operator's, until both are there


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


declared: dict[str, CustomOp] = {}  # by their names


def _library_of(qualname: str) -> Any:
    """The library of an operator that `custom_op` declared; None for another, whose registrations stay."""
    return declared[qualname]._lib if qualname in declared else None


def custom_op(qualname: str, func_or_schema: Any = None) -> Any:
    """Declares an operator: of a schema, "(Tensor x) -> Tensor", or of a function's annotations, as a decorator."""

    def declare(func: Callable[..., Any]) -> Callable[..., Any]:
        CustomOp(qualname, infer_schema(func, mutates_args=()))
        return func

    if not isinstance(func_or_schema, str):
        return declare if func_or_schema is None else declare(func_or_schema)
    CustomOp(qualname, func_or_schema)
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
    overload = _check_gradient(f"impl_{half}", qualname)
    halves = _halves.setdefault(qualname, {})
    halves[half] = func
    if len(halves) == 2:
        del _halves[qualname]
        _register_gradient(qualname, overload, halves["save_for_backward"], halves["backward"])
    return func


def _register_gradient(qualname: str, overload: Any, save: Callable[..., Any], run: Callable[..., Any]) -> None:
    names = [a.name for a in overload._schema.arguments if not a.kwarg_only]
    given = namedtuple("given", names)  # type: ignore[misc]

    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        kept, spec = tree_flatten(save(given(*inputs), output))
        ctx.saved_places = [i for i, value in enumerate(kept) if isinstance(value, Tensor)]
        ctx.save_for_backward(*(kept[i] for i in ctx.saved_places))
        ctx.saved_values = [None if isinstance(value, Tensor) else value for value in kept], spec

    def backward(ctx: Any, *grads: Any) -> Any:
        values, spec = ctx.saved_values
        values = list(values)
        for place, tensor in zip(ctx.saved_places, ctx.saved_tensors, strict=True):
            values[place] = tensor
        found = run(ctx, tree_unflatten(values, spec), *grads)
        if not isinstance(found, dict):
            raise RuntimeError(f"{qualname}: a backward gives a dict of gradients by the inputs' names, not {found!r}")
        if unknown := set(found) - set(names):
            raise RuntimeError(f"{qualname}: its backward gives gradients of {sorted(unknown)}, which are no inputs")
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

    output_differentiability is taken for PyTorch's sake: a result of a dtype without gradients has none.
    """

    def register(fn: Callable[..., Any]) -> Callable[..., Any]:
        return _register_half(qualname, "backward", fn)

    return register if func is None else register(func)
