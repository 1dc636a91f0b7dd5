"""Tools around tensors: hooks, data loading, checkpointing, pictures. Its parts are imported at first use."""

from __future__ import annotations

from tensorpy._package import parts as _parts
from tensorpy.utils._swap import swap_tensors as swap_tensors

TYPE_CHECKING = False
_PARTS = (
    "_device",
    "_layers",
    "_mode_utils",
    "_python_dispatch",
    "_pytree",
    "backend_registration",
    "benchmark",
    "checkpoint",
    "collect_env",
    "cpp_extension",
    "data",
    "deterministic",
    "dlpack",
    "extension",
    "flop_counter",
    "hooks",
    "model_zoo",
    "module_tracker",
    "serialization",
    "viz",
    "weak",
)


if TYPE_CHECKING:  # what __getattr__ gives at first use
    from tensorpy.utils import _device as _device
    from tensorpy.utils import _layers as _layers
    from tensorpy.utils import _mode_utils as _mode_utils
    from tensorpy.utils import _python_dispatch as _python_dispatch
    from tensorpy.utils import _pytree as _pytree
    from tensorpy.utils import backend_registration as backend_registration
    from tensorpy.utils import benchmark as benchmark
    from tensorpy.utils import checkpoint as checkpoint
    from tensorpy.utils import collect_env as collect_env
    from tensorpy.utils import cpp_extension as cpp_extension
    from tensorpy.utils import data as data
    from tensorpy.utils import deterministic as deterministic
    from tensorpy.utils import dlpack as dlpack
    from tensorpy.utils import extension as extension
    from tensorpy.utils import flop_counter as flop_counter
    from tensorpy.utils import hooks as hooks
    from tensorpy.utils import model_zoo as model_zoo
    from tensorpy.utils import module_tracker as module_tracker
    from tensorpy.utils import serialization as serialization
    from tensorpy.utils import viz as viz
    from tensorpy.utils import weak as weak
    from tensorpy.utils.backend_registration import (
        generate_methods_for_privateuse1_backend as generate_methods_for_privateuse1_backend,
    )
    from tensorpy.utils.backend_registration import rename_privateuse1_backend as rename_privateuse1_backend
else:
    _part = _parts(__name__, _PARTS)

    def __getattr__(name: str) -> object:
        if name in ("generate_methods_for_privateuse1_backend", "rename_privateuse1_backend"):
            from tensorpy.utils import backend_registration

            return getattr(backend_registration, name)
        return _part(name)


def __dir__() -> list[str]:
    return sorted({*globals(), *(part for part in _PARTS if not part.startswith("_"))})
