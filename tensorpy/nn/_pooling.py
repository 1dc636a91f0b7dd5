"""Pooling.

Each max_ function has a form with indices, which its `return_indices` asks for.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tensorpy._tensor.dtypes import is_whole
from tensorpy.nn._common import Size, listed, nn, ops

if TYPE_CHECKING:
    from typing import Literal, Protocol, overload

    from tensorpy import Tensor

    # With return_indices a pool gives two tensors.
    class _MaxPool(Protocol):
        @overload
        def __call__(
            self,
            input: Tensor,
            kernel_size: Size,
            stride: Size | None = None,
            padding: Size = 0,
            dilation: Size = 1,
            ceil_mode: bool = False,
            return_indices: Literal[False] = False,
        ) -> Tensor: ...
        @overload
        def __call__(
            self,
            input: Tensor,
            kernel_size: Size,
            stride: Size | None = None,
            padding: Size = 0,
            dilation: Size = 1,
            ceil_mode: bool = False,
            *,
            return_indices: Literal[True],
        ) -> tuple[Tensor, Tensor]: ...
        @overload
        def __call__(
            self,
            input: Tensor,
            kernel_size: Size,
            stride: Size | None = None,
            padding: Size = 0,
            dilation: Size = 1,
            ceil_mode: bool = False,
            return_indices: bool = False,
        ) -> Any: ...

    class _MaxPoolWithIndices(Protocol):
        def __call__(
            self,
            input: Tensor,
            kernel_size: Size,
            stride: Size | None = None,
            padding: Size = 0,
            dilation: Size = 1,
            ceil_mode: bool = False,
            return_indices: bool = True,
        ) -> tuple[Tensor, Tensor]: ...

    class _AdaptiveMaxPool(Protocol):
        @overload
        def __call__(
            self, input: Tensor, output_size: OutputSize, return_indices: Literal[False] = False
        ) -> Tensor: ...
        @overload
        def __call__(
            self, input: Tensor, output_size: OutputSize, return_indices: Literal[True]
        ) -> tuple[Tensor, Tensor]: ...
        @overload
        def __call__(self, input: Tensor, output_size: OutputSize, return_indices: bool = False) -> Any: ...

    class _FractionalMaxPool(Protocol):
        @overload
        def __call__(
            self,
            input: Tensor,
            kernel_size: Size,
            output_size: Any = None,
            output_ratio: Any = None,
            return_indices: Literal[False] = False,
            _random_samples: Tensor | None = None,
        ) -> Tensor: ...
        @overload
        def __call__(
            self,
            input: Tensor,
            kernel_size: Size,
            output_size: Any = None,
            output_ratio: Any = None,
            return_indices: bool = False,
            _random_samples: Tensor | None = None,
        ) -> Any: ...

    class _FractionalMaxPoolWithIndices(Protocol):
        def __call__(
            self,
            input: Tensor,
            kernel_size: Size,
            output_size: Any = None,
            output_ratio: Any = None,
            return_indices: bool = False,
            _random_samples: Tensor | None = None,
        ) -> tuple[Tensor, Tensor]: ...

    class _AdaptiveMaxPoolWithIndices(Protocol):
        def __call__(
            self, input: Tensor, output_size: OutputSize, return_indices: bool = True
        ) -> tuple[Tensor, Tensor]: ...


__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool1d_with_indices",
    "adaptive_max_pool2d",
    "adaptive_max_pool2d_with_indices",
    "adaptive_max_pool3d",
    "adaptive_max_pool3d_with_indices",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "fractional_max_pool2d",
    "fractional_max_pool2d_with_indices",
    "fractional_max_pool3d",
    "fractional_max_pool3d_with_indices",
    "lp_pool1d",
    "lp_pool2d",
    "lp_pool3d",
    "max_pool1d",
    "max_pool1d_with_indices",
    "max_pool2d",
    "max_pool2d_with_indices",
    "max_pool3d",
    "max_pool3d_with_indices",
    "max_unpool1d",
    "max_unpool2d",
    "max_unpool3d",
]

OutputSize = int | Sequence[int | None]


Example = tuple[str, str]  # of a function that is made here: a call, after its name, and what comes of it


def _name(
    name: str, example: Example, pool: Callable[..., Any], with_indices: Callable[..., Any], raises: str = ""
) -> None:
    """Their names, and what comes back, is raised, and the example of their help."""
    call, result = example
    for function, own in ((pool, name), (with_indices, f"{name}_with_indices")):
        function.__name__ = function.__qualname__ = own
        if function.__doc__ is not None:  # python -OO has none
            called = f"values, indices = F.{own}{call.removesuffix('.shape')}\n    >>> values"
            shown = f"F.{own}{call}" if function is pool else called + (".shape" if call.endswith(".shape") else "")
            places = ", with return_indices also" if function is pool else ", and"
            parts = [
                inspect.cleandoc(function.__doc__),
                f"Returns: a tensor (*, C, ...), a window for each place{places} the places, int64.",
                *([f"Raises: {raises}"] if raises else []),
                f"Example:\n    >>> {shown}\n    {result}",
            ]
            function.__doc__ = "\n\n".join(parts)


def _max_pool(name: str, dims: int, example: Example) -> tuple[Callable[..., Any], Callable[..., Any]]:
    plain = getattr(ops, name)
    indexed = getattr(ops if dims == 1 else nn, f"{name}_with_indices")

    def with_indices(
        input: Tensor,
        kernel_size: Size,
        stride: Size | None = None,
        padding: Size = 0,
        dilation: Size = 1,
        ceil_mode: bool = False,
        return_indices: bool = True,
    ) -> tuple[Tensor, Tensor]:
        """The largest element of each window, and its place in the plane.

        Arguments:
            input: the tensor, with a batch or without: (N, C, ...) or (C, ...)
            kernel_size: the size of the window: one number for all dimensions, or one for each
            stride: how far the window moves; None takes kernel_size
            padding: how many elements are added at both sides of each dimension
            dilation: the distance between elements of the window
            ceil_mode: whether a window that begins inside and ends outside of the input counts
            return_indices: whether the places come too, as max_unpool takes them
        """
        return indexed(input, kernel_size, _stride(stride), padding, dilation, ceil_mode)

    def pool(
        input: Tensor,
        kernel_size: Size,
        stride: Size | None = None,
        padding: Size = 0,
        dilation: Size = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        """The largest element of each window; with `return_indices` also its place in the plane.

        Arguments:
            input: the tensor, with a batch or without: (N, C, ...) or (C, ...)
            kernel_size: the size of the window: one number for all dimensions, or one for each
            stride: how far the window moves; None takes kernel_size
            padding: how many elements are added at both sides of each dimension
            dilation: the distance between elements of the window
            ceil_mode: whether a window that begins inside and ends outside of the input counts
            return_indices: whether the places come too, as max_unpool takes them
        """
        function = indexed if return_indices else plain
        return function(input, kernel_size, _stride(stride), padding, dilation, ceil_mode)

    _name(name, example, pool, with_indices)
    return pool, with_indices


def _stride(stride: Size | None) -> Size:
    return [] if stride is None else stride


max_pool1d: _MaxPool
max_pool1d_with_indices: _MaxPoolWithIndices
max_pool1d, max_pool1d_with_indices = _max_pool(
    "max_pool1d", 1, ("(tp.tensor([[[1.0, 5.0, 3.0, 4.0]]]), 2)", "tensor([[[5., 4.]]])")
)
max_pool2d: _MaxPool
max_pool2d_with_indices: _MaxPoolWithIndices
max_pool2d, max_pool2d_with_indices = _max_pool(
    "max_pool2d", 2, ("(tp.ones(1, 3, 6, 6), 2).shape", "tensorpy.Size([1, 3, 3, 3])")
)
max_pool3d: _MaxPool
max_pool3d_with_indices: _MaxPoolWithIndices
max_pool3d, max_pool3d_with_indices = _max_pool(
    "max_pool3d", 3, ("(tp.ones(1, 3, 6, 6, 6), 2).shape", "tensorpy.Size([1, 3, 3, 3, 3])")
)


def avg_pool1d(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """The mean of each window of a signal.

    Arguments:
        input: the tensor
        kernel_size: the size of the window: one number for all dimensions, or one for each
        stride: how far the window moves: one number for all dimensions, or one for each
        padding: how many elements are added at both sides of each dimension
        ceil_mode: whether a window that begins inside and ends outside of the input counts
        count_include_pad: whether padding counts in an average

    Returns: a tensor (*, C, L), a window for each place.

    Example:
        >>> F.avg_pool1d(tp.tensor([[[1.0, 5.0, 3.0, 4.0]]]), 2)
        tensor([[[3.0000, 3.5000]]])
    """
    return ops.avg_pool1d(input, kernel_size, _stride(stride), padding, ceil_mode, count_include_pad)


def avg_pool2d(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The mean of each window.

    Arguments:
        input: the tensor
        kernel_size: the size of the window: one number for all dimensions, or one for each
        stride: how far the window moves: one number for all dimensions, or one for each
        padding: how many elements are added at both sides of each dimension
        ceil_mode: whether a window that begins inside and ends outside of the input counts
        count_include_pad: whether padding counts in an average
        divisor_override: what sums are divided by instead of the size of the window
        out: a tensor to write to, which is returned

    Returns: a tensor (*, C, H, W), a window for each place.

    Example:
        >>> F.avg_pool2d(tp.arange(16.0).view(1, 1, 4, 4), 2)
        tensor([[[[ 2.5000,  4.5000],
                  [10.5000, 12.5000]]]])
    """
    values = (kernel_size, _stride(stride), padding, ceil_mode, count_include_pad, divisor_override)
    return nn.avg_pool2d(input, *values) if out is None else nn.avg_pool2d(input, *values, out=out)


