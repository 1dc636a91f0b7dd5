"""Saved plans: the same bits as the function, here and in a C program; what cannot be saved is refused, and why."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tensorpy as tp
from tensorpy import _C, nn
from tensorpy.nn import functional as F

ROOT = Path(__file__).parents[2]
LIBRARY = ROOT / "build" / os.environ.get("TENSORPY_BUILD", "release") / "libtensorpy.a"


def saved(function: Callable[..., Any], *args: tp.Tensor, path: Path) -> Any:
    tp.compiler.save_plan(function, args, path / "a.plan")
    return tp.compiler.load_plan(path / "a.plan")


def same(a: Any, b: Any) -> bool:
    """Bits, sizes and dtypes, of tensors and of tuples of them."""
    if not isinstance(a, tp.Tensor):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    a, b = a.detach().contiguous(), b.detach().contiguous()
    return (
        a.shape == b.shape
        and a.dtype == b.dtype
        and bytes(a.untyped_storage())[: a.nbytes] == bytes(b.untyped_storage())[: b.nbytes]
    )


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.places = nn.Embedding(10, 8)

    def forward(self, x: tp.Tensor, at: tp.Tensor) -> tp.Tensor:
        result: tp.Tensor = self.layer(x + self.places(at))
        return result


def recurrent() -> Callable[..., Any]:
    lstm = nn.LSTM(3, 5, 2)
    return lambda x: (lstm(x)[0], *lstm(x)[1])


PROGRAMS: dict[str, tuple[Callable[[], Callable[..., Any]], Callable[[], tuple[tp.Tensor, ...]]]] = {
    "mlp": (lambda: nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 2)), lambda: (tp.rand(3, 4),)),
    "convolution": (
        lambda: nn.Sequential(nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()).eval(),
        lambda: (tp.rand(2, 2, 8, 8),),
    ),
    "attention": (lambda: Attention().eval(), lambda: (tp.rand(2, 5, 8), tp.randint(10, (2, 5)))),
    "recurrent": (recurrent, lambda: (tp.rand(4, 2, 3),)),
    "views": (lambda: lambda x: ((x + 1).t(), (x * 2)[1:, ::2], x.flip(0)), lambda: (tp.rand(4, 6),)),
    "one result twice": (lambda: lambda x: [x * 2, (x * 2).sum()], lambda: (tp.rand(3),)),
    "integers": (lambda: lambda i, j: (i * j, i.sort()[0], (i > j).any()), lambda: (tp.arange(6), tp.arange(1, 7))),
    "halves": (lambda: lambda x: (x.softmax(0), x.cumsum(0)), lambda: (tp.rand(5).to(tp.bfloat16),)),
    "complex": (lambda: lambda x: (x * 2j + 1).abs() + x.real, lambda: (tp.rand(3, dtype=tp.complex64),)),
    "nothing": (lambda: lambda x: (x + 1).sum(0), lambda: (tp.rand(0, 3),)),
    "one number": (lambda: lambda x: x * 3, lambda: (tp.tensor(2.5),)),
    "words": (
        lambda: lambda x: F.gelu(x, approximate="tanh") + tp.div(x, 0.3, rounding_mode="floor"),
        lambda: (tp.rand(9),),
    ),
    "clamped": (lambda: lambda x: (x.clamp(max=0.5), x.clamp(0.1), x.round(decimals=1)), lambda: (tp.rand(9),)),
    "reductions": (
        lambda: lambda x: (x.amax(1), x.std(0), x.argmin(), x.prod(1), x.logsumexp(0)),
        lambda: (tp.rand(3, 4),),
    ),
    "in place": (lambda: lambda x: x.clone().mul_(2).add_(1), lambda: (tp.rand(3, 4),)),
    "constants": (lambda: (lambda w: lambda x: x @ w + tp.arange(4.0))(tp.rand(4, 4)), lambda: (tp.rand(4, 4),)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_same_bits(name: str, tmp_path: Path) -> None:
    """Of the arguments that it was saved with, and of others."""
    make, arguments = PROGRAMS[name]
    tp.manual_seed(1)
    function, args = make(), arguments()
    plan = saved(function, *args, path=tmp_path)
    with tp.no_grad():
        for given in (args, arguments(), arguments()):
            want = function(*given)
            assert same(plan(*given), want if isinstance(want, tp.Tensor) or len(want) > 1 else want[0]), name
    assert len(plan.inputs) == len(args) and plan.inputs[0] == (args[0].shape, args[0].dtype)


def test_gradients_are_results_too(tmp_path: Path) -> None:
    """A function that runs backward inside of it is a plan as any other."""

    def slope(x: tp.Tensor, w: tp.Tensor) -> tuple[tp.Tensor, tp.Tensor]:
        with tp.enable_grad():
            w = w.detach().requires_grad_()
            loss = F.mse_loss(F.softmax(x @ w, 1), tp.zeros(len(x), 3))
            return loss.detach(), tp.autograd.grad(loss, w)[0]

    x, w = tp.rand(5, 4), tp.rand(4, 3)
    plan = saved(slope, x, w, path=tmp_path)
    assert same(plan(x + 1, w * 2), slope(x + 1, w * 2))


def averaging(x: tp.Tensor, norm: nn.Module = nn.BatchNorm1d(3)) -> tp.Tensor:  # noqa: B008
    result: tp.Tensor = norm(x.expand(4, 3))
    return result


def counting() -> Callable[..., Any]:
    calls: list[int] = []

    def function(x: tp.Tensor) -> tp.Tensor:
        calls.append(1)
        return x * len(calls)

    return function


REFUSED: dict[str, tuple[Callable[[], Callable[..., Any]], str]] = {
    "a value that is read": (lambda: lambda x: x * x.sum().item(), "a value is read"),
    "random numbers": (lambda: lambda x: x + tp.rand(3), "random|another one"),
    "a mask of dropout": (lambda: lambda x: F.dropout(x), "random|another one"),
    "running averages": (lambda: averaging, "another one|not made"),
    "a write to an argument": (lambda: lambda x: x.add_(1) * 1, "not made"),
    "an argument as it came": (lambda: lambda x: x, "was there before|not computed"),
    "another way each time": (counting, "another one"),
    "a shape that depends on values": (lambda: lambda x: x.nonzero() * 1, "value is read|depends on one"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_saved(name: str, tmp_path: Path) -> None:
    make, why = REFUSED[name]
    with pytest.raises(RuntimeError, match=f"save_plan.*{why}"):
        saved(make(), tp.rand(3), path=tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_module_in_training_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="eval mode"):
        saved(nn.BatchNorm2d(2), tp.rand(1, 2, 3, 3), path=tmp_path)


def test_arguments_and_results_of_other_kinds(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="argument 1 of the function must be a Tensor, not int"):
        tp.compiler.save_plan(lambda x, n: x * n, (tp.rand(2), 3), tmp_path / "a")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="must give a Tensor, or a tuple or list of them, not dict"):
        saved(lambda x: {"a": x * 2}, tp.rand(2), path=tmp_path)
    with pytest.raises(RuntimeError, match="not contiguous"):
        saved(lambda x: x * 2, tp.rand(2, 3).t(), path=tmp_path)
    with pytest.raises(RuntimeError, match="share their memory"):
        x = tp.rand(4)
        saved(lambda a, b: a + b, x[:2], x[2:], path=tmp_path)
    with pytest.raises(ZeroDivisionError):
        saved(lambda x: 1 / 0, tp.rand(2), path=tmp_path)
    plan = saved(lambda x: x * 2, tp.rand(2), path=tmp_path)
    for wrong in (tp.rand(3), tp.rand(2, dtype=tp.float64), tp.rand(1, 2)):
        with pytest.raises(RuntimeError, match="of the dtypes and sizes that it was saved with"):
            plan(wrong)
    with pytest.raises(TypeError, match="1 inputs was given 2"):
        plan(tp.rand(2), tp.rand(2))
    with pytest.raises(TypeError, match="takes tensors, not int"):
        plan(3)
    assert repr(plan) == "SavedPlan(float32[2] -> float32[2])"


def test_a_part_of_a_tensor(tmp_path: Path) -> None:
    """An argument may lie anywhere in its memory."""
    x = tp.arange(12.0).reshape(4, 3)
    plan = saved(lambda a: a * 2, x[1:3], path=tmp_path)
    assert same(plan(x[2:]), x[2:] * 2) and same(plan(x[:2]), x[:2] * 2)


def test_tensors_that_are_no_memory(tmp_path: Path) -> None:
    """Layouts, what is pending, and what is only to be read otherwise."""
    x = tp.eye(3)
    plan = saved(lambda a: a * 2, x, path=tmp_path)
    for other in (x.to_sparse(), x.to_sparse_csr(), tp._efficientzerotensor((3, 3)), x.to("meta")):
        with pytest.raises((RuntimeError, NotImplementedError)):
            plan(other)
        with pytest.raises((RuntimeError, NotImplementedError)):
            tp.compiler.save_plan(lambda a: a * 2, (other,), tmp_path / "b.plan")
    late = tp.compile(lambda a: plan(a * 3 + 1), options={"smallest": 0})
    assert same(late(x), (x * 3 + 1) * 2)
    c = tp.rand(3, dtype=tp.complex64)
    plan = saved(lambda a: a * 2, c, path=tmp_path)
    assert same(plan(c.conj()), c.conj().resolve_conj() * 2)
    with pytest.raises(RuntimeError, match="inside of a compiled function"):
        tp.compile(lambda a: tp.compiler.save_plan(lambda b: b * 2, (a,), tmp_path / "b.plan"))(x)


# ---- files ----


def checksum(data: bytes) -> int:
    """FNV-1a."""
    h = 0xCBF29CE484222325
    for byte in data:
        h = (h ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return h


def test_damaged_files(tmp_path: Path) -> None:
    saved(lambda x: x * 2 + x.sum(), tp.rand(3), path=tmp_path)
    whole = (tmp_path / "a.plan").read_bytes()
    for data in (b"", b"tpplan", whole[:-1], whole + b"\0", whole[:40], whole[:100] + b"!" + whole[101:]):
        with pytest.raises(RuntimeError, match="damaged, or is no saved plan"):
            _C._load_plan(data)
    with pytest.raises(FileNotFoundError):
        tp.compiler.load_plan(tmp_path / "missing")


def signed(data: bytearray) -> bytes:
    data[16:24] = struct.pack("<Q", checksum(bytes(data[24:])))
    return bytes(data)


def several(x: tp.Tensor) -> tuple[tp.Tensor, ...]:
    return x.cumsum(0), x.sort(-1)[0], x.t().contiguous()[::2] * 2, x.sum(1), tp.cat([x, x]), x.to(tp.float16) + 1


HOSTILE: dict[str, tuple[Any, tp.Tensor]] = {
    "a classifier": (nn.Sequential(nn.Linear(2, 3), nn.Softmax(1)), tp.rand(2, 2)),
    "windows": (nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()), tp.rand(1, 1, 6, 6)),
    "a table": (nn.Sequential(nn.Embedding(9, 4), nn.LayerNorm(4)), tp.tensor([[1, 2, 3]])),
    "several results": (several, tp.rand(3, 4)),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_wrong_words_with_a_right_checksum(name: str, tmp_path: Path) -> None:
    """Counts, slots, dtypes, sizes, tags, numbers and names: each is looked at before it is believed."""
    function, x = HOSTILE[name]
    saved(function, x, path=tmp_path)
    whole = (tmp_path / "a.plan").read_bytes()
    words = [0, 1, -1, 2, 7, 255, 1 << 16, 1 << 31, 1 << 62, -(1 << 63)]
    refused = 0
    for seed in range(300):
        r = random.Random(seed)
        data = bytearray(whole)
        for _ in range(r.randint(1, 3)):
            at, other = (r.randrange(24, len(data) - 8) & ~7 for _ in range(2))
            data[at : at + 8] = r.choice((struct.pack("<q", r.choice(words)), data[other : other + 8]))
        try:
            _C._load_plan(signed(data))
        except (RuntimeError, MemoryError):
            refused += 1
    assert refused > 100


def test_each_word_of_a_plan(tmp_path: Path) -> None:
    """A result that no call computes, a dtype of more than a byte: each word is set to several others in turn."""
    saved(lambda x: (x * 2 + 1).exp(), tp.rand(3), path=tmp_path)
    whole = (tmp_path / "a.plan").read_bytes()
    for at in range(24, len(whole) - 7, 8):
        (before,) = struct.unpack("<q", whole[at : at + 8])
        for word in (0, 1, 2, 3, -1, before ^ 1 << 8, before ^ 1 << 40, before ^ 1 << 62, before ^ -1 << 63):
            data = bytearray(whole)
            data[at : at + 8] = struct.pack("<q", word)
            with contextlib.suppress(RuntimeError, MemoryError):
                _C._load_plan(signed(data))


ENDS: dict[str, dict[int, int]] = {
    "an argument without the elements that calls read": {160: 0},
    "an argument of fewer elements": {160: 2},
    "an argument that is not contiguous": {160: 2, 168: -1},
    "memory that nobody gives": {80: 1},
    "a call that writes to an argument": {432: 0},
    "a result of more elements than there are numbers for": {216: 1 << 61, 224: 0},
}


@pytest.mark.parametrize("what", ENDS)
def test_ends_that_do_not_fit_their_calls(what: str, tmp_path: Path) -> None:
    """A run would read, or write, what it was not given."""
    saved(lambda x: (x * 2 + 1).exp(), tp.rand(3), path=tmp_path)
    data = bytearray((tmp_path / "a.plan").read_bytes())
    for at, word in ENDS[what].items():
        data[at : at + 8] = struct.pack("<q", word)
    with pytest.raises(RuntimeError, match="damaged, or is no saved plan"):
        _C._load_plan(signed(data))


def test_a_file_of_another_build(tmp_path: Path) -> None:
    saved(lambda x: x.exp(), tp.rand(3), path=tmp_path)
    whole = (tmp_path / "a.plan").read_bytes()
    for old, new, what in ((b"prim::map", b"prim::mop", "calls prim::mop"), (b"exp\0", b"exq\0", "computes exq")):
        assert old in whole
        data = signed(bytearray(whole.replace(old, new)))
        with pytest.raises(RuntimeError, match=f"{what}, which is not in this build"):
            _C._load_plan(data)


@pytest.mark.parametrize("n", [10, 400_000])
def test_a_kernel_that_comes_after_the_plan_was_loaded(n: int, tmp_path: Path) -> None:
    """Loops that the plan has at hand, and calls that it has joined, know the kernels that were there."""

    def function(x: tp.Tensor) -> tp.Tensor:
        return ((x * 2 + 1).exp() * x).sum(0)

    x = tp.rand(n)
    plan, wanted, calls = saved(function, x, path=tmp_path), function(x), []

    def threes(program: int, inputs: Any, numbers: Any, compute: Any, out: tp.Tensor) -> None:
        calls.append(program)
        out.fill_(3.0)

    for _ in range(3):
        assert same(plan(x), wanted) and not calls
        handle = _C._register("prim::map", "CPU", threes, False, "a test", True)
        try:
            given = plan(x)
            assert len(calls) == 4 and given.item() == 3 * n
        finally:
            _C._deregister(handle)
        calls.clear()
    assert same(plan(x), wanted) and not calls


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    plan = saved(lambda x: x * 2, tp.rand(3), path=tmp_path)
    (tmp_path / "a.plan").write_bytes(b"old")
    with pytest.raises(RuntimeError):
        saved(lambda x: x * x.sum().item(), tp.rand(3), path=tmp_path)
    assert (tmp_path / "a.plan").read_bytes() == b"old" and len(list(tmp_path.iterdir())) == 1
    with pytest.raises(FileNotFoundError):
        tp.compiler.save_plan(lambda x: x * 2, (tp.rand(3),), tmp_path / "no" / "a.plan")
    assert plan(tp.ones(3)).tolist() == [2.0] * 3


def test_nothing_is_kept(tmp_path: Path) -> None:
    model, x = nn.Linear(64, 64), tp.rand(64, 64)
    plan = saved(model, x, path=tmp_path)

    def often() -> int:
        for _ in range(50):
            plan(x)
            _C._load_plan((tmp_path / "a.plan").read_bytes())
        return int(_C._memory_stats()["bytes"]) if "allocated" in _C._memory_stats() else 0

    often()
    assert often() == often()


def test_failing_allocations(tmp_path: Path) -> None:
    """Each in turn: a MemoryError, and the next attempt is as if it had not been."""
    model, x = nn.Sequential(nn.Linear(4, 4), nn.ReLU()), tp.rand(2, 4)
    plan = saved(model, x, path=tmp_path)
    data = (tmp_path / "a.plan").read_bytes()
    want = model(x).tolist()
    for what in (lambda: _C._save_plan(model, (x,)), lambda: _C._load_plan(data), lambda: plan(x)):
        failed = 0
        for count in range(400):
            _C._fail_allocation_after(count)
            try:
                with tp.no_grad():
                    what()
                break
            except (MemoryError, RuntimeError):
                failed += 1
            finally:
                _C._fail_allocation_after(-1)
        assert 0 < failed < 400
        assert plan(x).tolist() == want


# ---- C ----


def compiled(source: Path, library: Path, program: Path) -> str:
    """The program of a C file, with what it takes of a library."""
    words = ["cc", "-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O2", "-s", f"-I{ROOT / 'csrc/include'}"]
    words += [str(source), str(library), "-fopenmp", "-no-pie", "-Wl,--gc-sections", "-lm", "-lpthread", "-ldl", "-o"]
    subprocess.run([*words, str(program)], check=True, capture_output=True, timeout=300)
    return str(program)


def heard(*words: str, text: str, **environment: str) -> tuple[int, str]:
    """A program's status, and what it printed; what it says of an error where it failed."""
    environment = {**os.environ, **environment}
    done = subprocess.run(words, input=text, capture_output=True, text=True, timeout=120, env=environment)
    return done.returncode, done.stderr + done.stdout if done.returncode else done.stdout


