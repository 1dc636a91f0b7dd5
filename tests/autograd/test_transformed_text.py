"""What prints inside of a function that is transformed: the transforms that a tensor belongs to, as in PyTorch."""

import contextlib
import io

import pytest

import tensorpy as tp

torch = pytest.importorskip("torch")


def shows(x):
    print(x)
    y = x * 2
    print(y)
    return y


CALLS = {
    "grad": lambda f: f.grad(lambda x: shows(x).sum()),
    "vjp": lambda f: lambda x: f.vjp(shows, x),
    "vmap": lambda f: f.vmap(shows),
    "jvp": lambda f: lambda x: f.jvp(shows, (x,), (x,)),
    "grad of grad": lambda f: f.grad(lambda x: f.grad(lambda y: shows(y).sum())(x).sum()),
    "two arguments": lambda f: f.grad(lambda x: f.grad(lambda y: shows(x * y).sum())(x).sum()),
    "the outer argument": lambda f: f.grad(lambda x: f.grad(lambda y: (y * x).sum())(shows(x)).sum()),
    "vmap of vmap": lambda f: lambda x: f.vmap(f.vmap(shows))(x.reshape(2, 2)),
    "vmap of grad": lambda f: f.vmap(f.grad(lambda x: shows(x).sum())),
    "grad of vmap": lambda f: f.grad(lambda x: f.vmap(shows)(x).sum()),
    "jvp of grad": lambda f: lambda x: f.jvp(f.grad(lambda y: shows(y).sum()), (x,), (x,)),
    "vmap of jvp": lambda f: f.vmap(lambda x: f.jvp(shows, (x,), (x,))),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_tensor_shows_its_transforms(name):
    texts = []
    for package in (tp, torch):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            CALLS[name](package.func)(package.arange(4.0))
        texts.append(out.getvalue())
    assert texts[0] == texts[1]


def test_a_tensor_of_no_transform_prints_as_ever():
    seen = []
    tp.func.grad(lambda x: (seen.append(repr(tp.ones(2))), x.sum())[1])(tp.ones(2))
    assert seen == ["tensor([1., 1.])"] and repr(tp.ones(1)) == "tensor([1.])"
