"""What functorch had on trial."""

import tensorpy

tensorpy.as_torch()

from tensorpy._functorch.apis import chunk_vmap  # noqa: E402, F401
from tensorpy.func import (  # noqa: E402, F401
    functionalize,
    hessian,
    jacfwd,
    jvp,
    replace_all_batch_norm_modules_,
)
