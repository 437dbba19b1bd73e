"""``jit``: trace a function for each kind of arguments, compile the graph, and run it while guards hold.

api.py: the public ``jit``
function.py: ``JitFunction``: lookup of specializations, and the cache
interceptors.py: what answers a call before the cache is searched: traces, modes, the profiler, transforms
arguments.py: binding and flattening of a call's arguments
guards/: cache keys and guards of leaves, variables, integers and the registry
specialize.py: tracing a call to a specialization
specialization.py: one specialization: guards and compiled code
outputs.py: sources of a result's leaves
writes.py, failed_writes.py: writes into arguments, and their state after a failed call
execute.py: lowering, compiling and running graphs
native_entry.py, native_record.py: running specializations from native code
joint_trace.py, partition.py: tracing with the gradient; the split into forward and backward passes
autograd_call.py, backward.py, graph_function.py: compiled derivatives
recorded_call.py: calls on tensors that require gradients
variants.py, batching.py, forward_mode.py, captures.py: variants for values of transforms
explain.py, stages.py: explanations of the cache, and the stages for users
"""
