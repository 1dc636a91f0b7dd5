"""Functions whose calling convention no operator schema can express: operands in any number, dimensions as one
number.
"""

from __future__ import annotations

import operator
import warnings
from collections import namedtuple

from tensorpy import _C
from tensorpy._C import Tensor, istft, split  # noqa: F401  (PyTorch has these here as well)
from tensorpy._lowrank import pca_lowrank, svd_lowrank  # noqa: F401  (these too)
from tensorpy._tensor.dtypes import is_whole
from tensorpy._tensor.torch_function import make_overridable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, NamedTuple, overload

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def _subscripts(labels: Sequence[object]) -> str:
    """A list of numbers and `...` as the letters of an equation."""
    text = ""
    for label in labels:
        if label is ...:
            text += "..."
        elif not is_whole(label):
            raise TypeError(f"einsum(): a subscript in a list is an int or Ellipsis, not {type(label).__name__}")
        elif 0 <= label < len(_LETTERS):
            text += _LETTERS[label]
        else:
            raise ValueError("einsum(): subscript in subscript list is not within the valid range [0, 52)")
    return text


_NO_OPERANDS = (
    "einsum(): must specify the equation string and at least one operand, or at least one operand and its "
    "subscripts list"
)


if TYPE_CHECKING:

    @overload
    def einsum(equation: str, /, *operands: Tensor) -> Tensor: ...
    @overload
    def einsum(equation: str, operands: Sequence[Tensor], /) -> Tensor: ...
    @overload
    def einsum(operand: Tensor, subscripts: Sequence[object], /, *others: Tensor | Sequence[object]) -> Tensor: ...


def einsum(*args: Any) -> Tensor:
    """Sums of products by Einstein's convention: `einsum("ij,jk->ik", a, b)`.

    The operands follow one by one or as one list. Instead of an equation each operand may be followed by a list of
    numbers, its subscripts, and the output's list comes last: `einsum(a, [0, 1], b, [1, 2], [0, 2])`.

    Returns: a tensor with the dimensions that the equation names.

    Raises: ValueError without operands, RuntimeError for an equation that does not fit them.

    Example:
        >>> tp.einsum("ij,jk->ik", tp.ones(2, 3), tp.ones(3, 2))
        tensor([[3., 3.],
                [3., 3.]])
    """
    if len(args) < 2:
        raise ValueError(_NO_OPERANDS)
    equation, *operands = args
    if isinstance(equation, Tensor):
        operands = list(args[: len(args) - len(args) % 2 : 2])
        equation = ",".join(_subscripts(labels) for labels in args[1::2])
        if len(args) % 2:
            equation += "->" + _subscripts(args[-1])
    elif len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = list(operands[0])
    if not operands:
        raise ValueError(_NO_OPERANDS)
    return _C.einsum(equation, operands)


def tensordot(
    a: Tensor,
    b: Tensor,
    dims: int | Tensor | Sequence[Sequence[int]] = 2,
    out: Tensor | None = None,
) -> Tensor:
    """A contraction of the last `dims` dimensions of a with the first of b, or of two lists of dimensions.

    Arguments:
        a: the first tensor
        b: the second tensor, of a's dtype
        dims: how many dimensions, or which of a and which of b
        out: a tensor to write to, which is returned

    Returns: a tensor with the dimensions of a that are left, then those of b.

    Raises: RuntimeError for dims that are negative, too many, or of different sizes.

    Example:
        >>> tp.tensordot(tp.ones(2, 3, 4), tp.ones(3, 4, 5), dims=2).shape
        tensorpy.Size([2, 5])
    """
    if isinstance(dims, Tensor):
        dims = dims.tolist()
    if is_whole(dims):
        dims = operator.index(dims)
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(a.dim(), b.dim()):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        left: Sequence[int] = list(range(a.dim() - dims, a.dim()))
        right: Sequence[int] = list(range(dims))
    elif isinstance(dims, (list, tuple)) and len(dims) == 2:
        left, right = ([d] if is_whole(d) else list(d) for d in dims)
    else:
        raise RuntimeError(f"tensordot expects dims to be an int or two lists of ints, but got dims={dims}")
    if out is None:
        return _C.tensordot(a, b, left, right)
    return _C.tensordot(a, b, left, right, out=out)


# ---- operands in any number ----


