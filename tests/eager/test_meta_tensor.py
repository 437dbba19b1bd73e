"""The device ``meta``: shapes, dtypes, strides, versions, gradients and memory of programs that run without data."""

import copy
import doctest
import io
import pickle
import re
from pathlib import Path

import numpy as np
import pytest
import tandem as td
from gradient_harness import DIFFERENTIABLE, smooth_samples
from optable import arrays_of, depends_on_data, errors_of, generator, make, replace, rows, table, to_tensors
from rotation import rotating
from tandem.eager.meta.tensor import MetaTensor, meta_tensor
from tandem.errors import DeviceError, TandemError, UnsupportedError, VersionError
from tandem.operators.declare.declaration import TensorSample
from tandem.registry.dtypes import float32, float64
from tandem.registry.function import functions
from tandem.registry.values import TensorSpec

OPS = table()


def to_meta(tree):
    """Tensors as tensors without data, of the same strides."""
    return replace(tree, td.Tensor, lambda x: x.to("meta"))


def look(result):
    """Shape and dtype of each result."""
    return [(x.shape, x.dtype) for x in (result if isinstance(result, tuple) else (result,))]


def on_meta(op, args, kwargs):
    """The call on meta: its tensors there, and made there if it takes none."""
    if op.binder.device_argument and not any(isinstance(a, td.Tensor) for a in args):
        kwargs = {**kwargs, "device": "meta"}
    return functions[op.name](*to_meta(args), **to_meta(kwargs))


def has_tensors(op, args, kwargs):
    found = []
    replace((args, kwargs), td.Tensor, found.append)
    return bool(found) or bool(op.binder.device_argument)


# -- every operator ----------------------------------------------------------------------------------------------------
@rotating
@pytest.mark.parametrize("name", [name for name, op in OPS.items() if op.decl.samples])
def test_meta_gives_the_real_shape_and_dtype(name):
    op = OPS[name]
    for dtype, sample in rows(op):
        args, kwargs = to_tensors(arrays_of(sample, dtype, generator(op, dtype)))
        if not has_tensors(op, args, kwargs):
            continue
        if depends_on_data(op, args, kwargs):
            with pytest.raises(UnsupportedError):
                on_meta(op, args, kwargs)
            continue
        got = on_meta(op, args, kwargs)
        assert look(got) == look(functions[op.name](*args, **kwargs)), (dtype, sample)
        for item in got if isinstance(got, tuple) else (got,):
            assert type(item) is MetaTensor, (dtype, sample)
            assert item.device == "meta"


BY_ELEMENTS = {
    "gather",
    "index",
    "index_add",
    "index_copy",
    "index_put",
    "index_reduce",
    "index_select",
    "scatter",
    "scatter_add",
    "take",
    "take_along_axis",
    "choose",
    "put_along_axis",
    "ravel_multi_index",
    "unravel_index",
}  # whether a position is out of bounds
OF_ELEMENTS = ("Singular", "positive definite")  # what LAPACK finds out


@rotating
@pytest.mark.parametrize("name", [name for name, op in OPS.items() if op.decl.errors])
def test_meta_raises_what_follows_from_shapes_and_dtypes(name):
    op = OPS[name]
    default = float32 if float32 in op.decl.dtypes or not op.decl.dtypes else op.decl.dtypes[-1]
    for bad in errors_of(op):
        if bad.error is MemoryError or "device" in bad.kwargs or bad.match in OF_ELEMENTS:
            continue
        rng = generator(op, default)
        args, kwargs = replace(
            (bad.args, dict(bad.kwargs)), TensorSample, lambda d, rng=rng: to_tensors(make(d, default, rng))
        )
        if name in BY_ELEMENTS and bad.error is IndexError and "out of bounds" in bad.match:
            continue
        with pytest.raises(bad.error, match=re.escape(bad.match)) as caught:
            on_meta(op, args, kwargs)
        assert isinstance(caught.value, TandemError), bad


