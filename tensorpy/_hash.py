"""hash_tensor: the elements' bits, joined by exclusive or."""

from __future__ import annotations

from collections.abc import Sequence

from tensorpy import _C
from tensorpy._C import Tensor

_NAMES = {_C.complex64: "ComplexFloat", _C.complex128: "ComplexDouble"}


def _bits(input: Tensor) -> Tensor:
    """The elements as int64: of a float the bits of its double."""
    if input.is_floating_point():
        return input.to(_C.float64).contiguous().view(_C.int64)
    return input.view(_C.int64) if input.dtype == _C.uint64 else input.to(_C.int64)


def _folded(bits: Tensor) -> Tensor:
    """The last dimension joined: one half with the other until there is one element."""
    if bits.shape[-1] == 0:
        return bits.new_zeros(bits.shape[:-1])
    while (size := bits.shape[-1]) > 1:
        half = size // 2
        joined = bits.narrow(-1, 0, half) ^ bits.narrow(-1, half, half)
        bits = _C.cat([joined, bits.narrow(-1, size - 1, 1)], -1) if size % 2 else joined
    return bits.squeeze(-1)


def hash_tensor(
    input: Tensor, dim: int | Sequence[int] = (), *, keepdim: bool = False, mode: int = 0, out: Tensor | None = None
) -> Tensor:
    """The exclusive or of the elements' bits in uint64, over the dimensions `dim` or all: equal for equal tensors,
    whatever their order. mode: 0, the one that there is."""
    if mode != 0:
        raise RuntimeError(f"Unknown hash_tensor mode: {mode}")
    if input.is_complex():
        raise NotImplementedError(f"\"xor_sum_cpu\" not implemented for '{_NAMES[input.dtype]}'")
    given = (dim,) if isinstance(dim, int) else tuple(dim)
    if not given and input.numel() == 0:
        raise RuntimeError(
            "hash_tensor: Expected reduction dim to be specified for input.numel() == 0. Specify the reduction "
            "dim with the 'dim' argument."
        )
    n = max(input.ndim, 1)
    for d in given:
        if not -n <= d < n:
            raise IndexError(f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {d})")
    dims = [d % n for d in given] if given else list(range(input.ndim))
    if len(set(dims)) != len(dims):
        raise RuntimeError(f"hash_tensor: dim {dims} names a dimension twice")
    if input.ndim == 0:
        dims = []
    bits = _bits(input.detach())
    kept = [d for d in range(input.ndim) if d not in dims]
    rows = bits.permute(*kept, *dims) if input.ndim else bits
    size = 1
    for d in dims:
        size *= input.shape[d]
    found = _folded(rows.reshape(*(input.shape[d] for d in kept), size))
    if keepdim:
        found = found.reshape([1 if d in dims else s for d, s in enumerate(input.shape)])
    result = found.view(_C.uint64)
    if out is None:
        return result
    out.resize_(result.shape)
    return out.copy_(result)
