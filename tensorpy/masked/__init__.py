"""Reductions, scans and normalisations of the elements that a mask selects: `masked.sum(x, 1, mask=mask)`.

They are the operators whose `python_module` is masked, without their prefix. A mask is of bool, True where an element
counts, and broadcasts to the input. Where nothing is selected, a result is the operator's identity itself (0 of a sum,
infinity of amin) or what computing with it gives (NaN of a mean).
"""

from __future__ import annotations

from tensorpy import _C
from tensorpy._package import proposing as _proposing
from tensorpy.masked._masks import (
    _canonical_dim,
    _combine_input_and_mask,
    _input_mask,
    _output_mask,
    _reduction_identity,
    _where,
)
from tensorpy.masked.maskedtensor import MaskedTensor, as_masked_tensor, is_masked_tensor, masked_tensor

_PREFIX = "masked_"
_OPERATORS = [name.removeprefix(_PREFIX) for name in dir(_C._masked) if name.startswith(_PREFIX)]
globals().update({name: getattr(_C._masked, _PREFIX + name) for name in _OPERATORS})

__all__ = [
    "MaskedTensor", "as_masked_tensor", "is_masked_tensor", "masked_tensor",
    "_canonical_dim", "_combine_input_and_mask", "_input_mask", "_output_mask", "_reduction_identity", "_where",
    *_OPERATORS,
]  # fmt: skip

TYPE_CHECKING = False
if not TYPE_CHECKING:
    __getattr__ = _proposing("masked", globals())
