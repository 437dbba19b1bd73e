"""Hot calls of composites and of functions of td.nn: compiled code returns what the first call returned."""

import numpy as np
import pytest
import tandem as td
from optable import arrays_of, generator, replace, samples_of, table, to_tensors
from tandem import config
from tandem.backends.cpu import fastpath as native_layer
from tandem.backends.cpu.fastpath.entries.rt_kernels import SAMPLE_MASK, KernelEntry
from tandem.backends.cpu.fastpath.glue.kernels import is_compilable
from tandem.backends.cpu.fastpath.glue.patch_points import TargetCallable
from tandem.eager import hot_calls as hot_calls_module
from tandem.eager.compiled import compile_when_hot
from tandem.eager.hot_calls import COMPILED, REJECTED, RESPELLED, HotCalls
from tandem.eager.tensor.tensor import Tensor
from tandem.nn.recurrent import gru_cell, lstm_cell, run_layer
from tandem.registry.function import functions
from tandem.registry.operator import Operator

ENOUGH = SAMPLE_MASK + 3  # after many calls in other tests only one of SAMPLE_MASK + 1 reaches Python
CHOSEN = ("layer_norm", "cross_entropy", "max.dim", "gather", "std")
COMPOSITES = {name: op for name, op in table().items() if is_compilable(op) and op.decl.samples}

pytestmark = pytest.mark.skipif(
    bool(native_layer.why_off()), reason=native_layer.why_off() or "native code is on"
)


@pytest.fixture(autouse=True)
def hot(monkeypatch):
    monkeypatch.setattr(hot_calls_module, "MOST_COMPILED", 10**9)  # other tests compile kinds too
    monkeypatch.setattr(hot_calls_module, "MOST_REJECTED", 10**9)
    with config.override(hot_composites=1, hot_calls=1):
        yield


def rows():
    for name, op in COMPOSITES.items():
        dtype = next((d for d in (td.float32, td.int64) if d in op.decl.dtypes), None)
        if dtype is not None:
            yield pytest.param(op, dtype, marks=() if name in CHOSEN else pytest.mark.full, id=name)


def leaves(value):
    return [leaf for item in value for leaf in leaves(item)] if isinstance(value, tuple | list) else [value]


def results_and_gradients(function, args, kwargs):
    """The results of a call on tensors that require gradients, and the gradients."""
    given = []

    def track(x):
        x = x.clone()
        if x.dtype.is_inexact:
            given.append(x.requires_grad_())
        return x

    out = function(*replace(tuple(args), Tensor, track), **replace(kwargs, Tensor, track))
    results = [leaf for leaf in leaves(out) if isinstance(leaf, Tensor)]
    roots = [leaf for leaf in results if leaf.requires_grad]
    if roots:
        rng = np.random.default_rng(0)
        slopes = [td.asarray(rng.standard_normal(x.shape)).astype(x.dtype) for x in roots]
        try:
            td.autograd.backward(roots, slopes)
        except td.errors.NotDifferentiableError:
            return results
    return [*results, *(x.grad for x in given)]


def bits(tensors):
    """Shapes, dtypes and bytes; all NaN are one."""
    with np.errstate(invalid="ignore"):
        arrays = [None if x is None else np.array(x.detach().numpy()) for x in tensors]
    for array in arrays:
        if array is not None and array.dtype.kind == "f":
            array[np.isnan(array)] = np.nan
    return [None if a is None else (a.dtype, a.shape, a.tobytes()) for a in arrays]


def hot_calls(function):
    """Hot calls of an operator or a function, with nothing compiled yet."""
    traced = functions[function.name] if isinstance(function, Operator) else function
    plain = getattr(traced, "operator", traced)
    return HotCalls(TargetCallable(plain), plain, traced)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("op", "dtype"), [*rows()])
def test_compiled_composites_have_the_same_bits(op, dtype):
    for sample in samples_of(op, dtype)[:1]:
        args, kwargs = map(to_tensors, arrays_of(sample, dtype, generator(op, dtype)))
        compiled = hot_calls(op)
        hot = results_and_gradients(compiled.call, args, kwargs)
        assert set(compiled.counts.values()) <= {COMPILED, REJECTED, RESPELLED}
        assert bits(results_and_gradients(op, args, kwargs)) == bits(hot)


