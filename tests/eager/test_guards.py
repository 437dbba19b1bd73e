"""Guards as blocks and decorators: of functions, generators, coroutines, in threads, tasks and contexts."""

import asyncio
import contextvars
import functools
import gc
import importlib
import inspect
import sys
import threading

import numpy as np
import pytest
import tandem as td
from helpers import smallest_block_growth
from tandem.registry.dispatch import state as states

X = td.asarray(np.ones(3, np.float32), requires_grad=True)
PLAIN = td.asarray(np.ones((2, 2), np.float32))


def records():
    return (X * 2.0).requires_grad


def keys():
    return states.current().include, states.current().exclude


class Note(td.DispatchMode):
    def __init__(self, **options):
        super().__init__(**options)
        self.seen = []

    def __tandem_dispatch__(self, op, types, args, kwargs):
        self.seen.append(op.schema.name)
        return op(*args, **kwargs)


NOTE, NOTE_EXP = Note(), Note(ops=[td.exp])


def is_noted(mode):
    before = len(mode.seen)
    td.exp(PLAIN)
    return len(mode.seen) > before


with td.no_grad():
    SNAPSHOT = td.dispatch_state()

# A guard, and whether it is on.
GUARDS = {
    "no_grad": (td.no_grad, lambda: not records()),
    "exclude_keys": (lambda: td.exclude_keys("Autograd"), lambda: not records()),
    "include_keys": (lambda: td.include_keys("Profiler"), lambda: keys()[0] != 0),
    "force_keys": (lambda: td.force_keys(exclude=["Autograd"]), lambda: not records()),
    "snapshot": (lambda: SNAPSHOT, lambda: not records()),
    "autocast": (lambda: td.autocast("cpu"), lambda: (PLAIN @ PLAIN).dtype is td.bfloat16),
    "mode": (lambda: NOTE, lambda: is_noted(NOTE)),
    "mode with ops": (lambda: NOTE_EXP, lambda: is_noted(NOTE_EXP)),
}
INSIDE_OF = {"enable_grad": td.no_grad, "no_dispatch": lambda: NOTE}
REVERSED = {
    "enable_grad": (td.enable_grad, records),
    "no_dispatch": (td.no_dispatch, lambda: not is_noted(NOTE)),
}


@pytest.fixture(params=[*GUARDS, *REVERSED])
def guard(request):
    """A guard, and a function that says whether it is on; around it it is off."""
    if request.param in REVERSED:
        with INSIDE_OF[request.param]():
            yield REVERSED[request.param]
    else:
        yield GUARDS[request.param]


@pytest.fixture(autouse=True)
def nothing_is_left():
    before = states.current()
    yield
    assert states.current() is before or keys() == (before.include, before.exclude)


# -- decorators --------------------------------------------------------------------------------------------------------
def test_function(guard):
    make, is_on = guard
    assert make()(is_on)() and not is_on()


def test_generator_runs_each_step_inside(guard):
    make, is_on = guard

    @make()
    def steps(first):
        """doc"""
        found = [is_on()]
        sent = yield first
        found.append((sent, is_on()))
        try:
            yield "second"
        except KeyError as fault:
            found.append((type(fault), is_on()))
        yield "third"
        return found

    assert inspect.isgeneratorfunction(steps) and steps.__doc__ == "doc"
    run = steps("first")
    assert not is_on()
    assert next(run) == "first" and not is_on()
    assert run.send("sent") == "second" and not is_on()
    assert run.throw(KeyError("k")) == "third" and not is_on()
    with pytest.raises(StopIteration) as end:
        next(run)
    assert end.value.value == [True, ("sent", True), (KeyError, True)] and not is_on()


def test_generator_closes_and_fails_inside(guard):
    make, is_on = guard
    found = []

    @make()
    def steps():
        try:
            yield 1
        finally:
            found.append(is_on())

    for end in (lambda run: run.close(), lambda run: run.throw(ValueError("v")), list):
        run = steps()
        next(run)
        try:
            end(run)
        except ValueError as fault:
            assert fault.args == ("v",)
        assert not is_on()
    assert found == [True] * 3
    steps().close()  # before its first step
    run = steps()
    next(run)
    del run
    gc.collect()
    assert found == [True] * 4 and not is_on()


def test_generator_that_ignores_its_end():
    @td.no_grad()
    def stubborn():
        try:
            yield 1
        except GeneratorExit:
            yield 2

    run = stubborn()
    next(run)
    with pytest.raises(RuntimeError, match="ignored GeneratorExit"):
        run.close()
    assert records()

    @td.no_grad()
    def raises():
        yield 1
        raise StopIteration

    with pytest.raises(RuntimeError, match="StopIteration"):
        list(raises())
    assert records()


