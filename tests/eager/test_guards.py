"""Guards as blocks and decorators: of functions, generators, coroutines, in threads, tasks and contexts."""

import asyncio
import functools
import gc
import inspect

import pytest
import tandem as td
from open_guards import GUARDS, REVERSED, around, records, unchanged_state


@pytest.fixture(params=[*GUARDS, *REVERSED])
def guard(request):
    with around(request.param) as made:
        yield made


@pytest.fixture(autouse=True)
def nothing_is_left():
    with unchanged_state():
        yield


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
