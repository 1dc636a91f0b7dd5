"""Functions whose calling convention no operator schema can express: operands in any number, dimensions as one
number.
"""

from __future__ import annotations

from tensorpy import _C
from tensorpy._C import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def _subscripts(labels: Sequence[object]) -> str:
    """A list of numbers and `...` as the letters of an equation."""
    text = ""
    for label in labels:
        if label is ...:
            text += "..."
        elif not isinstance(label, int):
            raise TypeError(f"einsum(): a subscript in a list is an int or Ellipsis, not {type(label).__name__}")
        elif 0 <= label < len(_LETTERS):
            text += _LETTERS[label]
        else:
            raise ValueError("einsum(): subscript in subscript list is not within the valid range [0, 52)")
    return text


def einsum(*args: object) -> Tensor:
    """Sums of products by Einstein's convention: `einsum("ij,jk->ik", a, b)`.

    The operands follow one by one or as one list. Instead of an equation each operand may be followed by a list of
    numbers, its subscripts, and the output's list comes last: `einsum(a, [0, 1], b, [1, 2], [0, 2])`.
    """
    if len(args) < 2:
        raise ValueError(
            "einsum(): takes an equation and at least one operand, or at least one operand with its subscripts"
        )
    equation, *operands = args
    if isinstance(equation, Tensor):
        operands = list(args[: len(args) - len(args) % 2 : 2])
        equation = ",".join(_subscripts(labels) for labels in args[1::2])  # type: ignore[arg-type]
        if len(args) % 2:
            equation += "->" + _subscripts(args[-1])  # type: ignore[arg-type]
    elif len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = operands[0]  # type: ignore[assignment]
    return _C.einsum(equation, operands)


def tensordot(
    a: Tensor,
    b: Tensor,
    dims: int | Tensor | Sequence[Sequence[int]] = 2,
    out: Tensor | None = None,
) -> Tensor:
    """A contraction of the last `dims` dimensions of a with the first of b, or of two lists of dimensions."""
    if isinstance(dims, Tensor):
        dims = dims.tolist()
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(a.dim(), b.dim()):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        left: Sequence[int] = list(range(a.dim() - dims, a.dim()))
        right: Sequence[int] = list(range(dims))
    elif isinstance(dims, (list, tuple)) and len(dims) == 2:
        left, right = ([d] if isinstance(d, int) else list(d) for d in dims)
    else:
        raise RuntimeError(f"tensordot expects dims to be an int or two lists of ints, but got dims={dims}")
    if out is None:
        return _C.tensordot(a, b, left, right)
    return _C.tensordot(a, b, left, right, out=out)
