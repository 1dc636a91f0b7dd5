"""Points for TensorBoard's projector: tables of numbers and labels, a sheet of pictures, and where they are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tensorpy.utils.tensorboard._convert_np import array_of
from tensorpy.utils.tensorboard._utils import filled_up, make_grid
from tensorpy.utils.tensorboard.summary import levels, png

__all__ = ["write_embedding"]

_LARGEST = 8192  # of a sheet's sides


def _table(rows: Any) -> str:
    return "".join("\t".join(str(v) for v in row) + "\n" for row in rows)


def _labels(metadata: Sequence[Any], header: Sequence[str] | None) -> str:
    rows = metadata if header else [[label] for label in metadata]
    return _table([header, *rows] if header else rows)


def _sheet(images: Any) -> bytes:
    values = array_of(images)
    side = math.ceil(math.sqrt(len(values)))
    if side * max(values.shape[2:]) > _LARGEST:
        raise ValueError(f"the pictures of {len(values)} points do not fit into {_LARGEST} pixels")
    pixels = levels(make_grid(filled_up(values, side * side), side))
    return png(np.ascontiguousarray(np.moveaxis(np.repeat(pixels, 3, 0) if len(pixels) == 1 else pixels, 0, -1)))


def write_embedding(
    folder: Path, name: str, tag: str, points: Any, metadata: Any, images: Any, header: Sequence[str] | None
) -> str:
    """Writes the files of one set of points; what the projector's configuration says of it."""
    values = array_of(points)
    if values.ndim != 2:
        raise AssertionError("mat should be 2D, where mat.size(0) is the number of data points")
    here = folder / name
    here.mkdir(parents=True, exist_ok=True)
    (here / "tensors.tsv").write_text(_table(values.tolist()))
    lines = [f'tensor_name: "{tag}:{name.split("/")[0]}"', f'tensor_path: "{name}/tensors.tsv"']
    if metadata is not None:
        if len(metadata) != len(values):
            raise AssertionError("#labels should equal with #data points")
        (here / "metadata.tsv").write_text(_labels(metadata, header))
        lines.append(f'metadata_path: "{name}/metadata.tsv"')
    if images is not None:
        if len(images) != len(values):
            raise AssertionError("#images should equal with #data points")
        (here / "sprite.png").write_bytes(_sheet(images))
        sizes = array_of(images).shape
        sprite = [f'  image_path: "{name}/sprite.png"', f"  single_image_dim: {sizes[3]}"]
        lines += ["sprite {", *sprite, f"  single_image_dim: {sizes[2]}", "}"]
    return "embeddings {\n" + "\n".join(lines) + "\n}\n"
