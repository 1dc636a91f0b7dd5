"""Calls every operator with wild numbers in each of its integer tensors: indices, pivots, offsets, lengths.

`python fuzz_indices.py JOURNAL [PART/PARTS] [--device=NAME] [NAME...]` takes the samples of the table and
replaces
one integer tensor at a time. What a tensor is meant for follows from the samples alone: one that holds integers where
the operator computes with floats. Each call returns or raises one of EXPECTED; a crash or a hang ends the program, and
JOURNAL says what was running.
"""

from __future__ import annotations

import mmap
import random
import sys
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from fuzz_operators import EXPECTED, Ended, Watchdog, at_most, start
from programs import SANITIZED

import tensorpy as tp
from tensorpy.testing.harness import arguments, function_of
from tensorpy.testing.samples import TABLE, OpInfo
from tensorpy.testing.samples.table import INTEGERS, Array, OpSample

Place = tuple[int | str, ...]  # an argument's position or name, and the position in a list
SAMPLES = 3 if SANITIZED else 6  # of one operator and dtype


def argument_at(info: OpInfo, place: Place) -> str:
    first = place[0]
    return first if isinstance(first, str) else [a.name for a in info.op.schema.arguments][first]


def arrays(sample: OpSample) -> Iterator[tuple[Place, Array]]:
    for key, value in [*enumerate(sample.args), *sample.kwargs.items()]:
        if isinstance(value, Array):
            yield (key,), value
        elif isinstance(value, (list, tuple)):
            yield from (((key, i), v) for i, v in enumerate(value) if isinstance(v, Array))


def samples_of(info: OpInfo) -> Iterator[OpSample]:
    for dtype in dict.fromkeys((info.main_dtype, *(d for d in ("int64", "int32") if d in info.dtypes))):
        yield from info.samples(dtype, SAMPLES)


def places(info: OpInfo) -> Iterator[tuple[OpSample, Place, Array]]:
    """Each integer tensor of each sample."""
    for sample in samples_of(info):
        for place, array in arrays(sample):
            if array.dtype in INTEGERS:
                yield sample, place, array


def wild(array: Array, draw: random.Random) -> Iterator[tuple[str, Array]]:
    """Arrays in the place of one: its shape with numbers out of any range, some among good ones, and other shapes."""
    limits = np.iinfo(array.dtype)
    values = array.values
    high = int(values.max()) if values.size else 0
    numbers = [0, 1, -1, -2, high + 1, high + 2, -high - 1, 127, 128, 10**4, 30_000_000, 2**31 - 1, -(2**31), 2**40]
    if SANITIZED:
        numbers.remove(30_000_000)  # as many parts of a tensor take minutes there, and 10**4 is as far out of range
    numbers = [n for n in (*numbers, limits.min, limits.max) if limits.min <= n <= limits.max]
    for number in numbers:
        yield f"all {number}", Array(np.full_like(values, number), array.dtype)
    for _ in range(4):
        if values.size > 1:
            some = values.copy()
            some.reshape(-1)[draw.randrange(values.size)] = draw.choice(numbers)
            yield "one among good ones", Array(some, array.dtype)
    some = np.array([draw.choice(numbers) for _ in range(values.size)], values.dtype)
    yield "any", Array(some.reshape(values.shape), array.dtype)
    yield "backwards", Array(values.reshape(-1)[::-1].reshape(values.shape).copy(), array.dtype)
    one = values.reshape(-1)[0].reshape(()) if values.size else np.zeros((), values.dtype)
    yield "one number", Array(one, array.dtype)
    yield "nothing", Array(np.zeros((0,), values.dtype), array.dtype)
    yield "one dimension more", Array(values[None].copy(), array.dtype)
    if values.ndim:
        yield "no rows", Array(values[:0].copy(), array.dtype)
        yield "one row less", Array(values[:-1].copy(), array.dtype)
        yield "twice", Array(np.concatenate([values, values]), array.dtype)


def emptied(sample: OpSample, kept: Place) -> Iterator[OpSample]:
    """The sample with another of its tensors without elements."""
    for place, array in arrays(sample):
        if place != kept:
            yield replaced(sample, place, Array(np.zeros((0,), array.values.dtype), array.dtype))


def replaced(sample: OpSample, place: Place, by: Array | float) -> OpSample:
    args, kwargs = list(sample.args), dict(sample.kwargs)
    where: Any = args if isinstance(place[0], int) else kwargs
    if len(place) == 1:
        where[place[0]] = by
    else:
        items = list(where[place[0]])
        items[place[1]] = by  # type: ignore[index]
        where[place[0]] = items
    return OpSample(tuple(args), kwargs)


def calls(info: OpInfo) -> Iterator[tuple[str, OpSample]]:
    draw = random.Random(zlib.crc32(info.name.encode()))
    for sample, place, array in places(info):
        name = argument_at(info, place)
        for what, values in wild(array, draw):
            yield f"{name} {what} of {sample}", replaced(sample, place, values)
            if what in ("one number", "nothing"):
                for other in emptied(sample, place):
                    yield f"{name} {what}, another without elements, of {sample}", replaced(other, place, values)


Calls = Callable[[OpInfo], Iterator[tuple[str, OpSample]]]


def run(journal: mmap.mmap, names: list[str], words: list[str], calls: Calls = calls) -> list[str]:
    device = next((w.partition("=")[2] for w in words if w.startswith("--device=")), "cpu")
    failures, verbose = [], len(names) == 1
    for name in names:
        function = function_of(TABLE[name])
        with Watchdog() as watchdog:
            for what, sample in calls(TABLE[name]):
                journal[:] = f"{name}: {what}".encode()[:250].ljust(256, b"\0")
                if verbose:
                    print(what, flush=True)
                try:
                    args, kwargs = arguments(sample, device, TABLE[name])
                    with at_most():
                        result = function(*args, **kwargs)
                        for r in result if isinstance(result, (list, tuple)) else [result]:
                            if device != "cpu" and isinstance(r, tp.Tensor):
                                r.cpu()
                except (*EXPECTED, Ended):  # or a count that takes minutes
                    pass
                except BaseException as error:
                    failures.append(f"{name}: {what}: {type(error).__name__}: {error}")
                watchdog.tell()
    return failures


if __name__ == "__main__":
    sys.exit(start(run, sorted(TABLE)))
