"""Which module a type of module becomes: when it is quantized, when it is trained with fake quantization."""

from __future__ import annotations

import copy
from typing import Any

from tensorpy import nn
from tensorpy.ao.nn import intrinsic as nni
from tensorpy.ao.nn import qat as nnqat
from tensorpy.ao.nn import quantized as nnq
from tensorpy.ao.nn.intrinsic import qat as nniqat
from tensorpy.ao.nn.intrinsic import quantized as nniq
from tensorpy.ao.nn.intrinsic.quantized import dynamic as nniqd
from tensorpy.ao.nn.quantized import dynamic as nnqd
from tensorpy.ao.nn.quantized import reference as nnqr
from tensorpy.ao.quantization.fake_quantize import (
    default_fixed_qparams_range_0to1_fake_quant,
    default_fixed_qparams_range_neg1to1_fake_quant,
)
from tensorpy.ao.quantization.stubs import DeQuantStub, QuantStub
from tensorpy.ao.quantization.utils import get_combined_dict
from tensorpy.nn.modules.linear import NonDynamicallyQuantizableLinear

__all__ = [
    "DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS", "DEFAULT_MODULE_TO_ACT_POST_PROCESS", "DEFAULT_QAT_MODULE_MAPPINGS",
    "DEFAULT_REFERENCE_STATIC_QUANT_MODULE_MAPPINGS", "DEFAULT_STATIC_QUANT_MODULE_MAPPINGS",
    "get_default_dynamic_quant_module_mappings",
    "get_default_qat_module_mappings", "get_default_qconfig_propagation_list",
    "get_default_static_quant_module_mappings", "get_default_static_quant_reference_module_mappings",
    "get_dynamic_quant_module_class", "get_embedding_qat_module_mappings",
    "get_embedding_static_quant_module_mappings", "get_static_quant_module_class",
]  # fmt: skip

