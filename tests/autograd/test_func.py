"""tensorpy.func against torch's, against loops, and every differentiable operator's Jacobian under vmap."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import tensorpy as tp
import tensorpy.nn.functional as F
from tensorpy import func, vmap
from tensorpy.testing import assert_close
from tensorpy.testing.harness import arguments, function_of, inputs_of, over, seed, tensors
from tensorpy.testing.samples import OpInfo

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples"))
from digits import Cnn, Mlp

X = tp.linspace(-1, 2, 12, dtype=tp.float64).reshape(3, 4)


# ---- every operator's backward under vmap, and forward by two of them ----


class Recorded:
    """An operator on a sample as a function of its floating arguments."""

    def __init__(self, info: OpInfo, args: list[Any], kwargs: dict[str, Any]) -> None:
        self.info, self.function = info, function_of(info)
        self.inputs, self.fill = inputs_of(info, args, kwargs)
        self.chosen: list[int] = []
        outputs = self.all_outputs(*self.inputs)
        self.chosen = [i for i, o in enumerate(outputs) if o.requires_grad and o.numel() and o.dtype == tp.float64]

    def all_outputs(self, *given: tp.Tensor) -> list[tp.Tensor]:
        args, kwargs = self.fill(tuple(x.clone() for x in given))
        if self.info.random:
            seed(kwargs)
        return tensors(self.function(*args, **kwargs))

    def __call__(self, *given: tp.Tensor) -> list[tp.Tensor]:
        outputs = self.all_outputs(*given)
        return [outputs[i] for i in self.chosen]

    def rows(self) -> list[list[tp.Tensor]]:
        """The Jacobian, a call of backward for each row."""
        jacobian = []
        for o in self(*self.inputs):
            basis = tp.eye(o.numel(), dtype=o.dtype, device=o.device).reshape(o.numel(), *o.shape)
            rows = [
                tp.autograd.grad(o, self.inputs, row, retain_graph=True, allow_unused=True, materialize_grads=True)
                for row in basis
            ]
            columns = zip(*rows, strict=True)
            jacobian.append(
                [tp.stack(c).reshape((*o.shape, *x.shape)) for c, x in zip(columns, self.inputs, strict=True)]
            )
        return jacobian


def recorded(info: OpInfo, device: str) -> list[Recorded]:
    if "float64" not in info.dtypes:
        return []
    found = []
    for sample in info.samples("float64", 3):
        args, kwargs = arguments(sample, device, info)
        inputs, _ = inputs_of(info, args, kwargs)
        if inputs and not any(t.is_complex() or t.numel() > 30 for t in inputs):
            found.append(Recorded(info, args, kwargs))
    return found


def same(got: Sequence[Any], expected: Sequence[Any], what: str) -> None:
    for a, b in zip(got, expected, strict=True):
        for p, q in zip(a, b, strict=True):
            assert_close(p, q, rtol=1e-6, atol=1e-8, equal_nan=True, msg=lambda text: f"{what}: {text}")


@over(lambda info: info.differentiable)
def test_jacobian(info: OpInfo, device: str) -> None:
    for f in recorded(info, device):
        if not f.chosen:
            continue
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "vmap: there is no batching rule")
            given = [x.detach() for x in f.inputs]
            same(func.jacrev(f, tuple(range(len(given))))(*given), f.rows(), info.name)


@over(lambda info: info.differentiable and info.gradgradcheck)
def test_jvp(info: OpInfo, device: str) -> None:
    """The tangents of the outputs are the Jacobian times those of the inputs."""
    for f in recorded(info, device):
        if not f.chosen:
            continue
        given = tuple(x.detach() for x in f.inputs)
        directions = tuple(tp.linspace(-1, 1, x.numel(), dtype=x.dtype).reshape(x.shape).to(x.device) for x in given)
        _, moved = func.jvp(f, given, directions)
        for row, got in zip(f.rows(), moved, strict=True):
            parts = [
                (j * d).reshape((*got.shape, d.numel())).sum(-1)
                for j, d in zip(row, directions, strict=True)
                if d.numel()
            ]
            expected = sum(parts[1:], parts[0]) if parts else tp.zeros_like(got)
            assert_close(got, expected, rtol=1e-5, atol=1e-7, equal_nan=True, msg=lambda text: f"{info.name}: {text}")


# ---- against torch ----


def pairs() -> list[tuple[str, Callable[[Any], Any]]]:
    """Programs over a module, which is torch or tensorpy."""

    def x(m: Any) -> Any:
        return m.linspace(-1, 2, 12, dtype=m.float64).reshape(3, 4)

    def value(m: Any, a: Any) -> Any:
        return (a.sin() * a).sum()

    return [
        ("grad", lambda m: m.func.grad(lambda a: value(m, a))(x(m))),
        ("grad_argnums", lambda m: m.func.grad(lambda a, b: (a * b).sum(), argnums=(0, 1))(x(m), x(m) + 1)),
        ("grad_aux", lambda m: m.func.grad(lambda a: (value(m, a), a * 2), has_aux=True)(x(m))),
        ("grad_tree", lambda m: m.func.grad(lambda d: (d["a"] * d["b"][0]).sum())({"a": x(m), "b": [x(m) + 1]})),
        ("grad_and_value", lambda m: m.func.grad_and_value(lambda a: value(m, a))(x(m))),
        ("grad_of_grad", lambda m: m.func.grad(m.func.grad(lambda a: a.sin()))(x(m)[0, 1])),
        ("three", lambda m: m.func.grad(m.func.grad(m.func.grad(lambda a: a**4)))(x(m)[2, 3])),
        (
            "confusion",
            lambda m: m.func.grad(lambda a: a * m.func.grad(lambda b: a + b * b)(m.ones_like(a)))(x(m)[0, 0]),
        ),
        ("unused", lambda m: m.func.grad(lambda a, b: a.sum(), argnums=1)(x(m), x(m))),
        ("vmap_grad", lambda m: m.vmap(m.func.grad(lambda a: value(m, a)))(x(m))),
        ("grad_vmap", lambda m: m.func.grad(lambda a: m.vmap(lambda r: r.prod())(a).sum())(x(m))),
        ("vmap_grad_vmap", lambda m: m.vmap(m.func.grad(lambda r: m.vmap(lambda v: v**3)(r).sum()))(x(m))),
        ("shared", lambda m: m.vmap(m.func.grad(lambda w, a: (w * a).sum().exp()), (None, 0))(x(m)[1], x(m))),
        (
            "grad_vmap_grad",
            lambda m: m.func.grad(lambda w: m.vmap(m.func.grad(lambda a: (w * a * a).sum()))(x(m)).sum())(x(m)[0]),
        ),
        ("vjp", lambda m: m.func.vjp(lambda a: (a * 2, a.sum()), x(m))[1]((x(m), m.ones((), dtype=m.float64)))),
        ("jacrev", lambda m: m.func.jacrev(lambda a: (a.t() @ a, a.sum()))(x(m))),
        ("jacrev_chunk", lambda m: m.func.jacrev(lambda a: a.sin(), chunk_size=5)(x(m))),
        (
            "jacrev_row_by_row",
            lambda m: m.func.jacrev(lambda a, b: (a @ b, b.sum()), (0, 1), chunk_size=1)(x(m), x(m)[0]),
        ),
        ("jacrev_args", lambda m: m.func.jacrev(lambda a, b: a @ b, argnums=(0, 1))(x(m), x(m)[0])),
        ("jacfwd", lambda m: m.func.jacfwd(lambda a: a.t() @ a)(x(m))),
        ("jvp", lambda m: m.func.jvp(lambda a, b: a * b.exp(), (x(m), x(m)), (x(m) + 1, x(m) * 2))),
        ("linearize", lambda m: m.func.linearize(lambda a: a.sin(), x(m))[1](x(m))),
        ("hessian", lambda m: m.func.hessian(lambda a: value(m, a) + a.prod())(x(m)[1])),
        ("vmap_hessian", lambda m: m.vmap(m.func.hessian(lambda a: a.prod()))(x(m))),
        ("vmap_jacrev", lambda m: m.vmap(m.func.jacrev(lambda a: a.outer(a)))(x(m))),
        ("vmap_jacfwd", lambda m: m.vmap(m.func.jacfwd(lambda a: a.outer(a)))(x(m))),
        ("vmap_jvp", lambda m: m.vmap(lambda a, t: m.func.jvp(lambda b: b.sin(), (a,), (t,))[1])(x(m), x(m) + 1)),
        ("jacrev_of_vmap", lambda m: m.func.jacrev(m.vmap(lambda a: a.prod()))(x(m))),
        ("vmap_vjp", lambda m: m.vmap(lambda a, v: m.func.vjp(lambda b: b * b, a)[1](v)[0], (0, None))(x(m), x(m)[0])),
    ]


@pytest.mark.parametrize(("name", "program"), pairs(), ids=[name for name, _ in pairs()])
def test_against_torch(name: str, program: Callable[[Any], Any]) -> None:
    torch = pytest.importorskip("torch")
    from torch.utils._pytree import tree_leaves as torch_leaves

    from tensorpy.utils._pytree import tree_leaves

    got, expected = tree_leaves(program(tp)), torch_leaves(program(torch))
    assert len(got) == len(expected)
    for a, b in zip(got, expected, strict=True):
        assert not a.requires_grad
        assert_close(a, tp.from_numpy(b.detach().numpy()), rtol=1e-9, atol=1e-12)


# ---- what hangs on what ----


def test_outer_tensors_keep_their_graph() -> None:
    w = tp.tensor(2.0, requires_grad=True)
    inner = func.grad(lambda a: (w * a * a).sum())(tp.tensor([1.0, 2.0]))
    assert inner.requires_grad
    inner.sum().backward()
    assert w.grad is not None and float(w.grad) == 6
    assert not func.grad(lambda a: (a * a).sum())(tp.tensor([1.0])).requires_grad
    with tp.no_grad():
        assert not func.grad(lambda a: (w * a * a).sum())(tp.tensor([1.0])).requires_grad


def test_a_tensor_that_wants_a_gradient() -> None:
    x = tp.tensor([1.0, 2.0], requires_grad=True)
    g = func.grad(lambda a: (a**3).sum())(x)
    g.sum().backward()
    assert x.grad is not None
    assert_close(x.grad, 6 * x.detach())


def test_vjp_again() -> None:
    out, back = func.vjp(lambda a: a**2, X)
    assert_close(out, X**2)
    assert_close(back(tp.ones_like(X))[0], 2 * X)
    assert_close(back(X)[0], 2 * X * X)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: func.grad(lambda a: a)(X), "scalar Tensor"),
        (lambda: func.grad(lambda a: 3)(X), "to return a Tensor"),
        (lambda: func.grad(lambda a: a.sum(), argnums=1)(X), "positional inputs"),
        (lambda: func.grad(lambda a, b: a.sum(), argnums=(0, 0))(X, X), "must be unique"),
        (lambda: func.grad(lambda a: a.sum(), has_aux=True)(X), "aux"),
        (lambda: func.grad(lambda a: a.sum())(tp.ones(2, dtype=tp.int64)), "floating"),
        (lambda: func.vjp(lambda a: a), "nothing to differentiate"),
        (lambda: func.vjp(lambda a: a, X)[1]((X, X)), "structure"),
        (lambda: func.jvp(lambda a: a, (X,), (X, X)), "structure"),
        (lambda: func.jvp(lambda a: a, X, X), "to be a tuple"),
        (lambda: func.stack_module_state([]), "stack_module_state:.* Expected at least one model"),
        (lambda: func.stack_module_state([tp.nn.Linear(1, 1), tp.nn.ReLU()]), "same class"),
    ],
)
def test_mistakes(call: Callable[[], Any], says: str) -> None:
    with pytest.raises(RuntimeError, match=says):
        call()


def _said(call: Callable[[Any], Any], lib: Any) -> str:
    """The class of the error and its beginning, as PyTorch's tests match it."""
    try:
        call(lib)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "nothing"


