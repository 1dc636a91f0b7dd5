"""Every function that libraries from outside are given, on tensors whose memory comes later.

The list is that of the headers: a call of each function of the tables (tensorpy/api.h, generated_api.h) that takes
tensors, in any form, is written in C with arguments that its types ask for, as of a layer above the notes. It gives,
or raises, what it does on tensors that are there, from the thread that made them, another one, or a child process.
"""

from __future__ import annotations

import gc
import os
import pickle
import re
import signal
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest

import tensorpy as tp
from codegen.c_headers import HEADERS, read_header
from tensorpy.testing.checks import bits
from tensorpy.utils import extension

# ---- the list ----

TABLES = {"tensorpy_api": "api.h", "tensorpy_generated": "generated_api.h"}
HOLDS_TENSORS = re.compile(r"\btp_(tensors?|tensor_seq|value|operand|device_argument|record|meta|plan)\b")
PARAMETER = re.compile(r"(?P<type>.*?)(?P<name>\w+)")


@dataclass(frozen=True)
class Function:
    """A member of a table, with its parameters as types and names."""

    table: str
    result: str
    name: str
    parameters: tuple[tuple[str, str], ...]

    @property
    def takes_tensors(self) -> bool:
        return any(HOLDS_TENSORS.search(kind) for kind, _ in self.parameters)


def functions() -> list[Function]:
    found = []
    for table, header in TABLES.items():
        for d in read_header(HEADERS / "tensorpy" / header).declarations:
            text = " ".join(re.sub(r"/\*.*?\*/", " ", d.text, flags=re.S).split())
            member = re.fullmatch(r"(.*?) ?\(\*(\w+)\)\((.*)\);", text) if d.parent == table else None
            if not member:
                continue
            parts = re.split(r", (?![^()]*\))", member[3])
            parameters = (PARAMETER.fullmatch(part) for part in parts if "(" not in part)
            pairs = tuple((p["type"].strip(), p["name"]) for p in parameters if p)
            found.append(Function(table, member[1].strip(), member[2], pairs))
    return [f for f in found if f.takes_tensors]


# ---- arguments: by function and parameter, by type and name, by type ----

EACH = "(tp_value[]){tensorpy_give_tensors((tp_tensors){&x, 1}), tensorpy_give_tensors((tp_tensors){&u->other, 1})}"
OF_FUNCTIONS = {
    ("each_into", "called"): '"mul_.Tensor"',
    ("each_new", "called"): '"mul.Tensor"',
    ("each_into", "args"): EACH,
    ("each_new", "args"): EACH,
    ("record_output", "t"): "u->fresh",
    ("record_save_output", "t"): "u->fresh",
    ("opencl_run", "name"): '"twice"',
    ("opencl_run", "source"): "TWICE",
    ("opencl_run", "nargs"): "1",
    ("plan_of", "tensors"): "(tp_tensor *[]){u->fresh, x}",
    ("walk", "plan"): "planned(u)",
    ("round_into", "wide"): "u->other",
    ("meta_output", "sizes"): "tp_sizes(x)",
    ("meta_output", "strides"): "TP_NO_INTS",
    ("meta_output", "dtype"): "tp_dtype_of(x)",
}
OF_NAMES = {
    ("tp_tensor *", "view_steal"): "tp_as_strided(x, TP_INTS(10, 5), TP_INTS(1, 20), 0)",
    ("tp_ints", "sizes"): "TP_INTS(10, 5)",
    ("tp_ints", "strides"): "TP_INTS(1, 20)",
    ("tp_ints", "items"): "TP_INTS(20)",
    ("tp_ints", "group"): "TP_NO_INTS",
    ("int64_t", "offset"): "3",
    ("int64_t", "i"): "1",
    ("int64_t", "grain"): "0",
    ("int64_t", "n"): "2",
    ("int", "i"): "0",
    ("int", "n"): "2",
    ("int", "nargs"): "2",
    ("int", "nlists"): "1",
    ("int", "noutputs"): "1",
    ("int", "input"): "0",
    ("int", "output"): "0",
    ("int", "device_type"): "TP_DEVICE_CPU",
    ("const char *", "name"): '"PendingBackward"',
    ("const char *", "op"): '"use"',
    ("const char *", "tag"): '"data_dependent_output"',
    ("tp_value *", "results"): "u->results",
    ("tp_value *", "v"): "held(u)",
    ("const void *", "data"): "NULL",
    ("const void *", "params"): "NULL",
    ("size_t", "nbytes"): "0",
    ("tp_dtype", "to"): "TP_FLOAT16",
    ("tp_dtype", "dtype"): "TP_FLOAT32",
}
OF_TYPES = {
    "tp_tensor *": "x",
    "const tp_tensor *": "x",
    "tp_tensors": "u->both",
    "const tp_tensors *": "&u->both",
    "tp_tensor *const *": "u->both.data",
    "tp_tensor **": "copies(u)",
    "tp_tensor_seq *": "u->list",
    "const tp_tensor_seq *": "u->list",
    "const tp_op *": 'tp_find_op("aten::mul.Tensor")',
    "const tp_value *": "(tp_value[]){tensorpy_give_tensor(x), tensorpy_give_tensor(u->other)}",
    "const tp_operand *": "(tp_operand[]){{x, NULL}, {u->other, NULL}}",
    "const tp_device_argument *": '(tp_device_argument[]){{"x", x, {NULL, 0}}, {"other", u->other, {NULL, 0}}}',
    "tp_record *": "u->record",
    "const tp_record *": "u->record",
    "tp_meta *": "m",
    "tp_view *": "&u->view",
    "tp_plan *": "&u->plan",
    "tp_backward": "backward",
    "tp_loop_fn": "loop",
    "tp_keyset": "u->below",
    "tp_memory_format": "TP_CONTIGUOUS_FORMAT",
    "tp_device": "TP_NO_DEVICE",
}

