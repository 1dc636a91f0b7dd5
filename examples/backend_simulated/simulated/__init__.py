"""The device "simulated": loaded by its entry point when its name is first used; `import simulated` does it too."""

from tensorpy.utils.extension import load_installed

load_installed("simulated._device")