def _hooked(m: Any, call: Callable[[], Any]) -> Any:
    with m.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        return call()


@pytest.mark.parametrize(
    "call",
    [
        lambda m: m.func.grad(lambda a: a)(3.0),
        lambda m: m.func.grad(lambda a: [a.sum(), a], has_aux=True)(m.ones(2)),
        lambda m: m.func.grad(lambda a: (a.sum(), [a, None]), has_aux=True)(m.ones(2)),
        lambda m: m.func.vjp(lambda a: (a, 1.0), m.ones(2), has_aux=True),
        lambda m: m.func.vjp(lambda a: [], m.ones(2)),
        lambda m: m.func.vjp(lambda a: None, m.ones(2)),
        lambda m: m.func.vjp(lambda a: [a, 1.0], m.ones(2)),
        lambda m: m.func.jvp(lambda a: None, (m.ones(2),), (m.ones(2),)),
        lambda m: m.func.jvp(lambda a: a, (), ()),
        lambda m: m.func.jvp(lambda a: a, (1.0,), (m.ones(2),)),
        lambda m: m.func.jvp(lambda a: a, (m.ones(2),), (m.ones(3),)),
        lambda m: m.func.jacrev(m.sin, argnums=())(m.ones(2)),
        lambda m: m.func.jacrev(m.sin, argnums=0.0)(m.ones(2)),
        lambda m: m.func.jacfwd(m.sin, argnums=(0, "1"))(m.ones(2)),
        lambda m: m.func.jacrev(lambda a: a.to(m.complex64))(m.ones(2)),
        lambda m: m.func.jacfwd(lambda a: a.real)(m.ones(2, dtype=m.complex64)),
        lambda m: m.func.jacfwd(lambda a: (a, 1.0), has_aux=True)(m.ones(2)),
        lambda m: m.func.grad(lambda a: a.clone().requires_grad_().sum())(m.ones(2)),
        lambda m: m.func.vmap(lambda a: a.requires_grad_(False))(m.ones(2)),
        lambda m: m.func.grad(lambda a: (a.sin().retain_grad(), a.sum())[1])(m.ones(2)),
        lambda m: _hooked(m, lambda: m.func.grad(lambda a: a.sin().sum())(m.ones(2))),
        lambda m: m.func.hessian(lambda a: _hooked(m, lambda: a.sin().sum()))(m.ones(2)),
        lambda m: _hooked(m, lambda: m.func.vmap(lambda a: a.sin())(m.ones(2))),
        lambda m: m.func.vmap(lambda a: m.randn(2))(m.ones(2)),
        lambda m: m.func.vmap(lambda a: a.item())(m.ones(2)),
    ],
)
def test_mistakes_begin_as_in_torch(call: Callable[[Any], Any]) -> None:
    torch = pytest.importorskip("torch")
    assert _said(call, tp).startswith(_said(call, torch)[:50])


