"""Settings of PyTorch's compilers that programs set under this name: those of _dynamo.config, and of caches.

No code is generated or kept, so nobody reads the others. PyTorch's values.
"""

from __future__ import annotations

from tensorpy._dynamo import config as _dynamo_config
from tensorpy.utils import _config_module

job_id = pgo_extra_read_key = pgo_extra_write_key = None
cache_key_tag = dynamic_sources = dynamic_values = unbacked_sources = ""
force_disable_caches = force_cudagraph_gc = False

# Those that are settings of _dynamo.config, read and set there.
_ALIASES = frozenset(
    """
    accumulated_recompile_limit allow_unspec_int_on_nn_module assume_static_by_default automatic_dynamic_shapes
    capture_dynamic_output_shape_ops capture_scalar_outputs dynamic_shapes enable_cpp_symbolic_shape_guards
    fail_on_recompile_limit_hit log_file_name recompile_limit reorderable_logging_functions
    skip_tensor_guards_with_matching_dict_tags verbose wrap_top_frame
    """.split()
)


class patch(_config_module.patch):
    """Settings for a while: in a with block, or while a function runs.

    Example:
        >>> import tensorpy.compiler.config
        >>> with tp.compiler.config.patch(recompile_limit=2):
        ...     tp._dynamo.config.recompile_limit
        2
    """


class _Config(_config_module.Settings):
    """Those of _dynamo.config have its values."""


def _alias(name: str) -> property:
    return property(lambda _: getattr(_dynamo_config, name), lambda _, value: setattr(_dynamo_config, name, value))


for _name in _ALIASES:
    setattr(_Config, _name, _alias(_name))

_config_module.install(__name__, {}, _Config)

__all__ = ["patch"]
