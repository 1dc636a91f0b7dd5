"""Settings of functions that are compiled by a backend of the program's; any other may be set, and nobody reads it."""

from __future__ import annotations

import sys
from types import ModuleType

from tensorpy.utils.serialization import config

recompile_limit = 8  # graphs of one function: a call that needs another one runs as it is written
compiled_autograd = False  # backward is never compiled as a graph of its own
suppress_errors = False  # a function whose backend fails runs as it is written
error_on_recompile = False  # a call that needs another graph is an error

# What programs set, or ask for, and nobody reads: shapes and numbers may be any at each call.
accumulated_recompile_limit = accumulated_cache_size_limit = 256
automatic_dynamic_shapes = assume_static_by_default = dynamic_shapes = force_parameter_static_shapes = True
capture_scalar_outputs = capture_dynamic_output_shape_ops = specialize_int = specialize_float = False
guard_nn_modules = inline_inbuilt_nn_modules = optimize_ddp = trace_numpy = True
fail_on_recompile_limit_hit = allow_unspec_int_on_nn_module = allow_rnn = False
verbose = disable = skip_fwd_side_effects_in_bwd_under_checkpoint = False


class patch(config.patch):
    """Settings for a while: in a with block, or while a function runs.

    Example:
        >>> with tp._dynamo.config.patch(recompile_limit=2):
        ...     tp._dynamo.config.recompile_limit
        2
    """


class _Config(ModuleType):
    """A setting of two names is one."""

    @property
    def cache_size_limit(self) -> int:
        return int(self.recompile_limit)

    @cache_size_limit.setter
    def cache_size_limit(self, limit: int) -> None:
        self.__dict__["recompile_limit"] = limit


sys.modules[__name__].__class__ = _Config

__all__ = ["error_on_recompile", "patch", "recompile_limit", "suppress_errors"]
