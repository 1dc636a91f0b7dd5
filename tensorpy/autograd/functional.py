"""Derivatives of functions of tensors in PyTorch's older form: vjp, jvp, jacobian, hessian, vhp, hvp by tensorpy.func.

`inputs` is a tensor or a tuple of them, and what is taken by them has that form. With `create_graph` what comes can be
differentiated by the inputs; with `strict` it is an error that an output does not depend on an input.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy.autograd.grad_mode import enable_grad
from tensorpy.func import gradients as backward_transforms
from tensorpy.func import jacobians as jacobian_transforms

STRATEGIES = ("reverse-mode", "forward-mode")


def _tuple_of(values: Any, name: str, what: str) -> tuple[tuple[Tensor, ...], bool]:
    """Tensors as a tuple, and whether they came as one: (values, was a tuple)."""
    is_tuple = isinstance(values, tuple)
    given = values if is_tuple else (values,)
    for i, value in enumerate(given):
        if not isinstance(value, Tensor):
            found = f"the value at index {i}" if is_tuple else f"the given {name}"
            raise TypeError(
                f"The {name} given to {what} must be either a Tensor or a tuple of Tensors but {found} has type "
                f"{type(value)}."
            )
    return given, is_tuple


def _unknown_strategy(name: str, given: Any) -> AssertionError:
    """PyTorch asserts, so programs expect that class."""
    return AssertionError(f'Expected {name} to be either "forward-mode" or "reverse-mode", got {given!r}.')


class _Call:
    """The function and its inputs; both forms of each."""

    def __init__(
        self,
        what: str,
        func: Callable[..., Any],
        inputs: Any,
        create_graph: bool,
        strict: bool,
        second: bool = False,
    ) -> None:
        """`second`: the derivative asked for is a second one."""
        self.what, self.func, self.create_graph, self.second = what, func, create_graph, second
        given, is_tuple = _tuple_of(inputs, "inputs", what)
        self.single = not is_tuple
        self.inputs = tuple(self._tracked(x) for x in given) if create_graph else tuple(x.detach() for x in given)
        self.single_output = True
        if strict:
            self._check_strict()

    @staticmethod
    def _tracked(x: Tensor) -> Tensor:
        """An input that a graph leads to: what the caller gave, or where no gradient of that is wanted, its like."""
        return x.view_as(x) if x.requires_grad else x.detach().requires_grad_()

    def __call__(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        values, is_tuple = _tuple_of(self.func(*inputs), "outputs of the user-provided function", self.what)
        self.single_output = not is_tuple
        return values

    def _check_strict(self) -> None:
        """Every output depends on every input, and with a graph or a second derivative so does every gradient."""
        again = self.create_graph or self.second
        with enable_grad():
            leaves = tuple(x.detach().requires_grad_() for x in self.inputs)
            for i, o in enumerate(self(*leaves)):
                if not o.requires_grad:
                    raise RuntimeError(
                        f"Output {i} of the user-provided function does not require gradients. "
                        "In strict mode each output is computed from the inputs by differentiable operators."
                    )
                found = _C._run_backward((o,), (_C.ones_like(o),), True, again, leaves, False)
                for k, g in enumerate(found):
                    self._check_first(i, k, g)
                if self.second and self.create_graph:
                    self._check_second(leaves, found)

    def _check_first(self, i: int, k: int, g: Tensor | None) -> None:
        if g is None:
            output = f"Output {i}" if self.what == "jacobian" else "The output"
            raise RuntimeError(
                f"{output} of the user-provided function is independent of input {k}. "
                "This is not allowed in strict mode."
            )
        if self.second and not g.requires_grad:
            raise RuntimeError(
                "While computing the hessian, found that the jacobian of the user-provided function with respect to "
                f"input {k} is independent of the input. This is not allowed in strict mode: a linear function, for "
                "one, has no second derivative."
            )
        if self.create_graph and not g.requires_grad:
            raise RuntimeError(
                f"The jacobian of the user-provided function is independent of input {k}. "
                "This is not allowed in strict mode when create_graph=True."
            )

    def _check_second(self, leaves: tuple[Tensor, ...], gradients: tuple[Tensor, ...]) -> None:
        total = sum((g.sum() for g in gradients), _C.zeros(()))
        for k, h in enumerate(_C._run_backward((total,), (_C.ones_like(total),), True, True, leaves, False)):
            if h is None:
                raise RuntimeError(
                    f"The jacobian of the user-provided function is independent of input {k}. "
                    "This is not allowed in strict mode."
                )
            if not h.requires_grad:
                raise RuntimeError(
                    f"The hessian of the user-provided function is independent of input {k}. "
                    "This is not allowed in strict mode when create_graph=True."
                )

    def one_number(self, *inputs: Tensor) -> Tensor:
        outputs = self(*inputs)
        if not self.single_output:
            raise RuntimeError(f"The function given to {self.what} should return a single Tensor")
        if outputs[0].numel() != 1:
            raise RuntimeError(
                f"The Tensor returned by the function given to {self.what} should contain a single element"
            )
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

    def direction(self, v: Any, like: tuple[Tensor, ...], single: bool, whose: str) -> tuple[Tensor, ...]:
        """The vector v: tensors of the sizes of `like`; ones where it is left out and there is one number."""
        if v is None:
            if len(like) != 1 or like[0].numel() != 1:
                raise RuntimeError(f"The vector v can only be None if {whose} a single Tensor with a single element.")
            return (_C.ones_like(like[0]),)
        given, _ = _tuple_of(v, "v", self.what)
        if len(given) != len(like):
            if single:
                raise RuntimeError("The given v should contain a single Tensor.")
            raise RuntimeError(f"v is a tuple of invalid length: should be {len(like)} but got {len(given)}.")
        for k, (t, other) in enumerate(zip(given, like, strict=True)):
            if t.shape != other.shape:
                entry = "" if single else f"Entry {k} in "
                raise RuntimeError(f"{entry}v has invalid size: should be {other.shape} but got {t.shape}.")
        return given if self.create_graph else tuple(t.detach() for t in given)

    def along_inputs(self, v: Any) -> tuple[Tensor, ...]:
        return self.direction(v, self.inputs, self.single, "the input to the user-provided function is")


@enable_grad()
def vjp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """The outputs, and the vector v times the Jacobian: a gradient by each input.

    Arguments:
        func: the function
        inputs: the inputs
        v: what the rows are weighted by, of the outputs' shapes; 1 where the only output is one number
        create_graph: whether derivatives of the result can be taken
        strict: whether it is an error where an output does not depend on an input

    Example:
        >>> value, product = tp.autograd.functional.vjp(lambda x: x**2, tp.tensor([1.0, 2.0]), tp.ones(2))
        >>> product
        tensor([2., 4.])
    """
    call = _Call("vjp", func, inputs, create_graph, strict)
    outputs, back = backward_transforms.vjp(call, *call.inputs)
    gradients = back(call.direction(v, outputs, call.single_output, "the user-provided function returns"))
    return call.of_outputs(outputs), call.of_inputs(gradients)


@enable_grad()
def jvp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """The outputs, and the Jacobian times the vector v: a tangent of each output, by forward mode.

    Arguments:
        func: the function
        inputs: the inputs
        v: the direction, of the inputs' shapes; 1 where the only input is one number
        create_graph: whether derivatives of the result can be taken
        strict: whether it is an error where an output does not depend on an input

    Example:
        >>> value, product = tp.autograd.functional.jvp(lambda x: x**2, tp.tensor([1.0, 2.0]), tp.ones(2))
        >>> product
        tensor([2., 4.])
    """
    call = _Call("jvp", func, inputs, create_graph, strict)
    outputs, tangents = jacobian_transforms.jvp(call, call.inputs, call.along_inputs(v))
    return call.of_outputs(outputs), call.of_outputs(tangents)


@enable_grad()
def jacobian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """The derivatives of each element of the outputs by each of the inputs: of shape (*output, *input). All rows (or
    columns, with strategy="forward-mode") are computed at once, whether `vectorize` asks for it or not.

    Arguments:
        func: the function
        inputs: the inputs
        create_graph: whether derivatives of the result can be taken
        strict: whether it is an error where an output does not depend on an input
        vectorize: whether rows are computed as one batch

    Example:
        >>> tp.autograd.functional.jacobian(lambda x: x**2, tp.tensor([1.0, 2.0]))
        tensor([[2., 0.],
                [0., 4.]])
    """
    if strategy not in STRATEGIES:
        raise _unknown_strategy("strategy", strategy)
    if strict and (vectorize or strategy == "forward-mode"):
        raise RuntimeError(
            "torch.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not supported together, nor "
            'is `strict=True` with strategy="forward-mode": that takes one gradient after the other.'
        )
    call = _Call("jacobian", func, inputs, create_graph, strict)
    transform = jacobian_transforms.jacrev if strategy == "reverse-mode" else jacobian_transforms.jacfwd
    rows = transform(call, argnums=tuple(range(len(call.inputs))))(*call.inputs)
    by_output = tuple(call.of_inputs(row) for row in rows)
    return by_output[0] if call.single_output else by_output


@enable_grad()
def hessian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The second derivatives of a function that returns one number, by each pair of inputs.

    Arguments:
        func: the function
        inputs: the inputs
        create_graph: whether derivatives of the result can be taken
        strict: whether it is an error where an output does not depend on an input
        vectorize: whether rows are computed as one batch
        outer_jacobian_strategy: 'reverse-mode' or 'forward-mode'

    Example:
        >>> tp.autograd.functional.hessian(lambda x: (x**3).sum(), tp.tensor([1.0, 2.0]))
        tensor([[ 6.,  0.],
                [ 0., 12.]])
    """
    if outer_jacobian_strategy not in STRATEGIES:
        raise _unknown_strategy("outer_jacobian_strategy", outer_jacobian_strategy)
    if strict and vectorize:
        raise RuntimeError(
            "torch.autograd.functional.hessian: `strict=True` and `vectorized=True` are not supported together."
        )
    call = _Call("hessian", func, inputs, create_graph, strict, second=True)
    places = tuple(range(len(call.inputs)))
    outer = jacobian_transforms.jacrev if outer_jacobian_strategy == "reverse-mode" else jacobian_transforms.jacfwd
    rows = outer(jacobian_transforms.jacrev(call.one_number, argnums=places), argnums=places)(*call.inputs)
    return call.of_inputs(tuple(call.of_inputs(row) for row in rows))


