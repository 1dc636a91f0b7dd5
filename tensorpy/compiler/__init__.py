"""torch.compiler's names. Python runs at every call of a compiled function, so most of them change nothing."""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from tensorpy import _C, _compile
from tensorpy._C import Tensor
from tensorpy._compile import ReplayError, compile, list_backends, named, of_class
from tensorpy.nn.modules.module import Module

if TYPE_CHECKING:
    from tensorpy._dynamo.saved import SavedPlan


def is_compiling() -> bool:
    """Whether the code that asks is that of a compiled function: what it calls is, but for what disable() keeps out.

    Programs leave out checks of values there. Where the engine is switched off (set_stance, TENSORPY_COMPILE=0), and
    with the backend "eager", which gives the function back, it is code like any other.

    Returns: bool.

    Example:
        >>> tp.compiler.is_compiling(), tp.compile(tp.compiler.is_compiling)()
        (False, True)
    """
    compiled: bool = _C._code_is_compiled()
    return compiled


def is_dynamo_compiling() -> bool:
    """The same as is_compiling.

    Returns: bool.

    Example:
        >>> tp.compiler.is_dynamo_compiling()
        False
    """
    return is_compiling()


_exporting: ContextVar[bool] = ContextVar("exporting", default=False)


@contextlib.contextmanager
def _as_exported() -> Iterator[None]:
    """What is called within is code that is exported, and compiled."""
    token, compiled = _exporting.set(True), _C._set_code_is_compiled(True)
    try:
        yield
    finally:
        _C._set_code_is_compiled(compiled)
        _exporting.reset(token)


def is_exporting() -> bool:
    """Whether the code that asks is being exported (tensorpy.export).

    Returns: bool.

    Example:
        >>> tp.compiler.is_exporting()
        False
    """
    return _exporting.get()


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """The function with its calls run at once, also inside of a compiled function; without one, a decorator.

    A module gets its `forward` so, a class the calls of its instances, and is given back.

    Arguments:
        fn: the function or module
        recursive: is taken
        reason: is taken

    Returns: a function, or without one a decorator.

    Raises: AssertionError for what cannot be called.

    Example:
        >>> @tp.compiler.disable
        ... def shown(x):
        ...     return x * 2
        >>> tp.compile(lambda x: shown(x) + 1)(tp.ones(1))
        tensor([3.])
    """
    if fn is None:
        return functools.partial(disable, recursive=recursive, reason=reason)
    if not callable(fn):
        raise AssertionError(f"A callable function is expected, but {type(fn)} is provided.")
    if isinstance(fn, type):
        return of_class(fn, disable)
    if isinstance(fn, Module):
        fn.__dict__["forward"] = disable(fn.forward)
        return fn
    kept_out = named(_C._Compiled(fn, False, True, 0, 0, True))
    kept_out._torchdynamo_disable, kept_out._torchdynamo_disable_recursive = True, recursive
    return kept_out


STANCES = "default eager_then_compile aot_eager_then_compile force_eager eager_on_recompile fail_on_recompile".split()


class set_stance:
    """Says whether compiled functions are: from now on, in a with block, or while a function runs.

    "force_eager" calls the functions themselves. The others are about graphs for backends of the program's, and
    "default" for all other functions: where a call fits no graph, "eager_on_recompile" has it run as it is written,
    "eager_then_compile" the first one of a function, and with "fail_on_recompile" it is an error.

    Arguments:
        stance: 'default', 'force_eager', 'eager_on_recompile', 'eager_then_compile' or 'fail_on_recompile'
        skip_guard_eval_unsafe: is taken
        force_backend: is taken

    Raises: RuntimeError for an unknown stance.

    Example:
        >>> with tp.compiler.set_stance("force_eager"):
        ...     tp.compile(tp.sin)(tp.zeros(1))
        tensor([0.])
    """

    def __init__(
        self,
        stance: str = "default",
        *,
        skip_guard_eval_unsafe: bool = False,
        force_backend: Any = None,
    ) -> None:
        if stance not in STANCES:
            raise RuntimeError(f"invalid torch.compile stance {stance!r}, expected one of {', '.join(STANCES)}")
        if force_backend is not None and stance != "default":
            raise RuntimeError("force_backend is only taken with the stance 'default'")
        if force_backend not in (None, "eager", "inductor", "tensorpy"):
            raise RuntimeError(f"force_backend: {force_backend!r} is no backend that all functions can be given")
        self.now = stance != "force_eager" and force_backend != "eager", stance
        self.before = _take(self.now)

    def __enter__(self) -> None:
        _take(self.now)

    def __exit__(self, *error: Any) -> None:
        _take(self.before)

    def __call__(self, fn: Any) -> Any:
        _take(self.before)  # a decorator changes nothing until the function runs

        @functools.wraps(fn)
        def with_stance(*args: Any, **kwargs: Any) -> Any:
            before = _take(self.now)
            try:
                return fn(*args, **kwargs)
            finally:
                _take(before)

        return with_stance


