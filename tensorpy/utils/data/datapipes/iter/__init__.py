"""Pipes of samples one after the other. Each reads its source from the beginning whenever it is iterated."""

from __future__ import annotations

from tensorpy.utils.data.datapipes.iter.callable import Collator, Mapper
from tensorpy.utils.data.datapipes.iter.combinatorics import Sampler, Shuffler
from tensorpy.utils.data.datapipes.iter.combining import Concater, Multiplexer, Zipper
from tensorpy.utils.data.datapipes.iter.filelister import FileLister
from tensorpy.utils.data.datapipes.iter.fileopener import FileOpener
from tensorpy.utils.data.datapipes.iter.forking import Demultiplexer, Forker
from tensorpy.utils.data.datapipes.iter.grouping import Batcher, Grouper, UnBatcher
from tensorpy.utils.data.datapipes.iter.routeddecoder import RoutedDecoder
from tensorpy.utils.data.datapipes.iter.selecting import Filter
from tensorpy.utils.data.datapipes.iter.sharding import ShardingFilter
from tensorpy.utils.data.datapipes.iter.streamreader import StreamReader
from tensorpy.utils.data.datapipes.iter.utils import IterableWrapper

__all__ = [
    "Batcher",
    "Collator",
    "Concater",
    "Demultiplexer",
    "FileLister",
    "FileOpener",
    "Filter",
    "Forker",
    "Grouper",
    "IterableWrapper",
    "Mapper",
    "Multiplexer",
    "RoutedDecoder",
    "Sampler",
    "ShardingFilter",
    "Shuffler",
    "StreamReader",
    "UnBatcher",
    "Zipper",
]
