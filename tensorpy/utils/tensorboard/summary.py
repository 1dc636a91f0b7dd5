"""What is logged as TensorBoard's messages, and the bytes of pictures and sounds in them."""

from __future__ import annotations

import importlib
import io
import struct
import wave
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy.utils.tensorboard._convert_np import array_of
from tensorpy.utils.tensorboard._utils import convert_to_HWC

__all__ = [
    "audio",
    "custom_scalars",
    "histogram",
    "histogram_raw",
    "hparams",
    "image",
    "image_boxes",
    "mesh",
    "pr_curve",
    "pr_curve_raw",
    "scalar",
    "tensor_proto",
    "text",
]


def _proto(name: str) -> Any:
    return importlib.import_module(f"tensorboard.compat.proto.{name}_pb2")


def _plugin(name: str, module: str = "metadata") -> Any:
    return importlib.import_module(f"tensorboard.plugins.{name}.{module}")


def _number(value: Any) -> Any:
    values = array_of(value)
    if values.size != 1:
        raise AssertionError(f"a scalar is one number, not an array of {values.shape}")
    return values.reshape(()).astype(float)[()]


def of(**value: Any) -> Any:
    """A summary of one value."""
    summary = _proto("summary").Summary
    return summary(value=[summary.Value(**value)])


_FIELDS = {  # by the dtype: TensorFlow's name, and the message's field of elements
    "f2": ("HALF", "half_val"), "f4": ("FLOAT", "float_val"), "f8": ("DOUBLE", "double_val"),
    "i1": ("INT8", "int_val"), "i2": ("INT16", "int_val"), "i4": ("INT32", "int_val"), "i8": ("INT64", "int64_val"),
    "u1": ("UINT8", "int_val"), "u2": ("UINT16", "int_val"), "b1": ("BOOL", "bool_val"),
    "c8": ("COMPLEX64", "scomplex_val"), "c16": ("COMPLEX128", "dcomplex_val"),
}  # fmt: skip


def half_to_int(f: float) -> int:
    """The 16 bits of a number as float16."""
    return int(np.float16(f).view(np.uint16))


def int_to_half(i: int) -> float:
    """The number that 16 bits are as float16."""
    return float(np.uint16(i).view(np.float16))


_HALVES = {_C.float16: "HALF", _C.bfloat16: "BFLOAT16"}


def _holder(values: Any) -> Any:
    """An array as a message, with its elements in the field of its dtype; those of 16-bit floats are their bits."""
    half = _HALVES.get(values.dtype) if isinstance(values, Tensor) else None
    array = array_of(values if half is None else values.detach().view(_C.int16))
    name, field = (half, "half_val") if half else _FIELDS.get(array.dtype.str[1:], (None, ""))
    if name is None:
        raise ValueError(f"TensorBoard has no tensors of {array.dtype}")
    flat = array.reshape(-1)
    if field == "half_val":
        flat = flat.view(np.uint16)
    if array.dtype.kind == "c":
        flat = flat.view(flat.real.dtype)  # real and imaginary parts by turns
    shape = _proto("tensor_shape").TensorShapeProto
    return _proto("tensor").TensorProto(
        dtype=getattr(_proto("types"), f"DT_{name}"),
        tensor_shape=shape(dim=[shape.Dim(size=n) for n in array.shape]),
        **{field: flat.tolist()},
    )


def tensor_proto(tag: str, tensor: Any) -> Any:
    """A tensor's elements, sizes and dtype."""
    metadata = _proto("summary").SummaryMetadata
    plugin = metadata.PluginData(plugin_name="tensor")
    return of(tag=tag, tensor=_holder(tensor), metadata=metadata(plugin_data=plugin))


def scalar(
    name: str, tensor: Any, collections: Any = None, new_style: bool = False, double_precision: bool = False
) -> Any:
    number = _number(tensor)
    if not new_style:
        return of(tag=name, simple_value=number)
    kinds, proto = _proto("types"), _proto("tensor").TensorProto
    if double_precision:
        holder = proto(dtype=kinds.DT_DOUBLE, double_val=[number])
    else:
        holder = proto(dtype=kinds.DT_FLOAT, float_val=[number])
    return of(tag=name, tensor=holder, metadata=_plugin("scalar").create_summary_metadata("", ""))


