"""The shapes that the CUDA printer makes a difference of: how rows, columns and tiles are shared among threads."""

import os
import zlib
from unittest import mock

import numpy as np
import pytest
import tandem as td
from cuda_host.build import HostModule, missing_compiler, run_program
from cuda_host.programs import Program, check_batch, compile_nvrtc, ptx_of, thread_program
from lowering_harness import close, eager, graph_of
from tandem.backends.cuda.emit import complex_nodes, tiles
from tandem.backends.cuda.emit.kernel import module_source
from tandem.backends.cuda.emit.nodes import EMIT
from tandem.lowering import recomputed
from tandem.operators.expr import NODES

pytestmark = pytest.mark.skipif(missing_compiler() is not None, reason=missing_compiler() or "")

SEED = int(os.environ.get("TANDEM_TEST_SEED", "0"))


def array(*shape, dtype="float32"):
    rng = np.random.default_rng(zlib.crc32(f"{shape} {dtype}".encode()))
    values = rng.normal(size=shape) * 3
    if dtype == "bfloat16":
        return np.asarray(values, td.bfloat16.np)
    return np.asarray(values > 0 if dtype == "bool" else np.abs(values) if dtype[0] == "u" else values, dtype)


def norm(x):
    return td.layer_norm(x, (x.shape[-1],))


def weighted(x, w, b):
    return td.layer_norm(
        x, (x.shape[-1],), td.astype(w * 2, x.dtype), td.broadcast_to(td.astype(b, x.dtype), x.shape[-1:])
    )


def norm_gradients(x, w, b, g):
    return td.vjp(lambda x, w, b: td.layer_norm(x, (x.shape[-1],), w, b), x, w, b)[1](g)


def loss(x):
    picked = td.sum(td.log_softmax(x) * 0.25, -1)
    return td.mean(picked), picked


def gelu(x, w, b):
    return td.gelu(x * w + b)


def turned(x, y):
    return td.permute(x, tuple(range(len(x.shape)))[::-1]) * 2 + y


def copied(x):
    return td.reshape(td.permute(x, (1, 0, 2)), (-1,))


def stats(x):
    return td.argmax(x, -1), td.min(x, -1), td.any(x, -1), td.sum(x, -1)


def ends(x):
    return td.argmin(x, 0), td.max(x, 0), td.all(x, 0), td.prod(td.sign(x), 0)


def middle(x):
    return td.var(x, (0, 2)), td.sum(x, (0, 2))


def multiples(x):
    return tuple(x * float(k) for k in range(40))


def softmax0(x):
    return td.softmax(x, 0)


