"""MaskedTensor: a tensor some of whose elements are left out, and a mask that says which count.

    >>> masked_tensor(tp.tensor([1.0, 2.0]), tp.tensor([True, False]))
    MaskedTensor(
      [  1.0000,       --]
    )

Operators run on the data (Note [Wrappers] in csrc/python/python_key.h): those that compute element by element keep the
mask, which several arguments share; those that move elements move the mask's too; reductions are those of masked.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy.autograd.function import Function
from tensorpy.overrides import resolve_name

__all__ = ["MaskedTensor", "as_masked_tensor", "is_masked_tensor", "masked_tensor"]

_LAYOUTS = (_C.strided, _C.sparse_coo, _C.sparse_csr)
_DTYPES = (_C.float16, _C.float32, _C.float64, _C.bool, _C.int8, _C.int16, _C.int32, _C.int64)

# Functions of tensorpy.masked that calls come to: one element of many, whose mask is whether any of them counts, and
# one for each.
_REDUCTIONS = ("sum", "mean", "amin", "amax", "argmin", "argmax", "prod", "norm", "var", "std", "logsumexp", "median")
_SCANS = ("softmax", "log_softmax", "softmin", "cumsum", "cumprod")
_OF_MASKED = frozenset(name for name in dir(_C._masked) if name.startswith("masked_")) - {"masked_logaddexp"}
# Operators that only move elements and are no views.
_MOVES = frozenset("cat flip gather im2col index index_select repeat roll stack".split())
_MOVES_BACK = frozenset("_index_backward col2im gather_backward select_backward slice_backward unfold_backward".split())
_LIKE = frozenset("empty_like full_like ones_like rand_like randn_like zeros_like".split())


def is_masked_tensor(obj: Any, /) -> bool:
    """Whether it is a MaskedTensor.

    Arguments:
        obj: any object

    Returns: bool.

    Example:
        >>> tp.masked.is_masked_tensor(tp.ones(2))
        False
    """
    return isinstance(obj, MaskedTensor)


def masked_tensor(data: Any, mask: Any, requires_grad: bool = False) -> MaskedTensor:
    """A MaskedTensor of copies of both, without history.

    Arguments:
        data: the elements
        mask: of bool and the same size, True where an element counts
        requires_grad: whether a gradient is wanted

    Returns: a MaskedTensor.

    Example:
        >>> import warnings
        >>> warnings.simplefilter("ignore")
        >>> tp.masked.masked_tensor(tp.tensor([1.0, 2.0, 3.0]), tp.tensor([True, False, True])).sum()
        MaskedTensor(  4.0000, True)
    """
    return MaskedTensor(data, mask, requires_grad)


def as_masked_tensor(data: Any, mask: Any) -> MaskedTensor:
    """A MaskedTensor whose gradient goes to `data`.

    Arguments:
        data: the elements
        mask: of bool and the same size, True where an element counts

    Returns: a MaskedTensor.

    Example:
        >>> x = tp.tensor([1.0, 2.0], requires_grad=True)
        >>> tp.masked.as_masked_tensor(x, tp.tensor([True, False])).exp().sum().backward()
        >>> x.grad
        MaskedTensor(
          [  2.7183,       --]
        )
    """
    return MaskedTensor._from_values(data, mask)


# ---- masks and values ----


def _data(value: Any) -> Any:
    return value._masked_data if isinstance(value, MaskedTensor) else value


def _mask(value: Any) -> Any:
    return value._masked_mask if isinstance(value, MaskedTensor) else value


def _values(value: Any) -> Any:
    """The elements that a sparse tensor stores."""
    plain = _data(value)
    return plain.values() if isinstance(plain, Tensor) and plain.layout is not _C.strided else plain


def _filled(masked: MaskedTensor) -> Any:
    """The data, 0 where no element counts."""
    data, mask = masked._masked_data, masked._masked_mask
    if data.layout is _C.strided:
        return data.masked_fill(~mask, 0)
    return _C._layout_like(data, data._values().masked_fill(~mask._values(), 0))


def _mapped(value: Any, each: Callable[[Any], Any]) -> Any:
    if type(value) in (list, tuple):
        return type(value)(_mapped(v, each) for v in value)
    if type(value) is dict:
        return {k: _mapped(v, each) for k, v in value.items()}
    return each(value)


def _masked_in(value: Any) -> list[MaskedTensor]:
    if isinstance(value, (list, tuple)):
        return [m for v in value for m in _masked_in(v)]
    if isinstance(value, dict):
        return _masked_in(list(value.values()))
    return [value] if isinstance(value, MaskedTensor) else []


def _same_mask(a: Tensor, b: Tensor) -> bool:
    if a.layout is not b.layout:
        raise ValueError(f"masks of one layout were expected, got {a.layout} and {b.layout}")
    return a.shape == b.shape and bool(_C.equal(a, b))


def _tensors_match(a: Tensor, b: Tensor, exact: bool = True, rtol: float = 1e-05, atol: float = 1e-08) -> bool:
    """Whether both are equal, or close; what is stored, where both are sparse."""
    if a.layout is not b.layout:
        raise ValueError(f"tensors of one layout were expected, got {a.layout} and {b.layout}")
    b = b.to(a.dtype)
    if a.layout is not _C.strided and not _C._same_pattern(a, b):
        return False
    a, b = _values(a), _values(b)
    return a.shape == b.shape and bool(_C.equal(a, b) if exact else _C.allclose(a, b, rtol, atol, True))


def _masks_match(a: Any, b: Any) -> bool:
    """Whether the masks are the same, spread to one shape; one that is no masked tensor goes with any."""
    if not isinstance(a, MaskedTensor) or not isinstance(b, MaskedTensor):
        return True
    first, second = a._masked_mask, b._masked_mask
    if first.layout is _C.strided and second.layout is _C.strided and first.shape != second.shape:
        first, second = _C.broadcast_tensors([first, second])
    return _same_mask(first, second)


def _all_match(given: list[MaskedTensor]) -> bool:
    return all(_masks_match(given[0], other) for other in given[1:])


def _check_masks(given: list[MaskedTensor]) -> None:
    if not _all_match(given):
        raise ValueError("Input masks must match: an operator on masked tensors takes those of one mask")


def _wrapped(data: Any, mask: Any) -> Any:
    if isinstance(data, (list, tuple)):
        return type(data)(_wrapped(d, m) for d, m in zip(data, mask, strict=True))
    return MaskedTensor._of(data, mask) if isinstance(data, Tensor) else data


# ---- the class ----


class MaskedTensor(Tensor):
    """A tensor with a mask: elements where it is False do not count.

    Arguments:
        data: the elements, dense or of the layouts sparse_coo and sparse_csr
        mask: of bool, with the data's size and layout
        requires_grad: whether a gradient is wanted

    Raises: TypeError for what is no tensor, or of different layouts.

    Example:
        >>> import warnings
        >>> warnings.simplefilter("ignore")
        >>> tp.masked.MaskedTensor(tp.tensor([1, 2]), tp.tensor([True, False])) + 1
        MaskedTensor(
          [2,       --]
        )
    """

    _masked_data: Tensor
    _masked_mask: Tensor

    @staticmethod
    def __new__(cls: Any, data: Any, mask: Any, requires_grad: bool = False) -> Any:
        for name, given in (("data", data), ("mask", mask)):
            if isinstance(given, MaskedTensor) or not isinstance(given, Tensor):
                raise TypeError(f"{name} must be a Tensor")
        if data.requires_grad:
            warnings.warn(
                "A MaskedTensor of a tensor that requires grad has no history: data.detach().clone() says so, "
                "as_masked_tensor keeps it",
                UserWarning,
                stacklevel=2,
            )
        return _wrapper(cls, data, requires_grad)

    def __init__(self, data: Tensor, mask: Tensor, requires_grad: bool = False) -> None:
        if data.layout is not mask.layout:
            raise TypeError("data and mask must have the same layout.")
        with _C.DisableTorchFunctionSubclass():
            data, mask = data.detach(), mask.detach()
            if data.layout is not _C.strided:
                data, mask = _of_one_pattern(data, mask)
            self._set_data_mask(data.clone(), mask.clone())

    @staticmethod
    def _of(data: Tensor, mask: Tensor) -> MaskedTensor:
        """Makes one of tensors that nobody else has; they are not copied."""
        made: MaskedTensor = _wrapper(MaskedTensor, data, False)
        made._masked_data, made._masked_mask = data, mask
        return made

    @staticmethod
    def _from_values(data: Any, mask: Any) -> MaskedTensor:
        made: MaskedTensor = _Constructor.apply(data, mask)
        return made

    def _set_data_mask(self, data: Tensor, mask: Tensor) -> None:
        _check_parts(data, mask)
        self._masked_data, self._masked_mask = data, mask

    # ---- its parts ----

    def get_data(self) -> Tensor:
        """The elements, those that do not count too; a gradient goes back to the masked tensor."""
        return _GetData.apply(self)

    def get_mask(self) -> Tensor:
        """The mask, True where an element counts."""
        return self._masked_mask

    def to_tensor(self, value: Any) -> Tensor:
        """A tensor with a value where no element counts."""
        return self.get_data().masked_fill(~self.get_mask(), value)

    @property
    def layout(self) -> Any:
        """That of the data."""
        return self._masked_data.layout

    def is_sparse_coo(self) -> bool:
        """Whether the data has coordinates."""
        return self.layout is _C.sparse_coo

    def is_sparse_csr(self) -> bool:  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]
        """Whether the data is in rows."""
        return self.layout is _C.sparse_csr

    @property
    def is_sparse(self) -> bool:
        """Whether the data is sparse."""
        return self.is_sparse_coo() or self.is_sparse_csr()

    def __repr__(self, *unused: Any, **unused_options: Any) -> str:
        with _C.DisableTorchFunctionSubclass():
            data, mask = (t.to_dense() for t in (self._masked_data, self._masked_mask))
        if data.dim() == 0:
            return f"MaskedTensor({_number(data.item()) if mask.item() else '--'}, {mask.item()})"
        return "MaskedTensor(\n" + _indented(_rows(data.tolist(), mask.tolist(), data.dim())) + "\n)"

    __str__ = __repr__

    # ---- calls ----

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = str(resolve_name(func) or getattr(func, "__name__", "")).rpartition(".")[2]
        rule = _FUNCTIONS.get(name, _called if name in _OF_MASKED else None)
        if rule is not None and args and isinstance(args[0], MaskedTensor):
            return rule(name, *args, **kwargs)
        if not all(issubclass(cls, t) for t in types):
            return NotImplemented
        with _C.DisableTorchFunctionSubclass():
            return func(*args, **kwargs)

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        rule = _rule_of(func)
        if rule is None:
            warnings.warn(f"{func} is not implemented for MaskedTensor", UserWarning, stacklevel=2)
            return NotImplemented
        return rule(func, args, kwargs)


def _wrapper(cls: Any, data: Tensor, requires_grad: bool) -> Any:
    strides = tuple(data.stride()) if data.layout is _C.strided else None
    return Tensor._make_wrapper_subclass(
        cls, tuple(data.shape), strides, dtype=data.dtype, device=data.device, requires_grad=requires_grad
    )


def _of_one_pattern(data: Any, mask: Any) -> tuple[Any, Any]:
    """Both sparse: what the mask has places for, zero where the data has none."""
    if data.layout is _C.sparse_coo:
        data, mask = data.coalesce(), mask.coalesce()
    return (data if data._nnz() == mask._nnz() else data.sparse_mask(mask)), mask


def _check_parts(data: Any, mask: Any) -> None:
    if data.layout not in _LAYOUTS:
        raise TypeError(f"data layout of {data.layout} is not supported.")
    if mask.dtype is not _C.bool:
        raise TypeError("mask must have dtype bool.")
    if data.dtype not in _DTYPES:
        raise TypeError(f"{data.dtype} is not supported in MaskedTensor.")
    if data.dim() != mask.dim():
        raise ValueError("data.dim() must equal mask.dim()")
    if data.shape != mask.shape:
        raise ValueError("data.size() must equal mask.size()")
    if data.layout is not _C.strided and not _C._same_pattern(data, mask):
        raise ValueError(f"data and mask are both of the layout {data.layout} but do not have the same indices.")


# ---- gradients ----


class _Constructor(Function):
    @staticmethod
    def forward(ctx: Any, data: Any, mask: Any) -> Any:
        return MaskedTensor(data.detach(), mask)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        return grad_outputs[0], None


class _Result(Function):
    """What a function of plain tensors made of get_data(): its gradient is plain, 0 where no element counts."""

    @staticmethod
    def forward(ctx: Any, data: Any, mask: Any) -> Any:
        return MaskedTensor._of(data.detach(), mask)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        (grad,) = grad_outputs
        return (_filled(grad) if isinstance(grad, MaskedTensor) else grad), None


class _GetData(Function):
    @staticmethod
    def forward(ctx: Any, masked: Any) -> Any:
        ctx.mask = masked._masked_mask
        return masked._masked_data.detach()

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        return MaskedTensor._of(_data(grad_outputs[0]), ctx.mask)


class _Converted(Function):
    """Another layout, and the same places."""

    @staticmethod
    def forward(ctx: Any, masked: Any, layout: Any) -> Any:
        ctx.layout = masked.layout
        return _in_layout(masked, layout)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        return _in_layout(grad_outputs[0], ctx.layout), None


def _in_layout(masked: Any, layout: Any) -> Any:
    data, mask = masked._masked_data, masked._masked_mask
    if layout is _C.strided:
        return MaskedTensor._of(data.to_dense(), mask.to_dense())
    places = mask.to_dense().to_sparse(layout=layout)
    return MaskedTensor._of(data.to_dense().sparse_mask(places), places)


# ---- functions ----


def _masked(name: str) -> Any:
    return getattr(_C._masked, f"masked_{name}")


def _reduced(name: str, masked: Any, *args: Any, **kwargs: Any) -> Any:
    data, mask = masked.get_data(), masked.get_mask()
    if masked.is_sparse:
        if args or kwargs:
            raise TypeError(f"{name} over some dimensions of a sparse MaskedTensor: to_dense() gives one that has it")
        data, mask = data.values(), mask.values()
    at = 1 if name == "norm" else 0
    dim = args[at] if len(args) > at else kwargs.get("dim")
    result = _masked(name)(data, *args, mask=mask, **kwargs)
    spread = name in ("var", "std")  # a number stands between
    keepdim = bool(kwargs.get("keepdim", args[at + 1] if len(args) > at + 1 and not spread else False))
    if name == "median" and dim is None:
        dim = -1
    there = mask.any() if dim is None or dim == () else mask.any(dim, keepdim)
    return _Result.apply(result, there)


def _truth(name: str, masked: Any, *args: Any, **kwargs: Any) -> Any:
    """Whether all are true, or any is, of those that count; what the private ones give counts always."""
    data, mask = masked._masked_data.to_dense(), masked._masked_mask.to_dense()
    there = _C.ones((), dtype=_C.bool, device=mask.device) if name.startswith("_is") else mask.any(*args, **kwargs)
    return _Result.apply(getattr(data.masked_fill(~mask, "all" in name), name)(*args, **kwargs), there)


def _called(name: str, masked: Any, *args: Any, mask: Any = None, **kwargs: Any) -> Any:
    """A function of tensorpy.masked: the mask is the argument's own, unless another is given."""
    mask = masked.get_mask() if mask is None else mask
    return getattr(_C._masked, name)(masked.get_data(), *args, mask=mask, **kwargs)


