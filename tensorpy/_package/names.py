"""The names of the package that are not in the extension module, and where each comes from.

The one table of them: `tensorpy/__init__.py` imports a name at its first use, `from tensorpy import *` and `dir` list
it, and codegen/emit_package_stub.py writes `__init__.pyi` from it, by which editors and type checkers know it. Where
the extension module has an operator of the same name, the function that is named here stands before it.
"""

from __future__ import annotations

# tensorpy.<name>
MODULES = frozenset(
    """
    accelerator amp ao array_api autograd backends codegen compiler cpu cuda dispatch distributed distributions export
    fft func functional futures fx hub jit library linalg masked monitor mps mtia multiprocessing nested nn onnx opencl
    ops optim overrides profiler quantization quasirandom random serialization signal sparse special storage testing
    torch_version types utils version xpu
    """.split()
)
PRIVATE_MODULES = frozenset(
    """
    _VF __config__ __future__ _custom_op _decomp _dynamo _functorch _higher_order_ops _inductor _linalg_utils
    _logging _ops _prims_common _subclasses _utils _vmap_internals
    """.split()
)

# module -> what the package has of it
_BY_MODULE = {
    "_as_torch": "as_torch",
    "_as_torch.notebook": "load_ipython_extension",
    "_compile": "_disable_dynamo compile",
    "_higher_order_ops.cond": "cond",
    "_library.tags": "Tag",
    "_linalg_utils": "eig lstsq matrix_rank solve symeig",
    "_lobpcg": "lobpcg",
    "_lowrank": "pca_lowrank svd_lowrank",
    "_package.checks": """
        _check _check_index _check_is_size _check_not_implemented _check_tensor_all _check_tensor_all_with
        _check_type _check_value _check_with
    """,
    "_package.settings": """
        OutOfMemoryError _assert are_deterministic_algorithms_enabled compiled_with_cxx11_abi
        get_autocast_cpu_dtype get_autocast_gpu_dtype get_deterministic_debug_mode get_device_module
        get_float32_matmul_precision get_num_interop_threads has_lapack has_mkl has_openmp
        is_autocast_cpu_enabled is_deterministic_algorithms_warn_only_enabled is_storage is_vulkan_available
        is_warn_always_enabled legacy_contiguous_format set_autocast_cpu_dtype set_autocast_cpu_enabled
        set_default_tensor_type set_deterministic_debug_mode set_float32_matmul_precision set_flush_denormal
        set_num_interop_threads set_warn_always typename use_deterministic_algorithms
    """,
    "_package.sizes": """
        sym_float sym_fresh_size sym_int sym_ite sym_max sym_min sym_not sym_sqrt sym_sum
    """,
    "_package.symbols": "SymBool SymFloat SymInt",
    "_tensor.dtypes": "finfo iinfo",
    "_tensor.methods": "is_tensor",
    "_tensor.quantized": """
        _choose_qparams_per_tensor choose_qparams_optimized per_channel_affine per_channel_affine_float_qparams
        per_channel_symmetric per_tensor_affine per_tensor_symmetric qscheme
    """,
    "_tensor.torch_function": "DisableTorchFunction DisableTorchFunctionSubclass",
    "_tensor.typed": """
        BFloat16Tensor BoolTensor ByteTensor CharTensor DoubleTensor FloatTensor HalfTensor IntTensor
        LongTensor ShortTensor _tensor_classes
    """,
    "_tensor_str": "get_printoptions printoptions set_printoptions",
    "accelerator.streams": "Event Stream",
    "amp": """
        GradScaler autocast get_autocast_dtype is_autocast_cache_enabled is_autocast_enabled
        set_autocast_cache_enabled set_autocast_dtype set_autocast_enabled
    """,
    "autograd.anomaly": "is_anomaly_check_nan_enabled is_anomaly_enabled set_anomaly_enabled",
    "autograd.grad_mode": "enable_grad inference_mode no_grad set_grad_enabled",
    "func.vmap": "vmap",
    "functional": """
        atleast_1d atleast_2d atleast_3d block_diag broadcast_shapes broadcast_tensors cartesian_prod cdist
        chain_matmul einsum histogramdd lu meshgrid nonzero norm numel stft tensordot unique
        unique_consecutive unravel_index _segment_reduce
    """,
    "jit": "ScriptFunction ScriptMethod",
    "futures": "Future",
    "nested": "_nested_get_lengths _nested_get_max_seqlen _nested_get_min_seqlen",
    "random": "get_rng_state initial_seed manual_seed seed set_rng_state",
    "serialization": "load save",
    "sparse": """
        _sparse_coo_tensor_unsafe dsmm hsmm sparse_bsc_tensor sparse_bsr_tensor sparse_compressed_tensor
        sparse_coo_tensor sparse_csc_tensor sparse_csr_tensor spmm
    """,
    "storage": """
        BFloat16Storage BoolStorage ByteStorage CharStorage ComplexDoubleStorage ComplexFloatStorage
        DoubleStorage FloatStorage HalfStorage IntStorage LongStorage QInt32Storage QInt8Storage QUInt2x4Storage
        QUInt4x2Storage QUInt8Storage ShortStorage Storage TypedStorage
    """,
    "storage.files": "from_file",
    "utils.backend_registration": "_register_device_module",
    "utils.dlpack": "to_dlpack",
}
NAMES = {name: module for module, names in _BY_MODULE.items() for name in names.split()}

_RAISES = "Traceback (most recent call last):\n    ...\n    RuntimeError: ..."


def _shown(says: str, takes: str, call: str, result: str) -> str:
    """The help of a method that raises: what it says, what it took, and a call with its result."""
    told = f"Arguments:\n    {takes}: not looked at\n\nReturns: nothing.\n\nRaises: RuntimeError always."
    example = f"Example:\n    >>> x = tp.tensor([[0.0, 5.0], [6.0, 0.0]])\n    >>> {call}\n    {result}"
    return f"{says}\n\n{told}\n\n{example}"


# Methods of Tensor that modules above tensorpy._tensor have: module -> name -> what the method does.
METHODS = {
    "_linalg_utils": {
        name: _shown(f"Says which function of linalg stands for {name}, and raises.", takes, f"x.{name}(x)", _RAISES)
        for name, takes in {
            "eig": "eigenvectors, e, v",
            "lstsq": "input, A, out",
            "solve": "input, A, out",
            "symeig": "input, eigenvectors, upper, out",
        }.items()
    },
    "array_api.methods": {
        "__array_namespace__": """The array API standard's namespace, tensorpy.array_api.

Arguments:
    api_version: a version of the standard; None: the newest that is there

Returns: the module.

Raises: ValueError for a version that is not there.

Example:
    >>> tp.ones(2).__array_namespace__().__array_api_version__
    '2025.12'
""",
        "to_device": """The tensor on a device, as the array API standard calls it.

Arguments:
    device: the device
    stream: None; no device here has streams of the standard's kind

Returns: a tensor.

Raises: ValueError for a stream.

Example:
    >>> tp.ones(2).to_device("cpu")
    tensor([1., 1.])
""",
    },
}

# numbers and None, which `__init__.py` has at once
CONSTANTS = frozenset("e inf nan newaxis pi".split())


_private: frozenset[str] = frozenset()  # functools.cache would cost an import


def private_operators() -> frozenset[str]:
    """The operators whose names begin with "_": PyTorch has them in its package, where no list of names shows them."""
    global _private
    if not _private:
        from tensorpy import _C

        names = {full.partition(".")[0] for full in _C._operators()}
        _private = frozenset(name for name in names if name.startswith("_") and hasattr(_C, name))
    return _private