# What becomes of what comes back, and of what was written through a parameter.
GIVEN = {
    "tp_tensor *": "give_new(u, r)",
    "tp_tensor_seq *": "give_list(u, r)",
    "tp_tensors": "give_all(u, r)",
    "tp_record *": "give_record(u, r)",
    "void *": "give_number(u, r != NULL)",
    "bool": "give_number(u, r)",
    "int64_t": "give_number(u, (double)r)",
    "tp_dtype": "give_number(u, r)",
    "int": "r < 0 ? -1 : give_number(u, r)",
}
WRITTEN = {
    "tp_view *": "give_total(u)",
    "tp_plan *": "give_plan(u)",
    "tp_value *": "give_value(u)",
    "tp_tensor **": "give_copies(u)",
}

# Elements that nobody has written: what is compared is how they lie.
UNWRITTEN = {"new_empty_like", "new_output"}
# Asked of a record that has an output; of the others' records `record_output` tells it, which is one of them.
NEEDS_OUTPUT = {"record_save_output", "zeros_for_output", "gradients_of_list", "saved"}
# These write to the tensor, or give it another size.
WRITES = {"resize", "each_into", "round_into"}
# These take the reference, as parameters do whose names say it.
TAKES = {("seq_put_steal", "t"), ("release", "t"), ("seq_free", "seq"), ("value_release", "v"), ("record_release", "r")}


def is_taken(f: Function, name: str) -> bool:
    stolen = f.name.endswith("_steal") and f.name != "seq_put_steal"
    return (f.name, name) in TAKES or name.endswith("_steal") or (stolen and name in ("t", "list", "view", "views"))


def argument(f: Function, kind: str, name: str) -> str:
    found = OF_FUNCTIONS.get((f.name, name)) or OF_NAMES.get((kind, name)) or OF_TYPES.get(kind)
    assert found, f"{f.name}: write a maker of {kind} {name}"
    if not is_taken(f, name):
        return found
    return {"x": "tp_retain(x)", "u->list": "tp_take(u->list)", "u->record": "tp_take(u->record)"}.get(found, found)


def call(f: Function) -> str:
    """The call of a function as a C expression."""
    table = "tensorpy_functions" if f.table == "tensorpy_api" else "TENSORPY_GENERATED"
    return f"{table}->{f.name}({', '.join(argument(f, kind, name) for kind, name in f.parameters)})"


