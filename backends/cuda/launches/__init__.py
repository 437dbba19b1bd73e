"""Compiled graphs on CUDA.

compile.py: from a lowered graph to an executable, and CUDA's passes
executable.py: executables
call.py: native structs for calls of executables
call_text.py: LLVM IR of main, which launches the kernels
callback.py: nodes that eager kernels compute
graphs.py: launches one by one, or replay of a CUDA graph
graph_choice.py: the choice between both by measurement
constants.py: pass: constant folding
decompose_on_device.py: pass: matrices and joins as ranges and pieces
move_to_device.py: pass: host values computed on the device
select_updates.py: pass: updates of one element of each row as selections
prewritten.py: nodes that run prewritten kernels
prewritten_forms.py: pass: rewrites to the form of prewritten kernels
prewritten_random.py: random bits, keys and choices
prewritten_scans.py: scans
prewritten_text.py: launches with symbolic addresses
"""
