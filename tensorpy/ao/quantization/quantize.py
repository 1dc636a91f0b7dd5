"""Models that are quantized: observed, converted, trained with fake quantization."""

from __future__ import annotations

import copy
import warnings
from typing import Any

from tensorpy import _C, nn
from tensorpy.ao.nn import quantizable, steps
from tensorpy.ao.nn.intrinsic import _FusedModule
from tensorpy.ao.nn.quantized import FloatFunctional
from tensorpy.ao.nn.quantized.modules import rnn as quantized_rnn
from tensorpy.ao.quantization.fake_quantize import FakeQuantizeBase
from tensorpy.ao.quantization.observer import ObserverBase
from tensorpy.ao.quantization.qconfig import (
    _activation_is_memoryless,
    _assert_valid_qconfig,
    _on_device_of,
    default_dynamic_qconfig,
    float16_dynamic_qconfig,
    float_qparams_weight_only_qconfig,
    float_qparams_weight_only_qconfig_4bit,
)
from tensorpy.ao.quantization.quantization_mappings import (
    DEFAULT_MODULE_TO_ACT_POST_PROCESS,
    get_default_dynamic_quant_module_mappings,
    get_default_qat_module_mappings,
    get_default_qconfig_propagation_list,
    get_default_static_quant_module_mappings,
    get_default_static_quant_reference_module_mappings,
)
from tensorpy.ao.quantization.stubs import DeQuantStub, QuantStub, QuantWrapper
from tensorpy.ao.quantization.utils import get_qparam_dict, has_no_children_ignoring_parametrizations

__all__ = [
    "add_quant_dequant", "convert", "get_default_custom_config_dict", "prepare", "prepare_qat", "propagate_qconfig_",
    "quantize", "quantize_dynamic", "quantize_qat", "swap_module",
]  # fmt: skip

_CUSTOM: dict[str, Any] = {
    "float_to_observed_custom_module_class": {
        nn.LSTM: quantizable.LSTM,
        nn.MultiheadAttention: quantizable.MultiheadAttention,
    },
    "observed_to_quantized_custom_module_class": {
        quantizable.LSTM: quantized_rnn.LSTM,
        quantizable.MultiheadAttention: quantized_rnn.MultiheadAttention,
    },
}


def get_default_custom_config_dict() -> dict[str, Any]:
    """Which types have an observed and a quantized type of their own.

    Returns: a dict of dicts.

    Example:
        >>> sorted(tp.ao.quantization.get_default_custom_config_dict())[0]
        'float_to_observed_custom_module_class'
    """
    return copy.deepcopy(_CUSTOM)


# ---- configurations of modules ----


def _propagate(module: Any, said: dict[Any, Any], above: Any, name: str) -> None:
    qconfig = getattr(module, "qconfig", said.get(name, said.get(type(module), above)))
    _assert_valid_qconfig(qconfig, module)
    module.qconfig = _on_device_of(module, qconfig)
    for own, child in module.named_children():
        _propagate(child, said, module.qconfig, f"{name}.{own}" if name else own)


def propagate_qconfig_(module: Any, qconfig_dict: Any = None, prepare_custom_config_dict: Any = None) -> None:
    """Gives each module a qconfig: its own, else what is said of its name or type, else that of the module around it.

    Arguments:
        module: the model
        qconfig_dict: configurations by names and types of modules
        prepare_custom_config_dict: not read: PyTorch's for graphs

    Example:
        >>> model = nn.Sequential(nn.Linear(2, 2))
        >>> tp.ao.quantization.propagate_qconfig_(model, {nn.Linear: tp.ao.quantization.default_dynamic_qconfig})
        >>> model[0].qconfig is None
        False
    """
    _propagate(module, qconfig_dict or {}, None, "")


# ---- observers ----


def _observer_forward_hook(self: Any, input: Any, output: Any) -> Any:
    return self.activation_post_process(output)


def _observer_forward_pre_hook(self: Any, input: Any) -> Any:
    return self.activation_post_process(input[0])


def _device_of(module: Any) -> Any:
    devices = {t.device for t in (*module.parameters(), *module.buffers()) if t.device.type != "meta"}
    if len(devices) > 1:
        raise AssertionError(f"a module that is quantized is on one device, not on {devices}")
    return next(iter(devices), None)


def _observe(module: Any, device: Any, made: Any = None) -> None:
    """Gives a module an observer of its output, or of its input where each tensor has a range of its own."""
    if getattr(module, "qconfig", None) is None or isinstance(module, DeQuantStub):
        return
    observer = (made or module.qconfig.activation)()
    module.add_module("activation_post_process", observer if device is None else observer.to(device))
    if _activation_is_memoryless(module.qconfig):
        module.register_forward_pre_hook(_observer_forward_pre_hook, prepend=True)
    else:
        module.register_forward_hook(_observer_forward_hook, prepend=True)


