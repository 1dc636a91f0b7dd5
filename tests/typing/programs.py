"""Typical programs, which pass mypy and pyright in their strict modes, with no mark: tests/package/test_editors.py."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path

import tensorpy as tp
import tensorpy.nn.functional as F
from tensorpy import Tensor, nn
from tensorpy.utils.data import DataLoader, Dataset, TensorDataset, random_split


class Squares(Dataset[tuple[Tensor, Tensor]]):
    """Numbers and their squares."""

    def __init__(self, count: int) -> None:
        self.x = tp.linspace(-1, 1, count).unsqueeze(1)

    def __len__(self) -> int:
        return self.x.shape[0]

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return self.x[index], self.x[index] ** 2


class Network(nn.Module):
    """Layers by attribute, by list and by name; a buffer; a parameter."""

    scale: Tensor

    def __init__(self, width: int = 16, dropout: float = 0.1) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(1 if i == 0 else width, width) for i in range(3))
        self.norm = nn.LayerNorm(width)
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Sequential(nn.GELU(), nn.Linear(width, 1))
        self.bias = nn.Parameter(tp.zeros(1))
        self.register_buffer("scale", tp.ones(1))
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.kaiming_uniform_(parameter, a=math.sqrt(5))

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = F.relu(layer(x))
        y: Tensor = self.head(self.dropout(self.norm(x)))
        return y * self.scale + self.bias


def train(device: tp.device | str = "cpu", epochs: int = 2) -> list[float]:
    tp.manual_seed(0)
    data = Squares(64)
    training, held_out = random_split(data, [48, 16], generator=tp.Generator().manual_seed(1))
    model = Network().to(device)
    optimizer = tp.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=1e-2)
    schedule = tp.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs)
    loss_of = nn.MSELoss()
    losses: list[float] = []
    for _ in range(epochs):
        model.train()
        total = 0.0
        for x, y in DataLoader(training, batch_size=16, shuffle=True):
            optimizer.zero_grad()
            loss = loss_of(model(x.to(device)), y.to(device))
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            total += loss.item()
        schedule.step()
        losses.append(total)
    model.eval()
    with tp.no_grad():
        for x, y in DataLoader(held_out, batch_size=16):
            losses.append(float(loss_of(model(x), y)))
    return losses


def files(model: nn.Module, optimizer: tp.optim.Optimizer, path: Path) -> None:
    tp.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, path)
    kept = tp.load(path, map_location="cpu")
    model.load_state_dict(kept["model"])
    optimizer.load_state_dict(kept["optimizer"])


def classes(logits: Tensor, target: Tensor) -> tuple[float, Tensor]:
    predicted = logits.argmax(dim=1)
    accuracy = (predicted == target).float().mean().item()
    return float(accuracy), F.cross_entropy(logits, target, label_smoothing=0.1)


def named(x: Tensor) -> tuple[Tensor, ...]:
    largest = x.max(0)
    values, indices = tp.sort(x, dim=-1, descending=True)
    top = x.topk(2, largest=False)
    u, s, vh = tp.linalg.svd(x, full_matrices=False)
    eigen = tp.linalg.eigh(x @ x.T)
    return largest.values[largest.indices], values[indices], top.values, u @ tp.diag(s) @ vh, eigen.eigenvectors


def modules_of_operators(x: Tensor) -> Tensor:
    spectrum = tp.fft.rfft(x, n=8, norm="ortho")
    smooth = tp.fft.irfft(spectrum * tp.exp(-spectrum.abs()), n=8)
    return tp.special.erf(smooth).mean() + tp.linalg.norm(x) + tp.nn.functional.softplus(x).sum()


def shapes(x: Tensor) -> Tensor:
    batch, *rest = x.shape
    y = x.view(batch, -1).permute(1, 0).contiguous().reshape(*rest, batch)
    y = tp.cat([y, tp.stack([y[0], y[-1]])], dim=0)[..., None].squeeze(-1)
    y[y > 0.5] = 0.0
    y[0, 1:] = tp.arange(y.size(1) - 1, dtype=y.dtype, device=y.device)
    return tp.where(y.isnan(), tp.zeros_like(y), y).clamp_(min=0, max=1)


def derivatives(f: Callable[[Tensor], Tensor], x: Tensor) -> tuple[Tensor, Tensor]:
    x = x.detach().clone().requires_grad_()
    (grad,) = tp.autograd.grad(f(x), x, create_graph=True)
    per_row: Tensor = tp.func.vmap(tp.func.grad(f))(x)
    return grad, per_row


class Cube(tp.autograd.Function):
    @staticmethod
    def forward(ctx: tp.autograd.function.FunctionCtx, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: tp.autograd.function.FunctionCtx, grad: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return 3 * x.square() * grad


def half_precision(model: nn.Module, x: Tensor, optimizer: tp.optim.Optimizer) -> None:
    scaler = tp.amp.GradScaler("cpu")
    with tp.autocast("cpu", dtype=tp.bfloat16):
        loss = F.mse_loss(model(x), x)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()


@tp.no_grad()
def average(model: nn.Module, of: nn.Module, decay: float = 0.99) -> None:
    for mine, other in zip(model.parameters(), of.parameters(), strict=True):
        mine.mul_(decay).add_(other, alpha=1 - decay)


def draws(count: int) -> Iterator[Tensor]:
    normal = tp.distributions.Normal(tp.tensor(0.0), tp.tensor(1.0))
    for _ in range(count):
        sample = normal.rsample((3,))
        yield normal.log_prob(sample) + tp.randn(3, generator=tp.default_generator) * tp.rand(3)


def words(sequence: Tensor) -> Tensor:
    embedding = nn.Embedding(10, 8)
    output, (hidden, cell) = nn.LSTM(8, 8, batch_first=True)(embedding(sequence))
    attended, weights = nn.MultiheadAttention(8, 2, batch_first=True)(output, output, output)
    result: Tensor = attended.sum() + hidden.sum() + cell.sum() + weights.sum()
    return result


def hooks(model: nn.Module, x: Tensor) -> None:
    seen: list[tuple[int, ...]] = []

    def note(module: nn.Module, args: tuple[Tensor, ...], output: Tensor) -> None:
        seen.append(tuple(output.shape))

    handle = model.register_forward_hook(note)
    model(x)
    handle.remove()
    x.register_hook(lambda grad: grad.clamp(-1, 1)).remove()


def sums(x: Tensor) -> float:
    total = tp.einsum("ij,ij->", x, x) + tp.tensordot(x, x, dims=2)
    spread, mean = tp.std_mean(x, dim=0, keepdim=True)
    elements = tp.unique(x)
    return float(total + ((x - mean) / (spread + 1e-8)).sum() + elements.numel())


def batches(x: Tensor, y: Tensor) -> int:
    return sum(len(batch) for batch, _ in DataLoader(TensorDataset(x, y), batch_size=4, drop_last=True))


def transforms() -> Tensor:
    """Lambdas of tensors, and functions of whatever they say."""
    x = tp.randn(4, 3)

    def scaled(a: Tensor, by: float) -> Tensor:
        return (a * by).sum()

    summed = tp.vmap(lambda a: a.sum())(x)
    mixed = tp.vmap(lambda a, b: a * b, in_dims=(0, None))(x, x[0])
    slopes: Tensor = tp.func.grad(lambda a: (a * a).sum())(x)
    bends: Tensor = tp.func.hessian(lambda a: (a**3).sum())(x[0])
    value, pull = tp.func.vjp(lambda a: a.sin(), x)
    print(tp.func.jacrev(lambda a: a.sin())(x).shape, value.shape, pull(x)[0].shape, bends.shape)
    print(tp.func.grad(scaled)(x, 2.0).shape, tp.vmap(scaled, in_dims=(0, None))(x, 2.0).shape)
    net = tp.compile(lambda a: a + 1)
    total: Tensor = summed.sum() + mixed.sum() + slopes.sum() + net(x).sum()
    return total


@tp.no_grad()
def shown(x: Tensor, times: int) -> Tensor:
    return x * times


@tp.inference_mode
def guess(x: Tensor) -> Tensor:
    return F.linear(F.max_pool1d(x, 2), x.new_ones(3, 2)).argmax(-1)


def loaded(loader: DataLoader[tuple[Tensor, ...]], net: nn.Module) -> int:
    """What decorators and hooks are given keeps its type."""
    first = net.register_forward_pre_hook(lambda module, args: (args[0] * 2,))
    second = net.register_forward_hook(lambda module, args, output: None)
    third = net.register_full_backward_hook(lambda module, inputs, outputs: None)
    for handle in (first, second, third):
        handle.remove()
    masked = tp.masked.masked_tensor(tp.ones(2), tp.tensor([True, False]))
    slope: Tensor = tp.autograd.functional.jacobian(lambda z: z * z, tp.ones(2))
    both, places = F.max_pool2d(tp.ones(1, 1, 4, 4), 2, return_indices=True)
    count = memoryview(tp.ones(2)).nbytes + places.numel() + int(masked.dim())
    return len(loader) + shown(slope, 2).numel() + guess(both).numel() + count
