"""What rules for expanded weights share, under PyTorch's names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tensorpy._C import Tensor, cat
from tensorpy.nn.utils._expanded_weights.expanded_weights_impl import ExpandedWeight


def standard_kwargs(kwarg_names: Sequence[str], expanded_args: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Values of a call in a row, of which the last have names, as arguments and keyword arguments."""
    count = len(expanded_args) - len(kwarg_names)
    return tuple(expanded_args[:count]), dict(zip(kwarg_names, expanded_args[count:], strict=True))


def forward_helper(func: Callable[..., Any], expanded_args: Sequence[Any], expanded_kwargs: dict[str, Any]) -> Any:
    """The call with the tensors that expanded weights are made of, after a look at the batch."""
    check_batch(func, expanded_args, expanded_kwargs)
    plain = {name: _plain(value) for name, value in expanded_kwargs.items()}
    return func(*map(_plain, expanded_args), **plain)


def _plain(value: Any) -> Any:
    return value.orig_weight.detach() if isinstance(value, ExpandedWeight) else value


def check_batch(func: Any, args: Sequence[Any], kwargs: dict[str, Any], dim: int | None = None) -> int:
    """The dimension of the first argument that counts samples, which weights say if `dim` does not. RuntimeError unless
    it has samples, and as many as the weights."""
    x = args[0] if args else None
    if isinstance(x, ExpandedWeight):
        raise RuntimeError(
            "Expanded Weights do not support inputs that are also ExpandedWeights. Input must be a Tensor, got "
            f"{type(x).__name__} in function {func.__name__}"
        )
    if not isinstance(x, Tensor):
        raise RuntimeError(
            f"Expanded Weights requires a Tensor as the first input to get the batch dimension, got {type(x).__name__} "
            f"in function {func.__name__}"
        )
    if x.ndim == 0:
        raise RuntimeError(
            f"Expanded Weights requires a batch dimension but got an input of size 0 in function {func.__name__}"
        )
    weights = [value for value in (*args[1:], *kwargs.values()) if isinstance(value, ExpandedWeight)]
    if dim is None:
        dim = 0 if all(w.batch_first for w in weights) or x.ndim == 1 else 1
    count = x.shape[dim]
    if count == 0:
        raise RuntimeError(
            "0 is not a valid batch size for Expanded Weights but got input tensor of size "
            f"{tuple(x.shape)} in function {func.__name__}"
        )
    for weight in weights:
        if count > weight.batch_size or (count < weight.batch_size and not weight.allow_smaller_batches):
            raise RuntimeError(
                "Expected ExpandedWeights to have batch size matching input but got input batch size of "
                f"{count} with ExpandedWeight of batch size {weight.batch_size}"
            )
    return dim


def set_grad_sample_if_exists(maybe_expanded_weight: Any, per_sample_grad_fn: Callable[[Tensor], Any]) -> None:
    """Gives the tensor that an expanded weight is made of its samples' gradients; adds them to those that it has."""
    found = unpack_expanded_weight_or_tensor(maybe_expanded_weight)
    if found is None or not isinstance(maybe_expanded_weight, ExpandedWeight):
        return
    grads, original = per_sample_grad_fn(found), maybe_expanded_weight.orig_weight
    if isinstance(grads, Tensor):
        grads = _scaled(_padded(grads, maybe_expanded_weight.batch_size), maybe_expanded_weight)
    before = getattr(original, "grad_sample", None)
    target: Any = original
    target.grad_sample = grads if before is None else before + grads


def _padded(grads: Tensor, count: int) -> Tensor:
    missing = count - grads.shape[0]
    return cat([grads, grads.new_zeros((missing, *grads.shape[1:]))]) if missing > 0 else grads


def _scaled(grads: Tensor, weight: ExpandedWeight) -> Tensor:
    return grads * weight.batch_size if weight.loss_reduction == "mean" else grads


def unpack_expanded_weight_or_tensor(maybe_expanded_weight: Any, func: Callable[[Any], Any] = lambda x: x) -> Any:
    """`func` of the tensor that an expanded weight is made of, or of one that needs no gradient; None for others."""
    if isinstance(maybe_expanded_weight, ExpandedWeight):
        return func(maybe_expanded_weight.orig_weight)
    if isinstance(maybe_expanded_weight, Tensor):
        if maybe_expanded_weight.requires_grad:
            raise RuntimeError(
                "ExpandedWeights currently does not support a mixture of ExpandedWeight parameters and normal "
                "Parameters: expand the others too, or turn requires_grad off"
            )
        return func(maybe_expanded_weight)
    return None


def sum_over_all_but_batch_and_last_n(tensor: Tensor, n_dims: int) -> Tensor:
    """The sum over the dimensions between the first one and the last n."""
    dims = tuple(range(1, tensor.ndim - n_dims))
    return tensor.sum(dims) if dims else tensor
