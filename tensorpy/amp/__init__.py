"""Automatic mixed precision."""

from __future__ import annotations

from tensorpy.amp.autocast_mode import (
    autocast as autocast,
)
from tensorpy.amp.autocast_mode import (
    custom_bwd as custom_bwd,
)
from tensorpy.amp.autocast_mode import (
    custom_fwd as custom_fwd,
)
from tensorpy.amp.autocast_mode import (
    get_autocast_dtype as get_autocast_dtype,
)
from tensorpy.amp.autocast_mode import (
    is_autocast_available as is_autocast_available,
)
from tensorpy.amp.autocast_mode import (
    is_autocast_cache_enabled as is_autocast_cache_enabled,
)
from tensorpy.amp.autocast_mode import (
    is_autocast_enabled as is_autocast_enabled,
)
from tensorpy.amp.autocast_mode import (
    set_autocast_cache_enabled as set_autocast_cache_enabled,
)
from tensorpy.amp.autocast_mode import (
    set_autocast_dtype as set_autocast_dtype,
)
from tensorpy.amp.autocast_mode import (
    set_autocast_enabled as set_autocast_enabled,
)

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]


TYPE_CHECKING = False
if TYPE_CHECKING:  # what __getattr__ gives at first use
    from tensorpy.amp.grad_scaler import GradScaler as GradScaler
else:

    def __getattr__(name: str) -> object:
        """Parts that most programs do not need are imported at first use."""
        if name == "GradScaler":
            from tensorpy.amp.grad_scaler import GradScaler

            return GradScaler
        raise AttributeError(f"module 'tensorpy.amp' has no attribute '{name}'")