def test_what_is_done_to_a_gradient_is_allowed_again_outside() -> None:
    with pytest.raises(RuntimeError):
        func.grad(lambda a: a.requires_grad_().sum())(X)
    assert X.clone().requires_grad_().requires_grad


def test_modules_of_functorch() -> None:
    from tensorpy.func import make_functional as older

    layers = [tp.nn.BatchNorm1d(3) for _ in range(2)]
    function, params, buffers = older.make_functional_with_buffers(layers[0])
    assert len(params) == 2 and len(buffers) == 3
    a = tp.randn(4, 3)
    assert_close(function(tuple(2 * p for p in params), buffers, a), 2 * tp.nn.BatchNorm1d(3)(a))
    tied = tp.nn.Sequential(tp.nn.Linear(2, 2), tp.nn.Linear(2, 2))
    tied[1].weight = tied[0].weight
    function, params = older.make_functional(tied, disable_autograd_tracking=True)
    assert len(params) == 3 and not params[0].requires_grad
    assert_close(function(tuple(tp.zeros_like(p) for p in params), tp.ones(1, 2)), tp.zeros(1, 2))
    with pytest.raises(RuntimeError, match="has buffers"):
        older.make_functional(layers[0])
    _, stacked, _ = older.combine_state_for_ensemble(layers)
    assert stacked[0].shape == (2, 3)
    params, function, names = older.functional_init(tp.nn.Linear, (5,))(2, 3)
    assert params[0].shape == (5, 3, 2) and names == ("weight", "bias")


