"""Native runtime: loops that sort, and that search in sorted numbers.

Keys are unsigned integers in the order of the numbers: negative zero is zero, and NaN comes last. ``T`` is the type of
the elements, ``U`` the unsigned integer of its size; ``FLOAT``, ``SIGNED`` and ``DESCENDING`` describe the order. Equal
keys keep their order, so every correct algorithm returns the same positions.
"""

from __future__ import annotations

from typing import TypeAlias

from ..fastpath.compiler.dsl import (
    NULL,
    alwaysinline,
    i64,
    load,
    native,
    noinline,
    ptr,
    stack,
    store,
    template,
    u64,
    unlikely,
)
from .rt_scratch import give_back, take_scratch

T: TypeAlias = int  # type parameters
U: TypeAlias = int
FLOAT: i64 = template(0)
SIGNED: i64 = template(0)
DESCENDING: i64 = template(0)
VALUES: i64 = template(0)  # whether elements are written, and not their positions
SIZE: i64 = template(4)  # bytes of an element
INFINITY_BITS: i64 = template(0)  # of positive infinity, where elements are floats
FEW: i64 = 32  # numbers that are sorted by insertion
BLOCK: i64 = 16  # elements that are compared with a bound together
SIGN: i64 = template(0)  # the highest bit of an element, as a signed integer
ALL: i64 = template(-1)  # all bits


@native
def key_of(source: ptr) -> U:
    """Return the key of an element in ascending order."""
    bits = load(U, source)
    if FLOAT:
        magnitude = bits & ~U(SIGN)
        if magnitude > U(INFINITY_BITS):
            return U(ALL)
        if magnitude == 0:
            bits = U(0)
        bits = ~bits if bits & U(SIGN) != 0 else bits | U(SIGN)
    elif SIGNED:
        bits = bits ^ U(SIGN)
    return bits


@native
def ordered_key(source: ptr) -> U:
    key = key_of(source)
    return ~key if DESCENDING else key


@native
def insertion_sort(keys: ptr, order: ptr, count: i64) -> None:
    """Sort keys and the positions next to them."""
    for i in range(1, count):
        key, position = load(U, keys, i * SIZE), load(i64, order, i * 8)
        j = i
        while j > 0 and load(U, keys, (j - 1) * SIZE) > key:
            store(U, keys, j * SIZE, load(U, keys, (j - 1) * SIZE))
            store(i64, order, j * 8, load(i64, order, (j - 1) * 8))
            j -= 1
        store(U, keys, j * SIZE, key)
        store(i64, order, j * 8, position)


@native
def merge_runs(keys: ptr, order: ptr, to: ptr, to_order: ptr, start: i64, middle: i64, stop: i64) -> None:
    """Merge two sorted runs; of equal keys those of the first run come first."""
    i, j = start, middle
    for k in range(start, stop):
        first = j >= stop or (i < middle and load(U, keys, i * SIZE) <= load(U, keys, j * SIZE))
        at = i if first else j
        store(U, to, k * SIZE, load(U, keys, at * SIZE))
        store(i64, to_order, k * 8, load(i64, order, at * 8))
        if first:
            i += 1
        else:
            j += 1


@native
def radix_pass(keys: ptr, order: ptr, to: ptr, to_order: ptr, count: i64, shift: i64, counts: ptr) -> bool:
    """Sort by one byte of the keys, stably; return false, with nothing written, if all keys have the same one."""
    first = i64((u64(load(U, keys)) >> u64(shift)) & 255)
    if load(i64, counts, first * 8) == count:
        return False
    total: i64 = 0
    for digit in range(256):
        number = load(i64, counts, digit * 8)
        store(i64, counts, digit * 8, total)
        total += number
    for i in range(count):
        key = load(U, keys, i * SIZE)
        digit = i64((u64(key) >> u64(shift)) & 255) * 8
        at = load(i64, counts, digit)
        store(i64, counts, digit, at + 1)
        store(U, to, at * SIZE, key)
        store(i64, to_order, at * 8, load(i64, order, i * 8))
    return True


@noinline
def radix_sort(keys: ptr, order: ptr, to: ptr, to_order: ptr, count: i64) -> bool:
    """Sort by all bytes of the keys, the lowest first; return whether the result is in `to`."""
    counts, swapped = stack(256 * 8 * SIZE), False
    for i in range(256 * SIZE):
        store(i64, counts, i * 8, 0)
    for i in range(count):
        key = u64(load(U, keys, i * SIZE))
        for byte in range(SIZE):
            at = (byte * 256 + i64((key >> u64(byte * 8)) & 255)) * 8
            store(i64, counts, at, load(i64, counts, at) + 1)
    for byte in range(SIZE):
        if radix_pass(keys, order, to, to_order, count, byte * 8, counts + byte * 2048):
            keys, to = to, keys
            order, to_order = to_order, order
            swapped = not swapped
    return swapped


