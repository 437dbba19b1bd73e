"""The CUDA runtime: memory accounting, streams, events, transfers, errors; on the test double of the driver."""

import gc
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import tandem as td
from cuda_host import build
from rotation import one_each_commit
from tandem import errors
from tandem.backends.cuda.codegen.kernel import module_source
from tandem.backends.cuda.kernels import sources
from tandem.backends.cuda.runtime import compiler, driver, launching, memory, streams, toolkit
from tandem.backends.cuda.runtime.arrays import contiguous_layout, layout_of
from tandem.backends.cuda.runtime.devices import device_at


# -- the driver's table ------------------------------------------------------------------------------------------------
def test_a_fault_has_the_drivers_name_and_text(cuda):
    found = toolkit.toolkit().driver
    with pytest.raises(
        errors.CudaError, match="cuMemcpyDtoDAsync_v2: CUDA_ERROR_ILLEGAL_ADDRESS: a copy outside"
    ):
        device_at(0).make_current()
        found.cuMemcpyDtoDAsync_v2(16, 32, 8, None)
    with pytest.raises(errors.CudaError, match="unknown error 12345"):
        raise found.fault("cuInit", 12345)
    with pytest.raises(AttributeError, match="cuNothing"):
        found.cuNothing()
    with pytest.raises(
        errors.CudaError, match="memcpyAsync: cuMemcpyDtoDAsync_v2: CUDA_ERROR_ILLEGAL_ADDRESS"
    ):
        device_at(0).runtime.memcpyAsync(16, 32, 8, 3, 0)
    assert set(driver.PROTOTYPES) == {name for name in driver.PROTOTYPES if hasattr(cuda, name)}


def test_properties(cuda):
    assert td.cuda.is_available()
    assert td.cuda.device_count() == 2
    assert td.cuda.get_device_name(1) == "host test double"
    assert td.cuda.get_device_capability("cuda:0") == (9, 0)
    assert td.cuda.get_device_properties().warp_size == 32
    assert td.cuda.why_unavailable() == ""
    assert td.cuda.mem_get_info()[1] == 1 << 30
    with pytest.raises(errors.ArgumentError, match="cuda:1"):
        td.cuda.get_device_name(1.5)


def test_the_current_device(cuda):
    assert td.cuda.current_device() == 0
    with td.cuda.device(1):
        assert td.ones(2, device="cuda").device == "cuda:1"
        with td.cuda.device("cuda:0"):
            assert td.ones(2, device="cuda").device == "cuda:0"
        assert td.cuda.current_device() == 1
    seen = []
    td.cuda.set_device(1)
    thread = threading.Thread(target=lambda: seen.append(td.cuda.current_device()))
    thread.start()
    thread.join()
    assert (seen, td.cuda.current_device()) == ([0], 1)
    td.cuda.set_device(0)


# -- transfers ---------------------------------------------------------------------------------------------------------
def test_pinned_memory(cuda):
    x = td.arange(10).pin_memory()
    assert x.device == "cpu"
    assert x.tolist() == list(range(10))
    y = x.to("cuda", non_blocking=True)
    z = (y + 1).to("cpu", non_blocking=True)
    td.synchronize()
    assert z.tolist() == list(range(1, 11))
    pinned, freed = cuda.host_count(b"pinned"), cuda.host_count(b"unpinned")
    view = x[2:4].numpy()
    del x
    assert cuda.host_count(b"unpinned") == freed
    assert view.tolist() == [2, 3]
    del view
    gc.collect()
    assert cuda.host_count(b"unpinned") == freed + 1
    assert pinned >= 1
    with pytest.raises(errors.ArgumentError, match="takes a CPU tensor"):
        y.pin_memory()


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (5,), (3, 4), (2, 1, 3)])
def test_any_layout_comes_back(cuda, shape):
    array = np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape)
    x = td.asarray(array).to("cuda")
    assert np.array_equal(x.to("cpu").numpy(), array)
    assert np.array_equal(td.permute(x, tuple(reversed(range(len(shape))))).to("cpu").numpy(), array.T)
    if shape and shape[0]:
        assert np.array_equal(x[::-2].to("cpu").numpy(), array[::-2])
    wide = td.broadcast_to(x, (2, *shape)).to("cpu").numpy()
    assert np.array_equal(wide, np.broadcast_to(array, (2, *shape)))
    assert 0 not in wide.strides[:1] or not wide.size