def tracked(x, leaves):
    """A float64 tensor as a leaf, noted; others as they are."""
    if x.dtype is float64:
        x = td.asarray(x._array.copy(), requires_grad=True)
        leaves.append(x)
    return x


@rotating
@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_meta_gradients_have_real_shapes_and_dtypes(name):
    op = OPS[name]
    for arrays, options in smooth_samples(op):
        args, kwargs = to_tensors((arrays, options))
        wanted = []

        def ask(x, wanted=wanted):
            x = x.to("meta")
            if x.dtype is float64:
                wanted.append(x.requires_grad_())
            return x

        meta = replace(args, td.Tensor, ask)
        leaves = []
        real = replace(args, td.Tensor, lambda x, leaves=leaves: tracked(x, leaves))
        for given, options in ((real, kwargs), (meta, to_meta(kwargs))):
            out = functions[op.name](*given, **options)
            for item in out if isinstance(out, tuple) else (out,):
                if item.requires_grad:
                    item.backward(td.ones_like(item), retain_graph=True)
        assert wanted, "nothing to differentiate"
        for x, leaf in zip(wanted, leaves, strict=True):
            assert (x.grad is None) == (leaf.grad is None), name
            assert x.grad is None or (type(x.grad), x.grad.spec) == (MetaTensor, x.spec), name


def test_second_order_and_transforms():
    x = td.ones((3, 4), device="meta", dtype=td.float64)
    slope = td.grad(lambda v: (td.grad(lambda u: (td.sin(u) * u).sum())(v) ** 2).sum())(x)
    assert slope.spec == x.spec
    value, found = td.value_and_grad(lambda v: td.logsumexp(v))(x)
    assert (value.spec, found.spec) == (TensorSpec((), float64, "meta"), x.spec)
    w = x.requires_grad_()
    (first,) = td.autograd.grad((w**3).sum(), w, create_graph=True)
    (second,) = td.autograd.grad(first.sum(), w)
    assert second.spec == x.spec


# -- strides -----------------------------------------------------------------------------------------------------------
VIEWS = ["reshape", "permute", "broadcast_to", "basic_index", "contiguous", "stop_gradient", "transpose"]
VIEWS += ["matrix_transpose", "moveaxis", "expand", "squeeze", "expand_dims", "flip"]


def steps(x):
    """The strides of axes where they matter: a step is taken only if there are two elements."""
    return [step for size, step in zip(x.shape, x.stride(), strict=True) if size > 1] if x.size else []


@pytest.mark.parametrize("name", VIEWS)
def test_views_have_the_real_strides(name):
    op = OPS[name]
    for dtype, sample in rows(op):
        args, kwargs = to_tensors(arrays_of(sample, dtype, generator(op, dtype)))
        base = td.zeros(args[0]._array.base.shape if args[0]._array.base is not None else args[0].shape)
        meta = args[0].to("meta")
        if steps(meta) != steps(args[0]):
            continue  # gaps and steps back are not kept by to("meta"), as by no copy
        real = functions[op.name](*args, **kwargs)
        got = functions[op.name](meta, *args[1:], **kwargs)
        assert steps(got) == steps(real), (sample, base.shape)
        assert got.is_contiguous() == real.is_contiguous(), sample
        shares = got.storage() is meta.storage()
        assert shares == np.shares_memory(real._array, args[0]._array) or not real.size, sample


