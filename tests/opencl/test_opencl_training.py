"""OpenCL: what trains a model runs on the device.

Every module of the table takes its way there and back, and a step with every optimizer, without one call on the host
(`tensorpy.opencl.fallback` is "error"), and with the CPU's numbers.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from devices import dtypes_of
from nn_cases import CASES, Case, Made
from opencl_programs import needs_device, output_of

import tensorpy as tp
from tensorpy import nn, optim

pytestmark = needs_device
F = nn.functional


def dtypes(*names: str) -> list[str]:
    """Those that the device has."""
    return [name for name in names if name in dtypes_of("opencl")]


@pytest.fixture(autouse=True)
def no_host() -> Iterator[None]:
    """Not one operator may fall back."""
    before = tp.opencl.fallback
    tp.opencl.fallback = "error"
    yield
    tp.opencl.fallback = before


def on(device: str, value: Any) -> Any:
    """Arrays as float32 or integers, each a leaf of its own; what is made for a library."""
    if isinstance(value, (list, tuple)):
        return type(value)(on(device, v) for v in value)
    if isinstance(value, Made):
        return value.of(nn)
    if isinstance(value, np.generic | np.ndarray):
        value = tp.from_numpy(np.array(value))
        value = value.float() if value.is_floating_point() else value
    return value.detach().clone().to(device) if isinstance(value, tp.Tensor) else value


def flat(value: Any) -> list[tp.Tensor]:
    if isinstance(value, (list, tuple)):
        return [t for part in value for t in flat(part)]
    return [value] if isinstance(value, tp.Tensor) else []


def assert_equal(got: Any, expected: Any, tolerance: float = 1e-4) -> None:
    got, expected = flat(got), flat(expected)
    assert len(got) == len(expected)
    for g, e in zip(got, expected, strict=True):
        assert g.device.type == "opencl"
        tp.testing.assert_close(g.detach().cpu(), e.detach(), rtol=tolerance, atol=tolerance, equal_nan=True)


# ---- modules ----


def made(case: Case) -> tuple[Any, Any]:
    """A module on the CPU, and on the device the same with its state."""
    tp.manual_seed(3)
    modules = []
    for device in ("cpu", "opencl"):
        options = {k: on(device, v) for k, v in case.options.items()}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            modules.append(getattr(nn, case.name)(*on(device, list(case.args)), **options).to(device))
    if not case.name.startswith("Lazy"):
        modules[1].load_state_dict(modules[0].state_dict())
    return modules[0], modules[1]


def trained(module: Any, case: Case, arrays: list[Any], device: str) -> tuple[list[tp.Tensor], list[tp.Tensor]]:
    """What comes out, and the gradients of what went in and of the parameters."""
    inputs = on(device, arrays)
    for t in inputs:
        if t.is_floating_point():
            t.requires_grad_()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if case.name.startswith("Lazy"):
            tp.manual_seed(4)
            module(*inputs)
            on_host = {k: tp.arange(float(v.numel())).reshape(v.shape).sin() for k, v in module.named_parameters()}
            module.load_state_dict(on_host, strict=False)
        tp.manual_seed(5)
        out = flat(module(*inputs, **{k: on(device, v) for k, v in case.call.items()}))
    total = sum((o * tp.arange(float(o.numel())).cos().reshape(o.shape).to(device)).sum() for o in out if o.grad_fn)
    if isinstance(total, tp.Tensor):
        total.backward()
    return out, [t.grad for t in (*inputs, *module.parameters()) if t.grad is not None]


OPTIMIZERS: list[tuple[str, dict[str, Any]]] = [
    ("Adadelta", {}),
    ("Adafactor", {}),
    ("Adagrad", {}),
    ("Adam", {}),
    ("Adam", {"fused": False, "foreach": False}),
    ("AdamW", {"amsgrad": True}),
    ("Adamax", {}),
    ("ASGD", {}),
    ("NAdam", {}),
    ("RAdam", {}),
    ("RMSprop", {"momentum": 0.5}),
    ("Rprop", {}),
    ("SGD", {"momentum": 0.9, "nesterov": True}),
    ("SGD", {}),
]


def stepped(module: Any, name: str, options: dict[str, Any]) -> list[tp.Tensor]:
    """The parameters after two steps with the gradients that they have; they themselves stay."""
    parameters = []
    for p in module.parameters():
        if p.grad is not None and p.numel():
            parameters.append(nn.Parameter(p.detach().clone()))
            parameters[-1].grad = p.grad.detach().clone()
    if parameters:
        optimizer = getattr(optim, name)(parameters, lr=0.01, **options)
        optimizer.step()
        optimizer.step()
    return parameters


@pytest.mark.parametrize("case", CASES, ids=str)
def test_module(case: Case) -> None:
    rng = np.random.default_rng(7)
    arrays = [make(rng) for make in case.inputs]
    ours, theirs = made(case)
    expected, slopes = trained(ours, case, arrays, "cpu")
    got, made_slopes = trained(theirs, case, arrays, "opencl")
    assert_equal(got, expected)
    assert_equal(made_slopes, slopes)
    for p, q in zip(ours.parameters(), theirs.parameters(), strict=True):
        p.grad = None if p.grad is None else q.grad.cpu()  # a step may divide by what is next to nothing
    for name, options in OPTIMIZERS:
        assert_equal(stepped(theirs, name, options), stepped(ours, name, options))


# ---- optimizers ----


def test_all_optimizers_are_listed() -> None:
    """LBFGS, Muon and SparseAdam are tested below: they take closures, matrices and sparse gradients."""
    there = {n for n, c in vars(optim).items() if isinstance(c, type) and issubclass(c, optim.Optimizer)}
    assert there - {"Optimizer"} == {name for name, _ in OPTIMIZERS} | {"LBFGS", "Muon", "SparseAdam"}


def on_both(function: Callable[[str], Any], tolerance: float = 1e-4) -> None:
    assert_equal(function("opencl"), function("cpu"), tolerance)


def wave(*shape: int, device: str = "cpu", by: float = 1.0) -> tp.Tensor:
    """Numbers that are the same everywhere."""
    return (tp.arange(float(np.prod(shape))) * by).sin().reshape(shape).to(device)


def test_lbfgs() -> None:
    def run(device: str) -> Any:
        p = nn.Parameter(wave(5, device=device))
        optimizer = optim.LBFGS([p], line_search_fn="strong_wolfe")

        def closure() -> Any:
            optimizer.zero_grad()
            loss = ((p - 1) ** 4).sum()
            loss.backward()
            return loss

        optimizer.step(closure)
        return p

    on_both(run)


@pytest.mark.parametrize("name", ["Muon", "SparseAdam"])
def test_other_optimizers(name: str) -> None:
    def run(device: str) -> Any:
        table = nn.Embedding(7, 4, sparse=name == "SparseAdam")
        table.weight.data.copy_(wave(7, 4))
        table.to(device)
        optimizer = getattr(optim, name)(table.parameters(), lr=0.1)
        (table(tp.tensor([1, 5, 1], device=device)) * wave(3, 4, device=device)).sum().backward()
        optimizer.step()
        return table.weight

    on_both(run, 1e-2 if name == "Muon" else 1e-4)  # Muon orthogonalises in bfloat16


STEPS: list[tuple[str, int, dict[str, Any]]] = [
    ("_fused_sgd_", 0, {}),
    ("_fused_sgd_", 0, {"weight_decay": 0.1, "maximize": True}),
    ("_fused_sgd_", 1, {"momentum": 0.9, "dampening": 0.25}),
    ("_fused_sgd_", 1, {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    ("_fused_sgd_", 1, {"momentum": 0.9, "is_first_step": True}),
    ("_fused_adam_", 2, {"weight_decay": 0.1}),
    ("_fused_adam_", 3, {"amsgrad": True, "maximize": True}),
    ("_fused_adamw_", 2, {"weight_decay": 0.1}),
    ("_fused_adagrad_", 1, {"weight_decay": 0.1, "lr_decay": 0.2}),
]
SETTINGS = {
    "sgd": {"momentum": 0.0, "dampening": 0.0, "nesterov": False, "is_first_step": False},
    "adam": {"beta1": 0.9, "beta2": 0.999, "eps": 1e-3, "amsgrad": False},
    "adagrad": {"lr_decay": 0.0, "eps": 1e-3},
}


@pytest.mark.parametrize("dtype", dtypes("float32", "float64", "float16", "bfloat16"))
@pytest.mark.parametrize(("name", "states", "options"), STEPS, ids=str)
def test_fused_step(name: str, states: int, options: dict[str, Any], dtype: str) -> None:
    """Counts, scales and what was found on either device; parameters strided, without elements, of several blocks."""
    kind = next(k for k in SETTINGS if k in name)
    settings = {"lr": 0.1, "weight_decay": 0.0, "maximize": False, **SETTINGS[kind], **options}

    def run(device: str, numbers_on: str, **more: float) -> Any:
        lists = []
        for k in range(2 + states):
            raw = [wave(*size, by=k + 3.0) for size in ((3, 4), (), (0,), (5000,), (7, 60))]
            kept = [(t.abs() if k > 1 else t).to(dtype=getattr(tp, dtype), device=device) for t in raw]
            lists.append([*kept[:-1], kept[-1][:, ::2]])
        given = lists if states or kind != "sgd" else [*lists, []]
        given = [*given, []] if kind == "adam" and states == 2 else given
        if kind != "sgd":
            given = [*given, [tp.tensor(float(i + 1), device=numbers_on) for i in range(5)]]
        tensors = {k: tp.tensor(v, device=numbers_on) for k, v in more.items()}
        getattr(tp, name)(*given, **settings, **tensors)
        return lists

    tolerance = {"float64": 1e-10, "float16": 2e-3, "bfloat16": 2e-2}.get(dtype, 1e-5)
    for more in ({}, {"grad_scale": 4.0, "found_inf": 0.0}, {"grad_scale": 4.0, "found_inf": 1.0}):
        for numbers_on in ("cpu", "opencl"):
            assert_equal(run("opencl", numbers_on, **more), run("cpu", "cpu", **more), tolerance)


def test_scaled_training() -> None:
    """A GradScaler leaves its numbers on the device."""

    def run(device: str) -> Any:
        model = nn.Linear(4, 3)
        for p in model.parameters():
            p.data.copy_(wave(*p.shape))
        model.to(device)
        optimizer, scaler = optim.AdamW(model.parameters(), lr=0.1, fused=True), tp.amp.GradScaler(device)
        for factor in (1.0, float("inf"), 2.0):
            optimizer.zero_grad()
            scaler.scale((model(wave(5, 4, device=device)) * factor).square().sum()).backward()
            scaler.step(optimizer)
            scaler.update()
        return list(model.parameters())

    on_both(run)


@pytest.mark.parametrize("name", ["opencl", "cuda"])
def test_fused_by_default(name: str) -> None:
    """Whatever a program calls the device (tensorpy.run --device opencl)."""
    program = f"""
        import tensorpy as tp
        tp._C._opencl.call({name!r})
        p = tp.nn.Parameter(tp.ones(3, device={name!r}))
        p.grad = tp.ones_like(p)
        o = tp.optim.Adam([p])
        print(p.device.type, o._is_fused(o.param_groups[0], [p], [p.grad]))
    """
    assert output_of(program) == f"{name} True"


# ---- bags ----


def gradients(function: Callable[..., tp.Tensor], *leaves: tp.Tensor) -> list[tp.Tensor]:
    """What a function gives, and the gradients of its arguments."""
    leaves = tuple(t.detach().clone().requires_grad_() for t in leaves)
    out = function(*leaves)
    (out * wave(*out.shape, device=str(out.device)).to(out.dtype)).sum().backward()
    return [out, *(t.grad for t in leaves)]


@pytest.mark.parametrize("dtype", dtypes("float32", "float64", "float16"))
@pytest.mark.parametrize(
    ("mode", "options"),
    [
        *((mode, options) for mode in ("sum", "mean", "max") for options in ({}, {"padding_idx": 2})),
        *((mode, {"scale_grad_by_freq": True}) for mode in ("sum", "mean")),
    ],
    ids=str,
)
def test_embedding_bag(mode: str, options: dict[str, Any], dtype: str) -> None:
    """Bags without a place, places that are named often, rows as long as several vectors."""

    def run(device: str) -> Any:
        places = (wave(300).abs() * 7).long().to(device)
        offsets = tp.tensor([0, 3, 3, 40, 299], device=device)
        table = wave(9, 37, by=2.0).to(dtype=getattr(tp, dtype), device=device)
        return gradients(lambda t: F.embedding_bag(places, t, offsets, mode=mode, **options), table)

    on_both(run, 2e-3 if dtype == "float16" else 1e-5)


def test_embedding_bag_with_weights() -> None:
    def run(device: str) -> Any:
        places, offsets = tp.tensor([1, 4, 4, 0, 2, 4, 4], device=device), tp.tensor([0, 3, 5, 7], device=device)

        def bags(table: tp.Tensor, each: tp.Tensor) -> tp.Tensor:
            return F.embedding_bag(
                places, table, offsets, mode="sum", per_sample_weights=each, include_last_offset=True, padding_idx=2
            )

        return gradients(bags, wave(5, 6, device=device), wave(7, device=device))

    on_both(run)


@pytest.mark.parametrize(
    ("indices", "offsets", "says"),
    [([0, 4], [0], "index 4"), ([0, -2], [0], "index -2"), ([0, 1], [1], "offsets"), ([0, 1], [0, 3], "offsets")],
)
def test_faults_of_bags(indices: list[int], offsets: list[int], says: str) -> None:
    """They are noted, and raised where the host looks."""
    out = F.embedding_bag(
        tp.tensor(indices, device="opencl"), wave(4, 2, device="opencl"), tp.tensor(offsets).to("opencl")
    )
    with pytest.raises(RuntimeError, match=f"embedding_bag: .*{says}"):
        out.tolist()
    backward = tp.ops.aten._embedding_bag_dense_backward
    one = tp.tensor([1, 1], device="opencl")
    for places, bag, rows, mode in (([1, 4], [0, 1], 0, 0), ([1, 1], [0, 7], 0, 0), ([1, 1], [0, 1], 9, 2)):
        at = tp.full((2, 3), rows, device="opencl")
        given = [on("opencl", np.array(x)) for x in (places, bag)]
        with pytest.raises(RuntimeError, match="embedding_bag"):
            backward(tp.ones(2, 3, device="opencl"), *given, one, at, 4, False, mode, None).tolist()


# ---- grids ----


@pytest.mark.parametrize(
    ("mode", "dims"), [("bilinear", 2), ("nearest", 2), ("bicubic", 2), ("bilinear", 3), ("nearest", 3)]
)
@pytest.mark.parametrize("border", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("corners", [False, True])
def test_grid_sample(mode: str, border: str, corners: bool, dims: int) -> None:
    """Places inside, outside and far away, and such as are no numbers; one element takes many."""

    def run(device: str) -> Any:
        grid = wave(2, *(5, 6, 3)[:dims], dims, by=1.7) * 1.6
        far, no_number = (33.0, 0.5) if border == "reflection" else (1e9, float("nan"))  # from there all is chance
        grid.view(-1)[:6] = tp.tensor([1.0, -1.0, 40.0, -far, no_number, 0.0])
        image = wave(2, 3, *(4, 7, 2)[:dims], device=device)

        def sample(x: tp.Tensor, at: tp.Tensor) -> tp.Tensor:
            return F.grid_sample(x, at, mode, border, corners)

        return gradients(sample, image, grid.to(device))

    on_both(run)


@pytest.mark.parametrize("dtype", dtypes("float32", "float64"))
def test_spatial_transformer(dtype: str) -> None:
    """An affine grid, and an image that needs no gradient."""

    def run(device: str) -> Any:
        image, theta = (wave(*s).to(dtype=getattr(tp, dtype), device=device) for s in ((3, 2, 9, 8), (3, 2, 3)))
        return gradients(lambda t: F.grid_sample(image, F.affine_grid(t, [3, 2, 5, 4], False)), theta)

    on_both(run)


# ---- connectionist temporal classification ----


@pytest.mark.parametrize("dtype", dtypes("float32", "float64"))
@pytest.mark.parametrize("zero_infinity", [False, True])
def test_ctc_loss(dtype: str, zero_infinity: bool) -> None:
    """Targets that repeat labels, that are empty, that do not fit, and a sample without a time."""
    targets = tp.tensor([[1, 2, 2, 4, 1, 4, 1], [3, 1, 1, 1, 0, 0, 0], [2] * 7, [1] * 7, [3] * 7])

    def run(device: str) -> Any:
        def losses(x: tp.Tensor) -> tp.Tensor:
            lengths = ([20, 12, 5, 9, 0], [7, 4, 7, 0, 0])
            return F.ctc_loss(x.log_softmax(2), targets.to(device), *lengths, 0, "none", zero_infinity)

        return gradients(losses, wave(20, 5, 5, by=3.0).to(dtype=getattr(tp, dtype), device=device))

    on_both(run, 1e-4 if dtype == "float32" else 1e-9)


def test_ctc_loss_without_steps() -> None:
    for device in ("cpu", "opencl"):
        scores, none = tp.zeros(0, 2, 3, device=device), tp.zeros(2, 0, dtype=tp.int64, device=device)
        with pytest.raises(RuntimeError, match="log_probs tensor must not be empty"):
            F.ctc_loss(scores, none, [0, 0], [0, 0], reduction="none")


def test_fault_of_a_label() -> None:
    targets = tp.tensor([[1, 7]], device="opencl")
    loss = F.ctc_loss(wave(5, 1, 4, device="opencl"), targets, [5], [2])
    with pytest.raises(RuntimeError, match="ctc_loss: index 7"):
        loss.item()


# ---- draws ----


DRAWS: list[tuple[str, Callable[[tp.Tensor], tp.Tensor]]] = [
    ("poisson", lambda x: tp.poisson(x.exp())),
    ("binomial", lambda x: tp.binomial((x.abs() * 10).floor(), x.cos().abs())),
    ("gamma", lambda x: tp._standard_gamma(x.exp())),
    ("dirichlet", lambda x: tp._sample_dirichlet(x.exp().reshape(-1, 4))),
]


@pytest.mark.parametrize("dtype", dtypes("float32", "float64", "bfloat16"))
@pytest.mark.parametrize(("name", "draw"), DRAWS, ids=[name for name, _ in DRAWS])
def test_draws(name: str, draw: Callable[[tp.Tensor], tp.Tensor], dtype: str) -> None:
    """The CPU's numbers, from parameters small and large; a device without double draws in float."""

    def run(device: str) -> Any:
        tp.manual_seed(11)
        return draw((wave(4000) * 6).to(dtype=getattr(tp, dtype), device=device))

    on_both(run, {"float32": 2e-5, "float64": 1e-12}.get(dtype, 1e-2))