def _scanned(name: str, masked: Any, *args: Any, **kwargs: Any) -> Any:
    mask = masked.get_mask()
    return _Result.apply(_masked(name)(masked.get_data(), *args, mask=mask, **kwargs), mask)


def _to_layout(name: str, masked: Any, *args: Any, **kwargs: Any) -> Any:
    if args or kwargs:
        raise TypeError(f"{name}() of a MaskedTensor takes no other arguments")
    layout = {"to_dense": _C.strided, "to_sparse_csr": _C.sparse_csr}.get(name, _C.sparse_coo)
    if layout is _C.sparse_csr and masked.dim() != 2:
        raise ValueError(
            f"Only 2D tensors can be converted to the SparseCsr layout but got shape: {tuple(masked.shape)}"
        )
    return masked if masked.layout is layout else _Converted.apply(masked, layout)


def _laid(name: str, masked: Any, *args: Any, **kwargs: Any) -> Any:
    if masked.is_sparse:
        raise ValueError(f"MaskedTensors with sparse data do not have is_contiguous, which {name}() asks for")
    with _C.DisableTorchFunctionSubclass():
        return getattr(Tensor, name)(masked, *args, **kwargs)


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(_REDUCTIONS, _reduced),
    **dict.fromkeys(_SCANS, _scanned),
    **dict.fromkeys(("to_dense", "to_sparse", "to_sparse_coo", "to_sparse_csr"), _to_layout),
    **dict.fromkeys(("contiguous", "is_contiguous"), _laid),
    **dict.fromkeys(("all", "any", "_is_all_true", "_is_any_true"), _truth),
}