CASES = {
    # elementwise: whole vectors, a tail, rows whose vectors are aligned and rows whose are not, one element, none
    "gelu_vectors": (gelu, [array(8, 512)] * 3),
    "gelu_tail": (gelu, [array(7, 143)] * 3),
    "gelu_rows": (gelu, [array(9, 64), array(64), array(9, 1)]),
    "gelu_odd_rows": (gelu, [array(9, 65), array(65), array(9, 1)]),
    "gelu_many": (gelu, [array(520, 513), array(513), array(520, 1)]),
    "gelu_many_halves": (gelu, [array(520, 515, dtype="float16"), array(515, dtype="float16"), 0.5]),
    "gelu_one": (gelu, [array(1)] * 3),
    "gelu_none": (gelu, [array(0, 3)] * 3),
    "gelu_halves": (gelu, [array(33, 40, dtype="float16")] * 3),
    "gelu_bfloats": (gelu, [array(33, 41, dtype="bfloat16")] * 3),
    "mixed_types": (
        lambda x, y: td.astype(x, td.float64) + td.astype(y, td.float64),
        [array(70, 9, dtype="int8"), array(70, 9)],
    ),
    "scalars": (lambda x, s: x * s + s, [array(50), 2.5]),
    "flipped": (lambda x: td.flip(x, 1) + x, [array(20, 33)]),
    # tiles
    "turned": (turned, [array(40, 65), array(65, 40)]),
    "turned_3d": (turned, [array(33, 5, 64), array(64, 5, 33)]),
    "copied": (copied, [array(50, 40, 30)]),
    "pairs": (turned, [array(70, 130), array(130, 70)]),
    "pairs_3d": (turned, [array(66, 5, 64), array(64, 5, 66)]),
    "pairs_bfloats": (turned, [array(128, 64, dtype="bfloat16"), array(64, 128, dtype="bfloat16")]),
    "pairs_bytes": (lambda x: td.permute(x, (1, 0)) ^ 3, [array(70, 64, dtype="uint8")]),
    "turned_small": (turned, [array(5, 65), array(65, 5)]),
    # numbers that are counted where they are read, or in a kernel of their own
    "counted": (lambda x: td.arange(5000) * 2 == x, [array(3, 5000, dtype="int64")]),
    "counted_floats": (
        lambda x: td.sum(x * td.arange(0.5, 0.1, -1e-4, dtype=td.float32)[:2500], -1),
        [array(3, 2500)],
    ),
    "counted_classes": (
        lambda x, t: td.cross_entropy(x, t, reduction="none"),
        [array(40, 200), array(40, dtype="uint8")],
    ),
    "counted_rows": (lambda x: td.softmax(x + td.reshape(td.arange(3, 9003, 2), (-1, 1))), [array(4500, 8)]),
    "counted_alone": (lambda x: (td.arange(7000, dtype=td.bfloat16), x + 1), [array(2)]),
    # rows: a thread, some lanes, a warp, a block for each; partial warps; vectors or not
    **{
        f"softmax_{n}": (td.softmax, [array(6, n)])
        for n in (1, 2, 3, 4, 7, 31, 33, 128, 500, 1000, 1001, 4096)
    },
    **{f"norm_{n}": (norm, [array(5, n)]) for n in (4, 100, 768, 1023)},
    "norm_bfloats": (norm, [array(5, 1024, dtype="bfloat16")]),
    "norm_halves": (norm, [array(5, 1023, dtype="float16")]),
    "softmax_large": (td.softmax, [array(2, 20000)]),
    "softmax_huge": (td.softmax, [array(2, 70000)]),
    "softmax_doubles": (td.softmax, [array(40, 12000, dtype="float64")]),
    "norm_weights": (weighted, [array(5, 768, dtype="bfloat16"), *[array(768, dtype="bfloat16")] * 2]),
    **{
        f"norm_gradients_{dtype}": (
            norm_gradients,
            [array(*shape, dtype=dtype) for shape in ((90, 256), (256,), (256,), (90, 256))],
        )
        for dtype in ("float32", "bfloat16")
    },
    "norm_expressions": (weighted, [array(5, 100), array(100, dtype="float16"), array(1, dtype="float16")]),
    "columns_weights": (
        lambda x, w: td.sum(x * td.astype(w, td.float32), 0),
        [array(90, 40), array(90, 1, dtype="int8")],
    ),
    "pieces": (lambda x, y: td.sum(x.at[1:3].set(7.0) + td.concat([y, y]), 1), [array(6, 40), array(3, 40)]),
    "loss": (loss, [array(37, 100)]),
    "many_rows": (stats, [array(700, 24)]),
    "stats_ints": (stats, [array(13, 97, dtype="int16")]),
    "stats_bytes": (stats, [array(13, 97, dtype="uint8")]),
    "stats_halves": (stats, [array(13, 96, dtype="float16")]),
    "no_elements_3d": (lambda x: td.sum(td.permute(x, (1, 0, 2)), (1, 2)), [array(0, 4, 3)]),
    "quotients": (lambda x: x / td.sum(x, -1, keepdims=True), [array(5, 40) * np.float32(1e30)]),
    "small_quotients": (
        lambda x: x / td.max(td.abs(x), -1, keepdims=True),
        [array(5, 40) * np.float32(1e-40)],
    ),
    "no_elements": (lambda x: (td.sum(x, 1), td.any(x, 1)), [array(4, 0)]),
    # columns
    **{f"columns_{n}": (ends, [array(n, 50)]) for n in (1, 2, 9, 100, 3000)},
    "columns_long": (lambda x: (td.sum(x, 0), td.argmax(x, 0)), [array(5003, 40)]),
    "columns_long_bfloats": (lambda x: td.var(x, 0), [array(4096, 40, dtype="bfloat16")]),
    "columns_wide": (ends, [array(20, 700)]),
    "columns_few": (ends, [array(100, 3)]),
    "middle": (middle, [array(6, 40, 30)]),
    "middle_short": (middle, [array(6, 40, 3)]),
    **{f"softmax0_{n}": (softmax0, [array(n, 40)]) for n in (3, 64, 700)},
    "softmax0_few": (softmax0, [array(300, 5)]),
    "turned_rows": (lambda x: td.softmax(td.permute(x, (1, 0))), [array(60, 70)]),
    # reductions that several blocks share
    "whole": (lambda x: (td.sum(x), td.max(x)), [array(100000)]),
    "whole_odd": (lambda x: (td.sum(x), td.argmax(x)), [array(65537)]),
    "whole_tail": (lambda x: (td.var(x), td.argmin(x)), [array(100003, dtype="bfloat16")]),
    "whole_small": (stats, [array(1000)]),
    "whole_rows": (stats, [array(2, 50000)]),
    "whole_columns": (ends, [array(20000, 7)]),
    "whole_twice": (lambda x: td.var(x), [array(30000)]),
}
SAMPLED = [name for name in CASES if zlib.crc32(f"{SEED} {name}".encode()) % 3 == 0]
SHARING = [
    "softmax_1001",
    "softmax_33",
    "norm_768",
    "columns_100",
    "softmax0_64",
    "turned",
    "whole_rows",
    "middle",
]


