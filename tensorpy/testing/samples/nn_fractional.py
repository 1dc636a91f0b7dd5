"""Samples of pooling over windows at random places."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .table import FLOATS, LOOSE, Make, samples

SPACE = (7, 6, 9)


def _begins(u: float, size: int, window: int, n: int) -> list[int]:
    pace = (size - window) / (n - 1) if n > 1 else 0.0
    return [int((o + u) * pace) - int(u * pace) for o in range(n - 1)] + [size - window] * (n > 0)


def _fractional(dims: int) -> Callable[..., Any]:
    def reference(x: Any, kernel: Any, output: Any, random: Any) -> Any:
        planes, size = x.reshape(-1, *x.shape[-dims:]), x.shape[-dims:]
        values = np.zeros((len(planes), *output), x.dtype)
        places = np.zeros(values.shape, np.int64)
        every = np.arange(int(np.prod(size))).reshape(size)
        for at, (plane, numbers) in enumerate(zip(planes, random.reshape(-1, dims), strict=False)):
            begins = [
                _begins(float(numbers[d if dims == 3 else 1 - d]), size[d], kernel[d], output[d]) for d in range(dims)
            ]
            for where in itertools.product(*map(range, output)):
                window = tuple(slice(b[o], b[o] + k) for b, o, k in zip(begins, where, kernel, strict=True))
                place = every[window].ravel()[np.argmax(plane[window])]
                values[(at, *where)], places[(at, *where)] = plane.ravel()[place], place
        shape = (*x.shape[:-dims], *output)
        return values.reshape(shape), places.reshape(shape)

    return reference


def _numbers(make: Make, *shape: int) -> Any:
    """From (0, 1), of which no multiple that places a window is near a whole number."""
    odd = np.arange(int(np.prod(shape))) * 5 % 8
    return make.own(((2 * odd + 1) / 16).reshape(shape))


def _samples(dims: int) -> Callable[[Make], Iterator[Any]]:
    def generate(make: Make) -> Iterator[Any]:
        size = SPACE[:dims]
        one = _numbers(make, 1, 2, dims)
        for kernel, output in ((2, 3), (3, 4), (2, 1), (1, 6), (4, 3)):
            yield make.distinct(2, *size), [kernel] * dims, [output] * dims, one
        yield make.distinct(3, 2, *size), [2, 3, 1][:dims], [3, 2, 4][:dims], _numbers(make, 3, 2, dims)
        yield make.distinct(2, 2, *size), [2] * dims, [4] * dims, _numbers(make, 5, 2, dims)  # more numbers than needed
        yield make.distinct(0, 2, *size), [2] * dims, [3] * dims, one

    return generate


for _dims in (2, 3):
    samples(
        f"fractional_max_pool{_dims}d",
        reference=_fractional(_dims),
        dtypes=FLOATS,
        tolerances=LOOSE,
        constant=("random_samples",),
    )(_samples(_dims))
