"""Tag: what operators are marked with, as an enumeration. Operators' `tags` are the names, which these are equal to."""

from __future__ import annotations

from enum import Enum


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
