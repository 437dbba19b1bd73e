"""The dispatcher's keys, tables and thread state.

- guard.py: Guard, the base class of context managers that also decorate functions
- guards.py: include_keys, exclude_keys, force_keys, dispatch_state
- keys.py: DispatchKey, DispatchKeySet, alias keys
- observers.py: the running profiler
- precedence.py: which registration fills each entry of a dispatch table
- state.py: the dispatch state of a thread or task
- tables.py: dispatch_table, which prints the table of an operator
- trace.py: show_dispatch_trace
- unwinding.py: restore the state of a thread after an exception
"""
