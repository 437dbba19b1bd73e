"""The stages of compilation that users can inspect: traced, lowered, compiled."""

from __future__ import annotations

import os
from typing import Any

from .. import lazy
from ..eager.autograd.kernel import eager_meta
from ..errors import ArgumentError, AutogradError, LoweringError
from ..registry.dispatch.keys import AUTOGRAD
from ..registry.dispatch.state import state
from ..registry.values import describe
from ..tracer.multigraph import to_networkx
from .arguments import Arguments
from .execute import lower_graph
from .explain import find_mismatches
from .guards.leaves import leaf_key
from .specialization import Specialization

_donation = lazy.Module(".jit.donation")
_drawing = lazy.Module(".lowering.drawing")
Traced = Any  # a networkx.MultiDiGraph; the class is made when networkx is loaded


def to_traced(specialization: Specialization, name: str) -> Traced:
    """Convert the graph of a specialization to a networkx graph."""
    return to_networkx(specialization.graph, name)


class Lowered:
    """A jitted function lowered for one kind of arguments."""

    def __init__(self, specialization: Specialization, arguments: Arguments):
        self._specialization, self._arguments = specialization, arguments
        self._lowered = lower_graph(
            specialization.program,
            _donation.find_donated(specialization, arguments) if arguments.donated else (),
        )

    def kernels(self) -> Any:
        """The kernel choice of each node and its reason; prints as a table."""
        return self._query("kernels")

    def as_text(self, dialect: str | None = None) -> str:
        """The graph as text; ``dialect`` is accepted for compatibility with JAX.

        >>> import tandem as td
        >>> "td::sin" in td.jit(td.sin).lower(td.ones(2)).as_text()
        True
        """
        return str(to_traced(self._specialization, self._arguments.name))

    def llvm_ir(self) -> str:
        """The LLVM IR that was emitted.

        Raises:
            LoweringError: the function was lowered for CUDA; see :meth:`cuda_source`.
        """
        return str(self._query("llvm_ir"))

    def cuda_source(self) -> str:
        """The CUDA C that was emitted; no GPU, driver or cupy is needed for it.

        Raises:
            LoweringError: the function was lowered for the CPU; pass ``lower`` CUDA tensors or ``device="cuda"``.

        >>> import tandem as td
        >>> f = td.jit(lambda x, w: td.relu(x * w))
        >>> text = f.lower(td.ones(8), td.ones(8), device="cuda").cuda_source()
        >>> "__global__" in text, "td::relu" in text
        (True, True)
        """
        return str(self._query("cuda_source"))

    def draw(self, path: str | os.PathLike[str]) -> None:
        """Write a picture of the graph: one box for each operator, coloured by the kernel that computes it.

        Args:
            path: a file name; its ending chooses the format: svg, png, pdf.

        Raises:
            LoweringError: there is nothing to compute.
            UnsupportedError: matplotlib is not installed, or the graph is too large to be read.

        >>> import pathlib, tempfile, tandem as td
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "graph.svg"
        >>> td.jit(lambda x, w: td.softmax(x @ w)).lower(td.ones((8, 4)), td.ones((4, 3))).draw(path)
        >>> path.read_text().startswith("<?xml")
        True
        """
        self._require_nodes()
        paths = [self._specialization.paths[leaf] for leaf in self._specialization.dynamic]
        _drawing.draw(self._lowered, path, paths)

    def compile(self) -> Compiled:
        """Compile to a callable for arguments of the kind that the function was lowered for."""
        self._specialization.executable = None if self._lowered is None else self._lowered.compile()
        self._specialization.donated = () if self._lowered is None else tuple(sorted(self._lowered.written))
        return Compiled(self._specialization, self._arguments, self._lowered)

    def _query(self, what: str) -> Any:
        self._require_nodes()
        return getattr(self._lowered, what)()

    def _require_nodes(self) -> None:
        if self._lowered is None:
            raise LoweringError(f"{self._arguments.name} has nothing to compute, so there is nothing to show")

    def __repr__(self) -> str:
        return f"<lowered {self._arguments.name}>"


class Compiled:
    """A compiled function for one kind of arguments; another kind is an error, never a recompilation."""

    def __init__(self, specialization: Specialization, arguments: Arguments, lowered: Any):
        self._specialization, self._arguments, self._lowered = specialization, arguments, lowered

    def __call__(self, /, *args: object, **kwargs: object) -> Any:
        """Run the compiled function.

        Raises:
            ArgumentError: the arguments are of another kind; the message names the differences.
            AutogradError: a tensor requires gradients, but only the forward pass is compiled.
        """
        bound = self._arguments.bind(args, kwargs)
        needing = [
            x for x in (*bound.leaves, *self._specialization.graph.constants) if eager_meta(x) is not None
        ]
        if needing and not state.exclude & AUTOGRAD:
            raise AutogradError(
                f"{self._arguments.name} was compiled without its derivative, and {describe(needing[0])} requires a "
                "gradient; call the jitted function itself, pass x.detach(), or call it under td.no_grad()"
            )
        keys = tuple(leaf_key(leaf, identity=True) for leaf in bound.leaves)
        wrong = find_mismatches(self._arguments, self._specialization, bound, keys)
        if wrong:
            raise ArgumentError(
                f"{self._arguments.name} was compiled for other arguments: {'; '.join(wrong)}"
            )
        return self._specialization.run(bound.leaves, self._specialization.scalars(bound.leaves) or ())

    def as_text(self) -> str:
        """The emitted code as text: LLVM IR, or CUDA C; empty if there is nothing to compute."""
        if self._lowered is None:
            return ""
        try:
            return str(self._lowered.llvm_ir())
        except LoweringError:  # lowered for CUDA
            return str(self._lowered.cuda_source())

    def cost_analysis(self) -> dict[str, float]:
        """Scalar operations (``flops``) and bytes read and written (``bytes``)."""
        return {"flops": 0.0, "bytes": 0.0} if self._lowered is None else self._lowered.cost_analysis()

    def memory_analysis(self) -> dict[str, int]:
        """Bytes of arguments, results, temporary memory and constants, and their sum, ``peak``."""
        return {} if self._lowered is None else self._lowered.memory_analysis()

    def __repr__(self) -> str:
        return f"<compiled {self._arguments.name}>"
