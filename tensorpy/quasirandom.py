"""Sobol' sequences: points that fill the unit cube more evenly than random ones.

I. M. Sobol', 1967; direction numbers of S. Joe and F. Y. Kuo, 2008, which SciPy has, so it has to be installed;
scrambled by A. B. Owen's method as J. Matoušek has it. The steps are operators: `_sobol_engine_draw` and its kin.
"""

from __future__ import annotations

from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor

__all__ = ["SobolEngine"]

_ops: Any = _C


class SobolEngine:
    """Draws points of the sequence, in order. `scramble` shifts and mixes their digits at random: with a `seed`, alike
    each time.

    Arguments:
        dimension: how many dimensions points have
        seed: the seed

    Raises: ValueError for a dimension out of [1, MAXDIM].

    Example:
        >>> tp.quasirandom.SobolEngine(2).draw(2)
        tensor([[0.0000, 0.0000],
                [0.5000, 0.5000]])
    """

    dimension: int
    num_generated: int
    quasi: Any
    scramble: bool
    seed: int | None
    shift: Any
    sobolstate: Any
    MAXBIT = 30
    MAXDIM = 21201

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        if dimension > self.MAXDIM or dimension < 1:
            raise ValueError(f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}]")
        self.dimension, self.scramble, self.seed = dimension, scramble, seed
        self.sobolstate = _ops.zeros(dimension, self.MAXBIT, dtype=_C.int64, device="cpu")
        _ops._sobol_engine_initialize_state_(self.sobolstate, dimension)
        self.shift = _ops.zeros(dimension, dtype=_C.int64, device="cpu")
        if scramble:
            self._scramble()
        self.quasi = self.shift.clone()
        self.num_generated = 0
        self._first_point = (self.quasi / 2**self.MAXBIT).reshape(1, -1)

    def _scramble(self) -> None:
        """Draws a shift and a lower triangular matrix of bits for each dimension."""
        generator = None if self.seed is None else _C.Generator().manual_seed(self.seed)
        options: dict[str, Any] = {"generator": generator, "device": "cpu"}
        bits = _ops.randint(2, (self.dimension, self.MAXBIT), **options)
        self.shift = (bits * 2 ** _ops.arange(self.MAXBIT, device="cpu")).sum(1)
        ltm = _ops.randint(2, (self.dimension, self.MAXBIT, self.MAXBIT), **options).tril()
        _ops._sobol_engine_scramble_(self.sobolstate, ltm, self.dimension)

    def _after(self, n: int) -> tuple[int, int]:
        """How many steps the next n points are, and after which; the first point is no step."""
        first = self.num_generated == 0
        return n - first, 0 if first else self.num_generated - 1

    def draw(self, n: int = 1, out: Tensor | None = None, dtype: Any = None) -> Tensor:
        """The next n points, [n, dimension]."""
        dtype = dtype if dtype is not None else _C.get_default_dtype()
        steps, after = self._after(n)
        made, self.quasi = _ops._sobol_engine_draw(self.quasi, steps, self.sobolstate, self.dimension, after, dtype)
        if self.num_generated == 0:
            made = _ops.cat([self._first_point.to(dtype), made])
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
        self.quasi.copy_(self.shift)
        self.num_generated = 0
        return self

    def fast_forward(self, n: int) -> SobolEngine:
        """Leaves out n points."""
        steps, after = self._after(n)
        _ops._sobol_engine_ff_(self.quasi, steps, self.sobolstate, self.dimension, after)
        self.num_generated += n
        return self

    def __repr__(self) -> str:
        shown = [f"dimension={self.dimension}"]
        if self.scramble:
            shown.append("scramble=True")
        if self.seed is not None:
            shown.append(f"seed={self.seed}")
        return f"{type(self).__name__}({', '.join(shown)})"
