"""DTensor: one tensor of many processes, each of which has a part of it.

A DTensor says the shape of the whole; its part is a plain tensor. Operators are asked below autograd (_dispatch.py), so
gradients are distributed tensors, too. Parts go in and out by from_local and to_local, which record gradients.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorpy as tp
from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy.autograd import Function
from tensorpy.distributed import collectives
from tensorpy.distributed.device_mesh import DeviceMesh, _mesh_resources
from tensorpy.distributed.objects import all_gather_object
from tensorpy.distributed.tensor import _random
from tensorpy.distributed.tensor._dispatch import called, dispatch, replicating
from tensorpy.distributed.tensor._loss_rules import is_by_class
from tensorpy.distributed.tensor._redistribute import redistribute_local
from tensorpy.distributed.tensor._spec import Placements, Spec, box, normalized, rows
from tensorpy.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard
from tensorpy.nn import Module, Parameter

__all__ = ["DTensor", "distribute_module", "distribute_tensor", "empty", "full", "ones", "rand", "randn", "zeros"]


def _mesh_of(mesh: DeviceMesh | None) -> DeviceMesh:
    return _mesh_resources.get_current_mesh() if mesh is None else mesh


def _for_gradient(placements: Placements) -> Placements:
    """What is still to be added up has a gradient that all have."""
    return tuple(Replicate() if isinstance(p, Partial) else p for p in placements)


def _moved(tensor: DTensor, to: Placements) -> DTensor:
    spec = tensor._spec
    local = redistribute_local(tensor._local_tensor, spec, to)
    return DTensor(local, Spec(spec.mesh, to, spec.shape, spec.stride, spec.dtype))


class _FromLocal(Function):
    @staticmethod
    def forward(ctx: Any, local: Tensor, spec: Spec, grad_placements: Placements | None) -> DTensor:
        ctx.to = grad_placements or _for_gradient(spec.placements)
        return DTensor(local.view_as(local), spec)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return redistribute_local(grads[0]._local_tensor, grads[0]._spec, ctx.to), None, None


class _ToLocal(Function):
    @staticmethod
    def forward(ctx: Any, tensor: DTensor, grad_placements: Placements | None) -> Tensor:
        ctx.spec, ctx.of = tensor._spec, grad_placements or _for_gradient(tensor._spec.placements)
        return tensor._local_tensor.view_as(tensor._local_tensor)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        spec = ctx.spec
        steps = _steps(grads[0], spec.shape)
        return DTensor(grads[0], Spec(spec.mesh, ctx.of, spec.shape, steps, grads[0].dtype)), None


class _Redistribute(Function):
    @staticmethod
    def forward(ctx: Any, tensor: DTensor, to: Placements) -> DTensor:
        ctx.source = tensor._spec.placements
        return _moved(tensor, to)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return _Redistribute.apply(grads[0], _for_gradient(ctx.source)), None


class DTensor(Tensor):
    """A tensor of many processes: each has a part, the shape is that of the whole.

    Made by `distribute_tensor`, `DTensor.from_local` and the factories of `distributed.tensor`.

    Arguments:
        local_tensor: this process's part
        spec: mesh, placements, and the whole's shape
        requires_grad: whether gradients are wanted

    Example:
        >>> from tensorpy.distributed.tensor import DTensor, Shard
        >>> mesh = tp.distributed.init_device_mesh("cpu", (1,))
        >>> x = DTensor.from_local(tp.ones(2), mesh, [Shard(0)])
        >>> (x + 1).full_tensor()
        tensor([2., 2.])
    """

    _local_tensor: Tensor
    _spec: Spec

    @staticmethod
    def __new__(cls, local_tensor: Tensor, spec: Spec, *, requires_grad: bool = False) -> Any:
        return Tensor._make_wrapper_subclass(
            cls, spec.shape, strides=spec.stride, dtype=spec.dtype, device=local_tensor.device,
            requires_grad=requires_grad,
        )  # fmt: skip

    def __init__(self, local_tensor: Tensor, spec: Spec, *, requires_grad: bool = False) -> None:
        self._local_tensor, self._spec = local_tensor.detach(), spec

    def __repr__(self, *unused: Any, **unused_options: Any) -> str:
        return (
            f"DTensor(local_tensor={self._local_tensor}, device_mesh={self.device_mesh}, placements={self.placements})"
        )

    __str__ = __repr__

    def __tensor_flatten__(self) -> Any:
        return ["_local_tensor"], (self._spec, self.requires_grad)

    @staticmethod
    def __tensor_unflatten__(inner: Any, meta: Any, size: Any, stride: Any) -> DTensor:
        return DTensor(inner["_local_tensor"], meta[0], requires_grad=meta[1])

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """What a program calls: a tensor beside a DTensor is a mistake. What an operator makes for itself on the way,
        and a gradient's formula, is the same in all processes (_dispatch.py)."""
        kwargs = kwargs or {}
        with _C.DisableTorchFunctionSubclass(), called(str(getattr(func, "__name__", func))):
            if not is_by_class() and not replicating:
                _check_mixture(func, args, kwargs)
            return func(*args, **kwargs)

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return dispatch(func, args, kwargs or {}, DTensor)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            copied = DTensor(self._local_tensor.clone(), self._spec, requires_grad=self.requires_grad)
            memo[id(self)] = Parameter(copied, self.requires_grad) if isinstance(self, Parameter) else copied
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise RuntimeError(
            "a DTensor is a part of a tensor and a mesh of processes, which no single file has: save() takes "
            "full_tensor(), distributed.checkpoint the parts"
        )

    def __create_chunk_list__(self) -> list[Any]:
        """What this process has: for checkpoints."""
        from tensorpy.distributed.checkpoint.metadata import ChunkStorageMetadata

        if any(isinstance(p, Partial) for p in self.placements):
            raise RuntimeError(f"a checkpoint has the elements of a tensor, not parts of sums: {self.placements}")
        if self.device_mesh.get_coordinate() is None:
            return []
        sizes, begins = box(self._spec.shape, self.device_mesh, self.placements)
        return [ChunkStorageMetadata(tp.Size(begins), tp.Size(sizes))]

    def __get_tensor_shard__(self, index: Any) -> Tensor:
        """This process's part."""
        return self._local_tensor

    @property
    def device_mesh(self) -> DeviceMesh:
        """The processes."""
        return self._spec.mesh

    @property
    def placements(self) -> tuple[Placement, ...]:
        """What they have, for each dimension of the mesh."""
        return self._spec.placements

    @staticmethod
    def from_local(
        local_tensor: Tensor,
        device_mesh: DeviceMesh | None = None,
        placements: Sequence[Placement] | None = None,
        *,
        run_check: bool = False,
        shape: Sequence[int] | None = None,
        stride: Sequence[int] | None = None,
        grad_placements: Sequence[Placement] | None = None,
    ) -> DTensor:
        """The tensor of which each process gives its part.

        Arguments:
            local_tensor: this process's part
            device_mesh: the processes; those of the mesh whose context this is in, if nothing is said
            placements: what the part is, for each dimension of the mesh; Replicate if nothing is said
            run_check: whether parts are compared (dtype, strides, requires_grad), and replicas made those of the first
                process of each group
            shape: the whole's; without it all processes have parts of one size
            stride: the whole's
            grad_placements: what the part's gradient is; that of Partial is Replicate if nothing is said
        """
        mesh = _mesh_of(device_mesh)
        found = normalized(placements, mesh, local_tensor.ndim, "from_local")
        if run_check:
            local_tensor = _checked(local_tensor, mesh, found)
        whole = list(local_tensor.shape if shape is None else shape)
        if shape is None:
            for mesh_dim, placement in enumerate(found):
                if isinstance(placement, Shard):
                    whole[placement.dim] *= mesh.shape[mesh_dim]
        elif mesh.get_coordinate() is not None and tuple(local_tensor.shape) != box(whole, mesh, found)[0]:
            raise ValueError(
                f"from_local: the part of {whole} under {found} is {list(box(whole, mesh, found)[0])}, not "
                f"{list(local_tensor.shape)}"
            )
        steps = tuple(stride) if stride is not None else _steps(local_tensor, whole)
        spec = Spec(mesh, found, tuple(whole), steps, local_tensor.dtype)
        grads = None if grad_placements is None else normalized(grad_placements, mesh, len(whole), "from_local")
        return _FromLocal.apply(local_tensor, spec, grads)

    def to_local(self, *, grad_placements: Sequence[Placement] | None = None) -> Tensor:
        """This process's part.

        Arguments:
            grad_placements: what the part's gradient is; the placements that the tensor has, and Replicate for Partial,
                if nothing is said
        """
        if not (_C.is_grad_enabled() and self.requires_grad):
            return self._local_tensor
        grads = None
        if grad_placements is not None:
            grads = normalized(grad_placements, self.device_mesh, self.ndim, "to_local")
        return _ToLocal.apply(self, grads)

    def redistribute(
        self,
        device_mesh: DeviceMesh | None = None,
        placements: Sequence[Placement] | None = None,
        *,
        async_op: bool = False,
        forward_dtype: Any = None,
        backward_dtype: Any = None,
    ) -> DTensor:
        """The same tensor under other placements.

        Arguments:
            device_mesh: the processes, which stay the same
            placements: the new ones, for each dimension of the mesh
            async_op: is taken: messages are waited for
            forward_dtype: what is sent has this dtype
            backward_dtype: is taken
        """
        if device_mesh is not None and device_mesh != self.device_mesh:
            raise NotImplementedError("Cross device mesh comm not supported yet!")
        if placements is None:
            raise RuntimeError("placements is needed for redistribute!")
        to = normalized(placements, self.device_mesh, self.ndim, "redistribute")
        for mesh_dim, (old, new) in enumerate(zip(self.placements, to, strict=True)):
            if isinstance(new, Partial) and old != new:
                raise RuntimeError(
                    f"Can not redistribute from {old!r} to {new!r} in dimension {mesh_dim} of the mesh, redistributing "
                    "to Partial is for internal use only!"
                )
        given = self if forward_dtype is None else self.to(forward_dtype)
        return _Redistribute.apply(given, to)

    def full_tensor(self, *, grad_placements: Sequence[Placement] | None = None) -> Tensor:
        """The whole tensor, in each process.

        Arguments:
            grad_placements: what its gradient is; Replicate if nothing is said
        """
        whole = self.redistribute(placements=[Replicate()] * self.device_mesh.ndim)
        return whole.to_local(grad_placements=grad_placements)


