"""Sparse tensors on CUDA agree with the CPU's; no GPU is used."""

import pickle
from pathlib import Path

import numpy as np
import pytest
import tandem as td
from cuda_host.build import missing_compiler
from rotation import one_each_commit
from sparse_programs import drawn, everything, same
from tandem import errors
from tandem.backends.cuda.codegen.kernel import module_source
from tandem.backends.cuda.kernels import sparse_sources
from tandem.backends.cuda.runtime import compiler
from tandem.registry.dispatch.keys import DispatchKey

pytestmark = pytest.mark.usefixtures("cuda", "no_fallback")
LAYOUTS = [td.sparse_coo, td.sparse_csr]
EACH = pytest.mark.parametrize("layout", LAYOUTS, ids=str)
MORE = ["float64", "float16", "bfloat16", "complex128", "int64", "uint16"]
DTYPES = ["float32", "complex64", "int8", *(pytest.param(name, marks=pytest.mark.full) for name in MORE)]


@EACH
@pytest.mark.parametrize("dtype", DTYPES)
def test_as_on_the_cpu(layout, dtype):
    x, y = drawn(0, 5, 7, dtype=dtype), drawn(1, 7, 4, dtype=dtype)
    want, got = everything(x, y, layout), everything(x.to("cuda"), y.to("cuda"), layout)
    for name, found in got.items():
        same(found, want[name])


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (1, 1), (70, 130)], ids=str)
def test_sizes(shape):
    x, y = drawn(2, *shape, density=0.3), drawn(3, shape[1], 2)
    a = x.to("cuda").to_sparse_csr()
    assert a.nnz == np.count_nonzero(x.numpy())
    same(a @ y.to("cuda"), x @ y)
    same(a @ y[:, 0].to("cuda"), x @ y[:, 0])
    same(y.to("cuda").T @ a.T, y.T @ x.T)
    same((a.T @ a).to_dense(), x.T @ x)


@EACH
def test_indices_are_on_the_device(layout):
    x = drawn(0, 3, 4).to("cuda").to_sparse(layout)
    parts = [x.indices()] if layout == td.sparse_coo else [x.crow_indices(), x.col_indices()]
    for part in (*parts, x.values()):
        assert part.device == "cuda:0"
    assert x._keys == 1 << DispatchKey.SparseCUDA
    for moved in (x.to("cuda:1"), x.to("cpu"), x.cpu().cuda(), pickle.loads(pickle.dumps(x)), x.clone()):
        assert (moved.layout, moved.is_coalesced) == (x.layout, x.is_coalesced)
        assert moved.to_dense().tolist() == x.to_dense().tolist()
    assert x.to("cuda:1").device == "cuda:1"
    assert pickle.loads(pickle.dumps(x)).device == "cuda:0"
    assert "device='cuda:0'" in repr(x)


def test_made_of_parts():
    values = td.asarray([3.0, 4.0, 5.0], device="cuda")
    places = [[1, 0, 1], [2, 0, 2]]
    for given in (places, td.asarray(places), td.asarray(places).to("cuda")):
        x = td.sparse_coo_tensor(given, values, (2, 3))
        assert (x.device, x.is_coalesced) == ("cuda:0", False)
        y = x.coalesce()
        assert (y.indices().tolist(), y.values().tolist()) == ([[0, 1], [0, 2]], [4.0, 8.0])
    assert td.sparse_coo_tensor(td.asarray(places).to("cuda"), [3.0, 4.0, 5.0]).device == "cuda:0"
    x = td.sparse_csr_tensor([0, 2, 2], [1, 1], td.asarray([1.0, 2.0], device="cuda"), (2, 2))
    assert (x.is_coalesced, x.coalesce().values().tolist()) == (False, [3.0])
    with pytest.raises(errors.OutOfBoundsError, match="from 0 to 9 along axis 0"):
        td.sparse_coo_tensor([[0, 9], [0, 0]], values[:2], (3, 2))
    with pytest.raises(errors.OutOfBoundsError, match="row starts"):
        td.sparse_csr_tensor([0, 3, 2], [1, 1], values[:2], (2, 2))


