"""Native runtime: the smaller and the larger of two integers."""

from __future__ import annotations

from ..fastpath.compiler.dsl import i64, native


@native
def smaller(x: i64, y: i64) -> i64:
    return x if x < y else y


@native
def larger(x: i64, y: i64) -> i64:
    return x if x > y else y