def take_every_second(x):
    """A view of the same values that is not contiguous, where that is possible."""
    return td.repeat(x, 2, axis=-1)[..., ::2] if x.ndim else x


def places_in(results, args):
    """The strides and the distance from an argument of each result that is a view of one."""
    views = [(r, a) for r in results for a in args if np.shares_memory(r.numpy(), a.numpy())]
    return [(r.strides, r.data_ptr() - a.data_ptr()) for r, a in views]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("op", "dtype"), [*rows()])
def test_compiled_composites_take_views(op, dtype):
    for sample in samples_of(op, dtype)[:2]:
        given = map(to_tensors, arrays_of(sample, dtype, generator(op, dtype)))
        args, kwargs = (replace(one, Tensor, take_every_second) for one in given)
        compiled = hot_calls(op)
        tensors = [x for x in leaves([*args, *kwargs.values()]) if isinstance(x, Tensor)]
        tensors = [x for x in tensors if x.shape and 0 not in x.shape]
        wanted = [x for x in leaves([op(*args, **kwargs)]) if isinstance(x, Tensor)]
        for _ in range(3):
            hot = [x for x in leaves([compiled.call(*args, **kwargs)]) if isinstance(x, Tensor)]
            assert bits(wanted) == bits(hot)
            assert places_in(wanted, tensors) == places_in(hot, tensors)


@pytest.mark.parametrize("lengths", [None, [5, 3]])
@pytest.mark.parametrize(("cell", "gates", "states"), [(lstm_cell, 4, 2), (gru_cell, 3, 1)])
def test_recurrent_layers_are_compiled(cell, gates, states, lengths):
    rng = np.random.default_rng(1)
    draw = [td.asarray(rng.standard_normal(n).astype("float32")) for n in [(5, 2, 3), *[(2, 4)] * states]]
    weights = [td.asarray(rng.standard_normal((4 * gates, n)).astype("float32")) for n in (3, 4)]
    biases = [td.asarray(rng.standard_normal(4 * gates).astype("float32")) for _ in range(2)]
    counts = None if lengths is None else td.asarray(lengths)
    args = [cell, draw[0], tuple(draw[1:]), (*weights, None), tuple(biases), counts, True]
    compiled = hot_calls(run_layer._fn)
    hot = results_and_gradients(compiled.call, args, {})
    assert [*compiled.counts.values()] == [COMPILED]
    cold = results_and_gradients(run_layer._fn, args, {})
    assert bits(cold[: 1 + states]) == bits(hot[: 1 + states])
    for one, two in zip(
        cold, hot, strict=True
    ):  # one product adds up the gradients of a weight in compiled loops
        np.testing.assert_allclose(one.detach().numpy(), two.detach().numpy(), rtol=1e-4, atol=1e-5)


CONVERTED = {
    "clip": (np.float64(-0.5), np.ones(3, "float32")),
    "var": (np.int64(0),),
    "std": ([0, 1],),
    "quantile": (np.float32(0.25),),
    "roll": ([1, 2],),
}


@pytest.mark.parametrize("name", CONVERTED)
def test_lists_and_values_of_numpy_are_converted(name):
    x = td.asarray(np.random.default_rng(0).standard_normal((3, 3)).astype("float32"))
    function, keywords = getattr(td, name), {"axis": [0, 1]} if name == "roll" else {}
    compiled = hot_calls(function)
    with config.override(hot_composites=10**9, hot_calls=10**9):
        first = function(x, *CONVERTED[name], **keywords)
    for _ in range(4):
        assert bits([compiled.call(x, *CONVERTED[name], **keywords)]) == bits([first])
    assert [*compiled.counts.values()] == [COMPILED]


def test_calls_in_another_spelling_are_counted_once():
    x, compiled = td.ones((3, 3)), hot_calls(td.tril)
    for _ in range(3):
        assert bits([compiled.call(x, 1)]) == bits([td.tril(x, k=1)])
    assert [*compiled.counts.values()] == [RESPELLED]


WRONG = {
    "clip": lambda x: td.clip(x, ["a"], 1.0),
    "mean": lambda x: td.mean(x, ["a"]),
    "var": lambda x: td.var(x, np.float64(0.5)),
    "std": lambda x: td.std(x, [x, x]),
    "roll": lambda x: td.roll(x, np.array(["a"])),
    "quantile": lambda x: td.quantile(x, [x]),
}


