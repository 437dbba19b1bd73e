"""Destroyed tensors give their memory to new ones: references, weak references, finalizers, classes, threads, exit."""

import gc
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest
import tandem as td
from tandem.eager.tensor.tensor import Tensor


@pytest.fixture
def x():
    """A tensor, after as many calls as install the native entries."""
    result = td.asarray(np.arange(16.0))
    for _ in range(100):
        result.T, result + 1
    return result


def test_memory_and_references_do_not_grow(x):
    def step():
        y = x + 1
        return y.T, y[1], weakref.ref(y), [y * 2 for _ in range(3)]

    for _ in range(1000):
        step()
    gc.collect()
    tensors, references = len(gc.get_objects()), sys.getrefcount(Tensor)
    for _ in range(20_000):
        step()
    assert len(gc.get_objects()) - tensors < 10
    assert abs(sys.getrefcount(Tensor) - references) <= 128  # those of the list


def test_more_tensors_than_the_list_keeps(x):
    for _ in range(3):
        many = [x + i for i in range(1000)]
        assert [int(y[0]) for y in many] == list(range(1000))
        del many


def test_new_tensor_has_nothing_of_the_destroyed_one(x):
    for _ in range(300):
        y = (x + 1).requires_grad_()
        (y * y).sum().backward()
        reference = weakref.ref(y)
        del y
        assert reference() is None
        z = x + 2
        assert z.grad is None
        assert not z.requires_grad
        assert z.is_leaf
        assert weakref.getweakrefcount(z) == 0


def test_callbacks_of_weak_references_may_make_tensors(x):
    made = []
    for _ in range(200):
        y = x + 1
        reference = weakref.ref(y, lambda dead: made.append(x + 2))
        del y
        assert reference() is None
    assert len(made) == 200
    assert all(bool((y == x + 2).all()) for y in made)


def test_finalizer_may_keep_a_tensor(x, monkeypatch):
    kept = []
    monkeypatch.setattr(Tensor, "__del__", lambda tensor: kept.append(tensor), raising=False)
    y = x + 1
    del y
    monkeypatch.undo()
    assert [int(y[3]) for y in kept] == [4]
    assert bool((kept.pop() == x + 1).all())


def test_instances_of_subclasses_are_freed(x):
    class Named(Tensor):
        """A class with a dictionary, whose instances have nothing else."""

    references, owner = sys.getrefcount(Named), object()
    held = sys.getrefcount(owner)
    for _ in range(300):
        y = Tensor.__new__(Named)
        y.owner, y._meta = owner, owner
        reference = weakref.ref(y)
        del y
        assert reference() is None
    assert (sys.getrefcount(Named), sys.getrefcount(owner)) == (references, held)
    assert type(x + 1) is Tensor


def test_tensors_in_cycles_are_collected(x):
    class Holder:
        pass

    references = []
    for _ in range(200):
        holder = Holder()
        holder.own, holder.tensor = holder, x + 1
        references.append(weakref.ref(holder.tensor))
    del holder
    gc.collect()
    assert all(reference() is None for reference in references)


def test_long_chains_of_recorded_calls_are_destroyed(x):
    y = x.clone().requires_grad_()
    for _ in range(50_000):
        y = y + 1
    del y


def test_threads_share_the_list(x):
    failures = []

    def work(number):
        for i in range(5000):
            y = x + number
            if int(y.T[i % 16]) != i % 16 + number:
                failures.append((number, i))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


EXIT = """
import atexit, numpy as np, tandem as td
x = td.asarray(np.arange(16.0))
for _ in range(100):
    x.T, x + 1
class Late:
    def __del__(self):
        self.tensor + 1
late = Late()
late.tensor, late.own = x + 1, late
kept = [x + i for i in range(500)]
atexit.register(lambda: [x + 1 for _ in range(500)])
"""


def test_tensors_may_live_until_the_interpreter_exits():
    done = subprocess.run([sys.executable, "-c", EXIT], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
