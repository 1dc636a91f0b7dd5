"""A name that is not there proposes what is near in meaning: another library's name, another spelling, a slip."""

from __future__ import annotations

import operator
import subprocess
import sys

import pytest

import tensorpy as tp
from tensorpy._package.nearby import MEANT, SAME, ending


def test_a_name_that_is_not_there_names_the_nearest() -> None:
    for name, end in {
        "linspce": "; the nearest that is there is 'linspace'",
        "LongTensr": "; the nearest that is there is 'LongTensor'",
        "xqzw": "",
    }.items():
        with pytest.raises(AttributeError) as caught:
            getattr(tp, name)
        assert str(caught.value) == f"module 'tensorpy' has no attribute '{name}'{end}"
    assert not hasattr(tp, "__wrapped__")


# asked name: what is proposed, as the message has it
ASKED = {
    # NumPy, the array API
    "array": "tensor", "ndarray": "Tensor", "astype": "Tensor.to", "as_numpy": "Tensor.numpy", "append": "cat",
    "expand_dims": "unsqueeze", "matrix_transpose": "transpose", "permute_dims": "permute", "is_nan": "isnan",
    "all_close": "allclose", "take_along_axis": "take_along_dim", "flatnonzero": "nonzero", "average": "mean",
    "percentile": "quantile", "standard_deviation": "std", "covariance": "cov", "ptp": "aminmax", "tri": "tril",
    "degrees": "rad2deg", "geomspace": "logspace", "identity": "eye", "rollaxis": "movedim", "length": "numel",
    "nanmax": "amax", "ndim": "Tensor.ndim", "pinv": "linalg.pinv", "rfftn": "fft.rfftn", "bool_": "bool",
    "random_integers": "randint", "array_equal": "equal", "integer_divide": "floor_divide", "corr": "corrcoef",
    # mathematics in words
    "cosine": "cos", "arctangent": "arctan", "argmaximum": "argmax", "arg_min": "argmin", "square_root": "sqrt",
    "absolute_value": "abs", "cumulative_sum": "cumsum", "matrix_inverse": "inverse", "determinant": "det",
    "dot_product": "dot", "cross_product": "cross", "natural_log": "log", "kronecker": "kron", "variance": "var",
    "eigenvalues": "linalg.eigvals", "least_squares": "linalg.lstsq", "difference": "diff", "conjugate": "conj",
    # TensorFlow, Keras
    "reduce_sum": "sum", "reduce_mean": "mean", "reduce_max": "amax", "reduce_logsumexp": "logsumexp",
    "concat_tensors": "cat", "clip_by_value": "clip", "convert_to_tensor": "as_tensor", "boolean_mask": "masked_select",
    "one_hot": "nn.functional.one_hot", "set_random_seed": "manual_seed", "GradientTape": "autograd.grad",
    "nn.Dense": "Linear", "nn.FullyConnectedLayer": "Linear", "nn.BatchNormalization": "BatchNorm2d",
    "nn.MaxPooling2D": "MaxPool2d", "nn.LeakyRelu": "LeakyReLU", "nn.CategoricalCrossentropy": "CrossEntropyLoss",
    "nn.MeanSquaredError": "MSELoss", "nn.GlobalAveragePooling2D": "AdaptiveAvgPool2d",
    "nn.functional.softmax_cross_entropy": "cross_entropy", "optim.AdamOptimizer": "Adam",
    "optim.Momentum": "SGD", "optim.GradientDescent": "SGD", "FullyConnected": "nn.Linear",
    "GradientDescent": "optim.SGD", "Dense": "nn.Linear", "is_gpu_available": "accelerator.is_available",
    # JAX, Flax
    "value_and_grad": "func.grad_and_value", "stop_gradient": "Tensor.detach", "device_put": "Tensor.to",
    "nn.Embed": "Embedding", "random.PRNGKey": "tensorpy.manual_seed", "nn.MultiHeadAttention": "MultiheadAttention",
    # MATLAB and others
    "rand_normal": "randn", "random_uniform": "rand", "random_permutation": "randperm", "shuffle": "randperm",
    "expand_as": "Tensor.expand_as", "size_of": "numel", "cross_entropy_loss": "nn.functional.cross_entropy",
    # the same name elsewhere
    "gelu": "nn.functional.gelu", "eigh": "linalg.eigh", "erfcx": "special.erfcx", "fftfreq": "fft.fftfreq",
    "view": "Tensor.view", "nn.relu": "functional.relu", "linalg.inverse": "inv", "random.rand": "tensorpy.rand",
    # words in another order, slips
    "concatenate_": "concatenate", "mul_tensor": "mul", "tensor_mul": "mul", "norml1": "linalg.vector_norm",
    "linalg.svdd": "svd", "nn.Liner": "Linear", "optim.SDG": "SGD", "optim.lr_scheduler.StepLr": "StepLR",
    "nn.functional.crossentropy": "cross_entropy", "nn.init.kaiming_norm_": "kaiming_normal_",
    "nn.utils.spectralnorm": "spectral_norm", "utils.dta": "data", "utils.data.Dataloader": "DataLoader",
    "distributions.Gaussian": "Normal", "fft.ftt": "fft", "special.erfinvv": "erfinv",
    "autograd.gradcheckk": "gradcheck", "func.jacrevv": "jacrev", "sparse.mmm": "mm", "library.customop": "custom_op",
    "profiler.profil": "profile", "masked.masked_tensr": "masked_tensor",
}  # fmt: skip


