"""Arguments of calls by the names of the signatures."""

from __future__ import annotations

import inspect
import numbers
import types
import warnings
from functools import cache
from typing import Any, NamedTuple, Union, get_args, get_origin

from tensorpy import _C, ops
from tensorpy._C import Tensor
from tensorpy._package.settings import typename

__all__ = [
    "ArgsKwargsPair", "check_for_mutable_operation", "create_type_hint", "get_signature_for_torch_op",
    "normalize_function", "normalize_module", "type_matches",
]  # fmt: skip

# Schemas give dtypes, layouts and memory formats as numbers.
_KINDS: dict[str, Any] = {
    "Tensor": Tensor, "int": int, "SymInt": int, "float": float, "bool": bool, "str": str, "Scalar": numbers.Number,
    "ScalarType": int, "Device": _C.device, "Generator": _C.Generator, "MemoryFormat": int, "Layout": int,
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


def _kind_of_results(text: str) -> Any:
    """The type of what a schema gives: of several results a tuple of theirs."""
    if not text.startswith("("):
        return _kind(text)
    return tuple(_kind(each.split(" ")[0]) for each in text[1:-1].split(", ") if each)


def _signature_of(name: str, schema: str) -> inspect.Signature:
    """The signature of one overload. What the schema calls `self` is `input`."""
    parameters = []
    for stem, kind, only_keyword, _, has_default, default in _C._tracer.arguments(name):
        place = inspect.Parameter.KEYWORD_ONLY if only_keyword else inspect.Parameter.POSITIONAL_OR_KEYWORD
        given = default if has_default else inspect.Parameter.empty
        named = {"self": "input", "from": "from_"}.get(stem) or str(stem)
        parameters.append(inspect.Parameter(named, place, default=given, annotation=_kind(kind)))
    return inspect.Signature(parameters, return_annotation=_kind_of_results(schema.rpartition(" -> ")[2]))


def is_of_c(function: Any) -> bool:
    """Whether a function is one of the extension module's or of a part of it, whatever its `__module__` says."""
    home = getattr(function, "__self__", None)
    return isinstance(home, types.ModuleType) and (home is _C or home in vars(_C).values())


def _packet_of(function: Any) -> Any:
    """The operator of a function of tensorpy; None if it is none's."""
    if isinstance(function, type(ops.aten.add)):
        return function
    return getattr(ops.aten, function.__name__, None) if is_of_c(function) else None


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


# ---- types ----


def _torchscript_type_to_python_type(ts_type: Any) -> Any:
    """The type that `torch._C._jit_try_infer_type(value).type()` stands for, as Python's."""
    return ts_type.hint


def create_type_hint(x: Any) -> Any:
    """The hint for a list or tuple of types: of the one among them that takes the others, or of Any.

    Arguments:
        x: a list or tuple of types, or anything else, which is given back

    Returns: a hint, or x.

    Example:
        >>> create_type_hint([int, bool])
        list[int]
    """
    if not isinstance(x, (list, tuple)):
        return x
    try:
        base = next((t for t in x if all(issubclass(other, t) for other in x)), Any)
    except TypeError:
        warnings.warn(f"We were not able to successfully create type hint from the type {x}", stacklevel=2)
        return x
    return list[base] if isinstance(x, list) else tuple[base, ...]  # type: ignore[valid-type]


def _takes_list(element: Any, given: Any) -> bool:
    """Whether a list of some type takes a list or tuple, or one number in its place."""
    if given is int and element is int:
        return True
    if get_origin(given) not in (list, tuple):
        return False
    inner = [each for each in get_args(given) if each not in (..., ())]
    return all(type_matches(element, each) for each in inner)


def type_matches(signature_type: Any, argument_type: Any) -> bool:
    """Whether an argument of a type may be given where a signature has another.

    Arguments:
        signature_type: an annotation of what `get_signature_for_torch_op` gives
        argument_type: the argument's type

    Returns: a bool.

    Example:
        >>> type_matches(list[int], int), type_matches(int, str)
        (True, False)
    """
    if signature_type is argument_type:
        return True
    if get_origin(signature_type) in (Union, types.UnionType):
        given = get_args(argument_type) if get_origin(argument_type) in (Union, types.UnionType) else (argument_type,)
        return all(any(type_matches(one, each) for one in get_args(signature_type)) for each in given)
    if get_origin(signature_type) is list:
        return _takes_list(get_args(signature_type)[0], argument_type)
    if signature_type is int and argument_type is _C.dtype:
        return True
    if signature_type is numbers.Number and argument_type in (int, float):
        return True
    both = inspect.isclass(argument_type) and inspect.isclass(signature_type)
    return both and get_origin(argument_type) is None and issubclass(argument_type, signature_type)


# ---- arguments ----


def _by_signature(signature: inspect.Signature, args: Any, kwargs: Any, only_kwargs: bool) -> ArgsKwargsPair | None:
    """What was given by position stays so, the rest and all defaults are given by name. None for `*args, **kwargs`."""
    kinds = {parameter.kind for parameter in signature.parameters.values()}
    if kinds - {inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY}:
        return None
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    by_place = 0 if only_kwargs else len(args)
    values = list(bound.arguments.items())
    return ArgsKwargsPair(tuple(value for _, value in values[:by_place]), dict(values[by_place:]))


def _binds(signature: inspect.Signature, args: Any, kwargs: Any) -> bool:
    try:
        signature.bind(*args, **kwargs)
    except TypeError:
        return False
    return True


def _takes_types(signature: inspect.Signature, args: Any, kwargs: Any) -> bool:
    """Whether a signature takes arguments of these types; None is a type that nobody knows."""
    if not _binds(signature, args, kwargs):
        return False
    given = signature.bind(*args, **kwargs).arguments
    return all(
        kind is None or type_matches(signature.parameters[name].annotation, kind) for name, kind in given.items()
    )


def _fitting(target: Any, args: Any, kwargs: Any, types_: tuple[Any, Any] | None) -> inspect.Signature | None:
    """The overload of an operator that takes arguments: the only one, or the first that takes their types."""
    found = [signature for _, signature in _overloads_of(target) if _binds(signature, args, kwargs)]
    if len(found) > 1 and types_ is None:
        listed = "\n".join(map(str, found))
        raise RuntimeError(
            f"Tried to normalize arguments to {typename(target)} but the schema match was ambiguous! Please provide "
            f"argument types to the normalize_arguments() call. Available schemas:\n{listed}"
        )
    if len(found) > 1 and types_ is not None:
        found = [signature for signature in found if _takes_types(signature, *types_)]
    return found[0] if found else None


def normalize_function(
    target: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    arg_types: Any = None,
    kwarg_types: Any = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:
    """The arguments of a function's call by its signature; of an operator's, by the overload that takes them.

    Arguments:
        target: a function, or an operator
        args, kwargs: what it is called with
        arg_types, kwarg_types: the types of these, where several overloads would take them; None for one not known
        normalize_to_only_use_kwargs: has all be given by name

    Returns: a named tuple (args, kwargs); None where no overload takes them, or the signature has `*args`.

    Raises: RuntimeError where several overloads take the arguments and no types are given.

    Example:
        >>> normalize_function(tp.relu, (tp.ones(1),), normalize_to_only_use_kwargs=True)
        ArgsKwargsPair(args=(), kwargs={'input': tensor([1.])})
    """
    kwargs = kwargs or {}
    signature: inspect.Signature | None
    if _packet_of(target) is not None or isinstance(target, _C.OpOverload):
        known = arg_types is not None or kwarg_types is not None
        signature = _fitting(target, args, kwargs, (arg_types or (), kwarg_types or {}) if known else None)
    else:
        try:
            signature = inspect.signature(inspect.unwrap(target))
        except ValueError:
            signature = None
    return None if signature is None else _by_signature(signature, args, kwargs, normalize_to_only_use_kwargs)


def normalize_module(
    root: Any,
    target: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:
    """The arguments of a call of a module inside the root."""
    signature = inspect.signature(root.get_submodule(target).forward)
    return _by_signature(signature, args, kwargs or {}, normalize_to_only_use_kwargs)