def _calls_of(name: str, values: list[Any]) -> list[list[Any]]:
    """The tensors that meet in a call: of operators over lists, those at one place."""
    lists = [value for value in values if isinstance(value, (list, tuple))]
    if name.startswith("_foreach_"):
        rest = [value for value in values if isinstance(value, Tensor)]
        return [[*several, *rest] for several in zip(*lists, strict=False)]
    return [[*values, *[each for several in lists for each in several]]]


def _check_mixture(func: Any, args: Any, kwargs: Any) -> None:
    name = str(getattr(func, "__name__", func))
    for values in _calls_of(name, [*args, *kwargs.values()]):
        if not any(isinstance(value, DTensor) for value in values):
            continue
        for each in values:
            if isinstance(each, Tensor) and not isinstance(each, DTensor) and each.numel() != 1:
                raise RuntimeError(
                    f"{name} got mixed Tensor and DTensor, need to convert all Tensor to DTensor before calling "
                    f"distributed operators! The tensor is {each.dtype}{list(each.shape)}."
                )


def _steps(local: Tensor, whole: Sequence[int]) -> tuple[int, ...]:
    """The strides of the whole, in the order of the part's."""
    steps = local.stride()
    order = sorted(range(local.ndim), key=lambda d: (-steps[d], d))
    packed = rows([whole[d] for d in order])
    return tuple(packed[order.index(d)] for d in range(local.ndim))


