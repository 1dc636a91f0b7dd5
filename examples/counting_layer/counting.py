"""The layer of counting.c, built at its first use: `with counted() as taken: ...; print(taken())`"""

from contextlib import contextmanager
from pathlib import Path

import tensorpy as tp
from tensorpy.utils.extension import load


@contextmanager
def counted():
    library = load("counting", Path(__file__).with_name("counting.c"))
    tp.ops.counting.taken()  # from here on
    try:
        with tp.dispatch.include("Tracer"):
            yield tp.ops.counting.taken
    finally:
        tp.ops.unload_library(library)  # all of it is taken out again


if __name__ == "__main__":
    with counted() as taken:
        x = tp.ones(2, 3, requires_grad=True)
        (x @ x.T).sum().backward()
        forward_and_backward = taken()
    print(forward_and_backward, "calls")
