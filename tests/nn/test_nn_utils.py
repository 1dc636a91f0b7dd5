"""nn.utils and nn.init."""

from __future__ import annotations

import copy
import functools
import math
from typing import Any

import numpy as np
import pytest
from side_by_side import Scenarios, compare, error_of, fill, filled, linear
from wrapped import Wrapped

import tensorpy as tp
from tensorpy import nn

scenario = Scenarios()


def with_grads(t: Any) -> Any:
    m = t.nn.Sequential(linear(t), linear(t, 3, 2))
    m(filled(t, 2, 3)).sum().backward()
    return m


@scenario
def clipping(t: Any) -> Any:
    u, told = t.nn.utils, []
    for order in (2.0, 1.0, 3, math.inf):
        m = with_grads(t)
        told += [u.get_total_norm([p.grad for p in m.parameters()], order)]
        told += [u.clip_grad_norm_(m.parameters(), 0.7, order), [p.grad for p in m.parameters()]]
    m = with_grads(t)
    u.clip_grad_value_(m.parameters(), 0.5)
    told += [m[0].weight.grad, u.clip_grad_norm_([], 1.0), u.clip_grad_norm_(m[0].weight, 1e9)]
    u.clip_grads_with_norm_(m[0].bias, 0.1, t.tensor(2.0))
    m[1].weight.grad[0, 0] = math.nan
    told += [m[0].bias.grad, error_of(lambda: u.clip_grad_norm_(m.parameters(), 1.0, error_if_nonfinite=True))]
    return told


@scenario
def vectors(t: Any) -> Any:
    m = linear(t)
    v = t.nn.utils.parameters_to_vector(m.parameters())
    t.nn.utils.vector_to_parameters(v.detach() * 2, m.parameters())
    return [v, m.weight, m.bias, error_of(lambda: t.nn.utils.vector_to_parameters(3, m.parameters()))]


@scenario
def weight_norm(t: Any) -> Any:
    p, x = t.nn.utils.parametrizations, filled(t, 2, 3)
    m = p.weight_norm(linear(t))
    m(x).sum().backward()
    told = [repr(m), list(m.state_dict()), m.weight, m.parametrizations.weight.original0.grad]
    m.weight = filled(t, 2, 3) * 2
    told += [m.parametrizations.weight.original0, m.parametrizations.weight.original1]
    old = t.nn.utils.weight_norm(linear(t), dim=1)
    old(x).sum().backward()
    told += [repr(old), list(old.state_dict()), old.weight, old.weight_g.grad, old.weight_v.grad]
    told += [error_of(lambda: t.nn.utils.weight_norm(old))]
    told += [list(t.nn.utils.remove_weight_norm(old).state_dict()), old.weight]
    whole = p.weight_norm(linear(t), dim=None)
    fresh = p.weight_norm(linear(t, bias=True))
    fresh.load_state_dict(t.nn.utils.weight_norm(linear(t)).state_dict())
    return [*told, whole.parametrizations.weight.original0, fresh.weight]


@scenario
def spectral_norm(t: Any) -> Any:
    told, x = [], filled(t, 2, 3)
    for make in (t.nn.utils.spectral_norm, t.nn.utils.parametrizations.spectral_norm):
        m = make(linear(t))
        for name, buffer in m.named_buffers():
            if name.endswith(("u", "v")):
                buffer.copy_(t.nn.functional.normalize(filled(t, *buffer.shape), dim=0))
        m(x).sum().backward()
        told += [repr(m), list(m.state_dict()), m.weight, [p.grad for p in m.parameters()], dict(m.named_buffers())]
        told += [m.eval()(x), m(x)]
    conv = t.nn.utils.parametrizations.spectral_norm(t.nn.ConvTranspose2d(2, 3, 2))
    told += [{n: tuple(b.shape) for n, b in conv.named_buffers()}]
    old = t.nn.utils.spectral_norm(linear(t))
    return [*told, list(t.nn.utils.remove_spectral_norm(old).state_dict()), old.state_dict()._metadata]