@pytest.mark.parametrize("name", WRONG)
def test_values_that_are_not_converted_raise_as_before(name):
    def call():
        with pytest.raises(td.errors.TandemError) as caught:
            WRONG[name](td.ones((3, 3)))
        return type(caught.value), str(caught.value)

    with config.override(hot_composites=10**9, hot_calls=10**9):
        first = call()
    assert {call() for _ in range(5)} == {first}


def test_lists_of_tensors_of_kinds_that_are_not_compiled(monkeypatch):
    monkeypatch.setattr(hot_calls_module, "MOST_COMPILED", 0)
    for rows in range(40, 44):
        x = td.ones((rows, 2))
        for _ in range(3):
            assert (
                td.hstack([x, x]).shape == (rows, 4)
                and td.roll(x, [td.asarray(1)], axis=[0]).shape == x.shape
            )


def test_argument_that_the_derivative_does_not_read_may_be_written():
    gradients = []
    for function in (td.softmax.operator, hot_calls(td.softmax).call):
        x = td.asarray([[1.0, 2.0, 4.0]], requires_grad=True)
        copy = x * 1
        y = function(copy, -1)
        with td.no_grad():
            copy.add_(1)
        y.backward(td.asarray([[1.0, 0.0, 2.0]]))
        gradients.append(x.grad)
    assert bits(gradients[:1]) == bits(gradients[1:])


def test_hot_calls_compile_what_repeats(monkeypatch):
    monkeypatch.setattr(hot_calls_module, "NS_PER_CALL", 1 << 60)  # a slow machine counts the same
    function = compile_when_hot(lambda x, factor: td.exp(x) * factor)
    x = td.asarray([1.0, 2.0])
    with config.override(hot_composites=3):
        for _ in range(5):
            first = function(x, 2.0)
        function(x, 3.0)
        function(x[None], 2.0)
        function(td.ones((2, 2)).T, 2.0)
        hot = function._run.__self__
    # the call with 3.0 is the third that may have any factor
    assert sorted(hot.counts.values()) == [COMPILED, COMPILED, 1, 1, 1, 1]
    assert bits([first, function(x, 2.0)]) == bits([td.exp(x) * 2.0] * 2)


def test_calls_with_ever_other_sizes_are_sampled(monkeypatch):
    monkeypatch.setattr(hot_calls_module, "NS_PER_CALL", 1 << 60)
    monkeypatch.setattr(hot_calls_module, "MOST_MISSES", 20)
    function = compile_when_hot(lambda x: td.exp(x) * 2)
    with config.override(hot_composites=10):
        for size in range(1, 101):
            assert function(td.zeros(size)).tolist() == [2.0] * size
        hot = function._run.__self__
        assert len(hot.counts) == 20 + 10
        for _ in range(20):
            assert function(td.zeros(7)).tolist() == [2.0] * 7
        assert COMPILED in hot.counts.values()


def test_long_calls_count_as_several(monkeypatch):
    function, x = compile_when_hot(lambda x: td.exp(x) * 2), td.asarray([1.0, 2.0])
    monkeypatch.setattr(hot_calls_module, "NS_PER_CALL", 1)
    with config.override(hot_composites=1000):
        first = function(x)  # takes more than 1000 ns
        hot = function._run.__self__
        assert min(hot.counts.values()) >= 1000
        assert bits([first]) == bits([function(x)])
    assert list(hot.counts.values()) == [COMPILED]


def test_hot_calls_of_arguments_that_are_not_constants_run_the_function():
    function = compile_when_hot(lambda xs: xs["x"] + 1)
    assert function({"x": td.ones(2)}).tolist() == [2.0, 2.0]
    assert not function._run.__self__.counts


LISTS_AND_CREATION = {
    "vstack": lambda: td.vstack([td.ones(3), td.zeros(3)]),
    "einsum": lambda: td.einsum("ij,jk->ik", td.ones((2, 3)), td.ones((3, 2))),
    "tile": lambda: td.tile(td.ones(3), 2),
    "arange": lambda: td.arange(1, 7, 2),
    "tri": lambda: td.tri(3),
}


@pytest.mark.parametrize("name", LISTS_AND_CREATION)
def test_hot_calls_with_lists_or_without_tensors_return_new_tensors(name):
    call = LISTS_AND_CREATION[name]
    wanted = bits([call()])
    for _ in range(4):
        result = call()
        assert bits([result]) == wanted
        result += 1  # is not seen by the next call


