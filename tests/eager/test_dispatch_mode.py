"""``DispatchMode``: intercepted calls, stacks of modes, and modes below autograd.

Also interest in a few operators, jitted functions, and three modes to use.
"""

import asyncio
import threading
import time

import pytest
import tandem as td
from mode_log import Log, check_no_mode


class FlopCounter(td.DispatchMode):
    """Counts the floating-point operations of matrix products and of what works element by element."""

    below = "Autograd"

    def __init__(self):
        super().__init__()
        self.total = 0

    def __tandem_dispatch__(self, op, types, args, kwargs):
        out = op(*args, **kwargs)
        if op.schema.name == "matmul":
            self.total += 2 * out.size * args[0].shape[-1]
        elif op.decl is not None and op.decl.is_elementwise:
            self.total += out.size
        return out


class NanChecker(td.DispatchMode):
    """Raises where the first NaN comes into being."""

    below = "Autograd"

    def __tandem_dispatch__(self, op, types, args, kwargs):
        out = op(*args, **kwargs)
        for item in out if isinstance(out, tuple) else (out,):
            if isinstance(item, td.Tensor) and item.dtype.is_floating and bool(td.any(td.isnan(item))):
                raise FloatingPointError(f"{op.name} gave NaN")
        return out


@pytest.fixture(autouse=True)
def nothing_left():
    yield
    check_no_mode()


def ones(*shape):
    return td.ones(shape)


# --- what it sees -----------------------------------------------------------------------------------------


def test_sees_what_the_user_calls():
    x = ones(3)
    with Log() as log:
        x + 1
        2 - x
        td.neg(x)
        x[0]
        x[1:] = 5.0
        x += 1
        x.sum()
        x.mean()
        td.softmax(x)
        td.zeros((2, 2))
        td.random.uniform(td.random.key(0), (2,))
        td.concat([x, x])
        x == x  # noqa: B015
        td.asarray(1.0).item()
    assert log.names == (
        "add sub neg basic_index basic_put_ add_ sum mean softmax zeros random_key random_uniform concat eq".split()
    )
    x + 1
    assert log.names[-1] == "eq"


def test_arguments_are_those_of_the_schema():
    seen = []

    class Look(td.DispatchMode):
        def __tandem_dispatch__(self, op, types, args, kwargs):
            seen.append((op, types, args, kwargs))
            return op(*args, **kwargs)

    x = ones(2, 2)
    with Look():
        x.sum(1)
    assert seen == [(td.sum.operator, (), (x, (1,)), {"dtype": None, "keepdims": False})]


def test_may_change_arguments_and_results_or_not_call():
    class Swap(td.DispatchMode):
        def __tandem_dispatch__(self, op, types, args, kwargs):
            if op.schema.name == "add":
                return td.sub(*args)
            if op.schema.name == "exp":
                return nothing
            return op(*args, **kwargs) * 10

    x, nothing = ones(1), td.zeros(0)
    with Swap():
        assert (x + 3).tolist() == [-2.0]
        assert td.exp(x) is nothing
        assert (x * 3).tolist() == [30.0]
    assert (ones(1) + 3).tolist() == [4.0]


def test_the_default_handler_passes_calls_on():
    with td.DispatchMode():
        assert (ones(1) + 1).tolist() == [2.0]


def test_gradients_are_recorded_through_a_mode():
    w = ones(3).requires_grad_()
    with Log() as log:
        (w * w).sum().backward()
    assert w.grad.tolist() == [2.0] * 3
    assert log.names[:2] == ["mul", "sum"]
    with Log():
        assert td.grad(lambda v: (v * v).sum())(ones(2)).tolist() == [2.0, 2.0]


# --- stacks -----------------------------------------------------------------------------------------------


def test_nested_modes_run_from_the_inside_out():
    order = []

    class Named(td.DispatchMode):
        def __init__(self, name):
            super().__init__()
            self.name = name

        def __tandem_dispatch__(self, op, types, args, kwargs):
            order.append((self.name, op.schema.name))
            if self.name == "inner":
                td.exp(args[0])  # the outer one sees what the handler calls
            return op(*args, **kwargs)

    x = ones(1)
    with Named("outer"), Named("inner"):
        x + 1
    x + 1
    assert order == [("inner", "add"), ("outer", "exp"), ("outer", "add")]


