"""Trains the GPT of gpt.py in several processes, none of which has the whole of it.

    python -m tensorpy.distributed.run --nproc-per-node 4 examples/gpt_fully_shard.py --steps 20 --save gpt_parts
    python -m tensorpy.distributed.run --nproc-per-node 2 examples/gpt_fully_shard.py --steps 40 --load gpt_parts
    python examples/gpt_fully_shard.py           # one process: the same losses

Parameters, gradients and the states of the optimizer lie in parts on the processes; `fully_shard` gathers those
of a block for as long as it runs. The model is made without memory, and each process draws its parts: those of the
model that is drawn whole. Every process computes its part of each batch. A checkpoint of any number of processes goes
on with any other.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from gpt import GPT, ROOT, batch

import tensorpy as tp
import tensorpy.nn.functional as F
from tensorpy import distributed as dist
from tensorpy import nn
from tensorpy.distributed import checkpoint
from tensorpy.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from tensorpy.distributed.fsdp import fully_shard
from tensorpy.distributed.tensor import DTensor

BATCH = 8  # of all processes together


def corpus() -> tuple[tp.Tensor, int]:
    """The characters of the documentation as numbers, and how many kinds there are."""
    text = "\n".join(page.read_text() for page in sorted((ROOT / "docs").glob("*.md")) if page.name != "support.md")
    alphabet = sorted(set(text))
    number = {letter: i for i, letter in enumerate(alphabet)}
    return tp.tensor([number[letter] for letter in text]), len(alphabet)


def sharded(characters: int) -> GPT:
    """The model in parts, which each process draws."""
    with tp.device("meta"):
        model = GPT(characters)
    for block in model.blocks:
        fully_shard(block)
    fully_shard(model)
    model.to_empty(device="cpu")
    tp.manual_seed(0)
    for module in model.modules():
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=0.02)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)
        if isinstance(module, nn.LayerNorm):
            module.reset_parameters()
    return model


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=40, help="the step at which it ends")
    parser.add_argument("--save", type=Path, help="a folder for the checkpoint at the end")
    parser.add_argument("--load", type=Path, help="the folder of one to go on from")
    args = parser.parse_args()
    if "RANK" in os.environ:
        dist.init_process_group()
    else:
        dist.init_process_group(rank=0, world_size=1, store=dist.HashStore())
    rank, size = dist.get_rank(), dist.get_world_size()

    data, characters = corpus()
    model = sharded(characters)
    optimizer = tp.optim.AdamW(model.parameters(), lr=1e-3)
    first = 0
    if args.load:
        of_model, of_optimizer = get_state_dict(model, optimizer)
        state: dict[str, Any] = {"model": of_model, "optimizer": of_optimizer, "step": 0}
        checkpoint.load(state, checkpoint_id=args.load)
        set_state_dict(model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
        first = state["step"]
    for step in range(first, args.steps):
        tp.manual_seed(step)  # all draw the whole batch, and take their part
        tokens, following = (t.chunk(size)[rank] for t in batch(data, BATCH))
        loss = F.cross_entropy(model(tokens).flatten(0, 1), following.flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        mean = loss.detach()
        dist.all_reduce(mean, dist.ReduceOp.AVG)
        if rank == 0:
            print(f"step {step + 1}: loss {mean.item():.3f}")
    if args.save:
        of_model, of_optimizer = get_state_dict(model, optimizer)
        checkpoint.save({"model": of_model, "optimizer": of_optimizer, "step": args.steps}, checkpoint_id=args.save)
    if rank == 0:
        mine = sum(p.to_local().numel() for p in model.parameters() if isinstance(p, DTensor))
        print(f"rank 0 of {size} has {mine} of {sum(p.numel() for p in model.parameters())} parameters")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