SPELLED = {
    "dim": lambda x: td.softmax(x, dim=0),
    "input, keepdim": lambda x: td.std(input=x, dim=0, keepdim=True),
    "keyword-only by position": lambda x: td.std(x, 0, 1),
    "axis as dim": lambda x: td.mean(x, dim=0, keepdim=True),
    "within a derivative": lambda x: td.linalg.cholesky(x @ x.T + 3 * td.eye(3)),
    "method": lambda x: x.var(0, keepdims=True),
}


@pytest.mark.parametrize("name", SPELLED)
def test_hot_calls_of_other_spellings(name):
    def slope(x):
        y = SPELLED[name](x)
        y.sum().backward()
        return np.concatenate([y.detach().numpy().ravel(), x.grad.numpy().ravel()])

    def make():
        return td.asarray(np.arange(9.0).reshape(3, 3) ** 2 / 9, requires_grad=True)

    with config.override(hot_composites=10**9):
        wanted = slope(make())
    for _ in range(8):  # more than the kinds that are tried in vain
        np.testing.assert_allclose(slope(make()), wanted, rtol=1e-14)


def test_spelled_calls_are_compiled_in_their_canonical_form():
    function = td.softmax
    x = td.ones((2, 3))
    for dim in (0, 1, -1, -2, 0):
        for _ in range(3):
            td.softmax(x, dim=dim)
    hot_calls = function.target.__self__
    assert hot_calls.compiled_kinds >= 4


@pytest.mark.parametrize("mode", ["reflect", "edge", "wrap"])
def test_constant_positions_of_a_composite_are_compiled(mode):
    x, factors = td.arange(12.0).reshape(3, 4), td.asarray(np.arange(3.0))
    function = compile_when_hot(lambda x: td.pad(x, ((1, 1), (2, 1)), mode) + factors[:1])
    wanted = function._fn(x).tolist()
    for _ in range(4):
        assert function(x).tolist() == wanted
    assert [*function._run.__self__.counts.values()] == [COMPILED]
    factors += 1.0  # captured tensors are read at each call
    assert function(x).tolist() == (td.asarray(wanted) + 1.0).tolist()


def test_captured_tensors_with_gradients_are_not_compiled():
    x, weight = td.ones(3), td.ones(3).requires_grad_()
    function = compile_when_hot(lambda x: x * weight)
    for _ in range(4):
        function(x).sum().backward()
    assert weight.grad.tolist() == [4.0] * 3
    assert [*function._run.__self__.counts.values()] == [REJECTED]


def test_calls_that_read_data_are_not_compiled():
    function = compile_when_hot(lambda x: x * float(x.sum()))
    for _ in range(3):
        assert function(td.ones(2)).tolist() == [2.0, 2.0]
    assert [*function._run.__self__.counts.values()] == [REJECTED]


def test_modes_and_transforms_see_the_operators_of_hot_calls():
    seen = []

    class Log(td.DispatchMode):
        def __tandem_dispatch__(self, op, types, args, kwargs):
            seen.append(op.schema.name)
            return op(*args, **kwargs)

    x = td.asarray([[1.0, 2.0]])
    want = td.log_softmax(x, -1)
    assert bits([td.log_softmax(x, -1)]) == bits([want])
    with Log():
        td.log_softmax(x, -1)
    assert seen == ["log_softmax"]
    assert bits([td.vmap(lambda row: td.log_softmax(row, -1))(x)]) == bits([want])
    expected = td.grad(lambda x: td.log_softmax(x, -1)[0, 0])(x)
    x.requires_grad_()
    td.log_softmax(x, -1)[0, 0].backward()
    assert bits([x.grad]) == bits([expected])


def test_registered_kernels_replace_hot_calls():
    x = td.asarray([[1.0, 2.0]])
    want = td.log_softmax(x, -1)
    with td.Library("td", "IMPL") as library:
        library.impl("log_softmax", lambda self, axis: self + 1, "CPU")
        assert td.log_softmax(x, -1).tolist() == [[2.0, 3.0]]
    assert bits([td.log_softmax(x, -1)]) == bits([want])


