"""Functions whose CUDA kernels differ in how rows, columns and tiles are shared among threads."""

import os
import zlib

import numpy as np
import tandem as td
from cuda_host.programs import Program, check_batch
from lowering_harness import close, eager, graph_of

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


def programs(names, aligned=True):
    return {
        name: Program(graph_of(CASES[name][0], *CASES[name][1]), f"n{number}", aligned)
        for number, name in enumerate(names)
    }


def check_cases(names, aligned=True, architectures=None):
    with np.errstate(all="ignore"):
        found = programs(names, aligned)
        module = check_batch([k for one in found.values() for k in one.written()], architectures)
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
