"""Schedules of CUDA kernels: how threads share rows, columns and tiles."""

import zlib
from unittest import mock

import numpy as np
import pytest
import tandem as td
from cuda_host.build import HostModule, missing_compiler, run_program
from cuda_host.programs import ARCHITECTURES, Program, check_batch, compile_nvrtc, ptx_of, thread_program
from cuda_kernel_cases import CASES, SEED, array, check_cases, programs
from lowering_harness import graph_of
from tandem.backends.cuda.codegen import complex_nodes, tiles
from tandem.backends.cuda.codegen.kernel import module_source
from tandem.backends.cuda.codegen.nodes import EMIT
from tandem.lowering.passes import rematerialize
from tandem.operators.scalar_ir.expr import NODES

pytestmark = pytest.mark.skipif(missing_compiler() is not None, reason=missing_compiler() or "")


def multiples(x):
    return tuple(x * float(k) for k in range(40))


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


RACES = [name for k, name in enumerate(SHARING) if k % 8 == SEED % 8]


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
    check_cases(list(CASES)[part::4], architectures=ARCHITECTURES)


@pytest.mark.full
@pytest.mark.parametrize("part", range(4))
def test_every_kernel_on_data_that_is_not_aligned(part):
    check_cases(list(CASES)[part::4], False, ARCHITECTURES)


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


def test_many_results_skip_search_of_earlier_stores():
    """For each value that takes a look at all that its kernel stores."""
    with mock.patch.object(
        rematerialize, "_reuse_earlier_stores", side_effect=AssertionError("a result was looked at")
    ):
        (kernel,) = Program(graph_of(multiples, array(1000)), "n0").written()
    assert len(kernel.params) == 41


def test_rematerialization_moves_fewer_bytes():
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
