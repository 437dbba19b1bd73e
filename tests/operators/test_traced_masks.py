"""Elements at masks under jit: reads, writes, reductions and derivatives; constant masks."""

import warnings

import numpy as np
import pytest
import tandem as td
from mask_keys import KEYS, X
from tandem.errors import UnsupportedError


# -- elements at traced masks ------------------------------------------------------------------------------------------
def _add(y, x, key):
    y[key] += 2.5


def _combine(y, x, key):
    y[key] = 2 * y[key] - x[key] ** 2


def _divide(y, x, key):
    y[key] /= -abs(y[key])


def _keep(y, x, key):
    before = y[key]
    y[key] = 0.0
    y[key] = y[key] - before


UPDATES = {"add": _add, "combine": _combine, "divide": _divide, "read before a write": _keep}


@pytest.mark.parametrize("update", UPDATES.values(), ids=UPDATES)
@pytest.mark.parametrize(
    "key", [KEYS[name] for name in KEYS if name != "0-d"]
)  # which is reshaped at each use
def test_assignments_of_elements_at_the_same_mask_trace(key, update):
    (position,) = (i for i, part in enumerate(key) if isinstance(part, np.ndarray))

    def run(x, mask):
        whole = (*key[:position], mask, *key[position + 1 :])
        y = x * 1
        update(y, x, whole if len(whole) > 1 else mask)
        return y

    want = run(X, key[position])
    x, mask = td.asarray(X), td.asarray(key[position])
    two = td.stack([x, x]), td.stack([mask, mask])
    assert np.allclose(td.jit(run)(x, mask).numpy(), want, rtol=1e-15)
    assert np.allclose(td.vmap(run)(*two)[1].numpy(), want, rtol=1e-15)
    assert np.allclose(td.jit(td.vmap(run))(*two)[1].numpy(), want, rtol=1e-15)
    slope = td.grad(lambda x: run(x, mask).sum())(x).numpy()
    assert np.allclose(td.jit(td.grad(lambda x, mask: run(x, mask).sum()))(x, mask).numpy(), slope)


USES = {
    "result": lambda e, x: e,
    "reduction": lambda e, x: td.sum(e),
    "method": lambda e, x: e.std(),
    "axis": lambda e, x: e.sum(0),
    "shape": lambda e, x: e.shape,
    "len": lambda e, x: len(e),
    "iteration": lambda e, x: [*e],
    "comparison": lambda e, x: e == 1,
    "tensor with an axis": lambda e, x: x[0] + e,
    "product": lambda e, x: e @ e,
    "other mask": lambda e, x: e + x[x > 3],
    "asarray": lambda e, x: td.asarray(e),
    "numpy": lambda e, x: np.asarray(e),
    "write elsewhere": lambda e, x: x.at[0].set(e),
    "write at another mask": lambda e, x: x.at[x > 3].set(e),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_other_uses_of_elements_at_traced_masks_raise(use):
    for run, x in ((td.jit, td.asarray(X)), (td.vmap, td.stack([td.asarray(X)] * 2))):
        with pytest.raises((UnsupportedError, TypeError), match=r"size=n|positional"):
            run(lambda x: use(x[x > 2], x))(x)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "bool"])
@pytest.mark.parametrize("limit", [2, 1000], ids=["some", "none"])
def test_reductions_of_elements_at_traced_masks(dtype, limit):
    x = td.asarray(X)

    def run(x):
        elements = x.astype(dtype)[x > limit]
        rows = x.astype(dtype)[x[..., 0] > limit]
        parts = elements, rows, elements * 2
        return [r for e in parts for r in (e.sum(), e.prod(), e.any(), e.all(), e.mean())]

    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want = run(x)
        found = td.jit(run)(x)
        each = td.vmap(run)(td.stack([x, x]))
    for one, two, wide in zip(want, found, each, strict=True):
        assert one.dtype == two.dtype == wide.dtype
        assert np.allclose(one.numpy(), two.numpy(), rtol=1e-3, equal_nan=True)
        assert np.allclose(one.numpy(), wide.numpy()[1], rtol=1e-3, equal_nan=True)


