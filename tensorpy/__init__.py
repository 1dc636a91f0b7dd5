"""tensorpy: a small, fast tensor library with PyTorch's programming model, written in C.

This package is thin: operators, dispatch, autograd and kernels live in the extension module `tensorpy._C`. Importing it
loads neither NumPy nor BLAS nor OpenCL; they are opened when first needed.
"""

import math as _math
import os as _os
import sys as _sys

# Threads that wait for each other spin only shortly: where the CPUs are shared, long spinning keeps the thread that is
# waited for from running. libgomp reads this once, while it is loaded; a choice of the user's stands.
if _spin := not {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT"} & _os.environ.keys():
    _os.environ["GOMP_SPINCOUNT"] = "2000"
try:
    from tensorpy import _C
except ImportError as _error:
    from pathlib import Path as _Path

    _folder = _Path(__file__).parent
    if (_folder.parent / "csrc").is_dir() and not list(_folder.glob("_C.*.so")):  # not where it was installed
        raise ImportError(
            f"{_folder} is tensorpy's source, which is found before the installed package since Python was started in "
            f"{_folder.parent} or looks there first, and its C half is not built. Start Python in another folder, or "
            "build it in place: `make native`, or `pip install -e .`"
        ) from None
    raise ImportError(f"tensorpy's C half does not load, from {_folder}: {_error}") from _error

if _spin:
    del _os.environ["GOMP_SPINCOUNT"]
from tensorpy._C import *  # noqa: F403
from tensorpy._C import Tensor, default_generator, return_types  # noqa: F401

_sys.modules[f"{__name__}.return_types"] = return_types  # named results are pickled by the names of their types

__version__ = "0.1.0"

e, inf, nan, pi, newaxis = _math.e, _math.inf, _math.nan, _math.pi, None

from tensorpy import _tensor  # noqa: E402, F401  (methods of Tensor)
from tensorpy._package.names import CONSTANTS as _CONSTANTS  # noqa: E402
from tensorpy._package.names import METHODS as _METHODS  # noqa: E402
from tensorpy._package.names import MODULES as _MODULES  # noqa: E402
from tensorpy._package.names import NAMES as _NAMES  # noqa: E402
from tensorpy._package.names import PRIVATE_MODULES as _PRIVATE_MODULES  # noqa: E402
from tensorpy._package.names import private_operators as _private_operators  # noqa: E402

for _name in globals().keys() & (_NAMES.keys() | _MODULES):
    if not isinstance(globals()[_name], type(_sys)):
        del globals()[_name]  # an operator, before which stands what the table names


class _LateMethod:
    """A method of Tensor whose module is imported when it is called, or asked for its signature."""

    def __init__(self, module: str, name: str, says: str) -> None:
        self._home, self.__doc__ = f"tensorpy.{module}", says
        self.__name__ = self.__qualname__ = name

    def _module(self) -> object:
        import importlib

        return importlib.import_module(self._home)

    def __call__(self, *args: object, **kwargs: object) -> object:
        return getattr(self._module(), self.__name__)(*args, **kwargs)

    @property
    def __signature__(self) -> object:
        import inspect

        return inspect.signature(getattr(self._module(), self.__name__))


for _module, _methods in _METHODS.items():
    for _name, _says in _methods.items():
        _C._set_type_attribute(Tensor, _name, _C._overridable(_LateMethod(_module, _name, _says)))


def __getattr__(name: str) -> object:
    """The parts of the package are imported at first use."""
    import importlib

    value: object
    if name == "__all__":
        value = _public()
    elif name in _MODULES or name in _PRIVATE_MODULES:
        try:
            value = importlib.import_module(f"tensorpy.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"tensorpy.{name}":
                raise
            raise AttributeError(f"module 'tensorpy' has no part '{name}': only an installed one has") from None
    elif name in _NAMES:
        value = getattr(importlib.import_module(f"tensorpy.{_NAMES[name]}"), name)
    elif name.startswith("_") and hasattr(_C, name) and name in _private_operators():
        return getattr(_C, name)
    else:
        raise AttributeError(f"module 'tensorpy' has no attribute '{name}'{_nearest(name)}")
    globals()[name] = value
    return value


def _public() -> list[str]:
    """What `from tensorpy import *` gives: the names of PyTorch's that are there, and the table's.

    Operators that PyTorch keeps to itself (`slice`, `index`, `random`, ...) would hide Python's own.
    """
    from tensorpy._as_torch import names

    there = {*(globals().keys() & set(dir(_C))), *_NAMES, *_CONSTANTS}
    known = {*names.modules()["torch"], *_NAMES, *_CONSTANTS}
    return sorted(name for name in there & known if not name.startswith("_"))


def _nearest(name: str) -> str:
    """What of tensorpy stands for a name that it does not have, as the end of the message that says so."""
    from tensorpy._package.nearby import ending

    return ending("", name, __dir__())


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES, *_PRIVATE_MODULES, *_NAMES})