@scenario
def orthogonal(t: Any) -> Any:
    told = []
    for rows, columns, how in ((3, 3, None), (4, 2, None), (2, 4, "householder"), (4, 2, "matrix_exp"), (3, 3, "x")):
        try:
            m = t.nn.utils.parametrizations.orthogonal(linear(t, rows, columns), orthogonal_map=how)
        except ValueError as error:
            told += [type(error).__name__]
            continue
        told += [repr(m), {n: tuple(p.shape) for n, p in m.state_dict().items()}, m.parametrizations.weight.original]
        with t.no_grad():
            if how == "matrix_exp" or rows == columns:
                m.parametrizations.weight.original.copy_(filled(t, rows, columns))
            m.parametrizations.weight[0].base.copy_(t.eye(max(rows, columns)))
        told += [m.weight]
        m(filled(t, 1, columns)).sin().sum().backward()
        told += [m.parametrizations.weight.original.grad]
    return told


def _symmetric(t: Any) -> Any:
    class Symmetric(t.nn.Module):
        def forward(self, x: Any) -> Any:
            return x.triu() + x.triu(1).T

        def right_inverse(self, x: Any) -> Any:
            return x.triu()

    return Symmetric()


@scenario
def parametrize(t: Any) -> Any:
    p, m = t.nn.utils.parametrize, linear(t, 3, 3)
    p.register_parametrization(m, "weight", _symmetric(t))
    told = [repr(m), list(m.state_dict()), m.weight, p.is_parametrized(m), p.is_parametrized(m, "bias")]
    told += [p.type_before_parametrizations(m).__name__, isinstance(m, t.nn.Linear)]
    m.weight = filled(t, 3, 3) * 2
    told += [m.parametrizations.weight.original, m(filled(t, 1, 3))]
    with p.cached():
        told += [m.weight is m.weight]
    told += [m.weight is m.weight]
    other = copy.deepcopy(m)
    told += [repr(other), other.weight, other.parametrizations.weight.original is m.parametrizations.weight.original]
    p.register_parametrization(m, "bias", t.nn.Tanh())
    p.register_parametrization(m, "weight", t.nn.Identity())
    told += [repr(m), m.bias, error_of(lambda: setattr(m, "bias", filled(t, 3)))]
    p.remove_parametrizations(m, "weight")
    p.remove_parametrizations(m, "bias", leave_parametrized=False)
    told += [repr(m), type(m).__name__, m.weight, m.bias, type(m.weight).__name__, list(m.state_dict())]
    told += [error_of(lambda: p.remove_parametrizations(m, "weight"))]
    told += [error_of(lambda: p.register_parametrization(m, "zz", t.nn.Tanh()))]
    told += [error_of(lambda: p.register_parametrization(m, "weight", t.nn.Flatten(0)))]
    target = linear(t, 3, 3)
    p.transfer_parametrizations_and_params(other, target)
    told += [repr(target), target.weight]
    return [*told, list(p.register_parametrization(m, "bias", t.nn.Flatten(0), unsafe=True).state_dict())]


@scenario
def packed_sequences(t: Any) -> Any:
    r = t.nn.utils.rnn
    x = filled(t, 3, 4, 2)
    told = []
    for lengths, ordered in (([4, 2, 1], True), ([2, 4, 1], False)):
        packed = r.pack_padded_sequence(x, t.tensor(lengths), batch_first=True, enforce_sorted=ordered)
        told += [list(packed), r.pad_packed_sequence(packed), r.unpack_sequence(packed)]
        told += [r.pad_packed_sequence(packed, batch_first=True, padding_value=-1.0, total_length=5)]
        for name in ("RNN", "LSTM", "GRU"):
            m = fill(t, getattr(t.nn, name)(2, 3, 2, bidirectional=True))
            output, state = m(packed)
            output.data.sum().backward()
            told += [list(output), state, m.weight_ih_l0_reverse.grad, m.weight_hh_l1.grad]
            start = filled(t, 4, 3, 3)
            told += [m(packed, (start, start) if name == "LSTM" else start)[1]]
    told += [r.pad_sequence([t.ones(2), t.ones(3)]), r.pad_sequence([t.ones(2), t.ones(3)], True, 5.0, "left")]
    told += [list(r.pack_sequence([t.ones(3), t.ones(2)])), r.unpad_sequence(x, t.tensor([1, 3, 2]), batch_first=True)]
    told += [str(packed.double().data.dtype), packed.is_cuda, type(packed.to(t.float64)).__name__]
    calls = [
        lambda: r.pack_padded_sequence(x, [2, 4, 1], True), lambda: r.pack_padded_sequence(x, [4, 2], True),
        lambda: r.pack_padded_sequence(x, [4, 2, 0], True), lambda: r.pad_packed_sequence(packed, total_length=1),
        lambda: r.pad_sequence([]),
    ]  # fmt: skip
    return [*told, *(error_of(call) for call in calls)]


