"""Slots of the type Tensor: operators, truth, numbers, rows and iteration are those of the special methods."""

import gc
import itertools
import operator
import sys
import weakref
from fractions import Fraction

import numpy as np
import pytest
import tandem as td
from helpers import smallest_block_growth
from kernel_harness import needs_native
from rotation import share_each_commit
from tandem import config
from tandem.backends.cpu import fastpath
from tandem.eager.tensor.tensor import Tensor
from tandem.registry import native_type

OPERATORS = "add sub mul mod lshift rshift and_ xor or_ floordiv truediv matmul".split()
BINARY = [getattr(operator, name) for name in OPERATORS]
INPLACE = [getattr(operator, f"i{name}".rstrip("_")) for name in OPERATORS if name != "matmul"]
UNARY = [operator.neg, operator.pos, abs, operator.invert]
COMPARISONS = [operator.lt, operator.le, operator.eq, operator.ne, operator.gt, operator.ge]


@pytest.fixture(autouse=True)
def hot():
    with config.override(hot_calls=1, hot_composites=1):
        x, k = td.asarray([1.0, 2.0]), td.asarray([1, 2])
        for _ in range(3):
            for function in [*BINARY[:2], *COMPARISONS]:
                function(x, x)
            x[0], -x, bool(x[0]), int(x[0]), float(x[0]), list(x), k << k
        yield


class Left:
    """A class with its own methods for tensors, some of which leave the tensor to itself."""

    def __add__(self, other):
        return "left"

    def __radd__(self, other):
        return "right"

    def __lt__(self, other):
        return "less"

    def __gt__(self, other):
        return "greater"


class Plain(td.Tensor):
    """A subclass without methods of its own."""


class Counted(td.Tensor):
    """A subclass with methods of its own."""

    def __add__(self, other):
        return "add"

    def __radd__(self, other):
        return "radd"

    def __lt__(self, other):
        return "lt"

    def __gt__(self, other):
        return "gt"

    def __getitem__(self, key):
        return "item"

    def __bool__(self):
        return False

    def __float__(self):
        return 0.5

    def __int__(self):
        return 7

    def __iter__(self):
        return iter("rows")

    def __neg__(self):
        return "neg"

    def __iadd__(self, other):
        return "iadd"


def describe(call):
    with np.errstate(all="ignore"):
        try:
            result = call()
        except Exception as error:
            return type(error), str(error)
    if isinstance(result, td.Tensor) and result.device != "meta":
        return type(result), result.dtype, result.shape, result.numpy().tobytes()
    return type(result), str(result)


def as_class(cls, x):
    y = Tensor.__new__(cls)
    y._array, y._keys, y._meta, y._storage = x._array, x._keys, None, None
    return y


OTHERS = {
    "element": lambda dtype: td.asarray(np.array(3, dtype)),
    "row": lambda dtype: td.asarray(np.arange(3).astype(dtype)),
    "wrong shape": lambda dtype: td.asarray(np.ones(2, dtype)),
    "int": lambda dtype: 2,
    "bool": lambda dtype: True,
    "float": lambda dtype: 0.5,
    "array": lambda dtype: np.ones(3, dtype),
    "NumPy's scalar": lambda dtype: dtype(2),
    "fraction": lambda dtype: Fraction(1, 2),
    "list": lambda dtype: [1, 2, 3],
    "string": lambda dtype: "a",
    "none": lambda dtype: None,
    "own methods": lambda dtype: Left(),
    "subclass": lambda dtype: as_class(Plain, td.asarray(np.arange(3).astype(dtype))),
    "own subclass": lambda dtype: as_class(Counted, td.asarray(np.arange(3).astype(dtype))),
    "weak scalar": lambda dtype: td.sqrt(4.0),
    "meta": lambda dtype: td.ones(3, device="meta"),
    "recorded": lambda dtype: td.ones(3).requires_grad_().detach(),
}


def through_cpython(function, *operands):
    """The result of an operator by CPython's slots, which an assignment of the method puts back."""
    names = [f"__{name}__" for name in ("add", "lt", "neg", "iadd", "lshift", "and", "mod")]
    names += [f"__{kind}{name.rstrip('_')}__" for name in OPERATORS for kind in ("", "i")]
    names += ["__pos__", "__abs__", "__invert__", "__eq__"]
    table = [native_type.find_slot(Tensor, 96, at) for at in range(0, 288, 8)]
    table.append(native_type.find_slot(Tensor, 0, native_type.TP_RICHCOMPARE))
    before = [slot.value for slot in table]
    try:
        for name in names:
            if name in vars(Tensor):
                setattr(Tensor, name, vars(Tensor)[name])
        return describe(lambda: function(*operands))
    finally:
        for slot, value in zip(table, before, strict=True):
            slot.value = value