@pytest.mark.parametrize(("asked", "meant"), ASKED.items())
def test_a_name_that_is_not_there_names_what_has_its_meaning(asked: str, meant: str) -> None:
    module, _, name = asked.rpartition(".")
    where = operator.attrgetter(module)(tp) if module else tp
    with pytest.raises(AttributeError, match=f"no attribute '{name}'; the nearest that is there is '{meant}'$"):
        getattr(where, name)
    inside = tp if not module or meant.startswith("tensorpy.") else where
    operator.attrgetter(meant.removeprefix("tensorpy."))(inside)


@pytest.mark.parametrize("module", MEANT)
def test_the_table_names_what_is_there_for_what_is_not(module: str) -> None:
    asked = operator.attrgetter(module)(tp) if module else tp
    assert [name for name in MEANT[module] if hasattr(asked, name)] == []
    for meant in MEANT[module].values():
        operator.attrgetter(meant)(tp)


def test_parts_of_names_are_replaced_before_those_that_they_have_inside() -> None:
    parts = list(SAME)
    hidden = [(long, part) for i, part in enumerate(parts) for long in parts[i + 1 :] if part in long]
    assert hidden == []


@pytest.mark.parametrize("name", ["zzz", "clonee_of_all", "placeholder", "toeplitz", "qwertyuiop"])
def test_what_is_near_to_nothing_gets_no_proposal(name: str) -> None:
    assert ending("", name, ["clone", "has_openmp", "split", "real", "type"]) == ""


def test_letters_alone_do_not_bring_together_what_means_something_else() -> None:
    for name, other in {"cosine": "clone", "as_numpy": "has_openmp", "corr": "ormqr", "toeplitz": "split"}.items():
        assert f"'{other}'" not in ending("", name, dir(tp)), name


def test_private_names_get_no_proposal() -> None:
    """Programs ask for many at once by hasattr(): each would be compared with all names that are there."""
    assert ending("", "_sine", dir(tp)) == "" and ending("", "sine", dir(tp)) != ""


def test_proposals_are_loaded_when_a_name_is_missing() -> None:
    program = (
        "import sys, tensorpy as tp\n"
        "assert 'tensorpy._package.nearby' not in sys.modules\n"
        "there = {m for m in sys.modules if m.startswith('tensorpy')}\n"
        "assert not hasattr(tp, 'cosine')\n"
        "print(sorted({m for m in sys.modules if m.startswith('tensorpy')} - there))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['tensorpy._package.nearby']"
