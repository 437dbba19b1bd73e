"""Lower graphs with the CUDA printer and run their kernels on the CPU: many graphs in one translation unit."""

from __future__ import annotations

import os
import zlib

import numpy as np
from tandem import config
from tandem.backends.cuda.codegen.fused import write_cuda
from tandem.backends.cuda.codegen.kernel import module_source
from tandem.backends.cuda.codegen.types import CTYPE
from tandem.backends.cuda.runtime.compiler import OPTIONS
from tandem.eager.tensor.tensor import wrap
from tandem.lowering.interpreter import call_kernel
from tandem.lowering.kernel_selection import Target
from tandem.lowering.lower import Backend, Lowered, run_stages
from tandem.lowering.thunks import KernelThunk, is_empty
from tandem.tracer.graph import compute_derived, map_values

from .build import HostModule, compile_program, nvrtc, run_kernels

ARCHITECTURES = (75, 80, 90, 100)
SEED = int(os.environ.get("TANDEM_TEST_SEED", "0"))
ZONE = 64


def _nameless(kernel):
    lines = [line for line in kernel.source.splitlines() if not line.startswith("//")]
    return "\n".join(lines).replace(kernel.name, "kernel"), kernel._replace(name="", source="")


def _target():
    return Target(lambda dtype: dtype in CTYPE, lambda node: None, inlines_producers=True)


class Memory:
    """An array between red zones, which tell whether a kernel wrote outside of it."""

    def __init__(self, shape, dtype, values=None, aligned=True):
        size = int(np.prod(shape, dtype=int)) * dtype.itemsize
        self.bytes = np.full(size + 2 * ZONE + 32, 0x5A, np.uint8)
        first = ZONE + (-(self.bytes.ctypes.data + ZONE)) % 16 + (0 if aligned else dtype.itemsize)
        self.first, self.end = first, first + size
        self.flat = self.bytes[first : first + size].view(dtype)
        if values is not None:
            self.flat[...] = np.ascontiguousarray(values).reshape(-1)

    def check(self):
        assert (self.bytes[: self.first] == 0x5A).all(), "written before the first element"
        assert (self.bytes[self.end :] == 0x5A).all(), "written after the last element"

    def at(self, layout):
        """The elements of a layout."""
        if layout.size == 0:
            return np.empty(layout.shape, self.flat.dtype)
        steps = [s * self.flat.itemsize for s in layout.strides]
        return np.lib.stride_tricks.as_strided(self.flat[layout.offset :], layout.shape, steps)


class Program:
    """A lowered graph whose kernels have names of their own."""

    def __init__(self, graph, prefix, aligned=True):
        self.aligned = aligned
        with config.override(verify=True):
            self.lowered = run_stages(Lowered(graph, Backend(_target, None, None)))
        self.graph, self.kernels = graph, {}
        self.steps = self.lowered.steps
        for step in self.steps:
            if isinstance(step, KernelThunk) and not is_empty(step):
                kernel = step.kernel._replace(name=f"{prefix}_{step.kernel.name}")
                places = [step.params.index(v) for v in step.temporaries]
                comments = [f"{n.op.name} ({n.source or 'unknown line'})" for n in step.nodes]
                unaligned = () if aligned else range(len(step.params))
                self.kernels[id(step)] = write_cuda(kernel, comments, unaligned, places)

    def share(self, known):
        """Use kernels of other programs that are the same but for their names and comments; ``known``: by text."""
        for step, kernels in self.kernels.items():
            self.kernels[step] = [known.setdefault(_nameless(k), k) for k in kernels]

    def written(self):
        """Its kernels."""
        return [k for found in self.kernels.values() for k in found]

    def run(self, module, args):
        """The results for arrays and Python scalars: the same whichever thread of a block runs first."""
        results = []
        for order in ("forward", "backward"):
            os.environ["TANDEM_HOST_ORDER"] = order
            results.append(self._run(module, args))
        del os.environ["TANDEM_HOST_ORDER"]
        for one, two in zip(*results, strict=True):
            assert one.tobytes() == two.tobytes(), "the result depends on the order in which threads run"
        return results[0]

    def _run(self, module, args):
        given = [*args, *compute_derived(self.graph, args), *(t._array for t in self.graph.constants)]
        parameters = self.graph.parameters
        scalars = [a for v, a in zip(parameters, given, strict=True) if v.weak is not None]
        memory = {v: self._memory(v, a) for v, a in zip(parameters, given, strict=True) if v.weak is None}
        self.weak = {v: a for v, a in zip(parameters, given, strict=True) if v.weak is not None}
        memory |= {v: self._memory(v, t._array) for v, t in self.lowered.folded}
        for step in self.steps:
            self._step(step, module, memory, scalars)
        for found in memory.values():
            found.check()
        return [self._output(place, o, memory) for place, o in enumerate(self.lowered.outputs)]

    def _memory(self, value, array=None):
        return Memory(value.shape, value.spec.dtype.np, array, self.aligned)

    def launches(self):
        """(kernel, sizes in bytes of what its pointers lead to) for every launch."""
        for step in self.steps:
            if isinstance(step, KernelThunk):
                sizes = [max(v.spec.size * v.spec.dtype.itemsize, 1) for v in step.params]
                for k in self.kernels.get(id(step), ()):
                    yield k, [k.temporaries if p < 0 else sizes[p] for p in k.params]

    def _step(self, step, module, memory, scalars):
        if isinstance(step, KernelThunk):
            for v in step.params:
                memory.setdefault(v, self._memory(v))
            if id(step) in self.kernels:
                run_kernels(module, self.kernels[id(step)], [memory[v].flat for v in step.params], scalars)
            return
        found = iter(
            self.weak[root] if root.weak is not None else wrap(memory[root].at(layout).copy())
            for root, layout in step.operands
        )
        node = step.node
        args = map_values(lambda value: next(found), node.args)
        kwargs = {name: map_values(lambda value: next(found), arg) for name, arg in node.kwargs.items()}
        for out, result in zip(node.outputs, call_kernel(node, args, kwargs), strict=True):
            memory[out] = self._memory(out, result._array)

    def _output(self, place, output, memory):
        lowered = self.lowered
        if output.kind == "object":
            return lowered.optimized.outputs[place]
        constants = [v for v, _ in lowered.folded]
        values = {"parameter": self.graph.parameters, "storage": lowered.storages, "constant": constants}
        value = values[output.kind][output.index]
        if value.weak is not None:
            return np.asarray(self.weak[value], value.spec.dtype.np)
        memory.setdefault(value, self._memory(value))
        return memory[value].at(output.layout)


