"""Pipes of what a function makes of samples."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

from tensorpy.utils.data._utils.collate import default_collate
from tensorpy.utils.data.datapipes.datapipe import functional_datapipe
from tensorpy.utils.data.datapipes.iter._of_one import OfOne, picked
from tensorpy.utils.data.datapipes.utils.common import _check_unpickable_fn, validate_input_col

__all__ = ["Collator", "Mapper"]


@functional_datapipe("map")
class Mapper(OfOne):
    """fn of each sample, or of some columns of it; the result takes the column output_col's place (-1: at the end)."""

    def __init__(self, datapipe: Any, fn: Callable[..., Any], input_col: Any = None, output_col: Any = None) -> None:
        super().__init__(datapipe)
        _check_unpickable_fn(fn)
        if input_col is None and output_col is not None:
            raise ValueError("`output_col` must be None when `input_col` is None.")
        if isinstance(output_col, (list, tuple)):
            if len(output_col) != 1:
                raise ValueError("`output_col` must be a single-element list or tuple")
            output_col = output_col[0]
        validate_input_col(fn, input_col)
        self.fn, self.input_col, self.output_col = fn, input_col, output_col

    def _placed(self, sample: Any, result: Any) -> Any:
        if self.input_col is None:
            return result
        at = self.output_col
        if at is None:
            at = self.input_col[0] if isinstance(self.input_col, (list, tuple)) else self.input_col
        new = list(sample) if isinstance(sample, tuple) else copy.copy(sample)
        if at == -1 and isinstance(new, list) and self.output_col is not None:
            new.append(result)
        else:
            new[at] = result
        if self.output_col is None and isinstance(self.input_col, (list, tuple)):
            for other in sorted(self.input_col[1:], reverse=True):
                del new[other]
        return tuple(new) if isinstance(sample, tuple) else new

    def __iter__(self) -> Iterator[Any]:
        for sample in self.datapipe:
            yield self._placed(sample, self.fn(*picked(sample, self.input_col)))


@functional_datapipe("collate")
class Collator(Mapper):
    """Each batch as one sample, by collate_fn."""

    def __init__(self, datapipe: Any, conversion: Any = default_collate, collate_fn: Any = None) -> None:
        super().__init__(datapipe, conversion if collate_fn is None else collate_fn)
