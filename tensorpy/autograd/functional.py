"""Derivatives of functions of tensors in PyTorch's older form: vjp, jvp, jacobian, hessian, vhp, hvp by tensorpy.func.

`inputs` is a tensor or a tuple of them, and what is taken by them has that form. With `create_graph` what comes can be
differentiated by the inputs; with `strict` it is an error that an output does not depend on an input.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy._modes import enable_grad

STRATEGIES = ("reverse-mode", "forward-mode")


class _Call:
    """The function and its inputs; both forms of each."""

    def __init__(self, what: str, func: Callable[..., Any], inputs: Any, create_graph: bool, strict: bool) -> None:
        self.what, self.func, self.create_graph = what, func, create_graph
        self.single = not isinstance(inputs, tuple)
        given = (inputs,) if self.single else inputs
        for x in given:
            if not isinstance(x, Tensor):
                raise TypeError(f"{what}: the inputs are a Tensor or a tuple of them, got {type(x).__name__}")
        self.inputs = given if create_graph else tuple(x.detach() for x in given)
        self.single_output = True
        if strict:
            self._check_strict()

    def __call__(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        outputs = self.func(*inputs)
        self.single_output = isinstance(outputs, Tensor)
        values = (outputs,) if isinstance(outputs, Tensor) else tuple(outputs)
        if not all(isinstance(o, Tensor) for o in values):
            raise TypeError(f"{self.what}: the function returns a Tensor or a tuple of them")
        return values

    def _check_strict(self) -> None:
        with enable_grad():
            leaves = tuple(x.detach().requires_grad_() for x in self.inputs)
            outputs = self(*leaves)
        for i, o in enumerate(outputs):
            if not o.requires_grad:
                raise RuntimeError(f"{self.what}: output {i} does not depend on the inputs, and strict=True")
            found = _C._run_backward((o,), (_C.ones_like(o),), True, False, leaves, False)
            for k, g in enumerate(found):
                if g is None:
                    raise RuntimeError(f"{self.what}: output {i} is independent of input {k}, and strict=True")

    def one_number(self, *inputs: Tensor) -> Tensor:
        outputs = self(*inputs)
        if not self.single_output or outputs[0].numel() != 1:
            raise RuntimeError(f"{self.what}: the function returns one number")
        return outputs[0].reshape(())

    def of_outputs(self, values: Any) -> Any:
        values = self._cut(tuple(values))
        return values[0] if self.single_output else values

    def of_inputs(self, values: Any) -> Any:
        values = self._cut(tuple(values))
        return values[0] if self.single else values

    def _cut(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """Without a graph, unless one was asked for."""
        if self.create_graph:
            return values
        return tuple(self._cut(v) if isinstance(v, tuple) else v.detach() for v in values)

    def direction(self, v: Any, like: tuple[Tensor, ...], name: str) -> tuple[Tensor, ...]:
        if v is None:
            if len(like) != 1 or like[0].numel() != 1:
                raise RuntimeError(f"{self.what}: the vector v can only be left out where {name} is one number")
            return (_C.ones_like(like[0]),)
        given = v if isinstance(v, tuple) else (v,)
        if [t.shape for t in given] != [t.shape for t in like]:
            raise RuntimeError(f"{self.what}: v has the shapes of {name}, {[tuple(t.shape) for t in like]}")
        return given if self.create_graph else tuple(t.detach() for t in given)


def vjp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """The outputs, and the vector v times the Jacobian: a gradient by each input."""
    from tensorpy.func import vjp as of_function

    call = _Call("vjp", func, inputs, create_graph, strict)
    outputs, back = of_function(call, *call.inputs)
    gradients = back(call.direction(v, outputs, "the output"))
    return call.of_outputs(outputs), call.of_inputs(gradients)


def jvp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """The outputs, and the Jacobian times the vector v: a tangent of each output, by forward mode."""
    from tensorpy.func import jvp as of_function

    call = _Call("jvp", func, inputs, create_graph, strict)
    outputs, tangents = of_function(call, call.inputs, call.direction(v, call.inputs, "the input"))
    return call.of_outputs(outputs), call.of_outputs(tangents)


def jacobian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """The derivatives of each element of the outputs by each of the inputs: of shape (*output, *input). All rows (or
    columns, with strategy="forward-mode") are computed at once, whether `vectorize` asks for it or not."""
    from tensorpy.func import jacfwd, jacrev

    if strategy not in STRATEGIES:
        raise ValueError(f"jacobian: strategy is one of {STRATEGIES}, got {strategy!r}")
    call = _Call("jacobian", func, inputs, create_graph, strict)
    transform = jacrev if strategy == "reverse-mode" else jacfwd
    rows = transform(call, argnums=tuple(range(len(call.inputs))))(*call.inputs)
    by_output = tuple(call.of_inputs(row) for row in rows)
    return by_output[0] if call.single_output else by_output


def hessian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The second derivatives of a function that returns one number, by each pair of inputs."""
    from tensorpy.func import jacfwd, jacrev

    if outer_jacobian_strategy not in STRATEGIES:
        raise ValueError(f"hessian: outer_jacobian_strategy is one of {STRATEGIES}, got {outer_jacobian_strategy!r}")
    call = _Call("hessian", func, inputs, create_graph, strict)
    places = tuple(range(len(call.inputs)))
    outer = jacrev if outer_jacobian_strategy == "reverse-mode" else jacfwd
    rows = outer(jacrev(call.one_number, argnums=places), argnums=places)(*call.inputs)
    return call.of_inputs(tuple(call.of_inputs(row) for row in rows))


def vhp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """The output, and the vector v times the Hessian."""
    from tensorpy.func import grad
    from tensorpy.func import vjp as of_function

    call = _Call("vhp", func, inputs, create_graph, strict)
    gradient = grad(call.one_number, argnums=tuple(range(len(call.inputs))))
    _, back = of_function(gradient, *call.inputs)
    product = back(call.direction(v, call.inputs, "the input"))
    return call.of_outputs(call(*call.inputs)), call.of_inputs(product)


def hvp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """The output, and the Hessian times the vector v: forward over reverse."""
    from tensorpy.func import grad
    from tensorpy.func import jvp as of_function

    call = _Call("hvp", func, inputs, create_graph, strict)
    gradient = grad(call.one_number, argnums=tuple(range(len(call.inputs))))
    _, product = of_function(gradient, call.inputs, call.direction(v, call.inputs, "the input"))
    return call.of_outputs(call(*call.inputs)), call.of_inputs(product)


__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]