def test_masks_that_are_computed_alike_are_equal():
    def run(x):
        y = x + 1
        y[y > 2] = 1 / y[y > 2]
        y[td.sin(x) * 2 > 0.5] += (x[td.sin(x) * 2 > 0.5] ** 2) * 3
        return y

    x = td.asarray(X)
    assert np.allclose(td.jit(run)(x).numpy(), run(x).numpy())


@pytest.mark.parametrize(
    "run",
    [
        lambda x, m: x.at[m].set(1 / x[m]),
        lambda x, m: x.at[m].power(-1.5),
        lambda x, m: x.at[m].apply(td.log),
        lambda x, m: (1 / x[m]).mean(),
    ],
    ids=["set", "power", "apply", "mean"],
)
def test_derivatives_do_not_depend_on_elements_elsewhere(run):
    x = td.asarray([2.0, 0.0, 3.0, -1.0])

    def loss(x):
        return run(x, x > 0).sum()

    want = td.grad(loss)(x).numpy()
    assert np.isfinite(want).all()
    assert np.allclose(td.jit(td.grad(loss))(x).numpy(), want, rtol=1e-6)
    assert np.allclose(td.vmap(td.grad(loss))(td.stack([x, x])).numpy()[1], want, rtol=1e-6)


@pytest.mark.parametrize("other", [lambda x: x > 3, lambda x: x >= 2, lambda x: x + 0 > 2, lambda x: x > 2.5])
def test_masks_that_are_computed_differently_are_not_equal(other):
    def run(x):
        return x.at[other(x)].set(x[x > 2])

    with pytest.raises(UnsupportedError, match="size=n"):
        td.jit(run)(td.asarray(X))


def test_masks_of_changed_tensors_are_not_equal():
    def run(x):
        elements = x[x > 2]
        x[0] = 5
        return x.at[x > 2].set(elements)

    with pytest.raises(UnsupportedError, match="size=n"):
        td.jit(run)(td.asarray(X))


TRANSFORMED = {
    "jit": lambda run, x: td.jit(run)(x),
    "vmap": lambda run, x: td.vmap(run)(td.stack([x, x]))[1],
    "both": lambda run, x: td.jit(td.vmap(run))(td.stack([x, x]))[1],
}


def flip_in_place(mask):
    mask ^= True


def flip_through_a_view(mask):
    mask[1:] ^= True


@pytest.mark.parametrize("transform", TRANSFORMED.values(), ids=TRANSFORMED)
@pytest.mark.parametrize("write", [flip_in_place, flip_through_a_view])
def test_written_masks_are_not_those_of_earlier_reads(transform, write):
    def run(x):
        mask = x > 2
        elements = x[mask]
        write(mask)
        y = x * 0
        y[mask] = elements
        return y

    with pytest.raises(UnsupportedError, match=r"number of positions|size=n"):
        transform(run, td.asarray([3.0, 1.0, 4.0, -2.0]))


@pytest.mark.parametrize("transform", TRANSFORMED.values(), ids=TRANSFORMED)
def test_reductions_are_those_at_the_mask_as_it_was_read(transform):
    def run(x):
        mask = x > 2
        elements = x[mask]
        mask[...] = False
        return td.stack([elements.sum(), (elements * 2).mean(), elements.prod()])

    x = td.asarray([3.0, 1.0, 4.0, -2.0])
    assert transform(run, x).tolist() == run(x).tolist() == [7, 7, 12]


@pytest.mark.parametrize("transform", TRANSFORMED.values(), ids=TRANSFORMED)
def test_derivatives_are_those_at_the_mask_as_it_was(transform):
    def loss(x):
        mask, y = x > 2, x * 1
        total = (x[mask] ** 2).sum()
        y[mask] *= x[mask]
        mask[...] = False
        return total + y.sum()

    x = td.asarray([3.0, 1.0, 4.0, -2.0])
    assert transform(td.grad(loss), x).tolist() == td.grad(loss)(x).tolist() == [12, 1, 16, 1]


