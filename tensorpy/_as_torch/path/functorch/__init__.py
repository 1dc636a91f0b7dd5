"""torch.func under its first name, where torch means tensorpy."""

import tensorpy

tensorpy.as_torch()

from tensorpy.func import make_functional as _older  # noqa: E402
from tensorpy.func._old_names import deprecated as _deprecated  # noqa: E402
from tensorpy.func.make_functional import FunctionalModule, FunctionalModuleWithBuffers  # noqa: E402, F401
from tensorpy.fx.experimental.proxy_tensor import make_fx  # noqa: E402, F401

vmap = _deprecated(tensorpy.func.vmap, "torch.vmap")
grad = _deprecated(tensorpy.func.grad)
grad_and_value = _deprecated(tensorpy.func.grad_and_value)
vjp = _deprecated(tensorpy.func.vjp)
jvp = _deprecated(tensorpy.func.jvp)
jacrev = _deprecated(tensorpy.func.jacrev)
jacfwd = _deprecated(tensorpy.func.jacfwd)
hessian = _deprecated(tensorpy.func.hessian)
functionalize = _deprecated(tensorpy.func.functionalize)
make_functional = _deprecated(_older.make_functional, "torch.func.functional_call")
make_functional_with_buffers = _deprecated(_older.make_functional_with_buffers, "torch.func.functional_call")
combine_state_for_ensemble = _deprecated(_older.combine_state_for_ensemble, "torch.func.stack_module_state")