# What computes in floating point what the quantized module would in integers.
DEFAULT_REFERENCE_STATIC_QUANT_MODULE_MAPPINGS: dict[Any, Any] = {
    QuantStub: nnq.Quantize,
    DeQuantStub: nnq.DeQuantize,
    **{getattr(nn, name): getattr(nnqr, name) for name in nnqr.__all__ if name != "GRU"},
}
DEFAULT_STATIC_QUANT_MODULE_MAPPINGS: dict[Any, Any] = {
    QuantStub: nnq.Quantize,
    DeQuantStub: nnq.DeQuantize,
    nn.BatchNorm2d: nnq.BatchNorm2d,
    nn.BatchNorm3d: nnq.BatchNorm3d,
    nni.BNReLU2d: nniq.BNReLU2d,
    nni.BNReLU3d: nniq.BNReLU3d,
    nn.Dropout: nnq.Dropout,
    nn.ConvTranspose1d: nnq.ConvTranspose1d,
    nn.ConvTranspose2d: nnq.ConvTranspose2d,
    nn.ConvTranspose3d: nnq.ConvTranspose3d,
    nn.ELU: nnq.ELU,
    nn.Embedding: nnq.Embedding,
    nn.EmbeddingBag: nnq.EmbeddingBag,
    nn.GroupNorm: nnq.GroupNorm,
    nn.Hardswish: nnq.Hardswish,
    nn.InstanceNorm1d: nnq.InstanceNorm1d,
    nn.InstanceNorm2d: nnq.InstanceNorm2d,
    nn.InstanceNorm3d: nnq.InstanceNorm3d,
    nn.LayerNorm: nnq.LayerNorm,
    nn.LeakyReLU: nnq.LeakyReLU,
    nn.PReLU: nnq.PReLU,
    nn.ReLU6: nnq.ReLU6,
    nnq.FloatFunctional: nnq.QFunctional,
    **dict.fromkeys((nn.Linear, NonDynamicallyQuantizableLinear, nnqat.Linear), nnq.Linear),
    nniqat.LinearBn1d: nnq.Linear,
    **dict.fromkeys((nni.LinearReLU, nniqat.LinearReLU), nniq.LinearReLU),
    **dict.fromkeys((nn.Conv1d, nnqat.Conv1d, nniqat.ConvBn1d), nnq.Conv1d),
    **dict.fromkeys((nn.Conv2d, nnqat.Conv2d, nniqat.ConvBn2d), nnq.Conv2d),
    **dict.fromkeys((nn.Conv3d, nnqat.Conv3d, nniqat.ConvBn3d), nnq.Conv3d),
    **dict.fromkeys((nni.ConvReLU1d, nniqat.ConvReLU1d, nniqat.ConvBnReLU1d), nniq.ConvReLU1d),
    **dict.fromkeys((nni.ConvReLU2d, nniqat.ConvReLU2d, nniqat.ConvBnReLU2d), nniq.ConvReLU2d),
    **dict.fromkeys((nni.ConvReLU3d, nniqat.ConvReLU3d, nniqat.ConvBnReLU3d), nniq.ConvReLU3d),
}
DEFAULT_QAT_MODULE_MAPPINGS: dict[Any, Any] = {
    nn.Conv2d: nnqat.Conv2d,
    nn.Conv3d: nnqat.Conv3d,
    nn.Linear: nnqat.Linear,
    nni.ConvBn1d: nniqat.ConvBn1d,
    nni.ConvBn2d: nniqat.ConvBn2d,
    nni.ConvBn3d: nniqat.ConvBn3d,
    nni.ConvBnReLU1d: nniqat.ConvBnReLU1d,
    nni.ConvBnReLU2d: nniqat.ConvBnReLU2d,
    nni.ConvBnReLU3d: nniqat.ConvBnReLU3d,
    nni.ConvReLU2d: nniqat.ConvReLU2d,
    nni.ConvReLU3d: nniqat.ConvReLU3d,
    nni.LinearBn1d: nniqat.LinearBn1d,
    nni.LinearReLU: nniqat.LinearReLU,
    NonDynamicallyQuantizableLinear: nnqat.Linear,
}
DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS: dict[Any, Any] = {
    nn.Linear: nnqd.Linear,
    NonDynamicallyQuantizableLinear: nnqd.Linear,
    nni.LinearReLU: nniqd.LinearReLU,
    nn.LSTM: nnqd.LSTM,
    nn.GRU: nnqd.GRU,
    nn.LSTMCell: nnqd.LSTMCell,
    nn.GRUCell: nnqd.GRUCell,
    nn.RNNCell: nnqd.RNNCell,
    nn.Embedding: nnq.Embedding,
    nn.EmbeddingBag: nnq.EmbeddingBag,
}
DEFAULT_MODULE_TO_ACT_POST_PROCESS: dict[Any, Any] = {
    nn.Hardsigmoid: default_fixed_qparams_range_0to1_fake_quant,
    nn.Sigmoid: default_fixed_qparams_range_0to1_fake_quant,
    nn.Softmax: default_fixed_qparams_range_0to1_fake_quant,
    nn.Tanh: default_fixed_qparams_range_neg1to1_fake_quant,
}


def get_default_static_quant_reference_module_mappings() -> dict[Any, Any]:
    """What each type of module becomes that is to compute in floating point with rounded weights.

    Returns: a dict of classes.

    Example:
        >>> tp.ao.quantization.get_default_static_quant_reference_module_mappings()[nn.Linear].__name__
        'Linear'
    """
    return copy.deepcopy(DEFAULT_REFERENCE_STATIC_QUANT_MODULE_MAPPINGS)


def get_default_static_quant_module_mappings() -> dict[Any, Any]:
    """What types of modules become when a model that was calibrated is converted.

    Returns: a dict of classes.

    Example:
        >>> tp.ao.quantization.get_default_static_quant_module_mappings()[nn.Linear].__module__
        'tensorpy.ao.nn.quantized.modules.linear'
    """
    return copy.copy(DEFAULT_STATIC_QUANT_MODULE_MAPPINGS)


