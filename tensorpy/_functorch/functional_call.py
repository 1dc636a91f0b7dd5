"""See tensorpy.func."""

from tensorpy.func import functional_call as functional_call
from tensorpy.func import stack_module_state as stack_module_state