@scenario
def functional_call(t: Any) -> Any:
    m = t.nn.Sequential(linear(t), t.nn.BatchNorm1d(2))
    call, x = t.func.functional_call, filled(t, 2, 3)
    weight = filled(t, 2, 3).mul(2).requires_grad_()
    before = m[0].weight
    told = [call(m, {"0.weight": weight}, x), m[0].weight is before]
    call(m, {"0.weight": weight}, (x,)).square().sum().backward()
    told += [weight.grad, before.grad, call(m.eval(), ({"0.bias": filled(t, 2)}, {"1.running_var": filled(t, 2)}), x)]
    told += [error_of(lambda: call(m, {"0.weight": weight}, x, strict=True))]
    told += [error_of(lambda: call(m, [{"0.bias": weight}, {"0.bias": weight}], x))]
    tied = t.nn.Sequential(linear(t, 2, 2))
    tied.append(tied[0])
    told += [
        call(tied, {"0.weight": t.eye(2)}, x[:, :2]),
        call(tied, {"0.weight": t.eye(2)}, x[:, :2], tie_weights=False),
    ]
    return told


@scenario
def fusion(t: Any) -> Any:
    told = []
    cases = (
        (fill(t, t.nn.Conv2d(2, 3, 2)), {}),
        (fill(t, t.nn.ConvTranspose2d(2, 3, 2, bias=False)), {"transpose": True}),
    )
    x = filled(t, 1, 2, 4, 4)
    for layer, options in cases:
        norm = t.nn.BatchNorm2d(3)
        norm.running_mean.copy_(filled(t, 3))
        norm.running_var.copy_(filled(t, 3) + 1)
        fused = t.nn.utils.fuse_conv_bn_eval(layer.eval(), norm.eval(), **options)
        told += [fused.weight, fused.bias, (fused(x) - norm(layer(x))).abs().max().item() < 1e-5]
    norm = t.nn.BatchNorm1d(2).eval()
    told += [t.nn.utils.fuse_linear_bn_eval(linear(t).eval(), norm).weight]
    return [*told, error_of(lambda: t.nn.utils.fuse_conv_bn_eval(layer.train(), norm))]


@scenario
def pruning(t: Any) -> Any:
    import importlib

    prune = importlib.import_module(f"{t.nn.__name__}.utils.prune")
    m = linear(t, 3, 4)
    prune.l1_unstructured(m, "weight", 0.25)
    told = [list(m.state_dict()), m.weight_mask, m.weight, prune.is_pruned(m)]
    prune.ln_structured(m, "weight", 1, n=2, dim=0)
    told += [m.weight_mask, [type(h).__name__ for h in m._forward_pre_hooks.values()]]
    m(filled(t, 1, 4)).sum().backward()
    told += [m.weight_orig.grad]
    prune.remove(m, "weight")
    told += [list(m.state_dict()), m.weight, prune.is_pruned(m)]
    two = t.nn.Sequential(linear(t), linear(t, 3, 2))
    prune.global_unstructured([(two[0], "weight"), (two[1], "weight")], prune.L1Unstructured, amount=6)
    told += [two[0].weight, two[1].weight, list(two.state_dict())]
    prune.custom_from_mask(m, "bias", t.tensor([1, 0, 1]))
    prune.identity(m, "weight")
    prune.random_unstructured(m, "weight", 3)
    prune.random_structured(m, "weight", 1, dim=1)
    told += [m.bias, int((m.weight_mask == 0).sum()) >= 3]
    calls = [
        lambda: prune.l1_unstructured(m, "weight", 1.5), lambda: prune.l1_unstructured(m, "weight", -1),
        lambda: prune.l1_unstructured(m, "weight", "a"), lambda: prune.remove(linear(t), "weight"),
        lambda: prune.ln_structured(linear(t), "bias", 1, 2, 0), lambda: prune.l1_unstructured(linear(t), "weight", 99),
    ]  # fmt: skip
    return [*told, *(error_of(call) for call in calls)]