def case(f: Function) -> str:
    """The body of a C function that calls one of a table, and gives what comes of it."""
    if any(kind == "tp_meta *" for kind, _ in f.parameters):
        return "return shaped(u);"
    lines = []
    if any(kind.endswith("tp_tensor_seq *") for kind, _ in f.parameters):
        lines.append("if (!(u->list = tp_tensor_seq_of(u->both))) return -1;")
    if any(kind.endswith("tp_record *") for kind, _ in f.parameters):
        lines.append("if (record(u) < 0 || !u->record) return tp_error_pending() ? -1 : 0;")
    if f.name in NEEDS_OUTPUT:
        lines.append("if (tp_record_output(u->record, u->fresh) < 0) return -1;")
    if f.result == "void":
        lines.append(f"{call(f)};")
    else:
        lines += [f"{f.result} r = {call(f)};", f"if (({GIVEN[f.result]}) < 0) return -1;"]
    lines += [f"if (({WRITTEN[kind]}) < 0) return -1;" for kind, _ in f.parameters if kind in WRITTEN]
    return " ".join([*lines, "return 0;"])


HEAD = r"""
#include "tensorpy/generated.h"
#define TWICE "kernel void twice(global float *x, long at) { long i = get_global_id(0); if (i < 20) x[at + i] *= 2; }"
typedef struct {
    tp_tensor *x, *other, *fresh; /* as given; as given; new */
    tp_tensor *two[2], *copied[2], *made[16];
    int count; /* of what is made */
    tp_tensors both;
    tp_tensor_seq *list;
    tp_record *record;
    tp_value results[2];
    tp_keyset below;
    tp_view view;
    tp_plan plan;
} use_of;

/* ---- what is given ---- */

static int give_new(use_of *u, tp_tensor *t) {
    if (t) u->made[u->count++] = t;
    return t || !tp_error_pending() ? 0 : -1;
}
static int give_all(use_of *u, tp_tensors list) {
    for (int64_t i = 0; i < list.size; i++) give_new(u, tp_retain(list.data[i]));
    return list.size < 0 ? -1 : 0;
}
static int give_list(use_of *u, tp_tensor_seq *list) {
    int status = list ? give_all(u, tp_tensor_seq_borrow(list)) : -1;
    tp_seq_free(list);
    return status;
}
static int give_number(use_of *u, double number) {
    tp_tensor *t = tp_new_empty(TP_INTS(1), TP_FLOAT64, (tp_device){TP_DEVICE_CPU, 0});
    if (t) *(double *)tp_view_of(t).data = number;
    return give_new(u, t);
}
static int give_value(use_of *u) {
    tp_tensor *t = u->results[0].tag == TP_TENSOR ? tp_retain(u->results[0].tensor) : NULL;
    tp_value_release(&u->results[0]);
    return give_new(u, t);
}
static int give_copies(use_of *u) {
    for (int i = 0; i < 2; i++) give_new(u, tp_take(u->copied[i]));
    return 0;
}
static int give_record(use_of *u, tp_record *r) {
    if (!r && tp_error_pending()) return -1;
    tp_record_release(r);
    return give_number(u, r != NULL);
}
static double element(const tp_view *v, int64_t i) {
    return v->dtype == TP_FLOAT32 ? ((const float *)v->data)[i] : ((const uint16_t *)v->data)[i];
}
static double total(tp_view v) {
    double sum = 0;
    if (!v.data) return tp_fail(TP_RuntimeError, "there is nothing to see");
    int64_t lines = v.ndim == 2 ? v.sizes[0] : 1, places = v.ndim == 2 ? v.sizes[1] : v.numel;
    for (int64_t i = 0; i < lines; i++)
        for (int64_t j = 0; j < places; j++)
            sum += element(&v, i * v.strides[0] + j * v.strides[v.ndim - 1]) * (double)((3 * i + j) % 7);
    return sum;
}
static int give_total(use_of *u) {
    double sum = u->view.data ? total(u->view) : (double)(10 * u->view.numel + u->view.ndim);
    return tp_error_pending() ? -1 : give_number(u, sum);
}
static void loop(char *const *data, const int64_t *strides, int64_t n, const void *params) {
    (void)params;
    for (int64_t i = 0; i < n; i++)
        memcpy(data[0] + i * strides[0], data[1] + i * strides[1], strides[1] == 2 ? 2 : 4);
}
static int give_plan(use_of *u) {
    for (int i = 0; i < 2; i++)
        if (u->plan.dtype[i] != u->plan.dtype[0]) return 0;
    if (tp_walk(&u->plan, loop, NULL, 0) < 0) return -1;
    return give_new(u, tp_retain(u->fresh));
}

/* ---- what is passed ---- */

static tp_tensor **copies(use_of *u) {
    for (int i = 0; i < 2; i++) u->copied[i] = tp_retain(u->two[i]);
    return u->copied;
}
static tp_value *held(use_of *u) {
    u->results[0] = tensorpy_give_tensor(tp_retain(u->x));
    return u->results;
}
static const tp_plan *planned(use_of *u) {
    tp_tensor *both[] = {u->fresh, u->x};
    if (tp_plan_of(both, 1, 2, &u->plan) < 0) tp_error_clear();
    return &u->plan;
}
/* Everything that a backward may ask; the gradient is that of x * sum(x). */
static int backward(tp_record *r, tp_tensor *const *grads, tp_tensor **out) {
    tp_tensor *saved = tp_saved(r, 0);
    if (!saved) return -1;
    tp_value args[2] = {tensorpy_give_tensor(grads[0]), tensorpy_give_tensor(saved)}, made = {.tag = TP_NONE};
    total(tp_view_of(grads[0])), total(tp_view_of(saved));
    int status = !tp_error_pending() ? tp_call(tp_find_op("aten::mul.Tensor"), args, &made) : -1;
    tp_release(saved);
    out[0] = status == 0 ? made.tensor : NULL;
    return status;
}
/* A record, if x wants a gradient. */
static int record(use_of *u) {
    u->record = tp_record_new("PendingBackward", backward, (tp_tensors){u->two, 1}, NULL, 0);
    return u->record ? tp_record_save(u->record, u->x) : tp_error_pending() ? -1 : 0;
}
"""
TAIL = r"""
static int meta(tp_meta *m, tp_value *args) {
    tp_tensor *x = args[0].tensor;
    return %(meta_output)s;
}
static int kernel(tp_meta *m, tp_value *args) {
    tp_tensor *out = %(meta_out)s;
    tp_tensor *both[] = {out, args[0].tensor};
    tp_plan plan;
    return tp_plan_of(both, 1, 2, &plan) < 0 ? -1 : tp_walk(&plan, loop, NULL, 0);
}
static int use(use_of *u, int64_t which) {
    switch (which) {
%(cases)s
    }
    return tp_fail(TP_RuntimeError, "there is no function %%d", (int)which);
}
/* u->fresh is x's like, and has the record where there is one. */
static tp_tensor_seq *used(use_of *u, int64_t which) {
    int status = u->fresh ? use(u, which) : -1;
    if (status == 0 && u->list) status = give_all(u, tp_tensor_seq_borrow(u->list));
    if (status == 0 && u->record) {
        give_new(u, tp_retain(u->fresh));
        tp_plan plan;
        tp_tensor *both[] = {u->fresh, u->x};
        if (tp_plan_of(both, 1, 2, &plan) < 0 || tp_walk(&plan, loop, NULL, 0) < 0) status = -1;
    }
    tp_seq_free(u->list);
    tp_record_release(u->record);
    tp_value_release(&u->results[0]);
    for (int i = 0; i < 2; i++) tp_release(u->copied[i]);
    tp_release(u->fresh);
    tp_tensor_seq *made = tp_tensor_seq_of((tp_tensors){u->made, u->count});
    for (int i = 0; i < u->count; i++) tp_release(u->made[i]);
    if (status == 0) return made;
    tp_seq_free(made);
    return NULL;
}
TENSORPY_KERNEL(tp_tensor_seq *, of_layer, (tp_keyset, ks), (tp_tensor *, x), (tp_tensor *, other), (int64_t, which)) {
    use_of u = {.x = x, .other = other, .two = {x, other}, .both = {u.two, 2}, .below = ks & TP_BELOW_AUTOGRAD};
    u.plan.size = sizeof u.plan;
    u.fresh = tp_new_empty_like(x, tp_result_type((tp_operand[]){{x, NULL}}, 1)); /* no view of x, which would run it */
    return used(&u, which);
}
TENSORPY_LIBRARY(pending_list, m) {
    if (tp_def(m, "use(Tensor x, Tensor other, int which) -> Tensor[]") < 0) return -1;
    return tp_def(m, "shaped(Tensor x) -> Tensor");
}
TENSORPY_LIBRARY_IMPL(pending_list, CompositeImplicitAutograd, m) { return tp_impl(m, "use", of_layer); }
TENSORPY_LIBRARY_IMPL(pending_list, CPU, m) { return TENSORPY_GENERATED->structured(m, "shaped", meta, kernel); }
"""
SHAPED = """
static int shaped(use_of *u) {
    tp_value args[] = {tensorpy_give_tensor(u->x)};
    if (tp_call(tp_find_op("pending_list::shaped"), args, u->results) < 0) return -1;
    return give_value(u);
}
"""


