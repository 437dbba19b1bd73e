"""Ways to put the kernels of a compiled graph into a stream: one after the other, or replayed as one CUDA graph.

Each way has emitted code (:class:`.call_text.CallWriter`) and a table that it reads, which begins with the code's
address: machine code that knows where a table lies can take that way.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

from ..cpu.compile import MAIN
from ..cpu.native.engine import Code
from .devices import Device

# the exception that a callback raises stays set in the interpreter: PYFUNCTYPE holds the GIL, and raises what is set
_CALL = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
_SET = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
_GO = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
CODE = 0  # in every table: the emitted code
QUEUE, HANDLES = 1, 2  # one after the other: the driver's launch function; then the handles of the kernels
SET, EXEC, GO, CAPTURES, PAIRS = range(
    1, 6
)  # a replay: functions, the graph; then node and handle of each kernel
CAPTURED = -2  # what a replay's code returns on a stream that is being captured, which takes no graphs


class Way:
    """Emitted code, and the table that it reads.

    Args:
        code: the address of the emitted function.
        words: what is in the table behind it.

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
        """Where the table lies."""
        return ctypes.addressof(self.table)

    def queue(self, buffers: Any, scalars: Any) -> int:
        """Put the kernels into the stream of a call.

        Args:
            buffers, scalars: the tables of the call; see :class:`.call_text.CallWriter`.

        Returns:
            0, the driver's status where it refuses, or :data:`CAPTURED`. An exception of a callback is raised.
        """
        buffers[-2] = self.address
        return int(self._call(ctypes.addressof(buffers), ctypes.addressof(scalars)))


class Replay(Way):
    """A CUDA graph of a chain of kernels, ready to be launched; its nodes get the addresses of each call.

    The emitted code hands the parameters of each node to a function, then asks another one to launch. To make the
    graph, both are Python's; from then on they are the driver's.

    Args:
        at: the device.
        handles: the driver's handles of the kernels, in order.
        code: the emitted code, which is kept: equal graphs share it only as long as many others do not come.
        words: the number of words in its table of buffers.
        scalars: at least as many as there are words in its table of scalars.
        tables: the address of the table of constants.

    Raises:
        CudaError: the driver does not make a graph of them.
    """

    _graph = _exec = 0  # until they are made

    def __init__(self, at: Device, handles: Sequence[int], code: Code, words: int, scalars: int, tables: int):
        self._driver, self._code = at.driver, code
        at.make_current()
        nodes: list[int] = []
        self._graph = at.driver.get("cuGraphCreate", ctypes.c_void_p, 0)

        def add(graph: int, place: int, params: int) -> int:
            node, last = ctypes.c_void_p(), ctypes.c_void_p(nodes[-1] if nodes else None)
            there = (ctypes.addressof(last), 1) if nodes else (None, 0)
            function = at.driver.function("cuGraphAddKernelNode_v2")
            status = int(function(ctypes.addressof(node), self._graph, *there, params))
            nodes.append(node.value or 0)
            return status

        buffers, zeros = (ctypes.c_void_p * words)(), (ctypes.c_int64 * (scalars + 1))()
        buffers[-3] = tables
        calls: tuple[Any, ...] = _SET(add), _GO(lambda graph, stream: 0), _GO(lambda stream, status: 0)
        places = [ctypes.cast(one, ctypes.c_void_p).value or 0 for one in calls]
        self._lead(places, [0] * len(handles), handles)
        status = self.queue(buffers, zeros)
        if status:
            raise at.driver.fault("cuGraphAddKernelNode_v2", status)
        self._exec = at.driver.get("cuGraphInstantiateWithFlags", ctypes.c_void_p, self._graph, 0)
        names = ("cuGraphExecKernelNodeSetParams_v2", "cuGraphLaunch", "cuStreamIsCapturing")
        self._lead([at.driver.address(name) for name in names], nodes, handles)

    def _lead(self, functions: Sequence[int], nodes: Sequence[int], handles: Sequence[int]) -> None:
        change, go, captures = functions
        pairs = [word for pair in zip(nodes, handles, strict=True) for word in pair]
        self._fill(self._code[MAIN], [change, self._exec, go, captures, *pairs])

    def __del__(self) -> None:
        for name, handle in (("cuGraphExecDestroy", self._exec), ("cuGraphDestroy", self._graph)):
            if handle:
                self._driver.function(name)(handle)
