"""Guards in threads, asyncio tasks and contexts."""

import asyncio
import contextvars
import gc
import importlib
import sys
import threading

import numpy as np
import pytest
import tandem as td
from helpers import smallest_block_growth
from open_guards import GUARDS, REVERSED, Note, X, around, is_noted, keys, records, unchanged_state
from tandem.registry.dispatch import state as states


@pytest.fixture(params=[*GUARDS, *REVERSED])
def guard(request):
    with around(request.param) as made:
        yield made


@pytest.fixture(autouse=True)
def nothing_is_left():
    with unchanged_state():
        yield


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
