"""Memory accesses in the PTX and machine code of bandwidth-bound kernels, checked without a GPU.

Each element is read and written once, 16 bytes at a time; registers leave room for threads enough; and there are not
more instructions for each element than a multiprocessor issues while the element's bytes come and go.
"""

import re
import struct

import numpy as np
import pytest
import tandem as td
from cuda_host.build import missing_compiler
from cuda_host.programs import Program, assembled
from lowering_harness import graph_of
from tandem.backends.cuda.codegen.kernel import module_source

pytestmark = pytest.mark.skipif(missing_compiler() is not None, reason=missing_compiler() or "")

BYTES_A_CLOCK = 4.8e12 / 132 / 1.75e9
"""Of one multiprocessor of an H200, which issues 128 instructions of threads in that time."""
SHARE = 0.8
INSTRUCTION = 16
"""Bytes of machine code."""


def array(*shape, dtype="float32"):
    """An array of a size that would not fit into memory."""
    return np.broadcast_to(np.zeros((), getattr(td, dtype).np), shape)


def gelu(x, w, b):
    return td.gelu(x * w + b)


def norm(x, *weights):
    return td.layer_norm(x, (x.shape[-1],), *weights)


def gradient(x, g):
    return td.vjp(td.softmax, x)[1](g)


MANY = array(1 << 28)
ROWS = {dtype: array(16384, 4096, dtype=dtype) for dtype in ("float32", "bfloat16")}
WEIGHTS = {dtype: [array(4096, dtype=dtype)] * 2 for dtype in ROWS}
# name: (function, arguments, bytes read and written for each element, of them read from the cache, barriers)
CASES = {
    "gelu": (gelu, [MANY] * 3, 16, 0, 0),
    "gelu_scalars": (gelu, [MANY, array(1), array(1)], 8, 0, 0),
    "gelu_rows": (gelu, [array(16384, 16384), *[array(16384)] * 2], 16, 8, 0),
    "gelu_bfloats": (gelu, [array(1 << 28, dtype="bfloat16")] * 3, 8, 0, 0),
    "add_halves": (lambda x, y: x + y, [array(1 << 28, dtype="float16")] * 2, 6, 0, 0),
    "negate": (lambda x: -x, [MANY], 8, 0, 0),
    "softmax": (td.softmax, [array(8192, 8192)], 8, 0, 2),
    "softmax_bfloats": (td.softmax, [array(8192, 8192, dtype="bfloat16")], 4, 0, 2),
    "softmax_gradient": (gradient, [array(8192, 8192)] * 2, 12, 0, 3),
    "layer_norm": (norm, [ROWS["float32"]], 8, 0, 2),
    "layer_norm_bfloats": (norm, [ROWS["bfloat16"]], 4, 0, 2),
    "layer_norm_weights": (norm, [ROWS["float32"], *WEIGHTS["float32"]], 16, 8, 2),
    "layer_norm_weights_bfloats": (norm, [ROWS["bfloat16"], *WEIGHTS["bfloat16"]], 8, 4, 2),
}
_ACCESS = re.compile(r"\b(?:ld|st)\.global(?:\.nc)?(?:\.v(\d))?\.[a-z](\d+)")


class Facts:
    """What the PTX of a kernel without loops, and the log of its assembly, say of it."""

    def __init__(self, name):
        function, args, self.moved, self.cached, self.barriers = CASES[name]
        (self.kernel,) = Program(graph_of(function, *args), "n0").written()
        source = module_source([self.kernel])
        self.ptx, self.image, self.log = assembled(source, 90)
        self.threads = int(np.prod(self.kernel.block))
        self.elements = max(a.size for a in args) / (self.threads * int(np.prod(self.kernel.grid)))

    def accesses(self):
        """The bytes of each access to device memory."""
        return [int(many or 1) * int(bits) // 8 for many, bits in _ACCESS.findall(self.ptx)]

    def loops(self):
        """The jumps that lead back."""
        labels = {m[1]: m.start() for m in re.finditer(r"^(\$L\w+):", self.ptx, re.MULTILINE)}
        return [
            m[1] for m in re.finditer(r"\bbra(?:\.uni)?\s+(\$L\w+);", self.ptx) if labels[m[1]] < m.start()
        ]

    def instructions(self):
        """How many the kernel has, those for rare operands among them."""
        table, size, count = (
            *struct.unpack_from("<Q", self.image, 40),
            *struct.unpack_from("<HH", self.image, 58),
        )
        rows = [struct.unpack_from("<IIQQQQ", self.image, table + size * k) for k in range(count)]
        names = rows[struct.unpack_from("<H", self.image, 62)[0]][4]
        wanted = f".text.{self.kernel.name}\0".encode()
        (found,) = [row[5] for row in rows if self.image[names + row[0] :].startswith(wanted)]
        return found // INSTRUCTION


@pytest.fixture(params=CASES, scope="module")
def facts(request):
    return Facts(request.param)


def test_elements_are_accessed_once_in_16_byte_vectors(facts):
    assert not facts.loops()  # what is counted is what runs
    large = [n for n in facts.accesses() if n > 4]  # numbers that all elements share have 4 bytes
    assert set(large) == {16}
    assert sum(large) == facts.elements * facts.moved


def test_threads_wait_for_many_bytes_at_once(facts):
    written = facts.ptx.count("st.global") * 16
    assert sum(facts.accesses()) - written >= 32


def test_registers_leave_room_for_threads(facts):
    assert ".local" not in facts.ptx
    assert "0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads" in facts.log
    registers = -(-int(re.search(r"Used (\d+) registers", facts.log)[1]) // 8) * 8
    assert 65536 // (registers * facts.threads) * facts.threads >= 1024


def test_barrier_count_matches_reductions(facts):
    assert facts.ptx.count("bar.sync") + facts.ptx.count("barrier.sync") == facts.barriers


def test_instructions_keep_up_with_memory(facts):
    allowed = 128 * (facts.moved - facts.cached) / BYTES_A_CLOCK * facts.elements
    assert facts.instructions() <= SHARE * allowed
    assert not re.search(r"\b(div|rem)\.[su]\d", facts.ptx)
