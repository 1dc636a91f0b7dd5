"""What is proposed for a name that is not there: the name with that meaning, else the one that it is a slip of.

Loaded when such a name was asked for. A name of NumPy's or of another library's stands in MEANT beside what has its
meaning here, by the module that was asked; SAME has what is written in several ways in any of them ("maximum" for
"max"), by which names are compared. tests/package/test_nearby.py looks up every one.
"""

from __future__ import annotations

import re
import sys
from functools import cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

# module -> name -> what stands for it, from the package on
MEANT = {
    "": {
        "array": "tensor", "ndarray": "Tensor", "astype": "Tensor.to", "cast": "Tensor.to", "to_device": "Tensor.to",
        "as_array": "asarray", "asfarray": "asarray", "ascontiguousarray": "Tensor.contiguous", "constant": "tensor",
        "convert_to_tensor": "as_tensor", "to_tensor": "as_tensor", "from_list": "tensor", "from_array": "from_numpy",
        "variable": "nn.Parameter", "Variable": "nn.Parameter", "as_numpy": "Tensor.numpy", "to_numpy": "Tensor.numpy",
        "expand_dims": "unsqueeze", "repeat": "tile", "append": "cat", "insert": "cat", "delete": "masked_select",
        "swap": "swapaxes", "rollaxis": "movedim", "roll_axis": "movedim", "unstack": "unbind", "block": "block_diag",
        "pad_tensor": "nn.functional.pad", "flip_lr": "fliplr", "flip_ud": "flipud", "identity": "eye",
        "mgrid": "meshgrid", "tri": "tril", "geomspace": "logspace", "indices": "meshgrid", "size_of": "numel",
        "shape_of": "Tensor.shape", "shape": "Tensor.shape", "length": "numel", "rank": "Tensor.ndim", "power": "pow",
        "fabs": "abs", "mod": "remainder", "rint": "round", "invert": "bitwise_not", "ln": "log", "natural_log": "log",
        "log_e": "log", "cbrt": "pow", "magnitude": "abs", "phase": "angle", "degrees": "rad2deg", "radians": "deg2rad",
        "deg_to_rad": "deg2rad", "rad_to_deg": "rad2deg", "floor_div": "floor_divide", "integer_divide": "floor_divide",
        "negation": "neg", "logical_negation": "logical_not", "isnull": "isnan", "array_equal": "equal",
        "equals": "equal", "issubdtype": "is_floating_point", "is_array": "is_tensor", "iscomplexobj": "is_complex",
        "can_convert": "can_cast", "dtype_info": "finfo", "flatnonzero": "nonzero", "extract": "masked_select",
        "boolean_mask": "masked_select", "choose": "gather", "compress": "masked_select",
        "take_along_axis": "take_along_dim", "put_along_axis": "scatter", "gather_nd": "gather",
        "scatter_nd": "scatter", "where_nonzero": "nonzero", "apply_along_axis": "vmap", "reduce_max": "amax",
        "reduce_min": "amin", "average": "mean", "ptp": "aminmax", "nlargest": "topk", "percentile": "quantile",
        "nanpercentile": "nanquantile", "digitize": "bucketize", "nanmax": "amax", "nanmin": "amin", "nanstd": "std",
        "nanvar": "var", "rms": "linalg.vector_norm", "count": "count_nonzero", "nnz": "count_nonzero",
        "correlation": "corrcoef", "corr": "corrcoef", "argpartition": "topk", "partition": "topk",
        "running_sum": "cumsum", "derivative": "gradient", "interp": "lerp", "convolve": "nn.functional.conv1d",
        "correlate": "nn.functional.conv1d", "convolve2d": "conv2d", "hadamard": "mul",
        "clip_by_norm": "nn.utils.clip_grad_norm_", "clip_by_global_norm": "nn.utils.clip_grad_norm_",
        "pad": "nn.functional.pad", "relu6": "nn.functional.relu6", "swish": "nn.functional.silu",
        "leaky_relu": "nn.functional.leaky_relu", "one_hot": "nn.functional.one_hot",
        "one_hot_encode": "nn.functional.one_hot", "cross_entropy": "nn.functional.cross_entropy",
        "softmax_cross_entropy_with_logits": "nn.functional.cross_entropy",
        "categorical_crossentropy": "nn.functional.cross_entropy",
        "sparse_categorical_crossentropy": "nn.functional.cross_entropy",
        "binary_crossentropy": "nn.functional.binary_cross_entropy", "mse": "nn.functional.mse_loss",
        "mae": "nn.functional.l1_loss", "mean_squared_error": "nn.functional.mse_loss",
        "mean_absolute_error": "nn.functional.l1_loss", "huber": "nn.functional.huber_loss",
        "avg_pool2d": "nn.functional.avg_pool2d", "normalize": "nn.functional.normalize",
        "l2_normalize": "nn.functional.normalize", "rnn": "nn.RNN", "Linear": "nn.Linear", "Dense": "nn.Linear",
        "FullyConnected": "nn.Linear", "fully_connected": "nn.Linear", "Module": "nn.Module", "Layer": "nn.Module",
        "Model": "nn.Module", "Parameter": "nn.Parameter", "Sequential": "nn.Sequential", "save_model": "save",
        "load_model": "load", "SGD": "optim.SGD", "Adam": "optim.Adam", "AdamW": "optim.AdamW",
        "GradientDescent": "optim.SGD", "Momentum": "optim.SGD", "GradientTape": "autograd.grad",
        "DataLoader": "utils.data.DataLoader", "Dataset": "utils.data.Dataset", "grad": "autograd.grad",
        "gradient_of": "autograd.grad", "autodiff": "autograd.grad", "backward": "Tensor.backward",
        "value_and_grad": "func.grad_and_value", "jacobian": "func.jacrev", "jacrev": "func.jacrev",
        "jacfwd": "func.jacfwd", "hessian": "func.hessian", "pmap": "vmap", "no_gradient": "no_grad",
        "disable_grad": "no_grad", "stop_gradient": "Tensor.detach", "stop_gradients": "Tensor.detach",
        "eval_mode": "nn.Module.eval", "train_mode": "nn.Module.train", "while_loop": "cond",
        "eigenvalues": "linalg.eigvals", "eigenvectors": "linalg.eig", "eigen": "linalg.eig", "eigs": "linalg.eig",
        "norml1": "linalg.vector_norm", "norml2": "linalg.vector_norm", "l1_norm": "linalg.vector_norm",
        "l2_norm": "linalg.vector_norm", "least_squares": "linalg.lstsq", "lstsq_solve": "linalg.lstsq",
        "linear_solve": "linalg.solve", "solve_linear": "linalg.solve", "matrix_solve": "linalg.solve",
        "random_normal": "randn", "rand_normal": "randn", "exponent": "exp", "filled": "full", "select_where": "where",
        "ndims": "Tensor.ndim", "normal_random": "randn", "random_uniform": "rand", "permutation": "randperm",
        "shuffle": "randperm", "random_shuffle": "randperm", "choice": "multinomial", "random_choice": "multinomial",
        "categorical": "multinomial", "set_seed": "manual_seed", "set_random_seed": "manual_seed",
        "random_seed": "manual_seed", "seed_all": "manual_seed", "get_seed": "initial_seed", "device_put": "Tensor.to",
        "device_get": "Tensor.cpu", "cuda_available": "cuda.is_available", "gpu_available": "accelerator.is_available",
        "is_gpu_available": "accelerator.is_available", "num_gpus": "accelerator.device_count",
    },
    "linalg": {
        "logdet": "logdet", "trace": "trace", "expm": "linalg.matrix_exp", "orth": "linalg.qr", "kron": "kron",
        "solve_linear": "linalg.solve", "null_space": "linalg.svd", "mat_mul": "linalg.matmul", "dot": "dot",
        "eigenvectors": "linalg.eig", "least_squares": "linalg.lstsq", "pseudo_inverse": "linalg.pinv",
        "singular_values": "linalg.svdvals", "transpose": "transpose",
    },
    "random": {
        "rand": "rand", "random": "rand", "uniform": "rand", "randn": "randn", "standard_normal": "randn",
        "normal": "normal", "randint": "randint", "integers": "randint", "permutation": "randperm",
        "shuffle": "randperm", "choice": "multinomial", "poisson": "poisson", "binomial": "binomial",
        "exponential": "Tensor.exponential_", "default_rng": "Generator", "RandomState": "Generator",
        "PRNGKey": "manual_seed", "key": "manual_seed", "split": "random.fork_rng", "bernoulli": "bernoulli",
        "categorical": "multinomial",
    },
    "nn": {
        "Dense": "nn.Linear", "FullyConnected": "nn.Linear", "Conv": "nn.Conv2d", "BatchNorm": "nn.BatchNorm2d",
        "MaxPool": "nn.MaxPool2d", "AvgPool": "nn.AvgPool2d", "GlobalAveragePooling2D": "nn.AdaptiveAvgPool2d",
        "GlobalMaxPooling2D": "nn.AdaptiveMaxPool2d", "AveragePooling2D": "nn.AvgPool2d",
        "Conv2DTranspose": "nn.ConvTranspose2d", "Swish": "nn.SiLU", "BinaryCrossEntropy": "nn.BCELoss",
        "CategoricalCrossentropy": "nn.CrossEntropyLoss", "MeanSquaredError": "nn.MSELoss",
        "MeanAbsoluteError": "nn.L1Loss", "MAELoss": "nn.L1Loss", "Layer": "nn.Module", "Model": "nn.Module",
        "Embed": "nn.Embedding", "Attention": "nn.MultiheadAttention", "SelfAttention": "nn.MultiheadAttention",
        "Reshape": "nn.Unflatten", "GaussianNoise": "normal", "Concatenate": "cat", "Add": "add",
        "Variable": "nn.Parameter", "Input": "nn.Identity", "Lambda": "nn.Module",
    },
    "nn.functional": {
        "swish": "nn.functional.silu",
        "sigmoid_cross_entropy_with_logits": "nn.functional.binary_cross_entropy_with_logits",
        "softmax_cross_entropy": "nn.functional.cross_entropy", "mse": "nn.functional.mse_loss",
        "mae": "nn.functional.l1_loss", "dense": "nn.functional.linear",
        "attention": "nn.functional.scaled_dot_product_attention", "resize": "nn.functional.interpolate",
        "dot_product_attention": "nn.functional.scaled_dot_product_attention",
    },
    "distributions": {
        "Gaussian": "distributions.Normal", "MultivariateGaussian": "distributions.MultivariateNormal",
    },
    "optim": {
        "Momentum": "optim.SGD", "Nesterov": "optim.SGD", "GradientDescent": "optim.SGD",
        "StepLR": "optim.lr_scheduler.StepLR", "Ftrl": "optim.Adagrad",
        "ExponentialDecay": "optim.lr_scheduler.ExponentialLR", "CosineDecay": "optim.lr_scheduler.CosineAnnealingLR",
        "clip_by_global_norm": "nn.utils.clip_grad_norm_",
    },
}  # fmt: skip

