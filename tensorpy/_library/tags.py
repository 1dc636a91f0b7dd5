"""Tag: what operators are marked with, as an enumeration. Operators' `tags` are the names, which these are equal to."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Any


class Tag(str, Enum):
    """A tag of an operator: `Tag.core in ops.aten.add.Tensor.tags`.

    Example:
        >>> tp.Tag.pointwise in tp.ops.aten.add.Tensor.tags
        True
    """

    __str__ = Enum.__str__
    __hash__ = str.__hash__

    collective = "collective"
    core = "core"
    cudagraph_unsafe = "cudagraph_unsafe"
    data_dependent_output = "data_dependent_output"
    dynamic_output_shape = "dynamic_output_shape"
    flexible_layout = "flexible_layout"
    generated = "generated"
    inplace = "inplace"
    inplace_view = "inplace_view"
    maybe_aliasing_or_mutating = "maybe_aliasing_or_mutating"
    needs_contiguous_strides = "needs_contiguous_strides"
    needs_exact_strides = "needs_exact_strides"
    needs_fixed_stride_order = "needs_fixed_stride_order"
    nondeterministic_bitwise = "nondeterministic_bitwise"
    nondeterministic_seeded = "nondeterministic_seeded"
    out = "out"
    out_variant = "out_variant"
    pointwise = "pointwise"
    pt2_compliant_tag = "pt2_compliant_tag"
    reduction = "reduction"
    view_copy = "view_copy"


def _shares(given: Any, value: Any) -> bool:
    """Whether a result is said to be an argument that is written."""
    return bool(value.alias_info and value.is_write and value.alias_info.before_set == given.alias_info.before_set)


def check_tags(schema: Any, tags: Iterable[str]) -> None:
    """ValueError where an operator is marked as one that writes to what it gives, `out` or `inplace`, and is not said
    to: results are what is written, in order, which follows a * or is the first argument."""
    if "out" not in tags and "inplace" not in tags:
        return
    written, returns = [a for a in schema.arguments if a.is_write], schema.returns
    if "out" in tags:
        if not written:
            wrong = "writes to at least one argument"
        elif any(not a.kwarg_only for a in written):
            wrong = "takes what it writes to by keyword alone, after the *"
        elif any(a.type != "Tensor" for a in written):
            wrong = "writes to tensors alone"
        elif len(returns) != len(written) or not all(map(_shares, written, returns)):
            wrong = "returns all that it writes to, in the same order"
        else:
            return
        raise ValueError(f"an operator with the tag out {wrong}: {schema}")
    first = next((a for a in schema.arguments if not a.kwarg_only), None)
    if first is None or not first.is_write or first.type != "Tensor":
        wrong = "has a Tensor as its first argument, which it writes to: Tensor(a!)"
    elif len(returns) != 1 or returns[0].type != "Tensor" or not _shares(first, returns[0]):
        wrong = "returns its first argument and nothing else"
    elif len(written) > 1:
        wrong = "writes to its first argument alone"
    else:
        return
    raise ValueError(f"an operator with the tag inplace {wrong}: {schema}")
