"""Derivatives of functions of tensors in PyTorch's older form: vjp, jvp, jacobian, hessian, vhp, hvp by the graph.

`inputs` is a tensor or a tuple of them, and what is taken by them has that form. With `create_graph` what comes can be
differentiated by the inputs; with `strict` it is an error that an output does not depend on an input. The function runs
as in any program, in no transform of `tensorpy.func`: Functions whose forward() fills in its context, hooks and values
that are asked for work as there. A product with the Jacobian goes backward twice, since the gradients are linear in
what the outputs are weighted by; strategy="forward-mode" goes forward.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy.autograd.grad_mode import enable_grad
from tensorpy.func import jacobians as jacobian_transforms
from tensorpy.func.vmap import vmap

if TYPE_CHECKING:
    from tensorpy.func.signatures import OfTensors

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


# What is wrong in strict mode: with a gradient that is absent, and with one that no graph leads to.
_FIRST = (
    "The output of the user-provided function is independent of input {k}.",
    "While computing the hessian, found that the jacobian of the user-provided function with respect to input {k} is "
    "independent of the input: a linear function, for one, has no second derivative.",
)
_SECOND = (
    "The output of the user-provided function is independent of input {k}.",
    "The jacobian of the user-provided function is independent of input {k}.",
)
_WEIGHTED = (_FIRST[0], "The gradient with respect to input {k} is independent of the inputs.")
_ALONG = ("The gradients are independent of what output {k} is weighted by.", _SECOND[1])
_HESSIAN = (_SECOND[1], "The hessian of the user-provided function is independent of input {k}.")


def _construct_standard_basis_for(tensors: tuple[Tensor, ...], tensor_numels: tuple[int, ...]) -> tuple[Tensor, ...]:
    """The columns of an identity matrix, as many for each tensor as it has elements, of its dtype and device."""
    parts = _C.eye(sum(tensor_numels)).split(list(tensor_numels), 1)
    return tuple(part.to(t.device, t.dtype) for part, t in zip(parts, tensors, strict=True))


class _Call:
    """The function and its inputs; both forms of each."""

    def __init__(
        self,
        what: str,
        func: OfTensors[Any],
        inputs: Any,
        create_graph: bool,
        strict: bool,
    ) -> None:
        self.what, self.func, self.create_graph, self.strict = what, func, create_graph, strict
        given, is_tuple = _tuple_of(inputs, "inputs", what)
        self.single = not is_tuple
        self.inputs = tuple(self._tracked(x, create_graph) for x in given)
        self.single_output = True

    @staticmethod
    def _tracked(x: Tensor, create_graph: bool) -> Tensor:
        """An input that gradients are taken by: what the caller gave where its graph goes on, a leaf otherwise."""
        return x.view_as(x) if create_graph and x.requires_grad else x.detach().requires_grad_()

    def __call__(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        values, is_tuple = _tuple_of(self.func(*inputs), "outputs of the user-provided function", self.what)
        self.single_output = not is_tuple
        for i, o in enumerate(values if self.strict else ()):
            if not o.requires_grad:
                raise RuntimeError(
                    f"Output {i} of the user-provided function does not require gradients. "
                    "In strict mode each output is computed from the inputs by differentiable operators."
                )
        return values

    def gradients(
        self, outputs: Any, along: Any, create: bool, words: tuple[str, str], by: Any = None
    ) -> tuple[Tensor, ...]:
        """The gradients of outputs weighted by `along`, by the inputs or `by`: zeros where there is none. With `strict`
        none may be absent, and where a graph is made each has to be of it.

        words: what is wrong with one that is absent, and with one that no graph leads to; "{k}" is its number.
        """
        by = self.inputs if by is None else by
        pairs = [(o, g) for o, g in zip(outputs, along, strict=True) if o.requires_grad]
        roots, given = zip(*pairs, strict=True) if pairs else ((), ())
        found = _C._run_backward(roots, given, True, create, by, False) if roots else (None,) * len(by)
        for k, g in enumerate(found if self.strict else ()):
            if g is None:
                raise RuntimeError(f"{words[0].format(k=k)} This is not allowed in strict mode.")
            if create and not g.requires_grad:
                raise RuntimeError(f"{words[1].format(k=k)} This is not allowed in strict mode when create_graph=True.")
        return tuple(_C.zeros_like(x) if g is None else g for g, x in zip(found, by, strict=True))

    def gradient_of_number(self, words: tuple[str, str] = _FIRST) -> tuple[Tensor, tuple[Tensor, ...]]:
        """The function's one number, and its gradient, which can be differentiated."""
        value = self._checked_number(*self.inputs)
        return value, self.gradients((value,), (_C.ones_like(value),), True, words)

    def products(self, outputs: Any, v: tuple[Tensor, ...], words: tuple[str, str]) -> tuple[Tensor, ...]:
        """The Jacobian of outputs times v: the derivative along v of the gradients by their weights, whatever these."""
        weights = tuple(_C.zeros_like(o).requires_grad_() for o in outputs)
        back = self.gradients(outputs, weights, True, _WEIGHTED)
        return self.gradients(back, v, self.create_graph, words, weights)

    def rows(self, outputs: tuple[Tensor, ...], vectorize: bool) -> tuple[tuple[Tensor, ...], ...]:
        """For each output and input, of shape (*output, *input), the derivatives of one by the other."""
        found: list[tuple[Tensor, ...]] = []
        for i, o in enumerate(outputs):
            if o.is_complex() and not vectorize:
                raise RuntimeError(
                    "grad can be implicitly created only for real scalar outputs but got "
                    f"{o.dtype}: {self.what} takes derivatives of real numbers; view_as_real() gives these"
                )
            found.append(self._rows_of(i, o, vectorize))
        return tuple(found)

    def _rows_of(self, i: int, o: Tensor, vectorize: bool) -> tuple[Tensor, ...]:
        words = (f"Output {i} of the user-provided function is independent of input {{k}}.", _SECOND[1])
        if not o.requires_grad or o.numel() == 0:
            return tuple(_C.zeros((*o.shape, *x.shape), dtype=x.dtype, device=x.device) for x in self.inputs)
        basis = _C.eye(o.numel(), dtype=o.dtype, device=o.device).view((o.numel(), *o.shape))

        def row(g: Tensor) -> tuple[Tensor, ...]:
            return self.gradients((o,), (g,), self.create_graph, words)

        if vectorize:
            stacked = vmap(row)(basis)
        else:
            stacked = tuple(_C.stack(list(g)) for g in zip(*map(row, basis.unbind()), strict=True))
        return tuple(g.reshape((*o.shape, *x.shape)) for g, x in zip(stacked, self.inputs, strict=True))

    def one_number(self, *inputs: Tensor) -> Tensor:
        return self._checked_number(*inputs).reshape(())

    def _checked_number(self, *inputs: Tensor) -> Tensor:
        outputs = self(*inputs)
        if not self.single_output:
            raise RuntimeError(f"The function given to {self.what} should return a single Tensor")
        if outputs[0].numel() != 1:
            raise RuntimeError(
                f"The Tensor returned by the function given to {self.what} should contain a single element"
            )
        return outputs[0]

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
    func: OfTensors[Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """The outputs, and the vector v times the Jacobian: a gradient by each input.

    Arguments:
        func: the function
        inputs: the inputs
        v: what the rows are weighted by, of the outputs' shapes; 1 where the only output is one number
        create_graph: whether derivatives of the result can be taken
        strict: whether it is an error where an output does not depend on an input

    Returns: what func gives, and a tensor or tuple as the inputs.

    Raises: RuntimeError for a v that does not fit, and with strict where func does not depend on an input.

    Example:
        >>> value, product = tp.autograd.functional.vjp(lambda x: x**2, tp.tensor([1.0, 2.0]), tp.ones(2))
        >>> product
        tensor([2., 4.])
    """
    call = _Call("vjp", func, inputs, create_graph, strict)
    outputs = call(*call.inputs)
    along = call.direction(v, outputs, call.single_output, "the user-provided function returns")
    return call.of_outputs(outputs), call.of_inputs(call.gradients(outputs, along, create_graph, _SECOND))


@enable_grad()
def jvp(
    func: OfTensors[Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """The outputs, and the Jacobian times the vector v: a tangent of each output.

    Arguments:
        func: the function
        inputs: the inputs
        v: the direction, of the inputs' shapes; 1 where the only input is one number
        create_graph: whether derivatives of the result can be taken
        strict: whether it is an error where an output does not depend on an input

    Returns: what func gives, and a tensor or tuple as its outputs.

    Raises: RuntimeError for a v that does not fit, and with strict where func does not depend on an input.

    Example:
        >>> value, product = tp.autograd.functional.jvp(lambda x: x**2, tp.tensor([1.0, 2.0]), tp.ones(2))
        >>> product
        tensor([2., 4.])
    """
    call = _Call("jvp", func, inputs, create_graph, strict)
    along, outputs = call.along_inputs(v), call(*call.inputs)
    return call.of_outputs(outputs), call.of_outputs(call.products(outputs, along, _ALONG))


@enable_grad()
def jacobian(
    func: OfTensors[Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """The derivatives of each element of the outputs by each of the inputs: of shape (*output, *input). The function
    runs once; then one row after the other is taken, all at once with `vectorize`, or with strategy="forward-mode" all
    columns at once.

    Arguments:
        func: the function
        inputs: the inputs
        create_graph: whether derivatives of the result can be taken
        strict: whether it is an error where an output does not depend on an input
        vectorize: whether rows are computed as one batch

    Returns: a tensor, or tuples of them by outputs and inputs.

    Raises: RuntimeError for strict with vectorize, and with strict where func does not depend on an input.

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
    if strategy == "reverse-mode":
        rows = call.rows(call(*call.inputs), vectorize)
    else:
        rows = jacobian_transforms.jacfwd(call, argnums=tuple(range(len(call.inputs))))(*call.inputs)
    by_output = tuple(call.of_inputs(row) for row in rows)
    return by_output[0] if call.single_output else by_output


@enable_grad()
def hessian(
    func: OfTensors[Any],
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

    Returns: a tensor (*input, *input), or tuples of them as the inputs.

    Raises: RuntimeError for a func that gives more than one number, and with strict where it does not depend on an
        input.

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
    call = _Call("hessian", func, inputs, create_graph, strict)
    if outer_jacobian_strategy == "reverse-mode":
        rows = call.rows(call.gradient_of_number((_FIRST[1], _FIRST[1]))[1], vectorize)
    else:
        places = tuple(range(len(call.inputs)))
        inner = jacobian_transforms.jacrev(call.one_number, argnums=places)
        rows = jacobian_transforms.jacfwd(inner, argnums=places)(*call.inputs)
    return call.of_inputs(tuple(call.of_inputs(row) for row in rows))


@enable_grad()
def vhp(
    func: OfTensors[Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """The output, and the vector v times the Hessian.

    Arguments:
        func: the function
        inputs: the inputs
        v: what the rows are weighted by, of the inputs' shapes; 1 where the only input is one number
        create_graph: whether derivatives of the result can be taken
        strict: whether it is an error where an output does not depend on an input

    Returns: what func gives, and a tensor or tuple as the inputs.

    Raises: RuntimeError for a v that does not fit, and with strict where func does not depend on an input.

    Example:
        >>> value, product = tp.autograd.functional.vhp(lambda x: (x**3).sum(), tp.tensor([1.0, 2.0]), tp.ones(2))
        >>> product
        tensor([ 6., 12.])
    """
    call = _Call("vhp", func, inputs, create_graph, strict)
    along = call.along_inputs(v)
    value, gradient = call.gradient_of_number()
    return call.of_outputs((value,)), call.of_inputs(call.gradients(gradient, along, create_graph, _HESSIAN))


@enable_grad()
def hvp(
    func: OfTensors[Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """The output, and the Hessian times the vector v; vhp takes one way backward less.

    Arguments:
        func: the function
        inputs: the inputs
        v: the direction, of the inputs' shapes; 1 where the only input is one number
        create_graph: whether derivatives of the result can be taken
        strict: whether it is an error where an output does not depend on an input

    Returns: what func gives, and a tensor or tuple as the inputs.

    Raises: RuntimeError for a v that does not fit, and with strict where func does not depend on an input.

    Example:
        >>> value, product = tp.autograd.functional.hvp(lambda x: (x**3).sum(), tp.tensor([1.0, 2.0]), tp.ones(2))
        >>> product
        tensor([ 6., 12.])
    """
    call = _Call("hvp", func, inputs, create_graph, strict)
    along = call.along_inputs(v)
    value, gradient = call.gradient_of_number()
    return call.of_outputs((value,)), call.of_inputs(call.products(gradient, along, _HESSIAN))


__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]
