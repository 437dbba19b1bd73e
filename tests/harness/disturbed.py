"""Subprocess programs that interrupt compilation, and fork while other threads compile.

``python disturbed.py COMMAND COUNT SEED`` prints ``done``, or what has gone wrong; the commands stand at the end.
"""

import multiprocessing
import operator
import os
import random
import signal
import sys
import threading
import time
import warnings

import numpy as np
import tandem as td
from tandem import locks
from tandem.eager.layers import level_allocations
from tandem.eager.layers.level_stack import stack
from tandem.registry.dispatch.state import state
from tandem.tracer.trace import current_trace


def programs(i):
    """(function, arguments) to compile; no two numbers give the same code."""
    x = td.asarray(np.linspace(0.1, 1, 2 + i % 50).astype(np.float32))
    weight = td.asarray(np.ones(x.shape, np.float32), requires_grad=True)

    def f(x):
        return (td.exp(x * (1 + i)) / (1 + i)).sum() + td.softmax(x).max()

    return [
        (f, x),
        (td.grad(f), x),
        (td.vmap(lambda row: td.sin(row) * i), td.stack([x, x])),
        (lambda weight: (weight * x).sum() * i, weight),
        (lambda x: td.fori_loop(0, 5, lambda k, c: c * 2 + i, x), x),
    ][i % 5]


def remains():
    """What an interrupt has left behind in this thread, and the locks that it holds."""
    found = {"keys": (state.include, state.exclude) != (0, 0), "levels": bool(stack.levels)}
    found |= {"trace": current_trace() is not None, "noted": bool(level_allocations.open_level_count[0])}

    def probe():
        for lock in locks.all_locks():
            found[repr(lock)] = not lock.acquire(timeout=5)
            if not found[repr(lock)]:
                lock.release()

    thread = threading.Thread(target=probe)
    thread.start()
    thread.join()
    return [name for name, is_left in found.items() if is_left]


def check_after(jitted, fn, x):
    """The next call works, and nothing is left of the one that was interrupted."""
    assert not remains(), remains()
    assert jitted.cache_info().specializations <= 1
    result, expected = jitted(x).detach().numpy(), fn(x).detach().numpy()
    np.testing.assert_allclose(result, expected, rtol=2e-5, atol=1e-5)
    assert jitted.cache_info().specializations == 1


def seconds_of(number):
    """How long a compilation takes."""
    fn, x = programs(number)
    start = time.perf_counter()
    td.jit(fn)(x)
    return time.perf_counter() - start


def interrupts(count):
    """Compile, and send this process SIGINT at a random moment of it."""
    hits = 0
    sys.unraisablehook = lambda fault: None  # what is raised in a finalizer is printed, and lost
    signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGINT))
    seconds = [min(seconds_of(number), seconds_of(number + 5)) for number in range(count, count + 5)]
    for i in range(count):
        fn, x = programs(i)
        jitted = td.jit(fn)
        is_over, limit = False, seconds[(i - count) % 5]
        try:
            signal.setitimer(signal.ITIMER_REAL, max(1e-6, random.random() * limit))
            start = time.perf_counter()
            jitted(x)
            is_over = True
            seconds[(i - count) % 5] = min(limit, time.perf_counter() - start)  # the first ones may be slow
            time.sleep(limit + 0.05)  # an interrupt within a finalizer does not come here
        except KeyboardInterrupt:
            hits += not is_over
        check_after(jitted, fn, x)
    assert hits > count / 5, f"only {hits} of {count} compilations were interrupted"
    print(f"{hits} of {count} compilations were interrupted")


class Fault:
    """Raises KeyboardInterrupt where CPython looks for signals: as a function begins, or a C function has returned.

    Args:
        number: which of these points raises; 0 for none.
        inside: the names of the functions whose points count; all functions if there are none.
    """

    def __init__(self, number, inside=()):
        self.number, self.inside, self.count = number, inside, 0

    def __call__(self, frame, event, arg):
        if event in ("call", "c_return") and (not self.inside or frame.f_code.co_name in self.inside):
            self.count += 1
            if self.count == self.number:
                sys.setprofile(None)
                raise KeyboardInterrupt