@scenario
def skipping_init(t: Any) -> Any:
    m = t.nn.utils.skip_init(t.nn.Linear, 3, 2, bias=False)
    told = [repr(m), str(m.weight.device), m.weight.requires_grad, type(m.weight).__name__]
    return [*told, error_of(lambda: t.nn.utils.skip_init(t.nn.ReLU)), error_of(lambda: t.nn.utils.skip_init(dict))]


@scenario
def deterministic_inits(t: Any) -> Any:
    i, told = t.nn.init, []
    told += [i.constant_(t.empty(2), 3.0), i.ones_(t.empty(2)), i.zeros_(t.empty(2)), i.eye_(t.empty(2, 3))]
    told += [i.dirac_(t.empty(3, 2, 3)), i.dirac_(t.empty(4, 2, 3, 2), 2)]
    names = ("linear", "conv2d", "conv_transpose3d", "sigmoid", "tanh", "relu", "leaky_relu", "selu")
    told += [i.calculate_gain(name) for name in names] + [i.calculate_gain("leaky_relu", 0.2)]
    calls = [
        lambda: i.calculate_gain("x"), lambda: i.calculate_gain("leaky_relu", "a"), lambda: i.eye_(t.ones(2)),
        lambda: i.dirac_(t.ones(2)), lambda: i.dirac_(t.ones(2, 2, 3), 3), lambda: i.xavier_uniform_(t.ones(2)),
        lambda: i.kaiming_normal_(t.ones(2, 2), mode="x"), lambda: i.orthogonal_(t.ones(2)),
        lambda: i.sparse_(t.ones(2), 0.1),
    ]  # fmt: skip
    told += [tuple(i.kaiming_uniform_(t.empty(2, 0)).shape), i.constant(t.empty(1), 2.0)]
    return [*told, *(error_of(call) for call in calls)]


@scenario
def reparametrizing(t: Any) -> Any:
    m = linear(t)
    own = m.weight
    with t.nn.utils.stateless._reparametrize_module(m, {"weight": t.zeros(own.shape)}):
        told = [m(t.ones(1, own.shape[1]))]
    return [*told, m.weight is own]