def _take(stance: tuple[bool, str]) -> tuple[bool, str]:
    """Sets whether functions are compiled, and the stance; what they were."""
    before = _compile.stance
    _compile.stance = stance[1]
    return _C._set_compiling(stance[0]), before


def allow_in_graph(fn: Any) -> Any:
    """The function itself.

    Arguments:
        fn: the function

    Returns: fn.

    Example:
        >>> tp.compiler.allow_in_graph(abs)(-1)
        1
    """
    return fn


def assume_constant_result(fn: Any) -> Any:
    """The function itself.

    Arguments:
        fn: the function

    Returns: fn.

    Example:
        >>> tp.compiler.assume_constant_result(abs)(-1)
        1
    """
    return fn


def substitute_in_graph(original_fn: Any, **options: Any) -> Any:
    """A decorator that gives the function itself.

    Arguments:
        original_fn: is taken

    Returns: a decorator.

    Example:
        >>> tp.compiler.substitute_in_graph(max)(abs)(-1)
        1
    """
    return lambda fn: fn


def cudagraph_mark_step_begin() -> None:
    """Nothing: there are no recorded graphs.

    Example:
        >>> tp.compiler.cudagraph_mark_step_begin()
    """


def reset() -> None:
    """Forgets what backends of the program's have compiled; nothing else is kept from one call to the next.

    Example:
        >>> tp.compiler.reset()
    """
    from tensorpy._dynamo.graphs import reset

    reset()


def explain(fn: Any) -> Any:
    """`explain(f)(*args)` calls f as compile() has it, and gives the call's plan: what ran together, and what did not.

    Arguments:
        fn: a function or module, compiled or not

    Example:
        >>> x = tp.ones(256, 256)
        >>> print(tp.compiler.explain(lambda x: (x * 2 + 1).exp())(x))
        3 calls -> 1 (1 group, 0 runs of tiles), 0 flushes before the end
        intermediates: 512 KB never in memory, 0 bytes at a time
        group 1  mul.Scalar, add.Scalar, exp  (256, 256) float32  moves 512 KB instead of 1.5 MB; nothing follows
    """
    from tensorpy._dynamo.plans import explained

    compiled = fn if hasattr(fn, "_tell") else getattr(fn, "__dict__", {}).get("forward")
    if not hasattr(compiled, "_tell"):
        compiled = compile(fn)
        compiled = compiled.__dict__["forward"] if isinstance(fn, Module) else compiled
    return explained(compiled)


def save_plan(fn: Callable[..., Any], args: Sequence[Tensor], path: str | os.PathLike[str]) -> None:
    """Writes what `fn(*args)` computes to a file, which `load_plan` and C programs without Python run.

    The function is called three times without gradients. Only its arguments may change from run to run: weights and all
    else that it reads are part of the file, and a value that it reads, a random number, a write to what it has not made
    are refused. The file is written whole or not at all. csrc/include/tensorpy/plan.h runs it from C.

    Arguments:
        fn: a function or module of tensors of the CPU or of an OpenCL device, which gives a tensor, or a tuple or list
            of them
        args: contiguous tensors of one device, whose dtypes and sizes are those of each run
        path: the file

    Raises: RuntimeError for an fn that cannot be saved, and why; TypeError for an argument or result that is no tensor.

    Example:
        >>> model = tp.nn.Sequential(tp.nn.Linear(4, 8), tp.nn.ReLU(), tp.nn.Linear(8, 2))
        >>> x = tp.rand(3, 4)
        >>> tp.compiler.save_plan(model, (x,), "model.plan")
        >>> bool((tp.compiler.load_plan("model.plan")(x) == model(x)).all())
        True
    """
    from tensorpy._dynamo.saved import save

    save(fn, tuple(args), path)


