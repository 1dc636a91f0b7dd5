"""Settings of PyTorch's code generator, for programs that set them: nobody reads them, since no code is generated.

Any may be set. Those that public programs ask for have PyTorch's values at first.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tensorpy.utils.serialization import config


class patch(config.patch):
    """Settings for a while: in a with block, or while a function runs.

    Example:
        >>> with tp._inductor.config.patch({"triton.cudagraphs": True}, max_autotune=True):
        ...     tp._inductor.config.triton.cudagraphs, tp._inductor.config.max_autotune
        (True, True)
    """


MODES: dict[str, dict[str, Any]] = {
    "default": {},
    "reduce-overhead": {"triton.cudagraphs": True},
    "max-autotune-no-cudagraphs": {"max_autotune": True, "coordinate_descent_tuning": True},
    "max-autotune": {"max_autotune": True, "triton.cudagraphs": True, "coordinate_descent_tuning": True},
}

debug = verbose_progress = freezing = cpp_wrapper = False
max_autotune = max_autotune_gemm = max_autotune_pointwise = coordinate_descent_tuning = False
max_autotune_gemm_backends = "ATEN,TRITON,CPP"
force_fuse_int_mm_with_mul = reorder_for_compute_comm_overlap = fallback_random = False
conv_1x1_as_mm = benchmark_kernel = profile_bandwidth = force_disable_caches = False
fx_graph_cache = epilogue_fusion = pattern_matcher = shape_padding = allow_buffer_reuse = size_asserts = True
implicit_fallbacks = keep_output_stride = True
compile_threads = 1

triton: Any = SimpleNamespace(cudagraphs=False, cudagraph_trees=True, unique_kernel_names=True, autotune_pointwise=True)
cpp: Any = SimpleNamespace(threads=-1, simdlen=None, enable_kernel_profile=False, weight_prepack=True)
cuda: Any = SimpleNamespace(arch=None, version=None)
trace: Any = SimpleNamespace(enabled=False, debug_log=False, graph_diagram=False)
aot_inductor: Any = SimpleNamespace(output_path="", debug_compile=False)

__all__ = ["patch"]