def get_default_qat_module_mappings() -> dict[Any, Any]:
    """What types of modules become when a model is trained with fake quantization.

    Returns: a dict of classes.

    Example:
        >>> tp.ao.quantization.get_default_qat_module_mappings()[nn.Linear].__module__
        'tensorpy.ao.nn.qat.modules.linear'
    """
    return copy.copy(DEFAULT_QAT_MODULE_MAPPINGS)


def get_default_dynamic_quant_module_mappings() -> dict[Any, Any]:
    """What types of modules become whose input is quantized at each call.

    Returns: a dict of classes.

    Example:
        >>> tp.ao.quantization.get_default_dynamic_quant_module_mappings()[nn.Linear].__module__
        'tensorpy.ao.nn.quantized.dynamic.modules.linear'
    """
    return DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS


def get_embedding_qat_module_mappings() -> dict[Any, Any]:
    """What types of modules become when a model is trained with fake quantization, tables of embeddings too.

    Returns: a dict of classes.

    Example:
        >>> tp.ao.quantization.get_embedding_qat_module_mappings()[nn.Embedding] is tp.ao.nn.qat.Embedding
        True
    """
    return {**DEFAULT_QAT_MODULE_MAPPINGS, nn.EmbeddingBag: nnqat.EmbeddingBag, nn.Embedding: nnqat.Embedding}


def get_embedding_static_quant_module_mappings() -> dict[Any, Any]:
    """What types of modules become when a model is converted whose tables of embeddings were fake-quantized too.

    Returns: a dict of classes.

    Example:
        >>> kinds = tp.ao.quantization.get_embedding_static_quant_module_mappings()
        >>> kinds[tp.ao.nn.qat.Embedding] is tp.ao.nn.quantized.Embedding
        True
    """
    tables = {nnqat.EmbeddingBag: nnq.EmbeddingBag, nnqat.Embedding: nnq.Embedding}
    return {**DEFAULT_STATIC_QUANT_MODULE_MAPPINGS, **tables}


def get_default_qconfig_propagation_list() -> set[Any]:
    """The types of modules that get an observer.

    Returns: a set of classes.

    Example:
        >>> nn.Linear in tp.ao.quantization.get_default_qconfig_propagation_list()
        True
    """
    return {
        *DEFAULT_STATIC_QUANT_MODULE_MAPPINGS,
        *DEFAULT_QAT_MODULE_MAPPINGS,
        nn.Sequential,
    }


def _found(kinds: dict[Any, Any], kind: Any, more: Any) -> Any:
    made = get_combined_dict(kinds, more or {}).get(kind)
    if made is None:
        raise AssertionError(f"Floating point module class {kind} does not have a corresponding quantized module class")
    return made


def get_static_quant_module_class(
    float_module_class: Any, additional_static_quant_mapping: Any = None, is_reference: bool = False
) -> Any:
    """What one type of module becomes when a model that was calibrated is converted.

    Arguments:
        float_module_class: the type
        additional_static_quant_mapping: what more types become
        is_reference: whether it computes in floating point, with weights that are rounded to integers

    Returns: a class.

    Raises: AssertionError where there is none.

    Example:
        >>> tp.ao.quantization.get_static_quant_module_class(nn.Linear) is tp.ao.nn.quantized.Linear
        True
    """
    kinds = DEFAULT_REFERENCE_STATIC_QUANT_MODULE_MAPPINGS if is_reference else DEFAULT_STATIC_QUANT_MODULE_MAPPINGS
    return _found(kinds, float_module_class, additional_static_quant_mapping)


def get_dynamic_quant_module_class(float_module_class: Any, additional_dynamic_quant_mapping: Any = None) -> Any:
    """What one type of module becomes whose input is quantized at each call.

    Arguments:
        float_module_class: the type
        additional_dynamic_quant_mapping: what more types become

    Returns: a class.

    Raises: AssertionError where there is none.

    Example:
        >>> tp.ao.quantization.get_dynamic_quant_module_class(nn.Linear) is tp.ao.nn.quantized.dynamic.Linear
        True
    """
    return _found(DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS, float_module_class, additional_dynamic_quant_mapping)