def load_plan(path: str | os.PathLike[str], device: Any = None) -> SavedPlan:
    """A function of tensors that runs what `save_plan` has written.

    A damaged file is refused; a plan is a program, so run those that you trust. Results have no gradients.

    Arguments:
        path: the file
        device: where it runs, the CPU unless said; a plan names none

    Returns: a SavedPlan.

    Raises: RuntimeError for a file that is damaged or calls what this build or the device lacks, and for a device that
        is not there.

    Example:
        >>> tp.compiler.save_plan(lambda x: x * 2 + 1, (tp.ones(3),), "line.plan")
        >>> tp.compiler.load_plan("line.plan")(tp.arange(3.0))
        tensor([1., 3., 5.])
    """
    from tensorpy._dynamo.saved import SavedPlan

    return SavedPlan(path, device)


def _keep_all(guards: Any) -> list[bool]:
    """A filter of what compiled code checks: there is none, so nothing is left out.

    Arguments:
        guards: the checks

    Returns: a list of bools.

    Example:
        >>> tp.compiler.keep_portable_guards_unsafe([1, 2])
        [True, True]
    """
    return [True for _ in guards]


keep_portable_guards_unsafe = keep_tensor_guards_unsafe = skip_all_guards_unsafe = _keep_all
skip_guard_on_all_nn_modules_unsafe = skip_guard_on_globals_unsafe = _keep_all
skip_guard_on_inbuilt_nn_modules_unsafe = _keep_all
_backend = "inductor"


def get_default_backend() -> str:
    """The name that was set: it changes nothing.

    Returns: str.

    Example:
        >>> tp.compiler.get_default_backend()
        'inductor'
    """
    return _backend


def set_default_backend(backend: Any) -> None:
    """Sets it.

    Arguments:
        backend: its name

    Example:
        >>> tp.compiler.set_default_backend("inductor")
    """
    global _backend
    _backend = backend


_collective = False


def set_enable_guard_collectives(enabled: bool) -> bool:
    """Sets it, which changes nothing: processes agree on what they compile by themselves, since they compile nothing.

    Arguments:
        enabled: what is set

    Returns: what it was.

    Example:
        >>> tp.compiler.set_enable_guard_collectives(False)
        False
    """
    global _collective
    before, _collective = _collective, bool(enabled)
    return before


def load_compiled_function(file: Any, *, f_globals: Any = None, external_data: Any = None) -> SavedPlan:
    """What `save_plan` has written, from an open file.

    Arguments:
        file: a file that is open for reading bytes
        f_globals: is taken: a plan has all that it reads
        external_data: is taken

    Returns: a SavedPlan, which is called with tensors.

    Raises: RuntimeError for a file that is no plan.

    Example:
        >>> tp.compiler.save_plan(lambda x: x * 2, (tp.ones(2),), "double.plan")
        >>> with open("double.plan", "rb") as file:
        ...     tp.compiler.load_compiled_function(file)(tp.arange(2.0))
        tensor([0., 2.])
    """
    with tempfile.NamedTemporaryFile() as copy:
        copy.write(file.read())
        copy.flush()
        return load_plan(copy.name)


def nested_compile_region(fn: Any = None, **options: Any) -> Any:
    """The function itself.

    Arguments:
        fn: the function; None gives a decorator

    Returns: fn, or without one a decorator.

    Example:
        >>> tp.compiler.nested_compile_region(abs)(-1)
        1
    """
    return fn if fn is not None else lambda fn: fn


def wrap_numpy(fn: Any) -> Any:
    """A function of NumPy arrays as one of tensors.

    Arguments:
        fn: the function

    Returns: a function.

    Example:
        >>> import numpy
        >>> tp.compiler.wrap_numpy(numpy.sin)(tp.zeros(1))
        tensor([0.])
    """
    from tensorpy.utils._pytree import tree_map

    def array(leaf: Any) -> Any:
        return leaf.detach().numpy() if isinstance(leaf, Tensor) else leaf

    def tensor(leaf: Any) -> Any:
        return _C.as_tensor(leaf) if hasattr(leaf, "__array__") and not isinstance(leaf, Tensor) else leaf

    @functools.wraps(fn)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return tree_map(tensor, fn(*tree_map(array, args), **tree_map(array, kwargs)))

    return wrapped


def save_cache_artifacts() -> None:
    """What was compiled, as bytes: nothing was.

    Example:
        >>> tp.compiler.save_cache_artifacts()
    """


def load_cache_artifacts(serialized_artifacts: bytes) -> None:
    """Takes it: nothing comes of it.

    Arguments:
        serialized_artifacts: the bytes

    Example:
        >>> tp.compiler.load_cache_artifacts(b"")
    """


def __getattr__(name: str) -> Any:
    if name == "config":  # it is that of _dynamo, which needs this module
        return importlib.import_module("tensorpy.compiler.config")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["ReplayError", "compile", "list_backends", "load_plan", "save_plan"]
