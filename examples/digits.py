"""Trains a classifier on the 1,797 handwritten digits that scikit-learn ships, with nn, optim and a DataLoader.

    python examples/digits.py [--model cnn|mlp] [--optimizer sgd|adam] [--autocast] [--device cpu] [--seeds 10]

A fifth of the digits is held out for testing; the others are turned, shifted and scaled a little, another way in each
epoch. Prints the accuracy and the time, and saves a picture: the loss curve,
and the digits that the classifier got wrong, each with its guess and the truth.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tensorpy as tp
import tensorpy.nn.functional as F
from tensorpy import nn, optim
from tensorpy.utils.data import DataLoader, Subset, TensorDataset, random_split

SIDE = 8
CLASSES = 10


# ---- the data ----


def load() -> TensorDataset:
    """Images in [0, 1] as (n, 1, 8, 8), labels as int64."""
    from sklearn.datasets import load_digits

    bunch = load_digits()
    images = tp.tensor(bunch.images, dtype=tp.float32).reshape(-1, 1, SIDE, SIDE) / 16
    return TensorDataset(images, tp.tensor(bunch.target, dtype=tp.int64))


def varied(images: tp.Tensor) -> tp.Tensor:
    """Each image turned by up to 0.1 radians, shifted by up to 0.4 pixels and scaled by up to a tenth."""
    angle, scale = tp.empty(2, len(images), 1, device=images.device).uniform_(-0.1, 0.1)
    shift = tp.empty(len(images), 2, 1, device=images.device).uniform_(-0.1, 0.1)
    turn = tp.cat([angle.cos(), -angle.sin(), angle.sin(), angle.cos()], 1).reshape(-1, 2, 2) * (1 + scale[..., None])
    grid = F.affine_grid(tp.cat([turn, shift], 2), list(images.shape), align_corners=False)
    return F.grid_sample(images, grid, align_corners=False)


# ---- the models ----


class Mlp(nn.Sequential):
    """64 - 128 - 10, one hidden layer."""

    def __init__(self) -> None:
        super().__init__(nn.Flatten(), nn.Linear(SIDE * SIDE, 128), nn.ReLU(), nn.Linear(128, CLASSES))


class Cnn(nn.Module):
    """Two 3x3 convolutions of 16 and 32 channels, each normalised over the batch, a 2x2 maximum, one hidden layer with
    dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.norm1 = nn.BatchNorm2d(16)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.norm2 = nn.BatchNorm2d(32)
        self.hidden = nn.Linear(512, 64)
        self.dropout = nn.Dropout(0.25)
        self.scores = nn.Linear(64, CLASSES)

    def forward(self, images: tp.Tensor) -> tp.Tensor:
        x = F.relu(self.norm1(self.conv1(images)))
        x = F.relu(self.norm2(self.conv2(x)))
        x = F.max_pool2d(x, 2).flatten(1)
        scores: tp.Tensor = self.scores(self.dropout(F.relu(self.hidden(x))))
        return scores


MODELS: dict[str, Callable[[], nn.Module]] = {"mlp": Mlp, "cnn": Cnn}
OPTIMIZERS: dict[str, Callable[[Iterable[tp.Tensor]], optim.Optimizer]] = {
    "adam": lambda parameters: optim.Adam(parameters, lr=4e-3),
    "sgd": lambda parameters: optim.SGD(parameters, lr=0.1, momentum=0.9),
}


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
    model: nn.Module, test: Subset[tuple[tp.Tensor, ...]], args: argparse.Namespace
) -> tuple[float, list[tuple[list[list[float]], int, int]]]:
    images, labels = test.dataset[test.indices]
    model.eval()
    with tp.no_grad(), casting(args):  # type: ignore[attr-defined]
        guess = model(images.to(args.device)).argmax(1).cpu()
    wrong = (guess != labels).nonzero().flatten().tolist()
    shown = [(images[i, 0].tolist(), int(guess[i]), int(labels[i])) for i in wrong]
    return 1 - len(wrong) / len(test), shown


def train(data: TensorDataset, seed: int, args: argparse.Namespace) -> Result:
    from tqdm import tqdm

    tp.manual_seed(seed)
    training, test = random_split(data, [0.8, 0.2])
    loader = DataLoader(training, args.batch, shuffle=True)
    model = MODELS[args.model]().to(args.device)
    optimizer = OPTIMIZERS[args.optimizer](model.parameters())
    highest = optimizer.param_groups[0]["lr"]
    schedule = optim.lr_scheduler.OneCycleLR(optimizer, highest, total_steps=args.epochs * len(loader))
    losses: list[float] = []
    start = time.perf_counter()
    progress = tqdm(range(args.epochs), desc=f"seed {seed}", unit="epoch", leave=False)
    for _ in progress:
        total = tp.zeros((), device=args.device)
        for images, labels in loader:
            optimizer.zero_grad()
            with casting(args):  # type: ignore[attr-defined]
                scores = model(varied(images.to(args.device)))
                loss = F.cross_entropy(scores, labels.to(args.device))
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.detach() * len(images)
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
    parts: Any = figure.subfigures(1, 2, width_ratios=(5, 1.2 * columns))
    left, right = parts
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
    parser.add_argument("--optimizer", choices=OPTIMIZERS, default="sgd")
    parser.add_argument("--autocast", action="store_true", help="train in bfloat16 where that is safe")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seeds", type=int, default=1, help="train with seeds 0 to n-1 and report all")
    parser.add_argument("--epochs", type=int, default=40)
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