def _nvrtc(source, options, result):
    """What ``result`` makes of a compiled program, and NVRTC's log."""
    compiler = nvrtc()
    program = compiler.createProgram(source, "kernels.cu", (), ())
    try:
        try:
            compiler.compileProgram(program, (*OPTIONS, *options))
        except compiler.NVRTCError as error:
            raise AssertionError(f"NVRTC refuses a module: {compiler.getProgramLog(program)}") from error
        return result(compiler, program), compiler.getProgramLog(program).strip("\0 \n")
    finally:
        compiler.destroyProgram(program)


def compile_nvrtc(source, architecture, verbose=False):
    """Compile a module; any message of NVRTC is an error, unless ``verbose`` asks for the assembler's log.

    Returns that log.
    """
    options = (f"-arch=sm_{architecture}", *(["--ptxas-options=-v"] if verbose else []))
    cubin, log = _nvrtc(source, options, lambda compiler, program: compiler.getCUBIN(program))
    assert cubin[:4] == b"\x7fELF" and (verbose or not log), log
    return log


def assembled(source, architecture):
    """The PTX and the ELF file of a module, and the assembler's log."""
    options = (f"-arch=sm_{architecture}", "--ptxas-options=-v")
    (ptx, image), log = _nvrtc(
        source, options, lambda compiler, program: (_ptx(compiler, program), compiler.getCUBIN(program))
    )
    return ptx, image, log


def ptx_of(source, architecture):
    """The PTX of a module."""
    return _nvrtc(source, [f"-arch=compute_{architecture}"], _ptx)[0]


def _ptx(compiler, program):
    text = compiler.getPTX(program)
    return text if isinstance(text, str) else text.decode()


def sampled_architecture(source):
    """The architecture for which this commit compiles a module; others compile it for the others."""
    return ARCHITECTURES[(zlib.crc32(source.encode()) + SEED) % len(ARCHITECTURES)]


def check_batch(kernels, architectures=None):
    """Compile kernels for architectures, by default this commit's, and for the CPU; the module that runs them there."""
    if not kernels:
        return None
    source = module_source(kernels)
    for architecture in architectures or [sampled_architecture(source)]:
        compile_nvrtc(source, architecture)
    return HostModule(source)


_MAIN = """
#include <cstdlib>
int main() {
    void* at[16];
%s
    return 0;
}
"""


def thread_program(launches, change=lambda source: source):
    """The path of a program that runs launches on threads of the operating system, under ThreadSanitizer.

    Args:
        launches: of (kernel, sizes in bytes of what its pointers lead to).
        change: what to do to the text of the kernels first.
    """
    kernels, lines = [], []
    for k, sizes in launches:
        kernels.append(k)
        assert not k.scalars
        for place, size in enumerate(sizes):
            lines.append(f"    at[{place}] = aligned_alloc(256, {-(-size // 256) * 256});")
            lines.append(f"    memset(at[{place}], 0x3c, {size});")
        table = ", ".join(f"&at[{place}]" for place in range(len(sizes)))
        lines.append(f"    {{ void* table[] = {{{table}}};")
        grid = ", ".join(map(str, (*k.grid, *k.block, k.shared)))
        lines.append(f"      launch_{k.name}(table, {grid}); }}")
    return compile_program(change(module_source(kernels)), _MAIN % "\n".join(lines))
