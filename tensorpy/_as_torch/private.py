"""What programs reach for beside torch's public names: private ones of `torch._C`, dtypes that they only compare."""

from __future__ import annotations

import contextlib
import functools
import importlib
import sys
import traceback
import weakref
from collections.abc import Callable
from enum import IntEnum
from types import ModuleType
from typing import Any

import tensorpy
from tensorpy import _C, _utils, autograd, backends, dispatch
from tensorpy._as_torch import finder, names
from tensorpy._library.function_schema import FunctionSchema, parse_schema
from tensorpy._library.rules import autograd_fallback_mode, set_autograd_fallback_mode
from tensorpy._package.absent import absent, absent_class
from tensorpy.autograd import graph
from tensorpy.func.functionalize import (
    disable,
    enable,
    from_functional_tensor,
    is_functional_tensor,
    sync,
    to_functional_tensor,
)
from tensorpy.utils._pytree import tree_flatten


def _nothing(*args: Any, **options: Any) -> None:
    """Switches something that is not here."""


def _no(*args: Any, **options: Any) -> bool:
    return False


def _schemas_of(qualified: str) -> list[FunctionSchema]:
    """Those of an operator's overloads; none where there is no such operator."""
    space, _, name = qualified.partition("::")
    packet = getattr(getattr(tensorpy.ops, space), name, None)
    return [] if packet is None else [getattr(packet, each)._schema for each in packet.overloads()]


def _storage_of(tensor: Any) -> int:
    """A number that tensors over the same memory have in common."""
    return int(tensor.untyped_storage()._cdata)


_stashed: dict[str, Any] = {}  # what programs keep by name; a backward runs on the thread that asks for it


def _privateuse1() -> str:
    from tensorpy.utils import backend_registration

    return backend_registration.privateuse1_backend_name()


def _parse_to(*args: Any, **options: Any) -> tuple[Any, Any, bool, Any]:
    """The arguments of Tensor.to: (device, dtype, non_blocking, memory_format)."""
    device, dtype = options.pop("device", None), options.pop("dtype", None)
    non_blocking, memory_format = options.pop("non_blocking", False), options.pop("memory_format", None)
    for value in args:
        if isinstance(value, _C.Tensor):
            device, dtype = value.device, value.dtype
        elif isinstance(value, _C.dtype):
            dtype = value
        elif isinstance(value, bool):
            non_blocking = value
        elif value is not None:
            device = value
    return (None if device is None else _C.device(device)), dtype, non_blocking, memory_format


def _assert_async(input: Any, assert_msg: str = "Expected Tensor with single nonzero value, but got zero") -> None:
    """RuntimeError where a tensor's element is zero: at once, nothing runs after."""
    if not bool(input):
        raise RuntimeError(assert_msg)


def _infer_size(a: Any, b: Any) -> Any:
    """The shape that two broadcast to."""
    return (_C.empty(a, device="meta") + _C.empty(b, device="meta")).shape


def _gather_traceback(python: bool = False, script: bool = False, cpp: bool = False) -> list[dict[str, Any]]:
    """Where the program is, the innermost call first: Python's frames alone are known."""
    frames = traceback.walk_stack(sys._getframe(1)) if python else ()
    return [{"name": f.f_code.co_name, "filename": f.f_code.co_filename, "line": line} for f, line in frames]


def _symbolize_tracebacks(tracebacks: Any) -> list[Any]:
    """The frames of what _gather_traceback gave: the same lists."""
    return list(tracebacks)


def _native_multi_head_attention(*args: Any, **kwargs: Any) -> Any:
    from tensorpy._as_torch.attention import native_multi_head_attention

    return native_multi_head_attention(*args, **kwargs)


class _WeakTensorRef:
    """A weak reference that only tells whether its tensor is gone."""

    def __init__(self, tensor: Any) -> None:
        self._tensor = weakref.ref(tensor)

    def expired(self) -> bool:
        """Whether nothing holds the tensor any more."""
        return self._tensor() is None


