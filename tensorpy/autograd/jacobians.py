"""Jacobians of a function of tensors, as matrices: an input's elements by an output's elements.

`gradcheck` compares numbers and stops at the first that differ; programs that look at the matrices themselves ask for
them here, by the names that PyTorch has for them in torch.autograd.gradcheck.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy._utils import unravel
from tensorpy.autograd.grad_mode import no_grad


def _iter_tensors(x: Any, only_requiring_grad: bool = False) -> Iterator[Tensor]:
    """The tensors of nested lists and tuples."""
    if isinstance(x, Tensor):
        if x.requires_grad or not only_requiring_grad:
            yield x
    elif hasattr(x, "__iter__") and not isinstance(x, str):
        for item in x:
            yield from _iter_tensors(item, only_requiring_grad)


def _as_tuple(x: Any) -> tuple[Any, ...]:
    return x if isinstance(x, tuple) else tuple(x) if isinstance(x, list) else (x,)


def _differentiable_outputs(x: Any) -> tuple[Tensor, ...]:
    return tuple(o for o in _as_tuple(x) if o.requires_grad)


def _columns(function: Callable[..., Any], inputs: Any, moved: Tensor, eps: float) -> Iterator[list[Tensor]]:
    """For each element of a tensor that the function reads: the derivatives of the outputs, flat, by that element.

    The derivative by a complex element is that of the real direction and of the imaginary one, joined as the matrix of
    PyTorch's convention: with real outputs (d/dx + i d/dy), with complex ones the real direction's.
    """
    memory = moved.detach()
    for element in range(moved.numel()):
        place = memory[unravel(element, memory.shape)]
        original = place.item()

        def along(step: complex, place: Tensor = place, original: complex = original) -> list[Tensor]:
            ends = []
            for sign in (1, -1):
                place.fill_(original + sign * step)
                with no_grad():
                    ends.append([o.detach().clone().reshape(-1) for o in _as_tuple(function(*inputs))])
            place.fill_(original)
            for a, b in zip(*ends, strict=True):
                if a.shape != b.shape:
                    raise RuntimeError("the function's outputs change their sizes as its inputs change their values")
            return [(a - b) / (2 * eps) for a, b in zip(*ends, strict=True)]

        found = along(eps)
        if moved.is_complex():
            found = [a if a.is_complex() else _C.complex(a, b) for a, b in zip(found, along(1j * eps), strict=True)]
        yield found


def get_numerical_jacobian_wrt_specific_input(
    fn: Callable[..., Any],
    input_idx: int,
    inputs: Any,
    outputs: Any,
    eps: float,
    input: Tensor | None = None,
    is_forward_ad: bool = False,
) -> tuple[Tensor, ...]:
    """The Jacobian of each output by one input: central differences with steps of eps."""
    moved = list(_iter_tensors(inputs))[input_idx] if input is None else input
    found = list(_columns(fn, _as_tuple(inputs), moved, eps))
    result = []
    for k, output in enumerate(outputs):
        dtype = output.dtype if output.is_complex() or not moved.is_complex() else moved.dtype
        matrix = _C.zeros(moved.numel(), output.numel(), dtype=dtype, device=output.device)
        for row, columns in enumerate(found):
            matrix[row] = columns[k]
        result.append(matrix)
    return tuple(result)


def _refuse_complex(name: str, outputs: Any) -> None:
    if any(o.is_complex() for o in outputs):
        raise ValueError(
            f"Expected output to be non-complex. {name} no longer supports functions that return complex outputs."
        )


def _get_numerical_jacobian(
    fn: Callable[..., Any],
    inputs: Any,
    outputs: Any = None,
    target: Any = None,
    eps: float = 1e-3,
    is_forward_ad: bool = False,
) -> list[tuple[Tensor, ...]]:
    """For each tensor of `target` (the inputs, where None) that wants a gradient, the Jacobians of the outputs."""
    given = _as_tuple(inputs)
    outputs = _as_tuple(fn(*given)) if outputs is None else outputs
    if not is_forward_ad:
        _refuse_complex("get_numerical_jacobian", outputs)
    return [
        get_numerical_jacobian_wrt_specific_input(fn, i, given, outputs, eps, x, is_forward_ad)
        for i, x in enumerate(_iter_tensors(inputs if target is None else target, True))
    ]


def _private(name: str) -> None:
    warnings.warn(
        f"`{name}` was part of PyTorch's private API and not meant to be exposed: use gradcheck or torch.func.jacrev.",
        FutureWarning,
        stacklevel=3,
    )


def _check_scale(name: str, grad_out: float) -> None:
    if grad_out != 1.0:
        raise ValueError(f"Expected grad_out to be 1.0. {name} no longer supports values of grad_out != 1.0.")


def get_numerical_jacobian(
    fn: Callable[..., Any], inputs: Any, target: Any = None, eps: float = 1e-3, grad_out: float = 1.0
) -> tuple[Tensor, ...]:
    """The Jacobian of the first output of a function that takes its inputs as one tuple, by each of them."""
    _private("get_numerical_jacobian")
    _check_scale("get_numerical_jacobian", grad_out)
    found = _get_numerical_jacobian(lambda *values: fn(values), inputs, None, target, eps)
    return tuple(of_outputs[0] for of_outputs in found)


def get_analytical_jacobian(
    inputs: Any, output: Tensor, nondet_tol: float = 0.0, grad_out: float = 1.0
) -> tuple[tuple[Tensor, ...], bool, bool, bool]:
    """The Jacobian of an output by each input as backward gives it; whether a second time gives the same within
    nondet_tol; whether the gradients have the inputs' sizes; and their dtypes."""
    _private("get_analytical_jacobian")
    _check_scale("get_analytical_jacobian", grad_out)
    _refuse_complex("get_analytical_jacobian", (output,))
    wanted = [t for t in _iter_tensors(inputs) if t.requires_grad]
    sizes = dtypes = True
    runs: list[list[Tensor]] = []
    for _ in range(2):
        matrices = [_C.zeros(x.numel(), output.numel(), dtype=x.dtype, device=x.device) for x in wanted]
        for column in range(output.numel()):
            seed = _C.zeros(output.numel(), dtype=output.dtype, device=output.device)
            seed[column] = 1
            grads = _C._run_backward((output,), (seed.reshape(output.shape),), True, False, tuple(wanted), False)
            for matrix, x, grad in zip(matrices, wanted, grads, strict=True):
                if grad is None:
                    continue
                sizes, dtypes = sizes and grad.shape == x.shape, dtypes and grad.dtype == x.dtype
                if grad.shape == x.shape:
                    matrix[:, column] = grad.detach().reshape(-1)
        runs.append(matrices)
    same = all(not a.numel() or bool((a - b).abs().max() <= nondet_tol) for a, b in zip(runs[0], runs[1], strict=True))
    return tuple(runs[0]), same, sizes, dtypes
