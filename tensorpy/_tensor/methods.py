"""Methods of Tensor that are written in Python: none of them is on a hot path."""

from __future__ import annotations

import builtins
from itertools import pairwise

import tensorpy
from tensorpy import _C
from tensorpy._C import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any


def is_tensor(obj: object) -> bool:
    """Whether obj is a Tensor.

    Returns: bool.

    Example:
        >>> tp.is_tensor(tp.ones(2)), tp.is_tensor([1, 2])
        (True, False)
    """
    return isinstance(obj, Tensor)


def refuse_backward_in_transform() -> None:
    """The graphs that a transform of functions walks are its own: what backward() wrote into `.grad` would be lost."""
    if _C._transform(0):
        raise RuntimeError(
            "backward() called inside a functorch transform: what it would write into .grad is lost there; use "
            "func.grad or func.vjp"
        )


def module_load(self: Tensor, other: Tensor, assign: bool = False) -> Tensor:
    """What a module that is loaded with swaps puts in place of this tensor, of the state's `other`: a new object.

    Arguments:
        other: the tensor of the state
        assign: whether load_state_dict() was told to assign

    Returns: a tensor.

    Example:
        >>> tp.zeros(2).module_load(tp.ones(2))
        tensor([1., 1.])
    """
    return other.detach() if assign else self.copy_(other).detach()


def backward(
    self: Tensor,
    gradient: Tensor | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Sequence[Tensor] | Tensor | None = None,
) -> None:
    """Adds the gradient of this tensor with respect to the graph's leaves to their `.grad`.

    `gradient` is the gradient of this tensor itself; it may be left out for one element. `inputs` restricts the leaves.

    Arguments:
        retain_graph: whether the graph is kept for another call; None does so where create_graph is
        create_graph: whether derivatives of the result can be taken
        inputs: the inputs

    Example:
        >>> x = tp.tensor([2.0], requires_grad=True)
        >>> (x * x).backward()
        >>> x.grad
        tensor([4.])
    """
    refuse_backward_in_transform()
    if inputs is not None:
        inputs = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
        if not inputs:
            raise RuntimeError("'inputs' argument to backward() cannot be empty.")
    if create_graph:
        import warnings

        warnings.warn(
            "Using backward() with create_graph=True will create a reference cycle between the parameter and its "
            "gradient which can cause a memory leak; autograd.grad() makes none.",
            stacklevel=2,
        )
    keep = create_graph if retain_graph is None else retain_graph
    _C._run_backward((self,), (gradient,), keep, create_graph, inputs, True)


class RemovableHandle:
    """A hook's key in a dictionary, and others that tell of the hook: takes it out again, with remove() or at the end
    of a `with`.

    Arguments:
        hooks_dict: where the hook is kept
        extra_dict: another dict that it is kept in

    Example:
        >>> handle = nn.ReLU().register_forward_hook(lambda module, args, output: None)
        >>> handle.remove()
    """

    next_id: int = 0

    def __init__(self, hooks_dict: dict[int, Any], *, extra_dict: Any = None) -> None:
        self.hooks_dict = hooks_dict
        self.extra_dicts: list[Any] = []
        if extra_dict is not None:
            self.extra_dicts = extra_dict if isinstance(extra_dict, list) else [extra_dict]
        self.id: int = RemovableHandle.next_id
        RemovableHandle.next_id += 1
        _C._module_changed()

    @property
    def hooks_dict_ref(self) -> Callable[[], dict[int, Any]]:
        """A function that gives the dictionary."""
        return lambda: self.hooks_dict

    def remove(self) -> None:
        """Takes the hook out; a second call does nothing."""
        for hooks in (self.hooks_dict, *self.extra_dicts):
            hooks.pop(self.id, None)
        _C._module_changed()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        RemovableHandle.next_id = max(RemovableHandle.next_id, self.id + 1)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *unused: object) -> None:
        self.remove()


def _hooked(hooks: dict[int, Callable[..., Any]], hook: Callable[..., Any]) -> RemovableHandle:
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