# ---- modules ----


@pytest.mark.parametrize("kind", [Mlp, Cnn])
def test_gradients_of_each_sample(kind: type[Any]) -> None:
    """Of the demo's networks, as a loop has them."""
    tp.manual_seed(3)
    model = kind().eval()
    state = {name: p.detach() for name, p in model.named_parameters()}
    images, labels = tp.rand(6, 1, 8, 8), tp.randint(0, 10, (6,))

    def loss(p: dict[str, tp.Tensor], image: tp.Tensor, label: tp.Tensor) -> tp.Tensor:
        return F.cross_entropy(func.functional_call(model, p, (image[None],)), label[None])

    mapped = vmap(func.grad(loss), in_dims=(None, 0, 0))(state, images, labels)
    for i in range(6):
        for name, p in model.named_parameters():
            (expected,) = tp.autograd.grad(loss(dict(model.named_parameters()), images[i], labels[i]), p)
            assert_close(mapped[name][i], expected, rtol=1e-4, atol=1e-6)


LAYERS: list[tuple[Callable[[], Any], tuple[int, ...]]] = [
    (lambda: tp.nn.LayerNorm(6), (2, 6)),
    (lambda: tp.nn.GroupNorm(2, 4), (2, 4, 3)),
    (lambda: tp.nn.BatchNorm1d(4, track_running_stats=False), (5, 4)),
    (lambda: tp.nn.Conv1d(4, 6, 3, groups=2), (2, 4, 7)),
    (lambda: tp.nn.ConvTranspose2d(2, 3, 2, stride=2), (1, 2, 4, 4)),
    (lambda: tp.nn.Bilinear(3, 3, 2), (2, 3)),
    (lambda: tp.nn.PReLU(3), (2, 3)),
    (lambda: tp.nn.MultiheadAttention(4, 2, batch_first=True), (2, 3, 4)),
]


@pytest.mark.parametrize(("make", "shape"), LAYERS, ids=[str(i) for i in range(len(LAYERS))])
def test_layers(make: Callable[[], Any], shape: tuple[int, ...]) -> None:
    """Gradients of each sample by each parameter."""
    tp.manual_seed(1)
    layer = make()
    state = {name: p.detach() for name, p in layer.named_parameters()}
    inputs = tp.randn(3, *shape)

    def value(p: dict[str, tp.Tensor], x: tp.Tensor) -> tp.Tensor:
        given = (
            (x, x, x)
            if isinstance(layer, tp.nn.MultiheadAttention)
            else (x, x)
            if len(state) and hasattr(layer, "in2_features")
            else (x,)
        )
        out = func.functional_call(layer, p, given)
        return (out[0] if isinstance(out, tuple) else out).sin().sum()

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mapped = vmap(func.grad(value), in_dims=(None, 0))(state, inputs)
    for i in range(3):
        expected = func.grad(value)(state, inputs[i])
        for name in state:
            assert_close(mapped[name][i], expected[name], rtol=1e-4, atol=1e-5)


