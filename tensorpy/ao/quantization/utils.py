"""What observers and the modules that they are for share: ranges of integers, schemes."""

from __future__ import annotations

import functools
import inspect
import warnings
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy._tensor.quantized import (
    per_channel_affine,
    per_channel_affine_float_qparams,
    per_channel_symmetric,
    per_tensor_affine,
    per_tensor_symmetric,
)

# The bits and the signs of the integers that an observer may be for; any other dtype has 4 bits.
_BITS = {
    _C.qint8: (8, True), _C.int8: (8, True), _C.quint8: (8, False), _C.uint8: (8, False), _C.qint32: (32, True),
    _C.int32: (32, True), _C.uint16: (16, False), _C.int16: (16, True),
}  # fmt: skip


def is_per_tensor(qscheme: Any) -> bool:
    """Whether all elements have one scale."""
    return qscheme in (per_tensor_affine, per_tensor_symmetric)


def is_per_channel(qscheme: Any) -> bool:
    """Whether each place along a dimension has a scale."""
    return qscheme in (per_channel_affine, per_channel_symmetric, per_channel_affine_float_qparams)


def is_symmetric(qscheme: Any) -> bool:
    """Whether 0 is the middle integer."""
    return qscheme in (per_tensor_symmetric, per_channel_symmetric)


def range_of(dtype: Any) -> tuple[int, int]:
    """The least and the greatest integer."""
    bits, signed = _BITS.get(dtype, (4, False))
    return (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)


def validate_qmin_qmax(quant_min: int, quant_max: int) -> None:
    """Refuses a range of integers that is empty or without 0."""
    if not quant_min <= 0 <= quant_max:
        raise AssertionError(f"a range of integers has 0 in it, {quant_min} to {quant_max} has not")
    if quant_min >= quant_max:
        raise AssertionError(f"qmin is less than qmax; got {quant_min} and {quant_max}")


def calculate_qmin_qmax(
    quant_min: Any, quant_max: Any, has_customized_qrange: bool, dtype: Any, reduce_range: bool
) -> tuple[int, int]:
    """The integers that an observer uses: those asked for or those of the dtype, or half of them.

    Half of the range of 16 bits and more is the whole one, as in PyTorch.
    """
    if has_customized_qrange:
        bits = {_C.qint8: 8, _C.int8: 8, _C.qint32: 32, _C.int32: 32}.get(dtype)
        if bits is not None and not 0 < quant_max - quant_min + 1 <= 2**bits:
            raise AssertionError(f"{dtype} has at most {2**bits} integers; got {quant_min} to {quant_max}")
        return (quant_min // 2, quant_max // 2) if reduce_range else (quant_min, quant_max)
    low, high = range_of(dtype)
    return (low // 2, high // 2) if reduce_range and _BITS.get(dtype, (4,))[0] == 8 else (low, high)


def check_min_max_valid(min_val: Tensor, max_val: Tensor) -> bool:
    """Whether something was observed; False with a warning where nothing was."""
    nothing = min_val.numel() == 0 or max_val.numel() == 0
    if not nothing and (min_val.dim() == 0 or max_val.dim() == 0):
        nothing = min_val.item() == float("inf") and max_val.item() == float("-inf")
    if nothing:
        warnings.warn("calculate_qparams() before anything was observed: default values", stacklevel=3)
        return False
    if bool((min_val > max_val).any()):
        raise AssertionError(f"min {min_val} should be less than max {max_val}")
    return True


def get_combined_dict(default_dict: dict[Any, Any], additional_dict: dict[Any, Any]) -> dict[Any, Any]:
    """The entries of both; those of the second stand before the first's."""
    return {**default_dict, **additional_dict}


def get_qparam_dict(observer_or_fake_quant: Any) -> dict[str, Any]:
    """What an observer says of a tensor: scheme, dtype, scale, zero point, axis, integers."""
    qscheme, dtype = getattr(observer_or_fake_quant, "qscheme", None), observer_or_fake_quant.dtype
    if qscheme is None or getattr(observer_or_fake_quant, "custom_op", None) is not None:  # does not look
        return {"qscheme": None, "dtype": dtype}
    found: dict[str, Any] = {"dtype": dtype}
    found["qscheme"] = {per_tensor_symmetric: per_tensor_affine, per_channel_symmetric: per_channel_affine}.get(
        qscheme, qscheme
    )
    if is_per_channel(qscheme):
        found["axis"] = observer_or_fake_quant.ch_axis
    found["scale"], found["zero_point"] = observer_or_fake_quant.calculate_qparams()
    for name in ("quant_min", "quant_max"):
        if hasattr(observer_or_fake_quant, name):
            found[name] = getattr(observer_or_fake_quant, name)
    return found


def has_no_children_ignoring_parametrizations(module: Any) -> bool:
    """Whether a module has no modules but those that compute its parameters."""
    return all(name == "parametrizations" for name in module._modules)


def get_fqn_to_example_inputs(model: Any, example_inputs: tuple[Any, ...]) -> dict[str, tuple[Any, ...]]:
    """What each module of a model is called with when the model is called, by the module's name ("" is the model).

    Keywords and defaults stand where they would as positional arguments. A module that is called several times has the
    arguments of the last call, and one that has several names the first of them.

    Arguments:
        model: a module
        example_inputs: what it is called with

    Returns: a dict of tuples, in the order of the first calls.

    Example:
        >>> model = tp.nn.Sequential(tp.nn.ReLU(), tp.nn.Dropout())
        >>> list(tp.ao.quantization.utils.get_fqn_to_example_inputs(model, (tp.ones(2),)))
        ['', '0', '1']
    """
    found: dict[str, tuple[Any, ...]] = {}

    def note(name: str, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        bound = inspect.signature(module.forward).bind(*args, **kwargs)
        bound.apply_defaults()
        found[name] = (*bound.args, *bound.kwargs.values())

    hooks = [
        module.register_forward_pre_hook(functools.partial(note, name), prepend=True, with_kwargs=True)
        for name, module in model.named_modules()
    ]
    try:
        model(*example_inputs)
    finally:
        for hook in hooks:
            hook.remove()
    return found
