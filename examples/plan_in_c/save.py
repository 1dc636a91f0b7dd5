"""Trains the demo's classifier, and saves it as a plan for digit.c, with an image to try it on.

python examples/plan_in_c/save.py [--epochs 6] [--out .]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import tensorpy as tp
import tensorpy.nn.functional as F
from tensorpy import optim
from tensorpy.utils.data import DataLoader

sys.path.insert(0, str(Path(__file__).parents[1]))
from digits import Cnn, load


def train(epochs: int) -> Cnn:
    tp.manual_seed(0)
    model = Cnn()
    optimizer = optim.Adam(model.parameters(), lr=4e-3)
    for _ in range(epochs):
        for images, labels in DataLoader(load(), 64, shuffle=True):
            optimizer.zero_grad()
            F.cross_entropy(model(images), labels).backward()
            optimizer.step()
    return model.eval()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--out", type=Path, default=Path())
    args = parser.parse_args()
    model, data = train(args.epochs), load()
    image, label = data[0]
    tp.compiler.save_plan(model, (image[None],), args.out / "digits.plan")
    rows = (image[0] * 16).to(tp.int64).tolist()
    (args.out / "image.txt").write_text("\n".join(" ".join(map(str, row)) for row in rows) + "\n")
    print(f"{args.out / 'digits.plan'}: a classifier; {args.out / 'image.txt'}: a {int(label)}")


if __name__ == "__main__":
    main()
