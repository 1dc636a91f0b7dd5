"""The model of many machines: what it must say whatever its numbers are, and SimGrid beside it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from benchmarks.scale import BUCKET, MODELS, NETWORKS, RANKS, Network, all_reduce, efficiency, simulate, step, table

PAGE = Path(__file__).resolve().parents[2] / "docs" / "distributed.md"


def test_the_model() -> None:
    for model in MODELS:
        for network in NETWORKS:
            found = [efficiency(n, model, network) for n in RANKS]
            assert found == sorted(found, reverse=True) and 0 < found[-1] and found[0] < 1
            assert efficiency(1, model, network) == pytest.approx(1)
        slow, *_, fast = (step(64, model, network) for network in NETWORKS)
        assert slow > 2 * fast
    assert all_reduce(1, BUCKET, NETWORKS[0]) == 0


def test_the_table_of_the_page() -> None:
    page = PAGE.read_text()
    for line in table().splitlines()[1:]:
        assert line.rstrip() in page


@pytest.mark.skipif(not shutil.which("smpirun"), reason="no SimGrid: apt install libsimgrid-dev")
@pytest.mark.parametrize("ranks", [8, 16])
@pytest.mark.parametrize("network", NETWORKS[:3], ids=lambda network: network.name)
def test_simgrid_says_the_same(ranks: int, network: Network) -> None:
    """With Ethernet, that is: on faster networks the sums, which SimGrid does not count, are a third of the time."""
    assert simulate(ranks, BUCKET, network) == pytest.approx(all_reduce(ranks, BUCKET, network), rel=0.25)
