"""Decoders of files: the text, numbers and JSON that bytes are, by the extension of their name."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable
from typing import Any

import tensorpy as tp

__all__ = ["Decoder", "basichandlers", "extension_extract_fn"]


def basichandlers(extension: str, data: bytes) -> Any:
    """Text, whole numbers, JSON and files of `tensorpy.save`; None of other extensions. Pickles stay bytes, as reading
    one may run code.

    Example:
        >>> tp.utils.data.datapipes.utils.decoder.basichandlers("json", b"[1, 2]")
        [1, 2]
    """
    if extension in ("txt", "text", "transcript"):
        return data.decode("utf-8")
    if extension in ("cls", "cls2", "class", "count", "index", "inx", "id"):
        return int(data)
    if extension in ("json", "jsn"):
        return json.loads(data)
    if extension == "pt":
        return tp.load(io.BytesIO(data))
    return None


def extension_extract_fn(pathname: str) -> str:
    """The extension of a path, without its dot."""
    return os.path.splitext(pathname)[1].removeprefix(".")


class Decoder:
    """What the first handler that knows the extension makes of data, which may be bytes or a stream.

    Arguments:
        handler: functions of an extension and bytes, which give None of what they do not know
        key_fn: what makes the extension of a name

    Example:
        >>> d = tp.utils.data.datapipes.utils.decoder
        >>> d.Decoder(d.basichandlers)(("a.txt", b"text"))
        {'a.txt': 'text'}
    """

    def __init__(self, *handler: Callable[..., Any], key_fn: Callable[[str], str] = extension_extract_fn) -> None:
        self.handlers: list[Callable[..., Any]] = list(handler)
        self.key_fn = key_fn

    def add_handler(self, *handler: Callable[..., Any]) -> None:
        """Adds handlers, which are asked after those that are there."""
        self.handlers += handler

    def decode1(self, key: str, data: Any) -> Any:
        """What one value is, under an extension."""
        if not data:
            return data
        if hasattr(data, "read"):
            stream, data = data, b"".join(data)
            stream.close()
        for handler in self.handlers:
            result = handler(key, data)
            if result is not None:
                return result
        return data

    def decode(self, data: Any) -> dict[str, Any]:
        """What the values of (name, value, ...) or of a dict are."""
        pairs = data.items() if isinstance(data, dict) else zip(data[::2], data[1::2], strict=True)
        return {key: self.decode1(self.key_fn(key), value) for key, value in pairs}

    def __call__(self, data: Any) -> dict[str, Any]:
        return self.decode(data)
