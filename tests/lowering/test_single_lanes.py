"""Vectors of one element are written as scalars in the code of loops."""

import numpy as np
import pytest
import tandem as td
from kernel_harness import needs_native
from tandem.backends.cpu.codegen.scalars import write_as_scalars
from tandem.backends.cpu.linker import NEXT_MODULE

LINES = [
    ("  %b = fadd <1 x float> %a, splat (float 1.0)", "  %b = fadd float %a, 1.0"),
    ("  %b = icmp slt <1 x i32> <i32 0>, %a", "  %b = icmp slt i32 0, %a"),
    (
        "  %b = select <1 x i1> <i1 true>, <1 x i64> %x, <1 x i64> zeroinitializer",
        "  %b = select i1 true, i64 %x, i64 zeroinitializer",
    ),
    ("  %b = extractelement <1 x i64> splat (i64 -3), i64 0", "  %b = bitcast i64 -3 to i64"),
    ("  %b = insertelement <1 x float> poison, float %a, i64 0", "  %b = bitcast float %a to float"),
    (
        "  %b = shufflevector <1 x i64> %a, <1 x i64> poison, <1 x i32> zeroinitializer",
        "  %b = bitcast i64 %a to i64",
    ),
    (
        "  %b = call <1 x i64> @llvm.smin.v1i64(<1 x i64> %a, <1 x i64> splat (i64 9))",
        "  %b = call i64 @llvm.smin.i64(i64 %a, i64 9)",
    ),
    (
        "  %b = shufflevector <2 x float> %a, <2 x float> poison, <1 x i32> <i32 1>",
        "  %b = extractelement <2 x float> %a, i64 1",
    ),
    (
        "  %b = shufflevector <1 x float> splat (float 1.0), <1 x float> %a, <2 x i32> <i32 0, i32 1>",
        "  %b.first = insertelement <2 x float> poison, float 1.0, i64 0\n"
        "  %b = insertelement <2 x float> %b.first, float %a, i64 1",
    ),
]
WIDE = "declare <16 x float> @llvm.masked.load.v16f32.p0(ptr, <16 x i1>, <16 x float>)"


@pytest.mark.parametrize(("line", "written"), LINES)
def test_lines_are_written_as_scalars(line, written):
    assert write_as_scalars(f"{WIDE}\n{line}") == f"{WIDE}\n{written}"


def test_intrinsics_of_scalars_are_declared_once():
    vector = "declare <1 x i64> @llvm.smin.v1i64(<1 x i64>, <1 x i64>)"
    scalar = "declare i64 @llvm.smin.i64(i64, i64)"
    assert write_as_scalars(f"{scalar}\n{vector}") == write_as_scalars(f"{vector}\n{scalar}") == scalar


def test_module_with_an_unknown_instruction_stays_as_it_is():
    module = "  %b = fadd <1 x float> %a, %a\n  %c = call <1 x float> @llvm.masked.load.v1f32.p0(ptr %p)"
    assert write_as_scalars(module) == module


def test_modules_of_users_are_not_changed():
    own, user = (
        "  %b = fadd <1 x float> %a, %a",
        "define <1 x float> @f(<1 x float> %x) { ret <1 x float> %x }",
    )
    assert write_as_scalars(f"{own}{NEXT_MODULE}{user}") == f"  %b = fadd float %a, %a{NEXT_MODULE}{user}"


@needs_native
@pytest.mark.parametrize(
    "body",
    [
        lambda i, x: x.at[i].set(x[i - 1] * 0.5 + x[i]),
        lambda i, x: x.at[x[i].astype(td.int64) % 8].add(1.0),
        lambda i, x: td.where(x[i] > 0, x, x.at[i].set(td.exp(x[i]))),
        lambda i, x: x.at[i].set(x[2:6].sum() // 3 + td.sin(x[i])),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_loops_have_no_vectors_of_one_element(body, dtype):
    x = td.asarray(np.linspace(-2, 3, 8).astype(dtype))
    loop = td.jit(lambda x: td.fori_loop(1, 8, body, x))
    assert "<1 x " not in loop.lower(x).llvm_ir()
    step = x
    for i in range(1, 8):
        step = body(i, step)
    np.testing.assert_array_equal(loop(x).numpy(), step.numpy())