# What a part of a name is written as for a comparison; a longer one stands before those that it has inside.
SAME = {
    "standarddeviation": "std", "stdev": "std", "covariance": "cov", "variance": "var", "squareroot": "sqrt",
    "absolutevalue": "abs", "absolute": "abs", "maximum": "max", "minimum": "min", "average": "mean", "cosine": "cos",
    "sine": "sin", "tangent": "tan", "arc": "a", "inverse": "inv", "cumulative": "cum", "product": "prod",
    "normalization": "norm", "normalisation": "norm", "convolution": "conv", "pooling": "pool", "logarithm": "log",
    "determinant": "det", "multiply": "mul", "subtract": "sub", "divide": "div", "gradient": "grad",
    "kronecker": "kron", "differences": "diff", "difference": "diff", "concatenate": "cat", "concat": "cat",
    "eigenvalue": "eigval", "truncate": "trunc", "ceiling": "ceil", "signum": "sign", "conjugate": "conj",
    "imaginary": "imag", "hypotenuse": "hypot", "random": "rand", "integers": "int", "integer": "int",
    "permutation": "perm", "dimension": "dim", "negative": "neg", "diagonal": "diag", "decomposition": "",
}  # fmt: skip
FILLING = frozenset(
    """
    activation array arrays decomp distribution function layer layers loss matrix optimizer reduce tensor tensors
    """.split()
)
NO_SUBJECT = ("device", "is", "nan", "random", "tensor", "to")  # what the name of another thing may begin with


