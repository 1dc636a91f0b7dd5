"""The styles of parallelize_module: how a module's parameters are cut, and what comes in and goes out.

A tensor that comes in is this process's part under the placement that the style says; it is brought to that which the
module computes with.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from tensorpy._C import Tensor
from tensorpy.distributed.device_mesh import DeviceMesh
from tensorpy.distributed.tensor._api import DTensor, distribute_module, distribute_tensor
from tensorpy.distributed.tensor.placement_types import Placement, Replicate, Shard
from tensorpy.nn import Embedding, Linear, Module, Parameter

# ---- tensors on their way ----


def _entered(value: Any, mesh: DeviceMesh, placement: Placement | None, wanted: Placement | None) -> Any:
    """A part as a distributed tensor, under the placement that is wanted."""
    if not isinstance(value, Tensor) or placement is None:
        return value
    whole = value if isinstance(value, DTensor) else DTensor.from_local(value, mesh, [placement])
    return whole if wanted is None else _brought(whole, wanted)


def _brought(tensor: DTensor, wanted: Placement) -> DTensor:
    to = Shard(wanted.dim % tensor.ndim) if isinstance(wanted, Shard) else wanted
    return tensor if tensor.placements == (to,) else tensor.redistribute(placements=[to])


def _left(value: Any, placement: Placement, as_local: bool) -> Any:
    out = _brought(value, placement)
    return out.to_local() if as_local else out


def _several(layouts: Any) -> tuple[Any, ...]:
    return (layouts,) if layouts is None or isinstance(layouts, Placement) else tuple(layouts)


# ---- styles ----


class ParallelStyle(ABC):
    """How a module is cut: `_apply` does it.

    Example:
        >>> from tensorpy.distributed.tensor.parallel import ColwiseParallel, ParallelStyle
        >>> isinstance(ColwiseParallel(), ParallelStyle)
        True
    """

    src_data_rank: int | None = 0

    @abstractmethod
    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module: ...


class _Cut(ParallelStyle):
    """A linear map or a table, cut along one dimension.

    Arguments:
        input_layouts: what comes in
        output_layouts: what goes out
        use_local_output: whether it goes out as this process's part
    """

    comes: Placement  # if nothing is said
    goes: Placement
    input_layouts: tuple[Placement, ...]
    output_layouts: tuple[Placement, ...]
    use_local_output: bool

    def __init__(
        self,
        *,
        input_layouts: Placement | None = None,
        output_layouts: Placement | None = None,
        use_local_output: bool = True,
    ) -> None:
        self.input_layouts, self.output_layouts = (input_layouts or self.comes,), (output_layouts or self.goes,)
        self.use_local_output = use_local_output

    @abstractmethod
    def _placements(self, module: Module) -> tuple[dict[str, Placement], Placement]:
        """The layout of parameters, and of what the module computes with."""

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        if not isinstance(module, (Linear, Embedding)):
            raise NotImplementedError(
                f"{type(self).__name__} currently only support nn.Linear and nn.Embedding, not {type(module).__name__}!"
            )
        placements, wanted = self._placements(module)

        def cut(name: str, each: Module, mesh: DeviceMesh) -> None:
            for own, parameter in list(each._parameters.items()):
                if parameter is not None:
                    made: Any = distribute_tensor(
                        parameter.detach(), mesh, [placements[own]], src_data_rank=self.src_data_rank
                    )
                    each.register_parameter(own, Parameter(made, parameter.requires_grad))

        def enter(each: Module, inputs: Any, mesh: DeviceMesh) -> Any:
            return (_entered(inputs[0], mesh, self.input_layouts[0], wanted), *inputs[1:])

        def leave(each: Module, out: Any, mesh: DeviceMesh) -> Any:
            return _left(out, self.output_layouts[0], self.use_local_output)

        return distribute_module(module, device_mesh, cut, enter, leave)


class ColwiseParallel(_Cut):
    """Each process has some of a linear map's outputs, or of a table's columns.

    Arguments:
        input_layouts: what comes in: Replicate if nothing is said
        output_layouts: what goes out: Shard(-1) if nothing is said
        use_local_output: whether it goes out as this process's part

    Example:
        >>> from tensorpy.distributed.tensor.parallel import ColwiseParallel, parallelize_module
        >>> mesh = tp.distributed.init_device_mesh("cpu", (1,))
        >>> net = parallelize_module(nn.Sequential(nn.Linear(2, 4)), mesh, {"0": ColwiseParallel()})
        >>> net[0].weight.placements, net(tp.ones(1, 2)).shape
        ((Shard(dim=0),), tensorpy.Size([1, 4]))
    """

    comes: Placement = Replicate()
    goes: Placement = Shard(-1)

    def _placements(self, module: Module) -> tuple[dict[str, Placement], Placement]:
        dim = 0 if isinstance(module, Linear) else 1
        return {"weight": Shard(dim), "bias": Shard(0)}, Replicate()


class RowwiseParallel(_Cut):
    """Each process has the part of a linear map for some of its inputs, or some of a table's rows; results are summed.

    Arguments:
        input_layouts: what comes in: Shard(-1) if nothing is said
        output_layouts: what goes out: Replicate if nothing is said
        use_local_output: whether it goes out as this process's part

    Example:
        >>> from tensorpy.distributed.tensor.parallel import RowwiseParallel, parallelize_module
        >>> mesh = tp.distributed.init_device_mesh("cpu", (1,))
        >>> net = parallelize_module(nn.Sequential(nn.Linear(4, 2)), mesh, {"0": RowwiseParallel()})
        >>> net[0].weight.placements, net[0].bias.placements
        ((Shard(dim=1),), (Replicate(),))
    """

    comes: Placement = Shard(-1)
    goes: Placement = Replicate()

    def _placements(self, module: Module) -> tuple[dict[str, Placement], Placement]:
        if isinstance(module, Linear):
            return {"weight": Shard(1), "bias": Replicate()}, Shard(-1)
        return {"weight": Shard(0)}, Replicate()


class SequenceParallel(ParallelStyle):
    """Each process has some places of a sequence, and all parameters: for norms and dropout.

    Arguments:
        sequence_dim: the dimension of the places
        use_local_output: whether it goes out as this process's part

    Example:
        >>> from tensorpy.distributed.tensor.parallel import SequenceParallel, parallelize_module
        >>> mesh = tp.distributed.init_device_mesh("cpu", (1,))
        >>> net = parallelize_module(nn.Sequential(nn.LayerNorm(4)), mesh, {"0": SequenceParallel()})
        >>> net(tp.ones(1, 3, 4)).placements
        (Shard(dim=1),)
    """

    sequence_sharding: tuple[Shard, ...]
    use_local_output: bool

    def __init__(self, *, sequence_dim: int = 1, use_local_output: bool = False) -> None:
        self.sequence_sharding = (Shard(sequence_dim),)
        self.use_local_output = use_local_output

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        places = self.sequence_sharding[0]

        def enter(each: Module, inputs: Any, mesh: DeviceMesh) -> Any:
            if not isinstance(inputs[0], Tensor):
                raise ValueError(f"expecting input of {each} to be a Tensor or DTensor, but got {type(inputs[0])}")
            return (_entered(inputs[0], mesh, places, places), *inputs[1:])

        def leave(each: Module, out: Any, mesh: DeviceMesh) -> Any:
            return out.to_local() if self.use_local_output else out

        return distribute_module(module, device_mesh, None, enter, leave)


class PrepareModuleInput(ParallelStyle):
    """What comes into a module becomes distributed tensors.

    Arguments:
        input_layouts: of each argument by place, None of those that stay
        desired_input_layouts: what the module gets
        input_kwarg_layouts: of arguments by name
        desired_input_kwarg_layouts: what the module gets
        use_local_output: whether it gets this process's parts

    Example:
        >>> from tensorpy.distributed.tensor import Replicate, Shard
        >>> from tensorpy.distributed.tensor.parallel import PrepareModuleInput, parallelize_module
        >>> mesh = tp.distributed.init_device_mesh("cpu", (1,))
        >>> style = PrepareModuleInput(input_layouts=Shard(0), desired_input_layouts=Replicate())
        >>> parallelize_module(nn.Identity(), mesh, style)(tp.ones(2)).placements
        (Replicate(),)
    """

    input_layouts: tuple[Any, ...]
    desired_input_layouts: tuple[Any, ...]
    input_kwarg_layouts: dict[str, Placement]
    desired_input_kwarg_layouts: dict[str, Placement]
    use_local_output: bool

    def __init__(
        self,
        *,
        input_layouts: Placement | Sequence[Placement | None] | None = None,
        desired_input_layouts: Placement | Sequence[Placement | None] | None = None,
        input_kwarg_layouts: dict[str, Placement] | None = None,
        desired_input_kwarg_layouts: dict[str, Placement] | None = None,
        use_local_output: bool = False,
    ) -> None:
        self.input_layouts, self.desired_input_layouts = _several(input_layouts), _several(desired_input_layouts)
        self.input_kwarg_layouts = input_kwarg_layouts or {}
        self.desired_input_kwarg_layouts = desired_input_kwarg_layouts or {}
        self.use_local_output = use_local_output
        if len(self.input_layouts) != len(self.desired_input_layouts):
            raise AssertionError("input_layouts and desired_input_layouts should have same length!")
        if self.input_kwarg_layouts.keys() != self.desired_input_kwarg_layouts.keys():
            raise AssertionError("input_kwarg_layouts and desired_input_kwarg_layouts should have the same keys!")

    def _one(self, value: Any, mesh: DeviceMesh, placement: Any, wanted: Any) -> Any:
        made = _entered(value, mesh, placement, wanted)
        return made.to_local() if self.use_local_output and isinstance(made, DTensor) else made

    def _enter(self, inputs: Any, named: Any, mesh: DeviceMesh) -> tuple[Any, Any]:
        if self.input_layouts != (None,):
            if len(inputs) != len(self.input_layouts):
                raise ValueError("module inputs and input_layouts should have same length!")
            layouts = zip(inputs, self.input_layouts, self.desired_input_layouts, strict=True)
            inputs = tuple(self._one(value, mesh, placement, wanted) for value, placement, wanted in layouts)
        known, wanted = self.input_kwarg_layouts, self.desired_input_kwarg_layouts
        return inputs, {
            name: self._one(value, mesh, known[name], wanted[name]) if name in known else value
            for name, value in named.items()
        }

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        module.register_forward_pre_hook(
            lambda each, inputs, named: self._enter(inputs, named, device_mesh), with_kwargs=True
        )
        return module


class PrepareModuleOutput(ParallelStyle):
    """What a module returns becomes distributed tensors, under other placements.

    Arguments:
        output_layouts: of each result, None of those that stay
        desired_output_layouts: what goes out
        use_local_output: whether it goes out as this process's parts

    Example:
        >>> from tensorpy.distributed.tensor import Replicate, Shard
        >>> from tensorpy.distributed.tensor.parallel import PrepareModuleOutput, parallelize_module
        >>> mesh = tp.distributed.init_device_mesh("cpu", (1,))
        >>> style = PrepareModuleOutput(output_layouts=Shard(0), desired_output_layouts=Replicate())
        >>> parallelize_module(nn.Identity(), mesh, style)(tp.ones(2))
        tensor([1., 1.])
    """

    output_layouts: tuple[Any, ...]
    desired_output_layouts: tuple[Any, ...]
    use_local_output: bool

    def __init__(
        self,
        *,
        output_layouts: Placement | Sequence[Placement | None],
        desired_output_layouts: Placement | Sequence[Placement | None],
        use_local_output: bool = True,
    ) -> None:
        self.output_layouts, self.desired_output_layouts = _several(output_layouts), _several(desired_output_layouts)
        self.use_local_output = use_local_output
        if len(self.output_layouts) != len(self.desired_output_layouts):
            raise AssertionError("output_layouts and desired_output_layouts should have same length!")

    def _leave(self, outputs: Any, mesh: DeviceMesh) -> Any:
        several = outputs if isinstance(outputs, tuple) else (outputs,)
        if len(several) != len(self.output_layouts):
            raise ValueError("module outputs and output_layouts should have same length!")
        made = []
        for value, placement, wanted in zip(several, self.output_layouts, self.desired_output_layouts, strict=True):
            out = _entered(value, mesh, placement, wanted)
            made.append(out.to_local() if self.use_local_output and isinstance(out, DTensor) else out)
        return tuple(made) if isinstance(outputs, tuple) else made[0]

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        module.register_forward_hook(lambda each, inputs, outputs: self._leave(outputs, device_mesh))
        return module


class PrepareModuleInputOutput(ParallelStyle):
    """What comes into a module and what it returns become distributed tensors.

    Arguments:
        input_layouts: of each argument by place, None of those that stay
        desired_input_layouts: what the module gets
        input_kwarg_layouts: of arguments by name
        desired_input_kwarg_layouts: what the module gets
        use_local_input: whether it gets this process's parts
        output_layouts: of each result, None of those that stay
        desired_output_layouts: what goes out
        use_local_output: whether it goes out as this process's parts

    Example:
        >>> from tensorpy.distributed.tensor import Replicate, Shard
        >>> from tensorpy.distributed.tensor.parallel import PrepareModuleInputOutput, parallelize_module
        >>> mesh = tp.distributed.init_device_mesh("cpu", (1,))
        >>> style = PrepareModuleInputOutput(input_layouts=Shard(0), desired_input_layouts=Replicate(),
        ...                                  output_layouts=Replicate(), desired_output_layouts=Shard(0))
        >>> parallelize_module(nn.Identity(), mesh, style)(tp.ones(2))
        tensor([1., 1.])
    """

    prepare_module_input: PrepareModuleInput
    prepare_module_output: PrepareModuleOutput

    def __init__(
        self,
        *,
        input_layouts: Placement | Sequence[Placement | None] | None = None,
        desired_input_layouts: Placement | Sequence[Placement | None] | None = None,
        input_kwarg_layouts: dict[str, Placement] | None = None,
        desired_input_kwarg_layouts: dict[str, Placement] | None = None,
        use_local_input: bool = False,
        output_layouts: Placement | Sequence[Placement | None],
        desired_output_layouts: Placement | Sequence[Placement | None],
        use_local_output: bool = True,
    ) -> None:
        self.prepare_module_input = PrepareModuleInput(
            input_layouts=input_layouts, desired_input_layouts=desired_input_layouts,
            input_kwarg_layouts=input_kwarg_layouts, desired_input_kwarg_layouts=desired_input_kwarg_layouts,
            use_local_output=use_local_input,
        )  # fmt: skip
        self.prepare_module_output = PrepareModuleOutput(
            output_layouts=output_layouts, desired_output_layouts=desired_output_layouts,
            use_local_output=use_local_output,
        )  # fmt: skip

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        self.prepare_module_input._apply(module, device_mesh)
        return self.prepare_module_output._apply(module, device_mesh)
