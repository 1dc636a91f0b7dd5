"""tensorpy: a small, fast tensor library with PyTorch's programming model, written in C.

This package is thin: operators, dispatch, autograd and kernels live in the extension module `tensorpy._C`. Importing it
loads neither NumPy nor BLAS nor OpenCL; they are opened when first needed.
"""

from __future__ import annotations

import math as _math
import os as _os
import sys as _sys

# Threads that wait for each other spin only shortly: where the CPUs are shared, long spinning keeps the thread that is
# waited for from running. libgomp reads this once, while it is loaded; a choice of the user's stands.
if _spin := not {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT"} & _os.environ.keys():
    _os.environ["GOMP_SPINCOUNT"] = "2000"
from tensorpy import _C

if _spin:
    del _os.environ["GOMP_SPINCOUNT"]
from tensorpy._C import *  # noqa: F403
from tensorpy._C import Tensor, default_generator, return_types  # noqa: F401

_sys.modules[f"{__name__}.return_types"] = return_types  # named results are pickled by the names of their types

__version__ = "0.1.0"

e, inf, nan, pi, newaxis = _math.e, _math.inf, _math.nan, _math.pi, None

from tensorpy._modes import (  # noqa: E402
    are_deterministic_algorithms_enabled,
    enable_grad,
    inference_mode,
    is_deterministic_algorithms_warn_only_enabled,
    no_grad,
    set_grad_enabled,
    use_deterministic_algorithms,
)
from tensorpy._tensor import is_tensor  # noqa: E402
from tensorpy._types import finfo, iinfo  # noqa: E402
from tensorpy.amp import autocast  # noqa: E402
from tensorpy.functional import (  # type: ignore[no-redef, assignment]  # noqa: E402
    atleast_1d,
    atleast_2d,
    atleast_3d,
    block_diag,
    broadcast_shapes,
    broadcast_tensors,
    cartesian_prod,
    cdist,
    chain_matmul,
    einsum,
    histogramdd,
    lu,
    meshgrid,
    nonzero,
    norm,
    numel,
    stft,
    tensordot,
    unique,
    unique_consecutive,
    unravel_index,
)
from tensorpy.random import get_rng_state, initial_seed, manual_seed, seed, set_rng_state  # noqa: E402

TYPE_CHECKING = False
if TYPE_CHECKING:  # what __getattr__ imports at first use
    from tensorpy import __config__ as __config__
    from tensorpy import _dynamo as _dynamo
    from tensorpy import accelerator as accelerator
    from tensorpy import compiler as compiler
    from tensorpy import cpu as cpu
    from tensorpy import cuda as cuda
    from tensorpy import distributed as distributed
    from tensorpy import distributions as distributions
    from tensorpy import fx as fx
    from tensorpy import hub as hub
    from tensorpy import jit as jit
    from tensorpy import mps as mps
    from tensorpy import multiprocessing as multiprocessing
    from tensorpy import onnx as onnx
    from tensorpy import overrides as overrides
    from tensorpy import profiler as profiler
    from tensorpy import serialization as serialization
    from tensorpy import version as version
    from tensorpy import xpu as xpu
    from tensorpy._as_torch import as_torch as as_torch
    from tensorpy._notebook import load_ipython_extension as load_ipython_extension
    from tensorpy._settings import *  # noqa: F403
    from tensorpy._streams import Event as Event
    from tensorpy._streams import Stream as Stream
    from tensorpy._tensor_types import *  # noqa: F403
    from tensorpy.func import vmap as vmap
    from tensorpy.futures import Future as Future
    from tensorpy.serialization import load as load
    from tensorpy.serialization import save as save


_PRIVATE = (
    *("_foreach_", "_fused_", "_amp_", "_standard_gamma", "_sample_dirichlet", "_dirichlet_grad"),
    *("_embedding_bag", "_ctc_loss"),
)


def __getattr__(name: str) -> object:
    """Parts that most programs do not need are imported at first use."""
    import importlib

    if name in _LAZY:
        try:
            module = importlib.import_module(f"tensorpy.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"tensorpy.{name}":
                raise
            raise AttributeError(f"module 'tensorpy' has no part '{name}': only an installed one has") from None
        globals()[name] = module
        return module
    if name in _LAZY_NAMES:
        value = getattr(importlib.import_module(f"tensorpy.{_LAZY_NAMES[name]}"), name)
        globals()[name] = value
        return value
    if name.startswith(_PRIVATE):  # operators that PyTorch has under names of its own
        from tensorpy import _C

        if hasattr(_C, name):
            return getattr(_C, name)
    raise AttributeError(f"module 'tensorpy' has no attribute '{name}'{_nearest(name)}")


def _nearest(name: str) -> str:
    """What of tensorpy is called most like a name that it does not have, as the end of the message that says so."""
    if name.startswith("__"):  # asked by Python's own tools, of any module
        return ""
    import difflib

    found = difflib.get_close_matches(name, [n for n in __dir__() if not n.startswith("_")], 1)
    return f"; the nearest that is there is '{found[0]}'" if found else ""


_LAZY = {
    "__config__",
    "_dynamo",
    "accelerator",
    "autograd",
    "compiler",
    "cpu",
    "cuda",
    "distributed",
    "distributions",
    "fx",
    "hub",
    "jit",
    "mps",
    "multiprocessing",
    "onnx",
    "profiler",
    "version",
    "xpu",
    "_utils",
    "storage",
    "func",
    "futures",
    "optim",
    "utils",
    "opencl",
    "overrides",
    "backends",
    "dispatch",
    "testing",
    "nn",
    "library",
    "fft",
    "linalg",
    "quasirandom",
    "signal",
    "sparse",
    "special",
    "torch_version",
    "ops",
    "serialization",
    "amp",
    "codegen",
}
_LAZY_NAMES = {
    "Future": "futures",
    "as_torch": "_as_torch",
    "load_ipython_extension": "_notebook",
    "Event": "_streams",
    "Stream": "_streams",
    "GradScaler": "amp",
    "compile": "_compile",
    "lobpcg": "_lobpcg",
    "pca_lowrank": "_lowrank",
    "svd_lowrank": "_lowrank",
    "vmap": "func",
    "load": "serialization",
    "save": "serialization",
    "set_printoptions": "_tensor_str",
    "get_printoptions": "_tensor_str",
    "printoptions": "_tensor_str",
    "is_anomaly_enabled": "autograd.anomaly",
    "is_anomaly_check_nan_enabled": "autograd.anomaly",
    "set_anomaly_enabled": "autograd.anomaly",
    "get_autocast_dtype": "amp",
    "is_autocast_cache_enabled": "amp",
    "is_autocast_enabled": "amp",
    "set_autocast_cache_enabled": "amp",
    "set_autocast_dtype": "amp",
    "set_autocast_enabled": "amp",
    "OutOfMemoryError": "_settings",
    "_assert": "_settings",
    "compiled_with_cxx11_abi": "_settings",
    "get_autocast_cpu_dtype": "_settings",
    "get_autocast_gpu_dtype": "_settings",
    "get_deterministic_debug_mode": "_settings",
    "get_device_module": "_settings",
    "_register_device_module": "utils.backend_registration",
    "get_float32_matmul_precision": "_settings",
    "get_num_interop_threads": "_settings",
    "has_lapack": "_settings",
    "has_mkl": "_settings",
    "has_openmp": "_settings",
    "is_autocast_cpu_enabled": "_settings",
    "is_storage": "_settings",
    "is_vulkan_available": "_settings",
    "is_warn_always_enabled": "_settings",
    "legacy_contiguous_format": "_settings",
    "set_autocast_cpu_dtype": "_settings",
    "set_autocast_cpu_enabled": "_settings",
    "set_default_tensor_type": "_settings",
    "set_deterministic_debug_mode": "_settings",
    "set_float32_matmul_precision": "_settings",
    "set_flush_denormal": "_settings",
    "set_num_interop_threads": "_settings",
    "set_warn_always": "_settings",
    "typename": "_settings",
    "Tag": "_tags",
    "_sparse_coo_tensor_unsafe": "sparse",
    "dsmm": "sparse",
    "hsmm": "sparse",
    "hspmm": "sparse",
    "smm": "sparse",
    "sparse_compressed_tensor": "sparse",
    "sparse_coo_tensor": "sparse",
    "sparse_csr_tensor": "sparse",
    "spmm": "sparse",
    "BFloat16Tensor": "_tensor_types",
    "BoolTensor": "_tensor_types",
    "ByteTensor": "_tensor_types",
    "CharTensor": "_tensor_types",
    "DoubleTensor": "_tensor_types",
    "FloatTensor": "_tensor_types",
    "HalfTensor": "_tensor_types",
    "IntTensor": "_tensor_types",
    "LongTensor": "_tensor_types",
    "ShortTensor": "_tensor_types",
}


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY, *_LAZY_NAMES})


__all__ = [name for name in dir(_C) if not name.startswith("_")] + [
    "are_deterministic_algorithms_enabled",
    "autocast",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "block_diag",
    "broadcast_shapes",
    "broadcast_tensors",
    "cartesian_prod",
    "cdist",
    "chain_matmul",
    "e",
    "einsum",
    "enable_grad",
    "finfo",
    "get_rng_state",
    "histogramdd",
    "iinfo",
    "inf",
    "inference_mode",
    "initial_seed",
    "is_deterministic_algorithms_warn_only_enabled",
    "is_tensor",
    "manual_seed",
    "meshgrid",
    "nan",
    "newaxis",
    "no_grad",
    "nonzero",
    "norm",
    "lu",
    "numel",
    "pi",
    "seed",
    "set_grad_enabled",
    "set_rng_state",
    "stft",
    "tensordot",
    "unique",
    "unique_consecutive",
    "unravel_index",
    "use_deterministic_algorithms",
]