class _Key:
    """A dispatch key of PyTorch's, by name: `DispatchKey.AutocastCPU`."""

    def __getattr__(self, name: str) -> str:
        if name.startswith("__"):
            raise AttributeError(name)
        return name


class DispatchKeySet(frozenset):  # type: ignore[type-arg]
    """Some dispatch keys."""

    def __new__(cls, keys: Any = ()) -> DispatchKeySet:
        return super().__new__(cls, [keys] if isinstance(keys, str) else keys)

    def has(self, key: str) -> bool:
        """Whether a key is among them."""
        return key in self

    def __or__(self, other: Any) -> DispatchKeySet:
        return DispatchKeySet(frozenset.__or__(self, other))

    def remove(self, key: str) -> DispatchKeySet:
        """The set without a key."""
        return DispatchKeySet(self - {key})


def _bits(keys: Any) -> int:
    """The set of keys as a word: those of PyTorch's that tensorpy has, "Autograd" for all of its layer."""
    alias = {"Autograd": dispatch.below("ForwardAD") & ~dispatch.below("AutogradOther")}
    word = 0
    for key in keys:
        word |= alias[key] if key in alias else _C._KEYS.get(key, 0)
    return word


class _ForceDispatchKeyGuard:
    """A context with these keys included and those excluded, whatever was before."""

    def __init__(self, include: Any = (), exclude: Any = ()) -> None:
        self.sets = (_bits(include), _bits(exclude))

    def _wanted(self) -> tuple[int, int]:
        return self.sets

    def __enter__(self) -> None:
        self.before = _C._get_dispatch_sets()
        _C._set_dispatch_sets(*self._wanted())

    def __exit__(self, *unused: object) -> None:
        _C._set_dispatch_sets(*self.before)


class _ExcludeDispatchKeyGuard(_ForceDispatchKeyGuard):
    """A context without these keys; the last word on autocast is that of its own state."""

    def __init__(self, keys: Any) -> None:
        super().__init__((), [keys] if isinstance(keys, str) else keys)
        named = [keys] if isinstance(keys, str) else list(keys)
        types = [key.removeprefix("Autocast").lower() for key in named if key.startswith("Autocast")]
        self.types = [name for name in types if _C._autocast_available(name)]

    def _wanted(self) -> tuple[int, int]:
        include, exclude = _C._get_dispatch_sets()
        return include, exclude | self.sets[1]

    def __enter__(self) -> None:
        self.autocast = [_C._autocast_get(name) for name in self.types]
        for name, (_, dtype, cache) in zip(self.types, self.autocast, strict=True):
            _C._autocast_set(name, False, dtype, cache)
        super().__enter__()

    def __exit__(self, *unused: object) -> None:
        super().__exit__()
        for name, state in zip(self.types, self.autocast, strict=True):
            _C._autocast_set(name, *state)


class _IncludeDispatchKeyGuard(_ForceDispatchKeyGuard):
    """A context with these keys beside those that are included."""

    def __init__(self, keys: Any) -> None:
        super().__init__([keys] if isinstance(keys, str) else keys)

    def _wanted(self) -> tuple[int, int]:
        include, exclude = _C._get_dispatch_sets()
        return include | self.sets[0], exclude


class _AutoDispatchBelowAutograd(_ExcludeDispatchKeyGuard):
    """A context below autograd: its layer is left out. It begins where it is made, or at `with`; `del` ends it."""

    def __init__(self) -> None:
        super().__init__(("Autograd",))
        self.depth = 0
        self.__enter__()

    def __enter__(self) -> None:
        if self.depth == 0:
            super().__enter__()
        self.depth += 1

    def __exit__(self, *unused: object) -> None:
        if self.depth:
            super().__exit__()
        self.depth = 0

    __del__ = __exit__


def _local_set(which: int) -> Any:
    """The keys that this thread includes (0), or excludes (1)."""
    word = _C._get_dispatch_sets()[which]
    return DispatchKeySet(name for name, bit in _C._KEYS.items() if word & bit)