def test_an_embedding() -> None:
    table, places = tp.randn(5, 3), tp.tensor([[0, 1, 1], [4, 2, 0]])
    mapped = vmap(func.grad(lambda t, p: F.embedding(p, t, padding_idx=1).pow(2).sum()), (None, 0))(table, places)
    for i in range(2):
        expected = func.grad(lambda t, p=places[i]: F.embedding(p, t, padding_idx=1).pow(2).sum())(table)
        assert_close(mapped[i], expected)


def test_an_ensemble() -> None:
    models = [tp.nn.Linear(3, 2) for _ in range(4)]
    parameters, buffers = func.stack_module_state(models)
    assert parameters["weight"].requires_grad and parameters["weight"].is_leaf and buffers == {}
    x = tp.randn(5, 3)
    out = vmap(lambda p, b: func.functional_call(models[0], (p, b), (x,)))(parameters, buffers)
    assert_close(out, tp.stack([m(x) for m in models]))
    out.sum().backward()
    assert parameters["weight"].grad is not None


@pytest.mark.parametrize(
    ("pattern", "lengths"),
    [
        ("a b c -> c a b", {}),
        ("a (b c) ... -> (a ...) c b", {"b": 2}),
        ("a b c -> a 1 (b c)", {}),
        ("... a -> (...) a", {}),
        ("(a b) ... -> a b ...", {"a": 1}),
    ],
)
def test_axes_are_rearranged_by_name(pattern, lengths):
    torch = pytest.importorskip("torch")
    x = torch.arange(24).reshape(2, 4, 3)
    expected = torch.func.rearrange(x, pattern, **lengths)
    assert tp.func.rearrange(tp.tensor(x.tolist()), pattern, **lengths).tolist() == expected.tolist()
    stacked = tp.func.rearrange([tp.ones(2, 3)] * 4, "n a b -> a (n b)")
    assert stacked.shape == (2, 12)


@pytest.mark.parametrize(
    "pattern", ["a b", "a b -> a b", "a b c -> a b", "a b a -> a b", "(a b c -> a b c", "a (b d) c -> a b d c"]
)
def test_patterns_that_say_nothing_are_refused(pattern):
    with pytest.raises(ValueError, match="rearrange"):
        tp.func.rearrange(tp.ones(2, 4, 3), pattern)


def test_a_side_of_a_pattern_is_read_into_axes():
    from tensorpy.func import axes

    side = axes.ParsedExpression("a (... 12) 1")
    assert side.composition[0] == ["a"] and side.composition[2] == [] and len(side.identifiers) == 3
    assert side.has_ellipsis and side.has_ellipsis_parenthesized and side.has_non_unitary_anonymous_axes
    for refused in ("a a", "a ..", "((a))", "_a", "0"):
        with pytest.raises(ValueError, match=r"rearrange|size|ellipsis"):
            axes.ParsedExpression(refused)
    with pytest.warns(RuntimeWarning, match="keyword"):
        assert axes.ParsedExpression.check_axis_name("for")
    left, right = axes.parse_pattern("a b -> b a", {})
    with pytest.raises(TypeError, match="int"):
        axes.validate_rearrange_expressions(left, right, {"a": "2"})


def test_batches_are_shown_to_debuggers():
    seen = []

    def inner(x):
        seen.append((tp.func.debug_unwrap(x).shape, tp.func.debug_unwrap(x, recurse=False).shape))
        return x

    tp.func.vmap(tp.func.vmap(inner))(tp.ones(2, 3, 4))
    assert seen == [((2, 3, 4), (3, 4))] and tp.func.debug_unwrap(tp.ones(2)).shape == (2,)


def test_batch_normalization_without_running_statistics():
    net = tp.nn.Sequential(tp.nn.Linear(2, 3), tp.nn.BatchNorm1d(3))
    assert tp.func.replace_all_batch_norm_modules_(net) is net
    assert net[1].running_mean is None and not net[1].track_running_stats
    tp.func.vmap(net, randomness="error")(tp.ones(4, 5, 2))


def test_forward_mode_of_a_product_in_nested_maps() -> None:
    """The tangent of a weight that is mapped twice is no view where the weight, expanded, is one: the neural tangent
    kernel by products of vectors, jvp inside two maps over the samples and one over the outputs."""
    linear = tp.nn.functional.linear
    w1, w2 = tp.arange(12.0).view(4, 3) / 10 - 0.5, tp.arange(8.0).view(2, 4) / 7 - 0.4
    xs, ys = tp.arange(9.0).view(3, 3) / 5 - 1, tp.arange(15.0).view(5, 3) / 9 - 0.7

    def net(weights: tuple[tp.Tensor, tp.Tensor], x: tp.Tensor) -> tp.Tensor:
        return linear(linear(x[None], weights[0]).tanh(), weights[1])[0]

    def product(x: tp.Tensor, y: tp.Tensor) -> tp.Tensor:
        back = tp.func.vjp(lambda w: net(w, x), (w1, w2))[1]
        return tp.func.vmap(lambda v: tp.func.jvp(lambda w: net(w, y), ((w1, w2),), back(v))[1])(tp.eye(2))

    def jacobian(x: tp.Tensor) -> tp.Tensor:
        of = tp.func.jacrev(lambda w: net(w, x))((w1, w2))
        return tp.cat([j.flatten(1) for j in of], 1)

    kernel = tp.func.vmap(tp.func.vmap(product, (None, 0)), (0, None))(xs, ys)
    for i, x in enumerate(xs):
        for j, y in enumerate(ys):
            tp.testing.assert_close(kernel[i, j], jacobian(x) @ jacobian(y).t())