def call_with(fault, call, *args):
    sys.setprofile(fault)
    try:
        call(*args)
    except KeyboardInterrupt:
        pass
    finally:
        sys.setprofile(None)


def compile_with(fault, fn, x):
    jitted = td.jit(fn)
    call_with(fault, jitted, x)
    return jitted


def faults(count):
    """Compile, and raise KeyboardInterrupt at a random one of the points where a signal would."""
    sys.unraisablehook = lambda fault: None  # what is raised in a finalizer is printed, and lost
    totals = {}
    for i in range(count):
        fn, x = programs(i)
        if i % 5 not in totals:
            compile_with(None, fn, x)
            whole = Fault(0)
            compile_with(whole, fn, x)
            totals[i % 5] = whole.count
        check_after(compile_with(Fault(random.randint(1, totals[i % 5])), fn, x), fn, x)


def twice_written(x):
    y = x.clone()
    y.add_(1)
    y[0] = 2.0
    return y * x


@td.custom_vjp
def own_sine(x):
    return td.sin(x)


own_sine.defvjp(lambda x: (td.sin(x), x), lambda x, g: (g * td.cos(x),))


class Square(td.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        return 2 * g * ctx.saved_tensors[0]


def backward_of(f, x):
    leaf = x.clone().requires_grad_()
    f(leaf).sum().backward()
    return leaf.grad


def eager_programs():
    x = td.asarray(np.linspace(0.1, 1, 12, dtype=np.float32).reshape(3, 4))
    v = td.asarray(np.linspace(0.1, 1, 4, dtype=np.float32))

    def loss(x):
        return (td.sin(x) * x).sum()

    return {
        "grad": lambda: td.value_and_grad(loss)(x),
        "vjp": lambda: td.vjp(td.sin, x)[1](x),
        "jvp": lambda: td.jvp(td.sin, (x,), (x,)),
        "linearize": lambda: td.linearize(td.sin, x)[1](x),
        "hessian": lambda: td.hessian(loss)(v),
        "vmap": lambda: td.vmap(twice_written)(x),
        "vmap of grad": lambda: td.vmap(td.grad(loss))(x),
        "functionalize": lambda: td.functionalize(twice_written)(x),
        "checkpoint": lambda: td.grad(td.checkpoint(loss))(x),
        "scan": lambda: td.grad(lambda v: td.scan(lambda c, y: (c * y, c), v, x)[0].sum())(v),
        "while": lambda: td.vmap(lambda a: td.while_loop(lambda c: c.sum() < 10, lambda c: c * 2, a))(x),
        "cond": lambda: td.cond(v.sum() > 0, td.sin, td.cos, v),
        "eval_shape": lambda: (td.eval_shape(loss, x), x)[1],
        "custom_vjp": lambda: td.grad(lambda x: own_sine(x).sum())(x),
        "backward": lambda: backward_of(loss, x),
        "Function": lambda: backward_of(Square.apply, x),
        "no_grad": td.no_grad(lambda: td.sin(x) * x),
    }


def transforms(count):
    """Run eager transforms, and raise KeyboardInterrupt at a random one of the points where a signal would."""
    sys.unraisablehook = lambda fault: None  # what is raised in a finalizer is printed, and lost
    for name, program in eager_programs().items():
        for _ in range(3):
            expected = [leaf.tolist() for leaf in td.tree.leaves(program())]
        whole = Fault(0)
        call_with(whole, program)
        for _ in range(count):
            number = random.randint(1, whole.count)
            call_with(Fault(number), program)
            assert not remains(), (name, number, remains())
            found = [leaf.tolist() for leaf in td.tree.leaves(program())]
            assert found == expected, (name, number)


SPECIAL_METHODS = ("lt", "le", "eq", "ne", "gt", "ge", "add", "iadd", "matmul", "pow", "neg")


def methods(count):
    """Raise KeyboardInterrupt at each point of calls of special methods."""
    printed = []  # what is raised in a finalizer or where a generator is closed
    sys.unraisablehook = printed.append
    x = td.asarray(np.ones(3, np.float32))
    for name in SPECIAL_METHODS * count:
        call = getattr(operator, name)
        arguments = (x,) if name == "neg" else (x, x if name == "matmul" else 2)
        for _ in range(3):
            whole = Fault(0)
            call_with(whole, call, *arguments)
        for point in range(1, whole.count + 1):
            fault, is_raised = Fault(point), False
            printed.clear()
            try:
                sys.setprofile(fault)
                call(*arguments)
            except KeyboardInterrupt:
                is_raised = True
            finally:
                sys.setprofile(None)
            is_lost = fault.count >= point and not is_raised and not printed
            assert not is_lost, f"{name} loses the interrupt at point {point} of {whole.count}"


STORING = ("_add", "_drop", "_answer", "_cache_key")


def stores(count):
    """Raise KeyboardInterrupt at each point of the functions that store a specialization."""
    for i in range(count):
        whole = Fault(0, STORING)
        compile_with(whole, *programs(i))
        for point in range(1, whole.count + 1):
            fn, x = programs(i)
            check_after(compile_with(Fault(point, STORING), fn, x), fn, x)


def use(i):
    """Eager calls, jitted calls and new compilations, in a child."""
    x = td.asarray(np.ones(3, np.float32))
    for _ in range(40):
        assert (x + x).tolist() == [2, 2, 2]
    assert known(x).tolist() == [3, 3, 3]
    assert td.jit(lambda x: x * i + 1)(x).tolist() == [i + 1] * 3
    weight = td.asarray(np.ones(3, np.float32), requires_grad=True)
    (weight * weight).sum().backward()
    assert weight.grad.tolist() == [2, 2, 2]
    with td.Library("forked", "DEF") as library:
        library.define("f(Tensor x) -> Tensor")
        library.impl("f", lambda x: x, "CPU")
    assert not remains(), remains()
    return i


known = td.jit(lambda x: x * 3)


def compile_on(number):
    for i in range(number, 10**9, 3):
        fn, x = programs(i)
        td.jit(fn)(x)
        with td.no_grad():
            td.jit(lambda x, i=i: x + i)(x)


def start_compiling():
    for number in range(2):
        threading.Thread(target=compile_on, args=(number,), daemon=True).start()


def wait_for(child, seconds):
    """The exit status of a child; one that hangs is ended."""
    end = time.time() + seconds
    while time.time() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status
        time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    return "hangs"


def forks(count):
    """Fork while threads compile; from the first moment on, when they still import."""
    start_compiling()
    for i in range(count):
        time.sleep(random.random() * 0.05)
        child = os.fork()
        if not child:
            try:
                use(i)
                os._exit(0)
            except BaseException as fault:
                print(f"in the child: {fault!r}", flush=True)
                os._exit(1)
        status = wait_for(child, 120)
        assert status == 0, f"fork {i}: {status}"


def pools(count):
    """Pools of forked processes, made while threads compile."""
    start_compiling()
    for i in range(count):
        with multiprocessing.get_context("fork").Pool(2) as pool:
            assert pool.map_async(use, [i + 1, i + 2]).get(timeout=120) == [i + 1, i + 2]


if __name__ == "__main__":
    warnings.simplefilter("ignore", DeprecationWarning)  # of forks with threads
    random.seed(int(sys.argv[3]))
    commands = {
        "interrupts": interrupts,
        "faults": faults,
        "stores": stores,
        "transforms": transforms,
        "methods": methods,
        "forks": forks,
        "pools": pools,
    }
    commands[sys.argv[1]](int(sys.argv[2]))
    print("done", flush=True)
    sys.stdout.flush()
    os._exit(0) if sys.argv[1] in ("forks", "pools") else None
