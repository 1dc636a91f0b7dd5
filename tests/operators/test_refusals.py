"""Refused calls whose words programs match: both packages say them."""

import re

import pytest

import tensorpy as tp

torch = pytest.importorskip("torch")

CALLS = [
    ("p.ones(2).bool() - p.ones(2).bool()", "Subtraction, the `-` operator, with two bool tensors is not supported."),
    ("p.ones(2) - p.ones(2).bool()", "Subtraction, the `-` operator, with a bool tensor is not supported."),
    ("~p.ones(2)", "~ (operator.invert) is only implemented on integer and Boolean-type tensors"),
    ("p.ones(2).masked_fill(p.ones(2).byte(), 1)", "only supports boolean masks, but got mask with dtype"),
    ("p.mm(p.ones(2), p.ones(2, 2))", "self must be a matrix"),
    ("p.mm(p.ones(2, 2), p.ones(2))", "mat2 must be a matrix"),
    ("p.bmm(p.ones(2, 2), p.ones(2, 2, 2))", "batch1 must be a 3D tensor"),
    ("p.bmm(p.ones(2, 2, 2), p.ones(2, 2))", "batch2 must be a 3D tensor"),
    ("p.tensor([1], requires_grad=True)", "Only Tensors of floating point and complex dtype can require gradients"),
    ("p.nn.GroupNorm(2, 4)(p.ones(1, 3, 2))", "Expected number of channels in input to be divisible by num_groups"),
]


@pytest.mark.parametrize(("call", "words"), CALLS, ids=[call for call, _ in CALLS])
def test_a_refusal_has_the_words(call: str, words: str) -> None:
    classes = []
    for package in (tp, torch):
        with pytest.raises(Exception, match=re.escape(words)) as caught:
            eval(call, {"p": package})
        classes.append(caught.type.__name__)
    assert classes[0] == classes[1]