def avg_pool3d(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The mean of each box.

    Arguments:
        input: the tensor
        kernel_size: the size of the window: one number for all dimensions, or one for each
        stride: how far the window moves: one number for all dimensions, or one for each
        padding: how many elements are added at both sides of each dimension
        ceil_mode: whether a window that begins inside and ends outside of the input counts
        count_include_pad: whether padding counts in an average
        divisor_override: what sums are divided by instead of the size of the window
        out: a tensor to write to, which is returned

    Returns: a tensor (*, C, D, H, W), a window for each place.

    Example:
        >>> F.avg_pool3d(tp.ones(1, 2, 4, 4, 4), 2).shape
        tensorpy.Size([1, 2, 2, 2, 2])
    """
    values = (kernel_size, _stride(stride), padding, ceil_mode, count_include_pad, divisor_override)
    return nn.avg_pool3d(input, *values) if out is None else nn.avg_pool3d(input, *values, out=out)


def _power(norm_type: float) -> float:
    if norm_type == 0:
        raise ZeroDivisionError("lp_pool: the norm's power is zero")
    return norm_type


def lp_pool1d(
    input: Tensor, norm_type: float, kernel_size: int, stride: Size | None = None, ceil_mode: bool = False
) -> Tensor:
    """The norm of each window of a signal.

    Arguments:
        input: the tensor
        norm_type: which norm: 2 the Euclidean one
        kernel_size: the size of the window: one number for all dimensions, or one for each
        stride: how far the window moves: one number for all dimensions, or one for each
        ceil_mode: whether a window that begins inside and ends outside of the input counts

    Returns: a tensor (*, C, L), a window for each place.

    Example:
        >>> F.lp_pool1d(tp.tensor([[[3.0, 4.0, 0.0, 1.0]]]), 2.0, 2)
        tensor([[[5., 1.]]])
    """
    return ops._lp_pool1d(input, _power(norm_type), kernel_size, _stride(stride), ceil_mode)


def lp_pool2d(
    input: Tensor, norm_type: float, kernel_size: Size, stride: Size | None = None, ceil_mode: bool = False
) -> Tensor:
    """The norm of each window.

    Arguments:
        input: the tensor
        norm_type: which norm: 2 the Euclidean one
        kernel_size: the size of the window: one number for all dimensions, or one for each
        stride: how far the window moves: one number for all dimensions, or one for each
        ceil_mode: whether a window that begins inside and ends outside of the input counts

    Returns: a tensor (*, C, H, W), a window for each place.

    Example:
        >>> F.lp_pool2d(tp.ones(1, 3, 4, 4), 2.0, 2).shape
        tensorpy.Size([1, 3, 2, 2])
    """
    return ops._lp_pool2d(input, _power(norm_type), kernel_size, _stride(stride), ceil_mode)


def lp_pool3d(
    input: Tensor, norm_type: float, kernel_size: Size, stride: Size | None = None, ceil_mode: bool = False
) -> Tensor:
    """The norm of each box.

    Arguments:
        input: the tensor
        norm_type: which norm: 2 the Euclidean one
        kernel_size: the size of the window: one number for all dimensions, or one for each
        stride: how far the window moves: one number for all dimensions, or one for each
        ceil_mode: whether a window that begins inside and ends outside of the input counts

    Returns: a tensor (*, C, D, H, W), a window for each place.

    Example:
        >>> F.lp_pool3d(tp.ones(1, 3, 4, 4, 4), 2.0, 2).shape
        tensorpy.Size([1, 3, 2, 2, 2])
    """
    return ops._lp_pool3d(input, _power(norm_type), kernel_size, _stride(stride), ceil_mode)


# ---- maxima back where they were ----


_AXES = {1: "one element (width)", 2: "two elements (height, width)", 3: "three elements (depth, height, width)"}


def _unpool(
    input: Tensor,
    indices: Tensor,
    kernel_size: Size,
    stride: Size | None,
    padding: Size,
    output_size: Any,
    dims: int,
) -> Tensor:
    kernel = listed(kernel_size, dims)
    step, border = listed(kernel if stride is None else stride, dims), listed(padding, dims)
    spatial = input.shape[-dims:]
    for name, numbers in (("output_size", kernel), ("stride", step), ("padding", border)):
        if len(numbers) != dims:
            raise RuntimeError(
                f"There should be exactly {_AXES[dims]} in {name}, but got {len(numbers)} elements: a number, or one "
                "for each"
            )
    sizes = [(n - 1) * s - 2 * p + k for n, s, p, k in zip(spatial, step, border, kernel, strict=True)]
    if output_size is not None:
        wanted = list(output_size)[-dims:]
        if len(output_size) not in (dims, dims + 2):
            raise ValueError(
                f"output_size should be a sequence containing {dims} or {dims + 2} elements, but it has a length of "
                f"'{len(output_size)}'"
            )
        for size, s, want in zip(sizes, step, wanted, strict=True):
            if not size - s < want < size + s:
                raise ValueError(f'invalid output_size "{wanted}" (between {size - s} and {size + s} in each place)')
        sizes = wanted
    if input.shape != indices.shape:
        raise RuntimeError(
            f"Expected shape of indices to be same as that of the input tensor ({input.shape}) but got {indices.shape}"
        )
    if dims == 1:
        return nn.max_unpool2d(input.contiguous().unsqueeze(-1), indices.unsqueeze(-1), [*sizes, 1]).squeeze(-1)
    return nn.max_unpool2d(input, indices, sizes) if dims == 2 else nn.max_unpool3d(input, indices, sizes, step, border)


def max_unpool1d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    output_size: Any = None,
) -> Tensor:
    """The maxima of max_pool1d back where they were, zero elsewhere.

    Arguments:
        input: the tensor
        indices: the indices
        kernel_size: the size of the window: one number for all dimensions, or one for each
        stride: how far the window moves: one number for all dimensions, or one for each
        padding: how many elements are added at both sides of each dimension
        output_size: the sizes of the output: one number for all dimensions, or one for each

    Returns: a tensor (*, C, L).

    Raises: ValueError for an output_size that the windows cannot give.

    Example:
        >>> y, at = F.max_pool1d(tp.tensor([[[1.0, 5.0, 3.0, 4.0]]]), 2, return_indices=True)
        >>> F.max_unpool1d(y, at, 2)
        tensor([[[0., 5., 0., 4.]]])
    """
    return _unpool(input, indices, kernel_size, stride, padding, output_size, 1)


def max_unpool2d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    output_size: Any = None,
) -> Tensor:
    """The maxima of max_pool2d back where they were, zero elsewhere.

    Arguments:
        input: the tensor
        indices: the indices
        kernel_size: the size of the window: one number for all dimensions, or one for each
        stride: how far the window moves: one number for all dimensions, or one for each
        padding: how many elements are added at both sides of each dimension
        output_size: the sizes of the output: one number for all dimensions, or one for each

    Returns: a tensor (*, C, H, W).

    Raises: ValueError for an output_size that the windows cannot give.

    Example:
        >>> y, at = F.max_pool2d(tp.ones(1, 3, 4, 4), 2, return_indices=True)
        >>> F.max_unpool2d(y, at, 2).shape
        tensorpy.Size([1, 3, 4, 4])
    """
    return _unpool(input, indices, kernel_size, stride, padding, output_size, 2)


def max_unpool3d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    output_size: Any = None,
) -> Tensor:
    """The maxima of max_pool3d back where they were, zero elsewhere.

    Arguments:
        input: the tensor
        indices: the indices
        kernel_size: the size of the window: one number for all dimensions, or one for each
        stride: how far the window moves: one number for all dimensions, or one for each
        padding: how many elements are added at both sides of each dimension
        output_size: the sizes of the output: one number for all dimensions, or one for each

    Returns: a tensor (*, C, D, H, W).

    Raises: ValueError for an output_size that the windows cannot give.

    Example:
        >>> y, at = F.max_pool3d(tp.ones(1, 3, 4, 4, 4), 2, return_indices=True)
        >>> F.max_unpool3d(y, at, 2).shape
        tensorpy.Size([1, 3, 4, 4, 4])
    """
    return _unpool(input, indices, kernel_size, stride, padding, output_size, 3)


# ---- windows at random places ----


def _fractional(
    input: Tensor, kernel_size: Size, output_size: Any, output_ratio: Any, samples: Tensor | None, dims: int
) -> tuple[Tensor, Tensor]:
    if (output_size is None) == (output_ratio is None):
        raise ValueError(f"fractional_max_pool{dims}d needs an output_size or an output_ratio")
    if output_size is None:
        ratios = [output_ratio] * dims if isinstance(output_ratio, (int, float)) else list(output_ratio)
        output_size = [int(n * r) for n, r in zip(input.shape[-dims:], ratios, strict=True)]
    if samples is None:
        batch = 1 if input.dim() == dims + 1 else input.shape[0]
        samples = ops.rand(batch, input.shape[-dims - 1], dims, dtype=input.dtype, device=input.device)
    pool: Any = nn.fractional_max_pool2d if dims == 2 else nn.fractional_max_pool3d
    return pool(input, listed(kernel_size, dims), listed(output_size, dims), samples)


def _fractional_max_pool(dims: int, example: Example) -> tuple[Callable[..., Any], Callable[..., Any]]:
    def with_indices(
        input: Tensor,
        kernel_size: Size,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """The largest elements of windows at random places, and their places.

        Arguments:
            input: the tensor, with a batch or without: (N, C, ...) or (C, ...)
            kernel_size: the size of the window: one number for all dimensions, or one for each
            output_size: the sizes of the output: one number for all dimensions, or one for each
            output_ratio: the output's sizes as parts of the input's; instead of output_size
            return_indices: whether the places come too, as max_unpool takes them
        """
        return _fractional(input, kernel_size, output_size, output_ratio, _random_samples, dims)

    def pool(
        input: Tensor,
        kernel_size: Size,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> Any:
        """The largest elements of windows at random places.

        Arguments:
            input: the tensor, with a batch or without: (N, C, ...) or (C, ...)
            kernel_size: the size of the window: one number for all dimensions, or one for each
            output_size: the sizes of the output: one number for all dimensions, or one for each
            output_ratio: the output's sizes as parts of the input's; instead of output_size
            return_indices: whether the places come too, as max_unpool takes them
        """
        both = _fractional(input, kernel_size, output_size, output_ratio, _random_samples, dims)
        return both if return_indices else both[0]

    name = f"fractional_max_pool{dims}d"
    _name(name, example, pool, with_indices, "ValueError for both output_size and output_ratio, or neither.")
    return pool, with_indices


fractional_max_pool2d: _FractionalMaxPool
fractional_max_pool2d_with_indices: _FractionalMaxPoolWithIndices
fractional_max_pool2d, fractional_max_pool2d_with_indices = _fractional_max_pool(
    2, ("(tp.ones(1, 3, 8, 8), 2, output_size=5).shape", "tensorpy.Size([1, 3, 5, 5])")
)
fractional_max_pool3d: _FractionalMaxPool
fractional_max_pool3d_with_indices: _FractionalMaxPoolWithIndices
fractional_max_pool3d, fractional_max_pool3d_with_indices = _fractional_max_pool(
    3, ("(tp.ones(1, 3, 8, 8, 8), 2, output_size=5).shape", "tensorpy.Size([1, 3, 5, 5, 5])")
)


# ---- to a given size ----


def _output_size(input: Tensor, output_size: OutputSize, dims: int) -> Size:
    """None keeps a dimension."""
    if is_whole(output_size):
        return output_size
    if len(output_size) >= input.dim():
        raise ValueError(f"Input dimension should be at least {len(output_size) + 1}")
    sizes = input.shape[-len(output_size) :] if output_size else ()
    return [size if wanted is None else wanted for wanted, size in zip(output_size, sizes, strict=True)]


def adaptive_avg_pool1d(input: Tensor, output_size: Size) -> Tensor:
    """Means over windows that divide each signal into `output_size` parts.

    Arguments:
        input: the tensor
        output_size: the sizes of the output: one number for all dimensions, or one for each

    Returns: a tensor (*, C, output_size).

    Example:
        >>> F.adaptive_avg_pool1d(tp.tensor([[[1.0, 5.0, 3.0, 4.0]]]), 2)
        tensor([[[3.0000, 3.5000]]])
    """
    return ops.adaptive_avg_pool1d(input, output_size)


def adaptive_avg_pool2d(input: Tensor, output_size: OutputSize) -> Tensor:
    """Means over windows that divide each plane into `output_size` parts; None keeps a dimension.

    Arguments:
        input: the tensor
        output_size: the sizes of the output: one number for all dimensions, or one for each

    Returns: a tensor (*, C, H, W) of output_size.

    Example:
        >>> F.adaptive_avg_pool2d(tp.ones(1, 3, 7, 9), (2, 2)).shape
        tensorpy.Size([1, 3, 2, 2])
    """
    return nn.adaptive_avg_pool2d(input, _output_size(input, output_size, 2))


def adaptive_avg_pool3d(input: Tensor, output_size: OutputSize) -> Tensor:
    """Means over boxes that divide each volume into `output_size` parts; None keeps a dimension.

    Arguments:
        input: the tensor
        output_size: the sizes of the output: one number for all dimensions, or one for each

    Returns: a tensor (*, C, D, H, W) of output_size.

    Example:
        >>> F.adaptive_avg_pool3d(tp.ones(1, 3, 5, 7, 9), 2).shape
        tensorpy.Size([1, 3, 2, 2, 2])
    """
    return nn.adaptive_avg_pool3d(input, _output_size(input, output_size, 3))


def _adaptive_max_pool(name: str, dims: int, example: Example) -> tuple[Callable[..., Any], Callable[..., Any]]:
    function = getattr(ops if dims == 1 else nn, name)

    def with_indices(input: Tensor, output_size: OutputSize, return_indices: bool = True) -> tuple[Tensor, Tensor]:
        """The largest elements of windows that divide the input into `output_size` parts, and their places.

        Arguments:
            input: the tensor, with a batch or without: (N, C, ...) or (C, ...)
            output_size: the sizes of the output: one number for all dimensions, or one for each; None keeps one
            return_indices: whether the places come too, as max_unpool takes them
        """
        return function(input, _output_size(input, output_size, dims))

    def pool(input: Tensor, output_size: OutputSize, return_indices: bool = False) -> Any:
        """The largest elements of windows that divide the input into `output_size` parts.

        Arguments:
            input: the tensor, with a batch or without: (N, C, ...) or (C, ...)
            output_size: the sizes of the output: one number for all dimensions, or one for each; None keeps one
            return_indices: whether the places come too, as max_unpool takes them
        """
        both = function(input, _output_size(input, output_size, dims))
        return both if return_indices else both[0]

    _name(name, example, pool, with_indices)
    return pool, with_indices


adaptive_max_pool1d: _AdaptiveMaxPool
adaptive_max_pool1d_with_indices: _AdaptiveMaxPoolWithIndices
adaptive_max_pool1d, adaptive_max_pool1d_with_indices = _adaptive_max_pool(
    "adaptive_max_pool1d", 1, ("(tp.tensor([[[1.0, 5.0, 3.0, 4.0]]]), 2)", "tensor([[[5., 4.]]])")
)
adaptive_max_pool2d: _AdaptiveMaxPool
adaptive_max_pool2d_with_indices: _AdaptiveMaxPoolWithIndices
adaptive_max_pool2d, adaptive_max_pool2d_with_indices = _adaptive_max_pool(
    "adaptive_max_pool2d", 2, ("(tp.ones(1, 3, 7, 9), (2, 4)).shape", "tensorpy.Size([1, 3, 2, 4])")
)
adaptive_max_pool3d: _AdaptiveMaxPool
adaptive_max_pool3d_with_indices: _AdaptiveMaxPoolWithIndices
adaptive_max_pool3d, adaptive_max_pool3d_with_indices = _adaptive_max_pool(
    "adaptive_max_pool3d", 3, ("(tp.ones(1, 3, 5, 7, 9), 2).shape", "tensorpy.Size([1, 3, 2, 2, 2])")
)
