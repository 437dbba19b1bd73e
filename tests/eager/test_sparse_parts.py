"""Operators on the parts of sparse tensors, and random programs."""

import numpy as np
import pytest
import tandem as td
from sparse_programs import numbers
from tandem.eager.sparse.tensor import SparseTensor
from tandem.errors import (
    DTypeError,
    OutOfBoundsError,
    ShapeError,
)

pytestmark = pytest.mark.usefixtures("no_fallback")


# -- the operators on parts --------------------------------------------------------------------------------------------
def test_operators_on_parts_refuse_what_leads_outside():
    spmm, sddmm = td.ops.sparse.spmm, td.ops.sparse.sddmm
    crow, col, values, w = td.asarray([0, 1, 2]), td.asarray([0, 1]), td.asarray([1.0, 2.0]), td.ones((2, 3))
    assert spmm(crow, col, values, w, 2).tolist() == [[1.0] * 3, [2.0] * 3]
    assert sddmm(crow, col, td.ones((2, 3)), w).tolist() == [3.0, 3.0]
    for bad in (
        ([0, 1, 3], [0, 1]),
        ([0, 2, 1], [0, 1]),
        ([0, 1, 2], [0, 2]),
        ([0, 1, 2], [-1, 0]),
        ([1, 1, 2], [0, 1]),
    ):
        with pytest.raises(OutOfBoundsError):
            spmm(td.asarray(bad[0]), td.asarray(bad[1]), values, w, 2)
        with pytest.raises(OutOfBoundsError):
            sddmm(td.asarray(bad[0]), td.asarray(bad[1]), w, w)
    with pytest.raises(ShapeError):
        spmm(crow, col, values, td.ones((3, 3)), 2)
    with pytest.raises(DTypeError):
        spmm(values, col, values, w, 2)
    assert spmm(*(x.to("meta") for x in (crow, col, values, w)), 2).shape == (2, 3)


@pytest.mark.parametrize("seed", range(3))
def test_pytorch_gives_the_same(seed):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(seed)
    a, w = rng.normal(size=(6, 7)) * (rng.random((6, 7)) < 0.3), rng.normal(size=(7, 2))
    ours, theirs = (
        td.asarray(a).to_sparse().requires_grad_(),
        torch.from_numpy(a).to_sparse().requires_grad_(),
    )
    assert ours.indices().tolist() == theirs.indices().tolist()
    (ours @ td.asarray(w)).sum().backward()
    torch.sparse.mm(theirs, torch.from_numpy(w)).sum().backward()
    assert np.allclose(numbers(ours.grad), theirs.grad.to_dense().numpy())
    assert ours.grad.nnz == theirs.grad._nnz()
    total = (ours.detach() + ours.detach().T.T).coalesce()
    assert np.allclose(numbers(total), (theirs + theirs).to_dense().detach().numpy())


# -- random programs ---------------------------------------------------------------------------------------------------
def drawn(rng, rows, columns):
    """A sparse matrix in some layout, perhaps with places that occur twice, and the dense one."""
    count = int(rng.integers(0, rows * columns + 1))
    places = np.stack(
        [np.sort(rng.integers(0, max(rows, 1), count)), rng.integers(0, max(columns, 1), count)]
    )
    values, dense = rng.normal(size=count), np.zeros((rows, columns))
    np.add.at(dense, tuple(places), values)
    if rng.integers(2):
        return td.sparse_coo_tensor(places[:, ::-1].copy(), values[::-1].copy(), (rows, columns)), dense
    starts = np.concatenate([[0], np.cumsum(np.bincount(places[0], minlength=rows))])
    return td.sparse_csr_tensor(starts, places[1], values, (rows, columns)), dense


STEPS = [
    lambda a, b: a + b if a.shape == b.shape else a,
    lambda a, b: a * b if a.shape == b.shape else a,
    lambda a, b: a - b if a.shape == b.shape else a,
    lambda a, b: a @ b if a.shape[1] == b.shape[0] else a,
    lambda a, b: a @ b.T if a.shape[1] == b.shape[1] else a,
    lambda a, b: a.T,
    lambda a, b: td.sin(a),
    lambda a, b: -a * 2.0,
    lambda a, b: a.to_sparse_csr() if isinstance(a, SparseTensor) else a,
    lambda a, b: a.to_dense(),
]


def program(seed, values):
    rng, pool = np.random.default_rng(seed), list(values)
    for _ in range(5):
        step, a, b = STEPS[rng.integers(len(STEPS))], *(pool[i] for i in rng.integers(0, len(pool), 2))
        pool.append(step(a, b))
    return pool[-1]


@pytest.mark.parametrize("seed", range(80))
def test_random_programs(seed):
    rng = np.random.default_rng(seed)
    rows, columns = map(int, rng.integers(0, 6, 2))
    pool = [drawn(rng, rows, columns) for _ in range(3)]
    mixed = [x for x, _ in pool] + [td.asarray(rng.normal(size=(rows, columns)))]
    dense = [td.asarray(array) for _, array in pool] + mixed[-1:]
    assert np.allclose(numbers(program(seed, mixed)), numbers(program(seed, dense)), atol=1e-9)

    def slopes(values):
        return td.grad(lambda *given: program(seed, given).sum(0).sum(), tuple(range(4)))(*values)

    for x, got, want in zip(mixed, slopes(mixed), slopes(dense), strict=True):
        if isinstance(x, SparseTensor):
            assert np.allclose(got.values().numpy(), want.numpy()[x._pattern.coordinates()], atol=1e-8)
        else:
            assert np.allclose(got.numpy(), want.numpy(), atol=1e-8)
