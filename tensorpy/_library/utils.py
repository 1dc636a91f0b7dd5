"""What programs for PyTorch ask of schemas: torch._library.utils."""

from __future__ import annotations

from typing import Any

from tensorpy import _C
from tensorpy._library.function_schema import FunctionSchema, parse_schema


def _parsed(schema: Any) -> FunctionSchema:
    return schema if isinstance(schema, FunctionSchema) else parse_schema(str(schema), "")


def is_functional_schema(schema: Any, *, allow_valid_view: bool = False) -> bool:
    """Whether what the schema declares gives new tensors: no argument is written, and no result is a view of one.

    allow_valid_view: whether a view of the first argument alone is functional, too.
    """
    parsed = _parsed(schema)
    if parsed.is_mutable or not parsed.returns:
        return False
    views = [result for result in parsed.returns if result.alias_info is not None]
    if not views or not allow_valid_view:
        return not views
    first, *others = parsed.arguments
    return len(parsed.returns) == 1 and first.alias_info is not None and not any(a.alias_info for a in others)


def mutates_and_returns_first_arg(op: Any) -> bool:
    """Whether a call writes its first argument, no other, and gives that back: add_."""
    parsed = _parsed(op._schema)
    if op.namespace != "aten" or len(parsed.returns) != 1 or not parsed.arguments:
        return False
    first, *others = parsed.arguments
    given = parsed.returns[0].alias_info
    return first.is_write and not any(a.alias_info for a in others) and given == first.alias_info


def is_tensorlist_like_type(typ: Any) -> bool:
    """Whether a type of a schema is a list of tensors: Tensor[], Tensor?[], either with ? behind it."""
    return str(typ) in _LISTS


def is_tensor_like_type(typ: Any) -> bool:
    """Whether a type of a schema is a tensor, which may be left out."""
    return str(typ) in ("Tensor", "Tensor?", "Optional[Tensor]")


_LISTS = {"Tensor[]", "Tensor?[]", "Tensor[]?", "Tensor?[]?", "List[Tensor]", "List[Optional[Tensor]]",
          "Optional[List[Tensor]]", "Optional[List[Optional[Tensor]]]"}  # fmt: skip


def parse_namespace(qualname: str) -> tuple[str, str]:
    """("mine", "op") of "mine::op"."""
    space, _, name = qualname.partition("::")
    if not name or "::" in name:
        raise ValueError(f"Expected qualname to be of the form 'namespace::name', but got {qualname}")
    return space, name


def lookup_op(qualname: str) -> Any:
    """The overload of a name: "mine::op" is its default, "mine::op.out" another; AttributeError if there is none."""
    parse_namespace(qualname)
    return _C._op_overload(qualname)
