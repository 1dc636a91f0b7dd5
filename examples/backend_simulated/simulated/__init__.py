"""The device "simulated": loaded by its entry point when the name is first used, or by `import simulated`."""

from tensorpy.utils.extension import load_installed

load_installed("simulated._device")
