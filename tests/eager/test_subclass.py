"""Tensor subclasses with ``__tandem_dispatch__``: a tensor with a unit, one that logs, one that is a sum of two."""

import copy
import pickle
from typing import ClassVar

import numpy as np
import optable
import pytest
import tandem as td
from rotation import rotating


def unwrap(cls, name, tree):
    """The arguments with an attribute in place of the tensors of a class."""
    if isinstance(tree, cls):
        return getattr(tree, name)
    if isinstance(tree, tuple):
        return tuple(unwrap(cls, name, item) for item in tree)
    return tree


class UnitError(TypeError):
    pass


class Quantity(td.Tensor):
    """A tensor with a unit, as a dict from base unit to exponent."""

    def __new__(cls, value, unit, requires_grad=False):
        self = td.Tensor._make_wrapper(
            cls, value.shape, value.dtype, value.device, requires_grad=requires_grad
        )
        self.value, self.unit = value, {name: power for name, power in unit.items() if power}
        return self

    @classmethod
    def __tandem_dispatch__(cls, op, types, args, kwargs):
        units = [x.unit if isinstance(x, cls) else {} for x in args if isinstance(x, (td.Tensor, float, int))]
        name = op.schema.name
        if name in ("mul", "div", "matmul"):
            sign = -1 if name == "div" else 1
            unit = {k: units[0].get(k, 0) + sign * units[1].get(k, 0) for k in {*units[0], *units[1]}}
        elif name in ("add", "sub", "add_", "eq", "lt"):
            if units[0] != units[1]:
                raise UnitError(f"{name}: {units[0]} and {units[1]}")
            unit = units[0]
        elif name in ("exp", "log"):
            raise UnitError(f"{name} takes a number, not {units[0]}")
        else:
            unit = units[0]
        out = op(*unwrap(cls, "value", args), **kwargs)
        if op.schema.is_mutable:
            return args[0]
        return cls(out, unit)


class Logging(td.Tensor):
    """A tensor that notes what is done with it."""

    names: ClassVar[list] = []

    @staticmethod
    def __new__(cls, value, requires_grad=False):
        self = td.Tensor._make_wrapper(cls, value.shape, value.dtype, requires_grad=requires_grad)
        self.value = value
        return self

    @classmethod
    def __tandem_dispatch__(cls, op, types, args, kwargs):
        cls.names.append(op.schema.name)
        out = op(*unwrap(cls, "value", args), **unwrap_kwargs(cls, kwargs))
        if op.schema.is_mutable:
            return args[0]
        return tuple(map(cls, out)) if isinstance(out, tuple) else cls(out)


def unwrap_kwargs(cls, kwargs):
    return {name: unwrap(cls, "value", value) for name, value in kwargs.items()}


class TwoSum(td.Tensor):
    """A number as the sum of two: ``high + low``, exact in additions of small things to large ones."""

    __slots__ = ("high", "low")

    def __new__(cls, high, low=None):
        self = td.Tensor._make_wrapper(cls, high.shape, high.dtype)
        self.high, self.low = high, td.zeros_like(high) if low is None else low
        return self

    def collapse(self):
        return self.high + self.low

    @classmethod
    def __tandem_dispatch__(cls, op, types, args, kwargs):
        if op.schema.name == "add":
            x, y = (a if isinstance(a, cls) else cls(td.asarray(a)) for a in args)
            total = x.high + y.high
            part = total - x.high
            error = (x.high - (total - part)) + (y.high - part)
            return cls(total, error + x.low + y.low)
        if op.schema.is_view:
            return cls(op(args[0].high, *args[1:], **kwargs), op(args[0].low, *args[1:], **kwargs))
        return NotImplemented


METRE, SECOND = {"m": 1}, {"s": 1}


@pytest.fixture
def log():
    Logging.names.clear()
    return Logging.names


# --- what it is -------------------------------------------------------------------------------------------


def test_shape_dtype_device_and_print():
    x = Quantity(td.ones((2, 3), dtype=td.float64), METRE)
    assert (x.shape, x.dtype, x.device, x.ndim, x.size) == ((2, 3), td.float64, "cpu", 2, 6)
    assert x.stride() == (3, 1) and x.is_contiguous() and x.nbytes == 48
    assert repr(x) == str(x) == "<Quantity float64[2,3]>"
    assert repr(Logging(td.ones(2), requires_grad=True)) == "<Logging float32[2], requires_grad=True>"
    assert isinstance(x, td.Tensor) and not x.requires_grad and x.is_leaf


def test_a_device_that_is_not_there():
    class Anywhere(Logging):
        def __new__(cls, shape):
            return td.Tensor._make_wrapper(cls, shape, td.float32, "cuda:1")

    assert Anywhere((3,)).device == "cuda:1"


@pytest.mark.parametrize(
    "ask",
    [
        lambda x: x.numpy(),
        lambda x: x.item(0),
        lambda x: x.tolist(),
        float,
        bool,
        np.asarray,
        copy.copy,
        pickle.dumps,
    ],
)
def test_subclass_memory_is_not_accessible(ask):
    with pytest.raises(NotImplementedError, match="a Quantity has no memory of its own"):
        ask(Quantity(td.ones(1), METRE))


