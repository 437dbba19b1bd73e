"""``td.autocast`` as a context and a decorator."""

import threading

import numpy as np
import pytest
import tandem as td
from tandem.registry.dtypes import bfloat16, float16, float32, float64


def random(*shape, dtype=float32):
    rng = np.random.default_rng(len(shape) + sum(shape))
    return td.asarray(rng.uniform(-1, 1, shape).astype(np.float32)).astype(dtype)


# --- the context ------------------------------------------------------------------------------------------


def test_on_off_and_nested():
    x = random(3, 3)
    with td.autocast("cpu"):
        assert td.is_autocast_enabled() and not td.is_autocast_enabled("cuda")
        assert (x @ x).dtype is bfloat16
        with td.autocast("cpu", enabled=False):
            assert not td.is_autocast_enabled()
            assert (x @ x).dtype is float32
            with td.autocast("cpu", td.float16):
                assert (x @ x).dtype is float16
            assert (x @ x).dtype is float32
        with td.autocast("cuda"):
            assert (x @ x).dtype is bfloat16
        with td.autocast("cpu", "float16"):
            assert (x @ x).dtype is float16
        assert (x @ x).dtype is bfloat16
    assert not td.is_autocast_enabled()
    assert (x @ x).dtype is float32


def test_of_another_device_leaves_the_cpu_alone():
    x = random(3, 3)
    with td.autocast("cuda"):
        assert (x @ x).dtype is float32
        assert td.exp(random(2, dtype=bfloat16)).dtype is bfloat16


def test_meta_tensors():
    x = td.zeros((3, 3), device="meta")
    with td.autocast("meta"):
        assert (x @ x).dtype is bfloat16
    with td.autocast("cpu"):
        assert (x @ x).dtype is float32


def test_what_is_left_alone():
    with td.autocast("cpu"):
        assert (random(2, 2, dtype=float64) @ random(2, 2, dtype=float64)).dtype is float64
        assert (td.ones((2, 2), dtype=td.int32) @ td.ones((2, 2), dtype=td.int32)).dtype is td.int32
        assert (
            td.ones((2, 2), dtype=td.complex64) @ td.ones((2, 2), dtype=td.complex64)
        ).dtype is td.complex64
        assert (random(2, 2) @ random(2, 2, dtype=float64)).dtype is float64
        assert td.exp(random(2, dtype=float64)).dtype is float64
        assert (random(2, dtype=bfloat16) + random(2, dtype=bfloat16)).dtype is bfloat16


def test_sparse_and_quantized_tensors_keep_their_kernels():
    x = random(3, 3)
    with td.autocast("cpu"):
        assert (x.to_sparse() @ x).dtype is float32
        assert td.quantize_per_tensor(x, 0.1, 0, td.int8).dequantize().dtype is float32


def test_restored_after_an_exception():
    with pytest.raises(ZeroDivisionError), td.autocast("cpu"):
        raise ZeroDivisionError
    assert not td.is_autocast_enabled()
    assert (random(2, 2) @ random(2, 2)).dtype is float32
    with td.autocast("cpu"):
        with pytest.raises(ValueError, match="inner sizes"):
            random(2, 3) @ random(2, 3)
        assert (random(2, 2) @ random(2, 2)).dtype is bfloat16


def test_as_a_decorator_and_entered_again():
    @td.autocast("cpu")
    def product(x):
        """doc"""
        return x @ x

    assert product(random(2, 2)).dtype is bfloat16 and product.__doc__ == "doc"
    block = td.autocast("cpu")
    with block, block:
        assert (random(2, 2) @ random(2, 2)).dtype is bfloat16
    assert not td.is_autocast_enabled()


def test_is_of_one_thread():
    seen = []
    with td.autocast("cpu"):
        thread = threading.Thread(target=lambda: seen.append((random(2, 2) @ random(2, 2)).dtype))
        thread.start()
        thread.join()
    assert seen == [float32]


def test_bad_arguments():
    with pytest.raises(ValueError, match="unknown device"):
        td.autocast("tpu")
    with pytest.raises(TypeError, match="lowers to"):
        td.autocast("cpu", td.float32)
    with pytest.raises(TypeError, match="decorates functions"):
        td.autocast("cpu")(3)
    with pytest.raises(TypeError, match="operator"):
        td.autocast.set_policy(len, "lower")
    with pytest.raises(ValueError, match="policy is one of"):
        td.autocast.set_policy(td.exp, "higher")


def test_the_key_included_by_hand_uses_the_defaults():
    with td.include_keys("Autocast"):
        assert (random(2, 2) @ random(2, 2)).dtype is bfloat16
        assert not td.is_autocast_enabled()


def test_promote_type():
    half, full = random(2, dtype=bfloat16), random(2)
    with td.autocast("cpu"):
        assert td.autocast.promote_type(bfloat16, half, half) is bfloat16
        assert td.autocast.promote_type(bfloat16, half, full, 3, None) is float32
        assert td.autocast.promote_type(bfloat16, half, random(2, dtype=float64)) is bfloat16
        assert td.concat([half, full]).dtype is float32
        assert td.stack([half, half]).dtype is bfloat16
        assert td.concat([half, random(2, dtype=float16)]).dtype is float32
        assert td.concat([random(2, dtype=float16)] * 2).dtype is float16