@native
def merge_sort(keys: ptr, order: ptr, to: ptr, to_order: ptr, count: i64) -> bool:
    """Sort runs by insertion, then merge them; return whether the result is in `to`."""
    start: i64 = 0
    while start < count:
        size = FEW if count - start > FEW else count - start
        insertion_sort(keys + start * SIZE, order + start * 8, size)
        start += FEW
    width, swapped = FEW, False
    while width < count:
        start = 0
        while start < count:
            middle = start + width if start + width < count else count
            stop = start + 2 * width if start + 2 * width < count else count
            merge_runs(keys, order, to, to_order, start, middle, stop)
            start += 2 * width
        keys, to = to, keys
        order, to_order = to_order, order
        swapped = not swapped
        width = width * 2
    return swapped


@native
def order_line(source: ptr, step: i64, count: i64, room: ptr) -> ptr:
    """Return the positions of one line's elements in sorted order, which are in the room."""
    keys, order = room, room + count * 8
    to, to_order = room + count * 16, room + count * 24
    for i in range(count):
        store(U, keys, i * SIZE, ordered_key(source + i * step))
        store(i64, order, i * 8, i)
    swapped = False
    if count <= FEW:
        insertion_sort(keys, order, count)
    elif count <= 256 * SIZE:
        swapped = merge_sort(keys, order, to, to_order, count)
    else:
        swapped = radix_sort(keys, order, to, to_order, count)
    return to_order if swapped else order


@native
def order_lines(args: ptr, items: i64, steps: ptr, count: i64, k: i64, data: ptr) -> None:
    """Write the first `k` of each line in sorted order: positions, or elements with `VALUES`."""
    source, out = load(ptr, args, 0), load(ptr, args, 8)
    step, out_step = load(i64, steps, 16), load(i64, steps, 24)
    small = stack(FEW * 32)
    room = small if count <= FEW else take_scratch(count * 32)
    if room == NULL:
        store(i64, data, 0, load(i64, data, 0) + 1)
        return
    for _ in range(items):
        order = order_line(source, step, count, room)
        for i in range(k):
            position = load(i64, order, i * 8)
            if VALUES:
                store(U, out, i * out_step, load(U, source, position * step))
            else:
                store(i64, out, i * out_step, position)
        source, out = source + load(i64, steps, 0), out + load(i64, steps, 8)
    if room != small:
        give_back(room)


@native
def sort_keys(args: ptr, dims: ptr, steps: ptr, data: ptr) -> None:
    """The loop of `argsort`, (n)->(n), with `VALUES` of `sort_values`; it counts a failure if an allocation fails."""
    order_lines(args, load(i64, dims, 0), steps, load(i64, dims, 8), load(i64, dims, 8), data)


@noinline
def sift_down(keys: ptr, order: ptr, at: i64, count: i64) -> None:
    """Restore the heap below an element; the root is the last key in sorted order."""
    key, position = load(U, keys, at * SIZE), load(i64, order, at * 8)
    while 2 * at + 1 < count:
        child = 2 * at + 1
        if child + 1 < count and is_after(
            keys, order, child + 1, load(U, keys, child * SIZE), load(i64, order, child * 8)
        ):
            child += 1
        if not is_after(keys, order, child, key, position):
            break
        store(U, keys, at * SIZE, load(U, keys, child * SIZE))
        store(i64, order, at * 8, load(i64, order, child * 8))
        at = child
    store(U, keys, at * SIZE, key)
    store(i64, order, at * 8, position)


@native
def is_after(keys: ptr, order: ptr, at: i64, key: U, position: i64) -> bool:
    """Return whether an element comes after a key at a position in sorted order."""
    other = load(U, keys, at * SIZE)
    return bool((other > key) | ((other == key) & (load(i64, order, at * 8) > position)))


@native
def may_have_smaller(source: ptr, root: ptr, bound: U) -> bool:
    """Return whether one of BLOCK contiguous elements may have a key below a bound, that of the element at ``root``."""
    result = False
    if FLOAT and SIZE >= 4:  # comparisons of floats take fewer instructions than their keys
        largest = load(T, root)
        for j in range(BLOCK):
            x = load(T, source, j * SIZE)
            result = result | (not bool(x <= largest) if DESCENDING else not bool(x >= largest))
    else:
        for j in range(BLOCK):
            result = result | bool(ordered_key(source + j * SIZE) < bound)
    return result


