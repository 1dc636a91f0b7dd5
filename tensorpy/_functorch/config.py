"""Settings of functions compiled ahead, with PyTorch's names and values: nobody reads them."""

from tensorpy.utils import _config_module

_SETTINGS = """
    False = activation_offload_separate_stream activation_offload_sink_wait activation_reload_prefetch
    False = aggressive_recomputation autograd_cache_allow_custom_autograd_functions bundled_autograd_cache
    False = bypass_autograd_cache_key debug_assert debug_partitioner
    False = disable_guess_zero_tangent_for_mutated_input_subclass
    False = enable_activation_offloading enable_complex_wrapper error_on_custom_op_aliasing fake_tensor_crossref
    False = fake_tensor_propagate_real_tensors force_autograd_cache force_non_lazy_backward_lowering
    False = functionalize_rng_ops
    False = generate_fake_kernels_from_real_mismatches is_non_builtin_to_include recompute_views
    False = selective_decompose
    False = strict_autograd_cache unlift_effect_tokens unsafe_allow_optimization_of_collectives
    False = unsafe_treat_script_objects_as_zero_size visualize_memory_budget_pareto
    True = autograd_cache_normalize_inputs ban_recompute_long_fusible_chains
    True = ban_recompute_materialized_backward
    True = ban_recompute_not_in_allowlist ban_recompute_reductions ban_recompute_used_far_apart
    True = check_custom_op_aliasing
    True = cse decompose_custom_triton_ops donated_buffer enable_autograd_cache fake_tensor_allow_meta
    True = fake_tensor_allow_unsafe_data_ptr_access graphsafe_rng_functionalization
    True = guess_tangent_strides_as_outputs
    True = remat_using_tags_for_fwd_loss_bwd_graph static_weight_shapes treat_parameters_as_free_to_save
    True = view_replay_for_aliased_outputs
    None = enable_remote_autograd_cache fake_tensor_prefer_device_type joint_custom_pass
    None = memory_budget_pareto_dir
    'donated' = saved_tensors_hooks_filtering_mode
    'dp' = activation_memory_budget_solver
    'flops' = activation_memory_budget_runtime_estimator
    'needs_exact_strides' = custom_op_default_layout_constraint
    'same_as_forward' = backward_pass_autocast
    'svg' = torch_compile_graph_format
    1.0 = activation_memory_budget
    1000 = max_dist_from_bw
    50.0 = activation_offload_cpu_gpu_bw
"""


class patch(_config_module.patch):
    """Settings for a while: in a with block, or while a function runs.

    Example:
        >>> with tp._functorch.config.patch(debug_assert=True):
        ...     tp._functorch.config.debug_assert
        True
    """


_config_module.install(__name__, _config_module.read(_SETTINGS))

__all__ = ["patch"]
