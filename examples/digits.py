"""Trains a classifier on the 1,797 handwritten digits that scikit-learn ships, with tensors and autograd alone.

    python examples/digits.py [--model cnn|mlp] [--optimizer adam|sgd] [--autocast] [--device cpu] [--seeds 10]

A fifth of the digits is held out for testing. Prints the accuracy and the time, and saves a picture: the loss curve,
and the digits that the classifier got wrong, each with its guess and the truth.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path

import tensorpy as tp
import tensorpy.nn.functional as F

SIDE = 8
CLASSES = 10


# ---- the data ----


@dataclass(frozen=True)
class Data:
    """Images in [0, 1] as (n, 1, 8, 8), labels as int64."""

    images: tp.Tensor
    labels: tp.Tensor

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: tp.Tensor) -> Data:
        return Data(self.images[index], self.labels[index])

    def to(self, device: str) -> Data:
        return Data(self.images.to(device), self.labels.to(device))


def load() -> Data:
    from sklearn.datasets import load_digits

    bunch = load_digits()
    images = tp.tensor(bunch.images, dtype=tp.float32).reshape(-1, 1, SIDE, SIDE) / 16
    return Data(images, tp.tensor(bunch.target, dtype=tp.int64))


def split(data: Data) -> tuple[Data, Data]:
    """A random fifth is for testing."""
    order = tp.randperm(len(data))
    held_out = len(data) // 5
    return data[order[held_out:]], data[order[:held_out]]


def batches(data: Data, size: int, device: str) -> Iterator[Data]:
    order = tp.randperm(len(data))
    for start in range(0, len(data), size):
        yield data[order[start : start + size]].to(device)


# ---- the models: a function of the images and a list of parameters ----


def uniform(*shape: int, fan_in: int, device: str) -> tp.Tensor:
    """Weights from U(-b, b) with b = 1/sqrt(fan_in), the usual start of linear and convolution layers."""
    bound = 1 / math.sqrt(fan_in)
    return tp.empty(*shape).uniform_(-bound, bound).to(device).requires_grad_()


class Mlp:
    """64 - 128 - 10, one hidden layer."""

    def __init__(self, device: str) -> None:
        pixels, hidden = SIDE * SIDE, 128
        self.w1, self.b1 = (
            uniform(hidden, pixels, fan_in=pixels, device=device),
            uniform(hidden, fan_in=pixels, device=device),
        )
        self.w2, self.b2 = (
            uniform(CLASSES, hidden, fan_in=hidden, device=device),
            uniform(CLASSES, fan_in=hidden, device=device),
        )
        self.parameters = [self.w1, self.b1, self.w2, self.b2]

    def __call__(self, images: tp.Tensor, training: bool) -> tp.Tensor:
        hidden = F.relu(F.linear(images.flatten(1), self.w1, self.b1))
        return F.linear(hidden, self.w2, self.b2)


class Cnn:
    """Two 3x3 convolutions of 16 and 32 channels, a 2x2 maximum, one hidden layer with dropout."""

    def __init__(self, device: str) -> None:
        self.w1, self.b1 = uniform(16, 1, 3, 3, fan_in=9, device=device), uniform(16, fan_in=9, device=device)
        self.w2, self.b2 = uniform(32, 16, 3, 3, fan_in=144, device=device), uniform(32, fan_in=144, device=device)
        self.w3, self.b3 = uniform(64, 512, fan_in=512, device=device), uniform(64, fan_in=512, device=device)
        self.w4, self.b4 = uniform(CLASSES, 64, fan_in=64, device=device), uniform(CLASSES, fan_in=64, device=device)
        self.parameters = [self.w1, self.b1, self.w2, self.b2, self.w3, self.b3, self.w4, self.b4]

    def __call__(self, images: tp.Tensor, training: bool) -> tp.Tensor:
        x = F.relu(F.conv2d(images, self.w1, self.b1, padding=1))
        x = F.relu(F.conv2d(x, self.w2, self.b2, padding=1))
        x = F.max_pool2d(x, 2).flatten(1)
        x = F.dropout(F.relu(F.linear(x, self.w3, self.b3)), 0.25, training)
        return F.linear(x, self.w4, self.b4)


MODELS: dict[str, Callable[[str], Mlp | Cnn]] = {"mlp": Mlp, "cnn": Cnn}


# ---- the optimizers: in-place operators under no_grad ----


class Adam:
    """Kingma & Ba 2015, with bias correction."""

    def __init__(self, parameters: list[tp.Tensor], rate: float = 2e-3) -> None:
        self.parameters, self.rate, self.step_count = parameters, rate, 0
        self.mean = [tp.zeros_like(p) for p in parameters]
        self.square = [tp.zeros_like(p) for p in parameters]

    @tp.no_grad()
    def step(self) -> None:
        beta1, beta2, epsilon = 0.9, 0.999, 1e-8
        self.step_count += 1
        rate = self.rate / (1 - beta1**self.step_count)
        scale = 1 / math.sqrt(1 - beta2**self.step_count)
        for p, m, v in zip(self.parameters, self.mean, self.square, strict=True):
            m.mul_(beta1).add_(p.grad, alpha=1 - beta1)
            v.mul_(beta2).addcmul_(p.grad, p.grad, value=1 - beta2)
            p.addcdiv_(m, v.sqrt().mul_(scale).add_(epsilon), value=-rate)
            p.grad = None


class Sgd:
    """Stochastic gradient descent with momentum."""

    def __init__(self, parameters: list[tp.Tensor], rate: float = 0.05, momentum: float = 0.9) -> None:
        self.parameters, self.rate, self.momentum = parameters, rate, momentum
        self.velocity = [tp.zeros_like(p) for p in parameters]

    @tp.no_grad()
    def step(self) -> None:
        for p, v in zip(self.parameters, self.velocity, strict=True):
            v.mul_(self.momentum).add_(p.grad)
            p.add_(v, alpha=-self.rate)
            p.grad = None


OPTIMIZERS = {"adam": Adam, "sgd": Sgd}


# ---- training ----


@dataclass
class Result:
    accuracy: float
    seconds: float
    losses: list[float] = field(repr=False)
    wrong: list[tuple[list[list[float]], int, int]] = field(repr=False)  # image, guess, truth


def casting(args: argparse.Namespace) -> object:
    return tp.autocast(args.device, dtype=tp.bfloat16) if args.autocast else nullcontext()


def evaluate(
    model: Mlp | Cnn, test: Data, args: argparse.Namespace
) -> tuple[float, list[tuple[list[list[float]], int, int]]]:
    with tp.no_grad(), casting(args):  # type: ignore[attr-defined]
        guess = model(test.images.to(args.device), training=False).argmax(1).cpu()
    wrong = (guess != test.labels).nonzero().flatten().tolist()
    shown = [(test.images[i, 0].tolist(), int(guess[i]), int(test.labels[i])) for i in wrong]
    return 1 - len(wrong) / len(test), shown


def train(data: Data, seed: int, args: argparse.Namespace) -> Result:
    from tqdm import tqdm

    tp.manual_seed(seed)
    training, test = split(data)
    model = MODELS[args.model](args.device)
    optimizer = OPTIMIZERS[args.optimizer](model.parameters)
    losses: list[float] = []
    start = time.perf_counter()
    progress = tqdm(range(args.epochs), desc=f"seed {seed}", unit="epoch", leave=False)
    for _ in progress:
        total = tp.zeros((), device=args.device)
        for batch in batches(training, args.batch, args.device):
            with casting(args):  # type: ignore[attr-defined]
                loss = F.cross_entropy(model(batch.images, training=True), batch.labels)
            loss.backward()
            optimizer.step()
            total += loss.detach() * len(batch)
        losses.append(total.item() / len(training))
        progress.set_postfix(loss=f"{losses[-1]:.4f}")
    seconds = time.perf_counter() - start
    accuracy, wrong = evaluate(model, test, args)
    return Result(accuracy, seconds, losses, wrong)


# ---- the picture ----


def draw(result: Result, path: Path) -> None:
    """Left the loss curve, right the digits that were guessed wrong, in a grid that fits their number."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    shown = result.wrong[:12]
    columns = min(4, max(2, math.ceil(math.sqrt(len(shown)))))
    figure = plt.figure(figsize=(7 + 1.2 * columns, 4.2), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=(5, 1.2 * columns))
    epochs = range(1, len(result.losses) + 1)
    axes = left.subplots()
    axes.plot(epochs, result.losses, marker=".")
    axes.set(xlabel="epoch", ylabel="mean training loss", yscale="log")
    axes.set_title(f"{result.accuracy:.1%} of the held-out digits right")
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.grid(alpha=0.3, which="both")
    count = len(result.wrong)
    more = f", the first {len(shown)}" if count > len(shown) else ""
    right.suptitle(f"{count or 'no'} digit{'' if count == 1 else 's'} guessed wrong{more}")
    if shown:
        cells = right.subplots(math.ceil(len(shown) / columns), columns, squeeze=False).flatten()
        for cell in cells:
            cell.axis("off")
        for cell, (image, guess, truth) in zip(cells, shown, strict=False):
            cell.imshow(image, cmap="gray_r", vmin=0, vmax=1)
            cell.set_title(f"guess {guess}, is {truth}", fontsize=9)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=MODELS, default="cnn")
    parser.add_argument("--optimizer", choices=OPTIMIZERS, default="adam")
    parser.add_argument("--autocast", action="store_true", help="train in bfloat16 where that is safe")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seeds", type=int, default=1, help="train with seeds 0 to n-1 and report all")
    parser.add_argument("--epochs", type=int, default=25)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--picture", type=Path, default=Path("digits.png"))
    args = parser.parse_args()
    try:
        tp.empty(1, device=args.device).add_(1).item()
    except (RuntimeError, NotImplementedError) as error:
        parser.error(f"cannot train on --device {args.device}: {error}")

    data = load()
    results = [train(data, seed, args) for seed in range(args.seeds)]
    for seed, result in enumerate(results):
        print(f"seed {seed}: {result.accuracy:.2%} of the held-out digits right, trained in {result.seconds:.1f} s")
    if len(results) > 1:
        accuracies = [r.accuracy for r in results]
        print(f"mean {statistics.mean(accuracies):.2%}, worst {min(accuracies):.2%}")
    draw(results[-1], args.picture)
    print(f"picture: {args.picture}")


if __name__ == "__main__":
    main()