@noinline
def replace_larger(source: ptr, step: i64, start: i64, stop: i64, keys: ptr, order: ptr, k: i64) -> None:
    """Put those of some elements that precede the root of a heap of `k` keys into it."""
    for i in range(start, stop):
        key = ordered_key(source + i * step)
        if unlikely(key < load(U, keys)):
            store(U, keys, 0, key)
            store(i64, order, 0, i)
            sift_down(keys, order, 0, k)


@native
def select_line(source: ptr, step: i64, count: i64, k: i64, keys: ptr, order: ptr) -> None:
    """Write the first `k` keys of a line in sorted order, and their positions."""
    for i in range(k):
        store(U, keys, i * SIZE, ordered_key(source + i * step))
        store(i64, order, i * 8, i)
    for i in range(k // 2):
        sift_down(keys, order, k // 2 - 1 - i, k)
    i = k
    # a constant step makes the comparisons of a block vectors
    while step == SIZE and i + BLOCK <= count:
        bound, start, root = load(U, keys), source + i * SIZE, source + load(i64, order) * SIZE
        if unlikely(may_have_smaller(start, root, bound)):
            replace_larger(source, step, i, i + BLOCK, keys, order, k)
        i += BLOCK
    replace_larger(source, step, i, count, keys, order, k)
    for done in range(k - 1):
        last = k - 1 - done
        key, position = load(U, keys, last * SIZE), load(i64, order, last * 8)
        store(U, keys, last * SIZE, load(U, keys))
        store(i64, order, last * 8, load(i64, order))
        store(U, keys, 0, key)
        store(i64, order, 0, position)
        sift_down(keys, order, 0, last)


@native
def argtopk(args: ptr, dims: ptr, steps: ptr, data: ptr) -> None:
    """The loop of `argtopk`, (n)->(k), for a small part of a line; it counts a failure if an allocation fails."""
    source, out, count, k = load(ptr, args, 0), load(ptr, args, 8), load(i64, dims, 8), load(i64, dims, 16)
    if k == 0:
        return
    small = stack(FEW * 16)
    room = small if k <= FEW else take_scratch(k * 16)
    if room == NULL:
        store(i64, data, 0, load(i64, data, 0) + 1)
        return
    for _ in range(load(i64, dims, 0)):
        select_line(source, load(i64, steps, 16), count, k, room, room + k * 8)
        for i in range(k):
            store(i64, out, i * load(i64, steps, 24), load(i64, room, (k + i) * 8))
        source, out = source + load(i64, steps, 0), out + load(i64, steps, 8)
    if room != small:
        give_back(room)


@native
def argtopk_sorted(args: ptr, dims: ptr, steps: ptr, data: ptr) -> None:
    """The same by sorting all elements."""
    order_lines(args, load(i64, dims, 0), steps, load(i64, dims, 8), load(i64, dims, 16), data)


@alwaysinline
def comes_before(element: ptr, value: T, key: U, right: bool, number: bool) -> bool:
    """Return whether a sorted element is below a value, or with `right` not above it.

    Args:
        element: Where the sorted element is.
        value: The value.
        key: The key of the value.
        right: Whether an element that is equal comes before the value.
        number: Whether the value is a float and not NaN: then floats are compared, and NaN comes before none.
    """
    if number:
        other = load(T, element)
        return bool(other <= value) if right else bool(other < value)
    other_key = key_of(element)
    return bool((other_key < key) | ((other_key == key) & right))


@alwaysinline
def search(sorted_: ptr, step: i64, count: i64, value: T, key: U, right: bool, number: bool) -> i64:
    """Return how many sorted elements come before a value; without branches per step."""
    base, length = i64(0), count
    while length > 1:
        half = length // 2
        base = (
            base + half
            if comes_before(sorted_ + (base + half - 1) * step, value, key, right, number)
            else base
        )
        length -= half
    if count > 0:
        base += i64(comes_before(sorted_ + base * step, value, key, right, number))
    return base


RIGHT: i64 = template(0)


@native
def searchsorted(args: ptr, dims: ptr, steps: ptr, data: ptr) -> None:
    """The loop of `searchsorted`, (n),()->()."""
    sorted_, values, out = load(ptr, args, 0), load(ptr, args, 8), load(ptr, args, 16)
    count = load(i64, dims, 8)
    for _ in range(load(i64, dims, 0)):
        value, key = load(T, values), key_of(values)
        if FLOAT and SIZE >= 4 and key != U(ALL):
            store(i64, out, 0, search(sorted_, load(i64, steps, 24), count, value, key, RIGHT != 0, True))
        else:
            store(i64, out, 0, search(sorted_, load(i64, steps, 24), count, value, key, RIGHT != 0, False))
        sorted_, values, out = (
            sorted_ + load(i64, steps, 0),
            values + load(i64, steps, 8),
            out + load(i64, steps, 16),
        )