def _interpreter(name: str) -> Any:
    """A name of tensorpy._functorch.interpreter, which is loaded at its first use."""
    from tensorpy._functorch import interpreter

    return getattr(interpreter, name)


def _distributed(name: str) -> Any:
    """What torch.distributed has in C++: where the modules of tensorpy.distributed have it."""
    from tensorpy import distributed
    from tensorpy.distributed import distributed_c10d, flight_recorder, process_group, reducer

    for module in (distributed, distributed_c10d, process_group, reducer, flight_recorder):
        if hasattr(module, name):
            return getattr(module, name)
    raise AttributeError(f"module 'torch._C._distributed_c10d' has no attribute {name!r}", name=name)


def _of_autograd(name: str) -> Any:
    """What torch.autograd has in C++."""
    from tensorpy import profiler

    if name == "_saved_tensors_hooks_is_enabled":
        return lambda: graph._refused.why is None
    names = {
        "_push_saved_tensors_default_hooks": "_push_saved_hooks",
        "_pop_saved_tensors_default_hooks": "_pop_saved_hooks",
    }
    for module in (_C, graph, autograd, profiler):
        if names.get(name, name) in vars(module):
            return getattr(module, names.get(name, name))
    raise AttributeError(f"module 'torch._C._autograd' has no attribute {name!r}", name=name)


def _node_class(name: str) -> Any:
    """The class of nodes, and of what makes some by hand."""
    from tensorpy._as_torch import nodes

    if name in vars(nodes):
        return getattr(nodes, name)
    if name.startswith("__"):
        raise AttributeError(f"module 'torch._C._functions' has no attribute {name!r}", name=name)
    return _C._node_class(name)


# Names of torch._C that a module has, which is loaded when one is asked for.
_LATER: dict[str, str] = dict.fromkeys(("ScriptFunction", "ScriptMethod", "ScriptDict", "ScriptList"), "jit")
_LATER |= dict.fromkeys(("_ConvBackend", "_select_conv_backend"), "_as_torch.convolutions")
_LATER["Tag"] = "_library.tags"
_LATER |= dict.fromkeys(("Graph", "Value", "JitType", "InferredType", "_jit_try_infer_type"), "jit._types")


def _later(name: str) -> Any:
    """A name of torch._C: from the module that has it."""
    if name not in _LATER:
        raise AttributeError(f"module 'torch._C' has no attribute {name!r}", name=name, obj=_C)
    found = getattr(importlib.import_module(f"tensorpy.{_LATER[name]}"), name)
    setattr(_C, name, found)
    return found


def _found_elsewhere(name: str, find: Callable[[str], Any]) -> ModuleType:
    """A module whose names a function finds; those of PyTorch's that are not there are what they are in any module."""
    module = ModuleType(name)
    setattr(module, "__getattr__", find)  # noqa: B010
    finder.watch(module, name)
    return module


class _FallbackWarnings:
    """Whether programs want to hear of operators that vmap runs sample by sample: there are none."""

    shown = False

    @classmethod
    def display(cls, enabled: bool) -> None:
        """Says so."""
        cls.shown = bool(enabled)

    @classmethod
    def are_displayed(cls) -> bool:
        """What was said."""
        return cls.shown


class _DisableFuncTorch(contextlib.nullcontext):  # type: ignore[type-arg]
    """A scope for what is done to plain tensors while a transform runs: it sees none but its own."""


class AbsentDtype:
    """A dtype of PyTorch's that tensorpy does not have: a name to compare with, which no tensor has."""

    is_complex = is_signed = is_floating_point = False

    def __init__(self, name: str) -> None:
        self.name = name

    @property  # type: ignore[misc]
    def __class__(self) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """What isinstance() asks: tables of dtypes check that each of them is one."""
        return _C.dtype

    def __repr__(self) -> str:
        return f"torch.{self.name}"


_DTYPES = (
    "float4_e2m1fn_x2 uint1 uint2 uint3 uint4 uint5 uint6 uint7 int1 int2 int3 "
    "int4 int5 int6 int7 bits8 bits16 bits1x8 bits2x4 bits4x2 sparse_coo sparse_csr sparse_csc sparse_bsr sparse_bsc "
    "jagged _mkldnn"
).split()


