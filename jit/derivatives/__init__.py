"""Derivatives of jitted functions: calls that are recorded for a backward pass, and calls with dual values of ``jvp``.

joint_trace.py: tracing with the gradient
partition.py: the split of a joint graph into forward and backward passes
autograd_call.py: the autograd node of a jitted call
backward.py: the compiled backward pass; symbolic zeros
recorded_call.py: calls on tensors that require gradients
forward_mode.py: variants for values of ``jvp``
"""
