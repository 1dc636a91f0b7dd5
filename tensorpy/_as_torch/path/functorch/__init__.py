"""torch.func under its first name, where torch means tensorpy."""

import tensorpy

tensorpy.as_torch()

from tensorpy.func import *  # noqa: E402, F403