class _TorchFunctionState(IntEnum):
    """Whether this thread asks classes' `__torch_function__`."""

    ENABLED = 0
    SUBCLASSES_DISABLED = 1
    ALL_DISABLED = 2


def _get_torch_function_state() -> _TorchFunctionState:
    before = _C._set_functions_off(0)
    _C._set_functions_off(before)
    return _TorchFunctionState(before)


def _is_torch_function_mode_enabled() -> bool:
    """Whether a mode of __torch_function__ is asked."""
    return bool(_C._function_modes()) and _get_torch_function_state() != _TorchFunctionState.ALL_DISABLED


def _set_torch_function_state(state: _TorchFunctionState) -> None:
    _C._set_functions_off(int(state))


def _dispatch_keys(tensor: Any) -> DispatchKeySet:
    """The keys that a tensor carries."""
    return DispatchKeySet(dispatch.keys(tensor))


def _get_device_module(device_type: str) -> Any:
    """The module that has what there is of a kind of device."""
    module = getattr(tensorpy, device_type, None)
    if module is None:
        raise RuntimeError(f"Device {device_type!r} has no module: torch.{device_type} is not there")
    return module


def _is_privateuse1_backend_available() -> bool:
    """Whether there is a device of the kind that a program called its own."""
    module = getattr(tensorpy, _privateuse1(), None)
    return bool(getattr(module, "is_available", _no)())


def _get_available_device_type() -> str | None:
    """The kind of device beside the CPU, by the name that programs call it; None if there is none."""
    for kind in ("cuda", _privateuse1()):
        module = getattr(tensorpy, kind, None)
        if module is not None and module.is_available():
            return kind
    return None


def _storages(of: Any) -> list[Any]:
    """The storages of the tensors in containers, a tensor's own, or none."""
    leaves = [leaf for leaf in tree_flatten(of)[0] if isinstance(leaf, _C.Tensor)]
    return [leaf.untyped_storage() for leaf in leaves]


def _is_alias_of(self: Any, other: Any) -> bool:
    """Whether tensors, each one or of a container, are of one storage."""
    theirs = _storages(other)
    return any(one is two for one in _storages(self) for two in theirs)


def _set_conj(tensor: Any, whether: bool) -> None:
    """Has a tensor's elements be read as their conjugates, or not."""
    _C._mark_pending(tensor, bool(whether), None)


def _set_neg(tensor: Any, whether: bool) -> None:
    """Has a tensor's elements be read as their negatives, or not."""
    _C._mark_pending(tensor, None, bool(whether))


class _VariableFunctionsClass:
    """Functions of tensors and operators by their plain names; one that tensorpy lacks raises when it is called.

    Tables of signatures name all of PyTorch's, those of libraries for other devices too. Of private names, which nobody
    lists, each is taken to be PyTorch's.
    """

    _UNLISTED = ("segment_reduce", "unique_dim")
    _OPERATORS = ("__and__", "__or__", "__xor__", "__lshift__", "__rshift__")

    def __getattr__(self, name: str) -> Any:
        listed = name.startswith("_") or name in names.modules()["torch"] or name in self._UNLISTED
        if not listed or (name.startswith("__") and name not in self._OPERATORS):
            raise AttributeError(f"type object 'torch._C._VariableFunctions' has no attribute {name!r}", name=name)
        owners = (_C.Tensor,) if name in self._OPERATORS else (_C, _C.Tensor, tensorpy.ops.aten)
        found = next((getattr(owner, name) for owner in owners if hasattr(owner, name)), None)
        self.__dict__[name] = absent("torch._C._VariableFunctions", name) if found is None else found
        return self.__dict__[name]


# Programs name them in hints, and ask whether a number is one.
_CLASSES = ("PyTorchFileReader", "PyTorchFileWriter", "ScriptObject", "SymInt", "SymFloat", "SymBool", "Type")

