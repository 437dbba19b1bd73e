"""Native runtime: the loop that finds elements by rank without sorting all of them.

``U`` and the template parameters are those of `rt_sorting`. Each round draws a sample of the keys, and keeps the keys
between two of its elements that are likely to be on both sides of the wanted one.

Source: Floyd and Rivest, "Expected time bounds for selection", 1975.
"""

from __future__ import annotations

from ..fastpath.compiler.dsl import NULL, i64, load, native, noinline, ptr, stack, store, u64
from .rt_scratch import give_back, take_scratch
from .rt_sorting import ALL, FEW, SIZE, U, order_line, ordered_key

MANY: i64 = 8192  # keys of which a large sample is drawn
LARGE: i64 = 128  # keys of a large sample
SMALL: i64 = 32  # keys of a small sample
# Elements of a sample between the expected position and each bound: 2.8 and 2.1 standard deviations.
MARGIN: i64 = 16
SMALL_MARGIN: i64 = 6
MOST_POOR: i64 = 8  # rounds that leave most keys, after which the line is sorted
MOST_RANKS: i64 = 16  # that are searched one by one; for more of them all keys are sorted
GROUP: i64 = 64  # keys that are compared together


@native
def sort_few(keys: ptr, count: i64) -> None:
    """Sort keys by insertion."""
    for i in range(1, count):
        key, j = load(U, keys, i * SIZE), i
        while j > 0 and load(U, keys, (j - 1) * SIZE) > key:
            store(U, keys, j * SIZE, load(U, keys, (j - 1) * SIZE))
            j -= 1
        store(U, keys, j * SIZE, key)


@native
def draw_sample(keys: ptr, count: i64, sample: ptr, size: i64, seed: u64) -> u64:
    """Copy one key from each of `size` parts, and sort them; return the next seed."""
    for i in range(size):
        seed = seed * u64(6364136223846793005) + u64(1442695040888963407)
        start = i * count // size
        at = start + i64((seed >> u64(33)) % u64((i + 1) * count // size - start))
        store(U, sample, i * SIZE, load(U, keys, at * SIZE))
    sort_few(sample, size)
    return seed


@native
def count_below(keys: ptr, count: i64, key: U) -> i64:
    result: i64 = 0
    for i in range(count):
        result += i64(load(U, keys, i * SIZE) < key)
    return result


@native
def keep_range(keys: ptr, count: i64, to: ptr, low: U, high: U) -> i64:
    """Copy the keys from `low` to `high` in their order; return how many."""
    kept, span = i64(0), high - low
    for i in range(count):
        key = load(U, keys, i * SIZE)
        store(U, to, kept * SIZE, key)
        kept += i64(key - low <= span)
    return kept


@noinline
def find_key(keys: ptr, one: ptr, two: ptr, count: i64, rank: i64, key: ptr) -> bool:
    """Store the key of a rank; return false if it is not found within some rounds. Overwrites two buffers of keys.

    Each round copies what is left to the buffer that the last one did not write. It leaves fewer keys, for it takes
    those on one side of a key of the sample if the bounds left most.
    """
    sample, seed, by_pivot, poor = stack(LARGE * 8), u64(count), False, i64(0)
    while count > FEW:
        size = LARGE if count >= MANY else SMALL
        margin = MARGIN if count >= MANY else SMALL_MARGIN
        seed = draw_sample(keys, count, sample, size, seed)
        middle = rank * size // count
        if by_pivot:
            margin = 0
        low = load(U, sample, (middle - margin) * SIZE) if middle >= margin else U(0)
        high = load(U, sample, (middle + margin) * SIZE) if middle + margin < size else U(ALL)
        below = count_below(keys, count, low)
        kept = keep_range(keys, count, one, low, high)
        if rank < below:
            kept = keep_range(keys, count, one, U(0), low - U(1))
        elif rank >= below + kept:
            rank -= below + kept
            kept = keep_range(keys, count, one, high + U(1), U(ALL))
        elif low == high:
            store(U, key, 0, low)
            return True
        else:
            rank -= below
        by_pivot = kept * 4 > count * 3
        poor += i64(by_pivot)
        if poor > MOST_POOR:
            return False
        keys, one, two = one, two, one
        count = kept
    for i in range(count):
        store(U, sample, i * SIZE, load(U, keys, i * SIZE))
    sort_few(sample, count)
    store(U, key, 0, load(U, sample, rank * SIZE))
    return True


@native
def count_equal(keys: ptr, count: i64, key: U) -> i64:
    result: i64 = 0
    for i in range(count):
        result += i64(load(U, keys, i * SIZE) == key)
    return result


@native
def find_equal(keys: ptr, count: i64, key: U, number: i64) -> i64:
    """Return the position of the key that has `number` equal ones in front of it."""
    at: i64 = 0
    while at + GROUP <= count:
        equal = count_equal(keys + at * SIZE, GROUP, key)
        if equal > number:
            break
        number -= equal
        at += GROUP
    while at < count:
        if load(U, keys, at * SIZE) == key:
            if number == 0:
                return at
            number -= 1
        at += 1
    return count - 1  # not reached: there is one


@native
def find_position(keys: ptr, count: i64, rank: i64) -> i64:
    """Return the position of the key of a rank, or -1; two buffers of 8 bytes for each key follow the keys' own."""
    slot = stack(8)
    if not find_key(keys, keys + count * 8, keys + count * 16, count, rank, slot):
        return -1
    key = load(U, slot)
    return find_equal(keys, count, key, rank - count_below(keys, count, key))


@native
def find_by_sorting(
    source: ptr, step: i64, count: i64, ranks: ptr, rank_step: i64, k: i64, room: ptr, out: ptr, out_step: i64
) -> None:
    """Write the positions of all ranks of a line."""
    order = order_line(source, step, count, room)
    for j in range(k):
        rank = clip_rank(ranks + j * rank_step, count)
        store(i64, out, j * out_step, load(i64, order, rank * 8))


@native
def clip_rank(ranks: ptr, count: i64) -> i64:
    rank = load(i64, ranks)
    rank = 0 if rank < 0 else rank
    return rank if rank < count else count - 1


@native
def argselect(args: ptr, dims: ptr, steps: ptr, data: ptr) -> None:
    """The loop of `argselect`, (n),(k)->(k); it counts a failure if an allocation fails."""
    source, ranks, out = load(ptr, args, 0), load(ptr, args, 8), load(ptr, args, 16)
    count, k, step = load(i64, dims, 8), load(i64, dims, 16), load(i64, steps, 24)
    rank_step, out_step = load(i64, steps, 32), load(i64, steps, 40)
    small = stack(FEW * 32)
    room = small if count <= FEW else take_scratch(count * 32)
    if room == NULL:
        store(i64, data, 0, load(i64, data, 0) + 1)
        return
    for _ in range(load(i64, dims, 0)):
        done = i64(0)
        if count > FEW and k <= MOST_RANKS:
            for i in range(count):
                store(U, room, i * SIZE, ordered_key(source + i * step))
            while done < k:
                position = find_position(room, count, clip_rank(ranks + done * rank_step, count))
                if position < 0:
                    break
                store(i64, out, done * out_step, position)
                done += 1
        if done < k:
            find_by_sorting(source, step, count, ranks, rank_step, k, room, out, out_step)
        source, ranks, out = (
            source + load(i64, steps, 0),
            ranks + load(i64, steps, 8),
            out + load(i64, steps, 16),
        )
    if room != small:
        give_back(room)