# ---- what the modes around and inside of a transform mean to it ----


def test_a_transform_differentiates_inside_of_inference_mode() -> None:
    x = tp.tensor([1.0, -2.0, 3.0])
    with tp.inference_mode():
        assert tp.func.jvp(lambda x: (x**2).sum(), (x,), (tp.ones(3),))[1].item() == 4
        assert tp.func.grad(lambda x: (x**2).sum())(x).tolist() == [2, -4, 6]
        assert tp.func.grad(tp.func.grad(lambda x: x**3))(tp.tensor(2.0)).item() == 12
        hessian = tp.func.jacrev(tp.func.grad(lambda x: (x**3).sum()))(x)
        assert tp.equal(hessian, tp.diag(6 * x)) and tp.is_inference_mode_enabled()

        def constant_inside(x: Any) -> Any:
            with tp.inference_mode():
                held = x**2
            return (x - held).sum()

        assert tp.func.grad(constant_inside)(x).tolist() == [1, 1, 1]
        assert not tp.is_grad_enabled()


def test_what_vjp_gives_under_no_grad_has_a_gradient_where_the_pull_is_called_with_one() -> None:
    x = tp.tensor(3.0, requires_grad=True)
    with tp.no_grad():
        value, pull = tp.func.vjp(lambda x: x**2, x)
    (pulled,) = pull(tp.tensor(1.0))
    assert not value.requires_grad and pulled.requires_grad
    assert tp.autograd.grad(pulled, x)[0].item() == 2


def test_a_linear_map_refuses_tangents_of_another_form() -> None:
    x = tp.ones(3, 1)
    _, push = tp.func.linearize(tp.sin, x)
    for tangents, what in (
        ((x, x), "to have the same argspec as the primals"),
        ((x[None],), "in flattened pytree doesn't match the shape"),
        ((x.double(),), "in flattened pytree doesn't match the dtype"),
        ((x.to("meta"),), "in flattened pytree doesn't match the device"),
    ):
        with pytest.raises(RuntimeError, match=what):
            push(*tangents)


@pytest.mark.parametrize("name", ["jacobian", "hessian", "vjp", "jvp", "hvp", "vhp"])
def test_autograd_functional_would_cut_a_transforms_gradient(name: str) -> None:
    def called(x: Any) -> Any:
        more = (x,) if name in ("jvp", "hvp", "vhp") else ()
        return getattr(tp.autograd.functional, name)(lambda x: x.sin().sum(), x, *more)

    for transform in (tp.func.grad, tp.vmap):
        with pytest.raises(RuntimeError, match=r"torch\.autograd\.functional"):
            transform(called)(tp.ones(3))


def test_modules_are_made_for_an_ensemble_with_and_without_buffers() -> None:
    from tensorpy._functorch.make_functional import functional_init, functional_init_with_buffers

    weights, function, names = functional_init(tp.nn.Linear, (4,))(2, 3)
    assert [w.shape[0] for w in weights] == [4, 4] and names == ("weight", "bias")
    assert tp.vmap(function)(weights, (tp.ones(4, 5, 2),)).shape == (4, 5, 3)
    weights, buffers, function, _, stored = functional_init_with_buffers(tp.nn.BatchNorm1d, (4,))(2, momentum=None)
    assert stored[:2] == ("running_mean", "running_var") and buffers[0].shape == (4, 2)
    params, state = [w[0] for w in weights], [b[0] for b in buffers]
    assert function(params, state, (tp.ones(5, 2),)).shape == (5, 2)


# ---- the names under which PyTorch's own tests look at transforms ----


def test_transforms_and_their_tensors_are_told_by_places() -> None:
    from tensorpy._functorch import interpreter

    x = tp.arange(24.0).reshape(2, 3, 4)
    seen: list[Any] = []

    def look(t: Any) -> Any:
        seen.append((interpreter.maybe_get_level(t), interpreter.current_level(), tuple(t.shape)))
        return t.sum()

    assert interpreter.maybe_current_level() is None and interpreter.maybe_get_level(x) == -1
    vmap(lambda t: vmap(look)(t))(x)
    func.grad(lambda t: vmap(look)(t).sum())(x)
    assert seen == [(2, 2, (4,)), (2, 2, (3, 4))]
    level = interpreter._vmap_increment_nesting(2, "error")
    held = interpreter._add_batch_dim(x, 0, level)
    assert held.shape == (3, 4) and interpreter.maybe_get_bdim(held) == 0 and interpreter.is_batchedtensor(held)
    assert tp.equal(interpreter._remove_batch_dim(held + 1, level, 2, 1), (x + 1).movedim(0, 1))
    assert interpreter.get_unwrapped(held).shape == (2, 3, 4) and not interpreter.is_gradtrackingtensor(held)
    assert interpreter._vmap_decrement_nesting() == level and interpreter.get_dynamic_layer_stack_depth() == 0
    for wrong in (interpreter._vmap_decrement_nesting, interpreter.current_level, lambda: interpreter.get_unwrapped(x)):
        with pytest.raises(RuntimeError):
            wrong()
    with pytest.raises(RuntimeError, match="no vmap"):
        interpreter._add_batch_dim(x, 0, 1)


