"""What gradcheck asks of backward beside the numbers: layouts, batches of gradients, gradients of zero and none."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy.autograd.function import Function


class _Undefined(Function):
    """Hands tensors on, whose gradients end here."""

    @staticmethod
    def forward(ctx: Any, *inputs: Tensor) -> tuple[Tensor, ...]:
        return inputs

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return (None,) * len(grads)


def _gradients(outputs: Sequence[Tensor], seeds: Sequence[Tensor], wanted: Sequence[Tensor]) -> Sequence[Tensor | None]:
    return _C._run_backward(tuple(outputs), tuple(seeds), True, False, tuple(wanted), False)


def layout_problem(outputs: Sequence[Tensor], wanted: Sequence[Tensor]) -> str | None:
    """None, or which layout of a gradient is neither strided nor its input's."""
    for grad, x in zip(_gradients(outputs, [_C.zeros_like(o) for o in outputs], wanted), wanted, strict=True):
        if grad is None or grad.layout is _C.strided:
            continue
        if grad.layout is not x.layout:
            return f"grad is incorrect layout ({grad.layout} is not {x.layout})"
        if grad.layout is _C.sparse_coo:
            for what in ("sparse_dim", "dense_dim"):
                if getattr(grad, what)() != getattr(x, what)():
                    return f"grad is sparse tensor, but has incorrect {what}"
    return None


def batched_problem(
    outputs: Sequence[Tensor], wanted: Sequence[Tensor], direction: Callable[[Tensor, int], Tensor], atol: float
) -> str | None:
    """None, or how gradients of two at once, under vmap, are not those of one at a time."""
    from tensorpy.func.vmap import vmap

    failed = "gradcheck or gradgradcheck failed while testing batched gradient computation"
    for i, output in enumerate(outputs):
        seeds = [direction(output.detach(), i + k) for k in (3, 4)]
        alone = [_gradients((output,), (seed,), wanted) for seed in seeds]
        at = [k for k, grad in enumerate(alone[0]) if grad is not None]
        some = [wanted[k] for k in at]

        def of_seed(seed: Tensor, output: Tensor = output, some: list[Tensor] = some) -> tuple[Tensor | None, ...]:
            return tuple(_gradients((output,), (seed,), some))

        try:
            together: Any = vmap(of_seed)(_C.stack(seeds))
        except RuntimeError as e:
            return f"While computing batched gradients, got: {e}\n\n{failed}"
        for k, found in zip(at, together, strict=True):
            for row, grads in enumerate(alone):
                one = grads[k]
                if one is not None and not _C.allclose(found[row], one, atol=atol, equal_nan=True):
                    return (
                        f"For output {i} and input {k}: {found[row].tolist()} under vmap, {one.tolist()} alone\n\n"
                        f"{failed}"
                    )
    return None


def zero_problem(outputs: Sequence[Tensor], wanted: Sequence[Tensor]) -> str | None:
    """None, or that zeros for the outputs do not give zeros for the inputs."""
    grads = _gradients(outputs, [_C.zeros_like(o) for o in outputs], wanted)
    return None if _are_zero(grads) else "backward not multiplied by grad_output"


def undefined_problem(outputs: Sequence[Tensor], wanted: Sequence[Tensor]) -> str | None:
    """None, or that backward does not take outputs without a gradient, all of them or one, for outputs of zeros."""
    for some in [outputs] + ([[o] for o in outputs] if len(outputs) > 1 else []):
        ends = _Undefined.apply(*some)
        try:
            grads = _gradients(ends, [_C.zeros_like(o) for o in ends], wanted)
        except RuntimeError as e:
            warnings.warn(
                "Backwards compatibility: New undefined gradient support checking feature is on; "
                "check_undefined_grad=False switches it off",
                stacklevel=5,
            )
            return f"Expected backward function to handle undefined output grads, got: {e}"
        if not _are_zero(grads):
            return (
                "Expected all input grads to be undefined or zero when all output grads are undefined or zero: a "
                "backward asks which of its gradients are None"
            )
    return None


def _are_zero(grads: Sequence[Tensor | None]) -> bool:
    return all(grad is None or not bool(grad.count_nonzero()) for grad in grads)


__all__ = ["batched_problem", "layout_problem", "undefined_problem", "zero_problem"]
