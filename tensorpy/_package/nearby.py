"""What is proposed for a name that is not there: the name with that meaning, else the one that is written most alike.

Loaded when such a name was asked for. A name of NumPy's or of another library's stands in the table below beside what
has its meaning here, by the module that was asked; tests/package/test_names.py looks up every one.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

# module -> name -> what stands for it, from the package on
MEANT = {
    "": {
        "array": "tensor", "ndarray": "Tensor", "astype": "Tensor.to", "cast": "Tensor.to",
        "expand_dims": "unsqueeze", "repeat": "tile",
        "power": "pow", "fabs": "abs", "mod": "remainder", "rint": "round", "invert": "bitwise_not",
        "flatnonzero": "nonzero", "extract": "masked_select", "choose": "gather",
        "compress": "masked_select", "product": "prod", "cumproduct": "cumprod",
        "reduce_sum": "sum", "reduce_mean": "mean", "reduce_max": "amax", "reduce_min": "amin", "average": "mean",
        "ptp": "aminmax", "percentile": "quantile", "nanpercentile": "nanquantile", "digitize": "bucketize",
        "interp": "lerp", "convolve": "nn.functional.conv1d", "pad": "nn.functional.pad",
        "relu6": "nn.functional.relu6", "gelu": "nn.functional.gelu", "silu": "nn.functional.silu",
        "swish": "nn.functional.silu", "softplus": "nn.functional.softplus", "one_hot": "nn.functional.one_hot",
        "cross_entropy": "nn.functional.cross_entropy", "mse_loss": "nn.functional.mse_loss",
        "Linear": "nn.Linear", "Module": "nn.Module", "Parameter": "nn.Parameter", "Sequential": "nn.Sequential",
        "SGD": "optim.SGD", "Adam": "optim.Adam", "AdamW": "optim.AdamW",
        "DataLoader": "utils.data.DataLoader", "Dataset": "utils.data.Dataset", "grad": "autograd.grad",
        "jacobian": "func.jacrev", "jacrev": "func.jacrev", "jacfwd": "func.jacfwd", "hessian": "func.hessian",
        "norml1": "linalg.vector_norm", "norml2": "linalg.vector_norm", "l1_norm": "linalg.vector_norm",
        "l2_norm": "linalg.vector_norm", "inv": "linalg.inv", "solve_triangular": "linalg.solve_triangular",
        "eigh": "linalg.eigh", "eigvals": "linalg.eigvals", "eigvalsh": "linalg.eigvalsh",
        "rfft": "fft.rfft", "irfft": "fft.irfft", "ifft": "fft.ifft", "fftfreq": "fft.fftfreq",
        "random_normal": "randn", "permutation": "randperm", "choice": "multinomial",
        "set_seed": "manual_seed", "set_random_seed": "manual_seed", "erfcx": "special.erfcx",
        "dtype_info": "finfo", "stop_gradient": "Tensor.detach", "variable": "tensor", "as_array": "asarray",
    },
    "linalg": {
        "inverse": "linalg.inv", "logdet": "logdet", "trace": "trace", "expm": "linalg.matrix_exp",
        "orth": "linalg.qr", "kron": "kron",
    },
    "random": {
        "rand": "rand", "random": "rand", "uniform": "rand", "randn": "randn", "standard_normal": "randn",
        "normal": "normal", "randint": "randint", "integers": "randint", "permutation": "randperm",
        "shuffle": "randperm", "choice": "multinomial", "poisson": "poisson", "binomial": "binomial",
        "exponential": "Tensor.exponential_", "default_rng": "Generator", "RandomState": "Generator",
    },
    "nn": {
        "Dense": "nn.Linear", "Conv": "nn.Conv2d", "BatchNorm": "nn.BatchNorm2d", "MaxPool": "nn.MaxPool2d",
        "AvgPool": "nn.AvgPool2d", "Swish": "nn.SiLU", "CrossEntropy": "nn.CrossEntropyLoss",
        "BinaryCrossEntropy": "nn.BCELoss", "MAELoss": "nn.L1Loss", "Layer": "nn.Module", "Embed": "nn.Embedding",
        "relu": "nn.functional.relu", "softmax": "nn.functional.softmax", "gelu": "nn.functional.gelu",
        "cross_entropy": "nn.functional.cross_entropy", "one_hot": "nn.functional.one_hot",
    },
    "distributions": {"Gaussian": "distributions.Normal", "MultivariateGaussian": "distributions.MultivariateNormal"},
    "optim": {"Momentum": "optim.SGD", "Nesterov": "optim.SGD", "StepLR": "optim.lr_scheduler.StepLR"},
}  # fmt: skip


def ending(module: str, name: str, there: Iterable[str]) -> str:
    """The end of the message that a module ("" is the package) has no such name; `there`: the names that it has."""
    if name.startswith("__"):  # asked by Python's own tools, of any module
        return ""
    public = sorted(n for n in there if not n.startswith("_"))
    meant = MEANT.get(module, {}).get(name)
    if meant is None:
        found = _by_words(name, public) or _by_letters(name, public)
        meant = found and (f"{module}.{found}" if module else found)
    if not meant:
        return ""
    shown = meant.removeprefix(f"{module}.") if module else meant
    if module and shown == meant:  # elsewhere
        shown = f"tensorpy.{meant}"
    return f"; the nearest that is there is '{shown}'"


def _by_words(name: str, public: list[str]) -> str:
    """mul_tensor -> mul, tensor_mul -> mul: the first of the words that is a name, but for what all are of."""
    words = [w for w in re.split("_+", name) if w]
    if len(words) < 2:
        return ""
    for end in range(len(words) - 1, 0, -1):
        if (first := "_".join(words[:end])) in public and first not in ("tensor", "is", "to"):
            return first
    return words[-1] if words[0] == "tensor" and words[-1] in public else ""


def _by_letters(name: str, public: list[str]) -> str:
    import difflib

    found = difflib.get_close_matches(name, public, 1)
    return found[0] if found else ""
