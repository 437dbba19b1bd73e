"""LLVM's passes over the IR of a module: what `engine.Passes` names.

LLVM's own pipelines for modules compare functions, and take as long as emitting the machine code; most of our code is
written as it is to run, and gains nothing from them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from ..... import lazy
from .engine import Passes

binding = lazy.Module("llvmlite.binding")


LEVELS = {Passes.FUNCTIONS: 2, Passes.MODULE: 1, Passes.UNROLL: 2, Passes.VECTORS: 3}
"""LLVM's levels; the others have a few passes of their own."""
_WHOLE = (Passes.MODULE, Passes.UNROLL, Passes.VECTORS)  # LLVM's own pipelines for modules


def run_passes(module: Any, machine: Any, passes: Passes) -> None:
    """Run passes over a parsed module, for a target machine."""
    module.triple = machine.triple
    module.data_layout = str(machine.target_data)
    options = binding.create_pipeline_tuning_options(speed_level=LEVELS.get(passes, 0))
    options.loop_vectorization = options.slp_vectorization = passes in (Passes.UNROLL, Passes.VECTORS)
    with binding.create_pass_builder(machine, options) as builder:
        with _module_passes(builder, passes) as manager:
            manager.run(module, builder)
        if passes is Passes.FUNCTIONS:
            with _freed(builder.getFunctionPassManager()) as manager:
                for function in module.functions:
                    if not function.is_declaration:
                        manager.run(function, builder)


def _module_passes(builder: Any, passes: Passes) -> contextlib.AbstractContextManager[Any]:
    if passes in _WHOLE:
        return _freed(builder.getModulePassManager())
    manager = binding.create_new_module_pass_manager()
    manager.add_always_inliner_pass()
    manager.add_sroa_pass()
    manager.add_simplify_cfg_pass()
    if passes is not Passes.QUICK:
        manager.add_instruction_combine_pass()
    return _freed(manager)


@contextlib.contextmanager
def _freed(manager: Any) -> Iterator[Any]:
    """Yield a pass manager, then free it: the ``close`` of llvmlite's classes frees nothing."""
    try:
        yield manager
    finally:
        binding.newpassmanagers.NewPassManager._dispose(manager)
        manager.detach()
