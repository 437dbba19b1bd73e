"""Passes of lowering.

pipeline.py: the list of graph passes, dead code, common subexpressions, constant folding, views
rewrite.py: the walk that passes share, and copies of nodes
simplify.py: algebraic rules
loop_passes.py: tools for passes on scans; hoisting of accumulated products
hoist_scatter_add.py: hoisting of scatter-adds into an accumulator out of scans
licm.py: loop-invariant code motion
loop_dce.py: dead-code elimination for loops and branches
carry_rows.py: carrying one row of an array through a loop, and not the array
inline_producers.py: duplicating cheap producers into the kernels that read them
sink_permutes.py: computes what reads transposed tensors in the order of their memory
sink_ranges.py: counting captured ranges inside loops
sink_updates.py: updating an array with a chosen value, and not choosing between arrays
sink_selects.py: choosing the number that a scalar is updated by, and not the result
short_dots.py: dot products of short vectors as sums of products
short_sorts.py: sorts of few elements as comparisons
tile_loops.py: loops of elementwise steps over tiles that stay in the cache, several steps at once
tile_rows.py: loops of many independent rows, as vmap makes them, over tiles of rows
row_slices.py: the body of such a loop for the rows of a tile
split_stacks.py: elementwise operators on the parts of stacks
affine_gathers.py: gathers at positions that are affine functions of the point as loads
inline_gathers.py: computing elements at integer positions where kernels read them
inline_update_values.py: computing the values of updates at one position in the kernels that write them
inline_reads.py: computing values at the points where kernels read them: slices, flips, rolls, pads
complex_parts.py: parts of complex numbers as elementwise operators
put_into_joins.py: updates of concatenations as concatenations
rematerialize.py: recomputing intermediates that cost more to store
"""