def source(listed: list[Function]) -> str:
    by_name = {f.name: f for f in listed}
    framed = {f.name for f in listed if any(kind == "tp_meta *" for kind, _ in f.parameters)}
    assert framed == {"meta_output", "meta_out"}  # others need a place in a structured kernel, too
    bodies = "".join(
        f"static int case_{i}(use_of *u) {{ tp_tensor *x = u->x; (void)x; {case(f)} }}\n" for i, f in enumerate(listed)
    )
    cases = "\n".join(f"    case {i}: return case_{i}(u); /* {f.name} */" for i, f in enumerate(listed))
    calls = {"meta_output": call(by_name["meta_output"]), "meta_out": call(by_name["meta_out"])}
    return HEAD + SHAPED + bodies + TAIL % {**calls, "cases": cases}


LISTED = functions()


@pytest.fixture(scope="module")
def use(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., list[tp.Tensor]]]:
    folder = tmp_path_factory.mktemp("pending_list")
    path = extension.load_inline("pending_list", source(LISTED), build_directory=folder)
    yield tp.ops.pending_list.use
    tp.ops.unload_library(path)


# ---- what they do ----


def shown(t: tp.Tensor, written: bool = True) -> Any:
    """What is compared of a tensor."""
    how = (t.dtype, tuple(t.shape), t.stride(), t._version, str(t.device), t.requires_grad)
    return (*how, bits(t.detach())) if written else how