def _operands(name: str, tensors: tuple[object, ...], may_be_empty: bool = False) -> Sequence[Tensor]:
    """Tensors that were given one by one or as one sequence, which may be empty where the operator says what then."""
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) and (tensors[0] or may_be_empty):
        return tensors[0]
    for i, tensor in enumerate(tensors):
        if not isinstance(tensor, Tensor):
            raise TypeError(
                f"expected Tensor as element {i} in argument 0, but got {type(tensor).__name__}: {name}() takes "
                "Tensors, or one list of them"
            )
    return tensors  # type: ignore[return-value]  # pyright: ignore[reportReturnType]


def broadcast_shapes(*shapes: Sequence[int] | int) -> _C.Size:
    """The shape that tensors of these shapes broadcast to.

    Returns: a Size.

    Raises: RuntimeError for sizes that do not broadcast, or are not ints.

    Example:
        >>> tp.broadcast_shapes((3, 1), (2,))
        tensorpy.Size([3, 2])
    """
    for shape in shapes:
        if not (is_whole(shape) or isinstance(shape, (tuple, list))):
            raise RuntimeError(f"Input shapes should be of type ints, a tuple of ints, or a list of ints, got {shape}")
    blanks = [_C.empty(shape if is_whole(shape) else tuple(shape), device="meta") for shape in shapes]
    return broadcast_tensors(*blanks)[0].shape if blanks else _C.Size()


def broadcast_tensors(*tensors: object) -> Sequence[Tensor]:
    """All tensors, given one by one or as a list, broadcast to their common shape.

    Returns: a tuple of views of one shape.

    Raises: RuntimeError for shapes that do not broadcast.

    Example:
        >>> a, b = tp.broadcast_tensors(tp.ones(3, 1), tp.ones(2))
        >>> a.shape
        tensorpy.Size([3, 2])
    """
    if not tensors:
        return ()
    return _C.broadcast_tensors(_operands("broadcast_tensors", tensors))


def meshgrid(*tensors: object, indexing: str | None = None) -> Sequence[Tensor]:
    """The coordinates of a grid, one tensor per axis: in the order of the axes ("ij") or with the first two swapped.

    Arguments:
        indexing: 'ij' or 'xy': whether the first input goes along rows or columns

    Returns: a tuple of views, each of shape (len(tensors[0]), len(tensors[1]), ...), or with the first two swapped.

    Raises: RuntimeError for no tensors, or for one of two or more dimensions.

    Example:
        >>> x, y = tp.meshgrid(tp.tensor([1, 2]), tp.tensor([3, 4]), indexing="ij")
        >>> y
        tensor([[3, 4],
                [3, 4]])
    """
    if indexing is None:
        warnings.warn(
            "torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument.", stacklevel=2
        )
    return _C.meshgrid(_operands("meshgrid", tensors, True), indexing="ij" if indexing is None else indexing)


def block_diag(*tensors: object) -> Tensor:
    """A matrix with the given ones along its diagonal and zeros elsewhere.

    Returns: a matrix as high and as wide as the given ones together, of the promoted dtype.

    Example:
        >>> tp.block_diag(tp.tensor([[1, 2]]), tp.tensor([[3]]))
        tensor([[1, 2, 0],
                [0, 0, 3]])
    """
    if not tensors:
        return _C.empty(1, 0)
    return _C.block_diag(_operands("block_diag", tensors))


def cartesian_prod(*tensors: object) -> Tensor:
    """All combinations of elements, one of each vector, as rows.

    Returns: a tensor (combinations, vectors); of one vector the vector.

    Raises: RuntimeError for no tensors, or for one that is not a vector.

    Example:
        >>> tp.cartesian_prod(tp.tensor([1, 2]), tp.tensor([3, 4]))
        tensor([[1, 3],
                [1, 4],
                [2, 3],
                [2, 4]])
    """
    if not tensors:
        raise RuntimeError("meshgrid expects a non-empty TensorList: cartesian_prod() of no tensors")
    return _C.cartesian_prod(_operands("cartesian_prod", tensors))


def _at_least(name: str, tensors: tuple[object, ...]) -> Any:
    function = getattr(_C, name)
    return function(tensors[0] if len(tensors) == 1 else _operands(name, tensors))


def atleast_1d(*tensors: object) -> Tensor | tuple[Tensor, ...]:
    """The tensor with one dimension or more; a tuple of several, given one by one or as a list.

    Returns: a tensor, or a tuple of tensors where several are given.

    Example:
        >>> tp.atleast_1d(tp.tensor(5)).shape
        tensorpy.Size([1])
    """
    return _at_least("atleast_1d", tensors)