# ---- histograms ----


def growing_bins() -> list[float]:
    """Bounds that grow by a tenth, around zero."""
    bounds, bound = [], 1e-12
    while bound < 1e20:
        bounds.append(bound)
        bound *= 1.1
    return [-b for b in reversed(bounds)] + [0.0] + bounds


def histogram(name: str, values: Any, bins: Any, max_bins: int | None = None) -> Any:
    numbers = array_of(values).reshape(-1).astype(float)
    if numbers.size == 0:
        raise ValueError("The input has no element.")
    counts, bounds = np.histogram(numbers, bins=bins)
    step = len(counts) // max_bins if max_bins is not None and len(counts) > max_bins else 1
    if step > 1:  # several bins as one
        counts = np.pad(counts, (0, -len(counts) % step)).reshape(-1, step).sum(1)
        bounds = np.append(bounds[:-1:step], bounds[-1])
    filled = np.flatnonzero(counts)
    if filled.size == 0:
        raise ValueError("The histogram is empty, please file a bug report.")
    first, last = filled[0], filled[-1]
    counts = np.append(counts[first - 1] if first else 0, counts[first : last + 1])  # an empty bin before the first one
    return histogram_raw(
        name, numbers.min(), numbers.max(), numbers.size, numbers.sum(), numbers.dot(numbers),
        bounds[first : last + 2].tolist(), counts.tolist(),
    )  # fmt: skip


def histogram_raw(
    name: str,
    min: float,
    max: float,
    num: int,
    sum: float,
    sum_squares: float,
    bucket_limits: Any,
    bucket_counts: Any,
) -> Any:
    proto = _proto("summary").HistogramProto
    made = proto(
        min=min,
        max=max,
        num=num,
        sum=sum,
        sum_squares=sum_squares,
        bucket_limit=list(bucket_limits),
        bucket=list(bucket_counts),
    )
    return of(tag=name, histo=made)


# ---- pictures and sounds ----


def png(pixels: Any) -> bytes:
    """An image of bytes, (height, width, channels), as a file: one, three or four channels."""
    height, width, channels = pixels.shape
    kind = {1: 0, 2: 4, 3: 2, 4: 6}[channels]

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    rows = np.concatenate([np.zeros((height, 1), np.uint8), pixels.reshape(height, -1)], 1)
    head = struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)
    data = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows.tobytes())) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + data


def _calc_scale_factor(tensor: Any) -> int:
    """What makes bytes of a picture's numbers: floats are in [0, 1]."""
    return 1 if array_of(tensor).dtype == np.uint8 else 255


def levels(values: Any) -> Any:
    """A picture's numbers, floats in [0, 1] or bytes, as bytes."""
    return np.clip(values.astype(np.float32) * _calc_scale_factor(values), 0, 255).astype(np.uint8)


def pixels_of(value: Any, dataformats: str) -> Any:
    """Bytes as (height, width, 3 or 4), of floats in [0, 1] or bytes in the order that the letters say."""
    return levels(convert_to_HWC(array_of(value), dataformats))


def image(tag: str, tensor: Any, rescale: float = 1, dataformats: str = "NCHW") -> Any:
    if rescale != 1:
        raise NotImplementedError("image: a picture has the size that it has")
    return image_of_pixels(tag, pixels_of(tensor, dataformats))


def image_boxes(
    tag: str,
    tensor_image: Any,
    tensor_boxes: Any,
    rescale: float = 1,
    dataformats: str = "CHW",
    labels: Any = None,
) -> Any:
    if rescale != 1 or labels is not None:
        raise NotImplementedError("image_boxes draws boxes alone, in the size that the picture has")
    return image_of_pixels(tag, with_boxes(pixels_of(tensor_image, dataformats), tensor_boxes))


