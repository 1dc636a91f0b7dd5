"""Trains a GPT on the characters of this project's documentation, then lets it write.

    python examples/gpt.py [--steps 1500] [--device cpu] [--out gpt.txt]

With `torch` for `tensorpy` in the imports it is a program for PyTorch, which `python -m tensorpy.run` runs as well.
"""

import argparse
from pathlib import Path

from tqdm import trange

import tensorpy as torch
import tensorpy.nn.functional as F
from tensorpy import nn

ROOT = Path(__file__).parent.parent
CONTEXT, WIDTH, HEADS, LAYERS = 96, 128, 4, 4


class Block(nn.Module):
    """Attention to what came before, then a network of its own for each position."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.proj = nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def attention(self, x: torch.Tensor) -> torch.Tensor:
        batch, time, _ = x.shape
        q, k, v = self.qkv(x).view(batch, time, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4).unbind(0)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        out: torch.Tensor = self.proj(y.transpose(1, 2).reshape(batch, time, WIDTH))
        return out

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.norm1(x))
        out: torch.Tensor = x + self.mlp(self.norm2(x))
        return out


class GPT(nn.Module):
    """Characters in, for each position the scores of the next one out."""

    def __init__(self, characters: int) -> None:
        super().__init__()
        self.token = nn.Embedding(characters, WIDTH)
        self.position = nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.norm = nn.LayerNorm(WIDTH)
        self.scores = nn.Linear(WIDTH, characters, bias=False)
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, std=0.02)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        position = torch.arange(tokens.shape[1], device=tokens.device)
        scores: torch.Tensor = self.scores(self.norm(self.blocks(self.token(tokens) + self.position(position))))
        return scores

    @torch.no_grad()
    def generate(self, tokens: torch.Tensor, count: int, temperature: float = 0.7) -> torch.Tensor:
        for _ in range(count):
            scores = self(tokens[:, -CONTEXT:])[:, -1] / temperature
            tokens = torch.cat((tokens, torch.multinomial(scores.softmax(-1), 1)), 1)
        return tokens


def batch(data: torch.Tensor, size: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Pieces of the text from random places, and the same one character further on."""
    starts = torch.randint(len(data) - CONTEXT, (size, 1), device=data.device)
    pieces = data[starts + torch.arange(CONTEXT + 1, device=data.device)]
    return pieces[:, :-1], pieces[:, 1:]


def loss_of(model: GPT, data: torch.Tensor, size: int) -> torch.Tensor:
    tokens, following = batch(data, size)
    return F.cross_entropy(model(tokens).flatten(0, 1), following.flatten())


@torch.no_grad()
def held_out_loss(model: GPT, data: torch.Tensor) -> float:
    return sum(loss_of(model, data, 32).item() for _ in range(4)) / 4


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--characters", type=int, default=500, help="how many it writes")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, default=Path("gpt.txt"))
    args = parser.parse_args()
    torch.manual_seed(0)

    text = "\n".join(page.read_text() for page in sorted((ROOT / "docs").rglob("*.md")) if page.name != "support.md")
    alphabet = sorted(set(text))
    number = {letter: i for i, letter in enumerate(alphabet)}
    data = torch.tensor([number[letter] for letter in text], device=args.device)
    training, held_out = data[: -len(data) // 10], data[-len(data) // 10 :]

    model = GPT(len(alphabet)).to(args.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.1, betas=(0.9, 0.95))
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, total_steps=args.steps + 1, pct_start=0.1)
    before = held_out_loss(model, held_out)
    progress = trange(args.steps, unit="step")
    for step in progress:
        optimizer.zero_grad()
        loss = loss_of(model, training, args.batch)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % 20 == 0:
            progress.set_postfix(loss=f"{loss.item():.3f}")
    print(f"loss on held-out text: {before:.3f} before, {held_out_loss(model, held_out):.3f} after")

    start = torch.tensor([[number[letter] for letter in "\n## "]], device=args.device)
    written = "".join(alphabet[i] for i in model.generate(start, args.characters)[0].tolist())
    args.out.write_text(written)
    print(f"{written}\n\nsample: {args.out}")


if __name__ == "__main__":
    main()