# ---- operators ----


def _by_element(func: Any, args: Any, kwargs: Any) -> Any:
    """One mask for all; what is written keeps it."""
    given = _masked_in((args, kwargs))
    first = given[0]
    if not _all_match(given):
        if _C._current_graph_task_id() == -1 or any(m.is_sparse for m in given):
            _check_masks(given)
        return _of_gradients(func, args, kwargs)
    if first.layout is _C.strided:
        data = func(*_mapped(args, _data), **_mapped(kwargs, _data))
        if not isinstance(data, Tensor):
            return data
        return args[0] if _writes(func) else MaskedTensor._of(data, first._masked_mask.expand(data.shape))
    values = func(*_mapped(args, _values), **_mapped(kwargs, _values))
    data = _C._layout_like(first._masked_data, values)
    if not _writes(func):
        return MaskedTensor._of(data, first._masked_mask)
    first._set_data_mask(data, first._masked_mask)
    return first


def _of_gradients(func: Any, args: Any, kwargs: Any) -> Any:
    """What gradients of parts of a tensor come to: they are 0 where their masks are False."""
    sums = func._opname.rstrip("_") in ("add", "sub")
    masks = [m._masked_mask for m in _masked_in((args, kwargs))]
    mask = masks[0] | masks[1] if sums else masks[0] & masks[1]
    data = func(*_mapped(args, lambda a: _filled(a) if isinstance(a, MaskedTensor) else a), **kwargs)
    if not _writes(func):
        return MaskedTensor._of(data, mask)
    args[0]._set_data_mask(data, mask)
    return args[0]