_NAMES = {
    "DispatchKey": _Key(),
    "DispatchKeySet": DispatchKeySet,
    "_ExcludeDispatchKeyGuard": _ExcludeDispatchKeyGuard,
    "_IncludeDispatchKeyGuard": _IncludeDispatchKeyGuard,
    "_ForceDispatchKeyGuard": _ForceDispatchKeyGuard,
    "_AutoDispatchBelowAutograd": _AutoDispatchBelowAutograd,
    "_dispatch_tls_local_include_set": functools.partial(_local_set, 0),
    "_dispatch_tls_local_exclude_set": functools.partial(_local_set, 1),
    "_dispatch_isTensorSubclassLike": lambda tensor: bool(_C._tensor_keys(tensor) & _C._KEYS["Python"]),
    "_DisableFuncTorch": _DisableFuncTorch,
    "_WeakTensorRef": _WeakTensorRef,
    "_debug_only_are_vmap_fallback_warnings_enabled": _FallbackWarnings.are_displayed,
    "_debug_only_display_vmap_fallback_warnings": _FallbackWarnings.display,
    "_log_api_usage_once": _nothing,
    "_jit_get_schemas_for_operator": _schemas_of,
    "_jit_clear_class_registry": _nothing,
    "_jit_set_emit_hooks": _nothing,
    "_jit_set_profiling_executor": _no,
    "_jit_set_profiling_mode": _no,
    "_jit_override_can_fuse_on_cpu": _nothing,
    "_jit_override_can_fuse_on_gpu": _nothing,
    "_jit_can_fuse_on_cpu": _no,
    "_jit_can_fuse_on_gpu": _no,
    "_jit_set_texpr_fuser_enabled": _nothing,
    "_jit_set_nvfuser_enabled": _no,
    "_jit_set_nvfuser_guard_mode": _no,
    "_TorchFunctionState": _TorchFunctionState,
    "_get_torch_function_state": _get_torch_function_state,
    "_set_torch_function_state": _set_torch_function_state,
    "_len_torch_function_stack": lambda: len(_C._function_modes()),
    "_is_torch_function_mode_enabled": _is_torch_function_mode_enabled,
    "_get_function_stack_at": lambda level: _C._function_modes()[level],
    "_push_on_torch_function_stack": _C._push_function_mode,
    "_pop_torch_function_stack": _C._pop_function_mode,
    "_len_torch_dispatch_stack": lambda: len(_C._dispatch_modes()),
    "_get_dispatch_stack_at": lambda level: _C._dispatch_modes()[level],
    "_dispatch_keys": _dispatch_keys,
    "_is_alias_of": _is_alias_of,
    "_overlaps": _is_alias_of,
    "_set_conj": _set_conj,
    "_set_neg": _set_neg,
    "has_lapack": tensorpy.has_lapack,
    "has_mkl": tensorpy.has_mkl,
    "has_openmp": tensorpy.has_openmp,
    "has_spectral": True,
    "_get_cpu_capability": backends.cpu.get_cpu_capability,
    "_get_tracing_state": _nothing,
    "_are_functorch_transforms_active": lambda: bool(_C._vmap_levels()),
    "_infer_size": _infer_size,
    "parse_schema": functools.partial(parse_schema, space=""),
    "FunctionSchema": FunctionSchema,
    "_VariableFunctions": _VariableFunctionsClass(),
    "_is_tracing": _no,
    "_nnpack_available": _no,
    "_get_autograd_fallback_mode": autograd_fallback_mode,
    "_set_autograd_fallback_mode": set_autograd_fallback_mode,
    "_set_fwd_grad_enabled": _C._forward_enable,
    "_is_fwd_grad_enabled": _C._forward_enabled,
    "_storage_id": _storage_of,
    "_storage_address": _storage_of,
    "_stash_obj_in_tls": _stashed.__setitem__,
    "_get_obj_in_tls": _stashed.__getitem__,
    "_is_key_in_tls": _stashed.__contains__,
    "_set_math_sdp_allow_fp16_bf16_reduction": _nothing,
    "_set_throw_on_mutable_data_ptr": _nothing,
    "_get_default_device": lambda: _C.get_default_device().type,
    "_get_accelerator": lambda check=None: tensorpy.accelerator.current_accelerator() or _C.device("cpu"),
    "_get_privateuse1_backend_name": _privateuse1,
}