def test_two_devices_are_an_error_that_names_both():
    x = drawn(0, 3, 4).to("cuda").to_sparse()
    for call in (
        lambda: x + x.to("cpu"),
        lambda: x.to("cpu") @ x.T,
        lambda: x @ td.ones((4, 2)),
        lambda: x * td.ones((3, 4)),
        lambda: x + x.to("cuda:1"),
        lambda: td.sparse_coo_tensor(td.asarray([[0]]).to("cuda"), td.ones(1)),
        lambda: td.sparse_coo_tensor(td.asarray([[0]]).to("cuda:1"), td.ones(1, device="cuda")),
    ):
        with pytest.raises(errors.DeviceError, match="cuda:0") as caught:
            call()
        assert "cpu" in str(caught.value) or "cuda:1" in str(caught.value) or "host" in str(caught.value)


@EACH
def test_gradients(layout):
    def loss(v, d):
        x = td.sparse_csr_tensor([0, 2, 2, 3], [0, 1, 1], v, (3, 2)).to_sparse(layout)
        y = (x @ d).sum(0) * (d.T @ x.T)[0, 0] * (x * x).sum()
        return y.sum() + (x @ x.T).to_dense().sum() + (x + d.T).square().sum()

    given = td.asarray([3.0, 4.0, 5.0]), td.asarray([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    want = td.grad(loss, argnums=(0, 1))(*given)
    got = td.grad(loss, argnums=(0, 1))(*(x.to("cuda") for x in given))
    for one, two in zip(got, want, strict=True):
        assert one.device == "cuda:0"
        np.testing.assert_allclose(one.tolist(), two.tolist(), rtol=1e-5)
    x = drawn(0, 3, 4).to("cuda").to_sparse(layout).requires_grad_()
    (x @ td.ones((4, 2), device="cuda")).sum().backward()
    assert (x.grad.device, x.grad.layout) == ("cuda:0", layout)
    assert x.grad.values().tolist() == [2.0] * x.nnz


def test_transforms_and_jit():
    a, d = drawn(0, 3, 4), drawn(1, 2, 4, 5)
    x, there = a.to("cuda").to_sparse_csr(), d.to("cuda")
    same(td.vmap(lambda one: x @ one)(there), a @ d)
    same(td.vmap(lambda v: td.sparse_csr_tensor([0, 1, 2], [0, 1], v, (2, 2)) @ there[0, :2])(
        td.ones((3, 2), device="cuda")), td.stack([d[0, :2]] * 3))  # fmt: skip
    f = td.jit(lambda x, d: td.relu(x @ d) * 2)
    for _ in range(3):
        same(f(x, there[0]), td.relu(a @ d[0]) * 2)
    same(f(a.to_sparse_csr().to("cuda:0"), there[1]), td.relu(a @ d[1]) * 2)


def test_columns_out_of_bounds_are_detected_on_device():
    one = td.ones((2, 2), device="cuda")
    td.ops.sparse.spmm(td.asarray([0, 1, 2]), td.asarray([0, 9]), one[0], one, 2)
    with pytest.raises(
        errors.OutOfBoundsError, match="spmm: index 9 is out of bounds for axis 1 with size 2"
    ):
        td.synchronize()


@pytest.mark.once
@pytest.mark.parametrize("arch", one_each_commit("sm_75", "sm_80", "sm_90", "sm_100"))
def test_nvrtc_takes_the_kernels(arch):
    why = missing_compiler()
    if why:
        pytest.skip(why)
    with td.config.override(cache=False):
        for body in ("spmm", "spmv", "sddmm"):
            for name in sparse_sources.TYPES:
                kernel = sparse_sources.kernel(body, name)
                assert (
                    kernel.name.encode()
                    in Path(compiler.nvrtc_file(module_source([kernel]), arch)).read_bytes()
                )