def test_layouts_are_shared_objects():
    one = layout_of((2, 3), (3, 1), td.float32, 0)
    assert one is contiguous_layout((2, 3), td.float32, 0)
    assert one is not contiguous_layout((2, 3), td.float32, 1)
    assert layout_of((2, 3), (-3, 1), td.float32, 0).span() == (-12, 12)


def test_a_module_that_does_not_compile(cuda):
    with pytest.raises(RuntimeError, match="refused"):
        launching.Module('extern "C" __global__ void f(int *out) { out[0] = missing; }', device_at(0))
    with pytest.raises(errors.CudaError, match="CUDA_ERROR_NOT_FOUND"):
        launching.Module('extern "C" __global__ void f(int *out) { out[0] = 1; }', device_at(0)).function("g")


ARCHITECTURES = ("sm_75", "sm_80", "sm_90", "sm_100")
TEXTS = [
    *("winners", "nonzero_places", "philox_words", "philox_fold", "philox_key"),
    *("order_tile", "order_words", "order_count", "order_sum", "order_move"),
    *(f"{name}_{size}" for name in ("gather", "scatter", "fill") for size in sources.TYPES),
    *(f"scatter_add_{name}" for name in sources.ADDED),
    *(
        f"{name}_{combine}_float{bits}"
        for name in ("runs", "join")
        for combine in ("add", "mul")
        for bits in (32, 64)
    ),
    *("count_up_uint64", "count_up_float64"),
    *(f"pick_{name}" for name in sources.NUMBERS),
]


@pytest.mark.parametrize("share", [5, pytest.param(1, marks=pytest.mark.full)])
@pytest.mark.once
@pytest.mark.parametrize("arch", one_each_commit(*ARCHITECTURES))
def test_nvrtc_compiles_handwritten_kernels(arch, share):
    pytest.importorskip("cupy", reason="NVRTC comes through cupy: pip install 'tandem-dispatch[cuda]'")
    first = int(os.environ.get("TANDEM_TEST_SEED", "0")) % share
    with td.config.override(cache=False):
        for name in TEXTS[first::share]:
            image = Path(compiler.nvrtc_file(module_source([sources.kernel(name)]), arch)).read_bytes()
            assert name.encode() in image


def test_kernels_of_users(cuda):
    source = """extern "C" __global__ void scaled(const float *x, float *out, long long n, float by) {
        const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) out[i] = by * x[i];
    }
    extern "C" __global__ void doubled(float *x, int n) {
        const int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) x[i] *= 2;
    }"""
    op = td.custom_op("cudatest::scaled", schema="(Tensor x, float by) -> Tensor")(lambda x, by: x * by)
    op.register_fake(lambda x, by: td.empty_like(x))
    op.register_kernel(
        "cuda",
        td.cuda_kernel(source, "scaled", "void(const float *x, float *out, int64_t out.size, float by)"),
    )
    x = td.arange(600, device="cuda", dtype=td.float32).reshape((20, 30))
    assert op(x.T, 3.0).tolist() == (x.T * 3).tolist()
    assert op(x[:0], 3.0).shape == (0, 30)
    with pytest.raises(errors.DTypeError, match="float32"):
        op(x.astype(td.float64), 3.0)
    with pytest.raises(errors.DeviceError, match="CUDA device"):
        td.ops.cudatest.scaled.default.call_for_key("CUDA", td.ones(3), 2.0)
    twice = td.custom_op("cudatest::doubled", schema="(Tensor(a!) x) -> ()")(lambda x: x.mul_(2))
    twice.register_kernel("cuda", td.cuda_kernel(source, "doubled", "void(float *x, int x.size)"))
    y = td.ones((4, 6), device="cuda")
    twice(y.T)
    twice(y[:, ::2])
    assert y.tolist() == [[4.0, 2.0] * 3] * 4