def _checked(local: Tensor, mesh: DeviceMesh, placements: Placements) -> Tensor:
    made = local.detach().clone(memory_format=tp.contiguous_format)
    if mesh.get_coordinate() is None:
        return local
    mine = (str(local.dtype), local.requires_grad, local.ndim, tuple(local.stride()))
    for mesh_dim in range(mesh.ndim):
        theirs: list[Any] = [None] * mesh.shape[mesh_dim]
        all_gather_object(theirs, mine, group=mesh.get_group(mesh_dim))
        if any(each != mine for each in theirs):
            raise ValueError(
                f"from_local: dtypes, strides and requires_grad of parts are alike, and these are {theirs}"
            )
    for mesh_dim, placement in enumerate(placements):
        if isinstance(placement, Replicate):
            collectives.broadcast(made, group=mesh.get_group(mesh_dim), group_src=0)
    return local + (made - local).detach() if local.requires_grad else made


# ---- distributing ----


def distribute_tensor(
    tensor: Tensor,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
    *,
    src_data_rank: int | None = 0,
) -> DTensor:
    """A distributed tensor of a tensor that a process has: the others get their parts of it.

    Arguments:
        tensor: the whole; of the other processes only its shape and dtype count
        device_mesh: the processes; those of the mesh whose context this is in, if nothing is said
        placements: what each gets, for each dimension of the mesh; Replicate if nothing is said
        src_data_rank: whose tensor it is, by its rank in the groups of the mesh; None: each cuts its own

    Returns: a DTensor.

    Raises: ValueError for a tensor that is distributed another way, RuntimeError for one that is no leaf.

    Example:
        >>> from tensorpy import distributed as dist
        >>> from tensorpy.distributed.tensor import Shard, distribute_tensor
        >>> dist.init_process_group(rank=0, world_size=1)
        >>> x = distribute_tensor(tp.ones(2), dist.init_device_mesh("cpu", (1,)), [Shard(0)])
        >>> x.sum().placements
        (Partial(sum),)
        >>> dist.destroy_process_group()
    """
    mesh = _mesh_of(device_mesh)
    found = normalized(placements, mesh, tensor.ndim, "distribute_tensor")
    if isinstance(tensor, DTensor):
        if tensor.device_mesh != mesh or tensor.placements != found:
            raise ValueError(
                f"distribute_tensor: the tensor is distributed as {tensor.placements}, and should be as {found}: "
                "redistribute() does that"
            )
        return tensor
    if any(isinstance(p, Partial) for p in found):
        raise RuntimeError(f"distribute_tensor: {found}: a tensor is cut or copied, not made the sum of parts")
    if not tensor.is_leaf:
        raise RuntimeError("`distribute_tensor` should be used to distribute leaf tensors! but found non-leaf tensor!")
    local = _parted(tensor.detach(), mesh, found, src_data_rank)
    spec = Spec(mesh, found, tuple(tensor.shape), tuple(tensor.stride()), tensor.dtype)
    return DTensor(local, spec, requires_grad=tensor.requires_grad)