RACES = [name for k, name in enumerate(SHARING) if k % 4 == SEED % 4]


def programs(names, aligned=True):
    return {
        name: Program(graph_of(CASES[name][0], *CASES[name][1]), f"n{number}", aligned)
        for number, name in enumerate(names)
    }


def check_cases(names, aligned=True):
    with np.errstate(all="ignore"):
        found = programs(names, aligned)
        module = check_batch([k for one in found.values() for k in one.written()])
        for name, one in found.items():
            function, args = CASES[name]
            got, want = one.run(module, list(args)), eager(function, *args)
            try:
                close(
                    [g.astype(w.dtype) for g, w in zip(got, want, strict=True)], want, rtol=_tolerance(want)
                )
            except AssertionError as error:
                raise AssertionError(f"{name}: {error}") from error


def _tolerance(arrays):
    """NumPy's own sums of float32 are off by some units in the sixth digit."""
    return 2e-4 if all(a.dtype.itemsize >= 4 for a in arrays) else None


def test_every_node_has_code():
    """Those of complex numbers alone have theirs."""
    assert {name for name, row in NODES.items() if row.kinds != "c" and row.result != "complex"} == set(EMIT)
    complex_alone = {name for name, row in NODES.items() if "c" in row.kinds or row.result == "complex"}
    assert complex_alone == set(complex_nodes.EMIT)


def test_large_arrays_have_wide_indices():
    def index_types(function, shape):
        whole = np.lib.stride_tricks.as_strided(np.zeros(1, np.float32), shape, (0,) * len(shape))
        text = module_source(Program(graph_of(function, whole), "n0").written())
        assert compile_nvrtc(text, 90) == ""
        return "long long" in text.split("__global__")[1]

    for function in (lambda x: x + 1, td.sum, lambda x: td.softmax(x), lambda x: td.sum(x, 0)):
        assert index_types(function, (65536, 40000))
        assert not index_types(function, (1024, 40000))


def test_sampled_kernels():
    check_cases(SAMPLED)


@pytest.mark.parametrize(("shape", "axis"), [((200000,), 0), ((2, 60000), 1), ((30000, 33), 0)])
def test_sums_are_as_good_as_pairwise_ones(shape, axis):
    x = np.random.default_rng(SEED).uniform(size=shape).astype(np.float32)
    one = Program(graph_of(lambda x: td.sum(x, axis), x), "n0")
    (got,) = one.run(check_batch(one.written(), (90,)), [x])
    exact, pairwise = np.sum(x, axis, dtype=np.float64), np.sum(x.T if axis == 0 else x, -1)
    assert np.max(np.abs(got - exact)) <= np.max(np.abs(pairwise - exact)) + np.spacing(
        np.float32(exact.max())
    )


