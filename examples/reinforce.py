"""REINFORCE learns to balance a pole on a cart.

    python examples/reinforce.py [--steps 150] [--device cpu] [--out reinforce.png]

The cart and its constants are those of Barto, Sutton and Anderson (1983); the rule is Williams's (1992), with the mean
return at each time as its baseline. Sixteen carts run at once, as one batch.
"""

import argparse
from pathlib import Path

from tqdm import trange

import tensorpy as torch
from tensorpy import nn
from tensorpy.distributions import Categorical

GRAVITY, CART, POLE, HALF, FORCE, SECONDS = 9.8, 1.0, 0.1, 0.5, 10.0, 0.02
CAP = 500  # steps, after which an episode has succeeded


def move(state: torch.Tensor, action: torch.Tensor) -> torch.Tensor:
    """One step of the carts (n, 4): place, speed, angle, angular speed. action: 0 pushes left, 1 right."""
    _, speed, angle, turning = state.unbind(1)
    force = FORCE * (2 * action - 1)
    sin, cos = angle.sin(), angle.cos()
    push = (force + POLE * HALF * turning.square() * sin) / (CART + POLE)
    turn = (GRAVITY * sin - cos * push) / (HALF * (4 / 3 - POLE * cos.square() / (CART + POLE)))
    speed_up = push - POLE * HALF * turn * cos / (CART + POLE)
    rates = torch.stack((speed, speed_up, turning, turn), 1)
    return state + SECONDS * rates


def play(policy: nn.Module, carts: int, device: str) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Runs episodes until all are over. Gives log probabilities and what was alive, both (time, n), and the states."""
    state = torch.rand(carts, 4, device=device) * 0.1 - 0.05
    alive = torch.ones(carts, device=device)
    chosen, lived, states = list[torch.Tensor](), list[torch.Tensor](), list[torch.Tensor]()
    for _ in range(CAP):
        choice = Categorical(logits=policy(state))
        action = choice.sample()
        chosen.append(choice.log_prob(action))
        lived.append(alive)
        states.append(state)
        state = move(state, action)
        alive = alive * ((state[:, 0].abs() < 2.4) & (state[:, 2].abs() < 0.2094))
        if not alive.any():
            break
    return torch.stack(chosen), torch.stack(lived), torch.stack(states)


def objective(chosen: torch.Tensor, alive: torch.Tensor, discount: float = 0.99) -> torch.Tensor:
    """Negative: the returns from each time on, less their mean over the carts still alive, weigh the choices."""
    backwards, following = list[torch.Tensor](), torch.zeros_like(alive[0])
    for reward in alive.flip(0):
        following = reward + discount * following
        backwards.append(following)
    returns = torch.stack(backwards).flip(0)
    mean = (returns * alive).sum(1, keepdim=True) / alive.sum(1, keepdim=True).clamp(min=1)
    advantage = (returns - mean) * alive
    advantage = advantage / ((advantage.square().sum() / alive.sum()).sqrt() + 1e-6)
    return -(chosen * advantage).sum() / alive.sum()


def draw(lengths: list[list[float]], states: torch.Tensor, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    left.plot([length for row in lengths for length in row], ".", ms=2, color="0.7", label="an episode")
    carts = len(lengths[0])
    middle = [(i + 0.5) * carts for i in range(len(lengths))]
    left.plot(middle, [sum(row) / carts for row in lengths], label="mean of an update")
    left.set(xlabel="episode", ylabel="steps balanced", ylim=(0, CAP * 1.05))
    left.legend(loc="lower right", markerscale=4)
    times = [i * SECONDS for i in range(len(states))]
    right.plot(times, states[:, 0].tolist(), label="place (m)")
    right.plot(times, states[:, 2].rad2deg().tolist(), label="angle (degrees)", lw=0.8)
    right.set(xlabel="seconds", title="one episode after training")
    right.legend(loc="lower left")
    for axes in (left, right):
        axes.grid(alpha=0.3)
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=150, help="updates of the policy")
    parser.add_argument("--carts", type=int, default=16)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, default=Path("reinforce.png"))
    args = parser.parse_args()
    torch.manual_seed(0)

    policy = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 2)).to(args.device)
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
    lengths: list[list[float]] = []
    progress = trange(args.steps, unit="update")
    for _ in progress:
        chosen, alive, _ = play(policy, args.carts, args.device)
        optimizer.zero_grad()
        objective(chosen, alive).backward()
        optimizer.step()
        lengths.append(alive.sum(0).tolist())
        progress.set_postfix(steps=f"{sum(lengths[-1]) / args.carts:.0f}")
    flat = [length for row in lengths for length in row]
    first, last = (sum(part) / len(part) for part in (flat[:20], flat[-20:]))
    print(f"steps balanced, mean of 20 episodes: {first:.1f} before, {last:.1f} after (at most {CAP})")
    with torch.no_grad():
        _, alive, states = play(policy, 1, args.device)
    draw(lengths, states[:, 0].cpu(), args.out)
    print(f"picture: {args.out}")


if __name__ == "__main__":
    main()
