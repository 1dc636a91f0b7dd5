"""The table of modules: how each is made and called, for the tests against torch and those without it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Case:
    """A class of nn, the arguments of its constructor, and what makes the arrays that it is called with.

    An array of floats is differentiated with respect to; `random` says that values are not compared, grad=False that
    gradients are not. Arguments that are arrays become tensors.
    """

    name: str
    args: Sequence[Any]
    inputs: Sequence[Callable[[np.random.Generator], Any]]
    options: dict[str, Any] = field(default_factory=dict)
    call: dict[str, Any] = field(default_factory=dict)
    random: bool = False
    grad: bool = True

    def __str__(self) -> str:
        given = [*map(str, self.args), *(f"{k}={v}" for k, v in {**self.options, **self.call}.items())]
        return f"{self.name}({', '.join(given)})"[:70]


@dataclass(frozen=True)
class Made:
    """An argument that each library makes for itself, from its `nn`."""

    of: Callable[[Any], Any]

    def __repr__(self) -> str:
        return "Made"


def x(*shape: int) -> Callable[[np.random.Generator], Any]:
    """Normal numbers."""
    return lambda rng: rng.standard_normal(shape)


def unit(*shape: int) -> Callable[[np.random.Generator], Any]:
    """Numbers in (0, 1)."""
    return lambda rng: rng.uniform(0.05, 0.95, shape)


def ints(high: int, *shape: int) -> Callable[[np.random.Generator], Any]:
    """Whole numbers below high."""
    return lambda rng: rng.integers(0, high, shape)


def signs(*shape: int) -> Callable[[np.random.Generator], Any]:
    """1 and -1."""
    return lambda rng: rng.integers(0, 2, shape).astype(np.int64) * 2 - 1


def fixed(values: Any, dtype: Any = None) -> Callable[[np.random.Generator], Any]:
    """These numbers."""
    return lambda rng: np.array(values, dtype=dtype)


def log_probs(*shape: int) -> Callable[[np.random.Generator], Any]:
    """Logarithms that add up to one along the last dimension."""

    def make(rng: np.random.Generator) -> Any:
        scores = rng.standard_normal(shape)
        return scores - np.log(np.exp(scores).sum(-1, keepdims=True))

    return make


def _of(name: str, inputs: Any, *ways: Any) -> list[Case]:
    """One class made in several ways: a tuple of arguments, or a dictionary of options."""
    return [Case(name, *((), inputs, way) if isinstance(way, dict) else (way, inputs)) for way in ways or ((),)]


VECTORS, SIGNAL, IMAGE, VOLUME = x(3, 5), x(2, 4, 9), x(2, 4, 6, 7), x(2, 4, 4, 5, 6)

ACTIVATIONS = [
    *_of("CELU", [VECTORS], (), {"alpha": 0.7}),
    *_of("ELU", [VECTORS], (), {"alpha": 0.7, "inplace": False}),
    *_of("GELU", [VECTORS], (), {"approximate": "tanh"}),
    *_of("GLU", [x(4, 6)], (), (0,)),
    *_of("Hardshrink", [VECTORS], (), (0.3,)),
    *_of("Hardsigmoid", [VECTORS]),
    *_of("Hardswish", [VECTORS]),
    *_of("Hardtanh", [VECTORS], (), (-0.5, 0.5)),
    *_of("LeakyReLU", [VECTORS], (), (0.2,)),
    *_of("LogSigmoid", [VECTORS]),
    *_of("LogSoftmax", [VECTORS], (1,), (0,)),
    *_of("Mish", [VECTORS]),
    *_of("PReLU", [VECTORS], (), (5, 0.1)),
    *_of("ReLU", [VECTORS]),
    *_of("ReLU6", [VECTORS]),
    *_of("SELU", [VECTORS]),
    *_of("SiLU", [VECTORS]),
    *_of("Sigmoid", [VECTORS]),
    *_of("Softmax", [VECTORS], (1,), (0,)),
    *_of("Softmax2d", [IMAGE]),
    *_of("Softmin", [VECTORS], (1,)),
    *_of("Softplus", [VECTORS], (), (2.0, 1.0)),
    *_of("Softshrink", [VECTORS], (), (0.3,)),
    *_of("Softsign", [VECTORS]),
    *_of("Tanh", [VECTORS]),
    *_of("Tanhshrink", [VECTORS]),
    *_of("Threshold", [VECTORS], (0.1, 20.0)),
    Case("RReLU", (), [VECTORS], {"lower": 0.2, "upper": 0.2}),
    Case("RReLU", (), [VECTORS], random=True),
]

LINEAR = [
    *_of("Identity", [VECTORS], (), (54, 3)),
    *_of("Linear", [VECTORS], (5, 4), (5, 4, False)),
    *_of("Bilinear", [x(3, 5), x(3, 4)], (5, 4, 2), (5, 4, 2, False)),
    *_of("LazyLinear", [VECTORS], (4,), (4, False)),
]

CONVOLUTIONS = [
    *_of("Conv1d", [SIGNAL], (4, 6, 3), (4, 6, 3, 2, 1, 1, 2), (4, 6, 3, 1, "same", 2, 1, False)),
    *_of("Conv2d", [IMAGE], (4, 6, 3), (4, 6, (3, 2), 2, (1, 0), 1, 2), (4, 2, 2, 1, "same")),
    *_of("Conv2d", [IMAGE], *((4, 2, 3, 1, (1, 2), 1, 1, True, mode) for mode in ("reflect", "replicate", "circular"))),
    *_of("Conv3d", [VOLUME], (4, 2, 2), (4, 4, (1, 2, 3), 1, (0, 1, 1), 1, 4, False)),
    *_of("ConvTranspose1d", [SIGNAL], (4, 6, 3), (4, 6, 3, 2, 1, 1, 2, False, 2)),
    *_of("ConvTranspose2d", [IMAGE], (4, 6, 3), (4, 6, 3, (2, 1), 1, (1, 0))),
    *_of("ConvTranspose3d", [VOLUME], (4, 2, 2), (4, 2, 2, 2)),
    Case("ConvTranspose2d", (4, 2, 3, 2), [IMAGE], call={"output_size": [14, 15]}),
    *_of("LazyConv1d", [SIGNAL], (6, 3)),
    *_of("LazyConv2d", [IMAGE], (6, 3, 2, 1)),
    *_of("LazyConv3d", [VOLUME], (2, 2)),
    *_of("LazyConvTranspose1d", [SIGNAL], (6, 3)),
    *_of("LazyConvTranspose2d", [IMAGE], (6, 3, 2)),
    *_of("LazyConvTranspose3d", [VOLUME], (2, 2)),
]

NORMS = [
    *_of("BatchNorm1d", [x(6, 4)], (4,), (4, 1e-3, 0.3, False), {"num_features": 4, "track_running_stats": False}),
    *_of("BatchNorm1d", [SIGNAL], (4,), {"num_features": 4, "momentum": None}, {"num_features": 4, "bias": False}),
    *_of("BatchNorm2d", [IMAGE], (4,)),
    *_of("BatchNorm3d", [VOLUME], (4,)),
    *_of("LazyBatchNorm1d", [x(6, 4)], (), {"bias": False}),
    *_of("LazyBatchNorm2d", [IMAGE]),
    *_of("LazyBatchNorm3d", [VOLUME]),
    *_of("InstanceNorm1d", [SIGNAL], (4,), {"num_features": 4, "affine": True, "track_running_stats": True}),
    *_of("InstanceNorm1d", [x(4, 9)], (4,)),
    *_of("InstanceNorm2d", [IMAGE], (4,), {"num_features": 4, "affine": True}),
    *_of("InstanceNorm3d", [VOLUME], (4,)),
    *_of("LazyInstanceNorm1d", [SIGNAL]),
    *_of("LazyInstanceNorm2d", [IMAGE], {"affine": False}),
    *_of("LazyInstanceNorm3d", [VOLUME]),
    *_of("LayerNorm", [VECTORS], (5,), ((3, 5), 1e-3), {"normalized_shape": 5, "elementwise_affine": False}),
    *_of("LayerNorm", [VECTORS], {"normalized_shape": [5], "bias": False}),
    *_of("GroupNorm", [IMAGE], (2, 4), (4, 4, 1e-3, False), {"num_groups": 2, "num_channels": 4, "bias": False}),
    *_of("RMSNorm", [VECTORS], (5,), ((3, 5), 1e-3, False)),
    *_of("LocalResponseNorm", [IMAGE], (2,), (3, 1e-2, 0.5, 2.0)),
    Case("CrossMapLRN2d", (3, 0.5), [IMAGE], grad=False),  # torch's gradient is not that of its forward
]

POOLS = [
    *_of("MaxPool1d", [SIGNAL], (3,), (3, 2, 1), {"kernel_size": 2, "ceil_mode": True}),
    *_of("MaxPool2d", [IMAGE], (3,), ((3, 2), 2, 1, 1), {"kernel_size": 2, "return_indices": True}),
    *_of("MaxPool3d", [VOLUME], (2,), (2, 1)),
    *_of("AvgPool1d", [SIGNAL], (3,), (3, 2, 1)),
    *_of("AvgPool2d", [IMAGE], (3,), ((3, 2), 2, 1, True, False), {"kernel_size": 2, "divisor_override": 3}),
    *_of("AvgPool3d", [VOLUME], (2,), (2, 1, 1)),
    *_of("LPPool1d", [unit(2, 4, 9)], (2, 3), (1.5, 3, 2, True)),
    *_of("LPPool2d", [unit(2, 4, 6, 7)], (2, 3), (1.5, (3, 2), 2)),
    *_of("LPPool3d", [unit(2, 4, 4, 5, 6)], (2, 2)),
    *_of("AdaptiveAvgPool1d", [SIGNAL], (3,)),
    *_of("AdaptiveAvgPool2d", [IMAGE], (3,), ((None, 2),)),
    *_of("AdaptiveAvgPool3d", [VOLUME], (2,)),
    *_of("AdaptiveMaxPool1d", [SIGNAL], (3,)),
    *_of("AdaptiveMaxPool2d", [IMAGE], (3,), ((3, 2), True)),
    *_of("AdaptiveMaxPool3d", [VOLUME], ((2, None, 3),)),
    *_of("MaxUnpool1d", [x(1, 1, 3), fixed([[[1, 2, 5]]])], (2,)),
    *_of("MaxUnpool2d", [x(1, 1, 2, 2), fixed([[[[0, 3], [9, 15]]]])], (2,), (2, 2)),
    *_of("MaxUnpool3d", [x(1, 1, 1, 1, 2), fixed([[[[[1, 7]]]]])], (2,)),
    Case("MaxUnpool2d", (2,), [x(1, 1, 2, 2), fixed([[[[0, 3], [9, 15]]]])], call={"output_size": (5, 5)}),
    Case("FractionalMaxPool2d", (2, (3, 4)), [IMAGE], {"_random_samples": np.array([0.2, 0.9]) * np.ones((2, 4, 1))}),
    Case("FractionalMaxPool2d", (2,), [IMAGE], {"output_ratio": 0.5, "_random_samples": np.full((2, 4, 2), 0.7)}),
    Case(
        "FractionalMaxPool3d",
        (2, (2, 3, 3)),
        [VOLUME],
        {"_random_samples": np.array([0.1, 0.5, 0.9]) * np.ones((2, 4, 1))},
    ),
]

BORDERS = [
    *_of("ConstantPad1d", [SIGNAL], (2, 3.5), ((1, 2), -1.0)),
    *_of("ConstantPad2d", [IMAGE], (2, 3.5), ((1, 2, 0, 1), 0.0)),
    *_of("ConstantPad3d", [VOLUME], (1, 3.5)),
    *_of("ZeroPad1d", [SIGNAL], (2,)),
    *_of("ZeroPad2d", [IMAGE], ((1, 2, 0, 1),)),
    *_of("ZeroPad3d", [VOLUME], (1,)),
    *_of("ReflectionPad1d", [SIGNAL], (2,)),
    *_of("ReflectionPad2d", [IMAGE], ((1, 2, 0, 1),)),
    *_of("ReflectionPad3d", [VOLUME], (1,)),
    *_of("ReplicationPad1d", [SIGNAL], (2,)),
    *_of("ReplicationPad2d", [IMAGE], ((1, 2, 0, 1),)),
    *_of("ReplicationPad3d", [VOLUME], (1,)),
    *_of("CircularPad1d", [SIGNAL], (2,)),
    *_of("CircularPad2d", [IMAGE], ((1, 2, 0, 1),)),
    *_of("CircularPad3d", [VOLUME], (1,)),
]

SHAPES = [
    *_of("Flatten", [IMAGE], (), (0, 2)),
    *_of("Unflatten", [x(2, 6)], (1, (2, 3)), (1, [3, 2])),
    *_of("Fold", [x(2, 16, 12)], ((4, 5), 2)),
    *_of("Unfold", [IMAGE], (2,), ((2, 3), 1, 1, 2)),
    *_of("PixelShuffle", [IMAGE], (2,)),
    *_of("PixelUnshuffle", [x(1, 2, 4, 6)], (2,)),
    *_of("ChannelShuffle", [IMAGE], (2,)),
    *_of("Upsample", [SIGNAL], {"scale_factor": 2}, {"size": 5, "mode": "linear"}),
    *_of("Upsample", [IMAGE], {"scale_factor": (2, 1.5)}, {"size": (5, 4), "mode": "bicubic", "align_corners": True}),
    *_of("UpsamplingNearest2d", [IMAGE], {"scale_factor": 2}, {"size": (3, 4)}),
    *_of("UpsamplingBilinear2d", [IMAGE], {"scale_factor": 2}),
]

DROPOUTS = [
    Case(name, (), [data], options, random=options.get("p", 0.5) not in (0.0, 1.0))
    for name, data in (
        ("Dropout", VECTORS),
        ("Dropout1d", SIGNAL),
        ("Dropout2d", IMAGE),
        ("Dropout3d", VOLUME),
        ("AlphaDropout", VECTORS),
        ("FeatureAlphaDropout", IMAGE),
    )
    for options in ({}, {"p": 0.0})
]

_ROWS = {"num_embeddings": 7, "embedding_dim": 4}

TABLES = [
    *_of("Embedding", [ints(7, 2, 3)], (7, 4), (7, 4, 2), (7, 4, -1), {**_ROWS, "max_norm": 1.0}),
    *_of("Embedding", [ints(7, 2, 3)], {**_ROWS, "scale_grad_by_freq": True}),
    *_of("EmbeddingBag", [ints(7, 3, 4)], (7, 4), {**_ROWS, "mode": "sum"}, {**_ROWS, "mode": "max"}),
    *_of("EmbeddingBag", [ints(7, 8), fixed([0, 3, 3])], (7, 4), {**_ROWS, "mode": "sum", "padding_idx": 2}),
    *_of("EmbeddingBag", [ints(7, 8), fixed([0, 3, 8])], {**_ROWS, "include_last_offset": True}),
]

DISTANCES = [
    *_of("CosineSimilarity", [VECTORS, VECTORS], (), (0, 1e-3)),
    *_of("PairwiseDistance", [VECTORS, VECTORS], (), (1.0, 1e-3, True)),
]

_REDUCTIONS = ({}, {"reduction": "sum"}, {"reduction": "none"})
_OLD = ({"size_average": False}, {"reduce": False})
_CLASSES = {"in_features": 4, "num_classes": 5, "bias": True, "ignore_index": 2}
_LISTED = fixed([[0, 2, -1, 1, 0], [4, 3, 2, -1, -1], [1, -1, 0, 0, 0]])
_CLASS_WEIGHTS = np.array([0.5, 1.0, 2.0, 0.3, 1.5])

LOSSES = [
    *_of("L1Loss", [VECTORS, VECTORS], *_REDUCTIONS, *_OLD),
    *_of("MSELoss", [VECTORS, VECTORS], *_REDUCTIONS, *_OLD),
    *_of("SmoothL1Loss", [VECTORS, VECTORS], *_REDUCTIONS, {"beta": 0.3}),
    *_of("HuberLoss", [VECTORS, VECTORS], *_REDUCTIONS, {"delta": 0.3}),
    *_of("CrossEntropyLoss", [VECTORS, ints(5, 3)], *_REDUCTIONS, {"label_smoothing": 0.1, "weight": _CLASS_WEIGHTS}),
    *_of("CrossEntropyLoss", [VECTORS, unit(3, 5)], (), {"weight": _CLASS_WEIGHTS}),
    *_of("CrossEntropyLoss", [x(2, 5, 3, 4), ints(5, 2, 3, 4)], (), {"ignore_index": 2}),
    *_of("LinearCrossEntropyLoss", [x(3, 4), ints(5, 3)], (4, 5), _CLASSES, {**_CLASSES, "weight": _CLASS_WEIGHTS}),
    Case("LinearCrossEntropyLoss", (4, 5), [x(3, 4), ints(5, 3, 2)], {"out_features": (2,), "bias": True}),
    *_of("NLLLoss", [log_probs(3, 5), ints(5, 3)], *_REDUCTIONS, {"weight": _CLASS_WEIGHTS}, {"ignore_index": 1}),
    *_of("NLLLoss2d", [x(2, 5, 3, 4), ints(5, 2, 3, 4)]),
    *_of("BCELoss", [unit(3, 5), unit(3, 5)], *_REDUCTIONS, {"weight": _CLASS_WEIGHTS}),
    *_of("BCEWithLogitsLoss", [VECTORS, unit(3, 5)], *_REDUCTIONS, {"pos_weight": _CLASS_WEIGHTS}),
    *_of("KLDivLoss", [log_probs(3, 5), unit(3, 5)], {"reduction": "sum"}, {"reduction": "batchmean"}),
    *_of("KLDivLoss", [log_probs(3, 5), log_probs(3, 5)], {"reduction": "none", "log_target": True}),
    *_of("PoissonNLLLoss", [VECTORS, unit(3, 5)], *_REDUCTIONS),
    *_of("PoissonNLLLoss", [unit(3, 5), unit(3, 5)], {"full": True, "log_input": False}),
    *_of("GaussianNLLLoss", [VECTORS, VECTORS, unit(3, 5)], *_REDUCTIONS, {"full": True}),
    *_of("HingeEmbeddingLoss", [VECTORS, signs(3, 5)], *_REDUCTIONS, {"margin": 0.3}),
    *_of("MarginRankingLoss", [x(4), x(4), signs(4)], *_REDUCTIONS, (0.3,)),
    *_of("CosineEmbeddingLoss", [VECTORS, VECTORS, signs(3)], *_REDUCTIONS, (0.3,)),
    *_of("SoftMarginLoss", [VECTORS, signs(3, 5)], *_REDUCTIONS),
    *_of("MultiLabelSoftMarginLoss", [VECTORS, ints(2, 3, 5)], *_REDUCTIONS, {"weight": _CLASS_WEIGHTS}),
    *_of("MultiMarginLoss", [VECTORS, ints(5, 3)], *_REDUCTIONS, {"p": 2, "margin": 0.5, "weight": _CLASS_WEIGHTS}),
    *_of("MultiMarginLoss", [x(5), fixed(2)]),
    *_of("MultiLabelMarginLoss", [VECTORS, _LISTED], *_REDUCTIONS),
    *_of("MultiLabelMarginLoss", [x(5), fixed([0, 2, -1, 1, 0])]),
    *_of("TripletMarginLoss", [VECTORS, VECTORS, VECTORS], *_REDUCTIONS, {"p": 1, "swap": True, "margin": 0.5}),
    *_of("TripletMarginWithDistanceLoss", [VECTORS, VECTORS, VECTORS], *_REDUCTIONS, {"swap": True, "margin": 0.5}),
    *_of("CTCLoss", [log_probs(8, 2, 5), fixed([[1, 2, 2], [3, 1, 0]]), fixed([8, 6]), fixed([3, 2])], *_REDUCTIONS),
    *_of("CTCLoss", [log_probs(8, 2, 5), fixed([1, 2, 2, 3, 1]), fixed([8, 6]), fixed([3, 2])], {"blank": 4}),
    *_of(
        "CTCLoss",
        [log_probs(2, 2, 5), fixed([[1, 2, 2], [3, 1, 0]]), fixed([2, 2]), fixed([3, 1])],
        {"zero_infinity": True, "reduction": "none"},
    ),
    *_of("AdaptiveLogSoftmaxWithLoss", [x(4, 8), fixed([0, 3, 7, 9])], (8, 10, [3, 6]), (8, 10, [2], 2.0, True)),
]

_SIZES = {"input_size": 3, "hidden_size": 4}

RECURRENT = [
    *(
        case
        for name in ("RNN", "LSTM", "GRU")
        for case in _of(
            name,
            [x(5, 2, 3)],
            (3, 4),
            {**_SIZES, "num_layers": 2, "bidirectional": True},
            {**_SIZES, "bias": False, "batch_first": True},
        )
    ),
    *_of("RNN", [x(5, 3)], {**_SIZES, "nonlinearity": "relu"}),
    *_of("RNN", [x(5, 2, 3), x(1, 2, 4)], (3, 4)),
    *_of("LSTM", [x(5, 2, 3)], {**_SIZES, "proj_size": 2, "num_layers": 2, "bidirectional": True}),
    *_of("LSTM", [x(5, 3)], (3, 4)),
    *_of("RNNCell", [x(2, 3)], (3, 4), {**_SIZES, "nonlinearity": "relu", "bias": False}),
    *_of("RNNCell", [x(2, 3), x(2, 4)], (3, 4)),
    *_of("LSTMCell", [x(2, 3)], (3, 4), (3, 4, False)),
    *_of("LSTMCell", [x(3)], (3, 4)),
    *_of("GRUCell", [x(2, 3), x(2, 4)], (3, 4), (3, 4, False)),
]

_ATTENTION = {"embed_dim": 6, "num_heads": 2}
_LAYER = {"d_model": 6, "nhead": 2, "dim_feedforward": 8, "dropout": 0.0}

TRANSFORMERS = [
    *_of(
        "MultiheadAttention",
        [x(4, 2, 6), x(3, 2, 6), x(3, 2, 6)],
        (6, 2),
        {**_ATTENTION, "bias": False},
        {**_ATTENTION, "add_bias_kv": True, "add_zero_attn": True},
    ),
    *_of("MultiheadAttention", [x(4, 6), x(3, 6), x(3, 6)], (6, 2)),
    *_of("MultiheadAttention", [x(4, 2, 6), x(3, 2, 5), x(3, 2, 4)], {**_ATTENTION, "kdim": 5, "vdim": 4}),
    *_of("MultiheadAttention", [x(2, 4, 6), x(2, 4, 6), x(2, 4, 6)], {**_ATTENTION, "batch_first": True}),
    Case("MultiheadAttention", (6, 2), [x(4, 2, 6), x(3, 2, 6), x(3, 2, 6)], call={"average_attn_weights": False}),
    Case("MultiheadAttention", (6, 2), [x(4, 2, 6), x(3, 2, 6), x(3, 2, 6)], call={"need_weights": False}),
    Case(
        "MultiheadAttention",
        (6, 2),
        [x(3, 2, 6), x(3, 2, 6), x(3, 2, 6)],
        call={
            "attn_mask": np.triu(np.ones((3, 3), dtype=bool), 1),
            "key_padding_mask": np.array([[False, False, True], [False] * 3]),
        },
    ),
    Case(
        "MultiheadAttention",
        (6, 2),
        [x(3, 2, 6), x(3, 2, 6), x(3, 2, 6)],
        call={"attn_mask": np.arange(36.0).reshape(4, 3, 3), "need_weights": False},
    ),
    *_of(
        "TransformerEncoderLayer",
        [x(4, 2, 6)],
        _LAYER,
        {**_LAYER, "activation": "gelu", "batch_first": True, "norm_first": True, "bias": False},
    ),
    *_of("TransformerDecoderLayer", [x(4, 2, 6), x(3, 2, 6)], _LAYER, {**_LAYER, "norm_first": True}),
    *_of(
        "Transformer",
        [x(4, 2, 6), x(3, 2, 6)],
        {**_LAYER, "num_encoder_layers": 2, "num_decoder_layers": 1},
    ),
]

_NORM = {"eps": 1e-3, "momentum": 0.3, "affine": False, "track_running_stats": False}
_WINDOW = {"kernel_size": 2, "stride": 1, "padding": 1, "dilation": 2}
_STRIDES = {"stride": 2, "padding": 1, "dilation": 2, "bias": False}
_DATA = {"1d": SIGNAL, "2d": IMAGE, "3d": VOLUME}
_ROUND = {"padding": 1, "padding_mode": "circular"}


def _first_layer(nn: Any, kind: str) -> Any:
    """A layer of fixed parameters; copies of it make a stack."""
    return getattr(nn, f"Transformer{kind}Layer")(**_LAYER)


def _absolute_difference(a: Any, b: Any) -> Any:
    return (a - b).abs().sum(-1)


# Options that no case above sets.
OPTIONS = [
    *_of("AdaptiveMaxPool1d", [SIGNAL], (3, True)),
    *_of("AdaptiveMaxPool3d", [VOLUME], (2, True)),
    *_of("AvgPool1d", [SIGNAL], (2, 2, 1, True, False)),
    *_of("AvgPool3d", [VOLUME], (2, 2, 1, True, False), {"kernel_size": 2, "divisor_override": 3}),
    *_of("BCEWithLogitsLoss", [VECTORS, unit(3, 5)], {"weight": _CLASS_WEIGHTS}),
    *(
        case
        for d, data in _DATA.items()
        for name, given in (("BatchNorm", {"num_features": 4}), ("LazyBatchNorm", {}))
        for case in _of(name + d, [data], {**given, **_NORM}, {**given, "bias": False})
    ),
    *(
        case
        for d, data in _DATA.items()
        for name, given in (("InstanceNorm", {"num_features": 4}), ("LazyInstanceNorm", {}))
        for case in _of(
            name + d,
            [data],
            {**given, "eps": 1e-3, "affine": True, "bias": False, "momentum": 0.3, "track_running_stats": True},
            {**given, "affine": False, "track_running_stats": False},
        )
    ),
    *(
        case
        for d, data in _DATA.items()
        for name, given in (("Conv", {"in_channels": 4}), ("LazyConv", {}))
        for case in _of(
            name + d,
            [data],
            {**given, "out_channels": 6, "kernel_size": 2, "groups": 2, **_STRIDES},
            {**given, "out_channels": 2, "kernel_size": 2, **_ROUND},
        )
    ),
    *(
        case
        for d, data in _DATA.items()
        for name, given in (("ConvTranspose", {"in_channels": 4}), ("LazyConvTranspose", {}))
        for case in _of(
            name + d,
            [data],
            {**given, "out_channels": 6, "kernel_size": 2, "groups": 2, "output_padding": 1, **_STRIDES},
        )
    ),
    *_of("Embedding", [ints(7, 2, 3)], {**_ROWS, "max_norm": 1.0, "norm_type": 1.0}),
    *_of("Embedding", [ints(7, 2, 3)], {**_ROWS, "_weight": np.arange(28.0).reshape(7, 4), "_freeze": True}),
    *_of("EmbeddingBag", [ints(7, 3, 4)], {**_ROWS, "max_norm": 1.0, "norm_type": 1.0}),
    *_of("EmbeddingBag", [ints(7, 3, 4)], {**_ROWS, "_weight": np.arange(28.0).reshape(7, 4), "mode": "sum"}),
    # each row as often as any: PyTorch divides by the count of another one
    *_of("EmbeddingBag", [fixed([[0, 1, 2], [2, 1, 0]])], {**_ROWS, "scale_grad_by_freq": True, "mode": "sum"}),
    *_of(
        "FractionalMaxPool2d",
        [IMAGE],
        {"kernel_size": 2, "output_size": 3, "return_indices": True, "_random_samples": np.full((2, 4, 2), 0.7)},
    ),
    *_of(
        "FractionalMaxPool3d",
        [VOLUME],
        {"kernel_size": 2, "output_ratio": 0.6, "return_indices": True, "_random_samples": np.full((2, 4, 3), 0.7)},
    ),
    *_of("GaussianNLLLoss", [VECTORS, VECTORS, unit(3, 5)], {"eps": 0.3}),
    *_of("Hardtanh", [VECTORS], {"min_val": -0.3, "max_val": 0.2}),
    *_of("LPPool2d", [unit(2, 4, 6, 7)], (2, 3, 2, True)),
    *_of("LPPool3d", [unit(2, 4, 4, 5, 6)], (2, 2, 3, True)),
    *_of("LinearCrossEntropyLoss", [x(3, 4), ints(5, 3)], {**_CLASSES, "reduction": "sum", "label_smoothing": 0.2}),
    *_of(
        "LinearCrossEntropyLoss",
        [x(8, 4), ints(5, 8)],
        {
            "in_features": 4,
            "num_classes": 5,
            "options": Made(lambda nn: nn.LinearCrossEntropyOptions(batch_chunk_size=4)),
        },
    ),
    *_of("MaxPool1d", [SIGNAL], {**_WINDOW, "return_indices": True}),
    *_of("MaxPool2d", [IMAGE], {**_WINDOW, "ceil_mode": True}),
    *_of("MaxPool3d", [VOLUME], {**_WINDOW, "stride": 2, "ceil_mode": True, "return_indices": True}),
    *_of("MaxUnpool1d", [x(1, 1, 3), fixed([[[1, 2, 4]]])], {"kernel_size": 3, "stride": 2, "padding": 1}),
    *_of("MaxUnpool2d", [x(1, 1, 2, 2), fixed([[[[0, 1], [3, 8]]]])], {"kernel_size": 3, "stride": 2, "padding": 1}),
    *_of("MaxUnpool3d", [x(1, 1, 1, 1, 2), fixed([[[[[0, 2]]]]])], {"kernel_size": 3, "stride": 2, "padding": 1}),
    *_of("NLLLoss2d", [x(2, 5, 3, 4), ints(5, 2, 3, 4)], *_REDUCTIONS, {"weight": _CLASS_WEIGHTS, "ignore_index": 1}),
    *_of("PoissonNLLLoss", [unit(3, 5), unit(3, 5)], {"log_input": False, "eps": 0.3}),
    *_of("TransformerEncoderLayer", [x(4, 2, 6)], {**_LAYER, "layer_norm_eps": 0.1}),
    *_of(
        "TransformerDecoderLayer",
        [x(2, 4, 6), x(2, 3, 6)],
        {**_LAYER, "batch_first": True, "bias": False, "layer_norm_eps": 0.1, "activation": "gelu"},
    ),
    *_of(
        "Transformer",
        [x(2, 4, 6), x(2, 3, 6)],
        {
            **_LAYER,
            "num_encoder_layers": 1,
            "num_decoder_layers": 1,
            "batch_first": True,
            "bias": False,
            "activation": "gelu",
            "norm_first": True,
            "layer_norm_eps": 0.1,
        },
    ),
    *_of(
        "TransformerEncoder",
        [x(4, 2, 6)],
        {
            "encoder_layer": Made(lambda nn: _first_layer(nn, "Encoder")),
            "num_layers": 2,
            "norm": Made(lambda nn: nn.LayerNorm(6)),
            "enable_nested_tensor": False,
            "mask_check": False,
        },
    ),
    *_of(
        "TransformerDecoder",
        [x(4, 2, 6), x(3, 2, 6)],
        {
            "decoder_layer": Made(lambda nn: _first_layer(nn, "Decoder")),
            "num_layers": 2,
            "norm": Made(lambda nn: nn.LayerNorm(6)),
        },
    ),
    *_of("Sequential", [VECTORS], (Made(lambda nn: nn.Linear(5, 4)), Made(lambda nn: nn.Tanh()))),
    *_of("TripletMarginLoss", [VECTORS, VECTORS, VECTORS], {"eps": 0.1}),
    *_of("TripletMarginWithDistanceLoss", [VECTORS, VECTORS, VECTORS], {"distance_function": _absolute_difference}),
    *_of("Unfold", [IMAGE], (2, 2)),
    *_of("Fold", [x(2, 16, 6)], {"output_size": (4, 5), "kernel_size": 2, "dilation": 2, "padding": 1, "stride": 2}),
    *_of("Upsample", [IMAGE], {"scale_factor": 1.7, "mode": "bilinear", "recompute_scale_factor": True}),
    *_of("UpsamplingBilinear2d", [IMAGE], {"size": (5, 4)}),
    Case("CrossMapLRN2d", (3, 0.5, 0.5, 2.0), [IMAGE], grad=False),
]

CASES = [
    *ACTIVATIONS,
    *LINEAR,
    *CONVOLUTIONS,
    *NORMS,
    *POOLS,
    *BORDERS,
    *SHAPES,
    *DROPOUTS,
    *TABLES,
    *DISTANCES,
    *LOSSES,
    *RECURRENT,
    *TRANSFORMERS,
    *OPTIONS,
]