def _add_observers(module: Any, kinds: Any, whole: Any, device: Any, custom: dict[Any, Any]) -> None:
    for name, child in module.named_children():
        kind = type(child)
        if kind is nn.Dropout:
            continue
        if kind is FloatFunctional:
            if getattr(child, "qconfig", None) is not None:
                child.activation_post_process = child.qconfig.activation()
        elif isinstance(child, _FusedModule) or kind in whole:
            _observe(child, device)
        elif child.training and kind in DEFAULT_MODULE_TO_ACT_POST_PROCESS:
            _observe(child, device, DEFAULT_MODULE_TO_ACT_POST_PROCESS[kind])
        elif getattr(child, "qconfig", None) is not None and kind in custom:
            setattr(module, name, custom[kind].from_float(child))
            if custom[kind] not in (quantizable.LSTM, quantizable.MultiheadAttention):  # their parts are observed
                _observe(getattr(module, name), device)
        else:
            _add_observers(child, kinds, whole, device, custom)
    is_leaf = has_no_children_ignoring_parametrizations(module) or hasattr(module, "weight_fake_quant")
    if is_leaf and not isinstance(module, nn.Sequential) and type(module) in kinds:
        if not hasattr(module, "activation_post_process"):
            _observe(module, device)


def add_quant_dequant(module: Any) -> Any:
    """A model whose leaves that have a qconfig stand in QuantWrappers.

    Arguments:
        module: the model, whose modules are replaced

    Returns: the model.

    Example:
        >>> layer = nn.Linear(2, 2)
        >>> layer.qconfig = tp.ao.quantization.default_qconfig
        >>> type(tp.ao.quantization.add_quant_dequant(layer)).__name__
        'QuantWrapper'
    """
    if has_no_children_ignoring_parametrizations(module) and getattr(module, "qconfig", None):
        return QuantWrapper(module)
    for name, child in module.named_children():
        module._modules[name] = add_quant_dequant(child)
    return module


def prepare(
    model: Any,
    inplace: bool = False,
    allow_list: Any = None,
    observer_non_leaf_module_list: Any = None,
    prepare_custom_config_dict: Any = None,
) -> Any:
    """A model with observers, to be calibrated: `model.qconfig`, or those of its modules, say which.

    Arguments:
        model: the model
        inplace: whether the model itself is changed
        allow_list: the types of modules that get an observer; None takes the usual ones
        observer_non_leaf_module_list: types of modules with modules in them that get one too
        prepare_custom_config_dict: types with an observed type of their own, as get_default_custom_config_dict

    Returns: a model, the given one if inplace.

    Example:
        >>> model = nn.Sequential(tp.ao.quantization.QuantStub(), nn.Linear(2, 2)).eval()
        >>> model.qconfig = tp.ao.quantization.default_qconfig
        >>> type(tp.ao.quantization.prepare(model)[1].activation_post_process).__name__
        'MinMaxObserver'
    """
    custom = (prepare_custom_config_dict or _CUSTOM).get("float_to_observed_custom_module_class", {})
    model = model if inplace else copy.deepcopy(model)
    propagate_qconfig_(model)
    if not any(getattr(module, "qconfig", None) for module in model.modules()):
        warnings.warn("no module has a qconfig: prepare() adds no observer", stacklevel=2)
    kinds = get_default_qconfig_propagation_list() if allow_list is None else allow_list
    _add_observers(model, kinds, observer_non_leaf_module_list or (), _device_of(model), custom)
    return model


# ---- from one type to another ----


def _remove_qconfig(module: Any) -> None:
    for child in module.children():
        _remove_qconfig(child)
    if hasattr(module, "qconfig"):
        del module.qconfig
    if isinstance(getattr(module, "activation_post_process", None), (ObserverBase, FakeQuantizeBase)):
        del module.activation_post_process
    for hooks in (module._forward_pre_hooks, module._forward_hooks):
        for key in [k for k, hook in hooks.items() if hook in (_observer_forward_hook, _observer_forward_pre_hook)]:
            del hooks[key]


def _of_weights(mod: Any) -> dict[str, Any]:
    """How the weights of a module are quantized, by the observer that its qconfig makes; several by their names."""
    found: dict[str, Any] = {}
    for name, parameter in mod.named_parameters():
        if name.startswith("weight"):
            observer = mod.qconfig.weight()
            observer(parameter)
            found[name] = get_qparam_dict(observer)
    return found["weight"] if "weight" in found else {**found, "is_decomposed": False}


