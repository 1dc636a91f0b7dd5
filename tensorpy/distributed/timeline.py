"""Profiles of all processes of a group as one: a trace in one file, and a picture of who computed and who waited."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import tensorpy as tp
from tensorpy._C import _profiler
from tensorpy.distributed.distributed_c10d import all_gather, barrier, gather_object, get_rank, get_world_size
from tensorpy.profiler import _chrome
from tensorpy.profiler._event import BACKWARD, MESSAGE, OPERATOR, FunctionEvent

__all__ = ["RankProfile", "Timeline", "gather_profiles"]

Span = tuple[float, float]  # from when to when, in microseconds

WIDTH, LANE, LEFT = 900, 22, 90
COMPUTES, WAITS, ELSE = "#5b8c5b", "#c0504d", "#ececec"


def joined(spans: Iterable[Span]) -> list[Span]:
    """The times that any of them covers, in order and without overlaps."""
    found: list[Span] = []
    for begin, end in sorted(spans):
        if found and begin <= found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((begin, end))
    return found


def without(spans: Sequence[Span], others: Sequence[Span]) -> list[Span]:
    """What of `spans` no other covers; both are joined."""
    found: list[Span] = []
    at = 0
    for begin, end in spans:
        while at < len(others) and others[at][1] <= begin:
            at += 1
        k = at
        while k < len(others) and others[k][0] < end:
            if others[k][0] > begin:
                found.append((begin, others[k][0]))
            begin = max(begin, others[k][1])
            k += 1
        if begin < end:
            found.append((begin, end))
    return found


def length(spans: Iterable[Span]) -> float:
    return sum(end - begin for begin, end in spans)


@dataclass
class RankProfile:
    """What one process did, in the time of the first one.

    Arguments:
        rank: the process in its group
        host: where it ran
        begin: when its profile began, in microseconds
        end: when it ended
        computes: when operators or backward nodes ran: pairs of microseconds
        waits: when a message was under way and none of these ran
        events: slices of a Chrome trace

    Example:
        >>> tp.distributed.timeline.RankProfile(0, "here", 0.0, 10.0, [(1.0, 4.0)], [(4.0, 9.0)], []).waiting
        0.5
    """

    rank: int
    host: str
    begin: float
    end: float
    computes: list[Span]
    waits: list[Span]
    events: list[dict[str, Any]]

    def _share(self, spans: list[Span]) -> float:
        return length(spans) / (self.end - self.begin) if self.end > self.begin else 0.0

    @property
    def computing(self) -> float:
        """The part of its time in which it computed."""
        return self._share(self.computes)

    @property
    def waiting(self) -> float:
        """The part of its time in which it had nothing to do but wait for a message."""
        return self._share(self.waits)


def _of(events: Sequence[FunctionEvent], rank: int, shift: float) -> RankProfile:
    def spans(kinds: tuple[int, ...]) -> list[Span]:
        ranges = (event.time_range for event in events if event.kind in kinds)
        return joined((r.start + shift, r.end + shift) for r in ranges)

    computes, messages = spans((OPERATOR, BACKWARD)), spans((MESSAGE,))
    begin = min((e.time_range.start for e in events), default=0.0) + shift
    end = max((e.time_range.end for e in events), default=0.0) + shift
    slices = [_moved(each, rank, shift) for each in _chrome.trace(events)]
    return RankProfile(rank, socket.gethostname(), begin, end, computes, without(messages, computes), slices)


def _moved(slice: dict[str, Any], rank: int, shift: float) -> dict[str, Any]:
    """A slice with its process and its numbers as no other rank has them."""
    pid = slice["pid"]
    moved = {**slice, "pid": rank if isinstance(pid, int) else f"rank {rank} {pid}"}
    if "ts" in slice:
        moved["ts"] = slice["ts"] + shift
    if "id" in slice:
        moved["id"] = f"{rank}.{slice['id']}"
    if slice["name"] == "process_name":
        moved["args"] = {"name": f"rank {rank}"}
    return moved


class Timeline:
    """Profiles of all processes of a group. A notebook shows it as a picture.

    Arguments:
        ranks: a profile for each process

    Example:
        >>> with tp.profiler.profile() as p:
        ...     y = tp.ones(2) + 1
        >>> len(tp.distributed.timeline.gather_profiles(p).ranks)  # in a world of one process
        1
    """

    ranks: list[RankProfile]

    def __init__(self, ranks: Sequence[RankProfile]) -> None:
        self.ranks = list(ranks)

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Writes one Chrome trace in which each rank is a process.

        Arguments:
            path: the file; a name that ends in .gz is compressed
        """
        _chrome.write_slices(path, [each for profile in self.ranks for each in profile.events], {})

    def svg(self) -> str:
        """A lane for each rank: green where it computed, red where it waited for messages."""
        begin = min((p.begin for p in self.ranks), default=0.0)
        span = max((p.end for p in self.ranks), default=0.0) - begin or 1.0
        scale = (WIDTH - LEFT) / span
        parts = [f'<text x="{LEFT}" y="14">{span / 1e3:.3g} ms: green computes, red waits for messages</text>']
        for lane, profile in enumerate(self.ranks):
            top = 24 + lane * LANE
            parts.append(f'<text x="0" y="{top + 14}">{escape(f"rank {profile.rank}")}</text>')
            for spans, colour in (
                ([(profile.begin, profile.end)], ELSE), (profile.waits, WAITS), (profile.computes, COMPUTES)
            ):  # fmt: skip
                parts += [
                    f'<rect x="{LEFT + (a - begin) * scale:.1f}" y="{top}" width="{(b - a) * scale:.1f}" '
                    f'height="{LANE - 4}" fill="{colour}"/>'
                    for a, b in _visible(spans, 0.5 / scale)
                ]
        head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {24 + LANE * len(self.ranks)}"'
        return f'{head} width="100%" font-family="monospace" font-size="11">{"".join(parts)}</svg>'

    def _repr_svg_(self) -> str:
        return self.svg()

    def __str__(self) -> str:
        lines = ["rank  computes  waits  host"]
        lines += [f"{p.rank:4}  {p.computing:8.0%}  {p.waiting:5.0%}  {p.host}" for p in self.ranks]
        return "\n".join(lines)


def _visible(spans: Iterable[Span], least: float) -> list[Span]:
    """Spans with those joined between which nobody would see a gap."""
    return [(a, b - least) for a, b in joined((a, b + least) for a, b in spans)]


def gather_profiles(p: Any, group: Any = None, dst: int = 0) -> Timeline | None:
    """The profiles of all processes of a group, in one of them: all call it. Clocks of several hosts are set by a
    barrier, which is exact to about the time of a message.

    Arguments:
        p: a profile that has ended
        group: the processes; None takes all
        dst: the process that gets them, by its rank in the world

    Returns: a Timeline in dst, None in the others.

    Example:
        >>> with tp.profiler.profile() as p:
        ...     y = tp.ones(2) + 1
        >>> print(str(tp.distributed.timeline.gather_profiles(p)).partition("  ")[0])
        rank
    """
    size, rank = get_world_size(group), get_rank(group)
    barrier(group)
    clocks = [tp.empty(1, dtype=tp.int64) for _ in range(size)]
    mine = tp.tensor([_profiler.now()])
    all_gather(clocks, mine, group)
    found: list[Any] | None = [None] * size if get_rank() == dst else None
    gather_object(_of(p.events(), rank, (clocks[0] - mine).item() / 1e3), found, dst, group)
    return None if found is None else Timeline(found)