KINDS: dict[str, Callable[[tp.Tensor], tp.Tensor]] = {
    "float32": lambda x: x * 2 + 1,
    "float16": lambda x: (x * 2 + 1).half(),
    "a view": lambda x: (x * 2 + 1).t()[1:19, :],
    "written in part": lambda x: x.clone().exp_(),
    "small": lambda x: x[:7, :8] * 2 + 1,
}


def attempt(use: Callable[..., list[tp.Tensor]], which: int, y: tp.Tensor, other: tp.Tensor) -> Any:
    try:
        made = use(y, other, which)
        recorded = [t for t in made if t.grad_fn and "Pending" in t.grad_fn.name()]
        grads = [tp.autograd.grad(t.sum(), y)[0] for t in recorded]
        return [shown(t, LISTED[which].name not in UNWRITTEN) for t in [*made, *grads]], len(recorded)
    except Exception as error:
        return type(error), str(error)


def in_a_child(call: Callable[[], Any]) -> Any:
    """What a child process has come to, which has the tensors of this one."""
    reads, writes = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pid = os.fork()
    if pid == 0:
        try:
            os.write(writes, pickle.dumps(call()))
        finally:
            os._exit(0)
    os.close(writes)
    with os.fdopen(reads, "rb") as pipe:
        found = pipe.read()
    assert os.waitpid(pid, 0)[1] == 0 and found
    return pickle.loads(found)


WAYS: dict[str, Callable[[Callable[[], Any], ThreadPoolExecutor], Any]] = {
    "here": lambda call, other: call(),
    "another thread": lambda call, other: other.submit(call).result(),
    "a child process": lambda call, other: in_a_child(call),
}


