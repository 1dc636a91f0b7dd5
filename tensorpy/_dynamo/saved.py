"""Saved plans: what a function computes, in a file that C programs run too (tensorpy.compiler.save_plan)."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy.autograd.grad_mode import no_grad


def _write(path: str | os.PathLike[str], data: bytes) -> None:
    """The whole file, or the one that was there."""
    target = Path(path)
    part = target.with_name(f".{target.name}.{os.getpid()}.{threading.get_ident()}")
    try:
        part.write_bytes(data)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def save(fn: Callable[..., Any], args: tuple[Tensor, ...], path: str | os.PathLike[str]) -> None:
    """See tensorpy.compiler.save_plan."""
    with no_grad():
        fn(*args)  # what it makes once, at its first call, is there before it is written down
        data = _C._save_plan(fn, args)
    _write(path, data)


class SavedPlan:
    """A function of tensors that was saved: `plan(*inputs)` gives a tensor, or a tuple where there are several.

    Attributes:
        device: where it runs, and where its outputs are
        inputs: sizes and dtype of each input
        outputs: sizes and dtype of each output
    """

    def __init__(self, path: str | os.PathLike[str], device: Any = None) -> None:
        self.device: _C.device = _C.device("cpu" if device is None else device)
        self._plan = _C._load_plan(Path(path).read_bytes(), self.device)
        self.inputs, self.outputs = _C._plan_ends(self._plan)

    def __call__(self, *inputs: Tensor) -> Tensor | tuple[Tensor, ...]:
        """The outputs; the inputs are tensors of the CPU or of its device, of the sizes and dtypes of `self.inputs`."""
        for x in inputs:
            if not isinstance(x, Tensor):
                raise TypeError(f"a saved plan takes tensors, not {type(x).__name__}")
        outputs = tuple(_C.empty(sizes, dtype=dtype, device=self.device) for sizes, dtype in self.outputs)
        _C._run_plan(self._plan, tuple(x.resolve_conj().resolve_neg().contiguous() for x in inputs), outputs)
        return outputs[0] if len(outputs) == 1 else outputs

    def __repr__(self) -> str:
        def shown(ends: list[tuple[tuple[int, ...], Any]]) -> str:
            return ", ".join(f"{str(dtype).removeprefix('tensorpy.')}{list(sizes)}" for sizes, dtype in ends)

        return f"SavedPlan({shown(self.inputs)} -> {shown(self.outputs)})"
