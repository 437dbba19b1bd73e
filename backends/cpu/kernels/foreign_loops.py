"""Compile the loop of a user's scalar function."""

from __future__ import annotations

from ....operators.foreign.functions import ScalarFunction
from ....operators.scalar_ir.expr import Expr
from ..codegen.elementwise import write_loop
from ..codegen.text import Module
from ..fastpath.compiler import engine


def compile_loop(function: ScalarFunction, body: Expr) -> engine.Code:
    """Compile ``void loop(char **ptrs, int64_t *dims, int64_t *strides)``, see ``write_loop``."""
    module = Module()
    write_loop(module, "loop", body, function.params, function.result)
    return engine.compile_ir(str(module), ["loop"], module.imports)
