"""What `import torch` finds where a process was told that torch means tensorpy, and in the processes that it starts."""

import tensorpy

tensorpy.as_torch()