@enable_grad()
def vhp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """The output, and the vector v times the Hessian.

    Arguments:
        func: the function
        inputs: the inputs
        v: what the rows are weighted by, of the inputs' shapes; 1 where the only input is one number
        create_graph: whether derivatives of the result can be taken
        strict: whether it is an error where an output does not depend on an input

    Example:
        >>> value, product = tp.autograd.functional.vhp(lambda x: (x**3).sum(), tp.tensor([1.0, 2.0]), tp.ones(2))
        >>> product
        tensor([ 6., 12.])
    """
    call = _Call("vhp", func, inputs, create_graph, strict, second=True)
    gradient = backward_transforms.grad(call.one_number, argnums=tuple(range(len(call.inputs))))
    _, back = backward_transforms.vjp(gradient, *call.inputs)
    product = back(call.along_inputs(v))
    return call.of_outputs(call(*call.inputs)), call.of_inputs(product)


@enable_grad()
def hvp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """The output, and the Hessian times the vector v: forward over reverse.

    Arguments:
        func: the function
        inputs: the inputs
        v: the direction, of the inputs' shapes; 1 where the only input is one number
        create_graph: whether derivatives of the result can be taken
        strict: whether it is an error where an output does not depend on an input

    Example:
        >>> value, product = tp.autograd.functional.hvp(lambda x: (x**3).sum(), tp.tensor([1.0, 2.0]), tp.ones(2))
        >>> product
        tensor([ 6., 12.])
    """
    call = _Call("hvp", func, inputs, create_graph, strict, second=True)
    gradient = backward_transforms.grad(call.one_number, argnums=tuple(range(len(call.inputs))))
    _, product = jacobian_transforms.jvp(gradient, call.inputs, call.along_inputs(v))
    return call.of_outputs(call(*call.inputs)), call.of_inputs(product)


__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]
