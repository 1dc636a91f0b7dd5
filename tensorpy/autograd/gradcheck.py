"""Checks of gradients against finite differences: the whole Jacobian, by its real and imaginary parts.

A real function f of n inputs and m outputs is called 2n times for the central differences, and backward runs m times.
Complex inputs are moved along both axes; with L real, PyTorch's convention is that grad = dL/dx + i dL/dy.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy._utils import unravel
from tensorpy.autograd.gradcheck_backward import batched_problem, layout_problem, undefined_problem, zero_problem
from tensorpy.autograd.gradcheck_sparse import over_values
from tensorpy.autograd.jacobians import (
    _as_tuple,
    _differentiable_outputs,
    _get_numerical_jacobian,
    _iter_tensors,
    get_analytical_jacobian,
    get_numerical_jacobian,
    get_numerical_jacobian_wrt_specific_input,
)


class GradcheckError(RuntimeError):
    """Gradients differ from finite differences."""


_NOT_REPEATED = (
    "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times gives different "
    "values. The tolerance for nondeterminism was {}."
)


def _differentiable(outputs: Any) -> list[Tensor]:
    values = (outputs,) if isinstance(outputs, Tensor) else tuple(outputs)
    return [o for o in values if isinstance(o, Tensor) and o.requires_grad]


def _tensors(outputs: Any) -> list[Tensor]:
    values = (outputs,) if isinstance(outputs, Tensor) else tuple(outputs)
    return [o for o in values if isinstance(o, Tensor) and (o.is_floating_point() or o.is_complex())]


def _numbers(t: Tensor) -> list[Any]:
    """The elements of a tensor as Python numbers; a class that answers for its tensors is asked for each."""
    flat = t.detach().reshape(-1)
    own, plain = (getattr(cls, "__torch_dispatch__", None) for cls in (type(t), Tensor))
    if own is not plain:
        return [flat[i].item() for i in range(flat.numel())]
    return list(flat.tolist())


def _checked_inputs(inputs: Any) -> tuple[tuple[Any, ...], list[int]]:
    values = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    chosen = [i for i, v in enumerate(values) if isinstance(v, Tensor) and v.requires_grad]
    if not chosen:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them have requires_grad=True."
        )
    for i in chosen:
        if values[i].dtype not in (_C.float64, _C.complex128):
            warnings.warn(
                f"Input #{i} requires gradient and is not a double precision floating point or complex. This check "
                "will likely fail: differences of numbers that are rounded so early are no derivatives.",
                stacklevel=3,
            )
    return values, chosen


def _steps(t: Tensor, eps: float) -> list[complex]:
    return [eps, 1j * eps] if t.is_complex() else [eps]


def _check_alike(ends: Sequence[Sequence[Tensor]], eps: float) -> None:
    """What a function gives at two places near each other differs in its numbers alone."""
    for one, two in zip(*ends, strict=False):
        for what, a, b in (("shape", one.shape, two.shape), ("dtype", one.dtype, two.dtype)):
            if a != b:
                raise AssertionError(
                    f"Expected `func` to return outputs with the same {what} when inputs are perturbed by {eps}, but "
                    f"got: {what}s {a} and {b}."
                )


def _numeric(
    function: Callable[..., Any], values: Sequence[Any], which: int, eps: float, atleast: int
) -> list[list[Any]]:
    """For each real direction of the input (element by element, real then imaginary): the derivatives of all outputs,
    in one list. The input is changed in place, below the graph, and put back."""
    target = values[which]
    flat = _C.as_strided(target.data, (target.numel(),), (1,)) if target.is_contiguous() else None
    rows = []
    for element in range(target.numel()):
        place = flat[element] if flat is not None else target.data[unravel(element, target.shape)]
        original = place.item()
        for step in _steps(target, eps):
            ends = []
            try:
                for sign in (1, -1):
                    place.fill_(original + sign * step)
                    ends.append([o.detach().clone() for o in _tensors(function(*values))[:atleast]])
            finally:
                place.fill_(original)
            _check_alike(ends, eps)
            columns = ([n for o in end for n in _numbers(o)] for end in ends)
            rows.append([(a - b) / (2 * eps) for a, b in zip(*columns, strict=True)])
    return rows


def _analytic(outputs: list[Tensor], inputs: list[Tensor]) -> list[list[list[Any]]]:
    """For each input, for each real direction of the outputs: the gradient that backward gives, element by element."""
    result: list[list[list[Any]]] = [[] for _ in inputs]
    for output in outputs:
        for element in range(output.numel()):
            for direction in (1, 1j) if output.is_complex() else (1,):
                seed = _C.zeros(output.numel(), dtype=output.dtype, device=output.device)
                seed[element] = direction
                grads = _C._run_backward((output,), (seed.reshape(output.shape),), True, False, tuple(inputs), False)
                for i, (g, x) in enumerate(zip(grads, inputs, strict=True)):
                    if g is not None and (g.shape != x.shape or g.dtype != x.dtype):
                        raise GradcheckError(
                            f"gradient {i} is {g.dtype}{list(g.shape)} for an input {x.dtype}{list(x.shape)}"
                        )
                    result[i].append([0] * x.numel() if g is None else _numbers(g))
    return result


def _close(a: complex, b: complex, atol: float, rtol: float) -> bool:
    if a != a or b != b:
        return a != a and b != b
    return a == b or abs(a - b) <= atol + rtol * abs(b)


def _noise(value: complex, eps: float) -> float:
    """What a few rounding errors of an output make of a central difference, which divides them by the step."""
    return 4 * 2.0**-53 * abs(value) / eps if math.isfinite(abs(value)) else 0.0


def _largest_noise(outputs: Sequence[Tensor], eps: float) -> float:
    return _noise(max((float(o.detach().abs().max()) for o in outputs if o.numel()), default=0.0), eps)


def _output_directions(outputs: list[Tensor]) -> list[tuple[int, bool]]:
    """(place in the flat list of all output elements, imaginary) in the order of _analytic's rows."""
    places, start = [], 0
    for o in outputs:
        for element in range(o.numel()):
            places += [(start + element, False)] + ([(start + element, True)] if o.is_complex() else [])
        start += o.numel()
    return places


