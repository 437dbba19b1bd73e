"""The stages of a jitted function that a user can look at: traced, lowered, compiled."""

from __future__ import annotations

from typing import Any

from ..eager.record import eager_meta
from ..errors import ArgumentError, AutogradError, LoweringError
from ..registry.keys import AUTOGRAD
from ..registry.state import state
from ..registry.values import describe
from ..tracer.multigraph import traced_graph
from .arguments import Arguments
from .execute import lower_graph
from .explain import faults_of
from .leaves import leaf_key
from .specialization import Specialization

Traced = Any  # a networkx.MultiDiGraph; the class is made when networkx is loaded


def traced(specialization: Specialization, name: str) -> Traced:
    """The graph of a specialization for users."""
    return traced_graph(specialization.graph, name)


class Lowered:
    """A jitted function lowered for one kind of arguments."""

    def __init__(self, specialization: Specialization, arguments: Arguments):
        self._specialization, self._arguments = specialization, arguments
        self._lowered = lower_graph(specialization.program)

    def kernels(self) -> Any:
        """What runs each part of the graph, and why it was chosen; prints as a table."""
        return self._ask("kernels")

    def llvm_ir(self) -> str:
        """The LLVM IR that was emitted.

        Raises:
            LoweringError: it was lowered for CUDA; see :meth:`cuda_source`.
        """
        return str(self._ask("llvm_ir"))

    def cuda_source(self) -> str:
        """The CUDA C that was emitted; no GPU, driver or cupy is needed for it.

        Raises:
            LoweringError: it was lowered for the CPU; give ``lower`` CUDA tensors or ``device="cuda"``.

        >>> import tandem as td
        >>> f = td.jit(lambda x, w: td.relu(x * w))
        >>> text = f.lower(td.ones(8), td.ones(8), device="cuda").cuda_source()
        >>> "__global__" in text, "td::relu" in text
        (True, True)
        """
        return str(self._ask("cuda_source"))

    def compile(self) -> Compiled:
        """Compile to something that is called with arguments of the kind it was lowered for."""
        self._specialization.executable = None if self._lowered is None else self._lowered.compile()
        return Compiled(self._specialization, self._arguments, self._lowered)

    def _ask(self, what: str) -> Any:
        if self._lowered is None:
            raise LoweringError(f"{self._arguments.name} has nothing to compute, so there is nothing to show")
        return getattr(self._lowered, what)()

    def __repr__(self) -> str:
        return f"<lowered {self._arguments.name}>"


class Compiled:
    """A compiled function for one kind of arguments; another kind is an error, never a recompilation."""

    def __init__(self, specialization: Specialization, arguments: Arguments, lowered: Any):
        self._specialization, self._arguments, self._lowered = specialization, arguments, lowered

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """The result.

        Raises:
            ArgumentError: the arguments are of another kind; the message names what differs.
            AutogradError: a tensor requires gradients, and this is the forward pass alone.
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
        wrong = faults_of(self._arguments, self._specialization, bound, keys)
        if wrong:
            raise ArgumentError(
                f"{self._arguments.name} was compiled for other arguments: {'; '.join(wrong)}"
            )
        return self._specialization.run(bound.leaves, self._specialization.scalars(bound.leaves) or ())

    def cost_analysis(self) -> dict[str, float]:
        """Scalar operations (``flops``) and bytes read and written (``bytes``)."""
        return {"flops": 0.0, "bytes": 0.0} if self._lowered is None else self._lowered.cost_analysis()

    def memory_analysis(self) -> dict[str, int]:
        """Bytes of arguments, results, temporary memory and constants, and their sum, ``peak``."""
        return {} if self._lowered is None else self._lowered.memory_analysis()

    def __repr__(self) -> str:
        return f"<compiled {self._arguments.name}>"