# -- constant masks ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("make", [np.copy, td.asarray], ids=["array", "tensor"])
@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
def test_captured_masks_have_known_positions(key, make):
    def prepare(part):
        return make(part) if isinstance(part, np.ndarray) else part

    whole = tuple(map(prepare, key))
    values = np.arange(X[key].size).reshape(X[key].shape) + 0.5

    def run(x, v):
        y = x * 1
        y[whole] += v
        return y, x.at[whole].set(v), x.at[whole].add(2 * v), x[whole]

    want = X.copy(), X.copy(), X.copy(), X[key]
    want[0][key] += values
    want[1][key] = values
    want[2][key] += 2 * values
    x, v = td.asarray(X), td.asarray(values)
    for results in (
        td.jit(run)(x, v),
        [one[0] for one in td.jit(td.vmap(run))(td.stack([x]), td.stack([v]))],
    ):
        for one, other in zip(results, want, strict=True):
            assert np.array_equal(one.numpy(), other)


def test_changed_captured_mask_is_traced_again():
    mask = td.asarray([True, False, True])
    jitted = td.jit(lambda x: x[mask] * 2)
    scanned = td.jit(lambda x: td.scan(lambda c, _: (c.at[mask].add(1.0), c[mask]), x, None, length=2)[0])
    x = td.asarray([1.0, 2.0, 3.0])
    for _ in range(100):
        assert jitted(x).tolist() == [2.0, 6.0]
    assert scanned(x).tolist() == [3.0, 2.0, 5.0]
    mask[1] = True
    assert jitted(x).tolist() == [2.0, 4.0, 6.0]
    assert scanned(x).tolist() == [3.0, 4.0, 5.0]
    mask[0] = mask[1] = False
    assert "captured mask" in jitted.explain(x)
    assert jitted(x).tolist() == [6.0]
    mask[0] = True
    assert jitted(x).tolist() == [2.0, 6.0]
    assert jitted.cache_info().specializations == 3


def test_in_place_operators_rebind_loop_carries():
    def step(_, carry):
        carry += 1
        carry[carry > 2] *= 10
        return carry

    want = np.array([1.0, 2.0, 3.0])
    for _ in range(3):
        want = step(None, want.copy())
    x = td.asarray([1.0, 2.0, 3.0])
    run = lambda x: td.fori_loop(0, 3, step, x)  # noqa: E731
    assert td.jit(run)(x).tolist() == run(x).tolist() == want.tolist()
    assert td.vmap(run)(td.stack([x]))[0].tolist() == want.tolist()
    assert x.tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    "key", [False, np.zeros(0, np.int64), np.zeros(2, bool)], ids=["False", "indices", "mask"]
)
def test_jitted_write_at_no_position_keeps_a_computed_tensor(key):
    index = td.asarray([-2])

    def run(x, a, b):
        y = x - a
        y = y.at[index].set(y[index] >> b)
        return y.at[key].set(1), y.at[key].add(1), y.at[key].max(1)

    arguments = td.asarray([0, 2]), td.asarray([1, 2]), td.asarray([2])
    assert [one.tolist() for one in td.jit(run)(*arguments)] == [one.tolist() for one in run(*arguments)]


@pytest.mark.parametrize("method", ["add", "set", "max", "multiply"])
def test_jitted_update_of_a_view_keeps_other_elements(method):
    def run(x, a):
        return getattr(x.at[:, True], method)(a), getattr(x[:, None].at[:, [0]], method)(a)

    x, a = td.asarray([0.0, 2.0]), td.asarray([[-0.5], [-2.0]])
    for one, other in zip(td.jit(run)(x, a), run(x, a), strict=True):
        assert one.tolist() == other.tolist()
