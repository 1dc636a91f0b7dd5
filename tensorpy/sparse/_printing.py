"""How sparse tensors print: their parts, then the size, how many values there are, and the layout."""

from __future__ import annotations

from typing import Any

from tensorpy import _C
from tensorpy._tensor.torch_function import DisableTorchFunctionSubclass
from tensorpy._tensor_str import _append_suffixes, _dtype_is_plain, _elements, _grad_suffix
from tensorpy.sparse._patterns import Coo


def _part(name: str, tensor: Any, indent: int) -> str:
    head = f"{name}=tensor("
    if tensor.numel() == 0:
        return f"{head}[], size={tuple(tensor.shape)})"
    return f"{head}{_elements(tensor.detach(), indent + len(head))})"


def text(sparse: Any) -> str:
    """The text of repr."""
    pattern, values = sparse._pattern, sparse._kept
    indent = len("tensor(")
    names = ("indices",) if isinstance(pattern, Coo) else ("crow_indices", "col_indices")
    parts = [_part(name, getattr(pattern, name), indent) for name in names] + [_part("values", values, indent)]
    suffixes = [f"device='{values.device}'"] if values.device.type != _C.get_default_device().type else []
    suffixes += [f"size={pattern.size}", f"nnz={pattern.nnz}"]
    suffixes += [] if _dtype_is_plain(values) else [f"dtype={values.dtype}"]
    with DisableTorchFunctionSubclass():
        suffixes += [f"layout={pattern.layout}", *_grad_suffix(sparse)]
    body = "tensor(" + (",\n" + " " * indent).join(parts)
    if isinstance(pattern, Coo):  # the size stands in a line of its own
        first, *suffixes = suffixes
        body += ",\n" + " " * indent + first
    return _append_suffixes(body, suffixes, indent)