def _compare(
    numeric: list[list[Any]],
    analytic: list[list[Any]],
    places: list[tuple[int, bool]],
    complex_input: bool,
    atol: list[float],
    rtol: float,
) -> tuple[int, bool, str] | None:
    """None, or where the two differ most, imaginary parts of outputs first: the place among all outputs' elements, and
    whether it is their imaginary part, and words. `atol` is that of each output element."""
    worst = None
    per = 2 if complex_input else 1
    for row, (place, imaginary) in sorted(enumerate(places), key=lambda at: not at[1][1]):
        if worst and worst[0] != imaginary:
            break
        for direction, change in enumerate(numeric):
            moved = change[place]
            expected = moved.imag if imaginary else (moved.real if isinstance(moved, complex) else moved)
            got = analytic[row][direction // per]
            got = (got.imag if direction % per else complex(got).real) if complex_input else got
            if not _close(got, expected, atol[place], rtol):
                gap = abs(got - expected)
                if worst is None or not gap <= worst[1]:
                    worst = (imaginary, gap, place, direction // per, got, expected)
    if worst is None:
        return None
    imaginary, _, place, element, got, expected = worst
    return (
        place,
        imaginary,
        f"output element {place} by input element {element}: analytical {got!r}, numerical {expected!r}",
    )


def _direction(t: Tensor, number: int) -> Tensor:
    """A direction of length 1 without zeros, the same for the same sizes. Of complex numbers both parts are there."""
    places = _C.arange(t.numel(), dtype=_C.float64)
    real = 0.5 + (places * 0.754877666 + number * 0.569840291).frac()
    whole = _C.complex(real, 0.5 + (places * 0.328172 + number * 0.61).frac()) if t.is_complex() else real
    length = float(whole.abs().square().sum()) ** 0.5
    return (whole / length if length else whole).to(device=t.device, dtype=t.dtype).reshape(t.shape)


def _moved(func: Callable[..., Any], values: Sequence[Any], which: int, along: Tensor, eps: float) -> list[Tensor]:
    """The derivatives of the outputs along a direction of one input, by central differences."""
    memory = values[which].detach()
    before, ends = memory.clone(), []
    try:
        for sign in (1, -1):
            memory.copy_(before + along * (sign * eps))
            ends.append([o.detach().clone() for o in _tensors(func(*values))])
    finally:
        memory.copy_(before)
    _check_alike(ends, eps)
    return [(a - b) / (2 * eps) for a, b in zip(*ends, strict=True)]


def _product(a: Sequence[Tensor | None], b: Sequence[Tensor]) -> float:
    """The sum of Re(conj(a) b) over all elements."""
    total = 0.0
    for x, y in zip(a, b, strict=True):
        if x is not None and x.numel():
            wide = _C.complex128 if x.is_complex() or y.is_complex() else _C.float64
            x, y = x.detach().to(wide), y.detach().to(wide)
            total += float((x.conj() * y).sum().real)
    return total


def _fast_mismatch(
    func: Callable[..., Any], values: Sequence[Any], chosen: list[int], eps: float, atol: float, rtol: float
) -> str | None:
    """Gradients along one direction of each input and of all outputs; None, or where they differ from differences."""
    outputs = _tensors(func(*values))
    seeds = [_direction(o, i) for i, o in enumerate(outputs)]
    wanted = tuple(values[i] for i in chosen)
    found = _C._run_backward(tuple(outputs), tuple(seeds), True, False, wanted, False)
    elements = sum(float(s.abs().sum()) for s in seeds)
    noise = _largest_noise(outputs, eps)
    for i, x, grad in zip(chosen, wanted, found, strict=True):
        if grad is not None and (grad.shape != x.shape or grad.dtype != x.dtype):
            raise GradcheckError(f"gradient {i} is {grad.dtype}{list(grad.shape)} for {x.dtype}{list(x.shape)}")
        along = _direction(x.detach(), i + 17)
        expected = _product(seeds, _moved(func, values, i, along, eps))
        got = _product([grad], [along])
        # A difference at each element would add up along the directions, so the least one does too.
        least = (atol * max(float(along.abs().sum()), 1.0) + noise) * max(elements, 1.0)
        if not _close(got, expected, least, rtol):
            return f"along a direction of input {i}: analytical {got!r}, numerical {expected!r}"
    return None


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """Compares the gradients of func, a function of the given tensors, with central differences.

    The inputs that require a gradient should be float64 or complex128 and must not share memory among their elements.
    With `check_forward_ad` the tangents of forward mode are compared too, along each element of each input, and with
    `check_batched_forward_grad` tangents under vmap with those. `fast_mode` compares along one direction of each input
    and of the outputs, in place of every element: two calls an input.

    Arguments:
        func: the function
        inputs: the inputs
        eps: a small number that keeps divisions in range
        atol: the absolute tolerance
        rtol: the relative tolerance
        raise_exception: whether a difference raises, instead of giving False
        nondet_tol: how far two runs may differ
        check_undefined_grad: whether gradients that are left out are tried
        check_grad_dtypes: whether the dtypes of gradients are compared
        check_batched_grad: whether gradients of batches are tried
        check_backward_ad: whether backward is checked
        fast_mode: whether one random direction is compared, instead of every element
        masked: whether only the elements that sparse tensors store are moved; else the zeros beside them move too

    Returns: True; False where they differ and raise_exception is False.

    Raises: GradcheckError, a RuntimeError, where they differ; ValueError where no input requires a gradient.

    Example:
        >>> tp.autograd.gradcheck(tp.sin, tp.rand(3, dtype=tp.float64, requires_grad=True))
        True
    """
    if not (check_backward_ad or check_forward_ad):
        raise AssertionError("Expected at least one of check_forward_ad or check_backward_ad to be True")
    if check_batched_forward_grad and not check_forward_ad:
        raise AssertionError("Setting check_batched_forward_grad=True requires check_forward_ad to be True")
    whole, given = func, inputs
    func, inputs = over_values(func, inputs, masked)
    values, chosen = _checked_inputs(inputs)
    try:
        if check_backward_ad:
            _raise(layout_problem(_differentiable(whole(*_as_tuple(given))), list(_iter_tensors(given, True))))
            _gradcheck(func, values, chosen, eps, atol, rtol, nondet_tol, fast_mode)
        if check_forward_ad:
            _forward_check(func, values, chosen, eps, atol, rtol, check_undefined_grad, fast_mode)
            if check_batched_forward_grad:
                _batched_forward_check(func, values, chosen, atol)
        if check_backward_ad:
            _backward_stages(func, values, chosen, atol, check_batched_grad, check_undefined_grad)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _raise(problem: str | None) -> None:
    if problem:
        raise GradcheckError(problem)


def _raise_mismatch(words: str, outputs: Sequence[Tensor], place: int, which: int, part: str, text: str) -> None:
    """Two Jacobians differ at an element among those of all outputs."""
    number = next(n for n, o in enumerate(outputs) if (place := place - o.numel()) < 0)
    raise GradcheckError(f"{part}{words} mismatch for output {number} with respect to input {which},\n{text}")


def _part(imaginary: bool, of: str) -> str:
    return f"While considering the {'imaginary' if imaginary else 'real'} part of complex {of} only, "


def _forward_check(
    func: Callable[..., Any],
    values: Sequence[Any],
    chosen: list[int],
    eps: float,
    atol: float,
    rtol: float,
    undefined: bool,
    fast: bool,
) -> None:
    from tensorpy.autograd.gradcheck_forward import forward_mismatch, zero_tangent_problem

    outputs = _tensors(func(*values))
    least = [atol + _noise(n, eps) for o in outputs for n in _numbers(o)]

    def close(got: complex, expected: complex, place: int) -> bool:
        return _close(got, expected, least[place], rtol)

    for i in chosen:
        if fast and _fast_forward_agrees(func, values, i, outputs, eps, atol, rtol):
            continue
        problem = forward_mismatch(
            func, values, i, _numeric(func, values, i, eps, len(outputs)), _tensors, _numbers, close
        )
        if problem:
            place, imaginary, text = problem
            part = _part(imaginary, "inputs") if values[i].is_complex() else ""
            _raise_mismatch("Jacobian computed with forward mode", outputs, place, i, part, text)
    if undefined:
        along = {i: _direction(values[i].detach(), i + 17) for i in chosen}
        for i in chosen:
            _raise(zero_tangent_problem(func, values, i, along, _tensors, atol))


def _batched_forward_check(func: Callable[..., Any], values: Sequence[Any], chosen: list[int], atol: float) -> None:
    from tensorpy.autograd.gradcheck_forward import batched_mismatch

    for i in chosen:
        along = [_direction(values[i].detach(), i + k) for k in (17, 18)]
        problem = batched_mismatch(func, values, i, along, _tensors, atol)
        _raise(
            problem and f"While computing batched gradients of forward mode with respect to input {i}, got: {problem}"
        )


def _fast_forward_agrees(
    func: Callable[..., Any],
    values: Sequence[Any],
    which: int,
    outputs: list[Tensor],
    eps: float,
    atol: float,
    rtol: float,
) -> bool:
    """Whether the tangents along one direction of an input are the differences."""
    from tensorpy.autograd.gradcheck_forward import tangents

    along = _direction(values[which].detach(), which + 17)
    noise = _largest_noise(outputs, eps)
    least = atol * max(float(along.abs().sum()), 1.0) + noise
    moved = _moved(func, values, which, along, eps)
    return all(
        bool(_C.allclose(t.detach(), n, rtol, least, equal_nan=True))
        for t, n in zip(tangents(func, values, {which: along}, _tensors), moved, strict=True)
    )


def _gradcheck(
    func: Callable[..., Any],
    values: Sequence[Any],
    chosen: list[int],
    eps: float,
    atol: float,
    rtol: float,
    nondet_tol: float,
    fast: bool,
) -> None:
    for i in chosen:
        if 0 in values[i].stride() and values[i].numel() > 1:
            raise RuntimeError(
                f"The {i}th input has a dimension with stride 0: its elements share memory, and gradcheck moves each "
                "alone; give it a clone()"
            )
    outputs = _tensors(func(*values))
    recorded = [place for place, o in enumerate(outputs) if o.requires_grad]

    def differentiable(*values: Any) -> tuple[Tensor, ...]:
        """The outputs that have a gradient, if there are any: the others are not looked at."""
        found = _tensors(func(*values))
        return tuple(found[place] for place in recorded) if recorded else tuple(found)

    if fast and recorded:
        problem = _fast_mismatch(differentiable, values, chosen, eps, atol, rtol)
        if problem is None:
            _check_repeatable(differentiable, values, chosen, nondet_tol)
            return
    outputs = list(differentiable(*values))
    numeric = {i: _numeric(differentiable, values, i, eps, len(outputs)) for i in chosen}
    if not recorded:
        for i, rows in numeric.items():
            if any(abs(n) > atol for row in rows for n in row):
                raise GradcheckError(f"Numerical gradient for function expected to be zero (input {i})")
        return
    wanted = [values[i] for i in chosen]
    places = _output_directions(outputs)
    analytic = _analytic(outputs, wanted)
    again = _analytic(outputs, wanted)
    elements = [n for o in outputs for n in _numbers(o)]
    least = [atol + _noise(n, eps) for n in elements]
    elements_complex = [o.is_complex() for o in outputs for _ in range(o.numel())]
    for k, i in enumerate(chosen):
        worst = _compare(numeric[i], analytic[k], places, values[i].is_complex(), least, rtol)
        if worst:
            place, imaginary, text = worst
            part = _part(imaginary, "outputs") if elements_complex[place] else ""
            _raise_mismatch("Jacobian", outputs, place, i, part, text)
        for a, b in zip(analytic[k], again[k], strict=True):
            if any(abs(x - y) > nondet_tol for x, y in zip(a, b, strict=True) if x == x and y == y):
                raise GradcheckError(_NOT_REPEATED.format(nondet_tol))


def _check_repeatable(func: Callable[..., Any], values: Sequence[Any], chosen: list[int], nondet_tol: float) -> None:
    """Backward gives the same gradients a second time."""
    outputs, wanted = func(*values), tuple(values[i] for i in chosen)
    seeds = tuple(_direction(o, i) for i, o in enumerate(outputs))
    first, second = (_C._run_backward(tuple(outputs), seeds, True, False, wanted, False) for _ in range(2))
    for a, b in zip(first, second, strict=True):
        if a is not None and b is not None and a.numel() and bool(((a - b).abs() > nondet_tol).any()):
            raise GradcheckError(_NOT_REPEATED.format(nondet_tol))


def _backward_stages(
    func: Callable[..., Any], values: Sequence[Any], chosen: list[int], atol: float, batched: bool, undefined: bool
) -> None:
    """What is asked once the numbers agree."""
    outputs, wanted = _differentiable(func(*values)), [values[i] for i in chosen]
    if not outputs:
        return
    if batched:
        _raise(batched_problem(outputs, wanted, _direction, atol))
    _raise(zero_problem(outputs, wanted))
    if undefined:
        _raise(undefined_problem(outputs, wanted))


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """Compares the gradients of the gradients of func with central differences, and with `check_fwd_over_rev` the
    tangents of the gradients.

    Arguments:
        func: the function
        inputs: the inputs
        grad_outputs: the gradients of the outputs; None for ones, where an output has one element
        eps: a small number that keeps divisions in range
        atol: the absolute tolerance
        rtol: the relative tolerance
        gen_non_contig_grad_outputs: whether the gradients drawn are not contiguous
        raise_exception: whether a difference raises, instead of giving False
        nondet_tol: how far two runs may differ
        check_undefined_grad: whether gradients that are left out are tried
        check_grad_dtypes: whether the dtypes of gradients are compared
        check_batched_grad: whether gradients of batches are tried
        check_rev_over_rev: whether backward of backward is checked
        fast_mode: whether one random direction is compared, instead of every element
        masked: whether only the elements that sparse tensors store are moved; else the zeros beside them move too

    Returns: True; False where they differ and raise_exception is False.

    Raises: GradcheckError, a RuntimeError, where they differ; ValueError where no input requires a gradient.

    Example:
        >>> tp.autograd.gradgradcheck(tp.sin, tp.rand(3, dtype=tp.float64, requires_grad=True))
        True
    """
    func, inputs = over_values(func, inputs, masked)
    values, chosen = _checked_inputs(inputs)
    if grad_outputs is None:
        seeds = tuple(_seed_like(o) for o in _differentiable(func(*values)))
    else:
        given = (grad_outputs,) if isinstance(grad_outputs, Tensor) else tuple(grad_outputs)
        seeds = tuple(g if g.layout is _C.strided else g.to_dense() for g in given)
    if not seeds:
        return True

    def gradient(*args: Any) -> tuple[Tensor, ...]:
        given, weights = args[: len(values)], args[len(values) :]
        given = tuple(v.view_as(v) if i in chosen and not v.requires_grad else v for i, v in enumerate(given))
        was = _C.is_grad_enabled()
        _C._set_grad_enabled(True)
        try:
            outputs = _differentiable(func(*given))
            wanted = tuple(given[i] for i in chosen)
            grads = _C._run_backward(tuple(outputs), weights, True, True, wanted, False)
        finally:
            _C._set_grad_enabled(was)
        return tuple(g for g in grads if g is not None)

    return gradcheck(
        gradient,
        (*values, *seeds),
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_batched_grad=check_batched_grad,
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
        fast_mode=fast_mode,
    )


def _seed_like(output: Tensor) -> Tensor:
    """A gradient for an output: fixed numbers of both signs."""
    if output.is_complex():
        values: list[Any] = [complex(_wave(2 * i), _wave(2 * i + 1)) for i in range(output.numel())]
    else:
        values = [_wave(i) for i in range(output.numel())]
    seed = _C.tensor(values, dtype=output.dtype, device=output.device).reshape(output.shape)
    return _C._want_gradient(seed)


def _wave(i: int) -> float:
    return 0.3 + ((i * 7 + 3) % 11) / 11 * (-1) ** i


__all__ = [
    "GradcheckError",
    "_as_tuple",
    "_differentiable_outputs",
    "_get_numerical_jacobian",
    "_iter_tensors",
    "get_analytical_jacobian",
    "get_numerical_jacobian",
    "get_numerical_jacobian_wrt_specific_input",
    "gradcheck",
    "gradgradcheck",
]
