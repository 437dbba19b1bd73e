"""Carries that change places: the next value of a carry is the memory of another one, and nothing is copied.

``(u, v) -> (v, u)`` exchanges two pointers, and so does ``(u, v) -> (v.at[i].set(x), u)``, which first writes ``v`` in
place. In ``(u, v) -> (v, f(u, v))`` the new value is written into one of three buffers in turn: each holds a value for
two iterations, and is free in the third.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..tracer.graph import Value
from .buffer_assignment import nbytes_of
from .cost_model import CELL_BYTES
from .loop_bodies import NO_MOVES, Body, CarryMoves


def find_moves(body: Body, outputs: Sequence[Value], length: int | None) -> CarryMoves:
    """Find the carries of a loop that change places.

    Args:
        body: the body, which is lowered.
        outputs: the final carries.
        length: the number of iterations, if it is known.
    """
    sources = _find_sources(body, outputs)
    moves = NO_MOVES._replace(sources=sources)
    for path in _find_paths(sources):
        is_cycle = sources.get(path[0]) == path[-1]
        is_written = not body.written.isdisjoint(path)
        if is_cycle and is_written:
            moves = _start_cycle(moves, path, outputs, length)
        elif not is_cycle and (is_written or not _is_kept(body, path[0], len(outputs))):
            moves = _fill_pool(moves, path, outputs, length, is_written)
    return moves


def _find_sources(body: Body, outputs: Sequence[Value]) -> dict[int, int]:
    """For each carry that is another one in the next iteration, that other one; small ones are in registers."""
    result: dict[int, int] = {}
    for j, out in enumerate(outputs):
        kind, i = source = body.sources[j]
        moves = kind == "input" and i != j and i < len(outputs) and body.sources[i] != source
        if moves and i not in result.values() and nbytes_of(out) > CELL_BYTES:
            result[j] = i
    return result


def _find_paths(sources: Mapping[int, int]) -> list[list[int]]:
    """The carries that values move through, in that order; those of a cycle begin anywhere."""
    targets = {i: j for j, i in sources.items()}
    firsts = [i for i in targets if i not in sources]
    paths: list[list[int]] = []
    seen: set[int] = set()
    for first in (*firsts, *targets):
        if first not in seen:
            path = [first]
            while (following := targets.get(path[-1])) is not None and following != first:
                path.append(following)
            seen.update(path)
            paths.append(path)
    return paths


def _is_kept(body: Body, carry: int, carried: int) -> bool:
    """Whether a carry is in memory that the loop does not write again: a constant, or a stacked item."""
    source = body.sources[carry]
    is_stacked = source.kind == "computed" and source in body.sources[carried:]
    return (source.kind == "input" and source.number >= carried) or (
        is_stacked and source not in body.sources[:carry]
    )


def _start_cycle(
    moves: CarryMoves, path: Sequence[int], outputs: Sequence[Value], length: int | None
) -> CarryMoves:
    """Let carries that rotate begin in memory of the loop: in that of the results where they end."""
    count = len(path)
    if length is None:
        return moves._replace(starts={**moves.starts, **{j: Value(outputs[j].spec) for j in path}})
    ends = {j: path[(at + length) % count] for at, j in enumerate(path)}
    starts = {j: outputs[end] for j, end in ends.items()}
    return moves._replace(starts={**moves.starts, **starts}, in_place={**moves.in_place, **ends})


def _fill_pool(
    moves: CarryMoves, path: Sequence[int], outputs: Sequence[Value], length: int | None, is_written: bool
) -> CarryMoves:
    """Give a path one buffer more than it has carries, so that one is free in each iteration."""
    count = len(path) + 1
    pool = [Value(outputs[path[0]].spec) for _ in range(count)]
    if length is not None:
        for at, j in enumerate(path):
            pool[(length - 1 - at) % count] = outputs[j]
    starts = {j: pool[(-1 - at) % count] for at, j in enumerate(path)} if is_written else {}
    return moves._replace(pools={**moves.pools, path[0]: tuple(pool)}, starts={**moves.starts, **starts})
