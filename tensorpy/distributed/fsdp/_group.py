"""The parameters that fully_shard gathers and scatters together.

Of each parameter a process has a part, a DTensor. While the module runs, its modules have the whole parameters in their
place. These are the same objects each time, so that autograd knows them; without elements of their own their memory is
one number. What autograd saves of their elements is a note of where they are (`saved`): the first use in backward
gathers them again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorpy as tp
from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy.distributed import collectives
from tensorpy.distributed.device_mesh import DeviceMesh
from tensorpy.distributed.fsdp._policy import MixedPrecisionPolicy
from tensorpy.distributed.reduce_op import ReduceOp
from tensorpy.distributed.tensor import DTensor, Replicate, Shard
from tensorpy.distributed.tensor._random import cut
from tensorpy.distributed.tensor._spec import Spec
from tensorpy.nn import Module, Parameter

Owners = list[tuple[Module, str]]


class Sharded:
    """One parameter: its part, and the whole while it is there.

    Arguments:
        parameter: the whole one
        owners: the modules that have it, and under which names
        dim: the dimension that is cut
        mesh: the processes; of two dimensions the second cuts
        policy: the dtypes
    """

    owners: Owners
    dim: int
    policy: MixedPrecisionPolicy
    part: Any
    whole: Any
    rows: int

    def __init__(
        self, parameter: Parameter, owners: Owners, dim: int, mesh: DeviceMesh, policy: MixedPrecisionPolicy
    ) -> None:
        self.owners, self.dim, self.policy = owners, dim, policy
        placements = (*[Replicate()] * (mesh.ndim - 1), Shard(dim))
        whole = parameter.detach()
        spec = Spec(mesh, placements, tuple(whole.shape), tuple(whole.stride()), whole.dtype)
        part = cut(whole, mesh, placements)
        made = DTensor(part.clone() if part is whole else part, spec, requires_grad=parameter.requires_grad)
        self.part = Parameter(made, parameter.requires_grad)
        self.whole = None
        size, count = whole.shape[dim], mesh.shape[-1]
        self.rows = -(-size // count)  # of each process, but for the last ones
        self.show(self.part)

    @property
    def spec(self) -> Spec:
        """What is known of the part."""
        return self.part._spec

    @property
    def dtype(self) -> Any:
        """That of the whole."""
        wanted = self.policy.param_dtype
        return wanted if wanted is not None and self.part.dtype.is_floating_point else self.part.dtype

    def show(self, parameter: Any) -> None:
        """Makes one of the two the modules' parameter."""
        for module, name in self.owners:
            module._parameters[name] = parameter

    def look(self) -> None:
        """Takes the part that modules have: another one where a module was moved or given other parameters."""
        module, name = self.owners[0]
        now = module._parameters[name]
        if now is not self.part and isinstance(now, DTensor):
            self.part, self.whole = now, None
            self.show(now)  # what modules share stays one

    def width(self) -> int:
        """How many elements the largest part has."""
        shape = list(self.spec.shape)
        shape[self.dim] = self.rows
        return tp.Size(shape).numel()

    def sent(self) -> Tensor:
        """The part's elements, as many as the largest part has."""
        return self._padded(self.part._local_tensor.detach().to(self.dtype), self.rows)

    def _padded(self, tensor: Tensor, rows: int) -> Tensor:
        moved = tensor.movedim(self.dim, 0)
        if moved.shape[0] < rows:
            moved = tp.cat([moved, moved.new_zeros((rows - moved.shape[0], *moved.shape[1:]))])
        return moved.reshape(-1)

    def put(self, rows: Tensor, ready: Callable[[Sharded], None]) -> None:
        """Fills the whole parameter from all parts, one in each row."""
        shape = list(self.spec.shape)
        size = shape.pop(self.dim)
        full = rows.reshape(rows.shape[0] * self.rows, *shape)[:size].movedim(0, self.dim)
        full = full.clone(memory_format=tp.contiguous_format)
        if self.whole is None:
            self.whole = Parameter(full, self.part.requires_grad)
            if self.part.requires_grad:
                self.whole.register_post_accumulate_grad_hook(lambda _: ready(self))
        else:
            self.whole.data = full
            self.whole.requires_grad_(self.part.requires_grad)

    def drop(self) -> None:
        """Leaves the whole parameter without elements."""
        self.whole.data = tp.empty(1, dtype=self.whole.dtype).expand(self.spec.shape)

    def gradient(self, dtype: Any, count: int) -> Tensor:
        """The whole's gradient, a row for each process."""
        grad = self.whole.grad.detach().to(dtype)
        return self._padded(grad, self.rows * count).view(count, -1)

    def take(self, flat: Tensor) -> None:
        """Adds this process's part of the gradient to what the part has."""
        spec = self.spec
        local = self.part._local_tensor
        moved = flat.view(self.rows, *[n for d, n in enumerate(local.shape) if d != self.dim])
        grad = moved[: local.shape[self.dim]].movedim(0, self.dim).to(spec.dtype).contiguous()
        if self.part.grad is None:
            self.part.grad = DTensor(grad, spec)
        else:
            self.part.grad._local_tensor.add_(grad)


