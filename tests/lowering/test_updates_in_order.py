"""Updates of a row that read its elements ahead of those that they write, in place."""

import numpy as np
import pytest
import tandem as td
from hypothesis import given, settings
from hypothesis import strategies as st
from tandem.backends.cpu import fastpath

native = pytest.mark.skipif(bool(fastpath.why_off()), reason="graphs are interpreted")


def draw(size, dtype=np.float32):
    return td.asarray((np.random.default_rng(0).standard_normal(size) * 50).astype(dtype))


def repeated(step, count=5):
    return td.jit(lambda x: td.fori_loop(0, count, lambda i, x: step(x), x))


def kernels(function, x):
    """The calls of kernels and of copies in the body of a loop."""
    lines = function.lower(x).llvm_ir().split("@b0_body(ptr %buffers", 1)[1].splitlines()
    body = lines[: lines.index("}")]
    return [line for line in body if "call void @b0_k" in line or "memcpy" in line]


def check(step, x, count=5):
    wanted = x
    for _ in range(count):
        wanted = step(wanted)
    result = repeated(step, count)(x)
    assert result.tobytes() == wanted.tobytes()
    once, first = td.jit(step)(x), step(x)
    assert once.tobytes() == first.tobytes()


@settings(max_examples=80)
@given(st.data())
def test_shifted_updates_equal_eager_calls(data):
    size = data.draw(st.integers(1, 45), label="size")
    count = data.draw(st.integers(1, size), label="elements")
    start = data.draw(st.integers(0, size - count), label="first element written")
    shifts = data.draw(
        st.lists(st.integers(-start, size - count - start), min_size=1, max_size=3), label="shifts"
    )
    step = data.draw(st.sampled_from([1, 1, 2, 3]), label="distance")
    dtype = data.draw(
        st.sampled_from([np.float32, np.float64, np.int8, np.int64, np.complex64]), label="dtype"
    )
    accumulates = data.draw(st.booleans(), label="accumulates")

    def update(x):
        parts = [x[start + shift : start + shift + count : step] for shift in shifts]
        value = parts[0] if len(parts) == 1 else sum(part * k for k, part in enumerate(parts, 2))
        target = x.at[start : start + count : step]
        return target.add(value) if accumulates else target.set(value)

    check(update, draw(size, dtype))


@native
@pytest.mark.parametrize("size", [7, 100, 2000])
def test_one_kernel_without_copies(size):
    steps = {
        "binomial tree": lambda x: x.at[:-1].set(td.maximum(0.5 * (x[1:] + x[:-1]), 0.25)),
        "shift register": lambda x: x.at[:-1].set(x[1:]),
        "differences": lambda x: x.at[:-2].set(x[2:] - x[1:-1] * x[:-2]),
    }
    for step in steps.values():
        assert len(kernels(repeated(step), draw(size))) == 1
        check(step, draw(size))


@pytest.mark.parametrize("size", [7, 100, 2000])
def test_elements_behind_are_read_from_a_copy(size):
    for step in (
        lambda x: x.at[1:].set(x[:-1]),
        lambda x: x.at[1:].add(x[:-1]),
        lambda x: x.at[1:-1].set(x[2:] + x[:-2]),
        lambda x: x.at[:-1].set(x[1:][::-1]),
    ):
        check(step, draw(size))


def test_donated_memory_is_updated_in_order():
    def step(x):
        return x.at[:-1].set(x[1:] * 2 + x[:-1])

    for size in (2, 33, 1000):
        x = draw(size)
        wanted = step(x).tobytes()
        assert td.jit(step, donate_argnums=0)(x.clone()).tobytes() == wanted
