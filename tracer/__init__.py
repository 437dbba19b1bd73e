"""The tracer: record the calls of a function as a graph. Importing the package registers the Tracer key's kernel.

- alias_sets.py: join traced tensors that share memory into one alias set of autograd
- aliases.py: which traced values share memory, and writes through views
- auto_functionalize.py: custom operators that write into arguments, recorded as their functional forms
- generators.py: the state of random generators under a trace
- graph.py: Graph, Node, Value
- infer.py: shapes and dtypes of results
- kernel.py: the Tracer key's kernel
- lifting.py: convert arguments of calls to arguments of nodes
- multigraph.py: graphs as networkx graphs
- mutation.py: in-place operators under a trace
- parser.py: graphs from text
- printer.py: graphs as text
- scalar.py: TracerScalar, a traced Python number
- tensor.py: TracerTensor
- trace.py: Trace, the trace in progress
- verify.py: the graph verifier
- weak.py: traced weak scalars
"""

from . import kernel as kernel
