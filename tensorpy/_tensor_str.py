"""How tensors print: `repr`, `str` and set_printoptions.

The elements that are shown are fetched as nested lists, with Ellipsis where a long dimension is cut. One formatter
looks at all of them, picks integers with a dot, fixed point or scientific notation and the width, and the lists are
laid out in lines that fit.
"""

from __future__ import annotations

import math
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any

from . import _C
from ._C import Tensor


@dataclass
class PrintOptions:
    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


_PROFILES = {
    "default": PrintOptions(),
    "short": PrintOptions(precision=2, edgeitems=2),
    "full": PrintOptions(threshold=math.inf),
}
PRINT_OPTS = PrintOptions()  # in use; programs change its fields, too


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Set how tensors print: digits after the point, the number of elements from which on a tensor is summarised, how
    many are then shown at each end, the characters of a line, one of the profiles "default", "short" and "full", and
    whether numbers are in scientific notation (None: where it suits them).

    Arguments:
        precision: how many digits stand behind the point
        threshold: the number of elements from which on only the edges are shown
        edgeitems: how many elements are shown at each end of a dimension that is cut
        linewidth: how many characters a line has
        profile: 'default', 'short' or 'full'
        sci_mode: whether numbers have exponents; None decides

    Example:
        >>> tp.set_printoptions(precision=2)
        >>> tp.tensor([1.23456])
        tensor([1.23])
        >>> tp.set_printoptions(profile="default")
    """
    options = replace(PRINT_OPTS)
    if profile is not None:
        if profile not in _PROFILES:
            raise ValueError(f"unknown profile {profile!r}; there are {', '.join(_PROFILES)}")
        options = replace(_PROFILES[profile], linewidth=PRINT_OPTS.linewidth if profile != "default" else 80)
    for name, value in (
        ("precision", precision),
        ("threshold", threshold),
        ("edgeitems", edgeitems),
        ("linewidth", linewidth),
    ):
        if value is not None:
            setattr(options, name, value)
    options.sci_mode = sci_mode
    vars(PRINT_OPTS).update(vars(options))


def get_printoptions() -> dict[str, Any]:
    """The options in use.

    Returns: a dict of the arguments of set_printoptions.

    Example:
        >>> tp.get_printoptions()["precision"]
        4
    """
    return asdict(PRINT_OPTS)


@contextmanager
def printoptions(**options: Any) -> Iterator[None]:
    """set_printoptions for the length of a `with` block.

    Returns: a context manager.

    Example:
        >>> with tp.printoptions(precision=2):
        ...     print(tp.tensor([1.23456]))
        tensor([1.23])
    """
    saved = dict(vars(PRINT_OPTS))
    set_printoptions(**options)
    try:
        yield
    finally:
        vars(PRINT_OPTS).update(saved)


# ---- what is shown ----

Nested = Any  # a number, or a list of Nested and Ellipsis


def _shown(t: Tensor, cut: bool) -> Nested:
    """The elements as nested lists, with Ellipsis where elements are left out."""
    edge = PRINT_OPTS.edgeitems
    if not cut or all(n <= 2 * edge for n in t.shape):
        return t.tolist()
    n = t.shape[0]
    if n <= 2 * edge:
        return [_shown(t[i], cut) for i in range(n)]
    head = [_shown(t[i], cut) for i in range(edge)]
    return [*head, ..., *(_shown(t[i], cut) for i in range(n - edge, n))]


def _leaves(data: Nested) -> Iterator[Any]:
    if not isinstance(data, list):
        yield data
        return
    for item in data:
        if isinstance(item, list):
            yield from _leaves(item)
        elif item is not ...:
            yield item


# ---- numbers ----


class _FloatFormat:
    """Whole numbers ("3."), fixed point or scientific, chosen from the finite values that are not zero."""

    def __init__(self, values: Sequence[float]) -> None:
        self.width = 1
        self.whole = True
        self.scientific = False
        measured = [v for v in values if v != 0 and math.isfinite(v)]
        if measured:
            largest, smallest = max(map(abs, measured)), min(map(abs, measured))
            # A product, since the quotient of the two may overflow.
            wide = largest / smallest > 1000 if smallest >= 1e-300 else largest > 1000 * smallest
            self.whole = all(v == math.floor(v) for v in measured)
            self.scientific = wide or largest > 1e8 or (not self.whole and smallest < 1e-4)
            if PRINT_OPTS.sci_mode is not None:
                self.scientific = PRINT_OPTS.sci_mode
            self.width = max(len(self.plain(v)) for v in measured)

    def plain(self, value: float) -> str:
        if self.scientific:
            return f"{value:.{PRINT_OPTS.precision}e}"
        if self.whole:
            return f"{value:.0f}." if math.isfinite(value) else f"{value:.0f}"
        return f"{value:.{PRINT_OPTS.precision}f}"

    def __call__(self, value: float) -> str:
        return self.plain(value).rjust(self.width)


class _ExactFormat:
    """Integers and bools."""

    def __init__(self, values: Sequence[int]) -> None:
        self.width = max((len(str(v)) for v in values), default=1)

    def __call__(self, value: int) -> str:
        return str(value).rjust(self.width)


class _ComplexFormat:
    """The two parts, each in a format of its own."""

    def __init__(self, values: Sequence[complex]) -> None:
        self.real = _FloatFormat([v.real for v in values])
        self.imag = _FloatFormat([v.imag for v in values])
        self.width = self.real.width + self.imag.width + 1

    def __call__(self, value: complex) -> str:
        imag = self.imag(value.imag).lstrip() + "j"
        return self.real(value.real) + ("" if imag[0] in "+-" else "+") + imag


_Format = Callable[[Any], str]


def _format_for(t: Tensor, data: Nested) -> tuple[_Format, int]:
    values = list(_leaves(data))
    kind = _ComplexFormat if t.dtype.is_complex else _FloatFormat if t.dtype.is_floating_point else _ExactFormat
    chosen = kind(values)
    return chosen, chosen.width


# ---- lines ----


def _row(data: Sequence[Any], indent: int, formatter: _Format, width: int) -> str:
    per_line = max(1, (PRINT_OPTS.linewidth - indent) // (width + 2))
    dots = " ..." if len(data) > 1 else "..."
    cells = [dots if v is ... else formatter(v) for v in data]
    lines = [", ".join(cells[i : i + per_line]) for i in range(0, len(cells), per_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines or [""]) + "]"


def _layout(data: Nested, ndim: int, indent: int, formatter: _Format, width: int) -> str:
    if ndim == 0:
        return formatter(data)
    if ndim == 1:
        return _row(data, indent, formatter, width)
    parts = ["..." if part is ... else _layout(part, ndim - 1, indent + 1, formatter, width) for part in data]
    return "[" + ("," + "\n" * (ndim - 1) + " " * (indent + 1)).join(parts) + "]"


def _tensor_str(self: Tensor, indent: int) -> str:
    """The elements; other packages ask for it too."""
    data = _shown(self, self.numel() > PRINT_OPTS.threshold)
    formatter, width = _format_for(self, data)
    return _layout(data, self.ndim, indent, formatter, width)


# ---- the whole ----


def _grad_suffix(t: Tensor) -> list[str]:
    try:
        grad_fn = t.grad_fn
    except RuntimeError:  # of a view whose base was changed since, in another mode
        return ["grad_fn=<Invalid>"]
    if grad_fn is not None:
        return [f"grad_fn=<{type(grad_fn).__name__}>"]
    return ["requires_grad=True"] if t.requires_grad else []


def _tangent_suffix(t: Tensor) -> list[str]:
    forward = sys.modules.get("tensorpy.autograd.forward_ad")
    tangent = forward.unpack_dual(t).tangent if forward else None
    return [] if tangent is None else [f"tangent={tangent}"]


def _dtype_is_plain(t: Tensor) -> bool:
    """Whether the elements show the dtype already."""
    default = _C.get_default_dtype()
    return t.dtype in (default, default.to_complex(), _C.int64, _C.bool)


def _append_suffixes(text: str, suffixes: Sequence[str], indent: int) -> str:
    """Behind the elements, on a new line where the line would get too long."""
    length = len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        if length + len(suffix) + 2 > PRINT_OPTS.linewidth:
            text += ",\n" + " " * indent + suffix
            length = indent + len(suffix)
        else:
            text += ", " + suffix
            length += len(suffix) + 2
    return text + ")"


def tensor_repr(t: Tensor, contents: object = None) -> str:
    """The text of repr(t), where `contents` may stand for the elements. Modes are not asked about what is read of a
    tensor that has elements."""
    if contents is not None:
        name = "tensor" if type(t) is Tensor else type(t).__name__
        nn = sys.modules.get("tensorpy.nn.parameter")
        text = _append_suffixes(f"{name}({contents}", _grad_suffix(t) + _tangent_suffix(t), len(name) + 1)
        return f"Parameter({text})" if nn and isinstance(t, nn.Parameter) else text
    if not _C._dispatch_modes() or _C._is_wrapper(t):
        return _repr_of(t)
    before = _C._set_dispatch_off(True)
    try:
        return _repr_of(t)
    finally:
        _C._set_dispatch_off(before)


def _repr_of(t: Tensor) -> str:
    transforms = sys.modules.get("tensorpy.func.vmap")
    if transforms and transforms.opened.transforms:
        return _transformed(t, transforms, len(transforms.opened.transforms))
    return _tensor_repr(t)


def _transformed(t: Tensor, transforms: Any, depth: int) -> str:
    """A tensor by the transforms that it belongs to, from the innermost one out."""
    found = transforms.transformed(t, depth)
    if found is None:
        return _tensor_repr(t.detach() if t.requires_grad and depth < len(transforms.opened.transforms) else t)
    place, kind, below = found
    value = textwrap.indent(_transformed(below, transforms, place - 1), "    ")
    name = f"BatchedTensor(lvl={place}, bdim=0" if kind == "vmap" else f"GradTrackingTensor(lvl={place}"
    return f"{name}, value=\n{value}\n)"


def _tensor_repr(t: Tensor) -> str:
    if number := _C._batch_number(t):  # all samples, since there is no single one
        level = {n: i + 1 for i, (n, *_) in enumerate(_C._vmap_levels())}.get(number, "closed")
        value = textwrap.indent(tensor_repr(_C._vmap_remove(t, number, 0)), "    ")
        return f"BatchedTensor(lvl={level}, bdim=0, value=\n{value}\n)"
    if _C._functionalize.is_of(t, 0):
        value, level = tensor_repr(inner := _C._functionalize.value(t)), 1
        while _C._functionalize.is_of(inner, 0):
            inner, level = _C._functionalize.value(inner), level + 1
        return f"FunctionalTensor(lvl={level}, value=\\\n{value})"
    nn = sys.modules.get("tensorpy.nn.parameter")  # without it no tensor is a parameter
    if type(t) is Tensor or (nn and type(t) is nn.Parameter):
        return _repr(t, "tensor")
    text = _repr(t, type(t).__name__)
    return f"Parameter({text})" if nn and isinstance(t, nn.Parameter) else text


def _repr(t: Tensor, name: str) -> str:
    if t.is_nested:
        from tensorpy._tensor.nested import text as of_nested  # which programs without nested tensors do without

        return of_nested(t, _grad_suffix(t))
    if t.layout is not _C.strided:
        return _repr_of_parts(t)
    if t.is_quantized:
        return _repr_of_quantized(t)
    prefix = f"{name}("
    indent = len(prefix)
    suffixes = []
    if t.device.type != _C.get_default_device().type:
        suffixes.append(f"device='{t.device}'")
    size = f"size={tuple(t.shape)}"
    dtype = f"dtype={t.dtype}"
    if t.device.type == "meta" or _C._is_wrapper(t):
        suffixes.append(size)
        suffixes += [] if t.dtype == _C.get_default_dtype() else [dtype]
        text = "..."
    elif t.numel() == 0:
        suffixes += [size] if t.ndim != 1 else []
        suffixes += [] if t.dtype == _C.get_default_dtype() else [dtype]
        text = "[]"
    else:
        suffixes += [size] if PRINT_OPTS.edgeitems == 0 else []
        suffixes += [] if _dtype_is_plain(t) else [dtype]
        plain = t.detach().as_subclass(Tensor)
        text = _tensor_str(plain.clone() if t._is_zerotensor() else plain, indent)
    return _append_suffixes(prefix + text, suffixes + _grad_suffix(t) + _tangent_suffix(t), indent)


def _repr_of_quantized(t: Tensor) -> str:
    """The numbers that a tensor stands for, and how its integers are read."""
    scheme, device = t.qscheme(), t.device.type
    suffixes = [f"device='{t.device}'"] if device != _C.get_default_device().type else []
    suffixes += [f"size={tuple(t.shape)}", f"dtype={t.dtype}", f"quantization_scheme={scheme}"]
    if _C._qscheme(t) == 0:
        suffixes += [f"scale={t.q_scale()}", f"zero_point={t.q_zero_point()}"]
    else:
        suffixes += [f"scale={t.q_per_channel_scales()}", f"zero_point={t.q_per_channel_zero_points()}"]
        suffixes += [f"axis={t.q_per_channel_axis()}"]
    text = "..." if device == "meta" else _tensor_str(t.dequantize(), len("tensor(")) if t.numel() else "[]"
    return _append_suffixes("tensor(" + text, suffixes, len("tensor("))


# ---- tensors of other layouts: their parts, then the size, how many values there are, and the layout ----

_PARTS = {
    _C.sparse_coo: ("indices",),
    _C.sparse_csr: ("crow_indices", "col_indices"),
    _C.sparse_bsr: ("crow_indices", "col_indices"),
    _C.sparse_csc: ("ccol_indices", "row_indices"),
    _C.sparse_bsc: ("ccol_indices", "row_indices"),
}


def parts_of(sparse: Any) -> tuple[Tensor, ...]:
    """The parts, in the order of the layout: indices, and the values at the end; without history."""
    return tuple(_C._layout_part(sparse.detach(), i) for i in range(2 if sparse.is_sparse else 3))


def _part_text(name: str, tensor: Any, indent: int) -> str:
    head = f"{name}=tensor("
    if tensor.numel() == 0:
        return f"{head}[], size={tuple(tensor.shape)})"
    return f"{head}{_tensor_str(tensor.detach(), indent + len(head))})"


def _repr_of_parts(sparse: Tensor) -> str:
    if sparse.device.type == "meta":
        return f"tensor(..., device='meta', size={tuple(sparse.shape)}, nnz={sparse._nnz()}, layout={sparse.layout})"
    *places, values = parts_of(sparse)
    indent = len("tensor(")
    names = (*_PARTS[sparse.layout], "values")
    parts = [_part_text(name, part, indent) for name, part in zip(names, (*places, values), strict=True)]
    suffixes = [f"device='{values.device}'"] if values.device.type != _C.get_default_device().type else []
    suffixes += [f"size={tuple(sparse.shape)}", f"nnz={sparse._nnz()}"]
    suffixes += [] if _dtype_is_plain(values) else [f"dtype={values.dtype}"]
    suffixes += [f"layout={sparse.layout}", *_grad_suffix(sparse)]
    body = "tensor(" + (",\n" + " " * indent).join(parts)
    if sparse.is_sparse:  # the size stands in a line of its own
        first, *suffixes = suffixes
        body += ",\n" + " " * indent + first
    return _append_suffixes(body, suffixes, indent)


# ---- names by which other packages ask for these ----


def _str_intern(inp: Tensor, *, tensor_contents: object = None) -> str:
    return tensor_repr(inp, tensor_contents)


def _add_suffixes(tensor_str: str, suffixes: Sequence[str], indent: int, force_newline: bool) -> str:
    if not force_newline or not suffixes:
        return _append_suffixes(tensor_str, suffixes, indent)
    return _append_suffixes(tensor_str + ",\n" + " " * indent + suffixes[0], suffixes[1:], indent)