def test_dimensions_go_into_others_and_come_out() -> None:
    from tensorpy._functorch.interpreter import reshape_dim_into, reshape_dim_outof

    x = tp.arange(24).reshape(2, 3, 4)
    joined = reshape_dim_into(0, -1, x)
    assert joined.shape == (3, 8) and joined[1].tolist() == [*range(4, 8), *range(16, 20)]
    assert tp.equal(reshape_dim_outof(-1, 2, joined), x.movedim(0, 1))
    for wrong in (lambda: reshape_dim_into(3, 0, x), lambda: reshape_dim_into(0, 2, x)):
        with pytest.raises(IndexError):
            wrong()
    for size in (3, 0, -1):
        with pytest.raises(RuntimeError, match="equal parts"):
            reshape_dim_outof(0, size, x)


def test_a_vmap_without_an_end_tells_where_batches_are() -> None:
    from tensorpy._functorch.vmap import restore_vmap

    x = tp.arange(6.0).reshape(2, 3)
    (both, alone), dims = restore_vmap(lambda a, b: (a["x"] + b, b), ({"x": 1}, None), 3, "error")({"x": x}, tp.ones(2))
    assert dims == (0, None) and tp.equal(both, x.T + 1) and alone.tolist() == [1, 1]
    with pytest.raises(ValueError, match="does not fit"):
        restore_vmap(tp.sin, (0, 0), 2, "error")(x)


def test_layers_that_the_caller_leaves_out_are_there_for_what_is_differentiated() -> None:
    from tensorpy._as_torch.private import _AutoDispatchBelowAutograd as Below

    def cubes(x: Any) -> Any:
        return (x**3).sum()

    def below(x: Any) -> Any:
        with Below():
            y = x**3
        return y.sum()

    x = tp.tensor([1.0, 2.0])
    with Below():
        assert func.grad(cubes)(x).tolist() == [3, 12]
        assert func.vjp(cubes, x)[1](tp.tensor(1.0))[0].tolist() == [3, 12]
        assert func.jacrev(lambda x: x**3)(x).tolist() == [[3, 0], [0, 12]]
        assert func.jacfwd(lambda x: x**3)(x).tolist() == [[3, 0], [0, 12]]
        assert func.hessian(cubes)(x).tolist() == [[6, 0], [0, 12]]
        assert vmap(func.grad(lambda x: x**3))(x).tolist() == [3, 12]
        assert func.jvp(cubes, (x,), (tp.ones(2),))[1].item() == 15
        assert not (tp.ones(2, requires_grad=True) * 2).requires_grad
    assert func.grad(below)(x).tolist() == [3, 12]


def test_a_function_sees_what_is_differentiated_by() -> None:
    """requires_grad within a vmap speaks of the transforms inside of it, as in PyTorch."""

    def seen(transform: Any, *given: Any) -> list[Any]:
        found: list[Any] = []

        def f(x: Any, y: Any) -> Any:
            found.append((x.requires_grad, y.requires_grad, (x * 2).requires_grad, (y * 2).requires_grad))
            return (x * y).sum()

        transform(f)(*given)
        return found

    three, two, wanting = tp.ones(3, 2), tp.ones(2), tp.ones(3, 2, requires_grad=True)
    x, y, both, none = (True, False) * 2, (False, True) * 2, (True,) * 4, (False,) * 4
    grad, vmap = tp.func.grad, tp.vmap
    for transform, given, expected in (
        (lambda f: vmap(grad(f)), (three, three), x),
        (lambda f: vmap(grad(f, argnums=1)), (three, three), y),
        (lambda f: vmap(grad(f, argnums=(0, 1))), (three, three), both),
        (lambda f: vmap(grad(f), in_dims=(0, None)), (three, two), x),
        (lambda f: vmap(lambda a, b: tp.func.vjp(f, a, b)[0]), (three, three), both),
        (lambda f: vmap(vmap(grad(f))), (tp.ones(2, 3, 2), tp.ones(2, 3, 2)), x),
        (lambda f: vmap(f), (wanting, wanting), none),
        (lambda f: vmap(grad(f)), (wanting, three), x),
        (lambda f: grad(lambda a, b: vmap(f)(a, b).sum()), (three, three), none),
        (lambda f: vmap(grad(lambda a, b: vmap(f)(a, b).sum())), (tp.ones(2, 3, 2), tp.ones(2, 3, 2)), none),
    ):
        assert seen(transform, *given) == [expected]