def test_coroutine_runs_each_step_inside(guard):
    make, is_on = guard
    found = []

    @make()
    async def work(value):
        found.append(is_on())
        await asyncio.sleep(0)
        found.append(is_on())
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            found.append(is_on())
            return value

    async def main():
        task = asyncio.create_task(work("result"))
        for _ in range(4):
            await asyncio.sleep(0)
            found.append(not is_on())
        task.cancel()
        return await task

    assert inspect.iscoroutinefunction(work)
    assert asyncio.run(main()) == "result" and all(found) and len(found) == 7
    with pytest.raises(ValueError):
        asyncio.run(make()(fails)())
    assert not is_on()


async def fails():
    raise ValueError


def test_coroutine_driven_by_hand_leaves_its_caller_alone():
    class Pause:
        def __await__(self):
            return (yield "paused")

    @td.no_grad
    async def work():
        before = records()
        return before, await Pause(), records()

    run = work()
    assert run.send(None) == "paused" and records()
    with pytest.raises(StopIteration) as end:
        run.send("sent")
    assert end.value.value == (False, "sent", False) and records()


def test_async_generator_runs_each_step_inside(guard):
    make, is_on = guard
    found = []

    @make()
    async def steps():
        try:
            found.append(is_on())
            sent = yield 1
            await asyncio.sleep(0)
            found.append((sent, is_on()))
            try:
                yield 2
            except KeyError:
                found.append(is_on())
            yield 3
        finally:
            await asyncio.sleep(0)
            found.append(is_on())

    async def main():
        run = steps()
        assert await run.__anext__() == 1 and not is_on()
        assert await run.asend("sent") == 2 and not is_on()
        assert await run.athrow(KeyError()) == 3 and not is_on()
        await run.aclose()
        assert not is_on()
        seen = []
        async for value in steps():
            seen.append(value)
            assert not is_on()
        return seen

    assert inspect.isasyncgenfunction(steps)
    assert asyncio.run(main()) == [1, 2, 3]
    assert found == [True, ("sent", True), True, True, True, (None, True), True]


def test_decorators_without_parentheses():
    @td.no_grad
    def off():
        return records()

    @td.enable_grad
    def on():
        return records()

    with td.no_grad():
        assert on()
    assert not off() and records()
    for wrong in (
        lambda: td.no_grad(3),
        lambda: td.enable_grad("x"),
        lambda: td.autocast("cpu")(3),
        lambda: td.no_grad(int),
    ):
        with pytest.raises(td.errors.ArgumentError, match="decorates functions"):
            wrong()


def test_partial_and_methods_are_decorated():
    def steps(self, n):
        yield n, records()

    class Model:
        run = td.no_grad()(steps)
        part = staticmethod(td.no_grad()(functools.partial(steps, None)))

    assert list(Model().run(3)) == list(Model.part(3)) == [(3, False)] and records()


def test_guards_of_a_body_stay_its_own():
    @td.no_grad()
    def steps():
        with td.enable_grad():
            yield records()
            yield records()
        yield records()

    run = steps()
    for wanted in (True, True, False):
        assert next(run) is wanted
        assert records()
        with td.no_grad():
            assert not records()


def test_nested_decorated_generators():
    @td.enable_grad()
    def inner():
        for _ in range(2):
            yield records()

    @td.no_grad()
    def outer():
        for value in inner():
            yield value, records()

    assert list(outer()) == [(True, False)] * 2 and records()


# -- threads, tasks, contexts ------------------------------------------------------------------------------------------
def in_thread(work):
    found = []
    thread = threading.Thread(target=lambda: found.append(work()))
    thread.start()
    thread.join()
    return found[0]


def test_new_thread_begins_with_the_default(guard):
    make, _ = guard
    with make():
        assert in_thread(keys) == (0, 0) and in_thread(records)


def test_contexts_carry_the_state(guard):
    make, is_on = guard
    with make():
        context = contextvars.copy_context()
        again = contextvars.copy_context()
        assert asyncio.run(asyncio.to_thread(is_on))
    assert not is_on()
    assert context.run(is_on) and in_thread(lambda: again.run(is_on))
    assert not is_on()