@needs_native
@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
@pytest.mark.parametrize("dtype", share_each_commit([np.float64, np.int64, np.bool_], 3))
def test_operators_equal_those_of_cpythons_slots(other, dtype):
    for shape in ((), (3,)):
        x = td.asarray(np.full(shape, 5).astype(dtype))
        for function in [*BINARY, *COMPARISONS]:
            for pair in ((x, other(dtype)), (other(dtype), x)):
                expected = through_cpython(function, *pair)
                for _ in range(3):
                    assert describe(lambda f=function, p=pair: f(*p)) == expected, function


@needs_native
@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_inplace_operators_equal_those_of_cpythons_slots(other):
    for dtype, function in itertools.product((np.float64, np.int64), INPLACE):
        expected = through_cpython(function, td.asarray(np.full(3, 5, dtype)), other(dtype))
        for _ in range(3):
            pair = td.asarray(np.full(3, 5, dtype)), other(dtype)
            assert describe(lambda f=function, p=pair: f(*p)) == expected, function


@needs_native
def test_unary_operators_equal_those_of_cpythons_slots():
    for x in (td.asarray([-1.5, 2.0]), td.asarray(-3), td.asarray([True]), td.ones(2).requires_grad_()):
        for function in UNARY:
            expected = through_cpython(function, x.detach())
            assert all(describe(lambda f=function, x=x: f(x).detach()) == expected for _ in range(3))


@needs_native
def test_slots_are_installed():
    import tandem.backends.cpu.fastpath.glue.special_methods as special_methods

    runtime = fastpath.stubs().runtime
    for slot in special_methods.SLOTS:
        assert special_methods._find_python_slot(slot)
        if slot.entry in ("slot_add", "slot_sub", "slot_neg", "slot_compare", "slot_subscript", "slot_item"):
            assert slot.find(Tensor).value == runtime.entry(slot.entry)
        assert slot.find(Plain).value != runtime.entry(slot.entry)


def test_methods_of_subclasses_are_called():
    x, y = td.asarray(2.0), as_class(Counted, td.asarray([1.0, 2.0]))
    assert (y + x, x + y, 1 + y, y < x, x < y, -y, y[0]) == ("add", "radd", "radd", "lt", "gt", "neg", "item")
    assert (bool(y), float(y), int(y), list(y)) == (False, 0.5, 7, list("rows"))
    y += 1
    assert y == "iadd"

    class Late(Counted):
        """Defined after the slots of Tensor are native."""

    assert x + as_class(Late, td.ones(2)) == "radd"


def test_assigned_methods_are_called(monkeypatch):
    x = td.asarray([1.0, 2.0])
    for name, call in {
        "__add__": lambda: x + x,
        "__radd__": lambda: 1 + x,
        "__eq__": lambda: x == x,
        "__neg__": lambda: -x,
        "__getitem__": lambda: x[0],
        "__iter__": lambda: iter(x),
    }.items():
        before = describe(call)
        for result in (["first"], ["second"]):
            with monkeypatch.context() as patch:
                value = iter(result) if name == "__iter__" else result
                patch.setattr(Tensor, name, lambda *args, value=value: value)
                assert call() is value
        assert describe(call)[0] is before[0]
    with monkeypatch.context() as patch:
        patch.setattr(Tensor, "__bool__", lambda self: False)
        patch.setattr(Tensor, "__float__", lambda self: 0.25)
        assert not td.asarray(1.0) and float(td.asarray(1.0)) == 0.25
    assert td.asarray(1.0) and float(td.asarray(1.0)) == 1.0


def test_modes_and_kernels_see_operators():
    class Log(td.DispatchMode):
        def __tandem_dispatch__(self, op, types, args, kwargs):
            names.append(op.schema.name)
            return op(*args, **kwargs)

    x, names = td.asarray([1.0, 2.0]), []
    with Log():
        x[0] + x[1], x < x, -x
    assert {"add", "lt", "neg", "basic_index"} <= {name.removesuffix("_") for name in names}
    before = len(names)
    with Log():
        list(x)
    assert len(names) > before
    with td.Library("td", "IMPL") as library:
        library.impl("add.Tensor", lambda x, y: td.asarray(7.0), "CPU")
        assert (x + x).item() == 7
    assert (x + x).tolist() == [2, 4]


