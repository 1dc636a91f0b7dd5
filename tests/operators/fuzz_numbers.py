"""Calls every operator with the numbers at the ends of a dtype: in each of its tensors, and as each of its scalars.

`python fuzz_numbers.py JOURNAL [PART/PARTS] [NAME...]` takes the samples of the table. What is computed of such numbers
is PyTorch's, and other tests compare it; here a place in memory, a count or a size may come of them, or a sum that no
integer holds, which the sanitizers see. Each call returns or raises one of EXPECTED; a crash or a hang ends the
program, and JOURNAL says what was running.
"""

from __future__ import annotations

import functools
import random
import sys
import zlib
from collections.abc import Iterator

import numpy as np
from fuzz_indices import Place, arrays, replaced, run
from fuzz_operators import start
from programs import SANITIZED

from tensorpy.testing.samples import TABLE, OpInfo
from tensorpy.testing.samples.table import Array, OpSample

SAMPLES = 1 if SANITIZED else 2  # of one operator and dtype
DTYPES = ("float32", "float64", "int64", "int32", "int8", "uint8", "complex64")
NUMBERS = [float("nan"), float("inf"), -float("inf"), 3e38, -3e38, 1e10, -0.5, 1e-45]
SCALARS = [2**63 - 1, -(2**63), 2**31, -1, 0, *NUMBERS]


def ends(array: Array) -> list[float]:
    """Numbers that arrays of a dtype are filled with; none for bool."""
    kind = array.values.dtype.kind
    if kind in "fc":
        return NUMBERS
    if kind not in "iu":
        return []
    limits = np.iinfo(array.values.dtype)
    return [int(limits.min), int(limits.max), int(limits.max) - 1, 0, 1]


def filled(array: Array, draw: random.Random) -> Iterator[tuple[str, Array]]:
    """Arrays in the place of one: all its numbers at an end, and some of them."""
    numbers, values = ends(array), array.values
    for number in numbers:
        yield f"all {number}", Array(np.full_like(values, number), array.dtype)
    if numbers and values.size > 1:
        some = values.copy()
        for i in range(0, values.size, 2):
            some.reshape(-1)[i] = draw.choice(numbers)
        yield "some", Array(some, array.dtype)


def numbers_of(info: OpInfo, sample: OpSample) -> Iterator[Place]:
    """Where a sample has a number that may be of any kind."""
    arguments = {a.name: str(a.type) for a in info.op.schema.arguments}
    names = [*list(arguments)[: len(sample.args)], *sample.kwargs]
    for i, name in enumerate(names):
        if arguments.get(name) in ("Scalar", "Scalar?", "float", "float?"):
            yield (i if i < len(sample.args) else name,)


def calls(info: OpInfo) -> Iterator[tuple[str, OpSample]]:
    draw = random.Random(zlib.crc32(info.name.encode()))
    for dtype in (d for d in DTYPES if d in info.dtypes):
        for sample in info.samples(dtype, SAMPLES):
            for place, array in arrays(sample):
                for what, values in filled(array, draw):
                    yield f"{dtype}: {place} {what} of {sample}", replaced(sample, place, values)
            for place in numbers_of(info, sample):
                for number in SCALARS:
                    yield f"{dtype}: {place} is {number} of {sample}", replaced(sample, place, number)


if __name__ == "__main__":
    sys.exit(start(functools.partial(run, calls=calls), sorted(TABLE)))
