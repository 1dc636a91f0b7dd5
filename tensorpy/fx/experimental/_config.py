"""Settings of sizes that vary, with PyTorch's names and values: nobody reads them."""

from tensorpy.utils import _config_module

_SETTINGS = """
    False = no_data_dependent_graph_break translation_validation translation_validation_no_bisect
    False = check_shape_env_recorded_events extended_debug_cpp extended_debug_current_loc print_specializations
    False = inject_EVALUATE_EXPR_flip_equality_TESTING_ONLY validate_shape_env_version_key
    False = meta_nonzero_assume_all_nonzero backed_size_oblivious unify_view_symbols_bso_meta
    False = skip_dtype_check_in_meta_registrations enrich_profiler_metadata soft_pending_unbacked_not_found_error
    True = use_duck_shape
    None = symbol_guard_limit_before_specialize extended_debug_guard_added extended_debug_create_symbol
    0 = aggressive_guard_free_semantics
    600000 = translation_validation_timeout
"""


class patch(_config_module.patch):
    """Settings for a while: in a with block, or while a function runs.

    Example:
        >>> from tensorpy.fx.experimental import _config
        >>> with _config.patch(translation_validation=True):
        ...     _config.translation_validation
        True
    """


_config_module.install(__name__, _config_module.read(_SETTINGS))

__all__ = ["patch"]