def ending(module: str, name: str, there: Iterable[str]) -> str:
    """The end of the message that a module ("" is the package) has no such name; `there`: the names that it has."""
    if name.startswith("_"):  # Python's own tools ask, and programs by hasattr(): nobody writes one by mistake
        return ""
    public = sorted(n for n in there if not n.startswith("_"))
    table, plain = MEANT.get(module, {}), name.rstrip("_")
    here = f"{module}.{plain}" if module else plain
    meant = here if plain in public else table.get(name) or _elsewhere(module, plain)
    meant = meant or _alike(module, name, table, public)
    if not meant and (found := _by_words(name, public) or _by_letters(name, public)):
        meant = f"{module}.{found}" if module else found
    if not meant:
        return ""
    shown = meant.removeprefix(f"{module}.") if module else meant
    if module and shown == meant:  # elsewhere
        shown = f"tensorpy.{meant}"
    return f"; the nearest that is there is '{shown}'"


@cache
def _key(name: str, filled: bool) -> str:
    """What names have in common that are written in several ways: arg_maximum, ArgMax and argmax."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower().split("_")
    text = "".join(word for word in words if filled or word not in FILLING) or "".join(words)
    for long, short in SAME.items():
        text = text.replace(long, short)
    return text


def _alike(module: str, name: str, table: dict[str, str], public: list[str]) -> str:
    """A name, here or in the table, with the same key; first with all words, then without those that say little."""
    names = {n: f"{module}.{n}" if module else n for n in public} | table
    for asked, there in ((True, True), (False, True), (False, False)):
        key = _key(name, asked)
        found = next((meant for n, meant in names.items() if _key(n, there) == key), "")
        if found:
            return found
    return ""


def _elsewhere(module: str, name: str) -> str:
    """The same name in a part of the package that is there without an import."""
    from tensorpy import _C

    if module == "":
        if hasattr(_C.Tensor, name):
            return f"Tensor.{name}"
        for part in ("linalg", "fft", "special"):
            if hasattr(getattr(_C, f"_{part}"), f"{part}_{name}"):
                return f"{part}.{name}"
    if module in ("", "nn"):
        functional = sys.modules.get("tensorpy.nn.functional")
        if name in vars(functional or _C._nn):
            return f"nn.functional.{name}"
    return ""


def _by_words(name: str, public: list[str]) -> str:
    """mul_tensor -> mul, tensor_mul -> mul: the first of the words that is a name, but for what all are of."""
    words = [w for w in re.split("_+", name) if w]
    if len(words) < 2:
        return ""
    for end in range(len(words) - 1, 0, -1):
        if (first := "_".join(words[:end])) in public and first not in NO_SUBJECT:
            return first
    return words[-1] if words[0] == "tensor" and words[-1] in public else ""


def _by_letters(name: str, public: list[str]) -> str:
    """A slip of the hand: one letter or two neighbours in four are wrong, missing or too many."""
    import difflib

    near = [n for n in difflib.get_close_matches(name, public, 5) if _slips(name, n) <= max(1, len(name) // 4)]
    return min(near, key=lambda n: _slips(name, n), default="")


def _slips(a: str, b: str) -> int:
    """How many letters are exchanged with a neighbour, replaced, put in or left out from one to the other."""
    before, row = list[int](), [*range(len(b) + 1)]
    for i in range(1, len(a) + 1):
        older, before, row = before, row, [i]
        for j in range(1, len(b) + 1):
            cost = min(before[j] + 1, row[-1] + 1, before[j - 1] + (a[i - 1] != b[j - 1]))
            if i > 1 and j > 1 and a[i - 1] == b[j - 2] and a[i - 2] == b[j - 1]:
                cost = min(cost, older[j - 2] + 1)
            row.append(cost)
    return row[-1]
