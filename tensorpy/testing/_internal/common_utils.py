"""A TestCase that compares tensors, under the name that libraries' own tests import."""

from __future__ import annotations

import unittest
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tensorpy._C import Tensor, as_tensor
from tensorpy.random import fork_rng
from tensorpy.testing import assert_close, make_tensor

__all__ = ["TestCase", "freeze_rng_state", "make_tensor", "run_tests"]


class TestCase(unittest.TestCase):
    """assertEqual of tensors, and of containers of them, is assert_close; of other things unittest's."""

    def assertEqual(
        self,
        first: Any,
        second: Any,
        msg: Any = None,
        *,
        atol: float | None = None,
        rtol: float | None = None,
        **options: Any,
    ) -> None:
        x, y = first, second
        each = {"atol": atol, "rtol": rtol, **options}
        if isinstance(x, dict) and isinstance(y, dict):
            super().assertEqual(x.keys(), y.keys(), msg)
            for key in x:
                self.assertEqual(x[key], y[key], msg, **each)
        elif isinstance(x, (list, tuple)) and isinstance(y, (list, tuple)):
            super().assertEqual(len(x), len(y), msg)
            for a, b in zip(x, y, strict=True):
                self.assertEqual(a, b, msg, **each)
        elif isinstance(x, (Tensor, float, complex)) or isinstance(y, (Tensor, float, complex)):
            exact = isinstance(x, Tensor) and options.get("exact_dtype", True)
            known = {"equal_nan": True, "check_device": False, "check_dtype": exact}
            x, y = (v if not isinstance(o, Tensor) or isinstance(v, Tensor) else as_tensor(v, dtype=o.dtype)
                    for v, o in ((x, y), (y, x)))  # fmt: skip
            if (atol is None) != (rtol is None):
                atol, rtol = atol or 0.0, rtol or 0.0
            assert_close(x, y, atol=atol, rtol=rtol, msg=msg, **known)
        elif atol is not None or rtol is not None:
            bound = (atol or 0.0) + (rtol or 0.0) * abs(y)
            self.assertLessEqual(abs(x - y), bound, msg)
        else:
            super().assertEqual(x, y, msg)


@contextmanager
def freeze_rng_state() -> Iterator[None]:
    """A context after which the default generator is where it was before."""
    with fork_rng():
        yield


def run_tests() -> None:
    """unittest.main of the program."""
    unittest.main()
