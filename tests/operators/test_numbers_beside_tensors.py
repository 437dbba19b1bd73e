"""Python numbers as tensor arguments, over the op table: no operator rounds one to a narrower dtype.

Each tensor argument of a call that also works with a 0-d float64 tensor is replaced by a Python number, eagerly and as
the argument of a jitted function. Beside float64 tensors the results are those of the 0-d tensor; alone they are the
numbers in double precision.
"""

import numpy as np
import pytest
import tandem as td
from optable import arrays_of, generator, samples_of, table, to_tensors
from tandem.errors import TandemError

NUMBER = 0.37
F64 = td.float64
# (operator, argument): the result has the dtype of this argument alone
OWN_DTYPE = {("basic_put", 0), ("masked_fill", 0)}
# operators that count or draw by an argument whose dtype is independent of the other tensors
INDEPENDENT = ("axis_gather", "ldexp")
NAMES = sorted(
    name
    for name, op in table().items()
    if op.decl.samples is not None
    and F64 in op.decl.dtypes
    and not (op.decl.effects or op.schema.is_mutable)
    and not name.startswith("random_")
    and name not in INDEPENDENT
)


def flat(values):
    return [x for v in values for x in flat(v)] if isinstance(values, (tuple, list)) else [values]


def places_in(args, kwargs):
    """Where the tensors of a call are: a position or a name, and the index in a list or None."""
    for at, value in (*enumerate(args), *kwargs.items()):
        if isinstance(value, td.Tensor):
            yield at, None
        elif isinstance(value, (tuple, list)):
            yield from ((at, n) for n, item in enumerate(value) if isinstance(item, td.Tensor))


def put(call, place, number):
    """The arguments of a call with a number in place of a tensor."""
    (at, n), args, kwargs = place, list(call[0]), dict(call[1])
    target = args if isinstance(at, int) else kwargs
    if n is None:
        target[at] = number
    else:
        target[at] = (*target[at][:n], number, *target[at][n + 1 :])
    return args, kwargs


def calls_of(op):
    """(call, place, wanted) of each tensor argument that may be 0-d, of its first sample that works."""
    seen = set()
    for sample in samples_of(op, F64):
        call = to_tensors(arrays_of(sample, F64, generator(op, F64)))
        for place in set(places_in(*call)) - seen:
            try:
                args, kwargs = put(call, place, td.asarray(np.float64(NUMBER)))
                wanted = flat([op(*args, **kwargs)])
            except (TandemError, TypeError, ValueError):
                continue
            seen.add(place)
            yield call, place, wanted


def assert_equal(found, wanted, what):
    for one, other in zip(found, wanted, strict=True):
        if isinstance(other, td.Tensor):
            assert one.dtype is other.dtype, what
            one, other = one.numpy(), other.numpy()
            if other.dtype.kind not in "fc":
                np.testing.assert_array_equal(one, other, err_msg=what)
                continue
        np.testing.assert_allclose(one, other, rtol=1e-13, atol=1e-300, equal_nan=True, err_msg=what)


def widened(results):
    """Weak scalars beside a float64 tensor; other results as they are."""
    return [
        x * td.asarray(np.float64(1))
        if isinstance(x, td.Tensor) and x.shape == () and x.dtype is td.float32
        else x
        for x in results
    ]


@pytest.mark.filterwarnings("ignore:.*broadcast to:UserWarning")
@pytest.mark.parametrize("name", NAMES)
def test_numbers_keep_their_digits(name):
    op = table()[name]
    for call, place, wanted in calls_of(op):
        if (name, place[0]) in OWN_DTYPE:
            continue
        alone = len(list(places_in(*call))) == 1
        if alone and any(isinstance(x, td.Tensor) and (x.shape or x.dtype is not F64) for x in wanted):
            continue  # tensors with axes, made of numbers alone, have the default dtype

        def function(number, op=op, call=call, place=place):
            args, kwargs = put(call, place, number)
            return widened(flat([op(*args, **kwargs)]))

        assert_equal(function(NUMBER), wanted, f"{name} {place}")
        if any(op.binder.device_argument == key for key in call[1]):
            continue
        try:
            td.jit(
                lambda t, call=call, place=place, op=op: op(*put(call, place, t)[0], **put(call, place, t)[1])
            )(td.asarray(np.float64(NUMBER)))
        except TandemError:
            continue  # its shape depends on data
        assert_equal(td.jit(function)(NUMBER), wanted, f"jitted {name} {place}")
        assert_equal(td.jit(lambda: function(NUMBER))(), wanted, f"jitted {name} {place}, a constant")


X = np.array([0.37, 0.38])
CALLS = {
    "broadcast_arrays": lambda x, n: td.broadcast_arrays(x, n)[1],
    "meshgrid": lambda x, n: td.meshgrid(x, n)[1],
    "einsum": lambda x, n: td.einsum("i,->i", x, n),
    "tensordot": lambda x, n: td.tensordot(x, n, 0),
    "tensorsolve": lambda x, n: td.linalg.tensorsolve(x[0], n),
    "append": lambda x, n: td.append(x, n),
    "isclose": lambda x, n: td.isclose(x, n, rtol=0, atol=1e-12),
    "quantile": lambda x, n: td.quantile(x, n),
    "percentile": lambda x, n: td.percentile(x, n),
    "where": lambda x, n: td.where(td.lt(n, 0.5), x, n),
    "lerp": lambda x, n: td.lerp(x, 2 * x, n),
}
OPTIONS = {
    "addcmul": lambda x, n: td.addcmul(x, x, x, value=n),
    "addcdiv": lambda x, n: td.addcdiv(x, x, x, value=n),
    "rsub": lambda x, n: td.rsub(x, x, alpha=n),
    "addr": lambda x, n: td.addr(td.outer(x, x), x, x, beta=n, alpha=n),
    "index_add": lambda x, n: td.index_add(x, 0, td.asarray([0, 1]), x, alpha=n),
    "unwrap": lambda x, n: td.unwrap(x * 40, period=n),
    "unwrap discont": lambda x, n: td.unwrap(x * 40, discont=n),
    "histogram": lambda x, n: td.histogram(x, bins=2, range=(0, n))[1],
}


@pytest.mark.parametrize("name", CALLS)
def test_calls_with_a_number_equal_those_with_a_tensor(name):
    x, function = td.asarray(X), CALLS[name]
    wanted = function(x, td.asarray(np.float64(NUMBER)))
    for found in (function(x, NUMBER), td.jit(function)(x, NUMBER), td.jit(lambda x: function(x, NUMBER))(x)):
        assert_equal([found], [wanted], name)


@pytest.mark.parametrize("name", OPTIONS)
def test_options_that_are_traced_numbers(name):
    x, function = td.asarray(X), OPTIONS[name]
    wanted = function(x, NUMBER)
    assert_equal([td.jit(function)(x, NUMBER)], [wanted], name)


@pytest.mark.parametrize("call", [lambda: td.ldexp(3, NUMBER), lambda: td.ldexp(True, NUMBER)])
def test_integers_beside_floats_are_in_double(call):
    assert call().item() in (3 * 2**NUMBER, 2**NUMBER)


def test_numbers_beside_halves_do_not_widen_them():
    half = td.ones(2, dtype=td.float16)
    assert td.kron(half, 0.1).dtype is td.diff(half, prepend=0.1).dtype is td.float16
