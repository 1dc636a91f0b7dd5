"""How exactly products of float32 numbers are asked to be computed: settings, which change nothing here.

A setting is of a backend ("generic", "cuda", "mkldnn") and of a kind of operator ("all", "conv", "rnn", "matmul"). One
that is "none" is what its backend has for "all", and then what "generic" has. Older settings of the same things stand
beside them, and an old one that was overtaken by a new one is an error when it is asked for.
"""

from __future__ import annotations

from typing import Any

_BACKENDS = {
    "generic": ("none", "ieee", "tf32", "bf16"),
    "cuda": ("none", "ieee", "tf32"),
    "mkldnn": ("none", "ieee", "tf32", "bf16"),
}
_OPERATORS = ("all", "conv", "rnn", "matmul")
_said: dict[tuple[str, str], str] = {}  # what was set
_AT_FIRST = {("cuda", "conv"): "tf32", ("cuda", "rnn"): "tf32"}  # where nothing was set, anywhere
_old: dict[str, Any] = {"matmul": "highest", "cudnn": True}  # the older settings
_WORDS_OF_OLD = {"highest": ("ieee", "ieee"), "high": ("tf32", "tf32"), "medium": ("tf32", "bf16")}  # cuda's, mkldnn's


def get(backend: str, operator: str) -> str:
    """What holds for a kind of operator of a backend."""
    own = _said.get((backend, operator), "none")
    for said in (own, _said.get((backend, "all"), "none")):
        if said != "none":
            return said
    said = _said.get(("generic", "all"), "none")
    if said != "none":
        return said if said in _BACKENDS[backend] else "none"
    return "none" if (backend, operator) in _said else _AT_FIRST.get((backend, operator), "none")


def put(backend: str, operator: str, precision: str) -> None:
    """Sets it. RuntimeError for a precision that the backend does not know."""
    if precision not in _BACKENDS["generic"]:
        raise RuntimeError(f"Unknown precision: {precision}")
    if precision not in _BACKENDS[backend]:
        raise RuntimeError(f"backend '{backend}' does not support precision '{precision}'")
    _said[backend, operator] = precision


class Operator:
    """The setting of a kind of operator: `backends.mkldnn.conv.fp32_precision`."""

    __slots__ = "_backend", "_operator"

    def __init__(self, backend: str, operator: str) -> None:
        self._backend, self._operator = backend, operator

    @property
    def fp32_precision(self) -> str:
        """The precision that holds."""
        return get(self._backend, self._operator)

    @fp32_precision.setter
    def fp32_precision(self, precision: str) -> None:
        put(self._backend, self._operator, precision)


def _overtaken(what: str) -> RuntimeError:
    return RuntimeError(f"{what} was overtaken by a setting of fp32_precision: use fp32_precision alone, or not at all")


def get_matmul() -> str:
    """The older setting of matrix products: "highest", "high" or "medium"."""
    old: str = _old["matmul"]
    fits = {"bf16": ("medium",), "tf32": ("high",)}.get(get("mkldnn", "matmul"), (old,))
    if old not in fits or (old == "highest" and get("cuda", "matmul") == "tf32"):
        raise _overtaken("set_float32_matmul_precision()")
    return old


def put_matmul(precision: str) -> None:
    """Sets it, and what it says in the newer settings."""
    _old["matmul"] = precision
    _said["cuda", "matmul"], _said["mkldnn", "matmul"] = _WORDS_OF_OLD[precision]


def get_cuda_tf32() -> bool:
    """Whether matrix products on NVIDIA's devices may round to TF32."""
    if (get("cuda", "matmul") == "tf32") != (_old["matmul"] != "highest"):
        raise _overtaken("backends.cuda.matmul.allow_tf32")
    return bool(_old["matmul"] != "highest")


def put_cuda_tf32(allow: bool) -> None:
    """Sets it."""
    _old["matmul"] = "high" if allow else "highest"
    _said["cuda", "matmul"] = "tf32" if allow else "ieee"


def get_cudnn_tf32() -> bool:
    """Whether convolutions and recurrent networks of cuDNN may round to TF32."""
    if any((get("cuda", operator) == "tf32") != _old["cudnn"] for operator in ("conv", "rnn")):
        raise _overtaken("backends.cudnn.allow_tf32")
    return bool(_old["cudnn"])


def put_cudnn_tf32(allow: bool) -> None:
    """Sets it."""
    _old["cudnn"] = bool(allow)
    for operator in ("conv", "rnn"):
        _said["cuda", operator] = "tf32" if allow else "none"
