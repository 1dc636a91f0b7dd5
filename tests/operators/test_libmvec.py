"""Functions that glibc has as vectors since 2.35, on a system that has them not: as right, for every capability."""

import json
import math
import os
import platform
import subprocess
import sys

import numpy as np
import pytest

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="libmvec's names are those of x86-64")

OF_ONE = "exp2 expm1 log2 log10 log1p tan asin acos atan sinh cosh tanh asinh acosh atanh erf erfc".split()
OF_TWO = ["atan2", "hypot"]
PROGRAM = """
import json, sys
import tensorpy as tp
one, two = json.loads(sys.argv[1])
result = {}
for dtype in (tp.float32, tp.float64):
    x = tp.linspace(-4, 4, 4099, dtype=dtype)
    inside, above = x / 4.01, x.abs() + 1
    for name in one:
        given = inside if name in ("asin", "acos", "atanh") else above if name in ("acosh", "log2", "log10") else x
        given = inside if name == "log1p" else given
        result[f"{name} {dtype}"] = (given.tolist(), None, getattr(tp, name)(given).tolist())
    for name in two:
        result[f"{name} {dtype}"] = (x.tolist(), x.flip(0).tolist(), getattr(tp, name)(x, x.flip(0)).tolist())
print(json.dumps(result))
"""


def exactly(name, given, other):
    """In more bits than either dtype has."""
    x = np.array(given, np.longdouble)
    if name in ("erf", "erfc"):  # NumPy has neither, SciPy's are some units off
        return np.array([getattr(math, name)(number) for number in given], np.longdouble)
    if other is not None:
        named = {"atan2": "arctan2"}.get(name, name)
        return getattr(np, named)(x, np.array(other, np.longdouble))
    return getattr(np, name.replace("a", "arc", 1) if name[0] == "a" else name)(x)


def values(capability, libmvec):
    environment = {**os.environ, "TENSORPY_CPU_CAPABILITY": capability, "TENSORPY_LIBMVEC": libmvec}
    command = [sys.executable, "-c", PROGRAM, json.dumps([OF_ONE, OF_TWO])]
    return json.loads(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)


@pytest.mark.parametrize("capability", ["baseline", "avx2", "avx512"])
def test_stand_ins_are_as_right(capability):
    for key, (given, other, got) in values(capability, "0").items():
        name, dtype = key.split()
        kind = np.dtype(dtype.removeprefix("tensorpy."))
        want = exactly(name, given, other)
        spacing = np.spacing(np.abs(want.astype(kind)).clip(np.finfo(kind).tiny)).astype(np.longdouble)
        error = np.abs(np.array(got, np.longdouble) - want) / spacing
        assert error.max() <= 4, (key, capability, float(error.max()), given[int(error.argmax())])


def test_library_is_taken_where_it_has_them():
    """Its last bits are others than the stand-ins': a load that found nothing would go unseen otherwise."""
    if tuple(map(int, platform.libc_ver()[1].split("."))) < (2, 35):
        pytest.skip("this glibc has none of them")
    assert values("avx2", "") != values("avx2", "0")
