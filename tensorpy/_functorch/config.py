"""Settings of functions compiled ahead; any may be set, and nobody reads them."""

from tensorpy.utils.serialization import config


class patch(config.patch):
    """Settings for a while: in a with block, or while a function runs.

    Example:
        >>> with tp._functorch.config.patch(debug_assert=True):
        ...     tp._functorch.config.debug_assert
        True
    """


debug_assert = False
functionalize_rng_ops = False
fake_tensor_allow_meta = True
activation_memory_budget = 1.0
recompute_views = False
view_replay_for_aliased_outputs = True

__all__ = ["patch"]