@pytest.mark.parametrize("seed", range(40))
def test_chains_of_views(seed):
    """Random reshapes, permutations, slices and broadcasts: strides and offset stay those of the real tensor."""
    rng = np.random.default_rng(seed)
    real, meta = td.zeros((4, 6, 2)), td.zeros((4, 6, 2), device="meta")
    for _ in range(6):
        choice = rng.integers(4)
        if choice == 0:
            axes = tuple(map(int, rng.permutation(real.ndim)))
            real, meta = real.permute(axes), meta.permute(axes)
        elif choice == 1:
            sizes = list(real.shape)
            at = int(rng.integers(len(sizes) + 1))
            sizes = [*sizes[:at], 1, *sizes[at:]] if at < len(sizes) and sizes[at] % 2 else [-1, 2]
            if real.size % 2 == 0:
                real, meta = real.reshape(sizes), meta.reshape(sizes)
        elif choice == 2 and all(real.shape):
            index = tuple(
                slice(int(rng.integers(2)) * (n > 2), None, int(rng.integers(1, 3))) for n in real.shape
            )
            real, meta = real[index], meta[index]
        else:
            real, meta = td.flip(real, [0]), td.flip(meta, [0])
        assert (meta.shape, steps(meta), meta.is_contiguous()) == (
            real.shape,
            steps(real),
            real.is_contiguous(),
        )
        if real.storage_offset or real.storage().nbytes == meta.storage().nbytes:
            assert meta.storage_offset == real.storage_offset


# -- what there is, and what there is not --------------------------------------------------------------------------
def test_made_in_every_way():
    for x in (
        td.zeros((3, 4), device="meta"),
        td.empty((3, 4), device="meta:0"),
        td.asarray(np.ones((3, 4), np.float32), device="meta"),
        td.asarray([[1.0] * 4] * 3, device="meta"),
        td.ones((3, 4)).to("meta"),
        td.ones((3, 4), dtype=td.int64).to("meta", td.float32),
        td.empty_like(td.ones((3, 4)), device="meta"),
        td.ones_like(td.zeros((3, 4), device="meta")),
        meta_tensor(TensorSpec((3, 4), float32)),
        td.linspace(0, 1, 12, device="meta").reshape(3, 4),
    ):
        assert type(x) is MetaTensor
        assert x.spec == TensorSpec((3, 4), float32, "meta")
        assert (x.stride(), x.storage_offset, x.nbytes, x.storage().nbytes) == ((4, 1), 0, 48, 48)
        assert repr(x) == "tensor(..., device='meta', shape=(3, 4), dtype=float32)"
    assert td.empty_like(td.zeros((3, 4), device="meta"), device="cpu").device == "cpu"
    assert td.ones((2, 3)).T.to("meta").stride() == (1, 3)
    with pytest.raises(DeviceError, match="one meta device"):
        td.zeros(3, device="meta:1")


@pytest.mark.parametrize(
    "read",
    [
        lambda x: x.numpy(),
        lambda x: x.item(),
        lambda x: x.tolist(),
        bool,
        float,
        int,
        np.asarray,
        lambda x: x.to("cpu"),
        lambda x: td.asarray(x, device="cpu"),
        lambda x: [10][x],
        lambda x: x.__dlpack__(),
        lambda x: x.__dlpack_device__(),
        lambda x: np.add(x, np.ones(1), out=np.ones(1)),
        lambda x: td.asarray(1.0).copy_(x),
        lambda x: 1.0 in x.reshape(1),
    ],
    ids=range(15),
)
def test_meta_tensor_has_no_elements(read):
    with pytest.raises((UnsupportedError, DeviceError), match="meta"):
        read(td.asarray(1, device="meta"))


def test_other_devices_do_not_mix():
    x = td.zeros((3, 4), device="meta")
    with pytest.raises(DeviceError) as caught:
        x + td.zeros((3, 4))
    assert str(caught.value) == (
        "add: arguments are on different devices: float32[3,4] on cpu, float32[3,4] on meta; move one with .to('meta')"
    )
    with pytest.raises(DeviceError, match="matmul"):
        td.zeros((3, 3)) @ x
    with pytest.raises(DeviceError, match="no elements to write"):
        td.zeros((3, 4)).add_(x)
    with pytest.raises(DeviceError, match="on cpu"):
        x + td.asarray(1.0, requires_grad=True)
    assert (x + td.asarray(2.0)).spec == x.spec  # a constant beside it, as a Python number
    assert (x * np.float64(2.0)).dtype is float64
    assert x[[0, 2]].shape == (2, 4)
    assert x[td.asarray([True, False, True])].shape == (2, 4)
    assert x[:, td.asarray([0, 1, 1])].shape == (3, 3)
    assert x[True].shape == (1, 3, 4)


