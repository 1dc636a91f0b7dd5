"""Profiles of all processes as one trace and one picture."""

from __future__ import annotations

import json
import time
from pathlib import Path
from xml.etree import ElementTree

from ranks import needs_mpi, where, world

import tensorpy as tp
from tensorpy import distributed as dist
from tensorpy.distributed.timeline import Timeline, gather_profiles, joined, without


def test_spans() -> None:
    assert joined([(4, 6), (0, 2), (1, 3), (3, 3.5)]) == [(0, 3.5), (4, 6)]
    assert without([(0, 10)], [(2, 3), (5, 6)]) == [(0, 2), (3, 5), (6, 10)]
    assert without([(0, 1), (4, 8)], [(0.5, 5), (7, 9)]) == [(0, 0.5), (5, 7)]
    assert without([(1, 2)], []) == [(1, 2)] and without([(1, 2)], [(0, 3)]) == []


def late(rank: int, size: int, path: str) -> None:
    """Rank 0 comes late to the second message: the others wait for it."""
    x = tp.ones(64)
    dist.all_reduce(x)
    with tp.profiler.profile() as p:
        if rank == 0:
            end = time.monotonic() + 0.3
            while time.monotonic() < end:
                tp.ones(256, 256) @ tp.ones(256, 256)
        dist.all_reduce(x)
    timeline = gather_profiles(p, dst=size - 1)
    assert (timeline is None) == (rank != size - 1)
    if timeline is not None:
        check(timeline, size, path)


def check(timeline: Timeline, size: int, path: str) -> None:
    assert [profile.rank for profile in timeline.ranks] == list(range(size))
    first, *others = timeline.ranks
    assert first.computing > 0.5 and first.waiting < 0.3
    assert all(profile.waiting > 0.6 for profile in others), str(timeline)
    timeline.export_chrome_trace(path)
    slices = json.loads(Path(path).read_text())["traceEvents"]
    assert {each["pid"] for each in slices} == set(range(size))
    names = {each["args"]["name"] for each in slices if each["name"] == "process_name"}
    assert names == {f"rank {rank}" for rank in range(size)}
    ids = [each["id"] for each in slices if each["ph"] == "b"]
    assert len(ids) == len(set(ids)) >= size
    picture = ElementTree.fromstring(timeline.svg())
    lanes = {each.text for each in picture if each.tag.endswith("text")}
    assert lanes >= {f"rank {rank}" for rank in range(size)}
    assert len(str(timeline).splitlines()) == size + 1


@needs_mpi
def test_who_waits(tmp_path: Path) -> None:
    for size in (2, 4):
        world(late, size, where("tcp", tmp_path), str(tmp_path / f"trace{size}.json"))


def test_a_world_of_one(tmp_path: Path) -> None:
    dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)
    try:
        alone(tmp_path)
    finally:
        dist.destroy_process_group()


def alone(folder: Path) -> None:
    with tp.profiler.profile() as p:
        tp.ones(3) + 1
    timeline = gather_profiles(p)
    assert timeline is not None and len(timeline.ranks) == 1 and "<svg" in timeline._repr_svg_()
    timeline.export_chrome_trace(folder / "one.json.gz")
    with tp.profiler.profile() as p:
        pass
    empty = gather_profiles(p)
    assert empty is not None and empty.ranks[0].computing == 0 and "<svg" in empty.svg()