def _parted(whole: Tensor, mesh: DeviceMesh, placements: Placements, source: int | None) -> Tensor:
    if source is not None and mesh.get_coordinate() is not None and whole.device.type != "meta":
        whole = whole.clone(memory_format=tp.contiguous_format)
        for mesh_dim in range(mesh.ndim):
            collectives.broadcast(whole, group=mesh.get_group(mesh_dim), group_src=source)
    part = _random.cut(whole, mesh, placements)
    return part.clone() if part is whole and source is None else part


def distribute_module(
    module: Module,
    device_mesh: DeviceMesh | None = None,
    partition_fn: Callable[[str, Module, DeviceMesh], None] | None = None,
    input_fn: Callable[[Module, Any, DeviceMesh], Any] | None = None,
    output_fn: Callable[[Module, Any, DeviceMesh], Any] | None = None,
) -> Module:
    """Makes a module's parameters and buffers distributed tensors, in place.

    Arguments:
        module: the module
        device_mesh: the processes; those of the mesh whose context this is in, if nothing is said
        partition_fn: distributes the parameters of a submodule, given its name, it and the mesh; what it leaves is
            replicated
        input_fn: changes the inputs of the module's forward, given it, them and the mesh
        output_fn: changes what forward returned, given the module, that and the mesh

    Returns: the module.

    Example:
        >>> from tensorpy.distributed.tensor import distribute_module
        >>> mesh = tp.distributed.init_device_mesh("cpu", (1,))
        >>> net = distribute_module(nn.Linear(2, 3), mesh)  # every parameter is whole in each process
        >>> net.weight.placements
        (Replicate(),)
    """
    mesh = _mesh_of(device_mesh)
    for name, each in module.named_modules():
        if partition_fn is not None:
            partition_fn(name, each, mesh)
        _replicate(each, mesh)
    if input_fn is not None:
        module.register_forward_pre_hook(lambda mod, inputs: input_fn(mod, inputs, mesh))
    if output_fn is not None:
        module.register_forward_hook(lambda mod, inputs, outputs: output_fn(mod, outputs, mesh))
    return module