def test_truth_and_numbers_of_one_element():
    for dtype in (td.float16, td.bfloat16, td.float32, td.int8, td.uint64, td.bool_):
        for value in (0, 1):
            x = td.full((1, 1), value, dtype=dtype)
            assert (bool(x), int(x), float(x)) == (bool(value), value, float(value))
            assert (bool(x[0, 0]), not x[0][0]) == (bool(value), not value)
    assert td.asarray(float("nan")) and not td.asarray(-0.0)
    assert td.asarray(1j) and td.asarray(3.5).requires_grad_()
    with pytest.raises(ValueError, match="ambiguous"):
        bool(td.ones(2))
    with pytest.raises(ValueError, match="ambiguous"):
        bool(td.ones(0))
    for convert in (int, float):
        with pytest.raises(td.errors.ArgumentError):
            convert(td.ones(2))
        with pytest.raises(td.errors.UnsupportedError):
            convert(td.ones((), device="meta"))
    with pytest.raises(OverflowError):
        int(td.asarray(float("inf")))


def test_iteration_selects_rows():
    for shape in ((0,), (1,), (5,), (300,), (2, 3), (3, 0), (2, 3, 4)):
        array = np.arange(np.prod(shape)).reshape(shape).astype(np.float32)
        x = td.asarray(array)
        for one in (x, x[::-1], x.T.contiguous().T):
            rows = [*one]
            assert len(rows) == shape[0]
            assert all(row.tolist() == one.tolist()[i] for i, row in enumerate(rows))
            assert all(row.storage() is one.storage() for row in rows)
    x = td.asarray([1.0, 2.0])
    a, b = x
    assert (a.item(), b.item()) == (1, 2) and [v.item() for v in reversed(x)] == [2, 1]
    for row in x:
        row += 1
    assert x.tolist() == [2, 3] and 3.0 in x
    for wrong in (td.asarray(1.0), td.asarray(1.0).requires_grad_()):
        with pytest.raises(td.errors.ArgumentError, match="iteration over a 0-d tensor"):
            iter(wrong)


def test_iteration_does_not_depend_on_other_methods(monkeypatch):
    x = td.arange(3.0)
    for _ in range(300):
        list(x)
    with monkeypatch.context() as patch:
        patch.setattr(td.Tensor, "__getitem__", lambda self, key: "never ends")
        assert [v.item() for v in itertools.islice(iter(x), 9)] == [0.0, 1.0, 2.0]
        assert [v.item() for v in itertools.islice(x.__iter__(), 9)] == [0.0, 1.0, 2.0]
    assert [v.item() for v in x] == [0.0, 1.0, 2.0]


def test_iteration_is_recorded_and_traced():
    p = td.asarray([1.0, 2.0, 3.0]).requires_grad_()
    sum((v * v for v in p), start=td.asarray(0.0)).backward()
    assert p.grad.tolist() == [2, 4, 6]
    with td.no_grad():
        assert not any(v.requires_grad for v in p)

    def total(x):
        s = 0.0
        for v in x:
            s = s + v * v
        return s

    x = td.asarray([1.0, 2.0, 3.0])
    assert td.jit(total)(x).item() == 14
    assert td.grad(total)(x).tolist() == [2, 4, 6]
    assert td.vmap(total)(td.ones((2, 3))).tolist() == [3, 3]


def test_errors_in_an_iteration_are_raised(monkeypatch):
    x = td.asarray([1.0, 2.0, 3.0])
    rows = iter(x)
    assert next(rows).item() == 1
    with pytest.raises(td.errors.OutOfBoundsError):
        x[3]
    assert [v.item() for v in rows] == [2, 3] and next(rows, None) is None


def test_elements_have_memory_of_their_own():
    x = td.asarray(np.arange(100.0))
    elements = [x[i] + i for i in range(100)]  # more than are kept
    views = list(x)
    for _ in range(3):
        del elements[::2]
        elements += [x[i] * 3 for i in range(100)]
    assert [float(v) for v in elements[-100:]] == [3.0 * i for i in range(100)]
    assert [float(v) for v in views] == list(range(100))
    x[7] = -1
    assert float(views[7]) == -1


@pytest.mark.parametrize(
    "export", [lambda v: v.numpy(), memoryview, lambda v: v.numpy()[None], np.from_dlpack, np.asarray]
)
def test_exported_elements_are_not_taken_again(export):
    x = td.asarray(np.arange(4.0))
    for make in (lambda: x[1] + 1, lambda: x[2]):
        for _ in range(100):
            make()
        kept = [export(make()) for _ in range(50)]
        for _ in range(100):
            x[0] - 5, x[3]
        assert all(np.asarray(one).sum() == 2 for one in kept)


