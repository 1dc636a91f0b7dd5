"""See tensorpy.func."""

from tensorpy.func import grad as grad
from tensorpy.func import grad_and_value as grad_and_value
from tensorpy.func import vmap as vmap
