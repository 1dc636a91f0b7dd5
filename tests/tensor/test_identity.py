"""A tensor and its Python object: the states that the pair can be in, and the ways from one to the next.

The object is one while somebody could tell it from another; whoever has it has a whole tensor, whichever of C and
Python
held it last. What C holds a tensor by is one table, what makes an object worth keeping another."""

import gc
import random
import threading
import weakref
from typing import ClassVar

import pytest

import tensorpy as tp


class Sub(tp.Tensor):
    pass


class Noted(tp.Tensor):
    """A subclass whose finaliser reads the tensor."""

    ends: ClassVar[list] = []

    def __del__(self):
        Noted.ends.append(self.tolist())


class Keeps(tp.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.detach() * 1.0

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * x


def as_grad(x):
    y = tp.ones(x.shape)
    y.grad = x
    return y, lambda y: y.grad


def as_base(x):
    return x.view(-1)[1:], lambda v: v._base


def as_base_of_many(x):
    return x.unbind(0), lambda parts: parts[1]._base


def as_saved(x):
    return tp.ones(x.shape, requires_grad=True) * x, lambda y: y.grad_fn._saved_other


def as_saved_list(x):
    return tp.logsumexp(tp.ones(x.shape, requires_grad=True) + x * x.detach().requires_grad_(), 0), None


def as_saved_of_function(x):
    return Keeps.apply(x.requires_grad_()), lambda y: y.grad_fn.saved_tensors[0]


def as_leaf_of_graph(x):
    return x.requires_grad_() + 1, lambda y: y.grad_fn.next_functions[0][0].variable


def as_hook(x):
    y = tp.ones(2, requires_grad=True)
    y.register_hook(lambda grad, x=x: grad * x.sum())
    return y, None


HOLDERS = (as_grad, as_base, as_base_of_many, as_saved, as_saved_list, as_saved_of_function, as_leaf_of_graph, as_hook)
KINDS = {
    "weak": lambda: tp.full((3,), 2.0),
    "attribute": lambda: with_attribute(tp.full((3,), 2.0)),
    "subclass": lambda: tp.full((3,), 2.0).as_subclass(Sub).clone(),
    "finaliser": lambda: tp.full((3,), 2.0).as_subclass(Noted).clone(),
    "parameter": lambda: tp.nn.Parameter(tp.full((3,), 2.0)),
}


def with_attribute(x):
    x.note = "kept"
    return x


def whole(x):
    assert x.detach().tolist() == [2.0, 2.0, 2.0]
    assert (x.detach() + 1).sum().item() == 9.0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("holder", HOLDERS, ids=lambda f: f.__name__)
def test_a_weak_reference_gives_a_whole_tensor_whoever_lets_go_first(holder, kind):
    """Python lets go, gets the object back by the weak reference, then C lets go; and the same once more."""
    x = KINDS[kind]()
    w = weakref.ref(x)
    for _ in range(3):
        held, _ = holder(x)
        del x
        x = w()
        if x is None:  # nothing but the object's own finaliser runs when C alone holds it
            assert kind == "finaliser"
            return
        del held
        gc.collect()
        whole(x)
        assert w() is x
        if kind == "attribute":
            assert x.note == "kept"
    del x
    gc.collect()
    assert w() is None


@pytest.mark.parametrize("kind", [k for k in KINDS if k != "finaliser"])
@pytest.mark.parametrize("holder", [h for h in HOLDERS if h(tp.ones(3))[1]], ids=lambda f: f.__name__)
def test_c_gives_the_object_that_the_weak_reference_gives(holder, kind):
    x = KINDS[kind]()
    w, number = weakref.ref(x), id(x)
    held, again = holder(x)
    del x
    gc.collect()
    assert id(again(held)) == number and again(held) is w()
    x = w()
    assert again(held) is x
    del held
    gc.collect()
    whole(x)
    del x
    gc.collect()
    assert w() is None


def test_a_callback_runs_once_when_the_tensor_goes():
    called = []
    x = tp.ones(3)
    w = weakref.ref(x, called.append)
    held, _ = as_grad(x)
    del x
    gc.collect()
    assert called == [] and w() is not None
    del held
    assert called == [w] and w() is None


def test_a_finaliser_reads_its_tensor_when_c_lets_go_last():
    x = tp.full((3,), 2.0).as_subclass(Noted).clone()
    Noted.ends.clear()
    held, _ = as_grad(x)
    del x
    del held
    gc.collect()
    assert Noted.ends == [[2.0, 2.0, 2.0]]


def test_a_callback_may_bring_other_kept_tensors_back():
    """The end of one kept tensor runs Python, which takes another out of the list that is being let go."""
    x, y = tp.full((3,), 2.0), tp.full((3,), 2.0)
    seen = []
    v = weakref.ref(y)
    w = weakref.ref(x, lambda _: seen.append(v()))
    held, _ = as_grad(x)
    other, _ = as_grad(y)
    del x, y
    pair = [held, other]
    del held, other
    pair.clear()
    gc.collect()
    assert w() is None
    if seen[0] is not None:
        whole(seen[0])


def test_data_swapped_under_a_kept_object():
    x = tp.zeros(2)
    w = weakref.ref(x)
    held, _ = as_grad(x)
    del x
    held.grad.data = tp.full((3,), 2.0)
    x = w()
    del held
    whole(x)


def test_a_cycle_through_a_kept_object_is_collected():
    gone = []
    for _ in range(2):
        x = tp.full((3,), 2.0)
        held, _ = as_grad(x)
        x.holder = held
        gone += [weakref.ref(x), weakref.ref(held)]
        del x, held
    x = with_attribute(tp.full((3,), 2.0))
    x.result = tp.ones(3, requires_grad=True) * x
    gone += [weakref.ref(x), weakref.ref(x.result)]
    del x
    gc.collect()
    assert [w() for w in gone] == [None] * len(gone)


def test_random_walks_over_the_states():
    """Any order of: hold by C in any way, drop, take back by the weak reference or from C, let C go, collect."""
    draw = random.Random(19)
    for _ in range(30):
        kind = draw.choice([k for k in KINDS if k != "finaliser"])
        mine, held = [KINDS[kind]()], []
        w = weakref.ref(mine[0])
        for _ in range(draw.randrange(4, 20)):
            step = draw.randrange(6)
            if step == 0 and mine:
                held.append(draw.choice(HOLDERS)(mine[0]))
            elif step == 1 and mine:
                mine.pop()
            elif step == 2 and w() is not None:
                mine.append(w())
            elif step == 3 and held:
                thing, again = draw.choice(held)
                if again:
                    got = again(thing)
                    assert got is w()
                    mine.append(got)
                del thing
            elif step == 4 and held:
                held.pop(draw.randrange(len(held)))
            elif step == 5 and draw.randrange(4) == 0:
                gc.collect()
            if mine:
                whole(mine[0])
        mine.clear()
        held.clear()
        thing = got = again = None
        gc.collect()
        assert w() is None


def test_threads_that_take_and_let_go():
    """One thread lets C's reference go, outside of the host lock too, while another has a weak reference."""
    rounds, threads = 300, 3
    for _ in range(3):
        xs = [tp.full((3,), 2.0) for _ in range(rounds)]
        weak = [weakref.ref(x) for x in xs]
        views = [[x.view(-1) for x in xs] for _ in range(threads)]
        del xs
        start = threading.Barrier(threads + 1)
        wrong = []

        def let_go(mine, start=start):
            start.wait()
            while mine:
                v = mine.pop()
                v.add(1)
                del v

        def take(start=start, weak=weak, wrong=wrong):
            start.wait()
            for w in reversed(weak):
                for _ in range(3):
                    x = w()
                    if x is not None and x.tolist() != [2.0] * 3:
                        wrong.append(x)

        workers = [threading.Thread(target=let_go, args=(mine,)) for mine in views] + [threading.Thread(target=take)]
        for t in workers:
            t.start()
        for t in workers:
            t.join()
        assert not wrong
        gc.collect()
        assert [w() for w in weak] == [None] * rounds


def test_an_object_in_a_cycle_stays_while_a_tensor_holds_its_tensor():
    class Mark:
        pass

    def cycle():
        x, y = tp.ones(2), tp.ones(2)
        x.mark, x.other, y.other = Mark(), y, x
        holder = tp.ones(2)
        holder.grad = x
        return holder, weakref.ref(x.mark)

    holder, mark = cycle()
    gc.collect()
    assert mark() is not None and holder.grad.other.other is holder.grad
    del holder
    gc.collect()
    assert mark() is None


@pytest.mark.parametrize("kind", ["attribute", "subclass", "parameter"])
@pytest.mark.parametrize("holder", [h for h in HOLDERS if h(tp.ones(3))[1]], ids=lambda f: f.__name__)
def test_a_collected_cycle_leaves_the_objects_that_c_holds(holder, kind):
    """The cycle leads to the object, and is not of it. (Python clears the weak references of all that it collects.)"""
    x = with_attribute(KINDS[kind]())
    held, again = holder(x)
    number, cycle = id(x), [x]
    cycle.append(cycle)
    del x, cycle
    gc.collect()
    w = weakref.ref(again(held))
    assert w().note == "kept" and id(w()) == number
    del held
    gc.collect()
    assert w() is None


def test_views_of_one_memory_tell_one_storage():
    x = tp.arange(4)
    assert x.untyped_storage()._cdata == x[1:].untyped_storage()._cdata == x.storage()._cdata
    assert x.untyped_storage()._cdata != x.clone().untyped_storage()._cdata