def _writes(func: Any) -> bool:
    return "!" in str(func._schema)


def _moved(func: Any, args: Any, kwargs: Any) -> Any:
    data = func(*_mapped(args, _data), **_mapped(kwargs, _data))
    return _wrapped(data, func(*_mapped(args, _mask), **_mapped(kwargs, _mask)))


def _kept(func: Any, args: Any, kwargs: Any) -> Any:
    """What gives a tensor like its first argument."""
    return MaskedTensor._of(func(_data(args[0]), *args[1:], **kwargs), args[0]._masked_mask)


def _copied(func: Any, args: Any, kwargs: Any) -> Any:
    mask = func(_mask(args[0]), *args[1:], **{**kwargs, "dtype": _C.bool})
    return MaskedTensor._of(func(_data(args[0]), *args[1:], **kwargs), mask)


def _chosen(func: Any, args: Any, kwargs: Any) -> Any:
    """where: masks are chosen as elements are; a plain tensor's elements all count."""
    condition, *rest = args
    there = [m._masked_mask if isinstance(m, MaskedTensor) else _C.tensor(True) for m in rest]
    mask: Any = _C.where(_data(condition), *there)
    mask = mask & condition._masked_mask if isinstance(condition, MaskedTensor) else mask
    data = func(*map(_data, args))
    return MaskedTensor._of(data, mask.expand(data.shape))