def swap_module(
    mod: Any, mapping: Any, custom_module_class_mapping: Any, use_precomputed_fake_quant: bool = False
) -> Any:
    """What stands for a module with a qconfig: of the type that its type becomes, else the module.

    Arguments:
        mod: the module
        mapping: what types become, by their `from_float`
        custom_module_class_mapping: what other types become, by their `from_observed`
        use_precomputed_fake_quant: whether the weight's range is taken as it is

    Returns: a module.

    Example:
        >>> layer = nn.Linear(2, 2)
        >>> tp.ao.quantization.swap_module(layer, {}, {}) is layer
        True
    """
    if getattr(mod, "qconfig", None) is None:
        return mod
    kind = type(mod)
    if kind in custom_module_class_mapping:
        made = custom_module_class_mapping[kind].from_observed(mod)
    elif kind in mapping and getattr(mapping[kind], "_IS_REFERENCE", False):
        made = mapping[kind].from_float(mod, _of_weights(mod))
    elif kind in mapping:
        made = mapping[kind].from_float(mod, use_precomputed_fake_quant=use_precomputed_fake_quant)
    else:
        return mod
    for hook in mod._forward_pre_hooks.values():
        if hook is not _observer_forward_pre_hook:
            made.register_forward_pre_hook(hook)
    for hook in mod._forward_hooks.values():
        if hook is not _observer_forward_hook:
            made.register_forward_hook(hook)
    device = _device_of(mod)
    return made if device is None else made.to(device)


def _swap_children(module: Any, mapping: Any, custom: Any, precomputed: bool) -> None:
    made = {}
    for name, child in module.named_children():
        whole = isinstance(child, _FusedModule) or type(child) in custom or type(child) in mapping
        if not whole:  # parts of what is swapped are that one's
            _swap_children(child, mapping, custom, precomputed)
        made[name] = swap_module(child, mapping, custom, precomputed)
    module._modules.update(made)


def convert(
    module: Any,
    mapping: Any = None,
    inplace: bool = False,
    remove_qconfig: bool = True,
    is_reference: bool = False,
    convert_custom_config_dict: Any = None,
    use_precomputed_fake_quant: bool = False,
) -> Any:
    """A model that was observed, or trained with fake quantization, with modules that compute with integers.

    Arguments:
        module: the model
        mapping: what types of modules become; None takes the usual ones
        inplace: whether the model itself is changed
        remove_qconfig: whether qconfigs and observers go
        is_reference: whether modules compute in floating point, with weights that are rounded to integers
        convert_custom_config_dict: types with a quantized type of their own, as get_default_custom_config_dict
        use_precomputed_fake_quant: whether ranges of weights are taken as they are

    Returns: a model, the given one if inplace.

    Example:
        >>> model = tp.ao.quantization.QuantWrapper(nn.Linear(2, 2)).eval()
        >>> model.qconfig = tp.ao.quantization.default_qconfig
        >>> model = tp.ao.quantization.prepare(model)
        >>> y = model(tp.ones(1, 2))
        >>> tp.ao.quantization.convert(model).module.weight().dtype
        tensorpy.qint8
    """
    custom = (convert_custom_config_dict or _CUSTOM).get("observed_to_quantized_custom_module_class", {})
    module = module if inplace else copy.deepcopy(module)
    usual = (
        get_default_static_quant_reference_module_mappings if is_reference else get_default_static_quant_module_mappings
    )
    kinds = usual() if mapping is None else mapping
    _swap_children(module, kinds, custom, use_precomputed_fake_quant)
    if remove_qconfig:
        _remove_qconfig(module)
    return module


# ---- in one go ----


def quantize(model: Any, run_fn: Any, run_args: Any, mapping: Any = None, inplace: bool = False) -> Any:
    """Observes a model while a function runs it, then converts it.

    Arguments:
        model: the model
        run_fn: runs the model, which is its first argument
        run_args: its other arguments
        mapping: what types of modules become; None takes the usual ones
        inplace: whether the model itself is changed

    Returns: a model, the given one if inplace.

    Example:
        >>> model = tp.ao.quantization.QuantWrapper(nn.Linear(2, 2))
        >>> model.qconfig = tp.ao.quantization.default_qconfig
        >>> tp.ao.quantization.quantize(model, lambda m: m(tp.ones(1, 2)), ()).module.weight().dtype
        tensorpy.qint8
    """
    model = (model if inplace else copy.deepcopy(model)).eval()
    prepare(model, inplace=True)
    run_fn(model, *run_args)
    return convert(model, mapping, inplace=True)


