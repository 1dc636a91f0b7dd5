"""A variational autoencoder with two latent numbers: handwritten digits laid out on a plane.

    python examples/vae.py [--steps 3000] [--device cpu] [--out vae.png]

The picture shows where the digits lie on the plane, and what is decoded from points of it. After Kingma and Welling,
Auto-Encoding Variational Bayes (2014). The digits are the 1,797 that scikit-learn ships.
"""

import argparse
from pathlib import Path

from tqdm import trange

import tensorpy as torch
import tensorpy.nn.functional as F
from tensorpy import nn

PIXELS, HIDDEN, GRID = 64, 256, 12


class VAE(nn.Module):
    """64 pixels - 2 means and 2 log variances - 64 pixels."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Linear(PIXELS, HIDDEN), nn.SiLU(), nn.Linear(HIDDEN, HIDDEN), nn.SiLU(), nn.Linear(HIDDEN, 4)
        )
        self.decoder = nn.Sequential(
            nn.Linear(2, HIDDEN), nn.SiLU(), nn.Linear(HIDDEN, HIDDEN), nn.SiLU(), nn.Linear(HIDDEN, PIXELS)
        )

    def forward(self, images: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        mean, log_variance = self.encoder(images).chunk(2, -1)
        latent = mean + torch.randn_like(mean) * (log_variance / 2).exp()
        return self.decoder(latent), mean, log_variance


def loss_of(model: VAE, images: torch.Tensor) -> torch.Tensor:
    """The negative lower bound of the log likelihood, per image."""
    scores, mean, log_variance = model(images)
    fit = F.binary_cross_entropy_with_logits(scores, images, reduction="sum")
    divergence = (mean.square() + log_variance.exp() - 1 - log_variance).sum() / 2
    loss: torch.Tensor = (fit + divergence) / len(images)
    return loss


def draw(places: torch.Tensor, labels: torch.Tensor, plane: torch.Tensor, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 5.2), layout="constrained")
    x, y = places.T.tolist()
    dots = left.scatter(x, y, c=labels.tolist(), cmap="tab10", vmin=-0.5, vmax=9.5, s=7)
    left.set(title="where the digits lie", aspect="equal", xlim=(-3.5, 3.5), ylim=(-3.5, 3.5))
    figure.colorbar(dots, ax=left, ticks=range(10), shrink=0.8)
    right.imshow(plane.tolist(), cmap="gray_r", extent=(-2, 2, -2, 2))
    right.set(title="what is decoded from the plane")
    figure.savefig(path, dpi=120)


def main() -> None:
    from sklearn.datasets import load_digits

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, default=Path("vae.png"))
    args = parser.parse_args()
    torch.manual_seed(0)

    digits = load_digits()
    images = torch.tensor(digits.data, dtype=torch.float32, device=args.device) / 16
    model = VAE().to(args.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.steps)
    with torch.no_grad():
        before = loss_of(model, images).item()
    progress = trange(args.steps, unit="step")
    for step in progress:
        chosen = torch.randint(len(images), (args.batch,), device=args.device)
        optimizer.zero_grad()
        loss = loss_of(model, images[chosen])
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 50 == 0:
            progress.set_postfix(loss=f"{loss.item():.2f}")
    with torch.no_grad():
        after = loss_of(model, images).item()
        places = model.encoder(images)[:, :2]
        axis = torch.linspace(-2, 2, GRID, device=args.device)
        latent = torch.stack(torch.meshgrid(-axis, axis, indexing="ij")[::-1], -1)  # the top row is y = 2
        decoded = F.pad(model.decoder(latent).sigmoid().view(GRID, GRID, 8, 8), (1, 1, 1, 1))  # a margin of one pixel
        plane = decoded.transpose(1, 2).reshape(GRID * 10, GRID * 10)
    print(f"negative lower bound per image: {before:.2f} before, {after:.2f} after")
    draw(places, digits.target, plane, args.out)
    print(f"picture: {args.out}")


if __name__ == "__main__":
    main()