def test_bad_classes():
    class Plain(td.Tensor):
        pass

    with pytest.raises(TypeError, match="needs @classmethod def __tandem_dispatch__"):
        td.Tensor._make_wrapper(Plain, (2,))
    with pytest.raises(TypeError, match="derived from Tensor"):
        td.Tensor._make_wrapper(int, (2,))
    with pytest.raises(TypeError, match="derived from Tensor"):
        td.Tensor._make_wrapper(td.Tensor, (2,))
    with pytest.raises(TypeError, match=r"td.asarray\(data\)"):
        Plain()
    with pytest.raises(ValueError, match="not negative"):
        td.Tensor._make_wrapper(Logging, (-1,))
    with pytest.raises(TypeError, match="cannot require a gradient"):
        td.Tensor._make_wrapper(Logging, (1,), td.int32, requires_grad=True)


# --- a unit -----------------------------------------------------------------------------------------------


def test_units_are_followed():
    way, time = Quantity(td.asarray([6.0, 9.0]), METRE), Quantity(td.asarray([2.0, 3.0]), SECOND)
    speed = way / time
    assert speed.unit == {"m": 1, "s": -1} and speed.value.tolist() == [3.0, 3.0]
    assert (speed * time).unit == METRE
    assert (2 * way).unit == METRE and (2 * way)[0].value.item() == 12.0
    assert (way @ way).unit == {"m": 2}
    assert way.sum().unit == METRE
    with pytest.raises(UnitError, match="add"):
        way + time
    with pytest.raises(UnitError, match="add"):
        way + 1
    with pytest.raises(UnitError, match="exp"):
        td.exp(way)
    way += way
    assert way.unit == METRE and way.value.tolist() == [12.0, 18.0]


# --- a log ------------------------------------------------------------------------------------------------


def test_methods_dunders_and_indexing_reach_the_class(log):
    x = Logging(td.ones((2, 2)))
    x + x, -x, 1 - x, x @ x, x[0], x.reshape(4), x.mT, x.sum(0), x.astype(td.float64), td.concat([x, x])
    x += 1
    x[0] = 5.0
    assert x.value.tolist() == [[5.0, 5.0], [2.0, 2.0]]
    assert log == ("add neg sub matmul basic_index reshape permute sum cast concat add_ basic_put_".split())


def test_composites_are_dispatched_as_their_parts(log):
    td.softmax(Logging(td.ones(2)))
    plain = list(log)
    log.clear()
    td.softmax(Logging(td.ones(2), requires_grad=True))
    assert log == plain == ["max", "stop_gradient", "sub", "exp", "sum", "div"]


def test_backward(log):
    x = Logging(td.asarray([1.0, 2.0]), requires_grad=True)
    w = td.asarray([0.5, 0.25]).requires_grad_()
    y = td.tanh(x * w)
    assert type(y) is Logging and y.requires_grad and not y.is_leaf
    y.sum().backward()
    slope = 1 - np.tanh([0.5, 0.5]) ** 2
    assert type(x.grad) is Logging and type(w.grad) is Logging
    np.testing.assert_allclose(x.grad.value.numpy(), slope * [0.5, 0.25], rtol=1e-4)
    np.testing.assert_allclose(w.grad.value.numpy(), slope * [1.0, 2.0], rtol=1e-4)
    again = Logging(td.ones(2)).requires_grad_()
    with td.no_grad():
        assert not (again * 2).requires_grad
    assert not (again.detach() * 2).requires_grad and type(again.detach()) is Logging


def test_a_gradient_of_what_is_inside():
    value = td.asarray([1.0, 2.0]).requires_grad_()
    x = Logging(value)
    (x * x).sum().value.backward()
    assert value.grad.tolist() == [2.0, 4.0]

    def loss(value):
        x = Quantity(value, METRE)
        return (x * x).sum().value

    assert td.grad(loss)(td.asarray([1.0, 2.0])).tolist() == [2.0, 4.0]


def test_write_to_residual_is_detected():
    x = Logging(td.ones(2), requires_grad=True)
    y = x * 2
    z = td.exp(y)
    other = y * y
    y += 1
    with pytest.raises(RuntimeError, match="written in place"):
        other.sum().backward()
    z.sum().backward()


def test_levels_over_a_subclass(log):
    x = Logging(td.asarray([1.0, 2.0]))
    found = td.grad(lambda x: (x * x * x).sum())(x)
    assert type(found) is Logging and found.value.tolist() == [3.0, 12.0]
    second = td.grad(lambda x: td.grad(lambda x: (x * x * x).sum())(x).sum())(x)
    assert second.value.tolist() == [6.0, 12.0]


def test_vmap_over_a_subclass(log):
    x = Logging(td.asarray([[1.0, 2.0], [3.0, 4.0]]))
    found = td.vmap(lambda row: (row * row).sum())(x)
    assert type(found) is Logging and found.value.tolist() == [5.0, 25.0]


