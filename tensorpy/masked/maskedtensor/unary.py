"""Operators on MaskedTensors that compute element by element of one, by the names of PyTorch's module."""

from __future__ import annotations

from tensorpy.masked.maskedtensor._taken import by_element, names

NATIVE_UNARY_FNS = by_element(1, writes=False)
NATIVE_INPLACE_UNARY_FNS = by_element(1, writes=True)
UNARY_NAMES = names(NATIVE_UNARY_FNS)
INPLACE_UNARY_NAMES = names(NATIVE_INPLACE_UNARY_FNS)
