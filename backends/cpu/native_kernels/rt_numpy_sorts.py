"""Native runtime: loops that sort by NumPy's functions.

``U`` and the template parameters are those of `rt_sorting`.
"""

from __future__ import annotations

from ..fastpath.compiler.dsl import NULL, extern, i32, i64, load, native, ptr, store
from ..fastpath.runtime import capi
from .rt_sorting import ALL, DESCENDING, FLOAT, INFINITY_BITS, SIGN, SIZE, U, ordered_key

sort_numbers = extern("NUMPY_sort", "i32(ptr, i64, ptr)")  # sorts contiguous elements where they are
sort_positions = extern("NUMPY_argsort", "i32(ptr, ptr, i64, ptr)")  # sorts positions of contiguous elements

FEWEST: i64 = 6  # elements that are sorted by insertion, and not by NumPy's function


@native
def copy_line(source: ptr, step: i64, to: ptr, to_step: i64, count: i64) -> None:
    """Copy elements with the given distances in bytes."""
    if step == SIZE and to_step == SIZE:
        capi.memcpy(to, source, count * SIZE)
        return
    for i in range(count):
        store(U, to, i * to_step, load(U, source, i * step))


@native
def reverse_line(line: ptr, count: i64) -> None:
    """Reverse contiguous elements."""
    for i in range(count // 2):
        last = count - 1 - i
        element = load(U, line, i * SIZE)
        store(U, line, i * SIZE, load(U, line, last * SIZE))
        store(U, line, last * SIZE, element)


@native
def insert_elements(line: ptr, count: i64) -> None:
    """Sort few contiguous elements by insertion."""
    for i in range(1, count):
        element, key, j = load(U, line, i * SIZE), ordered_key(line + i * SIZE), i
        while j > 0 and ordered_key(line + (j - 1) * SIZE) > key:
            store(U, line, j * SIZE, load(U, line, (j - 1) * SIZE))
            j -= 1
        store(U, line, j * SIZE, element)


@native
def find_end(line: ptr, count: i64, key: U) -> i64:
    """Return how many of sorted elements have at most a key."""
    low, high = i64(0), count
    while low < high:
        middle = (low + high) // 2
        if ordered_key(line + middle * SIZE) <= key:
            low = middle + 1
        else:
            high = middle
    return low


@native
def has_different_equals(line: ptr, count: i64) -> bool:
    """Return whether there are negative zeros or NaNs: floats that come with others but may have other bits."""
    result = False
    for i in range(count):
        bits = load(U, line, i * SIZE)
        result = result | bool((bits == U(SIGN)) | ((bits & ~U(SIGN)) > U(INFINITY_BITS)))
    return result


@native
def restore_order(source: ptr, step: i64, line: ptr, count: i64, key: U) -> None:
    """Write the elements with a key in the order in which they are in the source."""
    stop, i = find_end(line, count, key), i64(0)
    at = i64(0) if key == U(0) else find_end(line, count, key - U(1))
    while at < stop and i < count:
        if ordered_key(source + i * step) == key:
            store(U, line, at * SIZE, load(U, source, i * step))
            at += 1
        i += 1


@native
def sort_values(args: ptr, dims: ptr, steps: ptr, data: ptr) -> None:
    """The loop of `sort_values`, (n)->(n), by NumPy's function; it counts a failure if an allocation fails.

    That function does not keep the signs of zeros and the bits of NaNs. These elements are written again afterwards.
    """
    source, out, count = load(ptr, args, 0), load(ptr, args, 8), load(i64, dims, 8)
    step, out_step = load(i64, steps, 16), load(i64, steps, 24)
    room: ptr = NULL
    if out_step != SIZE and count > 1:
        room = capi.malloc(count * SIZE)
        if room == NULL:
            store(i64, data, 0, load(i64, data, 0) + 1)
            return
    zero, nan = U(SIGN), U(ALL)
    if DESCENDING:
        zero, nan = ~zero, ~nan
    for _ in range(load(i64, dims, 0)):
        line = out if room == NULL else room
        copy_line(source, step, line, SIZE, count)
        if count <= FEWEST:
            insert_elements(line, count)
        else:
            has_different = has_different_equals(line, count) if FLOAT else False
            if sort_numbers(line, count, NULL) != i32(0):
                store(i64, data, 0, load(i64, data, 0) + 1)
            if DESCENDING:
                reverse_line(line, count)
            if has_different:
                restore_order(source, step, line, count, zero)
                restore_order(source, step, line, count, nan)
        if room != NULL:
            copy_line(room, SIZE, out, out_step, count)
        source, out = source + load(i64, steps, 0), out + load(i64, steps, 8)
    if room != NULL:
        capi.free(room)


@native
def reverse_positions(order: ptr, count: i64) -> None:
    for i in range(count // 2):
        last = count - 1 - i
        position = load(i64, order, i * 8)
        store(i64, order, i * 8, load(i64, order, last * 8))
        store(i64, order, last * 8, position)


@native
def argsort_any(args: ptr, dims: ptr, steps: ptr, data: ptr) -> None:
    """The loop of `argsort` without the order of equal elements, (n)->(n), by NumPy's function.

    It counts a failure if an allocation fails.
    """
    source, out, count = load(ptr, args, 0), load(ptr, args, 8), load(i64, dims, 8)
    step, out_step = load(i64, steps, 16), load(i64, steps, 24)
    room: ptr = NULL
    if (step != SIZE or out_step != 8) and count > 1:
        room = capi.malloc(count * (SIZE + 8))
        if room == NULL:
            store(i64, data, 0, load(i64, data, 0) + 1)
            return
    for _ in range(load(i64, dims, 0)):
        line, order = source, out
        if room != NULL:
            order, line = room, room + count * 8
            copy_line(source, step, line, SIZE, count)
        for i in range(count):
            store(i64, order, i * 8, i)
        if sort_positions(line, order, count, NULL) != i32(0):
            store(i64, data, 0, load(i64, data, 0) + 1)
        if DESCENDING:
            reverse_positions(order, count)
        if room != NULL:
            for i in range(count):
                store(i64, out, i * out_step, load(i64, order, i * 8))
        source, out = source + load(i64, steps, 0), out + load(i64, steps, 8)
    if room != NULL:
        capi.free(room)
