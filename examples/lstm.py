"""An LSTM learns a chaotic time series one step ahead, then continues it by itself.

    python examples/lstm.py [--steps 1200] [--device cpu] [--out lstm.png]

The series is Mackey and Glass's delay equation (1977) with a delay of 17, a usual test of forecasts.
"""

import argparse
from pathlib import Path

from tqdm import trange

import tensorpy as torch
import tensorpy.nn.functional as F
from tensorpy import nn

DELAY, WINDOW, CONTEXT, AHEAD = 17, 100, 300, 200
State = tuple[torch.Tensor, torch.Tensor]


def mackey_glass(count: int, fine: int = 10) -> torch.Tensor:
    """The series at whole times, by Euler's method with `fine` steps between two of them; mean 0, deviation 1."""
    x = [1.2] * (DELAY * fine + 1)
    for _ in range((count + 200) * fine):
        late = x[-DELAY * fine - 1]
        x.append(x[-1] + (0.2 * late / (1 + late**10) - 0.1 * x[-1]) / fine)
    series = torch.tensor(x[-count * fine :: fine])
    return (series - series.mean()) / series.std()


class Forecast(nn.Module):
    """From the values so far the change to the next one, at each time."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.lstm = nn.LSTM(1, width, num_layers=2, batch_first=True)
        self.change = nn.Linear(width, 1)

    def forward(self, x: torch.Tensor, state: State | None = None) -> tuple[torch.Tensor, State]:
        y, after = self.lstm(x, state)
        return x + self.change(y), after

    @torch.no_grad()
    def proceed(self, x: torch.Tensor, count: int) -> torch.Tensor:
        """Continues a series (batch, time, 1) by `count` values, each made from those before it."""
        following, state = self(x)
        found = [following[:, -1:]]
        while len(found) < count:
            following, state = self(found[-1], state)
            found.append(following)
        return torch.cat(found, 1)


def batch(series: torch.Tensor, size: int) -> tuple[torch.Tensor, torch.Tensor]:
    starts = torch.randint(len(series) - WINDOW, (size, 1), device=series.device)
    pieces = series[starts + torch.arange(WINDOW + 1, device=series.device)].unsqueeze(-1)
    return pieces[:, :-1], pieces[:, 1:]


@torch.no_grad()
def error(model: Forecast, series: torch.Tensor) -> float:
    """The root mean square error one step ahead."""
    x = series[None, :, None]
    return F.mse_loss(model(x[:, :-1])[0], x[:, 1:]).sqrt().item()


def draw(losses: list[float], context: list[float], actual: list[float], forecast: list[float], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (top, below) = plt.subplots(2, 1, figsize=(9, 5.6), height_ratios=(3, 2), layout="constrained")
    top.plot(range(-len(context) + 1, 1), context, color="0.6", label="seen")
    top.plot(range(1, len(actual) + 1), actual, "k--", lw=1, label="what came")
    top.plot(range(1, len(forecast) + 1), forecast, label="forecast")
    top.set(xlabel="time", ylim=(-2.7, 2.7), title="an LSTM continues the Mackey-Glass series by itself")
    top.legend(loc="upper left", ncols=3)
    below.plot(range(1, len(losses) + 1), losses, lw=0.8)
    below.set(xlabel="step", ylabel="training loss", yscale="log")
    for axes in (top, below):
        axes.grid(alpha=0.3)
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=1200)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, default=Path("lstm.png"))
    args = parser.parse_args()
    torch.manual_seed(0)

    series = mackey_glass(3000).to(args.device)
    training, held_out = series[:2000], series[2000:]
    model = Forecast().to(args.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.steps)
    before = error(model, held_out)
    losses: list[float] = []
    progress = trange(args.steps, unit="step")
    for _ in progress:
        x, following = batch(training, args.batch)
        optimizer.zero_grad()
        loss = F.mse_loss(model(x)[0], following)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
        progress.set_postfix(loss=f"{losses[-1]:.5f}")
    print(f"error one step ahead: {before:.4f} before, {error(model, held_out):.4f} after")

    context, actual = held_out[:CONTEXT], held_out[CONTEXT : CONTEXT + AHEAD]
    forecast = model.proceed(context[None, :, None], AHEAD)[0, :, 0]
    away = (forecast - actual).square()
    print(f"error of its own continuation: {away[:50].mean().sqrt().item():.3f} over 50 steps, ", end="")
    print(f"{away.mean().sqrt().item():.3f} over {AHEAD}")
    draw(losses, context[-100:].tolist(), actual.tolist(), forecast.tolist(), args.out)
    print(f"picture: {args.out}")


if __name__ == "__main__":
    main()