def image_of_pixels(tag: str, pixels: Any) -> Any:
    height, width, channels = pixels.shape
    made = _proto("summary").Summary.Image(
        height=height, width=width, colorspace=channels, encoded_image_string=png(pixels)
    )
    return of(tag=tag, image=made)


def with_boxes(pixels: Any, boxes: Any) -> Any:
    """The outlines of (left, top, right, bottom) drawn into an image."""
    height, width = pixels.shape[:2]
    for box in array_of(boxes).reshape(-1, 4):
        left, top, right, bottom = (int(v) for v in box)
        x, y = slice(max(left, 0), max(right, 0) + 1), slice(max(top, 0), max(bottom, 0) + 1)
        for row in (r for r in (top, bottom) if 0 <= r < height):
            pixels[row, x] = (255, 0, 0)
        for column in (c for c in (left, right) if 0 <= c < width):
            pixels[y, column] = (255, 0, 0)
    return pixels


def audio(tag: str, tensor: Any, sample_rate: int = 44100) -> Any:
    sound = np.clip(array_of(tensor).squeeze(), -1, 1)
    if sound.ndim != 1:
        raise AssertionError("input tensor should be 1 dimensional.")
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(sample_rate)
        out.writeframes((sound * np.iinfo(np.int16).max).astype("<i2").tobytes())
    made = _proto("summary").Summary.Audio(
        sample_rate=sample_rate,
        num_channels=1,
        length_frames=len(sound),
        encoded_audio_string=file.getvalue(),
        content_type="audio/wav",
    )
    return of(tag=tag, audio=made)


# ---- for plugins ----


def text(tag: str, text: str) -> Any:
    kinds, shape = _proto("types"), _proto("tensor_shape").TensorShapeProto
    holder = _proto("tensor").TensorProto(
        dtype=kinds.DT_STRING,
        string_val=[text.encode()],
        tensor_shape=shape(dim=[shape.Dim(size=1)]),
    )
    return of(tag=f"{tag}/text_summary", tensor=holder, metadata=_plugin("text").create_summary_metadata("", ""))


def hparams(
    hparam_dict: dict[str, Any] | None = None,
    metric_dict: dict[str, Any] | None = None,
    hparam_domain_discrete: dict[str, list[Any]] | None = None,
) -> tuple[Any, ...]:
    """What the experiment tries, that a session of it begins, and that it ends."""
    api, data, metadata = _plugin("hparams", "api_pb2"), _plugin("hparams", "plugin_data_pb2"), _plugin("hparams")
    start, infos = data.SessionStartInfo(), []
    for name, value in (hparam_dict or {}).items():
        if value is None:
            continue
        value = array_of(value)[()] if isinstance(value, Tensor) else value
        info = api.HParamInfo(name=name)
        if isinstance(value, (bool, np.bool_)):
            start.hparams[name].bool_value, info.type = bool(value), api.DATA_TYPE_BOOL
        elif isinstance(value, (int, float, np.number)):
            start.hparams[name].number_value, info.type = float(value), api.DATA_TYPE_FLOAT64
        elif isinstance(value, str):
            start.hparams[name].string_value, info.type = value, api.DATA_TYPE_STRING
        else:
            raise ValueError("value should be one of int, float, str, bool, or torch.Tensor")
        for given in (hparam_domain_discrete or {}).get(name, ()):
            kind = "bool" if isinstance(given, bool) else "string" if isinstance(given, str) else "number"
            setattr(info.domain_discrete.values.add(), f"{kind}_value", given)
        infos.append(info)
    measured = [api.MetricInfo(name=api.MetricName(tag=name)) for name in metric_dict or {}]
    parts = {
        metadata.EXPERIMENT_TAG: {"experiment": api.Experiment(hparam_infos=infos, metric_infos=measured)},
        metadata.SESSION_START_INFO_TAG: {"session_start_info": start},
        metadata.SESSION_END_INFO_TAG: {"session_end_info": data.SessionEndInfo(status=api.STATUS_SUCCESS)},
    }
    return tuple(
        of(tag=tag, metadata=metadata.create_summary_metadata(data.HParamsPluginData(**part)))
        for tag, part in parts.items()
    )


