"""Trains the classifier of digits.py in several processes, each with its part of every batch.

    python -m tensorpy.distributed.run --nproc-per-node 2 examples/digits_ddp.py
    python examples/digits_ddp.py                # one process with the whole batch: the same losses

Gradients are averaged while backward goes on, so all processes take the same steps, and these are those of one process
with the whole batch. Prints the mean loss of each epoch and, in the end, the accuracy on digits that were held out.
"""

from __future__ import annotations

import argparse
import os

from digits import Mlp, load

import tensorpy as tp
import tensorpy.nn.functional as F
from tensorpy import distributed as dist
from tensorpy import optim
from tensorpy.nn.parallel import DistributedDataParallel
from tensorpy.utils.data import DataLoader, DistributedSampler, random_split

BATCH = 64  # of all processes together


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=10)
    args = parser.parse_args()
    if "RANK" in os.environ:
        dist.init_process_group()
    else:
        dist.init_process_group(rank=0, world_size=1, store=dist.HashStore())
    rank, size = dist.get_rank(), dist.get_world_size()

    tp.manual_seed(0)  # the same split in all processes; the first one's parameters are all processes' anyway
    training, test = random_split(load(), [0.8, 0.2])
    sampler = DistributedSampler(training, size, rank)
    loader = DataLoader(training, BATCH // size, sampler=sampler, drop_last=True)
    model = DistributedDataParallel(Mlp())
    optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        total = tp.zeros(())
        for images, labels in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            total += loss.detach()
        dist.all_reduce(total, dist.ReduceOp.AVG)
        if rank == 0:
            print(f"epoch {epoch + 1}: loss {total.item() / len(loader):.5f}")
    if rank == 0:
        images, labels = test.dataset[test.indices]
        with tp.no_grad():
            right = (model.module(images).argmax(1) == labels).float().mean().item()
        print(f"{right:.1%} of the held-out digits right, with {size} process{'es' if size > 1 else ''}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
