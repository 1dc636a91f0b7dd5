"""Pointwise functions from CUDA's C++, which nothing here compiles: one may be made, and raises when it is called."""

from __future__ import annotations

from typing import Any


class _JittedFunction:
    """A function that waits for a device of CUDA's."""

    def __init__(self, code_string: str, return_by_ref: bool, num_outputs: int, **kwargs: Any) -> None:
        self.code_string, self.return_by_ref, self.num_outputs = code_string, return_by_ref, num_outputs
        self.kwargs_dict = kwargs

    def __call__(self, *tensors: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            "Jiterator is only supported on CUDA and ROCm GPUs, none are available. An operator of tensorpy's own is "
            "one expression in YAML: see docs/adding_an_operator.md"
        )


def _create_jit_fn(code_string: str, **kwargs: Any) -> _JittedFunction:
    return _JittedFunction(code_string, False, 1, **kwargs)


def _create_multi_output_jit_fn(code_string: str, num_outputs: int, **kwargs: Any) -> _JittedFunction:
    return _JittedFunction(code_string, True, num_outputs, **kwargs)