def test_draws_move() -> None:
    """The gradients of gamma, Dirichlet and beta draws by their parameters."""

    def run(device: str) -> Any:
        tp.manual_seed(12)
        alpha, beta = (wave(60, device=device, by=by).exp().requires_grad_() for by in (1.0, 2.0))
        gamma = tp.distributions.Gamma(alpha, beta).rsample()
        dirichlet = tp.distributions.Dirichlet(alpha.reshape(-1, 3)).rsample()
        (gamma.sum() + (dirichlet * wave(20, 3, device=device)).sum()).backward()
        (tp.distributions.Beta(alpha, beta).rsample() * beta.detach()).sum().backward()
        return [gamma, dirichlet, alpha.grad, beta.grad]

    on_both(run)


def test_fault_of_a_rate() -> None:
    drawn = tp.poisson(tp.tensor([1.0, -1.0], device="opencl"))
    with pytest.raises(RuntimeError, match="expected rate to be non-negative"):
        drawn.tolist()


# ---- attention ----


ATTENTION: list[dict[str, Any]] = [
    {},
    {"is_causal": True},
    {"scale": 0.3, "dropout_p": 0.25},
    {"enable_gqa": True},
    {"attn_mask": lambda device: wave(140, 150, device=device)},
    {"attn_mask": lambda device: wave(2, 1, 140, 150, device=device) > 0},
]


