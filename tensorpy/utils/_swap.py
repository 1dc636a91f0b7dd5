"""utils.swap_tensors, which modules convert by too."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def swap_tensors(t1: Any, t2: Any) -> None:
    """Two tensors change places: each object gets the other's elements, gradient and attributes. They are
    of one class."""
    import weakref

    from tensorpy.autograd.grad_mode import no_grad

    for name, t in (("t1", t1), ("t2", t2)):
        if weakref.getweakrefs(t):
            raise RuntimeError(f"Cannot swap {name} because it has weakref associated with it: swap_tensors()")
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
