"""Layers of the dispatcher above the backends: transforms, functionalization, autocast, modes and subclasses.

autocast.py: run operators in the precision that suits them.
dispatch_mode.py: DispatchMode, which intercepts the operator calls of a thread.
fallbacks.py: the modules that are imported before the first dispatch table is computed.
functionalize.py: ``td.functionalize``.
functionalize_kernel.py: the kernel of the Functionalize key, and the run of a functionalized function.
functionalize_memory.py: FunctionalTensor and the storage that it shares with its views.
level_allocations.py: the tensors allocated since a level was opened.
level_stack.py: the stack of open levels.
levels.py: LevelTensor and the kernel of the Level key.
recorded_graph.py: the graph that ``vjp`` keeps of a call in a recording scope.
recording_scope.py: calls of ``grad`` and ``vjp`` that are recorded in autograd's graph instead.
subclass.py: the kernel of the Python key, for tensor subclasses with ``__tandem_dispatch__``.
vmap/: the Batched key.
"""
