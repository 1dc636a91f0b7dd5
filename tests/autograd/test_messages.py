"""What autograd refuses, in the class and with the first words of PyTorch."""

import re

import pytest

import tensorpy as tp

torch = pytest.importorskip("torch")


def leaf(package):
    return package.ones(2, requires_grad=True)


def square(package):
    """A complex matrix without symmetry."""
    rows = [[1 + 2j, 2 - 1j, 0.5j], [3, 1j, 2], [1 - 1j, 4, 2 + 2j]]
    return package.tensor(rows, dtype=package.complex128, requires_grad=True)


def backward(package, hook):
    x = leaf(package)
    x.register_hook(hook)
    x.sum().backward()


def legacy(package):
    function = type("F", (package.autograd.Function,), {"forward": staticmethod(lambda ctx, x: x.clone())})
    function()(leaf(package))


def without_backward(package):
    function = type("F", (package.autograd.Function,), {"forward": staticmethod(lambda ctx, x: x.clone())})
    function.apply(leaf(package)).sum().backward()


CALLS = {
    "size of grad": (lambda p: setattr(leaf(p), "grad", p.ones(3)), "attempting to assign a gradient of size"),
    "dtype of grad": (
        lambda p: setattr(leaf(p), "grad", p.ones(2, dtype=p.float64)),
        "attempting to assign a gradient with dtype",
    ),
    "a number": (lambda p: setattr(leaf(p), "grad", 1), "assigned grad expected to be a Tensor or None but got grad"),
    "itself": (lambda p: (lambda x: setattr(x, "grad", x))(leaf(p)), "can't assign Variable as its own grad"),
    "_grad_fn": (lambda p: setattr(leaf(p), "_grad_fn", 1), "_grad_fn can be only set to None"),
    "del _grad_fn": (lambda p: delattr(leaf(p), "_grad_fn"), "Deletion of _grad_fn not allowed. Detach tensor"),
    "del requires_grad": (lambda p: delattr(leaf(p), "requires_grad"), "requires_grad must be a bool"),
    "del data": (lambda p: delattr(leaf(p), "data"), "Deleting tensor data is not allowed. Delete tensor instead!"),
    "del hooks": (lambda p: delattr(leaf(p), "_backward_hooks"), "Deletion of _backwards_hooks not allowed!"),
    "what a hook gives": (lambda p: backward(p, lambda g: 1), "expected Variable, but hook returned 'int'"),
    "sizes of a hook": (lambda p: backward(p, lambda g: p.ones(3)), "hook '<lambda>' has changed the size of value"),
    "legacy function": (legacy, "Legacy autograd function with non-static forward method is deprecated"),
    "phase of svd": (
        lambda p: p.linalg.svd(square(p))[0].real.sum().backward(),
        "svd_backward: The singular vectors in the complex case are specified up to multiplication by e^{i phi}.",
    ),
    "phase of eig": (
        lambda p: p.linalg.eig(square(p))[1].real.sum().backward(),
        "linalg_eig_backward: The eigenvectors in the complex case are specified up to multiplication by e^{i phi}.",
    ),
    "phase of eigh": (
        lambda p: p.linalg.eigh(square(p))[1].real.sum().backward(),
        "linalg_eigh_backward: The eigenvectors in the complex case are specified up to multiplication by e^{i phi}.",
    ),
    "no backward": (without_backward, "You must implement either the backward or vjp method for your custom"),
    "unused": (
        lambda p: p.autograd.grad(leaf(p).sum(), leaf(p)),
        "The differentiated Tensor at index 0 appears to not have been used in the graph",
    ),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CALLS)
def test_a_refusal_is_pytorchs(name):
    call, words = CALLS[name]
    classes = []
    for package in (tp, torch):
        with pytest.raises(Exception, match=f"^{re.escape(words)}") as caught:
            call(package)
        classes.append(caught.type.__name__)
    assert classes[0] == classes[1]


def test_grad_fn_set_to_none_detaches():
    for package in (tp, torch):
        y = leaf(package) * 1
        y._grad_fn = None
        assert y.grad_fn is None and not y.requires_grad


def test_a_loss_without_phase_has_a_gradient():
    for split in (tp.linalg.svd, tp.linalg.eig, tp.linalg.eigh):
        x = square(tp)
        sum(part.abs().sum() for part in split(x)).backward()
        assert x.grad.isfinite().all()