def test_elements_release_what_they_refer_to():
    for _ in range(100):
        x = td.asarray(np.arange(4.0))
        element, total = x[1], x[1] + x[2]
        references = [weakref.ref(one) for one in (x, x._array, element, total)]
        del x
        assert references[1]() is not None and float(element) == 1
        del element, total
        gc.collect()
        assert all(reference() is None for reference in references)


def test_new_elements_have_nothing_of_destroyed_ones():
    x = td.asarray(np.arange(4.0))
    for _ in range(100):
        y = (x[1] * 2).requires_grad_()
        (y * y).backward()
        assert y.grad.item() == 4
        del y
        z = x[2] + 1
        assert (z.grad, z.requires_grad, z.is_leaf) == (None, False, True)
        assert z.numpy().flags.writeable and x[1].numpy().flags.writeable
    locked = np.arange(4.0)
    locked.setflags(write=False)
    fixed = td.asarray(locked, copy=False)
    assert not fixed[1].numpy().flags.writeable and x[1].numpy().flags.writeable
    odd = td.asarray(np.frombuffer(b"\0" * 17, np.uint8)[1:].view(np.float64), copy=False)
    assert not odd[0].numpy().flags.aligned and x[1].numpy().flags.aligned


def test_objects_and_references_do_not_grow():
    x, k = td.asarray(np.arange(6.0)), td.asarray(np.arange(6))
    array = np.ones(6)

    def run(count):
        for _ in range(count):
            x[1] * x[2] - x[3], float(x[0] + x[1]), x[0] > x[1], -x[0], k[1] << k[2]
            s = 0.0
            for v in x:
                s += v
            [*x], bool(x[1] > 0), int(k[2]), x + array, x[0] + 1, 1 - x[0]
            for wrong in (lambda: x + "a", lambda: x[7], lambda: bool(x), lambda: iter(x[0])):
                with pytest.raises((TypeError, ValueError, IndexError)):
                    wrong()

    run(200)
    watched = [Tensor, x, x._array, x.storage(), k, k._array, x.dtype.np, x._keys, None, True, NotImplemented]
    before = [sys.getrefcount(one) for one in watched]
    assert smallest_block_growth(lambda: run(2000)) < 100
    drift = [sys.getrefcount(one) - old for one, old in zip(watched, before, strict=True)]
    assert all(abs(one) <= 200 for one in drift), drift


def test_divmod_and_round_equal_those_of_numpy():
    k, x = td.asarray(np.array([7, -7, 5])), td.asarray(np.array([2.345, -0.5, 1.5]))
    for _ in range(3):
        for one, other in ((k, 3), (k, -3), (20, k), (k[0], k[2]), (x, 2.0), (3, x)):
            arrays = [v.numpy() if isinstance(v, td.Tensor) else v for v in (one, other)]
            assert [v.tolist() for v in divmod(one, other)] == [v.tolist() for v in divmod(*arrays)]
        assert round(x).tolist() == [2, 0, 2] and round(x, 1).tolist() == np.round(x.numpy(), 1).tolist()
        for pair in ((k, "a"), ("a", k), (k, None)):
            with pytest.raises(TypeError):
                divmod(*pair)


SPECIAL = [0.0, -0.0, 1.0, -1.5, 3.0, 1e-310, -1e308, 65504.0, float("inf"), -float("inf"), float("nan")]


@pytest.mark.parametrize(
    "dtype", ["float16", "bfloat16", "float32", "float64", "int8", "int64", "uint16", "bool"]
)
def test_elements_have_the_bits_of_rows(dtype):
    with np.errstate(all="ignore"):
        values = np.array(SPECIAL if "float" in dtype else [0, 1, 2, 5, 7, 100]).astype(getattr(td, dtype).np)
    x, y = (td.asarray(part.copy()) for part in np.meshgrid(values, values))
    x, y = x.reshape(-1), y.reshape(-1)
    pairs = [
        operator.add,
        operator.mul,
        operator.truediv,
        operator.floordiv,
        operator.mod,
        td.maximum,
        td.copysign,
    ]
    pairs += [*COMPARISONS, td.logical_and, td.hypot, td.arctan2]
    ones = [td.sqrt, td.abs, td.sign, td.isfinite, td.floor, td.square, td.exp, td.logical_not]
    for function in [*pairs, *((lambda a, b, f=f: f(a)) for f in ones)]:
        try:
            rows = function(x, y).numpy()
        except td.errors.TandemError:
            continue
        elements = np.stack([function(a, b).numpy() for a, b in zip(x, y)])
        nan = rows != rows
        assert rows.dtype == elements.dtype and np.array_equal(nan, elements != elements)
        assert rows[~nan].tobytes() == elements[~nan].tobytes(), function
