"""utils.swap_tensors, which modules convert by too."""

from __future__ import annotations

import copyreg

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _slots_of(t1: Any, t2: Any) -> list[str]:
    """The names of attributes that the tensors keep in slots."""
    names = vars(copyreg)["_slotnames"]
    slots = [set(names(type(t))) for t in (t1, t2)]
    if slots[0] != slots[1]:
        raise RuntimeError("Cannot swap t1 and t2 if they have different slots: swap_tensors()")
    return sorted(slots[0])


def _check_classes(t1: Any, t2: Any) -> None:
    """A class that an object cannot get is a TypeError here, before anything has changed."""
    own = type(t1)
    t1.__class__ = type(t2)
    t1.__class__ = own


def _own(t: Any, slots: list[str]) -> tuple[type, dict[str, Any], dict[str, Any]]:
    """What Python keeps of a tensor: its class, its attributes, and those in slots that are set."""
    return type(t), t.__dict__, {name: getattr(t, name) for name in slots if hasattr(t, name)}


def _give(t: Any, own: tuple[type, dict[str, Any], dict[str, Any]], slots: list[str]) -> None:
    t.__class__, t.__dict__, values = own
    for name in slots:
        if name in values:
            setattr(t, name, values[name])
        elif hasattr(t, name):
            delattr(t, name)


def swap_tensors(t1: Any, t2: Any) -> None:
    """Two tensors change places: each object gets the other's class, elements, gradient and attributes, and stays the
    object that it is for all who hold it."""
    import weakref

    from tensorpy.autograd.grad_mode import no_grad

    for name, t in (("t1", t1), ("t2", t2)):
        if weakref.getweakrefs(t):
            raise RuntimeError(f"Cannot swap {name} because it has weakref associated with it: swap_tensors()")
        if not t.is_leaf:
            raise RuntimeError("swap_tensors: a tensor that is no leaf of the autograd graph cannot be swapped")
    slots = _slots_of(t1, t2)
    _check_classes(t1, t2)
    own = _own(t1, slots), _own(t2, slots)
    grads, wanted = (t1.grad, t2.grad), (t1.requires_grad, t2.requires_grad)
    with no_grad():
        for t in (t1, t2):
            t.requires_grad_(False)
            t.grad = None
        parts = t1.detach(), t2.detach()
        t1.data, t2.data = parts[1], parts[0]
    for i, t in enumerate((t1, t2)):
        _give(t, own[1 - i], slots)
        t.requires_grad_(wanted[1 - i])
        t.grad = grads[1 - i]