def _replicate(module: Module, mesh: DeviceMesh) -> None:
    everywhere = [Replicate()] * mesh.ndim
    for name, parameter in module._parameters.items():
        if parameter is not None and not isinstance(parameter, DTensor):
            made: Any = Parameter(distribute_tensor(parameter.data, mesh, everywhere), parameter.requires_grad)
            module.register_parameter(name, made)
    for name, buffer in module._buffers.items():
        if buffer is not None and not isinstance(buffer, DTensor):
            module._buffers[name] = distribute_tensor(buffer, mesh, everywhere)


# ---- factories ----


def _made(
    make: Callable[..., Tensor],
    size: tuple[Any, ...],
    options: dict[str, Any],
    device_mesh: DeviceMesh | None,
    placements: Sequence[Placement] | None,
    draws: bool = False,
) -> DTensor:
    mesh = _mesh_of(device_mesh)
    shape = tuple(size[0]) if len(size) == 1 and isinstance(size[0], (tuple, list, tp.Size)) else tuple(size)
    found = normalized(placements, mesh, len(shape), "distributed.tensor")
    requires_grad = options.pop("requires_grad", False)
    options["device"] = mesh.device_type
    if any(isinstance(p, Partial) for p in found):
        raise ValueError(f"distributed.tensor: a new tensor is not {found}")
    if draws:
        _random.agree(mesh)
        local = _random.cut(make(shape, **options), mesh, found)
    else:
        local = make(box(shape, mesh, found)[0], **options)
    return DTensor(local, Spec(mesh, found, shape, rows(shape), local.dtype), requires_grad=requires_grad)


def _factory(make: Callable[..., Tensor], what: str, draws: bool = False) -> Callable[..., DTensor]:
    """The factory of distributed tensors beside one of whole ones."""

    def made(
        *size: Any,
        requires_grad: bool = False,
        dtype: Any = None,
        layout: Any = tp.strided,
        device_mesh: DeviceMesh | None = None,
        placements: Sequence[Placement] | None = None,
    ) -> DTensor:
        options = {"dtype": dtype, "layout": layout, "requires_grad": requires_grad}
        return _made(make, size, options, device_mesh, placements, draws)

    made.__name__ = made.__qualname__ = make.__name__
    made.__doc__ = f"""A distributed tensor of {what}.

    Arguments:
        size: the whole's shape
        requires_grad: whether gradients are wanted
        dtype: of its elements
        layout: strided
        device_mesh: the processes
        placements: what they have, for each dimension of the mesh

    Returns: a DTensor.

    Example:
        >>> from tensorpy.distributed.tensor import Shard, {make.__name__}
        >>> mesh = tp.distributed.init_device_mesh("cpu", (1,))
        >>> {make.__name__}(4, 2, device_mesh=mesh, placements=[Shard(0)]).to_local().shape  # a part of 4 rows
        tensorpy.Size([4, 2])
    """
    return made


zeros: Callable[..., DTensor] = _factory(tp.zeros, "zeros")
ones: Callable[..., DTensor] = _factory(tp.ones, "ones")
empty: Callable[..., DTensor] = _factory(tp.empty, "any numbers")
rand: Callable[..., DTensor] = _factory(tp.rand, "numbers from [0, 1): those that tensorpy.rand draws", True)
randn: Callable[..., DTensor] = _factory(tp.randn, "normal numbers: those that tensorpy.randn draws", True)


def full(
    size: Sequence[int],
    fill_value: Any,
    *,
    requires_grad: bool = False,
    dtype: Any = None,
    layout: Any = tp.strided,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
) -> DTensor:
    """A distributed tensor of one number.

    Arguments:
        size: the whole's shape
        fill_value: the number
        requires_grad: whether gradients are wanted
        dtype: of its elements
        layout: strided
        device_mesh: the processes
        placements: what they have, for each dimension of the mesh

    Returns: a DTensor.

    Example:
        >>> from tensorpy.distributed.tensor import Shard, full
        >>> mesh = tp.distributed.init_device_mesh("cpu", (1,))
        >>> full((2,), 7.0, device_mesh=mesh, placements=[Shard(0)]).to_local()
        tensor([7., 7.])
    """
    options = {"dtype": dtype, "layout": layout, "requires_grad": requires_grad}
    return _made(
        lambda shape, **kwargs: tp.full(shape, fill_value, **kwargs), (size,), options, device_mesh, placements
    )
