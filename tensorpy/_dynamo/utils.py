"""Counts of what became of functions that have a backend of the program's."""

from __future__ import annotations

from collections import Counter, defaultdict

# "stats" has unique_graphs, "frames" how many calls were recorded (total) and are graphs (ok), "graph_break" reasons.
counters: defaultdict[str, Counter[str]] = defaultdict(Counter)

__all__ = ["counters"]
