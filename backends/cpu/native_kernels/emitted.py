"""Loops of this package: the native functions, and the dtypes and sizes that they are compiled for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....named_tuple import NamedTuple
from ....registry import dtypes as dt
from ....registry.dtypes import DType
from ....registry.operator import find_operator
from ..blas_pointers import find_lapack_functions, find_triangle_functions
from ..fastpath.compiler import engine
from ..fastpath.glue.folds import compile_fold
from ..fastpath.runtime import rt_loops
from ..numpy_sorting import find_argsort_function, find_sort_function
from . import rt_extrema, rt_lapack, rt_numpy_sorts, rt_selection, rt_solvers, rt_sorting, rt_triangles
from .loop_code import compile_function
from .providers import Loop
from .tables import parse_signature

FLOATS = (dt.float32, dt.float64)


class EmittedLoop(NamedTuple):
    """A loop in the native language.

    Attributes:
        function: the native function.
        signature: the core sizes.
        dtypes: returns whether there is a loop for the dtypes of operands and results.
        constants: the template parameters for dtypes and core sizes; loops of equal ones share their code.
        failures: how it reports failures.
        imports: returns the addresses of the functions of other libraries that it calls, for the dtype of the first
            operand; none: there is no such library.
        passes: LLVM's passes; few where these do not make it faster.
    """

    function: Callable[..., Any]
    signature: str
    dtypes: Callable[[tuple[DType, ...]], bool]
    constants: Callable[[tuple[DType, ...], tuple[int, ...]], dict[str, int]] = lambda dtypes, sizes: {}
    failures: int = rt_loops.Failures.NEVER
    imports: Callable[[DType], dict[str, int]] | None = None
    passes: engine.Passes = engine.Passes.VECTORS


def _is_float(dtypes: tuple[DType, ...]) -> bool:
    return dtypes[0] in FLOATS and len(set(dtypes)) == 1


def _is_double(dtypes: tuple[DType, ...]) -> bool:
    return dtypes[0] in (dt.float64, dt.complex128)


def _is_real_double(dtypes: tuple[DType, ...]) -> bool:
    return {*dtypes} == {dt.float64}


def _upper(dtypes: tuple[DType, ...], sizes: tuple[int, ...]) -> dict[str, int]:
    return {"UPPER": 1}


def _element_size(dtypes: tuple[DType, ...], sizes: tuple[int, ...]) -> dict[str, int]:
    return {"SIZE": dtypes[0].itemsize}


def _without_failures(dtypes: tuple[DType, ...], sizes: tuple[int, ...]) -> dict[str, int]:
    return {"SIZE": dtypes[0].itemsize, "COUNTS": 0}


def _complete(dtypes: tuple[DType, ...], sizes: tuple[int, ...]) -> dict[str, int]:
    return {"SIZE": dtypes[0].itemsize, "COMPLETE": 1}


def _lapack(dtype: DType) -> dict[str, int]:
    return find_lapack_functions("z" if dtype.kind == "c" else "d")


def _triangles(dtype: DType) -> dict[str, int]:
    return find_triangle_functions("z" if dtype.kind == "c" else "d")


def _rows(dtypes: tuple[DType, ...], sizes: tuple[int, ...]) -> dict[str, int]:
    return {"N": sizes[0]}


def _symmetric_rows(dtypes: tuple[DType, ...], sizes: tuple[int, ...]) -> dict[str, int]:
    return {"N": sizes[0], "SYMMETRIZE": 1}


def _sort_function(dtype: DType) -> dict[str, int]:
    address = find_sort_function(dtype.np)
    return {"NUMPY_sort": address} if address else {}


def _argsort_function(dtype: DType) -> dict[str, int]:
    address = find_argsort_function(dtype.np)
    return {"NUMPY_argsort": address} if address else {}


def _is_ordered_alike(dtypes: tuple[DType, ...]) -> bool:
    return dtypes[0].kind != "c" and len({*dtypes}) == 1


def _is_sorted_by_numpy(dtypes: tuple[DType, ...]) -> bool:
    return _is_ordered_alike(dtypes) and dtypes[0] is not dt.bfloat16


def _has_ranks(dtypes: tuple[DType, ...]) -> bool:
    return dtypes[0].kind != "c" and {*dtypes[1:]} == {dt.int64}


_INFINITY_BITS = {dt.float16: 0x7C00, dt.bfloat16: 0x7F80, dt.float32: 0x7F800000, dt.float64: 0x7FF << 52}


def _is_ordered(dtypes: tuple[DType, ...]) -> bool:
    return dtypes[0].kind != "c" and dtypes[-1] is dt.int64 and len({*dtypes[:-1]}) == 1


def _key_constants(dtypes: tuple[DType, ...], sizes: tuple[int, ...]) -> dict[str, int]:
    """Return the template parameters of `rt_sorting`."""
    dtype = dtypes[0]
    return {
        "FLOAT": int(dtype in _INFINITY_BITS),
        "SIGNED": int(dtype.kind == "i"),
        "SIZE": dtype.itemsize,
        "SIGN": -(1 << 8 * dtype.itemsize - 1),
        "INFINITY_BITS": _INFINITY_BITS.get(dtype, 0),
    }


def _variant(*names: str) -> Callable[[tuple[DType, ...], tuple[int, ...]], dict[str, int]]:
    """Return `_key_constants` with more parameters that are 1."""
    return lambda dtypes, sizes: _key_constants(dtypes, sizes) | dict.fromkeys(names, 1)


LOOPS = {
    "solve": EmittedLoop(rt_solvers.solve, "(m,m),(m,n)->(m,n)", _is_float, _rows, rt_loops.Failures.COUNT),
    "cholesky": EmittedLoop(rt_solvers.cholesky, "(m,m)->(m,m)", _is_float, _rows, rt_loops.Failures.COUNT),
    "cholesky_symmetric": EmittedLoop(
        rt_solvers.cholesky, "(m,m)->(m,m)", _is_float, _symmetric_rows, rt_loops.Failures.COUNT
    ),
    "solve_lower": EmittedLoop(
        rt_solvers.solve_triangular, "(m,m),(m,n)->(m,n)", _is_real_double, failures=rt_loops.Failures.COUNT
    ),
    "solve_upper": EmittedLoop(
        rt_solvers.solve_triangular, "(m,m),(m,n)->(m,n)", _is_real_double, _upper, rt_loops.Failures.COUNT
    ),
    "cholesky_by_lapack": EmittedLoop(
        rt_triangles.cholesky_by_lapack,
        "(m,m)->(m,m)",
        _is_double,
        _element_size,
        rt_loops.Failures.COUNT,
        _triangles,
        passes=engine.Passes.FUNCTIONS,
    ),
    "cholesky_or_nan": EmittedLoop(
        rt_triangles.cholesky_by_lapack,
        "(m,m)->(m,m)",
        _is_double,
        _without_failures,
        imports=_triangles,
        passes=engine.Passes.FUNCTIONS,
    ),
    "solve_lower_by_blas": EmittedLoop(
        rt_triangles.solve_triangular_by_blas,
        "(m,m),(m,n)->(m,n)",
        _is_real_double,
        failures=rt_loops.Failures.COUNT,
        imports=_triangles,
    ),
    "solve_upper_by_blas": EmittedLoop(
        rt_triangles.solve_triangular_by_blas,
        "(m,m),(m,n)->(m,n)",
        _is_real_double,
        _upper,
        rt_loops.Failures.COUNT,
        _triangles,
    ),
    "argsort": EmittedLoop(
        rt_sorting.sort_keys, "(n)->(n)", _is_ordered, _key_constants, rt_loops.Failures.COUNT
    ),
    "argsort_descending": EmittedLoop(
        rt_sorting.sort_keys, "(n)->(n)", _is_ordered, _variant("DESCENDING"), rt_loops.Failures.COUNT
    ),
    "argsort_any": EmittedLoop(
        rt_numpy_sorts.argsort_any,
        "(n)->(n)",
        _is_ordered,
        _key_constants,
        rt_loops.Failures.COUNT,
        _argsort_function,
    ),
    "argsort_any_descending": EmittedLoop(
        rt_numpy_sorts.argsort_any,
        "(n)->(n)",
        _is_ordered,
        _variant("DESCENDING"),
        rt_loops.Failures.COUNT,
        _argsort_function,
    ),
    "argtopk": EmittedLoop(
        rt_sorting.argtopk, "(n)->(k)", _is_ordered, _key_constants, rt_loops.Failures.COUNT
    ),
    "argtopk_descending": EmittedLoop(
        rt_sorting.argtopk, "(n)->(k)", _is_ordered, _variant("DESCENDING"), rt_loops.Failures.COUNT
    ),
    "argtopk_sorted": EmittedLoop(
        rt_sorting.argtopk_sorted,
        "(n)->(k)",
        _is_ordered,
        _key_constants,
        rt_loops.Failures.COUNT,
        passes=engine.Passes.FUNCTIONS,
    ),
    "argtopk_sorted_descending": EmittedLoop(
        rt_sorting.argtopk_sorted,
        "(n)->(k)",
        _is_ordered,
        _variant("DESCENDING"),
        rt_loops.Failures.COUNT,
        passes=engine.Passes.FUNCTIONS,
    ),
    "argselect": EmittedLoop(
        rt_selection.argselect, "(n),(k)->(k)", _has_ranks, _key_constants, rt_loops.Failures.COUNT
    ),
    "sort_keys": EmittedLoop(
        rt_sorting.sort_keys, "(n)->(n)", _is_ordered_alike, _variant("VALUES"), rt_loops.Failures.COUNT
    ),
    "sort_keys_descending": EmittedLoop(
        rt_sorting.sort_keys,
        "(n)->(n)",
        _is_ordered_alike,
        _variant("VALUES", "DESCENDING"),
        rt_loops.Failures.COUNT,
    ),
    "sort_values": EmittedLoop(
        rt_numpy_sorts.sort_values,
        "(n)->(n)",
        _is_sorted_by_numpy,
        _key_constants,
        rt_loops.Failures.COUNT,
        _sort_function,
    ),
    "sort_values_descending": EmittedLoop(
        rt_numpy_sorts.sort_values,
        "(n)->(n)",
        _is_sorted_by_numpy,
        _variant("DESCENDING"),
        rt_loops.Failures.COUNT,
        _sort_function,
    ),
    "running_argmax": EmittedLoop(
        rt_extrema.running_positions, "(n)->(n)", _is_ordered, _key_constants, passes=engine.Passes.FUNCTIONS
    ),
    "running_argmin": EmittedLoop(
        rt_extrema.running_positions,
        "(n)->(n)",
        _is_ordered,
        _variant("SMALLEST"),
        passes=engine.Passes.FUNCTIONS,
    ),
    "searchsorted": EmittedLoop(rt_sorting.searchsorted, "(n),()->()", _is_ordered, _key_constants),
    "qr": EmittedLoop(
        rt_lapack.qr,
        "(m,n)->(m,k),(k,n)",
        _is_double,
        _element_size,
        rt_loops.Failures.COUNT,
        _lapack,
        passes=engine.Passes.FUNCTIONS,
    ),
    "qr_complete": EmittedLoop(
        rt_lapack.qr,
        "(m,n)->(m,m),(m,n)",
        _is_double,
        _complete,
        rt_loops.Failures.COUNT,
        _lapack,
        passes=engine.Passes.FUNCTIONS,
    ),
    "lu": EmittedLoop(
        rt_lapack.lu,
        "(m,n)->(m,n),(k),(m)",
        _is_double,
        _element_size,
        rt_loops.Failures.COUNT,
        _lapack,
        passes=engine.Passes.FUNCTIONS,
    ),
    "indefinite_minor": EmittedLoop(
        rt_lapack.minor,
        "(m,m),(m,m)->()",
        _is_double,
        _element_size,
        rt_loops.Failures.COUNT,
        passes=engine.Passes.FUNCTIONS,
    ),
    "searchsorted_right": EmittedLoop(rt_sorting.searchsorted, "(n),()->()", _is_ordered, _variant("RIGHT")),
}


def find(name: str, dtypes: tuple[DType, ...], sizes: tuple[int, ...]) -> Loop | str | None:
    """Return a loop for dtypes and core sizes, compiled once per machine and version; without one, None or why."""
    loop = LOOPS[name]
    if not loop.dtypes(dtypes):
        return None
    imports = {} if loop.imports is None else loop.imports(dtypes[0])
    if loop.imports is not None and not imports:
        return "NumPy's or LAPACK's functions that it calls are not found"
    constants = loop.constants(dtypes, sizes)
    types = (("T", "f64" if dtypes[0] is dt.float64 else "f32"), ("U", f"u{8 * min(dtypes[0].itemsize, 8)}"))
    numbers = tuple(sorted(constants.items()))
    code = compile_function(name, loop.function, types, numbers, tuple(imports.items()), loop.passes)
    if code is None:
        return "it cannot be compiled"
    key = "_".join(map(str, (dtypes[0].name, *map(abs, constants.values()))))
    return Loop(
        f"tandem_{name}_{key}", code["loop"], 0, parse_signature(loop.signature), loop.failures, False
    )


def find_fold(name: str, dtypes: tuple[DType, ...]) -> Loop | str:
    """Return the loop of a fold of rows or columns, such as ``"sum rows"``; or why there is none."""
    operator, _, order = name.partition(" ")
    code = compile_fold(find_operator(f"td::{operator}").decl.fold, *dtypes)
    if code is None:
        return "it cannot be compiled"
    constants = (("COLUMNS", int(order == "columns")),)
    adapter = compile_function(
        f"{name} {dtypes[0].name}", rt_loops.fold, (), constants, (("fold_loop", code["loop"]),)
    )
    if adapter is None:
        return "it cannot be compiled"
    symbol = f"tandem_{operator}_{order}_{dtypes[0].name}"
    return Loop(symbol, adapter["loop"], 0, (("n",), ()), rt_loops.Failures.NEVER, False)


def needs_sizes(name: str) -> bool:
    """Return whether a loop is compiled for core sizes."""
    return LOOPS[name].constants in (_rows, _symmetric_rows)