def pr_curve_raw(
    tag: str,
    tp: Any,
    fp: Any,
    tn: Any,
    fn: Any,
    precision: Any,
    recall: Any,
    num_thresholds: int = 127,
    weights: Any = None,
) -> Any:
    """Counts of true and false positives, true and false negatives, precision and recall, for each threshold."""
    values = np.stack([array_of(row) for row in (tp, fp, tn, fn, precision, recall)]).astype(np.float32)
    return of(
        tag=tag,
        tensor=_holder(values),
        metadata=_plugin("pr_curve").create_summary_metadata(tag, "", num_thresholds),
    )


def pr_curve(tag: str, labels: Any, predictions: Any, num_thresholds: int = 127, weights: Any = None) -> Any:
    at_most = min(num_thresholds, 127)
    tp, fp, tn, fn, precision, recall = compute_curve(labels, predictions, at_most, weights)
    return pr_curve_raw(tag, tp, fp, tn, fn, precision, recall, at_most)


def compute_curve(labels: Any, predictions: Any, num_thresholds: int = 127, weights: Any = None) -> Any:
    """What pr_curve_raw takes, from labels and probabilities."""
    truth, scores = array_of(labels).reshape(-1) > 0, array_of(predictions).reshape(-1).astype(float)
    weight = np.ones(len(scores)) if weights is None else array_of(weights).reshape(-1).astype(float)
    at = np.floor(scores * (num_thresholds - 1)).astype(int)
    positive, negative = (np.bincount(at, weight * chosen, num_thresholds) for chosen in (truth, ~truth))
    tp, fp = (np.cumsum(counts[::-1])[::-1] for counts in (positive, negative))
    tn, fn = fp[0] - fp, tp[0] - tp
    least = 1e-7
    return tp, fp, tn, fn, tp / np.maximum(least, tp + fp), tp / np.maximum(least, tp + fn)


def custom_scalars(layout: dict[str, dict[str, Sequence[Any]]]) -> Any:
    module = _plugin("custom_scalar", "layout_pb2")
    categories = []
    for category, charts in layout.items():
        made = []
        for title, (kind, tags) in charts.items():
            if kind == "Margin":
                series = module.MarginChartContent.Series(value=tags[0], lower=tags[1], upper=tags[2])
                content = {"margin": module.MarginChartContent(series=[series])}
            else:
                content = {"multiline": module.MultilineChartContent(tag=tags)}
            made.append(module.Chart(title=title, **content))
        categories.append(module.Category(title=category, chart=made))
    metadata, data = _plugin("custom_scalar"), module.Layout(category=categories).SerializeToString()
    shape, kinds = _proto("tensor_shape").TensorShapeProto, _proto("types")
    holder = _proto("tensor").TensorProto(dtype=kinds.DT_STRING, string_val=[data], tensor_shape=shape())
    return of(tag=metadata.CONFIG_SUMMARY_TAG, tensor=holder, metadata=metadata.create_summary_metadata())


def mesh(tag: str, vertices: Any, colors: Any, faces: Any, config_dict: Any) -> Any:
    import json

    config = json.dumps(config_dict or {}, sort_keys=True)
    metadata, kinds = _plugin("mesh"), _plugin("mesh", "plugin_data_pb2").MeshPluginData
    given = [(kinds.VERTEX, vertices), (kinds.FACE, faces), (kinds.COLOR, colors)]
    there = [(kind, array_of(values)) for kind, values in given if values is not None]
    bits = metadata.get_components_bitmask([kind for kind, _ in there])
    summary = _proto("summary").Summary
    return summary(
        value=[
            summary.Value(
                tag=metadata.get_instance_name(tag, kind),
                tensor=_holder(values.astype(np.float32)),
                metadata=metadata.create_summary_metadata(
                    tag,
                    "",
                    kind,
                    bits,
                    list(values.shape),
                    "",
                    json_config=config,
                ),
            )
            for kind, values in there
        ]
    )
