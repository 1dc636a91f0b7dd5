"""Which kernels attention may use: kept for the programs that say so. tensorpy picks by size."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Any

__all__ = ["SDPBackend", "sdpa_kernel"]


class SDPBackend(Enum):
    """The kinds of kernels that PyTorch knows.

    Example:
        >>> nn.attention.SDPBackend.MATH.name
        'MATH'
    """

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4

    def __int__(self) -> int:
        return self.value

    __index__ = __int__


@contextmanager
def sdpa_kernel(backends: list[SDPBackend] | SDPBackend, set_priority: bool = False) -> Iterator[dict[str, Any]]:
    """A context in which attention is to use some kinds of kernels; the results are the same with any.

    Arguments:
        backends: one or several kernels that may be taken
        set_priority: whether their order says which goes first

    Returns: a context manager.

    Raises: AssertionError for what is no SDPBackend.

    Example:
        >>> q = tp.ones(1, 2, 4, 8)
        >>> with nn.attention.sdpa_kernel(nn.attention.SDPBackend.MATH):
        ...     print(F.scaled_dot_product_attention(q, q, q).shape)
        tensorpy.Size([1, 2, 4, 8])
    """
    given = backends if isinstance(backends, list) else [backends]
    if not all(isinstance(backend, SDPBackend) for backend in given):
        raise AssertionError("Backend must be an instance of SDPBackend or a list of SDPBackend instances")
    yield {}
