"""utils.data in a job of several processes: each reads its share of a pipe, and all draw one order."""

from __future__ import annotations

from pathlib import Path

import pytest
from ranks import where, world

import tensorpy as tp
from tensorpy.utils.data import DataLoader
from tensorpy.utils.data.datapipes.iter import IterableWrapper


def read(rank: int, size: int, workers: int) -> list[list[int]]:
    tp.manual_seed(rank)
    pipe = IterableWrapper(range(20)).shuffle().sharding_filter()
    loader = DataLoader(pipe, batch_size=None, num_workers=workers, shuffle=True)
    return [list(loader) for _ in range(2)]


@pytest.mark.parametrize("workers", [0, 2])
def test_processes_read_a_share_each(workers: int, tmp_path: Path) -> None:
    for epoch in zip(*world(read, 2, where("file", tmp_path), workers), strict=True):
        assert [len(share) for share in epoch] == [10, 10]
        assert sorted(sample for share in epoch for sample in share) == list(range(20))
