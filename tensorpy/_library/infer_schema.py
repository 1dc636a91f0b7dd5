"""Schemas from Python's annotations: what library.custom_op declares a function as."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy._library.function_schema import parse_schema
from tensorpy._library.tags import Tag, check_tags

_PLAIN: dict[Any, str] = {
    Tensor: "Tensor",
    int: "SymInt",
    float: "float",
    bool: "bool",
    str: "str",
    _C.dtype: "ScalarType",
    _C.device: "Device",
}
_NUMBER = frozenset({int, float, bool})
# What an argument and a result may be: the type itself, None or it, a list of it, ...
_ARGUMENTS = {
    "Tensor": ("", "?", "[]", "?[]"),
    "SymInt": ("", "?", "[]", "[]?"),
    "float": ("", "?", "[]", "[]?"),
    "bool": ("", "?", "[]", "[]?"),
    "Scalar": ("", "?", "[]"),
    "str": ("", "?"),
    "ScalarType": ("", "?"),
    "Device": ("", "?"),
}
_RESULTS = {"Tensor": ("", "[]"), "SymInt": ("",), "float": ("",), "bool": ("",), "Scalar": ("",)}


def _among(kind: str | None, table: dict[str, tuple[str, ...]]) -> str | None:
    """A type that the table has; None for another."""
    name = "" if kind is None else kind.rstrip("?[]")
    return kind if kind is not None and kind[len(name) :] in table.get(name, ()) else None


def _members(annotation: Any) -> tuple[Any, ...]:
    """The members of a union; no other annotation has any."""
    is_union = typing.get_origin(annotation) in (typing.Union, types.UnionType)
    return typing.get_args(annotation) if is_union else ()


def _type_of(annotation: Any) -> str | None:
    if annotation in _PLAIN:
        return _PLAIN[annotation]
    members = _members(annotation)
    if members and frozenset(members) == _NUMBER:
        return "Scalar"
    if type(None) in members:
        rest = [m for m in members if m is not type(None)]
        inner = _type_of(rest[0] if len(rest) == 1 else typing.Union[tuple(rest)])  # noqa: UP007
        return None if inner is None or inner.endswith("?") else inner + "?"
    if typing.get_origin(annotation) in (list, Sequence):
        (item,) = typing.get_args(annotation) or (None,)
        inner = _type_of(item)
        return None if inner is None or "[" in inner else inner + "[]"
    return None


def _default(value: Any) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_default, value))}]"
    if isinstance(value, _C.device):
        return f'"{value}"'
    return str(value).rpartition(".")[2] if isinstance(value, _C.dtype) else str(value)


def _returns(annotation: Any) -> str | None:
    """What stands after the arrow: `((Tensor))` for a tuple of one, as `(Tensor)` is a Tensor."""
    if annotation in (None, type(None)):
        return "()"
    if typing.get_origin(annotation) is tuple:
        if not typing.get_args(annotation):
            return "()"
        parts = [_among(_type_of(a), _RESULTS) for a in typing.get_args(annotation)]
        if not parts or None in parts:
            return None
        return f"(({parts[0]}))" if len(parts) == 1 else f"({', '.join(map(str, parts))})"
    return None if typing.get_origin(annotation) is Sequence else _among(_type_of(annotation), _RESULTS)


def infer_schema(
    prototype_function: Callable[..., Any],
    /,
    *,
    mutates_args: str | Iterable[str],
    op_name: str | None = None,
    tags: str | Iterable[str] | None = (),
) -> str:
    """The schema that a function's annotations say: "(Tensor x, float by=2.0) -> Tensor".

    `mutates_args` names the arguments that the function writes, or is "unknown": all tensors. ValueError names the
    parameter that has no annotation, or one that no schema has.

    Arguments:
        prototype_function: the function whose annotations are read
        mutates_args: the arguments that are written: () for none
        op_name: the name in the schema
        tags: Tag.inplace for an operator that returns its first argument, which it writes to; Tag.out for one that
            returns all that it writes to, which it takes by keyword alone

    Returns: str.

    Raises: ValueError for parameters that are not annotated, or that a schema cannot have.

    Example:
        >>> def f(x: tp.Tensor, n: int = 2) -> tp.Tensor:
        ...     return x * n
        >>> tp.library.infer_schema(f, mutates_args=())
        '(Tensor x, SymInt n=2) -> Tensor'
    """
    name = prototype_function.__name__
    marks = [Tag(tag).value for tag in ([tags] if isinstance(tags, str) else tags or ())]
    if "inplace" in marks and "out" in marks:
        raise AssertionError(f"infer_schema({name}): the tags inplace and out exclude each other")
    try:
        hints = typing.get_type_hints(prototype_function)
    except NameError as error:
        raise ValueError(
            f"infer_schema({name}): {error}: the annotations have to be known where it is defined"
        ) from None
    everything = mutates_args == "unknown"
    if isinstance(mutates_args, str) and not everything:
        raise ValueError(
            f"infer_schema({name}): mutates_args is a collection of names, or the string 'unknown': {mutates_args!r}"
        )
    written = set() if everything else set(mutates_args)
    parts: list[str] = []
    aliases: list[str] = []
    parameters = inspect.signature(prototype_function).parameters
    if unknown := sorted(written - set(parameters)):
        raise ValueError(f"infer_schema({name}): it has no parameter {', '.join(unknown)}, which mutates_args names")
    for at, parameter in enumerate(parameters.values()):
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise ValueError(f"infer_schema({name}): '{parameter.name}': a schema has no {parameter.kind.description}s")
        if parameter.name not in hints:
            raise ValueError(f"infer_schema({name}): parameter '{parameter.name}' has no annotation")
        kind = _among(_type_of(hints[parameter.name]), _ARGUMENTS)
        if kind is None:
            shown = inspect.formatannotation(hints[parameter.name])
            raise ValueError(
                f"infer_schema({name}): parameter '{parameter.name}' is annotated {shown}, no type of a schema: "
                "it takes Tensor, int, float, bool and int | float | bool, lists of these, str, dtype, device, "
                "and None or one of these"
            )
        if parameter.name in written or (everything and kind.startswith("Tensor")):
            if not kind.startswith("Tensor"):
                raise ValueError(f"infer_schema({name}): '{parameter.name}' is no Tensor, and cannot be written")
            kind = kind.replace("Tensor", f"Tensor(a{at}!)", 1)
            aliases.append(kind)
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in parts:
            parts.append("*")
        if not isinstance(parameter.default, (type, _C.dtype, _C.device, int, float, str, type(None))):
            given = type(parameter.default).__name__
            raise ValueError(
                f"infer_schema({name}): the default of '{parameter.name}' is of type {given}: "
                "it may be a number, a str, a dtype, a device or None; a schema that is given says lists"
            )
        default = "" if parameter.default is parameter.empty else f"={_default(parameter.default)}"
        parts.append(f"{kind} {parameter.name}{default}")
    if "return" not in hints:
        raise ValueError(f"infer_schema({name}): what it returns has no annotation")
    returned = _returns(hints["return"])
    if returned is None:
        shown = inspect.formatannotation(hints["return"])
        raise ValueError(f"infer_schema({name}): it returns {shown}, which is no type of a schema")
    if "inplace" in marks or "out" in marks:
        returned = f"({', '.join(aliases)})" if len(aliases) != 1 else aliases[0]
        if hints["return"] is not Tensor and typing.get_args(hints["return"]) != (Tensor,) * len(aliases):
            raise ValueError(f"infer_schema({name}): what it returns is annotated as the tensors that it writes to")
    text = f"({', '.join(parts)}) -> {returned}"
    check_tags(parse_schema(f"op{text}"), marks)
    return f"{op_name or ''}{text}"
