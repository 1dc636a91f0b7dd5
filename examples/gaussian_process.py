"""An exact Gaussian process: fits noisy points, chooses its hyperparameters by gradient, says how sure it is.

    python examples/gaussian_process.py [--steps 300] [--device cpu] [--out gaussian_process.png]

After Rasmussen and Williams, Gaussian Processes for Machine Learning (2006), algorithm 2.1.
"""

import argparse
import math
from pathlib import Path

from tqdm import trange

import tensorpy as torch
from tensorpy import nn


def truth(x: torch.Tensor) -> torch.Tensor:
    return torch.sin(3 * x) + 0.5 * x


class GaussianProcess(nn.Module):
    """Mean zero, squared exponential covariance, independent noise. The hyperparameters are kept as logarithms."""

    def __init__(self, x: torch.Tensor, y: torch.Tensor) -> None:
        super().__init__()
        self.x, self.y = x, y
        self.log_length = nn.Parameter(torch.tensor(0.0))
        self.log_scale = nn.Parameter(torch.tensor(0.0))
        self.log_noise = nn.Parameter(torch.tensor(0.0))

    def covariance(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        distance = (a[:, None] - b[None, :]) / self.log_length.exp()
        return (2 * self.log_scale).exp() * torch.exp(-distance.square() / 2)

    def factor(self) -> tuple[torch.Tensor, torch.Tensor]:
        """The Cholesky factor of the points' covariance, and its inverse times y."""
        noise = (2 * self.log_noise).exp() + 1e-6
        identity = torch.eye(len(self.x), device=self.x.device)
        lower = torch.linalg.cholesky(self.covariance(self.x, self.x) + noise * identity)
        return lower, torch.cholesky_solve(self.y[:, None], lower)

    def negative_log_likelihood(self) -> torch.Tensor:
        lower, weights = self.factor()
        fit = self.y @ weights[:, 0] / 2
        return fit + lower.diagonal().log().sum() + len(self.x) / 2 * math.log(2 * math.pi)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Mean and standard deviation of the function at x."""
        lower, weights = self.factor()
        between = self.covariance(x, self.x)
        half = torch.linalg.solve_triangular(lower, between.T, upper=False)
        variance = (2 * self.log_scale).exp() - half.square().sum(0)
        return (between @ weights)[:, 0], variance.clamp(min=0).sqrt()


def draw(process: GaussianProcess, x: torch.Tensor, mean: torch.Tensor, deviation: torch.Tensor, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    x, mean, deviation = x.cpu(), mean.cpu(), deviation.cpu()
    figure, axes = plt.subplots(figsize=(8, 4.2), layout="constrained")
    low, high = (mean - 2 * deviation).tolist(), (mean + 2 * deviation).tolist()
    axes.fill_between(x.tolist(), low, high, alpha=0.25, lw=0, label="two standard deviations")
    axes.plot(x.tolist(), mean.tolist(), label="mean")
    axes.plot(x.tolist(), truth(x).tolist(), "k--", lw=1, label="truth")
    axes.plot(process.x.tolist(), process.y.tolist(), "k.", ms=6, label="observations")
    found = f"length {process.log_length.exp().item():.2f}, scale {process.log_scale.exp().item():.2f}"
    axes.set(xlabel="x", ylabel="y", title=f"{found}, noise {process.log_noise.exp().item():.2f}")
    axes.legend(loc="upper left")
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--points", type=int, default=50)
    parser.add_argument("--noise", type=float, default=0.2, help="the standard deviation of what is added to the truth")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, default=Path("gaussian_process.png"))
    args = parser.parse_args()
    torch.manual_seed(0)

    x = torch.rand(args.points) * 5 - 2.5
    x = x[(x < 0.3) | (x > 1.1)]  # a gap, in which the band has to widen
    y = truth(x) + args.noise * torch.randn(len(x))
    process = GaussianProcess(x.to(args.device), y.to(args.device)).to(args.device)
    optimizer = torch.optim.Adam(process.parameters(), lr=0.05)
    before = process.negative_log_likelihood().item()
    progress = trange(args.steps, unit="step")
    for step in progress:
        optimizer.zero_grad()
        loss = process.negative_log_likelihood()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            progress.set_postfix(loss=f"{loss.item():.2f}")
    after = process.negative_log_likelihood().item()
    print(f"negative log likelihood: {before:.2f} before, {after:.2f} after")

    at = torch.linspace(-3.5, 3.5, 300, device=args.device)
    with torch.no_grad():
        mean, deviation = process(at)
    inside = at.abs() < 2.5  # where the points are, and the gap
    error = (mean - truth(at))[inside].square().mean().sqrt().item()
    covered = ((mean - truth(at)).abs() < 2 * deviation)[inside].float().mean().item()
    print(f"noise {process.log_noise.exp().item():.3f}, which is {args.noise:.3f}")
    print(f"where the points are, and in their gap: error {error:.3f}, {covered:.0%} of the truth inside the band")
    draw(process, at, mean, deviation, args.out)
    print(f"picture: {args.out}")


if __name__ == "__main__":
    main()
