"""A pipe of some of the samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tensorpy.utils.data.datapipes.datapipe import IterDataPipe, functional_datapipe
from tensorpy.utils.data.datapipes.iter._of_one import picked
from tensorpy.utils.data.datapipes.utils.common import _check_unpickable_fn, validate_input_col

__all__ = ["Filter"]


@functional_datapipe("filter")
class Filter(IterDataPipe[Any]):
    """The samples that filter_fn, which says True or False, is true of."""

    def __init__(self, datapipe: Any, filter_fn: Callable[..., Any], input_col: Any = None) -> None:
        _check_unpickable_fn(filter_fn)
        validate_input_col(filter_fn, input_col)
        self.datapipe, self.filter_fn, self.input_col = datapipe, filter_fn, input_col

    def __iter__(self) -> Iterator[Any]:
        for sample in self.datapipe:
            wanted = self.filter_fn(*picked(sample, self.input_col))
            if not isinstance(wanted, bool):
                raise ValueError(f"Boolean output is required for `filter_fn` of {self}, got {type(wanted)}")
            if wanted:
                yield sample