def atleast_2d(*tensors: object) -> Tensor | tuple[Tensor, ...]:
    """The tensor with two dimensions or more; a tuple of several, given one by one or as a list.

    Returns: a tensor, or a tuple of tensors where several are given.

    Example:
        >>> tp.atleast_2d(tp.tensor(5)).shape
        tensorpy.Size([1, 1])
    """
    return _at_least("atleast_2d", tensors)


def atleast_3d(*tensors: object) -> Tensor | tuple[Tensor, ...]:
    """The tensor with three dimensions or more; a tuple of several, given one by one or as a list.

    Returns: a tensor, or a tuple of tensors where several are given.

    Example:
        >>> tp.atleast_3d(tp.tensor(5)).shape
        tensorpy.Size([1, 1, 1])
    """
    return _at_least("atleast_3d", tensors)


_segment_reduce = _C.segment_reduce  # the name under which PyTorch has it as well


def chain_matmul(*matrices: object, out: Tensor | None = None) -> Tensor:
    """The product of matrices, in the order that takes the fewest steps; see linalg.multi_dot.

    Arguments:
        out: a tensor to write to, which is returned

    Returns: a matrix of the first one's rows and the last one's columns.

    Raises: RuntimeError for matrices that do not fit.

    Example:
        >>> tp.chain_matmul(tp.ones(2, 3), tp.ones(3, 4), tp.ones(4, 2)).shape
        tensorpy.Size([2, 2])
    """
    warnings.warn(
        "torch.chain_matmul is deprecated and will be removed in a future PyTorch release. Use torch.linalg.multi_dot "
        "instead, which takes a list of tensors.",
        stacklevel=2,
    )
    given = _operands("chain_matmul", matrices)
    return _C.chain_matmul(given) if out is None else _C.chain_matmul(given, out=out)


# ---- results whose number depends on the arguments ----


def nonzero(input: Tensor, *, out: Tensor | None = None, as_tuple: bool = False) -> Tensor | tuple[Tensor, ...]:
    """The places of the elements that are not zero: one row each, or with as_tuple one tensor per dimension.

    Arguments:
        input: the tensor
        out: a tensor to write to, which is returned

    Returns: a tensor of int64, (count, input.ndim), or with as_tuple a tuple of input.ndim tensors (count,).

    Raises: RuntimeError for out= with as_tuple=True.

    Example:
        >>> tp.nonzero(tp.tensor([[0, 3], [5, 0]]))
        tensor([[0, 1],
                [1, 0]])
    """
    if as_tuple:
        if out is not None:
            raise RuntimeError("nonzero does not support the out kwarg when as_tuple is True")
        return tuple(_C.nonzero_numpy(input))
    return _C.nonzero(input) if out is None else _C.nonzero(input, out=out)


def _some(values: Tensor, inverse: Tensor, counts: Tensor, return_inverse: bool, return_counts: bool) -> object:
    if not (return_inverse or return_counts):
        return values
    return (values, *((inverse,) if return_inverse else ()), *((counts,) if return_counts else ()))


def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """The distinct elements, or slices along dim, in order; where each element went and how many there were.

    Arguments:
        input: the tensor
        sorted: whether the result is in order
        return_inverse: whether the places of the elements in the result are wanted
        return_counts: whether the number of each is wanted
        dim: the dimension; a negative one counts from the last

    Returns: a tensor, or a tuple of it with the places (return_inverse) and the counts (return_counts), both int64.

    Example:
        >>> tp.unique(tp.tensor([3, 1, 3]))
        tensor([1, 3])
        >>> tp.unique(tp.tensor([3, 1, 3]), return_counts=True)
        (tensor([1, 3]), tensor([1, 2]))
    """
    if dim is None:
        found = _C._unique2(input, sorted=sorted, return_inverse=return_inverse, return_counts=return_counts)
    else:
        found = _C.unique_dim(input, dim, sorted=sorted, return_inverse=return_inverse, return_counts=return_counts)
    return _some(*found, return_inverse, return_counts)


def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """The elements, or slices along dim, without those that equal the one before.

    Arguments:
        input: the tensor
        return_inverse: whether the places of the elements in the result are wanted
        return_counts: whether the number of each is wanted
        dim: the dimension; a negative one counts from the last

    Returns: a tensor, or a tuple of it with the places (return_inverse) and the counts (return_counts), both int64.

    Example:
        >>> tp.unique_consecutive(tp.tensor([1, 1, 2, 1]))
        tensor([1, 2, 1])
    """
    found = _C.unique_consecutive(input, return_inverse=return_inverse, return_counts=return_counts, dim=dim)
    return _some(*found, return_inverse, return_counts)


# ---- arguments of several kinds ----


