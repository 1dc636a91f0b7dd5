"""autocast and what goes with it, where PyTorch has them."""

from __future__ import annotations

from tensorpy.amp import autocast, is_autocast_available
from tensorpy.amp.custom import custom_bwd, custom_fwd

__all__ = ["autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]
