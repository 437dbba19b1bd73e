"""The loop of a scalar function from outside, compiled."""

from __future__ import annotations

from ...operators.expr import Expr
from ...operators.user_functions import ScalarFunction
from .emit.elementwise import write_loop
from .emit.text import Module
from .native import engine


def compile_loop(function: ScalarFunction, body: Expr) -> engine.Code:
    """``void loop(char **ptrs, int64_t *dims, int64_t *strides)``, see ``emit_loop``."""
    module = Module()
    write_loop(module, "loop", body, function.params, function.result)
    return engine.compile_ir(str(module), ["loop"], module.imports)
