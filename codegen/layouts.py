"""What an operator does with tensors of another layout (Note [Layouts] in csrc/core/layout.h): the entry's `layouts`.

    values     the operator on the values, one for each place: what gives 0 of 0, element by element
    each       the same on the values as they stand: a place may have several, whose results add up as they do
    a name     a C function with the operator's arguments, in csrc/native/layout/
    a formula  over other operators

The variants that write (`sin_`, `sin.out`) compute the functional one, and the tensor that they write becomes that; or
the one in place does what the entry's `inplace_layouts` says in the same words.
"""

from __future__ import annotations

import re

from .catalog import Operator

WORDS = ("values", "each")


def said(op: Operator) -> str | None:
    """What the entry itself says."""
    text = op.function.layouts
    return None if text is None else text.strip()


def layout_function(op: Operator) -> str | None:
    """The C function, where the entry names one."""
    text = said(op)
    return text if text is not None and text not in WORDS and re.fullmatch(r"\w+", text) else None