if TYPE_CHECKING:

    class HistogramDD(NamedTuple):
        """What histogramdd gives."""

        hist: Tensor
        bin_edges: tuple[Tensor, ...]
else:  # `typing` would add a third to the time of `import tensorpy`
    HistogramDD = namedtuple("HistogramDD", ("hist", "bin_edges"))
    HistogramDD.__doc__ = """HistogramDD(hist, bin_edges): what histogramdd gives.

    Example:
        >>> tp.histogramdd(tp.tensor([[0.0], [1.0]]), bins=[2]).hist
        tensor([1., 1.])
    """


_CDIST_MODES = ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist")


def cdist(
    x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str | None = "use_mm_for_euclid_dist_if_necessary"
) -> Tensor:
    """The p-norm distances of the rows of two matrices, or batches of them.

    Arguments:
        x1: the first tensor, (*, P, M)
        x2: the second tensor, (*, R, M)
        p: the order of the norm
        compute_mode: how Euclidean distances are computed: by products from 25 rows on, always or never

    Returns: a tensor (*, P, R) of distances.

    Raises: RuntimeError for rows of different lengths, ValueError for an unknown compute_mode.

    Example:
        >>> tp.cdist(tp.tensor([[0.0, 0.0]]), tp.tensor([[3.0, 4.0], [0.0, 1.0]]))
        tensor([[5., 1.]])
    """
    if compute_mode is not None and compute_mode not in _CDIST_MODES:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    return _C.cdist(x1, x2, p, None if compute_mode is None else _CDIST_MODES.index(compute_mode))


def norm(
    input: Tensor,
    p: float | str | None = "fro",
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    out: Tensor | None = None,
    dtype: _C.dtype | None = None,
) -> Tensor:
    """The p-norm of all elements or along dimensions; "fro" is the 2-norm, "nuc" the sum of the singular values.

    Arguments:
        input: the tensor
        p: the order of the norm
        dim: the dimension; a negative one counts from the last
        keepdim: whether reduced dimensions stay, with size 1
        out: a tensor to write to, which is returned
        dtype: the dtype; None takes the usual one

    Returns: a tensor, without the dimensions dim unless keepdim.

    Raises: RuntimeError for an unknown p, and for "nuc" or "fro" over other than two dimensions.

    Example:
        >>> tp.norm(tp.tensor([3.0, 4.0]))
        tensor(5.)
    """
    if p == "nuc":
        x = input if dtype is None else input.to(dtype)
        if dim is None and x.dim() != 2:
            named = " ".join(str(d) for d in range(x.dim()))
            raise RuntimeError(f"linalg.matrix_norm: dim must be a 2-tuple. Got {named}")
        if dim is None:
            return _C.nuclear_norm(x, keepdim, out=out)
        return _C.nuclear_norm(x, dim, keepdim, out=out)
    if isinstance(p, str):
        if p != "fro":
            raise RuntimeError(f"norm(): Order {p} not supported; there are numbers, inf, 'fro' and 'nuc'")
        p = 2
    given = {} if out is None else {"out": out}
    if dim is None and dtype is None and not keepdim and not given:
        return _C.norm(input, 2 if p is None else p)
    dims = list(range(input.dim())) if dim is None else dim
    if dtype is not None:
        return _C.norm(input, p, dims, keepdim, dtype=dtype, **given)
    return _C.norm(input, p, dims, keepdim, **given)


def stft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Tensor:
    """The short-time Fourier transform: of windows that overlap, centred on their samples or not.

    Arguments:
        input: the tensor
        n_fft: how many elements each transform takes
        hop_length: the distance between frames; None takes n_fft // 4
        win_length: how long the window is; None takes n_fft
        window: what each frame is multiplied by, (win_length,); None for ones
        center: whether frames are centred, with padding at both ends
        pad_mode: how the signal goes on at its ends
        normalized: whether transforms are divided by the square root of n_fft
        onesided: whether only the half of the frequencies is there that a real signal needs
        return_complex: whether the result is complex
        align_to_window: where the first frame begins, if frames are not centred

    Returns: a tensor (*, frequencies, frames), complex with return_complex=True.

    Raises: RuntimeError for an input of other than one or two dimensions, or a window that is longer than n_fft.

    Example:
        >>> tp.stft(tp.ones(64), n_fft=16, window=tp.hann_window(16), return_complex=True).shape
        tensorpy.Size([9, 17])
    """
    lengths = (n_fft, hop_length, win_length, window)
    given = (normalized, onesided, return_complex, align_to_window)
    return _C.stft(input, *lengths, bool(center), pad_mode, *given)


