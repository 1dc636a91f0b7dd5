"""Settings of PyTorch's code generator, for programs that set them: nobody reads them, since no code is generated.

Their names and first values are PyTorch's, in settings.txt; a name that is not there is an error.
"""

from __future__ import annotations

from typing import Any

from tensorpy.utils import _config_module


class patch(_config_module.patch):
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

_config_module.install(__name__, _config_module.inductor_settings())

__all__ = ["patch"]
