"""Sobol' sequences: points that fill the unit cube more evenly than random ones.

I. M. Sobol', 1967; direction numbers of S. Joe and F. Y. Kuo, 2008; scrambled by A. B. Owen's method as J. Matoušek has
it. SciPy draws them (scipy.stats.qmc), so it has to be installed.
"""

from __future__ import annotations

import importlib
import warnings
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy.random import initial_seed

__all__ = ["SobolEngine"]


class SobolEngine:
    """Draws points of the sequence, in order. `scramble` shifts and mixes their digits at random: with a `seed`, alike
    each time."""

    MAXBIT = 30
    MAXDIM = 21201

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        if dimension > self.MAXDIM or dimension < 1:
            raise ValueError(f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}]")
        self.dimension, self.scramble, self.seed = dimension, scramble, seed
        self.reset()

    def _points(self) -> Any:
        try:
            qmc: Any = importlib.import_module("scipy.stats.qmc")
        except ImportError as error:
            raise ImportError("SobolEngine: SciPy draws the points, and it is not installed") from error
        seed = self.seed if self.seed is not None or not self.scramble else initial_seed()
        return qmc.Sobol(self.dimension, scramble=self.scramble, bits=self.MAXBIT, seed=seed)

    def draw(self, n: int = 1, out: Tensor | None = None, dtype: Any = None) -> Tensor:
        """The next n points, [n, dimension]."""
        dtype = dtype if dtype is not None else _C.get_default_dtype()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # SciPy's, about numbers that are no powers of two
            made = _C.from_numpy(self._sobol.random(n)).to(dtype)
        self.num_generated += n
        if out is None:
            return made
        return out.resize_(made.shape).copy_(made)

    def draw_base2(self, m: int, out: Tensor | None = None, dtype: Any = None) -> Tensor:
        """The next 2 ** m points: balanced, if 0 or a power of two have been drawn before that make one with these."""
        n = 2**m
        total = self.num_generated + n
        if total & (total - 1):
            raise ValueError(
                f"draw_base2: after {self.num_generated} points these {n} do not make a power of two of them, which "
                "Sobol' points are balanced for; draw() takes any number"
            )
        return self.draw(n, out, dtype)

    def reset(self) -> SobolEngine:
        """Begins again."""
        self._sobol, self.num_generated = self._points(), 0
        return self

    def fast_forward(self, n: int) -> SobolEngine:
        """Leaves out n points."""
        self._sobol.fast_forward(n)
        self.num_generated += n
        return self

    def __repr__(self) -> str:
        shown = [f"dimension={self.dimension}"]
        if self.scramble:
            shown.append("scramble=True")
        if self.seed is not None:
            shown.append(f"seed={self.seed}")
        return f"{type(self).__name__}({', '.join(shown)})"