def test_kernels_of_users_are_compiled_as_nvcc_does(cuda):
    source = """extern "C" __global__ void line(const float *x, float *out, int n) {
        const int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) out[i] = x[i] * 3 + 1;
    }"""
    op = td.custom_op("cudatest::line", schema="(Tensor x) -> Tensor")(lambda x: x * 3 + 1)
    op.register_fake(lambda x: td.empty_like(x))
    op.register_kernel("cuda", td.cuda_kernel(source, "line", "void(const float *x, float *out, int x.size)"))
    now, seen = toolkit.toolkit(), {}

    def compile(text, arch, options):
        seen[text] = options
        return now.compile(text, arch, options)

    with toolkit.install(now._replace(compile=compile)):
        x = td.ones(5, device="cuda")
        assert td.jit(lambda x: op(x) + x)(x).tolist() == [5.0] * 5
    assert not any("fmad" in option for option in seen.pop(source))
    assert seen
    assert all("--fmad=false" in options for options in seen.values())


def test_compiler_options_change_the_cache_entry():
    pytest.importorskip("cupy", reason="NVRTC comes through cupy: pip install 'tandem-dispatch[cuda]'")
    source = 'extern "C" __global__ void line(float *x, float y, float z) { x[threadIdx.x] = x[threadIdx.x] * y + z; }'
    paths = [compiler.nvrtc_file(source, "sm_90", o) for o in (compiler.OPTIONS, compiler.USER_OPTIONS)]
    assert len({Path(path).read_bytes() for path in paths}) == 2


def test_state_is_rebuilt_for_another_toolkit(cuda):
    x = td.ones(3, device="cuda")
    streams.default_stream()
    handle = toolkit.install(toolkit.toolkit()._replace(name="another"))
    assert td.ones(3, device="cuda").tolist() == [1.0] * 3
    handle.remove()
    assert x.tolist() == [1.0] * 3


def test_threads_enter_one_stream(cuda):
    """What a thread comes back to is what it has left, whoever else is inside the same stream."""
    both, mine = td.cuda.Stream(), td.cuda.Stream()
    first_is_inside, second_is_inside, first_is_out, found = *(threading.Event() for _ in range(3)), []

    def first():
        with both:
            first_is_inside.set()
            second_is_inside.wait(10)
        found.append(td.cuda.current_stream())
        first_is_out.set()

    def second():
        with mine:
            first_is_inside.wait(10)
            with both:
                second_is_inside.set()
                first_is_out.wait(10)
            found.append(td.cuda.current_stream())

    threads = [threading.Thread(target=one) for one in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [td.cuda.default_stream(), mine]


def test_counts_of_memory_are_exact_in_threads(cuda):
    pool = memory.pool_of(td.cuda.default_stream())
    before, often = td.cuda.memory_stats(), sys.getswitchinterval()

    def take():
        for _ in range(2000):
            pool.get(100)

    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=take) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(often)
    after = td.cuda.memory_stats()
    assert {name: after[name] - before[name] for name in ("requests", "returned", "allocated", "blocks")} == {
        "requests": 8000,
        "returned": 8000,
        "allocated": 0,
        "blocks": 0,
    }


def test_unknown_context_is_not_restored(cuda, monkeypatch):
    """A driver that cannot say which context is current leaves the device's own."""
    at = device_at(0)
    at.make_current()
    real = driver.Driver.function
    failing = {"cuCtxGetCurrent": lambda place: 700}
    monkeypatch.setattr(driver.Driver, "function", lambda self, name: failing.get(name) or real(self, name))
    with at.as_current():
        pass
    monkeypatch.undo()
    assert td.ones(3, device="cuda").tolist() == [1.0] * 3


GONE = """
import gc
import tandem as td
from cuda_host.host import host_library, host_toolkit
from tandem.backends.cuda import load
from tandem.backends.cuda.runtime import toolkit

library = host_library()
with toolkit.install(host_toolkit(library)), td.config.override(cuda_caching=False):
    left = [td.ones(3, device="cuda")]  # made before there is machine code
    load.unload()
with toolkit.install(host_toolkit(library)), td.config.override(cuda_caching=True):
    x = td.ones(3, device="cuda")
    for _ in range(40):
        y = x + x
    left.clear()
    gc.collect()
    assert (x + x).tolist() == [2.0] * 3
print("alive")
"""


def test_buffers_of_removed_toolkit_are_freed(cuda):
    found = subprocess.run(
        [sys.executable, "-c", GONE],
        cwd=Path(build.__file__).parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (found.stdout, found.returncode) == ("alive\n", 0), found.stderr