_TABLES = (nn.Embedding, nn.EmbeddingBag)
_MAPS = (nn.Linear, nn.LSTM, nn.GRU, nn.LSTMCell, nn.RNNCell, nn.GRUCell)
_DYNAMIC: dict[Any, Any] = {  # what is quantized, if nothing is said, and how
    _C.qint8: (_MAPS, default_dynamic_qconfig),
    _C.float16: (_MAPS, float16_dynamic_qconfig),
    _C.quint8: (_TABLES, float_qparams_weight_only_qconfig),
    _C.quint4x2: (_TABLES, float_qparams_weight_only_qconfig_4bit),
}


def quantize_dynamic(
    model: Any, qconfig_spec: Any = None, dtype: Any = _C.qint8, mapping: Any = None, inplace: bool = False
) -> Any:
    """A model whose linear maps and recurrent layers have weights of integers, and quantize their input at each call.

    Arguments:
        model: the model
        qconfig_spec: the types or names of the modules, as a set, or a dict of them with configurations; None takes
            nn.Linear, nn.LSTM, nn.GRU and the cells
        dtype: qint8 or float16, or quint8 or quint4x2 for tables, which are nn.Embedding and nn.EmbeddingBag
        mapping: what types of modules become; None takes the usual ones
        inplace: whether the model itself is changed

    Returns: a model, the given one if inplace.

    Raises: ValueError for weights of another dtype.

    Example:
        >>> model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
        >>> tp.ao.quantization.quantize_dynamic(model, {nn.Linear}, dtype=tp.qint8)[0]
        DynamicQuantizedLinear(in_features=2, out_features=2, dtype=tensorpy.qint8, qscheme=tensorpy.per_tensor_affine)
    """
    if not isinstance(qconfig_spec, dict):
        if dtype not in _DYNAMIC:
            raise ValueError(
                f"the weights of dynamic modules are of qint8, float16, quint8 or quint4x2, not of {dtype}"
            )
        usual, qconfig = _DYNAMIC[dtype]
        qconfig_spec = dict.fromkeys(usual if qconfig_spec is None else qconfig_spec, qconfig)
    model = (model if inplace else copy.deepcopy(model)).eval()
    propagate_qconfig_(model, qconfig_spec)
    return convert(model, mapping or get_default_dynamic_quant_module_mappings(), inplace=True)


def prepare_qat(model: Any, mapping: Any = None, inplace: bool = False) -> Any:
    """A model in training whose weights and outputs are fake-quantized.

    Arguments:
        model: the model
        mapping: what types of modules become; None takes the usual ones
        inplace: whether the model itself is changed

    Returns: a model, the given one if inplace.

    Raises: AssertionError for a model in evaluation.

    Example:
        >>> model = nn.Sequential(nn.Linear(2, 2))
        >>> model.qconfig = tp.ao.quantization.get_default_qat_qconfig()
        >>> type(tp.ao.quantization.prepare_qat(model)[0]) is tp.ao.nn.qat.Linear
        True
    """
    if not model.training:
        raise AssertionError("prepare_qat only works on models in training mode")
    kinds = get_default_qat_module_mappings() if mapping is None else mapping
    model = model if inplace else copy.deepcopy(model)
    propagate_qconfig_(model)
    convert(model, kinds, inplace=True, remove_qconfig=False)
    return prepare(model, inplace=True, observer_non_leaf_module_list=set(kinds.values()))


def quantize_qat(model: Any, run_fn: Any, run_args: Any, inplace: bool = False) -> Any:
    """Fake-quantizes a model while a function trains it, then converts it.

    Arguments:
        model: the model
        run_fn: trains the model, which is its first argument
        run_args: its other arguments
        inplace: whether the model itself is changed

    Returns: a model, the given one if inplace.

    Example:
        >>> model = tp.ao.quantization.QuantWrapper(nn.Linear(2, 2))
        >>> model.qconfig = tp.ao.quantization.get_default_qat_qconfig()
        >>> tp.ao.quantization.quantize_qat(model, lambda m: m(tp.ones(1, 2)), ()).module.weight().dtype
        tensorpy.qint8
    """
    model = (model if inplace else copy.deepcopy(model)).train()
    prepare_qat(model, inplace=True)
    run_fn(model, *run_args)
    return convert(model, inplace=True)


steps.prepare, steps.prepare_qat, steps.convert = prepare, prepare_qat, convert
steps.QuantStub, steps.DeQuantStub, steps.FloatFunctional = QuantStub, DeQuantStub, FloatFunctional
