"""Dimensions joined, and split again."""

from __future__ import annotations

from typing import Any

from tensorpy._C import Size, Tensor
from tensorpy.nn.modules.module import Module

__all__ = ["Flatten", "Unflatten"]


class Flatten(Module):
    """Dimensions start_dim to end_dim as one.

    Input (*, d1, ..., dk, *), output (*, d1 * ... * dk, *).

    Example:
        >>> nn.Flatten()(tp.ones(2, 3, 4)).shape
        tensorpy.Size([2, 12])
    """

    end_dim: int
    start_dim: int

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, input: Tensor) -> Tensor:
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """One dimension as several.

    Input (*, d, *), output (*, *unflattened_size, *).

    Arguments:
        dim: the dimension; a negative one counts from the last
        unflattened_size: the sizes that take the dimension's place

    Raises: TypeError for a dim or sizes that are not ints.

    Example:
        >>> nn.Unflatten(1, (3, 4))(tp.ones(2, 12)).shape
        tensorpy.Size([2, 3, 4])
    """

    dim: int
    unflattened_size: Any

    def __init__(self, dim: int, unflattened_size: Any) -> None:
        super().__init__()
        if not isinstance(dim, int):
            raise TypeError(f"invalid argument type for dim parameter: expected an int, found {type(dim).__name__}")
        if not isinstance(unflattened_size, (tuple, list, Size)):
            raise TypeError(
                f"unflattened_size must be a tuple of ints, but found type {type(unflattened_size).__name__}"
            )
        for i, size in enumerate(unflattened_size):
            if not isinstance(size, int):
                raise TypeError(
                    "unflattened_size must be tuple of ints, but found element of type "
                    f"{type(size).__name__} at pos {i}"
                )
        self.dim, self.unflattened_size = dim, unflattened_size

    def forward(self, input: Tensor) -> Tensor:
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"
