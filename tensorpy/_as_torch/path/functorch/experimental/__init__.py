"""What functorch had on trial."""

import tensorpy

tensorpy.as_torch()

from tensorpy.func import (  # noqa: E402, F401
    functionalize,
    hessian,
    jacfwd,
    jvp,
    replace_all_batch_norm_modules_,
)
from tensorpy.func import vmap as chunk_vmap  # noqa: E402, F401