def test_data_that_is_not_aligned():
    check_cases(
        ["gelu_vectors", "gelu_rows", "gelu_halves", "softmax_128", "norm_768", "whole_rows", "middle"], False
    )


def test_tiles_of_pairs():
    names = ["pairs", "pairs_3d", "pairs_bfloats", "pairs_bytes"]
    with mock.patch.object(tiles, "ENOUGH_TILES", 1):
        found = programs(names)
        assert all("load<2>" in module_source(one.written()) for one in found.values())
        check_cases(names)


@pytest.mark.full
@pytest.mark.parametrize("part", range(4))
def test_every_kernel(part):
    check_cases(list(CASES)[part::4])


@pytest.mark.full
@pytest.mark.parametrize("part", range(4))
def test_every_kernel_on_data_that_is_not_aligned(part):
    check_cases(list(CASES)[part::4], False)


def raced(names, change=lambda source: source):
    """What ThreadSanitizer says of the kernels on threads of the operating system."""
    found = programs(names)
    launches = [launch for one in found.values() for launch in one.launches()]
    return run_program(thread_program(launches, change))


def test_threads_do_not_race():
    assert "data race" not in raced(RACES)


@pytest.mark.full
@pytest.mark.parametrize("name", SHARING)
def test_threads_of_no_kernel_race(name):
    assert "data race" not in raced([name])


def test_a_race_is_found():
    """A kernel without its barrier: the sanitizer says so, and so does the order in which the shim runs threads."""

    def without(source):
        return source.replace("__syncthreads();", "")

    assert "data race" in raced(["softmax_1001"], without)
    one = programs(["softmax_1001"])["softmax_1001"]
    module = HostModule(without(module_source(one.written())))
    with pytest.raises(AssertionError, match="order in which threads run"):
        one.run(module, CASES["softmax_1001"][1])


@pytest.mark.parametrize(
    "name", ["counted", "counted_classes", "norm_weights", "norm_expressions", "columns_weights"]
)
def test_operands_are_prepared_where_they_are_read(name):
    (step,) = programs([name])[name].steps
    assert len(step.params) == len(CASES[name][1]) + 1


def test_what_is_a_result_anyway_is_not_told_from_arrays():
    """For each value that takes a look at all that its kernel stores."""
    with mock.patch.object(recomputed, "_told", side_effect=AssertionError("a result was looked at")):
        (kernel,) = Program(graph_of(multiples, array(1000)), "n0").written()
    assert len(kernel.params) == 41


def test_values_are_computed_again_where_that_moves_fewer_bytes():
    """``layer_norm`` forward and backward: 8 arrays are passed over, with the stores and loads of more it were 13."""
    one = programs(["norm_gradients_float32"])["norm_gradients_float32"]
    passes = [sum(v.spec.size == 90 * 256 for v in step.params) for step in one.steps]
    assert sum(passes) <= 8
    check_cases(["norm_gradients_float32", "norm_gradients_bfloat16"])


def text_of(name):
    return module_source(next(iter(programs([name]).values())).written())


@pytest.mark.parametrize("name", ["gelu_vectors", "gelu_rows", "softmax_4096", "norm_768", "whole"])
def test_memory_is_accessed_in_16_bytes(name):
    ptx = ptx_of(text_of(name), 90)
    assert "ld.global.nc.v4" in ptx
    assert ("st.global.v4" in ptx) == (name != "whole")


def test_no_kernel_keeps_registers_in_memory():
    kernels = [
        k
        for one in programs(
            [
                "gelu_vectors",
                "gelu_bfloats",
                "softmax_4096",
                "norm_768",
                "norm_bfloats",
                "softmax0_64",
                "turned",
                "whole",
            ]
        ).values()
        for k in one.written()
    ]
    log = compile_nvrtc(module_source(kernels), 90, verbose=True)
    spills = [line for line in log.splitlines() if "spill" in line]
    assert len(spills) >= len(kernels)
    assert all("0 bytes spill stores, 0 bytes spill loads" in line for line in spills), log
