"""``jit``: trace a function for each kind of arguments, compile the graph, and run it while guards hold.

api.py: the public ``jit``
function.py: ``JitFunction``: lookup of specializations, and the cache
interceptors.py: functions that may answer a call before the cache is searched
arguments.py: binding and flattening of a call's arguments
by_value.py: pickles of jitted functions that have no name
guards/: cache keys and guards of leaves, variables, integers and the registry
specialize.py: tracing a call to a specialization
complex_numbers.py: complex numbers among the arguments
strided_parameters.py: arguments that are not contiguous, which are read by their strides
specialization.py: one specialization: guards and compiled code
outputs.py: sources of a result's leaves
writes.py: writes into arguments
failed_writes.py: the written arguments after a call that raised
donation.py: donated arguments, whose memory results are stored in
execute.py: lowering, compiling and running graphs; copies of results that alias an argument
progress.py: reports of compilations that take long
native_entry.py: the native entry, which runs specializations that are linked into it
native_record.py: a specialization as programs for the native entry
native_results.py: results that are views or copies, and writes into arguments, for the native entry
derivatives/: calls that are differentiated: joint graphs, their partition, and the backward pass
graph_function.py: a forward or backward graph as a callable
variants.py: the cache of variants for values of transforms
batching.py: variants for values of ``vmap``
lift_closures.py: variants for values of transforms in closures and globals (lambda lifting)
explain.py: explanations of the cache
stages.py: the stages for users: traced, lowered, compiled
view_outputs.py: copies of results that are views of intermediates
hot_calls.py: compiles hot eager calls of pure functions
"""
