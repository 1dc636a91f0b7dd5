"""Saves a training step of a classifier of digits as a plan for train.c, with first weights and the images.

python examples/plan_in_c/train.py [--out .]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import tensorpy as tp
import tensorpy.nn.functional as F
from tensorpy.func import functional_call

sys.path.insert(0, str(Path(__file__).parents[1]))
from digits import Mlp, load

BATCH, RATE = 64, 0.2
MODEL = Mlp()
NAMES = [name for name, _ in MODEL.named_parameters()]


@tp.enable_grad()
def step(images: tp.Tensor, labels: tp.Tensor, *weights: tp.Tensor) -> tuple[tp.Tensor, ...]:
    """The loss of a batch, how many of it are right, and the weights after a step of gradient descent."""
    leaves = [weight.detach().requires_grad_() for weight in weights]
    scores = functional_call(MODEL, dict(zip(NAMES, leaves, strict=True)), (images,))
    loss = F.cross_entropy(scores, labels)
    gradients = tp.autograd.grad(loss, leaves)
    right = (scores.argmax(1) == labels).sum()
    return loss.detach(), right, *(w.detach() - RATE * g for w, g in zip(leaves, gradients, strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path())
    out = parser.parse_args().out
    tp.manual_seed(0)
    weights = [p.detach().clone() for p in Mlp().parameters()]
    images, labels = load().tensors
    tp.compiler.save_plan(step, (images[:BATCH], labels[:BATCH], *weights), out / "train.plan")
    (out / "weights.bin").write_bytes(b"".join(w.numpy().tobytes() for w in weights))
    rows = tp.cat([(images.flatten(1) * 16).to(tp.int64), labels[:, None]], 1).tolist()
    (out / "digits.txt").write_text("".join(" ".join(map(str, row)) + "\n" for row in rows))
    print(f"{out / 'train.plan'}: a step; {out / 'weights.bin'}, {out / 'digits.txt'}: what it begins with")


if __name__ == "__main__":
    main()