@pytest.mark.parametrize("options", ATTENTION, ids="plain causal dropout groups mask batches".split())
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_attention(options: dict[str, Any], dtype: str) -> None:
    """Of so many scores that the CPU has a kernel of its own for them."""

    def run(device: str) -> Any:
        tp.manual_seed(13)
        heads = 2 if "enable_gqa" in options else 4
        sizes = ((2, 4, 140, 24), (2, heads, 150, 24), (2, heads, 150, 16))
        given = [wave(*s, by=k + 1.3).to(dtype=getattr(tp, dtype), device=device) for k, s in enumerate(sizes)]
        kept = {k: v(device) if callable(v) else v for k, v in options.items()}
        return gradients(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, **kept), *given)

    on_both(run, 5e-2 if dtype == "bfloat16" else 1e-4)


def test_transformer_step() -> None:
    """A whole model with masks and dropout: its losses over some steps."""

    def run(device: str) -> Any:
        tp.manual_seed(14)
        layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.1, batch_first=True)
        model = nn.Sequential(nn.Embedding(50, 32), nn.TransformerEncoder(layer, 2), nn.Linear(32, 50)).to(device)
        optimizer = optim.AdamW(model.parameters(), lr=1e-2)
        words, losses = (wave(4, 130).abs() * 50).long().to(device), []
        for _ in range(3):
            optimizer.zero_grad()
            losses.append(F.cross_entropy(model(words).flatten(0, 1), words.roll(-1, 1).flatten()))
            losses[-1].backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        return losses

    on_both(run, 2e-3)