def test_tasks_have_the_state_of_their_maker(guard):
    make, is_on = guard
    found = []

    async def child():
        for _ in range(3):
            await asyncio.sleep(0)
            found.append(is_on())

    async def switching():
        for _ in range(3):
            with make():
                await asyncio.sleep(0)
                found.append(is_on())
            await asyncio.sleep(0)
            found.append(not is_on())

    async def main():
        with make():
            tasks = [asyncio.create_task(child()) for _ in range(20)]
        others = [asyncio.create_task(switching()) for _ in range(20)]
        await asyncio.gather(*tasks, *others)
        assert not is_on()

    asyncio.run(main())
    assert all(found) and len(found) == 180


def test_native_calls_follow_the_state():
    """What machine code looks at changes with blocks, contexts and their end, whatever their order."""
    for _ in range(100):
        X + X
    with td.no_grad():
        held = contextvars.copy_context()
        assert not (X + X).requires_grad
        assert in_thread(lambda: (X + X).requires_grad)
    assert (X + X).requires_grad and not held.run(lambda: (X + X).requires_grad)
    inner = contextvars.copy_context()
    entered = td.no_grad()
    inner.run(entered.__enter__)
    assert (X + X).requires_grad and not inner.run(lambda: (X + X).requires_grad)
    inner.run(entered.__exit__, None, None, None)
    assert inner.run(lambda: (X + X).requires_grad)


def test_jitted_calls_follow_the_state():
    f = td.jit(lambda x: x * 3.0)
    for _ in range(50):
        assert f(X).requires_grad
        with td.no_grad():
            context = contextvars.copy_context()
            assert not f(X).requires_grad
        assert not context.run(f, X).requires_grad


def test_one_guard_is_open_in_many_tasks():
    shared = td.no_grad()

    async def work(delay):
        for _ in range(5):
            with shared:
                await asyncio.sleep(delay)
                assert not records()
            assert records()

    async def main():
        await asyncio.gather(*(work(0.001 * (k % 3)) for k in range(20)))

    asyncio.run(main())


def test_block_that_ends_in_another_context_changes_nothing():
    block = td.no_grad()
    contextvars.copy_context().run(block.__enter__)
    block.__exit__(None, None, None)
    assert records()


def test_mode_is_forgotten_with_its_last_context():
    own = td.hypot.operator  # of no other test's modes
    mode = Note(ops=[td.exp, td.hypot])
    with mode:
        context = contextvars.copy_context()
    assert own.extra_keys and context.run(is_noted, mode) and not is_noted(mode)
    del context
    assert not own.extra_keys


@pytest.mark.parametrize("name", [*GUARDS, *REVERSED])
def test_references_stay_flat(name):
    make = (GUARDS | REVERSED)[name][0]

    @make()
    def step():
        return None

    @make()
    def steps():
        yield 1
        yield 2

    @make()
    async def run():
        return None

    def once():
        with make():
            step()
        list(steps())
        with pytest.raises(StopIteration):
            run().send(None)

    def many(times):
        for _ in range(times):
            once()

    many(20)
    gc.collect()
    references = sys.getrefcount(states.ACTIVE)
    growth = smallest_block_growth(lambda: many(40))
    left = sys.getrefcount(states.ACTIVE) - references
    assert left == 0
    assert growth < 40, "one block that is kept in each call is too much"


@pytest.mark.parametrize(
    "module, call",
    [
        (
            "lowering.interpreter",
            lambda x: td.jit(lambda x: td.random.poisson(td.random.key(0), 3.0, (2, 2)) + x)(x),
        ),
        ("eager.autograd.backward", lambda x: (x * x).sum().backward()),
        ("eager.layers.recording_scope", lambda x: td.grad(lambda x: (x * x).sum())(x)),
        ("eager.layers.level_stack", lambda x: td.jvp(lambda x: (x * x).sum(), (x.detach(),), (x.detach(),))),
        ("control.subgraph", lambda x: td.jit(lambda x: td.fori_loop(0, 3, lambda k, c: c * 2, x))(x)),
        ("debug.host_calls", lambda x: td.debug.callback(lambda x: None, x)),
    ],
)
def test_interrupts_at_the_start_of_a_call_restore_the_keys(module, call, monkeypatch):
    owner = importlib.import_module(f"tandem.{module}")

    def set_keys_and_fail(include, exclude):
        monkeypatch.setattr(owner, "set_keys", states.set_keys)
        states.set_keys(include, exclude | 1)
        raise KeyboardInterrupt

    monkeypatch.setattr(owner, "set_keys", set_keys_and_fail)
    x = td.asarray(np.eye(2), requires_grad=True)
    with pytest.raises(KeyboardInterrupt):
        call(x if module.endswith("backward") else x.detach())
    assert states.current_keys() == (0, 0)
    assert td.grad(lambda x: (x * x).sum())(x.detach()).tolist() == [[2.0, 0.0], [0.0, 2.0]]
