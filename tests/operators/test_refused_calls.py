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
    ("p.nn.functional.hardtanh(p.ones(2).byte())", "cannot do hardtanh on an unsigned type with negative limits"),
    ("p.use_deterministic_algorithms(1)", "argument 'mode' (position 1) must be bool, not int"),
    ("p.set_deterministic_debug_mode(5)", "invalid value of debug_mode, expected 0, 1, or 2"),
    ("p.set_deterministic_debug_mode('x')", "invalid value of debug_mode, expected one of `default`, `warn`, `error`"),
    ("p.manual_seed(2**64)", "Overflow when unpacking long long"),
    ("p.Generator().set_state(p.ones(3))", "RNG state must be a torch.ByteTensor"),
    ("p.mm(p.ones(2), p.ones(2, 2))", "self must be a matrix"),
    ("p.mm(p.ones(2, 2), p.ones(2))", "mat2 must be a matrix"),
    ("p.bmm(p.ones(2, 2), p.ones(2, 2, 2))", "batch1 must be a 3D tensor"),
    ("p.bmm(p.ones(2, 2, 2), p.ones(2, 2))", "batch2 must be a 3D tensor"),
    ("p.tensor([1], requires_grad=True)", "Only Tensors of floating point and complex dtype can require gradients"),
    ("p.ones(3).index_reduce(0, p.tensor([9]), p.ones(1), 'mean')", "index out of range in self"),
    ("p.ones(3, 0).index_reduce(0, p.tensor([-1]), p.ones(1, 0), 'prod')", "index out of range in self"),
    *(
        (f"p.nn.functional.scaled_dot_product_attention({q}, {q}, {q}, attn_mask={mask})", "match the broadcast shape")
        for q, mask in (
            ("p.ones(1, 1, 3, 8)", "p.ones(2, 1, 3, 3)"),
            ("p.ones(1, 3, 8)", "p.ones(1, 1, 3, 3)"),
            ("p.ones(3, 8)", "p.ones(2, 3, 3).bool()"),
            ("p.ones(1, 1, 1, 8)", "p.ones(3, 1)"),
        )
    ),
    ("p.nn.functional.binary_cross_entropy(p.ones(2), p.ones(2), weight=p.ones(3, 2))", "match the broadcast shape"),
    ("p.nn.functional.soft_margin_loss(p.ones(2), p.ones(3, 2))", "match the broadcast shape"),
    *(
        (f"p.nn.functional.{name}(p.ones(2), p.ones(2), weight=p.ones(3, 2))", "Weights and input must have the same")
        for name in ("mse_loss", "l1_loss")
    ),
    ("p.nn.functional.batch_norm(p.ones(2, 2), p.ones(2), None, training=True)", "must either both be None or neither"),
    ("p.nn.functional.affine_grid(p.ones(0, 2, 3), (0, 2, 2, 2))", "Expected non-zero, positive output size"),
    ("p.nn.GroupNorm(2, 4)(p.ones(1, 3, 2))", "Expected number of channels in input to be divisible by num_groups"),
]


@pytest.mark.parametrize(("call", "words"), CALLS, ids=[call for call, _ in CALLS])
def test_a_refusal_has_the_words(call: str, words: str) -> None:
    classes = []
    for package in (tp, torch):
        with pytest.raises(Exception, match=re.escape(words)) as caught:
            eval(call, {"p": package})
        classes.append(caught.type.__name__)
    torch.use_deterministic_algorithms(False)  # torch sets a switch of its own before it refuses a mode
    assert classes[0] == classes[1]


def test_hardtanh_of_bytes() -> None:
    for name, limits in (("hardtanh", (0, 3)), ("relu6", ()), ("hardtanh_", (2, 4))):
        given = [0, 1, 3, 7, 255]
        ours = getattr(tp.nn.functional, name)(tp.tensor(given, dtype=tp.uint8), *limits)
        theirs = getattr(torch.nn.functional, name)(torch.tensor(given, dtype=torch.uint8), *limits)
        assert ours.tolist() == theirs.tolist() and ours.dtype == tp.uint8


@pytest.mark.parametrize("name", ["weight", "pos_weight"])
def test_a_weight_makes_no_losses_more(name: str) -> None:
    """A wider weight would count each element several times."""
    for package in (tp, torch):
        x, y = package.ones(2), package.ones(2)
        loss = package.nn.functional.binary_cross_entropy_with_logits
        with pytest.raises(RuntimeError):
            loss(x, y, **{name: package.ones(3, 2)})
        assert loss(x, y, **{name: package.ones(1)}, reduction="none").shape == (2,)