def _summed(func: Any, args: Any, kwargs: Any) -> Any:
    """Sums of gradients; other calls are functions above."""
    there = args[0]._masked_mask.to(_C.int64)
    return MaskedTensor._of(func(_filled(args[0]), *args[1:], **kwargs), func(there, *args[1:]) > 0)


def _viewed(func: Any, args: Any, kwargs: Any) -> Any:
    """A mask may lie in memory in another way."""
    data = func(_data(args[0]), *args[1:], **kwargs)
    return MaskedTensor._of(data, args[0]._masked_mask.reshape(data.shape))


def _moved_back(func: Any, args: Any, kwargs: Any) -> Any:
    """The gradient of what moves elements: several may come to one place."""
    there = _mapped(args, lambda a: a._masked_mask.to(a.dtype) if isinstance(a, MaskedTensor) else a)
    given = _mapped(args, lambda a: _filled(a) if isinstance(a, MaskedTensor) else a)
    return MaskedTensor._of(func(*given, **kwargs), func(*there, **kwargs) != 0)


def _written(func: Any, args: Any, kwargs: Any) -> Any:
    _check_masks(_masked_in(args[:2]))
    func(_data(args[0]), _data(args[1]), *args[2:], **kwargs)
    return args[0]


def _read(func: Any, args: Any, kwargs: Any) -> Any:
    if not bool(args[0]._masked_mask):
        raise ValueError("item(): the element does not count")
    return func(_data(args[0]))


