"""Submissions of a compiled graph's kernels to a stream: launched one by one, or replayed as one CUDA graph.

Each submission has emitted code (:class:`.call_text.DeviceMainWriter`) and a table that it reads. The table begins with
the code's address, so that native code can call a submission by the address of its table.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import partial
from typing import Any

from ...cpu.compile import MAIN
from ...cpu.fastpath.compiler.engine import Code
from ..runtime.devices import Device

# PYFUNCTYPE holds the GIL, and raises the exception that a callback has left set in the interpreter
_CALL = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
_SET = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
_LAUNCH = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
CODE = 0  # in every table: the emitted code
QUEUE, HANDLES = 1, 2  # one by one: the driver's launch function; then the handles of the kernels
SET, EXEC, LAUNCH_GRAPH, CAPTURES, PAIRS = range(
    1, 6
)  # a replay: functions, the graph; then node and handle of each kernel
CAPTURED = -2  # what a replay's code returns on a stream that is being captured, which takes no graphs


class Submission:
    """Emitted code, and the table that it reads.

    Args:
        code: the address of the emitted function.
        words: the entries of the table after the address.

    Attributes:
        table: the table.
    """

    table: Any

    def __init__(self, code: int, words: Sequence[int]):
        self._fill(code, words)

    def _fill(self, code: int, words: Sequence[int]) -> None:
        self._call = _CALL(code)
        self.table = (ctypes.c_void_p * (1 + len(words)))(code, *words)

    @property
    def address(self) -> int:
        """The address of the table."""
        return ctypes.addressof(self.table)

    def queue(self, buffers: Any, scalars: Any) -> int:
        """Launch the kernels in the stream of a call.

        Args:
            buffers, scalars: the tables of the call; see :class:`.call_text.DeviceMainWriter`.

        Returns:
            0, the driver's status, or :data:`CAPTURED`. An exception of a callback is raised.
        """
        buffers[-2] = self.address
        return int(self._call(ctypes.addressof(buffers), ctypes.addressof(scalars)))


class Replay(Submission):
    """A CUDA graph of a chain of kernels; the parameters of its nodes are set at each call.

    The emitted code passes the parameters of each node to one function of the table, and launches the graph by another.
    Both are Python functions while the graph is built, and driver functions afterwards.

    Args:
        at: the device.
        handles: the driver's handles of the kernels, in order.
        code: the emitted code, which the object keeps alive.
        words: the length of its table of buffers.
        scalars: at least the length of its table of scalars.
        tables: the address of the table of constants.

    Raises:
        CudaError: the driver cannot make the graph.
    """

    _graph = _exec = 0  # until they are made

    def __init__(self, at: Device, handles: Sequence[int], code: Code, words: int, scalars: int, tables: int):
        self._at, self._code = at, code
        at.make_current()
        nodes: list[int] = []
        graph = ctypes.c_void_p()
        at.driver.check("cuGraphCreate", at.driver.function("cuGraphCreate")(ctypes.addressof(graph), 0))
        self._graph = graph.value or 0

        def add(graph: int, slot: int, params: int) -> int:
            node, last = ctypes.c_void_p(), ctypes.c_void_p(nodes[-1] if nodes else None)
            there = (ctypes.addressof(last), 1) if nodes else (None, 0)
            function = at.driver.function("cuGraphAddKernelNode_v2")
            status = int(function(ctypes.addressof(node), self._graph, *there, params))
            nodes.append(node.value or 0)
            return status

        buffers, zeros = (ctypes.c_void_p * words)(), (ctypes.c_int64 * (scalars + 1))()
        buffers[-3] = tables
        calls: tuple[Any, ...] = (
            _SET(add),
            _LAUNCH(lambda graph, stream: 0),
            _LAUNCH(lambda stream, status: 0),
        )
        addresses = [ctypes.cast(one, ctypes.c_void_p).value or 0 for one in calls]
        self._fill_table(addresses, [0] * len(handles), handles)
        at.driver.check("cuGraphAddKernelNode_v2", self.queue(buffers, zeros))
        self._exec = at.runtime.graphInstantiate(self._graph)
        names = ("cuGraphExecKernelNodeSetParams_v2", "cuGraphLaunch", "cuStreamIsCapturing")
        self._fill_table([at.driver.address(name) for name in names], nodes, handles)

    def _fill_table(self, functions: Sequence[int], nodes: Sequence[int], handles: Sequence[int]) -> None:
        change, go, captures = functions
        pairs = [word for pair in zip(nodes, handles, strict=True) for word in pair]
        self._fill(self._code[MAIN], [change, self._exec, go, captures, *pairs])

    def __del__(self) -> None:
        for name, handle in (("graphExecDestroy", self._exec), ("graphDestroy", self._graph)):
            if handle:
                self._at.finalize(partial(getattr(self._at.runtime, name), handle))