def histogramdd(
    input: Tensor,
    bins: int | Sequence[int] | Sequence[Tensor],
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> HistogramDD:
    """The sums of weights in boxes, or how many points are there; the points are the rows of the last dimension.

    Arguments:
        input: the tensor
        bins: how many bins each dimension has, or their edges
        range: the lowest and the highest edge of each dimension
        weight: a weight for each point; None for ones
        density: whether the result is a density, whose integral is 1

    Returns: a named tuple (hist, bin_edges): a tensor with a dimension for each coordinate, and a tuple of their edges.

    Example:
        >>> tp.histogramdd(tp.tensor([[0.0, 1.0], [1.0, 0.0]]), bins=[2, 2]).hist
        tensor([[0., 1.],
                [1., 0.]])
    """
    edges: list[Tensor] = [] if is_whole(bins) else [bin for bin in bins if isinstance(bin, Tensor)]
    if edges and not is_whole(bins) and len(edges) == len(bins):
        return HistogramDD(_C._histogramdd_from_bin_tensors(input, edges, weight=weight, density=density), tuple(edges))
    counts: Any = [operator.index(bins)] * (input.shape[-1] if input.dim() else 0) if is_whole(bins) else bins
    ends = _C._histogramdd_bin_edges(input, counts, range=range, weight=weight, density=density)
    hist = _C._histogramdd_from_bin_cts(input, counts, range=range, weight=weight, density=density)
    return HistogramDD(hist, tuple(ends))


def lu(A: Tensor, pivot: bool = True, get_infos: bool = False) -> tuple[Tensor, ...]:
    """Deprecated: linalg.lu_factor, with the pivots and, if asked for, what linalg.lu_factor_ex says of each matrix.

    Arguments:
        A: the matrix, or a batch of them, (*, m, n)
        pivot: whether rows are exchanged
        get_infos: whether the errors come too, instead of being raised

    Returns: LU and the pivots, with get_infos also infos.

    Example:
        >>> LU, pivots = tp.lu(tp.tensor([[1.0, 2.0], [4.0, 3.0]]))
        >>> pivots
        tensor([2, 2], dtype=tensorpy.int32)
    """
    warnings.warn(
        "torch.lu is deprecated in favor of torch.linalg.lu_factor / torch.linalg.lu_factor_ex and will be removed in "
        "a future PyTorch release.",
        stacklevel=2,
    )
    LU, pivots, infos = _C._linalg.linalg_lu_factor_ex(A, pivot=pivot, check_errors=not get_infos)
    return (LU, pivots, infos) if get_infos else (LU, pivots)


def numel(input: Tensor) -> int:
    """The number of elements.

    Arguments:
        input: the tensor

    Returns: int.

    Example:
        >>> tp.numel(tp.ones(2, 3))
        6
    """
    return input.numel()


def unravel_index(indices: Tensor, shape: int | Sequence[int]) -> tuple[Tensor, ...]:
    """The coordinates, a tensor for each dimension, of places in a tensor of that shape that is flat.

    Arguments:
        indices: the indices
        shape: the sizes

    Returns: a tuple of tensors of int64, of the indices' shape.

    Raises: TypeError for a shape that is not ints, ValueError for negative ones.

    Example:
        >>> tp.unravel_index(tp.tensor([5, 2]), (2, 3))
        (tensor([1, 0]), tensor([2, 2]))
    """
    if isinstance(shape, Tensor) or (not hasattr(shape, "__iter__") and not is_whole(shape)):
        raise TypeError(f"expected 'shape' to be int or sequence of ints, but got {type(shape)}")
    given: Any = shape
    sizes: tuple[Any, ...] = tuple(given) if hasattr(given, "__iter__") else (given,)
    for size in sizes:
        if not is_whole(size):
            raise TypeError(f"expected 'shape' sequence to only contain ints, but got {type(size)}")
    if any(size < 0 for size in sizes):
        raise ValueError(f"'shape' cannot have negative values, but got {sizes}")
    return tuple(_C._unravel_index(indices, sizes))


make_overridable(
    __name__,
    (
        "atleast_1d",
        "atleast_2d",
        "atleast_3d",
        "block_diag",
        "broadcast_tensors",
        "cartesian_prod",
        "cdist",
        "chain_matmul",
        "einsum",
        "histogramdd",
        "lu",
        "meshgrid",
        "nonzero",
        "norm",
        "numel",
        "stft",
        "tensordot",
        "unique",
        "unique_consecutive",
        "unravel_index",
    ),
)
