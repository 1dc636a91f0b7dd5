"""Arguments of calls by the names of the signatures."""

from __future__ import annotations

import inspect
from functools import cache
from typing import Any, NamedTuple

from tensorpy import _C, ops
from tensorpy._C import Tensor

__all__ = [
    "ArgsKwargsPair", "check_for_mutable_operation", "get_signature_for_torch_op", "normalize_function",
    "normalize_module",
]  # fmt: skip

_KINDS: dict[str, Any] = {
    "Tensor": Tensor, "int": int, "SymInt": int, "float": float, "bool": bool, "str": str, "Scalar": complex,
    "ScalarType": _C.dtype, "Device": _C.device, "Generator": _C.Generator, "MemoryFormat": type(_C.preserve_format),
    "Layout": type(_C.strided),
}  # fmt: skip


class ArgsKwargsPair(NamedTuple):
    """Arguments of a call."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


# ---- signatures of operators ----


def _kind(text: str) -> Any:
    """A type of a schema as Python's."""
    text = text.split("(")[0] + text.partition(")")[2] if "(" in text else text
    if text.endswith("?"):
        return _kind(text[:-1]) | None
    if text.endswith("]"):
        return list[_kind(text.rpartition("[")[0])]  # type: ignore[misc]
    return _KINDS.get(text, Any)


def _signature_of(name: str, schema: str) -> inspect.Signature:
    """The signature of one overload. What the schema calls `self` is `input`."""
    parameters = []
    for stem, kind, only_keyword, _, has_default, default in _C._tracer.arguments(name):
        place = inspect.Parameter.KEYWORD_ONLY if only_keyword else inspect.Parameter.POSITIONAL_OR_KEYWORD
        given = default if has_default else inspect.Parameter.empty
        named = {"self": "input", "from": "from_"}.get(stem) or str(stem)
        parameters.append(inspect.Parameter(named, place, default=given, annotation=_kind(kind)))
    result = schema.rpartition(" -> ")[2]
    return inspect.Signature(parameters, return_annotation=_kind(result) if result[0] != "(" else tuple)


def _packet_of(function: Any) -> Any:
    """The operator of a function of tensorpy; None if it is none's."""
    if isinstance(function, type(ops.aten.add)):
        return function
    if not (getattr(function, "__module__", None) or "").startswith("tensorpy._C"):
        return None
    return getattr(ops.aten, function.__name__, None)


@cache
def _overloads_of(function: Any) -> list[tuple[Any, inspect.Signature]]:
    if isinstance(function, _C.OpOverload):
        return [(function, _signature_of(function._own_name, function._schema))]
    packet = _packet_of(function)
    found = [] if packet is None else [getattr(packet, name) for name in packet.overloads()]
    return [(each, _signature_of(each._own_name, each._schema)) for each in found]


def get_signature_for_torch_op(op: Any, return_schemas: bool = False) -> Any:
    """The signatures of an operator's overloads; None for what is none. With `return_schemas` the schemas as well."""
    found = _overloads_of(op)
    signatures = [signature for _, signature in found] or None
    if not return_schemas:
        return signatures
    return signatures, [each._schema for each, _ in found] or None


def check_for_mutable_operation(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """RuntimeError if a call with these arguments writes one of them."""
    fitting = []
    for each, signature in _overloads_of(target):
        try:
            signature.bind(*args, **kwargs)
        except TypeError:
            continue
        if "!" not in each._schema:
            return
        fitting.append(each)
    if fitting:
        name, _, rest = fitting[0]._schema.partition("(")
        raise RuntimeError(
            f"Tried to trace mutable operation aten::{name}({rest}. FX only supports functional code, so operations "
            "that mutate operands in-place (e.g. via `out` arguments) are not supported"
        )


# ---- arguments ----


def _by_signature(
    function: Any, args: Any, kwargs: Any, only_kwargs: bool, signature: inspect.Signature | None = None
) -> ArgsKwargsPair | None:
    """Defaults are filled in; keyword-only parameters, or all of them, are given by name. None without a signature."""
    try:
        bound = (signature or inspect.signature(function)).bind(*args, **kwargs)
    except (TypeError, ValueError):
        return None
    bound.apply_defaults()
    if not only_kwargs:
        return ArgsKwargsPair(bound.args, bound.kwargs)
    named: dict[str, Any] = {}
    for name, parameter in bound.signature.parameters.items():
        if parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.POSITIONAL_ONLY):
            return None
        given = bound.arguments[name]
        named |= given if parameter.kind is inspect.Parameter.VAR_KEYWORD else {name: given}
    return ArgsKwargsPair((), named)


def normalize_function(
    target: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    arg_types: Any = None,
    kwarg_types: Any = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:
    """The arguments of a function's call; of an operator's, those of the first overload that takes them."""
    for _, signature in _overloads_of(target):
        found = _by_signature(target, args, kwargs or {}, normalize_to_only_use_kwargs, signature)
        if found is not None:
            return found
    return _by_signature(target, args, kwargs or {}, normalize_to_only_use_kwargs)


def normalize_module(
    root: Any,
    target: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:
    """The arguments of a call of a module inside the root."""
    forward = root.get_submodule(target).forward
    return _by_signature(forward, args, kwargs or {}, normalize_to_only_use_kwargs)
