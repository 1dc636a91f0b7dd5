"""How a sequence of modules becomes one."""

from __future__ import annotations

from typing import Any

from tensorpy import nn
from tensorpy.ao.nn import intrinsic as nni
from tensorpy.ao.quantization.utils import get_combined_dict
from tensorpy.nn.utils import fuse_conv_bn_eval, fuse_linear_bn_eval

__all__ = ["fuse_conv_bn", "fuse_conv_bn_relu", "fuse_convtranspose_bn", "fuse_linear_bn", "get_fuser_method"]

_CONV_BN = {nn.Conv1d: nni.ConvBn1d, nn.Conv2d: nni.ConvBn2d, nn.Conv3d: nni.ConvBn3d}
_CONV_BN_RELU = {nn.Conv1d: nni.ConvBnReLU1d, nn.Conv2d: nni.ConvBnReLU2d, nn.Conv3d: nni.ConvBnReLU3d}
_CONV_RELU = {nn.Conv1d: nni.ConvReLU1d, nn.Conv2d: nni.ConvReLU2d, nn.Conv3d: nni.ConvReLU3d}


def _check_modes(*modules: Any) -> None:
    if len({module.training for module in modules}) > 1:
        raise AssertionError("modules that are fused are all in training, or all in evaluation")


def _check_bn(features: int, bn: Any) -> None:
    """What a batch norm has that is trained along with the layer before it."""
    if bn.num_features != features:
        raise AssertionError(f"the batch norm is of {bn.num_features} features, the layer before it gives {features}")
    if not bn.affine or not bn.track_running_stats:
        raise AssertionError("a batch norm that is fused has weight, bias and running statistics")


def fuse_conv_bn(is_qat: bool, conv: Any, bn: Any) -> Any:
    """A convolution and a batch norm as one module: a sequence in training, else a convolution.

    Arguments:
        is_qat: whether it is for training with fake quantization
        conv: the convolution
        bn: the batch normalisation

    Returns: a module.

    Raises: NotImplementedError for modules in training that have no fused form.

    Example:
        >>> conv, bn = nn.Conv2d(1, 2, 3).eval(), nn.BatchNorm2d(2).eval()
        >>> type(tp.ao.quantization.fuse_conv_bn(False, conv, bn)).__name__
        'Conv2d'
    """
    _check_modes(conv, bn)
    if not is_qat:
        return fuse_conv_bn_eval(conv, bn)
    _check_bn(conv.out_channels, bn)
    if type(conv) not in _CONV_BN:
        raise NotImplementedError(f"Cannot fuse train modules: {(conv, bn)}")
    return _CONV_BN[type(conv)](conv, bn)


def fuse_conv_bn_relu(is_qat: bool, conv: Any, bn: Any, relu: Any) -> Any:
    """The same with a ReLU behind it, as a sequence.

    Arguments:
        is_qat: whether it is for training with fake quantization
        conv: the convolution
        bn: the batch normalisation
        relu: the ReLU

    Returns: a module.

    Raises: NotImplementedError for modules that have no fused form.

    Example:
        >>> parts = nn.Conv2d(1, 2, 3).eval(), nn.BatchNorm2d(2).eval(), nn.ReLU().eval()
        >>> type(tp.ao.quantization.fuse_conv_bn_relu(False, *parts)).__name__
        'ConvReLU2d'
    """
    _check_modes(conv, bn, relu)
    kinds: dict[Any, Any] = _CONV_BN_RELU if is_qat else _CONV_RELU
    if type(conv) not in kinds:
        raise NotImplementedError(f"Cannot fuse modules: {(conv, bn, relu)}")
    if not is_qat:
        return kinds[type(conv)](fuse_conv_bn_eval(conv, bn), relu)
    _check_bn(conv.out_channels, bn)
    return kinds[type(conv)](conv, bn, relu)


def fuse_linear_bn(is_qat: bool, linear: Any, bn: Any) -> Any:
    """A linear map and a batch norm as one module.

    Arguments:
        is_qat: whether it is for training with fake quantization
        linear: the linear map
        bn: the batch normalisation

    Returns: a module.

    Example:
        >>> linear, bn = nn.Linear(2, 3).eval(), nn.BatchNorm1d(3).eval()
        >>> type(tp.ao.quantization.fuse_linear_bn(False, linear, bn)).__name__
        'Linear'
    """
    _check_modes(linear, bn)
    if not is_qat:
        return fuse_linear_bn_eval(linear, bn)
    _check_bn(linear.out_features, bn)
    return nni.LinearBn1d(linear, bn)


def fuse_convtranspose_bn(is_qat: bool, convt: Any, bn: Any) -> Any:
    """A transposed convolution that does what one and a batch norm do together in evaluation.

    Arguments:
        is_qat: False
        convt: the transposed convolution
        bn: the batch normalisation

    Returns: a module.

    Raises: Exception for modules in training.

    Example:
        >>> convt, bn = nn.ConvTranspose2d(1, 2, 3).eval(), nn.BatchNorm2d(2).eval()
        >>> type(tp.ao.quantization.fuse_convtranspose_bn(False, convt, bn)).__name__
        'ConvTranspose2d'
    """
    _check_modes(convt, bn)
    if is_qat:
        raise Exception("a transposed convolution is not fused with a batch norm in training")
    return fuse_conv_bn_eval(convt, bn, transpose=True)


def _sequence(kind: Any) -> Any:
    return lambda is_qat, *parts: kind(*parts)


_METHODS: dict[tuple[Any, ...], Any] = {
    **{kind._PARTS: fuse_conv_bn for kind in _CONV_BN.values()},
    **{kind._PARTS: fuse_conv_bn_relu for kind in _CONV_BN_RELU.values()},
    **{kind._PARTS: _sequence(kind) for kind in (*_CONV_RELU.values(), nni.LinearReLU, nni.BNReLU2d, nni.BNReLU3d)},
    (nn.Linear, nn.BatchNorm1d): fuse_linear_bn,
    (nn.ConvTranspose1d, nn.BatchNorm1d): fuse_convtranspose_bn,
    (nn.ConvTranspose2d, nn.BatchNorm2d): fuse_convtranspose_bn,
    (nn.ConvTranspose3d, nn.BatchNorm3d): fuse_convtranspose_bn,
}


def get_fuser_method(op_list: Any, additional_fuser_method_mapping: Any = None) -> Any:
    """What makes one module of a sequence of types: a function of is_qat and the modules.

    Arguments:
        op_list: the types
        additional_fuser_method_mapping: more of them, by such tuples

    Returns: a function.

    Raises: AssertionError for types that have none.

    Example:
        >>> tp.ao.quantization.get_fuser_method((nn.Conv2d, nn.BatchNorm2d)).__name__
        'fuse_conv_bn'
    """
    method = get_combined_dict(_METHODS, additional_fuser_method_mapping or {}).get(tuple(op_list))
    if method is None:
        raise AssertionError(f"did not find fuser method for: {op_list} ")
    return method