def test_written_in_place():
    x = td.zeros((3, 4), device="meta")
    row = x[1]
    assert row.storage() is x.storage()
    assert x.add_(1) is x
    row += 2
    x[0, ::2] = 5.0
    x[[0, 1]] = td.ones(4, device="meta")
    assert x.storage().version == 4
    with pytest.raises(TandemError, match="does not fit"):
        x.add_(td.ones((2, 3, 4), device="meta"))
    with pytest.raises(UnsupportedError, match="broadcast view"):
        td.broadcast_to(td.zeros(2, device="meta"), (3, 2)).add_(1)
    assert x.storage().version == 4
    assert x.at[0].set(1.0).spec == x.spec


def test_versions_and_views_with_gradients():
    w = td.ones(3, device="meta", dtype=td.float32).requires_grad_()
    y = w * 2
    z = y * y
    y.add_(1)
    with pytest.raises(VersionError):
        z.sum().backward()
    y = w * 2
    y[0] = 5.0
    part = y[1:]
    part.mul_(3)
    y.sum().backward()
    assert w.grad.spec == w.spec
    with pytest.raises(TandemError, match="leaf"):
        w.add_(1)
    assert (w.detach().requires_grad, w.detach().storage() is w.storage()) == (False, True)
    assert w.requires_grad_(False).requires_grad is False
    assert w._keys & ~(1 << td.DispatchKey.Meta) == 0


def test_copies_and_pickles():
    x = td.ones((2, 3), device="meta").requires_grad_()
    for y in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert (y.spec, y.requires_grad, y.storage() is x.storage()) == (x.spec, True, False)
    assert f"{x}" == repr(x) == "tensor(..., device='meta', shape=(2, 3), dtype=float32, requires_grad=True)"
    assert "grad_fn=mul" in repr(x * 2)


def test_a_result_that_depends_on_data_says_so():
    with pytest.raises(UnsupportedError, match="nonzero"):
        td.nonzero(td.ones(3, device="meta"))
    assert td.nonzero(td.ones(3, device="meta"), size=2)[0].shape == (2,)
    with td.Library("meta_test", "DEF") as lib:
        lib.define("twice(Tensor x) -> Tensor")
        with pytest.raises(UnsupportedError, match="no shape rule"):
            td.ops.meta_test.twice(td.ones(3, device="meta"))
        lib.impl("twice", lambda x: td.empty_like(x), "Meta")
        assert td.ops.meta_test.twice(td.ones(3, device="meta")).shape == (3,)


def test_huge_models_take_no_memory():
    w = td.zeros((2**20, 2**20), device="meta").requires_grad_()
    x = td.ones((2**10, 2**20), device="meta")
    with td.meta_memory((w, x)) as memory:
        loss = td.cross_entropy(td.relu(x @ w) @ w, td.zeros((2**10,), dtype=td.int64, device="meta"))
        loss.backward()
    assert w.grad.nbytes == 2**42
    assert memory.peak > 2 * 2**42
    before = memory.live
    w.grad = None
    assert memory.live == before - 2**42


def test_memory_counts_storages_once():
    with td.meta_memory() as memory:
        x = td.zeros(100, device="meta")
        y = x.reshape(10, 10)[1:]
        assert (memory.live, memory.allocated) == (400, 400)
        del x
        assert memory.live == 400
        del y
        assert memory.live == 0
    td.zeros(5, device="meta")
    assert (memory.peak, memory.allocated) == (400, 400)


