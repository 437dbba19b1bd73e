"""Replay of a compiled graph's kernels as one CUDA graph, whose nodes get the addresses of each call.

The emitted code hands the parameters of each node to a function, then asks another one to launch. To make the graph,
both are Python's; from then on they are the driver's.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

from .devices import Device

_SET = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
_GO = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
_CALL = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
SET, EXEC, GO, FIRST = (
    0,
    1,
    2,
    3,
)  # in the table: the functions and the graph; then node and function of each kernel


class Replay:
    """A CUDA graph of a chain of kernels, ready to be launched.

    Args:
        at: the device.
        handles: the driver's handles of the kernels, in order.
        address: of the emitted function.
        words: the number of words in its table of buffers.
        scalars: at least as many as there are words in its table of scalars.
        tables: the address of the table of constants.

    Attributes:
        table: what the emitted function reads: functions, the graph, and for each kernel its node and its function.
    """

    _graph = _exec = 0  # until they are made

    def __init__(
        self, at: Device, handles: Sequence[int], address: int, words: int, scalars: int, tables: int
    ):
        self._driver = at.driver
        at.make_current()
        nodes: list[int] = []
        self._graph = at.driver.get("cuGraphCreate", ctypes.c_void_p, 0)

        def add(graph: int, place: int, params: int) -> int:
            node, last = ctypes.c_void_p(), ctypes.c_void_p(nodes[-1] if nodes else None)
            there = (ctypes.addressof(last), 1) if nodes else (None, 0)
            function = at.driver.function("cuGraphAddKernelNode_v2")
            code = int(function(ctypes.addressof(node), self._graph, *there, params))
            nodes.append(node.value or 0)
            return code

        calls: tuple[Any, Any] = _SET(add), _GO(lambda graph, stream: 0)
        first, last = (ctypes.cast(one, ctypes.c_void_p).value or 0 for one in calls)
        self.table = self._filled(first, last, 0, [0] * len(handles), handles)
        buffers = (ctypes.c_void_p * words)()
        buffers[words - 3], buffers[words - 2] = tables, ctypes.addressof(self.table)
        zeros = (ctypes.c_int64 * (scalars + 1))()
        code = _CALL(address)(ctypes.addressof(buffers), ctypes.addressof(zeros))
        if code:
            raise at.driver.fault("cuGraphAddKernelNode_v2", code)
        self._exec = at.driver.get("cuGraphInstantiateWithFlags", ctypes.c_void_p, self._graph, 0)
        change, launch = map(at.driver.address, ("cuGraphExecKernelNodeSetParams_v2", "cuGraphLaunch"))
        self.table = self._filled(change, launch, self._exec, nodes, handles)

    def _filled(self, first: int, last: int, graph: int, nodes: Sequence[int], handles: Sequence[int]) -> Any:
        words = [first, graph, last, *(word for pair in zip(nodes, handles, strict=True) for word in pair)]
        return (ctypes.c_void_p * len(words))(*words)

    def __del__(self) -> None:
        for name, handle in (("cuGraphExecDestroy", self._exec), ("cuGraphDestroy", self._graph)):
            if handle:
                self._driver.function(name)(handle)