@pytest.fixture(scope="module")
def other() -> Iterator[ThreadPoolExecutor]:
    """A thread that has called operators."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(lambda: tp.ones(3).add(1)).result()
        yield pool


def start(recorded: bool = False) -> tp.Tensor:
    return ((tp.arange(400.0) % 7) / 8).reshape(20, 20).requires_grad_(recorded)


@pytest.mark.parametrize(
    ("way", "kind"), [*((w, k) for w in ("here", "another thread") for k in KINDS), ("a child process", "float32")]
)
def test_each_gives_what_it_gives_of_tensors_that_are_there(
    way: str, kind: str, use: Callable[..., list[tp.Tensor]], other: ThreadPoolExecutor
) -> None:
    def one(which: int, x: tp.Tensor) -> Any:
        y, z = KINDS[kind](x), KINDS[kind](x.detach() + 3)
        read = y + 1
        found = WAYS[way](lambda: attempt(use, which, y, z), other)
        return found, shown(y), shown(z), shown(read)

    wrong = []
    for which, f in enumerate(LISTED):
        for recorded in (False, True):
            x = start(recorded)
            expected, got = one(which, x), tp.compile(one, options={"smallest": 0})(which, x)
            if got != expected:
                wrong.append((f.name, recorded, expected[0], got[0]))
    assert len(LISTED) > 50 and not wrong


def test_what_needs_no_elements_has_nothing_run(use: Callable[..., list[tp.Tensor]]) -> None:
    """The tensors that the others of these tests ask about are not there yet."""
    needless = {
        "retain",
        "geometry",
        "as_strided",
        "requires_grad",
        "seq_of",
        "result_type",
        "new_empty_like",
        "storage_offset",
    }
    for which, f in enumerate(LISTED):
        follower = tp.compile(lambda x, n=which: (use(x * 2 + 1, x, n), None)[1], options={"smallest": 0})
        if f.name in needless:
            follower(start())
            assert follower._report()["flushes"] == 0 and follower._report()["calls"] >= 1, f.name


@pytest.mark.skipif(not tp.opencl.is_available(), reason="no OpenCL device")
def test_a_kernel_of_the_library_on_a_device(use: Callable[..., list[tp.Tensor]]) -> None:
    which = next(i for i, f in enumerate(LISTED) if f.name == "opencl_run")

    def one(x: tp.Tensor) -> Any:
        y = x * 2 + 1
        read = y + 1
        use(y, y, which)
        return [t.cpu() for t in (y, read, y + 1)]

    x = start().to("opencl")
    assert [shown(t) for t in tp.compile(one, options={"smallest": 0})(x)] == [shown(t) for t in one(x)]


def test_each_with_failing_allocations(use: Callable[..., list[tp.Tensor]]) -> None:
    """Each in turn, from the call on: a MemoryError, and the tensor has its elements, or says that it has none."""
    x, other = start(True), start()
    expected = bits((x * 2 + 1).detach())

    def one(which: int, n: int) -> bool:
        y = x * 2 + 1
        tp._C._fail_allocation_after(n)
        try:
            use(y, other, which)
        except (MemoryError, RuntimeError):
            pass
        finally:
            reached = not tp._C._fail_allocation_after(-1)
        try:
            assert LISTED[which].name in WRITES or bits(y.detach()) == expected, LISTED[which].name
        except RuntimeError as error:
            assert "a tensor has no values" in str(error)
        return reached

    for which, f in enumerate(LISTED):
        failed = 0
        for _ in range(2):
            gc.collect()
            before = tp._C._memory_stats()["live_blocks"]
            failed = next(n for n in range(200) if not tp.compile(one, options={"smallest": 0})(which, n))
        gc.collect()
        assert tp._C._memory_stats()["live_blocks"] <= before + 4, (f.name, failed)


def test_each_with_ctrl_c(use: Callable[..., list[tp.Tensor]]) -> None:
    """A handler raises while the calls run that the function waits for, or just after. The caller gets what it raises,
    from the function or at the next step, and the tensor has its elements, or says that it has none."""
    wide = tp.linspace(0, 1, 600_000).reshape(400, 1500)
    in_the_middle = set()

    def slow() -> tp.Tensor:
        t = wide
        for _ in range(40):
            t = (t.sin() + 1).log1p()
        return t.sum(1).reshape(20, 20)

    def handler(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    def is_interrupted(which: int) -> bool:
        y = slow()
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.004)
            try:
                use(y, start(), which)
            except RuntimeError:
                pass
            time.sleep(5)
            return False
        except KeyboardInterrupt:
            pass
        try:
            assert LISTED[which].name in WRITES or bits(y) == expected, LISTED[which].name
        except RuntimeError as error:
            assert "a tensor has no values" in str(error)
            in_the_middle.add(LISTED[which].name)
        return True

    expected = bits(slow())
    before, threads = signal.signal(signal.SIGALRM, handler), tp.get_num_threads()
    tp.set_num_threads(1)
    try:
        for which, f in enumerate(LISTED):
            assert tp.compile(is_interrupted, options={"smallest": 0})(which), f.name
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        tp.set_num_threads(threads)
    assert in_the_middle & {"view", "walk", "plan_of", "call_on_host", "meta_out"}, in_the_middle