class _Sum:
    """Gradients under way."""

    several: list[Sharded]
    out: Tensor
    work: Any

    def __init__(self, several: list[Sharded], out: Tensor, work: Any) -> None:
        self.several, self.out, self.work = several, out, work


class Group:
    """Parameters that are gathered in one message, and whose gradients go in one.

    Arguments:
        parameters: they
        mesh: the processes; of two dimensions the first has replicas
        policy: the dtypes
    """

    parameters: list[Sharded]
    mesh: DeviceMesh
    policy: MixedPrecisionPolicy
    group: Any
    count: int
    replicas: Any
    is_whole: bool
    syncs: bool
    sums_replicas: bool
    reshards_after_backward: bool
    factor: float | None
    on_ready: Callable[[], None]

    def __init__(self, parameters: list[Sharded], mesh: DeviceMesh, policy: MixedPrecisionPolicy) -> None:
        self.parameters, self.mesh, self.policy = parameters, mesh, policy
        self.group, self.count = mesh.get_group(mesh.ndim - 1), mesh.shape[-1]
        self.replicas = mesh.get_group(0) if mesh.ndim == 2 else None
        self.is_whole = False
        self.syncs = self.sums_replicas = self.reshards_after_backward = True
        self.factor = None
        self._gathers: list[tuple[list[Sharded], Tensor, Any]] | None = None
        self._ready: set[int] = set()
        self._sums: list[_Sum] = []
        self._partial: dict[int, Tensor] = {}
        self.on_ready = lambda: None

    # ---- whole and parts ----

    def begin(self) -> None:
        """Sends the parts, and does not wait."""
        if self.is_whole or self._gathers is not None or not self.parameters:
            return
        with _C.DisableTorchFunctionSubclass(), tp.no_grad():
            self._gathers = [self._gather(several) for several in self._by_dtype(self.parameters)]

    @staticmethod
    def _by_dtype(parameters: list[Sharded]) -> list[list[Sharded]]:
        found: dict[Any, list[Sharded]] = {}
        for each in parameters:
            each.look()
            found.setdefault(each.dtype, []).append(each)
        return list(found.values())

    def _gather(self, several: list[Sharded]) -> tuple[list[Sharded], Tensor, Any]:
        for each in several:
            if each.part.device.type == "meta":
                names = ", ".join(name for _, name in each.owners)
                raise RuntimeError(
                    f"fully_shard: the parameter {names} is on the Meta device: to_empty() before forward"
                )
        sent = tp.cat([each.sent() for each in several])
        out = tp.empty(self.count, sent.numel(), dtype=sent.dtype)
        return several, out, collectives.all_gather_into_tensor(out, sent, self.group, True)

    def unshard(self) -> None:
        """Gives the modules the whole parameters."""
        if self.is_whole or not self.parameters:
            return
        self.begin()
        for several, out, work in self._gathers or []:
            if work is not None:
                work.wait()
            with tp.no_grad():
                widths = [each.width() for each in several]
                for each, rows in zip(several, out.split(widths, 1), strict=True):
                    each.put(rows, self._is_ready)
                    each.show(each.whole)
        self._gathers, self.is_whole = None, True

    def reshard(self) -> None:
        """Gives the modules their parts, and lets the whole parameters go."""
        if self._gathers is not None:
            self.unshard()  # what was sent is waited for
        if not self.is_whole:
            return
        for each in self.parameters:
            with tp.no_grad():
                each.drop()
            each.show(each.part)
        self.is_whole = False

    def write_back(self) -> None:
        """Parts get what was written to the whole parameters."""
        if not self.is_whole:
            return
        with tp.no_grad():
            for each in self.parameters:
                spec = each.spec
                each.part._local_tensor.copy_(cut(each.whole.detach(), spec.mesh, spec.placements))

    def show_gradients(self) -> list[Sharded]:
        """Gives whole parameters whole gradients; which of them. One that has gradients of no_sync keeps these."""
        shown = [e for e in self.parameters if self.is_whole and e.part.grad is not None and e.whole.grad is None]
        with tp.no_grad():
            for each in shown:
                each.whole.grad = each.part.grad.full_tensor().to(each.whole.dtype)
        return shown

    @staticmethod
    def hide_gradients(shown: list[Sharded], writes: bool) -> None:
        """Takes whole gradients away; parts get what was written to them, if it is to stay."""
        with tp.no_grad():
            for each in shown:
                grad, spec, each.whole.grad = each.whole.grad, each.spec, None
                if writes and grad is None:
                    each.part.grad = None
                elif writes:
                    each.part.grad._local_tensor.copy_(cut(grad, spec.mesh, spec.placements))

    def saved(self, tensor: Tensor) -> Sharded | None:
        """The parameter whose whole elements a tensor has."""
        if not self.is_whole or tensor.numel() == 0:
            return None
        place = tensor.untyped_storage().data_ptr()
        return next((e for e in self.parameters if e.whole.untyped_storage().data_ptr() == place), None)

    # ---- gradients ----

    def _is_ready(self, each: Sharded) -> None:
        self._ready.add(id(each))
        self.on_ready()
        if all(id(e) in self._ready for e in self.parameters if e.part.requires_grad):
            self.reduce()
            if self.reshards_after_backward:
                self.reshard()

    def reduce(self) -> None:
        """Sends the gradients that are there, if they are to be sent."""
        self._ready.clear()
        if not self.syncs:
            return
        with tp.no_grad():
            given: dict[Any, list[Sharded]] = {}
            for each in self.parameters:
                if each.whole is not None and each.whole.grad is not None:
                    given.setdefault(self.policy.reduce_dtype or each.whole.grad.dtype, []).append(each)
            for dtype, several in given.items():
                rows = tp.cat([each.gradient(dtype, self.count) for each in several], 1)
                out = tp.empty(rows.shape[1], dtype=dtype)
                op = ReduceOp.AVG if self.factor is None else ReduceOp.SUM
                work = collectives.reduce_scatter_tensor(out, rows.reshape(-1), op, self.group, True)
                self._sums.append(_Sum(several, out, work))
                for each in several:
                    each.whole.grad = None

    def finish(self) -> None:
        """Waits for gradients that are under way, and gives them to the parts."""
        sums, self._sums = self._sums, []
        for each in sums:
            if each.work is not None:
                each.work.wait()
            with tp.no_grad():
                self._finish(each)

    def _finish(self, sent: _Sum) -> None:
        out = sent.out if self.factor is None else sent.out / self.factor
        key = id(sent.several[0])
        if self.replicas is not None:
            if key in self._partial:
                out = out + self._partial.pop(key)
            if not self.sums_replicas:
                self._partial[key] = out
                return
            collectives.all_reduce(out, ReduceOp.AVG if self.factor is None else ReduceOp.SUM, self.replicas)
        widths = [each.width() for each in sent.several]
        for each, flat in zip(sent.several, out.split(widths), strict=True):
            each.take(flat)
