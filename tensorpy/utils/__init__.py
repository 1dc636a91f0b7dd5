"""Tools around tensors: hooks, data loading, checkpointing, pictures. Its parts are imported at first use."""

from __future__ import annotations

from tensorpy._package import parts as _parts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_PARTS = (
    "_layers",
    "_python_dispatch",
    "_pytree",
    "backend_registration",
    "benchmark",
    "checkpoint",
    "cpp_extension",
    "data",
    "deterministic",
    "dlpack",
    "extension",
    "hooks",
    "model_zoo",
    "viz",
)


def swap_tensors(t1: Any, t2: Any) -> None:
    """Two tensors change places: each object gets the other's elements, gradient and attributes. They are
    of one class."""
    import weakref

    from tensorpy.autograd.grad_mode import no_grad

    for t in (t1, t2):
        if weakref.getweakrefs(t):
            raise RuntimeError("swap_tensors: a tensor that has weak references cannot be swapped")
        if not t.is_leaf:
            raise RuntimeError("swap_tensors: a tensor that is no leaf of the autograd graph cannot be swapped")
    if type(t1) is not type(t2):
        raise RuntimeError(f"swap_tensors: the tensors are of two classes, {type(t1).__name__} and {type(t2).__name__}")
    attributes = dict(t1.__dict__), dict(t2.__dict__)
    grads, wanted = (t1.grad, t2.grad), (t1.requires_grad, t2.requires_grad)
    with no_grad():
        for t in (t1, t2):
            t.requires_grad_(False)
            t.grad = None
        parts = t1.detach(), t2.detach()
        t1.data, t2.data = parts[1], parts[0]
    for i, t in enumerate((t1, t2)):
        t.__dict__.clear()
        t.__dict__.update(attributes[1 - i])
        t.requires_grad_(wanted[1 - i])
        t.grad = grads[1 - i]


if TYPE_CHECKING:  # what __getattr__ gives at first use
    from tensorpy.utils import _layers as _layers
    from tensorpy.utils import _python_dispatch as _python_dispatch
    from tensorpy.utils import _pytree as _pytree
    from tensorpy.utils import backend_registration as backend_registration
    from tensorpy.utils import benchmark as benchmark
    from tensorpy.utils import checkpoint as checkpoint
    from tensorpy.utils import cpp_extension as cpp_extension
    from tensorpy.utils import data as data
    from tensorpy.utils import deterministic as deterministic
    from tensorpy.utils import dlpack as dlpack
    from tensorpy.utils import extension as extension
    from tensorpy.utils import hooks as hooks
    from tensorpy.utils import model_zoo as model_zoo
    from tensorpy.utils import viz as viz
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