def test_the_same_mode_twice_sees_a_call_twice():
    log = Log()
    x = ones(1)
    with log:
        with log:
            x + 1
        x * 1
    assert log.names == ["add", "add", "mul"]


def test_an_exception_leaves_nothing_on():
    x = ones(1)

    class Fault(td.DispatchMode):
        def __tandem_dispatch__(self, op, types, args, kwargs):
            raise ZeroDivisionError

    log = Log()
    with log:
        with pytest.raises(ZeroDivisionError), Fault():
            x + 1
        with pytest.raises(ZeroDivisionError), Fault(ops=["add"]):
            x + 1
        x * 1
        with Fault():
            for _ in range(2):  # the fault of a handler leaves the mode on
                with pytest.raises(ZeroDivisionError):
                    x * 1
    assert log.names == ["mul"]
    assert (x + 1).tolist() == [2.0]


def test_a_handler_may_open_a_mode():
    inner = Log()

    class Open(td.DispatchMode):
        def __tandem_dispatch__(self, op, types, args, kwargs):
            with inner:
                return op(*args, **kwargs)

    x = ones(1)
    with Open():
        x + 1
        x * 1
    assert inner.names == ["add", "mul"]


def test_modes_closed_in_another_order():
    one, two, x = Log(), Log(), ones(1)

    def generator():
        with one:
            yield
            x + 1

    running = generator()
    next(running)
    two.__enter__()
    assert list(running) == []  # `one`, the outer one, is closed first
    assert one.names == ["add"] and two.names == ["add"]
    x * 1
    two.__exit__(None, None, None)
    x - 1
    assert one.names == ["add"] and two.names == ["add", "mul"]


def test_coroutines_take_turns():
    x = ones(1)

    async def work(log):
        for _ in range(3):
            with log:
                x + 1
            await asyncio.sleep(0)

    async def main():
        logs = [Log(), Log()]
        await asyncio.gather(*map(work, logs))
        return logs

    assert [log.names for log in asyncio.run(main())] == [["add"] * 3] * 2


def test_is_of_one_thread():
    x, log = ones(1), Log(ops=["add"])
    with log, Log() as every:
        thread = threading.Thread(target=lambda: x + 1)
        thread.start()
        thread.join()
    assert log.names == every.names == []


def test_no_dispatch():
    x = ones(1)
    with Log() as log, Log(ops=["mul"], below="Autograd") as below:
        x + 1
        with td.no_dispatch():
            x * 1
            with Log() as inner:
                x * 1
        x * 1
    assert log.names == ["add", "mul"] and below.names == ["mul"] and inner.names == []


# --- modes to use -----------------------------------------------------------------------------------------


def test_a_counter_of_operations():
    x, w = ones(4, 3), ones(3, 5).requires_grad_()
    with FlopCounter() as counter:
        loss = td.relu(x @ w).sum()
    assert counter.total == 2 * 4 * 3 * 5 + 4 * 5
    with counter:
        loss.backward()
    assert counter.total > 2 * (2 * 4 * 3 * 5)


def test_a_checker_of_nan():
    x = td.asarray([1.0, -1.0])
    with NanChecker():
        td.sqrt(td.abs(x))
        with pytest.raises(FloatingPointError, match="td::log gave NaN"):
            td.exp(td.log(x))


def test_many_threads_open_and_close_modes():
    x, faults = ones(2), []

    def work():
        try:
            for _ in range(50):
                with Log(ops=["exp"]) as log:
                    td.exp(x), td.cos(x)
                assert log.names == ["exp"]
                td.exp(x)
        except Exception as fault:
            faults.append(fault)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults
    # A mode that ends while another thread holds the registry's lock gives its key back on a thread of its own.
    end = time.monotonic() + 30
    while td.exp.operator.extra_keys and time.monotonic() < end:
        time.sleep(0.001)
    assert td.exp.operator.extra_keys == 0
