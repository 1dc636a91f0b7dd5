"""Types that only annotations name."""

from __future__ import annotations

from typing import Any, List, Optional, Tuple, Union  # noqa: UP035  (the names are what programs import)


class _BroadcastingList:
    """A list of a length, which one number may stand for: `BroadcastingList2[int]`."""

    def __class_getitem__(cls, item: Any) -> Any:
        return list[item]


BroadcastingList1 = BroadcastingList2 = BroadcastingList3 = _BroadcastingList
BroadcastingList4 = BroadcastingList5 = BroadcastingList6 = _BroadcastingList

__all__ = [
    "Any", "BroadcastingList1", "BroadcastingList2", "BroadcastingList3", "BroadcastingList4", "BroadcastingList5",
    "BroadcastingList6", "List", "Optional", "Tuple", "Union",
]  # fmt: skip