_PLAIN = {
    "_nnpack_available": _no,
    "_enable_functionalization": enable,
    "_disable_functionalization": disable,
    "_to_functional_tensor": to_functional_tensor,
    "_from_functional_tensor": from_functional_tensor,
    "_is_functional_tensor": is_functional_tensor,
    "_sync": sync,
    "_native_multi_head_attention": _native_multi_head_attention,
}


# What PyTorch has for other devices and libraries alone, and tables of operators and signatures name, by its owner.
_ELSEWHERE: dict[str, tuple[Any, str]] = {
    "torch.ops.aten": (
        tensorpy.ops.aten, "_flash_attention_forward _flash_attention_backward _efficient_attention_forward "
        "_efficient_attention_backward _use_cudnn_ctc_loss _use_cudnn_ctc_loss.Tensor cudnn_batch_norm "
        "cudnn_grid_sampler miopen_batch_norm",
    ),
    "torch._C._nn": (
        _C._nn, "mkldnn_linear mkldnn_reorder_conv2d_weight mkldnn_reorder_conv3d_weight _conv_depthwise2d "
        "conv_depthwise3d",
    ),
    "torch._C._linalg": (_C._linalg, "_linalg_eigvals"),
    "torch.Tensor": (_C.Tensor, "is_distributed _sparse_mask_projection to_mkldnn"),
}  # fmt: skip


def install() -> None:
    """Gives them to tensorpy._C, where it has none of its own, and tensorpy dtypes and layouts that are names only."""
    for name in _DTYPES:
        if name not in vars(tensorpy):
            setattr(tensorpy, name, AbsentDtype(name))
    for name in _CLASSES:
        if name not in vars(tensorpy):
            setattr(tensorpy, name, absent_class("torch", name))
    setattr(tensorpy, "_assert_async", _assert_async)  # noqa: B010
    for name, value in _PLAIN.items():
        setattr(tensorpy, name, value)
    for whole, (owner, listed) in _ELSEWHERE.items():
        for full in listed.split():
            name, _, overload = full.partition(".")
            if not hasattr(owner, name):
                setattr(owner, name, absent(whole, name))
            if owner is tensorpy.ops.aten:
                overload = overload or "default"
                setattr(getattr(owner, name), overload, absent(f"{whole}.{name}", overload))
    for ask in (_get_device_module, _get_available_device_type, _is_privateuse1_backend_available):
        setattr(_utils, ask.__name__, ask)
    for name, value in _NAMES.items():
        if not hasattr(_C, name):
            setattr(_C, name, value)
    setattr(_C, "__getattr__", _later)  # noqa: B010
    setattr(_C, "_functorch", _found_elsewhere("torch._C._functorch", _interpreter))  # noqa: B010
    sys.modules["torch._C._functorch"] = sys.modules["tensorpy._C._functorch"] = vars(_C)["_functorch"]
    for part, find in (("_autograd", _of_autograd), ("_functions", _node_class)):
        setattr(_C, part, _found_elsewhere(f"torch._C.{part}", find))
        sys.modules[f"torch._C.{part}"] = vars(_C)[part]
    setattr(_C, "_distributed_c10d", _found_elsewhere("torch._C._distributed_c10d", _distributed))  # noqa: B010
    sys.modules["torch._C._distributed_c10d"] = vars(_C)["_distributed_c10d"]
    setattr(_C._nn, "_parse_to", _parse_to)  # noqa: B010
    for take in (_gather_traceback, _symbolize_tracebacks):
        setattr(_C._profiler, take.__name__[1:], take)
    sys.modules["torch._C._profiler"] = _C._profiler
    finder.watch(_C._profiler, "torch._C._profiler")
