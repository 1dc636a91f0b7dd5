"""Operators on MaskedTensors that compute element by element of two, by the names of PyTorch's module."""

from __future__ import annotations

from tensorpy.masked.maskedtensor._taken import by_element, names

NATIVE_BINARY_FNS = by_element(2, writes=False)
NATIVE_INPLACE_BINARY_FNS = by_element(2, writes=True)
BINARY_NAMES = names(NATIVE_BINARY_FNS)
INPLACE_BINARY_NAMES = names(NATIVE_INPLACE_BINARY_FNS)