def made_small(plan: Path, out: Path, device: str = "cpu") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "codegen", "--only", str(plan), "--device", device, "--out", str(out)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)


needs_library = pytest.mark.skipif(
    LIBRARY.parent.name != "release" or not LIBRARY.exists() or not shutil.which("cc"),
    reason="python setup.py native libtensorpy.a",
)


@needs_library
def test_a_c_program_reads_a_digit(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    folder = ROOT / "examples" / "plan_in_c"
    command = [sys.executable, str(folder / "save.py"), "--epochs", "1", "--out", str(tmp_path)]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    program = compiled(folder / "digit.c", LIBRARY, tmp_path / "digit")
    image = (tmp_path / "image.txt").read_text()
    plan = tp.compiler.load_plan(tmp_path / "digits.plan")
    pixels = tp.tensor([float(n) for n in image.split()]).reshape(1, 1, 8, 8) / 16

    def said(name: str, text: str) -> tuple[int, str]:
        return heard(program, str(tmp_path / name), text=text)

    code, text = said("digits.plan", image)
    assert code == 0 and text.splitlines()[-1] == f"this is a {int(plan(pixels).argmax())}"  # type: ignore[union-attr]
    assert said("digits.plan", "1 2 3") == (1, "digit: an image is 64 numbers from 0 to 16\n")
    (tmp_path / "cut.plan").write_bytes((tmp_path / "digits.plan").read_bytes()[:5000])
    assert "damaged" in said("cut.plan", image)[1] and "No such file" in said("none.plan", image)[1]

    done = made_small(tmp_path / "digits.plan", tmp_path / "only")
    assert done.returncode == 0, done.stderr
    whole = Path(program).stat().st_size
    program = compiled(folder / "digit.c", tmp_path / "only" / "libtensorpy_only.a", tmp_path / "small")
    assert said("digits.plan", image) == (code, text) and Path(program).stat().st_size < whole / 2
    saved(lambda x: x.exp(), tp.rand(64), path=tmp_path)
    assert said("a.plan", image) == (1, "digit: a saved plan computes exp, which is not in this build\n")


@needs_library
def test_a_c_program_trains_a_classifier(tmp_path: Path) -> None:
    """Forward, loss, backward and the step: the losses that Python has, to the last digit that is printed."""
    pytest.importorskip("sklearn")
    folder = ROOT / "examples" / "plan_in_c"
    made = subprocess.run(
        [sys.executable, str(folder / "train.py"), "--out", str(tmp_path)], check=True, capture_output=True, timeout=300
    )
    assert b"train.plan" in made.stdout
    done = made_small(tmp_path / "train.plan", tmp_path / "only")
    assert done.returncode == 0, done.stderr
    program = compiled(folder / "train.c", tmp_path / "only" / "libtensorpy_only.a", tmp_path / "train")
    whole = compiled(folder / "train.c", LIBRARY, tmp_path / "whole")
    assert Path(program).stat().st_size < Path(whole).stat().st_size / 2
    words = [program, str(tmp_path / "train.plan"), str(tmp_path / "weights.bin")]
    digits = (tmp_path / "digits.txt").read_text()
    said = subprocess.run(words, input=digits, capture_output=True, text=True, timeout=60)
    assert said.returncode == 0 and said.stderr == ""

    plan = tp.compiler.load_plan(tmp_path / "train.plan")
    rows = tp.tensor([[float(n) for n in line.split()] for line in digits.splitlines()])
    images, labels = (rows[:, :64] / 16).reshape(-1, 1, 8, 8), rows[:, 64].long()
    sizes = [(128, 64), (128,), (10, 128), (10,)]
    flat = tp.frombuffer(bytearray((tmp_path / "weights.bin").read_bytes()), dtype=tp.float32)
    weights = [w.reshape(s) for w, s in zip(flat.split([tp.Size(s).numel() for s in sizes]), sizes, strict=True)]
    for line in said.stdout.splitlines():
        losses = []
        for at in range(0, len(rows) - 63, 64):
            results = plan(images[at : at + 64], labels[at : at + 64], *weights)
            loss, _, *weights = results  # type: ignore[misc]
            losses.append(loss.item())
        assert line.startswith(f"loss {sum(losses) / len(losses):.6f}, right ")
    assert float(said.stdout.split()[-2]) > 95
    cut = subprocess.run([*words[:2], "/dev/null"], input=digits, capture_output=True, text=True, timeout=60)
    assert (cut.returncode, cut.stderr) == (1, "train: these are not its weights\n")


@needs_library
def test_a_small_library_of_other_files(tmp_path: Path) -> None:
    (tmp_path / "names").write_text("prim::map\nexp  # a program\nadd.Tensor\n")
    assert made_small(tmp_path / "names", tmp_path / "only").returncode == 0
    (tmp_path / "names").write_text("prim::mop\n")
    assert "there is no 'mop'" in made_small(tmp_path / "names", tmp_path / "only").stderr
    assert "cannot be read" in made_small(tmp_path / "none", tmp_path / "only").stderr
    saved(lambda x: x * 2, tp.rand(3), path=tmp_path)
    (tmp_path / "cut").write_bytes((tmp_path / "a.plan").read_bytes()[:200])
    assert "neither a saved plan" in made_small(tmp_path / "cut", tmp_path / "only").stderr