def test_gradients_of_gradients_of_hot_calls():
    x = td.asarray([[1.0, 2.0, 4.0]], requires_grad=True)
    second = []
    for function in (td.softmax.operator, hot_calls(td.softmax).call):
        (first,) = td.autograd.grad((function(x, -1) ** 2).sum(), [x], create_graph=True)
        second.append(td.autograd.grad((first**2).sum(), [x])[0].numpy())
    np.testing.assert_allclose(*second, rtol=1e-5)


CONTIGUOUS_VIEWS = {
    "topk": lambda x: td.topk(x, 2),
    "median": lambda x: td.median(x),
    "quantile": lambda x: td.quantile(x, 0.25),
    "solve": lambda x: td.linalg.solve(td.eye(x.shape[0], dtype=x.dtype) * 2, x),
}


@pytest.mark.parametrize("name", CONTIGUOUS_VIEWS)
def test_contiguous_views_of_intermediates_are_compiled(name):
    f, x = CONTIGUOUS_VIEWS[name], td.asarray(np.random.default_rng(0).standard_normal(9))
    with config.override(hot_composites=10**9, hot_calls=10**9):
        first = f(x)
    function = td.linalg.solve if name == "solve" else getattr(td, name)
    for _ in range(ENOUGH):
        hot = f(x)
    one, two = (leaves(value) for value in (first, hot))
    assert bits(one) == bits(two) and type(first) is type(hot)
    assert [t.strides for t in one] == [t.strides for t in two]
    assert hot is not f(x)
    stub = native_layer.stubs().kernels[function.operator]
    assert COMPILED in stub.hot_calls.counts.values()


@pytest.mark.parametrize("name", ["quantile", "percentile", "repeat", "tile"])
def test_transposed_and_copied_results_are_compiled(name):
    x, second = td.asarray(np.random.default_rng(0).standard_normal((3, 4))), 2
    if "ile" in name and name != "tile":
        second = td.asarray([0.3, 0.8])
    function, args = getattr(td, name), (x, second, *([] if name == "tile" else [1]))
    with config.override(hot_composites=10**9, hot_calls=10**9):
        first = function(*args)
    stub = native_layer.stubs().kernels[function.operator]
    for _ in range(ENOUGH):
        hot = function(*args)
    assert bits([first]) == bits([hot]) and first.strides == hot.strides
    assert COMPILED in stub.hot_calls.counts.values()


@pytest.mark.parametrize("dtype", [td.float32, td.float64])
def test_decompositions_of_hot_calls_are_compiled(dtype):
    x = td.asarray(np.linspace(0.1, 9, 40), dtype=dtype)
    with config.override(hot_composites=10**9, hot_calls=10**9):
        first = [td.special.polygamma(n, x) for n in range(4)]
    stub = native_layer.stubs().kernels[td.special.polygamma.operator]
    before = dict(getattr(stub.hot_calls, "counts", {}))
    for _ in range(3):
        hot = [td.special.polygamma(n, x) for n in range(4)]
    assert bits(first) == bits(hot)
    counts = stub.hot_calls.counts
    assert {count for key, count in counts.items() if before.get(key) != count} <= {COMPILED}
    assert COMPILED in counts.values()


def test_eager_kernels_run_calls_that_are_not_compiled():
    stub = native_layer.stubs().kernels[td.repeat.operator]
    x = td.arange(101.0)  # a shape of which other tests compile no call
    counts = dict(stub.hot_calls.counts) if stub.hot_calls else {}
    for _ in range(64):  # after many calls of other tests Python counts one of 64
        td.repeat(x, 2)
    assert [n for kind, n in stub.hot_calls.counts.items() if kind not in counts] == [COMPILED]
    record = stub.sampled_record
    before, seen = record.calls, record.get(KernelEntry.seen)  # calls of other tests count too
    with config.override(hot_composites=10**9):
        for count in range(3, 400):
            assert td.repeat(x, count).tolist() == np.repeat(np.arange(101.0), count).tolist()
    calls = record.calls
    assert record.get(KernelEntry.seen) == seen + 397
    # Python counts the first 256 calls of all, and then a few
    uncounted = sum(n > 256 and n % 64 != 0 for n in range(seen + 1, seen + 398))
    assert 100 < uncounted <= calls - before <= uncounted + 5
    assert td.repeat(x, 2).tolist() == np.repeat(np.arange(101.0), 2).tolist()
    assert stub.sampled_record.calls == calls