def register_hook(self: Tensor, hook: Callable[[Tensor], Tensor | None]) -> RemovableHandle:
    """Calls `hook(grad)` when this tensor's gradient has been computed; what it returns, if not None, replaces it.

    Returns: a handle, whose remove() takes the hook out.

    Raises: RuntimeError for a tensor that requires no gradient.

    Example:
        >>> x = tp.ones(2, requires_grad=True)
        >>> handle = x.register_hook(lambda grad: grad * 10)
        >>> x.sum().backward()
        >>> x.grad
        tensor([10., 10.])
    """
    if not self.requires_grad:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    return _hooked(_C._tensor_hooks(self), hook)


def _backward_hooks(self: Tensor) -> Any:
    """The hooks on the gradient by their numbers; None: there are none."""
    return (_C._tensor_hooks(self) or None) if self.requires_grad else None


def _set_backward_hooks(self: Tensor, hooks: Any) -> None:
    """Takes these hooks by their numbers in place of all that are there; None: none."""
    if hooks is not None and not isinstance(hooks, dict):
        raise TypeError(f"_backward_hooks must be a dict or None, not {hooks.__class__.__name__}")
    if self.requires_grad:
        own = _C._tensor_hooks(self)
        given = dict(hooks or {})
        own.clear()
        own.update(given)
    elif hooks:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")


def _keep_backward_hooks(self: Tensor) -> None:
    raise RuntimeError("Deletion of _backwards_hooks not allowed!")


def register_post_accumulate_grad_hook(self: Tensor, hook: Callable[[Tensor], None]) -> RemovableHandle:
    """Calls `hook(tensor)` each time backward has added to this leaf's `.grad`.

    Returns: a handle, whose remove() takes the hook out.

    Raises: RuntimeError for a tensor that is no leaf or requires no gradient.

    Example:
        >>> x = tp.ones(2, requires_grad=True)
        >>> handle = x.register_post_accumulate_grad_hook(lambda t: print(t.grad))
        >>> x.sum().backward()
        tensor([1., 1.])
    """
    if not self.requires_grad:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    if self.grad_fn is not None:
        raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
    return _hooked(_C._accumulate_hooks(self), hook)


def _node_register_hook(self: Any, hook: Callable[..., Any]) -> RemovableHandle:
    """Calls `hook(grad_inputs, grad_outputs)` after the node has run."""
    return _hooked(self._post_hooks(), hook)


def _node_register_prehook(self: Any, hook: Callable[..., Any]) -> RemovableHandle:
    """Calls `hook(grad_outputs)` before the node runs."""
    return _hooked(self._pre_hooks(), hook)


def nonzero(self: Tensor, *, as_tuple: bool = False) -> Tensor | tuple[Tensor, ...]:
    """The places of the elements that are not zero: one row each, or with as_tuple one tensor per dimension.

    Returns: a tensor of int64, (count, self.ndim), or with as_tuple a tuple of self.ndim tensors (count,).

    Example:
        >>> tp.tensor([0, 3]).nonzero()
        tensor([[1]])
    """
    return tensorpy.functional.nonzero(self, as_tuple=as_tuple)