def _asked(func: Any, args: Any, kwargs: Any) -> Any:
    return func(*_mapped(args, _data), **kwargs)


_RULES: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(_MOVES, _moved),
    **dict.fromkeys(_MOVES_BACK, _moved_back),
    **dict.fromkeys(_LIKE, _kept),
    "view": _viewed, "_unsafe_view": _viewed, "_reshape_alias": _viewed, "clone": _kept, "detach": _kept,
    "_to_copy": _copied, "where": _chosen, "copy_": _written, "_local_scalar_dense": _read, "sum": _summed,
    "is_same_size": _asked, "is_pinned": _asked,
}  # fmt: skip


def _rule_of(func: Any) -> Callable[..., Any] | None:
    name = func._opname
    if name in _RULES:
        return _RULES[name]
    if "pointwise" in func.tags:
        return _by_element
    first = str(func._schema).partition("(")[2]
    return _moved if first.startswith(("Tensor(a) ", "Tensor(a -> *) ")) else None


# ---- text ----


def _number(value: Any) -> str:
    return f"{value:8.4f}" if isinstance(value, float) else str(value)


def _indented(text: str) -> str:
    return "\n".join("  " + line for line in text.split("\n"))


def _rows(data: Any, mask: Any, ndim: int) -> str:
    if ndim > 1:
        rows = [_indented(_rows(d, m, ndim - 1)) for d, m in zip(data, mask, strict=True)]
        return "[\n" + ",\n".join(rows) + "\n]"
    texts = [_number(d) for d in data]
    width = max((len(t) if there else 8 for t, there in zip(texts, mask, strict=True)), default=0)
    return "[" + ", ".join(t if there else "--".rjust(width) for t, there in zip(texts, mask, strict=True)) + "]"
