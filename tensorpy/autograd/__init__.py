"""Gradients: backward, grad, Function, checks, anomaly detection."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy._package import parts as _parts
from tensorpy._tensor import torch_function
from tensorpy._tensor.methods import refuse_backward_in_transform
from tensorpy.autograd import function, grad_mode, graph
from tensorpy.autograd.anomaly import detect_anomaly, set_detect_anomaly
from tensorpy.autograd.function import Function, NestedIOFunction
from tensorpy.autograd.grad_mode import (
    _force_original_view_tracking as _force_original_view_tracking,
)
from tensorpy.autograd.grad_mode import (
    _unsafe_preserve_version_counter as _unsafe_preserve_version_counter,
)
from tensorpy.autograd.grad_mode import (
    enable_grad,
    enforce_grad_layout_policy,
    inference_mode,
    is_multithreading_enabled,
    is_view_replay_enabled,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
)
from tensorpy.autograd.gradcheck import GradcheckError, gradcheck, gradgradcheck
from tensorpy.autograd.graph import SavedTensor as SavedTensor
from tensorpy.autograd.variable import Variable


def _as_tuple(value: Any) -> tuple[Any, ...]:
    """A tensor, an edge or several of them; an edge becomes a tensor that stands at its place in the graph."""
    if value is None:
        return ()
    several = (value,) if isinstance(value, (Tensor, graph.GradientEdge)) else tuple(value)
    return tuple(_C._tensor_of_edge(v.node, v.output_nr) if isinstance(v, graph.GradientEdge) else v for v in several)


def _calculate_shape(output: Tensor | graph.GradientEdge, grad: Tensor, is_grads_batched: bool) -> tuple[Any, Any]:
    """The shapes of an output and of its gradient without the batch; of nested tensors the sizes of all pieces."""
    if isinstance(output, graph.GradientEdge):
        if is_grads_batched:
            raise RuntimeError("Batched grads are not supported with GradientEdge")
        return output.node._input_metadata[output.output_nr].shape, grad.shape
    if output.is_nested and output.layout == _C.strided:
        if is_grads_batched:
            raise RuntimeError("Batched grads are not supported with Nested Tensor.")
        return output._nested_tensor_size(), grad._nested_tensor_size()
    return output.shape, grad.shape[1:] if is_grads_batched else grad.shape


def _profiler_enabled() -> bool:
    """Whether calls are recorded for a profile."""
    return bool(_C._get_dispatch_sets()[0] & _C._KEYS["Profiler"])


def _record_function_with_args_enter(name: str, *args: Any) -> tuple[int, int]:
    """Begins a range of a profile that is given tensors, whose shapes are noted; gives what ends it."""
    mark: tuple[int, int] = _C._profiler.enter(name, *args)
    return mark


def _record_function_with_args_exit(mark: tuple[int, int]) -> None:
    """Ends a range of a profile."""
    _C._profiler.leave(*mark)


def _grads_for(
    outputs: tuple[Tensor, ...], grads: Tensor | Sequence[Tensor | None] | None
) -> tuple[Tensor | None, ...]:
    given = _as_tuple(grads)
    if given and len(given) != len(outputs):
        raise RuntimeError(f"got {len(outputs)} tensors and {len(given)} gradients")
    return given or (None,) * len(outputs)


def backward(
    tensors: Tensor | Sequence[Tensor],
    grad_tensors: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Tensor | Sequence[Tensor] | None = None,
) -> None:
    """Adds the gradients of `tensors` to the `.grad` of the leaves (or of `inputs` only).

    Arguments:
        tensors: the tensors
        grad_tensors: the gradients of the tensors; None where a tensor has one element
        retain_graph: whether the graph is kept for another call; None does so where create_graph is
        create_graph: whether derivatives of the result can be taken
        inputs: the inputs

    Example:
        >>> x = tp.tensor([2.0], requires_grad=True)
        >>> tp.autograd.backward([x * x])
        >>> x.grad
        tensor([4.])
    """
    refuse_backward_in_transform()
    outputs = _as_tuple(tensors)
    if inputs is not None and not _as_tuple(inputs):
        raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    keep = create_graph if retain_graph is None else retain_graph
    chosen = None if inputs is None else _as_tuple(inputs)
    _C._run_backward(outputs, _grads_for(outputs, grad_tensors), keep, create_graph, chosen, True)


def grad(
    outputs: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor],
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor, ...]:
    """The gradients of `outputs` with respect to `inputs`, without touching any `.grad`.

    Arguments:
        outputs: the outputs
        inputs: the inputs
        grad_outputs: the gradients of the outputs; None for ones, where an output has one element
        retain_graph: whether the graph is kept for another call; None does so where create_graph is
        create_graph: whether derivatives of the result can be taken
        only_inputs: is taken, and must be True
        allow_unused: whether an input that plays no part has the gradient None instead of an error
        is_grads_batched: whether the first dimension of grad_outputs is a batch
        materialize_grads: whether such gradients are zeros

    Returns: a tuple of tensors, one for each of inputs, None for one that is not used.

    Raises: RuntimeError for no inputs, one that is not used unless allow_unused, an output that requires no gradient,
        and a second walk without retain_graph.

    Example:
        >>> x = tp.tensor([2.0], requires_grad=True)
        >>> tp.autograd.grad(x * x, x)
        (tensor([4.]),)
    """
    if is_grads_batched:
        from tensorpy.func.vmap import vmap

        given, shapes = _as_tuple(grad_outputs), [o.shape for o in _as_tuple(outputs)]
        for i, (g, shape) in enumerate(zip(given, shapes, strict=False)):
            if g is not None and g.shape[1:] != shape:
                raise RuntimeError(
                    "If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch "
                    f"dimension. Mismatch in shape: grad_output[{i}] has a shape of {g.shape} and output[{i}] has a "
                    f"shape of {shape}."
                )
        at = [i for i, g in enumerate(given) if g is not None]

        def one(*some: Tensor) -> tuple[Tensor | None, ...]:
            grads = list(given)
            for i, g in zip(at, some, strict=True):
                grads[i] = g
            return grad(outputs, inputs, grads, True, create_graph, only_inputs, allow_unused, False, materialize_grads)

        found = one(*(given[i][0] for i in at)) if allow_unused else ()
        dims = tuple(None if g is None else 0 for g in found) if allow_unused else 0
        batched: Any = vmap(one, out_dims=dims)(*(given[i] for i in at))
        return tuple(batched)
    if allow_unused is False and materialize_grads:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False."
        )
    roots, wanted = _as_tuple(outputs), _as_tuple(inputs)
    if not wanted:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    keep = create_graph if retain_graph is None else retain_graph
    grads = _C._run_backward(roots, _grads_for(roots, grad_outputs), keep, create_graph, wanted, False)
    if not (allow_unused or materialize_grads) and any(g is None for g in grads):
        raise RuntimeError(
            f"The differentiated Tensor at index {[g is None for g in grads].index(True)} appears to not have been "
            "used in the graph. "
            "Set allow_unused=True if this is the desired behavior."
        )
    if materialize_grads:
        grads = tuple(
            _C.zeros_like(x, requires_grad=create_graph) if g is None else g for g, x in zip(grads, wanted, strict=True)
        )
    return grads


torch_function.make_overridable(__name__, ("backward", "grad"))


TYPE_CHECKING = False
if TYPE_CHECKING:  # what __getattr__ gives at first use
    from tensorpy.autograd import forward_ad as forward_ad
    from tensorpy.autograd import functional as functional
    from tensorpy.autograd import profiler as profiler
    from tensorpy.profiler import kineto_available as kineto_available
else:
    _part = _parts(__name__, ("forward_ad", "functional", "profiler"))

    def __getattr__(name: str) -> object:
        """What few programs need is imported at first use."""
        if name == "kineto_available":
            from tensorpy.profiler import kineto_available

            return kineto_available
        return _part(name)


__all__ = [
    "Function",
    "GradcheckError",
    "NestedIOFunction",
    "Variable",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "enforce_grad_layout_policy",
    "function",
    "grad",
    "grad_mode",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "is_multithreading_enabled",
    "is_view_replay_enabled",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
    "set_multithreading_enabled",
]