# ---- random numbers ----


def test_columns_of_a_jacobian_draw_as_a_batch_does() -> None:
    def scaled(x: tp.Tensor) -> tp.Tensor:
        return x * tp.rand(3)

    def sums(x: tp.Tensor) -> tp.Tensor:
        return x.sum() * tp.rand(50)

    x = tp.arange(1.0, 4)
    for draws in (scaled, lambda x: x * tp.rand_like(x), lambda x: F.dropout(x, 0.5)):
        for jacobian in (func.jacfwd(draws), func.hessian(lambda x, d=draws: d(x).sum())):
            with pytest.raises(RuntimeError, match="randomness error mode"):
                jacobian(x)
        assert func.jacrev(draws)(x).shape == (3, 3)
    assert func.jvp(scaled, (x,), (x,))[0].shape == (3,)
    columns = {mode: func.jacfwd(sums, randomness=mode)(x).unbind(1) for mode in ("same", "different")}
    assert columns["same"][0].equal(columns["same"][1]) and not columns["different"][0].equal(columns["different"][1])
    jacobian, aux = func.jacfwd(lambda x: (scaled(x), {"a": sums(x)}), has_aux=True, randomness="different")(x)
    assert jacobian.shape == (3, 3) and aux["a"].shape == (50,) and not aux["a"].requires_grad


def test_a_hessian_of_a_function_that_draws_nothing_is_of_no_batch() -> None:
    x = tp.arange(1.0, 4)
    second = func.hessian(lambda x, y: (x**3 * y).sum(), (0, 1))(x, x)
    assert_close(second[0][1], tp.diag(3 * x**2))
    assert vmap(func.hessian(lambda x: (x**3).sum()))(x[None]).tolist() == [tp.diag(6 * x).tolist()]


# ---- functions that write ----


def written(x: tp.Tensor) -> tp.Tensor:
    made = tp.zeros(2, 2)
    made[0] = x * 2
    made[1, 0] = x[1] ** 2 * x[0]
    return made


@pytest.mark.parametrize("randomness", ["error", "same"])
def test_a_jacobian_of_a_function_that_fills_a_tensor_of_its_own(randomness: str) -> None:
    """The function runs once, so what it writes to is of no batch, whatever the number of columns."""
    x = tp.tensor([1.0, 2.0])
    jacobian = func.jacfwd(written, randomness=randomness)(x)
    assert jacobian.equal(func.jacrev(written)(x)) and jacobian[1, 0].tolist() == [4, 4]
    assert func.hessian(lambda x: written(x).sum())(x).tolist() == [[0, 4], [4, 2]]
    assert func.jacrev(func.jacfwd(written))(x)[1, 0].tolist() == [[0, 4], [4, 2]]


def test_a_jacobian_of_a_function_that_takes_gradients() -> None:
    x = tp.tensor([1.0, 2.0])

    def slope(x: tp.Tensor) -> tp.Tensor:
        return func.grad(lambda y: (y**3).sum())(x)

    jacobian, aux = func.jacfwd(lambda x: (slope(x), {"a": slope(x)}), has_aux=True)(x)
    assert jacobian.equal(tp.diag(6 * x)) and aux["a"].equal(3 * x**2)
    assert func.hessian(lambda x: slope(x).sum())(x).equal(6 * tp.eye(2))


# ---- outputs that are no floats ----


def test_integers_have_no_gradient_and_tangents_of_zeros() -> None:
    x = tp.ones(2)
    for call in (lambda: func.vjp(tp.Tensor.int, x), lambda: func.jacrev(lambda x: (x, x > 0))(x)):
        with pytest.raises(RuntimeError, match="All outputs of f must be floating-point or complex"):
            call()
    with pytest.raises(RuntimeError, match="only for real scalar outputs but got"):
        func.grad(lambda x: (x * 1j).sum())(x)
    assert func.grad(lambda x: x.int().sum())(x).tolist() == [0, 0]
    assert func.jvp(tp.Tensor.int, (x,), (x,))[1].dtype == tp.int32
    double, whole = func.jacfwd(lambda x: (x * 2, x.int()))(x)
    assert double.equal(2 * tp.eye(2)) and whole.equal(tp.zeros(2, 2, dtype=tp.int32))


@pytest.mark.parametrize("primal, tangent", [(tp.int64, tp.int64), (tp.int64, tp.float32), (tp.float32, tp.int64)])
def test_jvp_moves_floats_only(primal, tangent):
    """As make_dual: an integer has no direction."""
    with pytest.raises(ValueError, match="to be floating point or complex"):
        tp.func.jvp(tp.sin, (tp.ones(2, dtype=primal),), (tp.ones(2, dtype=tangent),))
