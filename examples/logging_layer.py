"""A layer of one's own: prints each operator that is called, with its arguments' shapes. `with logged(): ...`"""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import tensorpy as tp

BELOW = tp.dispatch.below("Tracer")  # the keys under this layer


def log(op: Any, keys: int, *args: Any, **kwargs: Any) -> Any:
    result = op.redispatch(keys & BELOW, *args, **kwargs)
    print(f"{op.__name__}({', '.join(str(list(a.shape)) for a in args if isinstance(a, tp.Tensor))})")
    return result


@contextmanager
def logged() -> Generator[None, None, None]:
    layer = tp.library.Library("_", "IMPL")
    layer.fallback(log, "Tracer", with_keyset=True)
    try:
        with tp.dispatch.include("Tracer"):
            yield
    finally:
        layer._destroy()  # pyright: ignore[reportPrivateUsage]


if __name__ == "__main__":
    with logged():
        x = tp.ones(2, 3, requires_grad=True)
        (x @ x.T).sum().backward()