class Counts:
    """A forward that assigns a buffer, and reads a plain attribute."""

    @staticmethod
    def of(t: Any) -> Any:
        class Module(t.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.count, self.plain, self.number = t.nn.Buffer(t.zeros(1)), t.ones(1), 1.0
                self.inner = t.nn.Linear(1, 1)
                self.inner.outer = self

            def forward(self, x: Any) -> Any:
                self.count = self.count + 1
                return x * self.plain + getattr(self, "extra", 0)

        return Module()


@scenario
def functional_call_of_what_is_no_parameter(t: Any) -> Any:
    m, call, x = Counts.of(t), t.func.functional_call, t.ones(1)
    given = {"count": t.full((1,), 5.0), "plain": t.full((1,), 2.0), "extra": t.full((1,), 0.5)}
    told = [call(m, given, x, tie_weights=False), given["count"], m.count, m.plain, hasattr(m, "extra")]
    told += [call(m, {"inner.outer.plain": t.zeros(1)}, x, tie_weights=False), m.plain]
    for wrong in ({"number": x}, {"nope.weight": x}, {"plain": 1.0}):
        told.append(type(raised(lambda wrong=wrong: call(m, wrong, x, tie_weights=False))).__name__)
    return told


@scenario
def functional_call_with_shared_parameters(t: Any) -> Any:
    m = t.nn.Module()
    m.one = m.two = t.nn.Parameter(t.ones(1))
    m.forward = lambda x: (x * m.one + m.two, [n for n, _ in m.named_parameters(remove_duplicate=False)])
    call = t.func.functional_call
    return [
        call(m, {"one": t.zeros(1)}, t.ones(1), strict=True),
        call(m, {"one": t.zeros(1)}, t.ones(1), tie_weights=False),
        str(raised(lambda: call(m, {"one": t.zeros(1)}, t.ones(1), tie_weights=False, strict=True))).split("\n")[-1],
        str(raised(lambda: call(m, {"one": t.zeros(1), "two": t.ones(1)}, t.ones(1)))).split(",")[0],
    ]


def raised(call: Any) -> BaseException | None:
    try:
        call()
    except Exception as error:
        return error
    return None


def test_the_older_functional_call_warns() -> None:
    with pytest.warns(FutureWarning, match=r"Please use `torch\.func\.functional_call`"):
        tp.nn.utils.stateless.functional_call(tp.nn.Linear(1, 1), {}, tp.ones(1, 1))


@pytest.mark.parametrize("tell", scenario, ids=lambda s: s.__name__)
def test_scenario(tell: Any) -> None:
    compare(tell)


# ---- starting values that are drawn ----

WIDE = (200, 100, 2)


@pytest.mark.parametrize(
    ("name", "options", "bounds", "std"),
    [
        ("uniform_", {"a": -1.0, "b": 3.0}, (-1.0, 3.0), 4 / math.sqrt(12)),
        ("normal_", {"mean": 0.0, "std": 0.5}, None, 0.5),
        ("trunc_normal_", {"std": 1.0}, (-2.0, 2.0), 0.8796),
        ("trunc_normal_", {"mean": 1.0, "std": 2.0, "a": 0.0, "b": 1.5}, (0.0, 1.5), 0.43),
        ("xavier_uniform_", {"gain": 2.0}, (-2 * math.sqrt(6 / 600), 2 * math.sqrt(6 / 600)), 2 * math.sqrt(2 / 600)),
        ("xavier_normal_", {}, None, math.sqrt(2 / 600)),
        ("kaiming_uniform_", {"mode": "fan_out"}, (-math.sqrt(6 / 400), math.sqrt(6 / 400)), math.sqrt(2 / 400)),
        ("kaiming_normal_", {"nonlinearity": "relu"}, None, math.sqrt(2 / 200)),
    ],
)
def test_drawn_inits(name: str, options: Any, bounds: Any, std: float) -> None:
    tp.manual_seed(0)
    p = nn.Parameter(tp.zeros(WIDE))
    assert getattr(nn.init, name)(p, **options) is p and p.requires_grad and p.is_leaf
    assert p.std().item() == pytest.approx(std, rel=0.03)
    if bounds:
        assert bounds[0] <= p.min().item() and p.max().item() <= bounds[1]
    generator = tp.Generator().manual_seed(3)
    first = getattr(nn.init, name)(tp.zeros(5, 5), **options, generator=generator)
    generator.manual_seed(3)
    assert tp.equal(first, getattr(nn.init, name)(tp.zeros(5, 5), **options, generator=generator))


@pytest.mark.parametrize("shape", [(4, 4), (3, 5), (6, 2), (4, 2, 3)])
def test_orthogonal_init(shape: tuple[int, ...]) -> None:
    tp.manual_seed(0)
    w = nn.init.orthogonal_(tp.empty(shape), gain=2.0).flatten(1).double()
    product = w @ w.T if w.shape[0] <= w.shape[1] else w.T @ w
    np.testing.assert_allclose(product.numpy(), 4 * np.eye(min(w.shape)), atol=1e-5)


def test_sparse_init() -> None:
    tp.manual_seed(0)
    w = nn.init.sparse_(tp.ones(10, 4), 0.25, std=1.0)
    assert (w == 0).sum(0).tolist() == [3, 3, 3, 3]


def test_functional_call_leaves_names_alone_that_a_module_has_no_place_for() -> None:
    layer = tp.nn.Linear(1, 1)
    model, x = tp.nn.Sequential(layer), tp.ones(1, 1)
    found = tp.func.functional_call(model, {"0.weight": tp.zeros(1, 1), "0.extra": x, "other": x}, (x,))
    assert found.item() == layer.bias.item() and not hasattr(layer, "extra")
    with pytest.raises(AttributeError, match="no attribute `nope`"):
        tp.func.functional_call(model, {"nope.weight": x}, (x,))
    with pytest.raises(ValueError, match=r"\['0.weight'\] appeared in multiple dictionaries"):
        tp.func.functional_call(model, ({"0.weight": x}, {"0.weight": x}), (x,))


def test_recurrent_layers_without_projections_say_so() -> None:
    for layer in (tp.nn.RNN, tp.nn.GRU):
        with pytest.raises(ValueError, match="proj_size is an argument of LSTM alone"):
            layer(2, 3, proj_size=1)
        with pytest.raises(TypeError, match="unexpected keyword argument 'other'"):
            layer(2, 3, other=1)


def test_blocks_that_do_not_fit_say_how_many_there_would_be() -> None:
    with pytest.raises(RuntimeError, match=r"there are \(-1, 0\) sliding blocks in an image"):
        tp.nn.Unfold((4, 3), stride=(1, 2))(tp.ones(1, 1, 2, 2))


def test_pruning_s_checks_and_norms_have_names() -> None:
    prune = tp.nn.utils.prune
    assert prune._compute_norm(tp.tensor([[3.0, 4.0], [0.0, 2.0]]), 2, 0).tolist() == [5.0, 2.0]
    assert prune._compute_norm(tp.tensor([[3.0, 4.0], [0.0, 2.0]]), 1, -1).tolist() == [3.0, 6.0]
    with pytest.raises(ValueError, match="multidimensional tensors"):
        prune._validate_structured_pruning(tp.ones(2))
    with pytest.raises(IndexError, match="Invalid index 5"):
        prune._validate_pruning_dim(tp.ones(2, 2), 5)


class Wrap(nn.Module):
    def forward(self, x: Any) -> Any:
        return Wrapped(x)


class Unwrap(nn.Module):
    def forward(self, x: Any) -> Any:
        return x.inner


@pytest.mark.parametrize("leave", [False, True])
@pytest.mark.parametrize("wrapped", [False, True])
def test_a_parametrization_may_change_the_class_where_tensors_are_swapped(leave: bool, wrapped: bool) -> None:
    """The objects that optimizers hold stay, and what is taken out leaves what was computed or what was there."""
    before = tp.__future__.get_swap_module_params_on_conversion()
    tp.__future__.set_swap_module_params_on_conversion(True)
    try:
        layer = nn.Linear(2, 2, bias=False)
        layer.kept = nn.Buffer(tp.zeros(2, 2))
        if wrapped:
            layer._apply(Wrapped)
        was = [(layer.weight, type(layer.weight)), (layer.kept, type(layer.kept))]
        for name in ("weight", "kept"):
            nn.utils.parametrize.register_parametrization(layer, name, Unwrap() if wrapped else Wrap())
            nn.utils.parametrize.remove_parametrizations(layer, name, leave_parametrized=leave)
        for now, (then, kind), plain in zip((layer.weight, layer.kept), was, (nn.Parameter, tp.Tensor), strict=True):
            assert now is then and isinstance(now, nn.Parameter) == (now is layer.weight)
            assert type(now) is ((plain if wrapped else Wrapped) if leave else kind)
    finally:
        tp.__future__.set_swap_module_params_on_conversion(before)


def test_what_is_made_of_frozen_originals_is_frozen() -> None:
    layer = nn.Linear(2, 2).requires_grad_(False)
    nn.utils.parametrizations.weight_norm(layer)
    nn.utils.parametrize.remove_parametrizations(layer, "weight")
    assert not layer.weight.requires_grad and "weight" in layer.state_dict()


def test_one_more_parametrization_is_computed_of_what_was_there():
    class Double(nn.Module):
        def forward(self, x):
            return 2.0 * x

        def right_inverse(self, x):
            return 0.5 * x

    class AddOne(nn.Module):
        def forward(self, x):
            return x + 1.0

    layer = nn.Linear(3, 3)
    parametrize, before = nn.utils.parametrize, layer.weight.detach().clone()
    parametrize.register_parametrization(layer, "weight", AddOne())
    parametrize.register_parametrization(layer, "weight", Double())
    assert tp.equal(layer.weight, 2.0 * (before + 1.0))
    other = parametrize.transfer_parametrizations_and_params(layer, nn.Linear(3, 3))
    assert tp.equal(other.weight, layer.weight)
    with pytest.raises(RuntimeError, match="AddOne does not implement right_inverse"):
        layer.weight = before

    class OtherDtype(AddOne):
        def right_inverse(self, x):
            return x.bool()

    class OtherShape(AddOne):
        def right_inverse(self, x):
            return x[:-1]

    for wrong, what in ((OtherDtype(), "dtype"), (OtherShape(), "shape")):
        with pytest.raises(ValueError, match=f"must have the same {what}"):
            parametrize.register_parametrization(layer, "weight", wrong)
    assert len(layer.parametrizations.weight) == 2


def test_an_inverse_stays_on_the_device() -> None:
    class Elsewhere(nn.Module):
        def forward(self, x: tp.Tensor) -> tp.Tensor:
            return x

        def right_inverse(self, x: tp.Tensor) -> tp.Tensor:
            return x.to("meta")

    with pytest.raises(ValueError, match="may not change the device"):
        nn.utils.parametrize.register_parametrization(nn.Linear(2, 2), "weight", Elsewhere())


def test_masks_have_the_shape_of_what_they_prune() -> None:
    with pytest.raises(AssertionError, match="must match"):
        nn.utils.prune.custom_from_mask(nn.Linear(5, 2), "weight", tp.ones(3, 3))


@pytest.mark.parametrize("dtype", [tp.float64, tp.complex128])
@pytest.mark.parametrize("shape", [(4, 4), (3, 6), (6, 3), (2, 4, 4), (2, 5, 3)])
@pytest.mark.parametrize("how", ["matrix_exp", "cayley", "householder"])
@pytest.mark.parametrize("moved", [True, False])
def test_orthogonal_matrices_of_all_shapes(how: str, shape: tuple[int, ...], dtype: Any, moved: bool) -> None:
    """Batches and complex ones too; where it can, one that is orthogonal is kept as it is, and one is assigned."""
    layer = nn.Module()
    layer.weight = nn.Parameter(tp.randn(shape, dtype=dtype))
    orthogonal = functools.partial(nn.utils.parametrizations.orthogonal, layer, "weight", how, use_trivialization=moved)
    if how == "householder" and dtype.is_complex:
        with pytest.raises(ValueError, match="does not support complex"):
            orthogonal()
        return
    orthogonal()

    def is_orthogonal() -> bool:
        tall = layer.weight if shape[-2] >= shape[-1] else layer.weight.mT
        one = tp.eye(tall.shape[-1], dtype=dtype)
        return bool((tall.mH @ tall - one).abs().max() < 1e-10)

    assert is_orthogonal() and layer.weight.shape == shape
    layer.weight.abs().sum().backward()
    assert layer.parametrizations.weight.original.grad.isfinite().all()
    other = layer.weight.detach().flip(-1)
    if how != "householder" and not moved:
        with pytest.raises(NotImplementedError, match="not possible to assign"):
            layer.weight = other
    else:
        layer.weight = other
        assert is_orthogonal() and tp.allclose(layer.weight, other, atol=1e-10)


def test_the_names_of_a_parallel_model_lose_its_prefix():
    model = nn.Sequential()
    model.add_module("module", nn.Sequential(nn.Linear(2, 2), nn.ReLU()))
    model.add_module("module2", nn.Linear(1, 1))
    state = model.state_dict()
    nn.modules.utils.consume_prefix_in_state_dict_if_present(state, "module.")
    assert list(state) == ["module2.weight", "module2.bias", "0.weight", "0.bias"]
    assert list(state._metadata) == ["", "module2", "0", "1"]
    nn.Sequential(nn.Linear(2, 2)).load_state_dict({k: v for k, v in state.items() if k.startswith("0")})
    plain = {"module.a": 1, "b": 2}
    nn.modules.utils.consume_prefix_in_state_dict_if_present(plain, "module.")
    assert plain == {"b": 2, "a": 1}