def test_a_jitted_function_runs_on_meta():
    @td.jit
    def f(x, w, scale):
        return td.tanh(x @ w) * scale, x.shape[0]

    x, w = td.ones((2, 3), device="meta"), td.ones((3, 4), device="meta")
    y, rows_ = f(x, w, 2.0)
    assert (type(y), y.spec, rows_) == (MetaTensor, TensorSpec((2, 4), float32, "meta"), 2)
    assert f.cache_info().specializations == 0
    assert str(f.trace(x, w, 2.0)) == str(f.trace(td.ones((2, 3)), td.ones((3, 4)), 2.0))
    assert "matmul" in str(f.lower(x, w, 2.0).kernels())


def test_meta_inside_a_jitted_function_is_refused():
    with pytest.raises(UnsupportedError, match="jitted"):
        td.jit(lambda: td.zeros(3, device="meta"))()
    with pytest.raises(TandemError, match="meta"):
        td.jit(lambda x: x + td.zeros(3, device="meta"))(td.ones(3))
    with pytest.raises(DeviceError, match="is on cpu"):
        td.full(2, td.asarray(1.0), device="meta")


def test_under_vmap():
    x = td.ones((3, 4), device="meta")
    assert td.vmap(lambda v: v * v.sum())(x).spec == x.spec
    assert td.vmap(td.grad(lambda v: (v**2).sum()))(x).spec == x.spec


def test_the_page_about_layouts_says_what_happens():
    text = (Path(__file__).resolve().parents[2] / "docs" / "layouts.md").read_text()
    code = "\n".join(re.findall(r"```pycon\n(.*?)```", text, re.DOTALL))
    example = doctest.DocTestParser().get_doctest(code, {"td": td}, "layouts.md", None, 0)
    report = io.StringIO()
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    runner.run(example, out=report.write)
    assert runner.tries > 10
    assert not runner.failures, report.getvalue()


def transformer(params, tokens, targets):
    """A block of a language model: embedding, causal attention, a layer of neurons, the loss."""
    x = params["embed"][tokens]
    q, k, v = (td.layer_norm(x, (32,)) @ params[name] for name in ("query", "key", "value"))
    heads = [t.reshape(*t.shape[:-1], 4, -1).swapaxes(-3, -2) for t in (q, k, v)]
    mixed = td.scaled_dot_product_attention(*heads, is_causal=True).swapaxes(-3, -2)
    x = x + mixed.reshape(*x.shape) @ params["out"]
    x = x + td.gelu(td.layer_norm(x, (32,)) @ params["up"]) @ params["down"]
    return td.cross_entropy(x.reshape(-1, x.shape[-1]) @ params["embed"].T, targets.reshape(-1))


def test_a_whole_model_runs_without_data():
    rng = np.random.default_rng(0)
    shapes = {"embed": (50, 32), "up": (32, 128), "down": (128, 32)}
    shapes |= dict.fromkeys(("query", "key", "value", "out"), (32, 32))
    params = {name: td.asarray(rng.normal(size=s).astype(np.float32) / 8) for name, s in shapes.items()}
    tokens = td.asarray(rng.integers(0, 50, (2, 16)))
    bare = {name: x.to("meta") for name, x in params.items()}
    for step in (td.value_and_grad(transformer), td.jit(td.value_and_grad(transformer))):
        loss, slopes = step(params, tokens, tokens)
        with td.meta_memory(bare) as memory:
            no_loss, no_slopes = step(bare, tokens.to("meta"), tokens.to("meta"))
        assert (no_loss.shape, no_loss.dtype) == (loss.shape, loss.dtype)
        assert {name: (g.shape, g.dtype) for name, g in no_slopes.items()} == {
            name: (g.shape, g.dtype) for name, g in slopes.items()
        }
        assert all(type(g) is MetaTensor for g in no_slopes.values())
        needed = sum(x.nbytes for x in params.values())
        assert memory.live == 2 * needed + no_loss.nbytes
        assert memory.peak > memory.live
