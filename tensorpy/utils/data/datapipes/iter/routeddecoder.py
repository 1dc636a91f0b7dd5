"""A pipe of decoded files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tensorpy.utils.data.datapipes.datapipe import IterDataPipe, functional_datapipe
from tensorpy.utils.data.datapipes.iter._of_one import known_length
from tensorpy.utils.data.datapipes.utils.decoder import Decoder, extension_extract_fn

__all__ = ["RoutedDecoder"]


@functional_datapipe("routed_decode")
class RoutedDecoder(IterDataPipe[Any]):
    """(path, what the first handler that knows its extension makes of the file) of each (path, open file)."""

    def __init__(
        self, datapipe: Any, *handlers: Callable[..., Any], key_fn: Callable[[str], str] = extension_extract_fn
    ) -> None:
        self.datapipe, self.decoder = datapipe, Decoder(*handlers, key_fn=key_fn)

    def add_handler(self, *handler: Callable[..., Any]) -> None:
        """Adds handlers, which are asked after those that are there."""
        self.decoder.add_handler(*handler)

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        for data in self.datapipe:
            yield data[0], self.decoder(data)[data[0]]

    def __len__(self) -> int:
        return known_length(self, self.datapipe)