def test_autocast_over_a_subclass(log):
    x = Logging(td.ones((2, 2)))
    with td.autocast("cpu"):
        assert (x @ x).dtype is td.bfloat16
    assert log == ["cast", "cast", "matmul"]


def test_modes_see_a_subclass(log):
    seen = []

    class Look(td.DispatchMode):
        def __tandem_dispatch__(self, op, types, args, kwargs):
            seen.append((op.schema.name, types))
            return op(*args, **kwargs)

    x = Logging(td.ones(2))
    with Look(), Look(below="Autograd"):
        x + 1
    # what the class calls below autograd is seen there as well
    assert seen == [("add", (Logging,)), ("add", (Logging,))] + [("add", ())] * (len(seen) - 2)
    with td.no_dispatch(), pytest.raises(NotImplementedError, match="no memory"):
        x + 1


# --- every operator of the table --------------------------------------------------------------------------


class Through(td.Tensor):
    """Hands every call on."""

    def __new__(cls, value):
        self = td.Tensor._make_wrapper(cls, value.shape, value.dtype)
        self.value = value
        return self

    @classmethod
    def __tandem_dispatch__(cls, op, types, args, kwargs):
        out = op(*unwrap(cls, "value", args), **unwrap_kwargs(cls, kwargs))
        return tuple(map(cls, out)) if isinstance(out, tuple) else cls(out)


class Pass(td.DispatchMode):
    """Counts calls and hands them on."""

    count = 0

    def __tandem_dispatch__(self, op, types, args, kwargs):
        self.count += 1
        return op(*args, **kwargs)


TABLE = optable.table()


@rotating
@pytest.mark.parametrize("name", TABLE)
@td.exclude_keys("Profiler")  # all by the Python dispatcher
def test_through_a_subclass_and_through_modes(name):
    op = TABLE[name]
    for dtype, sample in optable.rows(op):
        args, kwargs = optable.to_tensors(optable.arrays_of(sample, dtype, optable.generator(op, dtype)))
        try:
            wanted = op(*args, **kwargs)
        except td.errors.TandemError as fault:
            with pytest.raises(type(fault)), Pass(), Pass(below="Autograd"):
                op(*args, **kwargs)
            continue
        with Pass() as high, Pass(below="Autograd"):
            same(op(*args, **kwargs), wanted)
        assert high.count == 1
        if dtype in (td.float32, td.int64):
            wrapped = optable.replace((args, kwargs), td.Tensor, Through)
            same(unwrap(Through, "value", op(*wrapped[0], **wrapped[1])), wanted)


def same(found, wanted):
    assert type(found) is type(wanted)
    for one, two in zip(*((x if isinstance(x, tuple) else (x,)) for x in (found, wanted)), strict=True):
        assert one.dtype is two.dtype and one.shape == two.shape
        assert one._array.tobytes() == two._array.tobytes()


# --- several classes --------------------------------------------------------------------------------------


def test_a_sum_of_two():
    x = TwoSum(td.asarray([1e8, 1.0]))
    for _ in range(8):
        x = x + 1.0
    assert x.collapse().tolist() == [100000008.0, 9.0]
    assert x[0].collapse().tolist() == 100000008.0
    with pytest.raises(TypeError, match=r"td::exp.*TwoSum returned NotImplemented"):
        td.exp(x)


def test_derived_classes_are_asked_first():
    order = []

    class Base(Logging):
        @classmethod
        def __tandem_dispatch__(cls, op, types, args, kwargs):
            order.append((cls.__name__, [kind.__name__ for kind in types]))
            return NotImplemented

    class Derived(Base):
        pass

    x, y = Base(td.ones(2)), Derived(td.ones(2))
    with pytest.raises(TypeError, match="of Derived, Base returned NotImplemented"):
        x + y
    assert order == [("Derived", ["Derived", "Base"]), ("Base", ["Derived", "Base"])]


def test_a_class_declines_and_another_answers():
    class Shy(Logging):
        @classmethod
        def __tandem_dispatch__(cls, op, types, args, kwargs):
            return NotImplemented

    class Bold(Logging):
        @classmethod
        def __tandem_dispatch__(cls, op, types, args, kwargs):
            return op(*(x.value if isinstance(x, Logging) else x for x in args), **kwargs)

    assert (Shy(td.ones(2)) + Bold(td.ones(2))).tolist() == [2.0, 2.0]


# --- jit --------------------------------------------------------------------------------------------------


def test_jit_does_not_take_one_as_an_argument():
    with pytest.raises(NotImplementedError, match="called with a Logging"):
        td.jit(lambda x: x + 1)(Logging(td.ones(2)))


def test_jit_traces_what_the_class_does():
    @td.jit
    def f(x):
        return (Quantity(x, METRE) * 2).value

    assert f(td.ones(2)).tolist() == [2.0, 2.0]
    held = Quantity(td.ones(2), METRE)
    g = td.jit(lambda x: (held * x).value)
    assert g(td.ones(2)).tolist() == [1.0, 1.0]