def test_sampled_calls_count_as_those_that_they_represent():
    x, counts = td.arange(103.0), {}
    for n in range(300):
        td.repeat(x[n % 50 :], 1)
    stub = native_layer.stubs().kernels[td.repeat.operator]
    with config.override(hot_composites=128):
        counts = dict(stub.hot_calls.counts)
        for _ in range(3 * 64):
            td.repeat(x, 3)
    assert [n for kind, n in stub.hot_calls.counts.items() if kind not in counts] == [COMPILED]


def test_strided_views_of_intermediates_run_operator_by_operator():
    x = td.asarray(np.random.default_rng(0).standard_normal((4, 9)))
    for _ in range(5):
        values, indices = td.kthvalue(x, 3)
    assert indices.strides == (72,) and values.shape == (4,)


def test_calls_whose_trace_fails_run_operator_by_operator(monkeypatch):
    compiled, x = hot_calls(td.softmax), td.asarray([1.0, 2.0])
    wanted = compiled.call(x, -1)
    assert [*compiled.counts.values()] == [COMPILED]
    jitted = compiled.compiler._jitted((x, -1), {}, frozenset())
    # another thread registers the kernel after the specialization was found
    monkeypatch.setattr(compiled.compiler, "_compile", lambda args, kwargs, numbers: jitted)
    with td.Library("td", "IMPL") as library:
        library.impl("exp", lambda x: None, "Meta")
        assert bits([compiled.call(x, -1)]) == bits([wanted])
    assert [*compiled.counts.values()] == [REJECTED]


@pytest.mark.parametrize(
    "name, key, call",
    [
        ("td::softmax", "CPU", lambda q: td.nn.functional.scaled_dot_product_attention(q, q, q)),
        ("td::mean", "CPU", lambda q: td.nn.functional.mse_loss(q, q + 1)),
        ("td::sum", "Tracer", lambda q: td.mean(q)),
    ],
)
@pytest.mark.parametrize("is_hot", [True, False], ids=["hot", "cold"])
def test_hot_calls_run_the_kernels_of_eager_calls(name, key, call, is_hot):
    """A trace runs the formula of a composite, an eager call its kernel for the CPU."""
    q, calls = td.asarray(np.arange(6.0).reshape(1, 2, 3) + 7), []
    want = call(q).tolist()
    for _ in range(6 if is_hot else 0):
        assert np.allclose(call(q).tolist(), want)

    def kernel(x, *how, **options):
        calls.append(name)
        return td.asarray(np.full(x.shape if name == "td::softmax" else (), 2.0, x.dtype.np))

    with td.register_kernel(name, key, kernel):
        results = [call(q).tolist() for _ in range(6)]
    assert len(calls) == (6 if key == "CPU" else 0)
    assert key == "CPU" or np.allclose(results, want)
    assert np.allclose(call(q).tolist(), want)


OF_NUMBERS = {
    "ldexp": lambda x: td.ldexp(x, 2),
    "kron": lambda x: td.kron(x, 2),
    "ediff1d": lambda x: td.ediff1d(x, 2),
    "append": lambda x: td.append(x[:, None], 2),
}


@pytest.mark.parametrize("name", OF_NUMBERS)
def test_composites_that_compute_with_numbers_are_compiled(name):
    function, x = getattr(td, name), td.asarray(np.linspace(-2, 3, 7))
    with config.override(hot_composites=10**9, hot_calls=10**9):
        first = OF_NUMBERS[name](x)
    for _ in range(5):
        hot = OF_NUMBERS[name](x)
    assert bits([first]) == bits([hot])
    assert COMPILED in native_layer.stubs().kernels[function.operator].hot_calls.counts.values()


def test_traced_constants_of_numbers_are_not_captured():
    def scale(x):
        return x * td.floor_divide(-5, 2).astype(td.float64) + td.reshape(-0.0, (1, 1))

    graph = td.jit(scale).trace(td.asarray([1.0, 2.0], dtype=td.float64))
    assert "captured" not in str(graph) and str(graph).count("td::full") == 2
    assert td.jit(scale)(td.asarray([1.0])).tolist() == [[-3.0]]


def test_results_that_gradients_do_not_need_are_not_held():
    x = td.asarray(np.random.default_rng(0).standard_normal((3, 3)), requires_grad=True)
    for _ in range(200):
        y = td.triu(x)
    assert not y._meta.node.residuals
    y += 1.0
    y.sum().backward()
    assert x.grad.tolist() == np.triu(np.ones((3, 3))).tolist()