def unique(
    self: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> object:
    """The distinct elements, or slices along dim, in order.

    Arguments:
        sorted: whether the result is in order
        return_inverse: whether the places of the elements in the result are wanted
        return_counts: whether the number of each is wanted
        dim: the dimension; a negative one counts from the last

    Returns: a tensor, or a tuple of it with the places (return_inverse) and the counts (return_counts), both int64.

    Example:
        >>> tp.tensor([3, 1, 3]).unique()
        tensor([1, 3])
    """
    return tensorpy.functional.unique(self, sorted, return_inverse, return_counts, dim)


def unique_consecutive(
    self: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> object:
    """The elements, or slices along dim, without those that equal the one before.

    Arguments:
        return_inverse: whether the places of the elements in the result are wanted
        return_counts: whether the number of each is wanted
        dim: the dimension; a negative one counts from the last

    Returns: a tensor, or a tuple of it with the places (return_inverse) and the counts (return_counts), both int64.

    Example:
        >>> tp.tensor([1, 1, 2, 1]).unique_consecutive()
        tensor([1, 2, 1])
    """
    return tensorpy.functional.unique_consecutive(self, return_inverse, return_counts, dim)


def norm(
    self: Tensor,
    p: float | str | None = "fro",
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    dtype: object = None,
) -> Tensor:
    """The p-norm of all elements or along dimensions; "fro" is the 2-norm.

    Arguments:
        p: the order of the norm, or "fro"
        dim: the dimension; a negative one counts from the last
        keepdim: whether reduced dimensions stay, with size 1
        dtype: the dtype; None takes the usual one

    Returns: a tensor, without the dimensions dim unless keepdim.

    Example:
        >>> tp.tensor([3.0, 4.0]).norm()
        tensor(5.)
    """
    return tensorpy.functional.norm(self, p, dim, keepdim, dtype=dtype)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def stft(
    self: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Tensor:
    """The short-time Fourier transform: of windows that overlap, centred on their samples or not.

    Arguments:
        n_fft: how many elements each transform takes
        hop_length: the distance between frames; None takes n_fft // 4
        win_length: how long the window is; None takes n_fft
        window: what each frame is multiplied by, (win_length,); None for ones
        center: whether frames are centred, with padding at both ends
        pad_mode: how the signal goes on at its ends
        normalized: whether transforms are divided by the square root of n_fft
        onesided: whether only the half of the frequencies is there that a real signal needs
        return_complex: whether the result is complex
        align_to_window: where the first frame begins, if frames are not centred

    Returns: a tensor (*, frequencies, frames), complex with return_complex=True.

    Example:
        >>> tp.ones(64).stft(16, window=tp.hann_window(16), return_complex=True).shape
        tensorpy.Size([9, 17])
    """
    given = (normalized, onesided, return_complex, align_to_window)
    return tensorpy.functional.stft(self, n_fft, hop_length, win_length, window, center, pad_mode, *given)


def lu(self: Tensor, pivot: bool = True, get_infos: bool = False) -> tuple[Tensor, ...]:
    """Deprecated: linalg.lu_factor.

    Arguments:
        pivot: whether rows are exchanged
        get_infos: whether the errors come too, instead of being raised

    Returns: LU and the pivots, with get_infos also infos.

    Example:
        >>> LU, pivots = tp.tensor([[1.0, 2.0], [4.0, 3.0]]).lu()
        >>> pivots
        tensor([2, 2], dtype=tensorpy.int32)
    """
    return tensorpy.functional.lu(self, pivot, get_infos)


def new_tensor(
    self: Tensor, data: object, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """A tensor of the data, with this tensor's dtype and device unless others are given.

    Arguments:
        data: the data
        dtype: the dtype; None takes the usual one
        device: where the elements are: a device or its name; None takes the default
        requires_grad: whether autograd records what is done with the tensor

    Returns: a tensor.

    Example:
        >>> tp.ones(2).new_tensor([1, 2])
        tensor([1., 2.])
    """
    chosen, where = dtype or self.dtype, self.device if device is None else device
    return _C.tensor(data, dtype=chosen, device=where, requires_grad=requires_grad)


def _map_in_place(self: Tensor, others: Sequence[Tensor], function: Callable[..., Any], name: str) -> Tensor:
    if self.device.type != "cpu":
        raise TypeError(f"{name}() is only implemented on CPU tensors")
    if not callable(function):
        raise TypeError(f"{name}(): '{function.__class__.__name__}' object is not callable")
    for other in others:
        if not isinstance(other, Tensor) or other.dtype != self.dtype:
            raise TypeError(f"{name}(): expected a tensor of dtype {self.dtype} beside self")
    if any(t.requires_grad for t in (self, *others)):
        raise RuntimeError(f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() instead.")
    rows = [t.expand(self.shape).reshape(-1).tolist() for t in (self, *others)]
    made = [function(*elements) for elements in zip(*rows, strict=True)]
    if any(isinstance(element, str) for element in made):
        raise TypeError(f"{name}(): the function has to return numbers, not str")
    return self.copy_(_C.tensor(made, dtype=self.dtype).reshape(self.shape))


def apply_(self: Tensor, callable: Callable[[Any], Any]) -> Tensor:
    """Replaces each element by what a Python function makes of it; slow, as Python is.

    Arguments:
        callable: the function of a Python number

    Returns: self, written in place.

    Raises: TypeError for a tensor that is not on the CPU.

    Example:
        >>> tp.tensor([1.0, 2.0]).apply_(lambda x: x * 10)
        tensor([10., 20.])
    """
    return _map_in_place(self, (), callable, "apply_")


def map_(self: Tensor, tensor: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
    """Replaces each element by what a Python function makes of it and of the other tensor's.

    Arguments:
        tensor: the tensor
        callable: the function of a Python number

    Returns: self, written in place.

    Raises: TypeError for tensors that are not on the CPU.

    Example:
        >>> tp.tensor([1.0, 2.0]).map_(tp.tensor([3.0, 4.0]), lambda a, b: a + b)
        tensor([4., 6.])
    """
    return _map_in_place(self, (tensor,), callable, "map_")


def map2_(self: Tensor, x: Tensor, y: Tensor, callable: Callable[[Any, Any, Any], Any]) -> Tensor:
    """Replaces each element by what a Python function makes of it and of two other tensors'.

    Arguments:
        x: the values
        y: the second tensor
        callable: the function of a Python number

    Returns: self, written in place.

    Raises: TypeError for tensors that are not on the CPU.

    Example:
        >>> tp.tensor([1.0, 2.0]).map2_(tp.tensor([3.0, 4.0]), tp.tensor([5.0, 6.0]), lambda a, b, c: a + b + c)
        tensor([ 9., 12.])
    """
    return _map_in_place(self, (x, y), callable, "map2_")


def new(self: Tensor, *args: Any, size: Any = None, device: Any = None) -> Tensor:
    """A tensor of this one's dtype and device, of sizes without values, of data, or of another's elements.

    Arguments:
        size: the sizes
        device: where the elements are: a device or its name; None takes the default

    Returns: a tensor.

    Raises: RuntimeError for another device type than self has.

    Example:
        >>> tp.ones(2).new(3).shape
        tensorpy.Size([3])
    """
    from tensorpy._tensor.typed import build

    if self.is_sparse:
        return _new_sparse(self, args, size, device)
    return build("new", self.dtype, self.device, args, size, device)


def _new_sparse(self: Tensor, args: tuple[Any, ...], size: Any, device: Any) -> Tensor:
    """`new` of a tensor of coordinates: of a size, or of indices, values and a size."""
    from tensorpy._tensor.coordinates import checked_size

    if device is not None and _C.device(device).type != self.device.type:
        raise RuntimeError(f"new(): makes tensors on {self.device.type}, not on {device}")
    sizes = [size] if size is not None else [a for a in args[:1] if isinstance(a, _C.Size)]
    if sizes or not args:
        return _C.zeros(sizes[0] if sizes else (0,), dtype=self.dtype, layout=_C.sparse_coo, device=self.device)
    if len(args) != 3 or not all(isinstance(a, Tensor) for a in args[:2]):
        raise TypeError("new(): of a sparse tensor takes a Size, or indices, values and a Size")
    indices, values = args[0].to(device=self.device, dtype=_C.int64), args[1].to(device=self.device, dtype=self.dtype)
    return _C._coo(indices, values, checked_size(indices, values, args[2]), False)


_type = Tensor.__dict__["type"]


def type(self: Tensor, dtype: Any = None, non_blocking: bool = False) -> Any:
    """The name of the tensor's type, or the elements as a dtype, which a type of tensors or its name may stand for.

    Arguments:
        dtype: the dtype; None takes the usual one
        non_blocking: whether the call may return before the copy has ended

    Returns: a str, or with dtype a tensor, self if it has that dtype.

    Example:
        >>> tp.ones(2).type()
        'tensorpy.FloatTensor'
        >>> tp.ones(2).type(tp.int64)
        tensor([1, 1])
    """
    if isinstance(dtype, builtins.type):
        dtype = _C.get_default_dtype() if dtype is Tensor else getattr(dtype, "dtype", dtype)
    name = _type(self, dtype, non_blocking)
    family = {_C.sparse_coo: "sparse"}.get(self.layout, "quantized" if self.is_quantized else "")
    if dtype is not None or not family:
        return name
    module, _, last = name.rpartition(".")
    return f"{module}.{family}.{last}"


def cuda(self: Tensor, device: Any = None, non_blocking: bool = False, memory_format: Any = None) -> Tensor:
    """The elements on the device called "cuda" (tensorpy.run --device opencl); an error where none is.

    Arguments:
        device: where the elements are: a device or its name; None takes the default
        non_blocking: whether the call may return before the copy has ended
        memory_format: how the result lies in memory

    Returns: a tensor, self if it is there.

    Example:
        >>> y = tp.ones(2).cuda()  # doctest: +SKIP
    """
    where = _C.device("cuda", device) if isinstance(device, int) else _C.device("cuda" if device is None else device)
    return self.to(where, non_blocking=non_blocking, memory_format=memory_format)


def xpu(self: Tensor, device: Any = None, non_blocking: bool = False, memory_format: Any = None) -> Tensor:
    """The elements on an Intel device under torch's name: an error, such a device is one of tensorpy.opencl's.

    Arguments:
        device: where the elements are: a device or its name; None takes the default
        non_blocking: whether the call may return before the copy has ended
        memory_format: how the result lies in memory

    Returns: nothing.

    Raises: AssertionError always.

    Example:
        >>> tp.ones(2).xpu()
        Traceback (most recent call last):
            ...
        AssertionError: ...
    """
    raise AssertionError("Torch not compiled with XPU enabled: tensorpy has no such device")


def resize_as_(self: Tensor, other: Tensor, *, memory_format: Any = None) -> Tensor:
    """Takes on another tensor's shape; elements that are new have no values.

    Arguments:
        other: the other tensor
        memory_format: how the result lies in memory

    Returns: self, written in place.

    Example:
        >>> tp.ones(4).resize_as_(tp.ones(2, 2)).shape
        tensorpy.Size([2, 2])
    """
    return _C.resize_as_(self, other)


def share_memory_(self: Tensor) -> Tensor:
    """Moves the tensor's storage to memory that processes share: tensorpy/storage/shared.py.

    Returns: self.

    Example:
        >>> tp.ones(2).share_memory_().is_shared()
        True
    """
    self.untyped_storage().share_memory_()
    return self


def is_shared(self: Tensor) -> bool:
    """Whether other processes can see the tensor's memory.

    Returns: bool.

    Example:
        >>> tp.ones(2).is_shared()
        False
    """
    return bool(self.untyped_storage().is_shared())


_set = Tensor.set_


def set_(self: Tensor, source: Any = None, *args: Any, **kwargs: Any) -> Tensor:
    """Lets the tensor have the memory of another tensor or of a storage, and a geometry in it; or none.

    Arguments:
        source: the source

    Returns: self.

    Raises: RuntimeError for a storage of another dtype.

    Example:
        >>> tp.empty(0).set_(tp.tensor([1.0, 2.0]))
        tensor([1., 2.])
    """
    if source is not None and not isinstance(source, Tensor):
        dtype = getattr(source, "dtype", self.dtype)
        if dtype != self.dtype:
            raise RuntimeError(
                f"Expected a Storage of type {self.dtype} or an UntypedStorage, but got type {dtype} for argument 1 "
                "'storage'"
            )
        source = getattr(source, "_untyped_storage", source)
    return _set(self, *(() if source is None else (source,)), *args, **kwargs)


def storage(self: Tensor) -> Any:
    """The tensor's memory as elements of its dtype.

    Returns: a TypedStorage.

    Example:
        >>> tp.ones(2).storage().size()
        2
    """
    from tensorpy.storage import TypedStorage

    return TypedStorage(wrap_storage=self.untyped_storage(), dtype=self.dtype)


def storage_type(self: Tensor) -> Any:
    """The type of storages of the tensor's dtype.

    Returns: a class.

    Example:
        >>> tp.ones(2).storage_type() is tp.FloatStorage
        True
    """
    from tensorpy.storage import _dtype_to_storage_type_map, of_one_dtype

    return of_one_dtype(_dtype_to_storage_type_map()[self.dtype])


def _fix_weakref(self: Tensor) -> None:
    """Nothing: a tensor that a weak reference gave is alive as any other."""


def _typed_storage(self: Tensor) -> Any:
    """The same as `storage`."""
    return storage(self)


def _of_storage(name: str) -> Any:
    """A method of storages, which tensorpy.storage has: imported when it is called."""

    def method(*args: Any, **kwargs: Any) -> Any:
        from tensorpy import storage

        return getattr(storage, name)(*args, **kwargs)

    method.__name__, method.__doc__ = name, _STORAGE_METHODS[name]
    return method


# The methods of storages that convert; typed storages have them by the same names.
_STORAGE_CASTS = {
    "bfloat16": _C.bfloat16,
    "bool": _C.bool,
    "byte": _C.uint8,
    "char": _C.int8,
    "complex_double": _C.complex128,
    "complex_float": _C.complex64,
    "double": _C.float64,
    "float": _C.float32,
    "float8_e4m3fn": _C.float8_e4m3fn,
    "float8_e4m3fnuz": _C.float8_e4m3fnuz,
    "float8_e5m2": _C.float8_e5m2,
    "float8_e5m2fnuz": _C.float8_e5m2fnuz,
    "half": _C.float16,
    "int": _C.int32,
    "long": _C.int64,
    "short": _C.int16,
}


def _storage_cast(name: str, dtype: _C.dtype) -> Any:
    def method(self: Any) -> Any:
        from tensorpy import storage

        return storage.converted(self, dtype)

    method.__name__ = name
    method.__dict__["dtype"] = dtype
    method.__doc__ = f"The bytes as numbers of {dtype}, in new memory.\n\nReturns: a TypedStorage."
    return method


def _storage_type(self: Any, dtype: Any = None) -> Any:
    """The name of the type; with a dtype the bytes as numbers of that.

    Returns: a str, or a TypedStorage.
    """
    from tensorpy import storage

    return storage.name_of_type(self) if dtype is None else storage.converted(self, dtype)


def _storage_lies_on(device: str) -> property:
    return property(lambda self: self.device.type == device, doc=f"Whether the memory is on a device of {device}.")


_STORAGE_METHODS = {
    "new": "A storage without bytes on the same device.\n\nReturns: an UntypedStorage.",
    "get_device": "The number of the device; -1 on the CPU.\n\nReturns: int.",
    "untyped": "The storage itself.\n\nReturns: the storage.",
    "tolist": "The bytes as numbers.\n\nReturns: a list of ints.",
    "clone": "A storage with the same bytes.\n\nReturns: an UntypedStorage.",
    "cpu": "The storage, or a copy of it, on the CPU.\n\nReturns: an UntypedStorage.",
    "copy_": "Takes over another storage's bytes.\n\nReturns: the storage.",
    "fill_": "Sets every byte.\n\nReturns: the storage.",
    "resize_": "Gives it memory for more bytes, for all its tensors; those that it has stay.\n\nReturns: nothing.",
    "element_size": "Bytes of an element: 1.\n\nReturns: int.",
    "is_shared": "Whether other processes can see the memory.\n\nReturns: bool.",
    "share_memory_": "Moves the bytes to memory that processes share.\n\nReturns: the storage.",
    "byteswap": "Turns the bytes of each element of a dtype around.\n\nReturns: nothing.",
    "from_file": "The bytes of a file: UntypedStorage.from_file(filename, shared=False, nbytes=0).\n\n"
    "Returns: an UntypedStorage.",
    "__dlpack__": None,
    "__dlpack_device__": None,
    "__sizeof__": None,
    "__copy__": None,
    "_new_shared": None,
}
_STATIC_STORAGE_METHODS = ("from_file", "_new_shared")


def _array_function(self: Tensor, *arguments: Any) -> Any:
    """What NumPy asks before one of its functions runs on tensors (numpy_functions.py)."""
    from tensorpy._tensor.numpy_functions import array_function

    return array_function(self, *arguments)


def _is_view(self: Tensor) -> bool:
    """Whether the tensor is a view of another one that autograd knows: `_base` is that."""
    return self._base is not None


def _from_slow_to_fast(tensor: Tensor) -> tuple[int, ...]:
    """The dimensions by their strides; of equal ones the longer is the slower, and a stride of 0 stays where it is."""
    if tensor.is_contiguous():
        return tuple(range(tensor.ndim))
    strides, sizes = tensor.stride(), tensor.shape
    order = list(reversed(range(tensor.ndim)))
    for start in range(1, tensor.ndim):
        at = start
        for before in reversed(range(start)):
            a, b = order[before], order[at]
            if 0 in (strides[a], strides[b]) or (strides[a] == strides[b] and sizes[a] <= sizes[b]):
                continue
            if strides[a] < strides[b]:
                break
            order[before], order[at], at = b, a, before
    return tuple(reversed(order))


def dim_order(self: Tensor, *, ambiguity_check: bool | Sequence[Any] = False) -> tuple[int, ...]:
    """The dimensions from the one with the largest stride to that with the smallest.

    ambiguity_check: RuntimeError where the order is not the only one; with a list of memory formats, where exactly one
    of those does not tell it.

    Returns: a tuple of ints.

    Raises: RuntimeError with ambiguity_check where strides leave it open, TypeError for another ambiguity_check.

    Example:
        >>> tp.ones(2, 3).t().dim_order()
        (1, 0)
    """
    if not isinstance(ambiguity_check, (bool, list)) or (
        isinstance(ambiguity_check, list) and not all(isinstance(f, _C.memory_format) for f in ambiguity_check)
    ):
        raise TypeError("The ambiguity_check argument must be a bool or a list of memory formats.")
    if ambiguity_check is not False:
        strides = self.stride()
        formats = ambiguity_check if isinstance(ambiguity_check, list) else ()
        several = 1 in self.shape or any(a == b for a, b in pairwise(strides))
        told = sum(self.is_contiguous(memory_format=f) for f in formats) == 1
        if (several and not told) or (0 in strides and self.ndim > 1 and not self.is_contiguous()):
            raise RuntimeError("The tensor does not have unique dim order")
    return _from_slow_to_fast(self)


def resize(self: Tensor, *sizes: Any) -> Tensor:
    """The elements in another shape, of as many: view.

    Returns: a tensor.

    Example:
        >>> tp.ones(4).resize(2, 2).shape
        tensorpy.Size([2, 2])
    """
    import warnings

    warnings.warn("non-inplace resize is deprecated: use view, reshape or resize_", stacklevel=2)
    return self.reshape(*sizes).clone()


def resize_as(self: Tensor, tensor: Tensor) -> Tensor:
    """The elements in another tensor's shape.

    Returns: a tensor of the other's shape.

    Example:
        >>> tp.ones(4).resize_as(tp.ones(2, 2)).shape
        tensorpy.Size([2, 2])
    """
    import warnings

    warnings.warn("non-inplace resize_as is deprecated: use view_as, reshape_as or resize_as_", stacklevel=2)
    return self.reshape(tensor.shape).clone()


def reinforce(self: Tensor, reward: Any) -> None:
    """Says that torch.distributions has what this was for.

    Arguments:
        reward: is taken, and means nothing

    Example:
        >>> tp.ones(2).reinforce(1.0)
        Traceback (most recent call last):
            ...
        RuntimeError: ...
    """
    raise RuntimeError("reinforce() was removed. Use torch.distributions instead: its log_prob has a gradient.")


def __rdiv__(self: Tensor, other: Any) -> Tensor:
    """`other / self` as Python 2 called it: in PyTorch the product with the reciprocal, laid out as self is."""
    return self.reciprocal() * other


def qscheme(self: Tensor) -> Any:
    """How the integers of a quantized tensor are read.

    Returns: a qscheme.

    Example:
        >>> tp.quantize_per_tensor(tp.ones(2), 0.5, 0, tp.quint8).qscheme()
        tensorpy.per_tensor_affine
    """
    from tensorpy._tensor.quantized import scheme_of  # which programs without quantized tensors do without

    return scheme_of(self)


def _of_jagged(name: str) -> Any:
    def get(self: Tensor) -> Any:
        if self.layout is not _C.jagged:
            raise AttributeError(f"'Tensor' object has no attribute '{name}': its layout is not jagged")
        from tensorpy._tensor import nested  # which programs without nested tensors do without

        return lambda: getattr(nested, f"{name}_of")(self)

    return property(get, doc=f"A function that gives the {name} of a nested tensor of the layout jagged.")


def _fact_of_jagged(name: str) -> Any:
    def get(self: Tensor) -> Any:
        if self.layout is not _C.jagged:
            raise AttributeError(f"'Tensor' object has no attribute '{name}': its layout is not jagged")
        from tensorpy._tensor import nested  # which programs without nested tensors do without

        return getattr(nested, f"{name.lstrip('_')}_of")(self)

    return property(get, doc="A fact of a nested tensor of the layout jagged.")


class _Values:
    """`_values`: all values of a jagged tensor, without history; of others the method that sparse tensors have."""

    def __init__(self, method: Any) -> None:
        self.method = method
        self.__doc__ = method.__doc__

    def __get__(self, t: Tensor | None, owner: Any) -> Any:
        if t is None or not t.is_nested or t.layout is not _C.jagged:
            return self.method.__get__(t, owner)
        from tensorpy._tensor import nested  # which programs without nested tensors do without

        return nested.values_of(t)


def to_sparse_coo(self: Tensor) -> Tensor:
    """The elements that are not zero, by coordinates.

    Returns: a sparse tensor.

    Example:
        >>> tp.tensor([[0.0, 5.0], [6.0, 0.0]]).to_sparse_coo().indices()
        tensor([[0, 1],
                [1, 0]])
    """
    return self.to_sparse()


_METHODS = (
    resize,
    resize_as,
    reinforce,
    new,
    type,
    cuda,
    xpu,
    resize_as_,
    module_load,
    backward,
    register_hook,
    register_post_accumulate_grad_hook,
    nonzero,
    unique,
    unique_consecutive,
    norm,
    stft,
    lu,
    new_tensor,
    apply_,
    map_,
    map2_,
    _is_view,
    _fix_weakref,
    storage_type,
    dim_order,
    share_memory_,
    is_shared,
    set_,
    storage,
    _typed_storage,
    __rdiv__,
    qscheme,
    to_sparse_coo,
)


# What Python 2 called them; programs for PyTorch may still.
_OLDER_NAMES = {"div": "truediv", "idiv": "itruediv", "nonzero": "bool", "long": "int"}


def _by_older_name(old: str, new: str) -> Any:
    def method(self: Tensor, *args: Any) -> Any:
        return getattr(Tensor, new)(self, *args)

    method.__name__, method.__doc__ = old, f"The same as {new}."
    return method


def _install() -> None:
    for function in _METHODS:
        _C._set_type_attribute(Tensor, function.__name__, _C._overridable(function))
    _C._set_type_attribute(Tensor, "__array_function__", _array_function)
    for old, new in _OLDER_NAMES.items():
        _C._set_type_attribute(Tensor, f"__{old}__", _by_older_name(f"__{old}__", f"__{new}__"))
    # PyTorch's address of the C tensor, which libraries take for an identity.
    _C._set_type_attribute(Tensor, "_cdata", property(id))
    for name in ("offsets", "lengths"):
        _C._set_type_attribute(Tensor, name, _of_jagged(name))
    _C._set_type_attribute(Tensor, "_values", _Values(Tensor._values))
    lengths = [f"_{maybe}{which}_seqlen" for maybe in ("", "maybe_") for which in ("min", "max")]
    lengths += ["_min_seqlen_tensor", "_max_seqlen_tensor"]
    for name in ("_offsets", "_lengths", "_ragged_idx", "_size", "_strides", *lengths):
        _C._set_type_attribute(Tensor, name, _fact_of_jagged(name))
    for name in ("min_seqlen", "max_seqlen"):
        _C._set_type_attribute(Tensor, f"_get_{name}", _of_jagged(name))
    hooks = property(_backward_hooks, _set_backward_hooks, _keep_backward_hooks)
    _C._set_type_attribute(Tensor, "_backward_hooks", hooks)
    for name in _STORAGE_METHODS:
        method = _of_storage(name)
        static = name in _STATIC_STORAGE_METHODS
        _C._set_type_attribute(_C.UntypedStorage, name, staticmethod(method) if static else method)
    for name, dtype in _STORAGE_CASTS.items():
        _C._set_type_attribute(_C.UntypedStorage, name, _storage_cast(name, dtype))
    _C._set_type_attribute(_C.UntypedStorage, "type", _storage_type)
    for device in ("cuda", "hpu"):
        _C._set_type_attribute(_C.UntypedStorage, f"is_{device}", _storage_lies_on(device))
    _C._set_type_attribute(_C.Node, "register_hook", _node_register_hook)
    _C._set_type_attribute(_C.Node, "register_prehook", _node_register_prehook)


_install()
