"""Settings of functions that are compiled by a backend of the program's, and the names of PyTorch's other ones.

A name that PyTorch does not know is an error, as there: a program that misspells one hears of it.
"""

from __future__ import annotations

from typing import Any

from tensorpy.utils import _config_module

recompile_limit = 8  # graphs of one function: a call that needs another one runs as it is written
suppress_errors = False  # a function whose backend fails runs as it is written
error_on_recompile = False  # a call that needs another graph is an error
fail_on_recompile_limit_hit = False  # so is a call that would need more graphs than the limit
disable = False  # no function is given to a backend: each runs as it is written

# Sizes in the graphs of a backend of the program's (dynamic.py).
assume_static_by_default = True  # sizes are numbers, unless the program or what follows says otherwise
automatic_dynamic_shapes = True  # a number that differs from call to call is a symbol
specialize_int = False  # ints among the arguments are never symbols
force_parameter_static_shapes = True  # sizes of parameters are never symbols
allow_ignore_mark_dynamic = False  # a size that mark_dynamic() is for may be a number

# What programs set, or ask for, and nobody reads: backward is compiled with forward, and no code is generated, kept or
# logged. PyTorch's values.
_OFF = """
    allow_rnn allow_unspec_int_on_nn_module automatic_dynamic_exclusion_guard
    caching_precompile capture_dynamic_output_shape_ops capture_profiler_record_function capture_scalar_outputs
    compiled_autograd constant_fold_autograd_profiler_enabled cprofile cudagraph_backend_keep_input_mutation
    cudagraph_backend_support_input_mutation debug_disable_compile_counter do_not_emit_runtime_asserts
    dont_skip_tracing dynamo_profiler enable_compiler_collectives enable_cpp_symbolic_shape_guards
    enable_trace_load_build_class enable_trace_unittest fail_on_cache_limit_hit fake_tensor_cache_crosscheck_enabled
    force_compile_during_fx_trace generate_pycode inline_invoke_subgraph install_free_tensors log_graph_in_out_metadata
    nested_graph_breaks only_allow_pt2_compliant_ops optimize_ddp_lazy_compile
    prefer_deferred_runtime_asserts_over_guards prepare_freezing raise_on_unsafe_aot_autograd replay_record_enabled
    repro_forward_only repro_ignore_non_fp skip_fwd_side_effects_in_bwd_under_checkpoint
    skip_guards_on_constant_func_defaults specialize_float strict_precompile trace_autograd_ops
    use_graph_deduplication use_numpy_random_stream verbose verify_correctness wrap_top_frame
"""
_ON = """
    automatic_dynamic_local_pgo capture_autograd_function
    capture_func_transforms capture_sparse_compute dynamic_shapes enable_aot_compile enable_cpp_framelocals_guard_eval
    enable_cpp_guard_manager enable_dynamo_decompositions enable_faithful_generator_behavior enable_trace_contextlib
    error_on_nested_fx_trace error_on_nested_jit_trace fake_tensor_cache_enabled fake_tensor_disable_inference_mode
    force_nn_module_property_static_shapes graph_break_on_nn_param_ctor guard_nn_modules
    guard_nn_modules_using_dict_tags inline_inbuilt_nn_modules install_free_tensors_for_export log_compilation_metrics
    optimize_ddp raise_on_ctx_manager_usage record_runtime_overhead replay_side_effects report_guard_failures
    rewrite_assert_with_torch_assert run_gc_after_compile same_two_models_use_fp64
    skip_code_recursive_on_cache_limit_hit skip_code_recursive_on_recompile_limit_hit skip_fsdp_guards
    skip_nnmodule_hook_guards skip_no_tensor_aliasing_guards_on_parameters skip_tensor_guards_with_matching_dict_tags
    skip_torchrec trace_numpy use_lamba_guard_for_object_aliasing use_lazy_graph_module
"""
_OTHERS: dict[str, Any] = {
    "accumulated_cache_size_limit": 256,
    "accumulated_recompile_limit": 256,
    "automatic_dynamic_remote_pgo": None,
    "automatic_dynamic_shapes_mark_as": "dynamic",
    "compiled_autograd_kwargs_override": {},
    "dead_code_elimination": None,
    "ignore_logger_methods": set(),
    "ignore_logging_functions": set(),
    "log_file_name": None,
    "minimum_call_count": 1,
    "nontraceable_tensor_subclasses": set(),
    "numpy_default_complex": "complex128",
    "numpy_default_float": "float64",
    "numpy_default_int": "int64",
    "pt2_compile_id_prefix": None,
    "reorderable_logging_functions": set(),
    "repro_after": None,
    "repro_level": 2,
    "repro_tolerance": 1e-3,
    "side_effect_replay_policy": "info",
    "traceable_tensor_subclasses": set(),
}


class patch(_config_module.patch):
    """Settings for a while: in a with block, or while a function runs.

    Example:
        >>> with tp._dynamo.config.patch(recompile_limit=2):
        ...     tp._dynamo.config.recompile_limit
        2
    """


class _Config(_config_module.Settings):
    """A setting of two names is one."""

    @property
    def cache_size_limit(self) -> int:
        return int(self.recompile_limit)

    @cache_size_limit.setter
    def cache_size_limit(self, limit: int) -> None:
        self.__dict__["recompile_limit"] = limit


_settings = dict.fromkeys(_OFF.split(), False) | dict.fromkeys(_ON.split(), True) | _OTHERS
_config_module.install(__name__, _settings, _Config)

__all__ = ["error_on_recompile", "patch", "recompile_limit", "suppress_errors"]
