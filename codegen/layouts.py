"""What an operator does with tensors that are not strided memory (Note [Layouts] in csrc/core/layout.h): the entry's
`layouts` says it of sparse ones, `quantized` of quantized ones, `nested` of nested ones, whose other operators are
called on all values or on each piece (csrc/nested/fallback.c).

    values     the operator on the values, one for each place: what gives 0 of 0, element by element
    each       the same on the values as they stand: a place may have several, whose results add up as they do
    lines      the same where values follow each other in lines; coordinates are refused (what makes tensors of a
               size: `ones_like`)
    made       what is made of a size alone: its out= variant makes it in the layout of the tensor that is written
    through    of nested tensors: what the operator is made of knows them
    moves      of quantized tensors: the operator on the integers, which only moves or orders them
    a name     a C function with the operator's arguments, in csrc/native/layout/
    a formula  over other operators

The variants that write (`sin_`, `sin.out`) compute the functional one, and the tensor that they write becomes that; or
the one in place does what the entry's `inplace_layouts` says: a C function, or a formula that ends with a write.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from .catalog import Operator


@dataclass(frozen=True)
class Place:
    """A field of an entry, the key that its kernels stand at, and how their C functions begin."""

    field: str
    key: str
    prefix: str
    words: tuple[str, ...]


SPARSE = Place("layouts", "Layout", "layout", ("values", "each", "lines", "made"))
QUANTIZED = Place("quantized", "Quantized", "quantized", ("moves",))
NESTED = Place("nested", "LayoutNested", "nested", ("through",))
PLACES = (SPARSE, QUANTIZED, NESTED)


def said(op: Operator, place: Place = SPARSE) -> str | None:
    """What the entry itself says."""
    text: str | None = getattr(op.function, place.field)
    return None if text is None else text.strip()


def layout_function(op: Operator, place: Place = SPARSE) -> str | None:
    """The C function, where the entry names one."""
    text = said(op, place)
    return text if text is not None and text not in place.words and re.fullmatch(r"\w+", text) else None
