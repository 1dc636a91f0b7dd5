"""A small residual network learns handwritten digits, which are shifted and turned a little while it trains.

    python examples/resnet.py [--steps 700] [--device cpu] [--out resnet.png]

Blocks after He et al., Deep Residual Learning (2016). The digits are the 1,797 that scikit-learn ships; a fifth is held
out for testing.
"""

import argparse
from pathlib import Path

from tqdm import tqdm

import tensorpy as torch
import tensorpy.nn.functional as F
from tensorpy import nn
from tensorpy.utils.data import DataLoader, TensorDataset, random_split

CLASSES = 10


class Block(nn.Module):
    """Two 3x3 convolutions beside a shortcut, which is a 1x1 convolution where the shape changes."""

    def __init__(self, before: int, after: int, stride: int = 1) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(before, after, 3, stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(after)
        self.conv2 = nn.Conv2d(after, after, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(after)
        self.shortcut: nn.Module = nn.Identity()
        if before != after or stride != 1:
            self.shortcut = nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = F.relu(self.norm1(self.conv1(x)))
        return F.relu(self.norm2(self.conv2(y)) + self.shortcut(x))


class ResNet(nn.Sequential):
    """Four blocks, 8x8 to 4x4 pixels, 32 to 64 channels."""

    def __init__(self) -> None:
        super().__init__(
            nn.Conv2d(1, 32, 3, padding=1, bias=False),
            nn.BatchNorm2d(32),
            nn.ReLU(),
            Block(32, 32),
            Block(32, 32),
            Block(32, 64, stride=2),
            Block(64, 64),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(64, CLASSES),
        )


def disturb(images: torch.Tensor) -> torch.Tensor:
    """Turns each image by up to some ten degrees and moves it by up to a pixel."""
    count = len(images)
    angle = (torch.rand(count) - 0.5) * 0.4
    move = (torch.rand(count, 2) - 0.5) * 0.4
    cos, sin = angle.cos(), angle.sin()
    maps = torch.stack((cos, -sin, move[:, 0], sin, cos, move[:, 1]), 1).view(count, 2, 3)
    grid = F.affine_grid(maps.to(images.device), images.shape, align_corners=False)
    return F.grid_sample(images, grid, align_corners=False)


@torch.no_grad()
def test(model: nn.Module, images: torch.Tensor, labels: torch.Tensor) -> tuple[float, float, torch.Tensor]:
    """Loss, accuracy and guesses."""
    model.eval()
    scores = model(images)
    model.train()
    guess = scores.argmax(1)
    return F.cross_entropy(scores, labels).item(), (guess == labels).float().mean().item(), guess


def draw(
    losses: list[float], accuracies: list[tuple[int, float]], labels: torch.Tensor, guess: torch.Tensor, path: Path
) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained")
    left.plot(range(1, len(losses) + 1), losses, lw=0.8, color="0.6", label="training loss")
    left.set(xlabel="step", ylabel="training loss", yscale="log")
    other = left.twinx()
    other.plot(*zip(*accuracies, strict=True), marker=".", label="held-out accuracy")
    other.set(ylabel="held-out accuracy", ylim=(0, 1.02))
    left.set_title(f"{accuracies[-1][1]:.1%} of the held-out digits right")
    counts = torch.zeros(CLASSES, CLASSES, dtype=torch.int64)
    counts.index_put_((labels.cpu(), guess.cpu()), torch.tensor(1), accumulate=True)
    right.imshow((counts + 1).log().tolist(), cmap="Blues")
    for truth, row in enumerate(counts.tolist()):
        for digit, count in enumerate(row):
            if count:
                right.text(digit, truth, count, ha="center", va="center", color="w" if digit == truth else "k")
    right.set(xlabel="guess", ylabel="truth", xticks=range(CLASSES), yticks=range(CLASSES))
    figure.savefig(path, dpi=120)


def main() -> None:
    from sklearn.datasets import load_digits

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=700)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, default=Path("resnet.png"))
    args = parser.parse_args()
    torch.manual_seed(0)

    digits = load_digits()
    data = TensorDataset(torch.tensor(digits.images, dtype=torch.float32)[:, None] / 16, torch.tensor(digits.target))
    training, held_out = random_split(data, [0.8, 0.2])
    images, labels = (part.to(args.device) for part in data[held_out.indices])
    loader = DataLoader(training, args.batch, shuffle=True, drop_last=True)

    model = ResNet().to(args.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True, weight_decay=5e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.05, total_steps=args.steps + 1)
    before, accuracy, guess = test(model, images, labels)
    losses: list[float] = []
    after, accuracies = before, [(0, accuracy)]
    with tqdm(total=args.steps, unit="step") as progress:
        while len(losses) < args.steps:
            for x, y in loader:
                optimizer.zero_grad()
                loss = F.cross_entropy(model(disturb(x.to(args.device))), y.to(args.device))
                loss.backward()
                optimizer.step()
                schedule.step()
                losses.append(loss.item())
                progress.update()
                if len(losses) == args.steps:
                    break
            after, accuracy, guess = test(model, images, labels)
            accuracies.append((len(losses), accuracy))
            progress.set_postfix(loss=f"{losses[-1]:.4f}", accuracy=f"{accuracy:.2%}")
    print(f"held-out loss: {before:.4f} before, {after:.4f} after")
    print(f"{accuracy:.2%} of the held-out digits right")
    draw(losses, accuracies, labels, guess, args.out)
    print(f"picture: {args.out}")


if __name__ == "__main__":
    main()
