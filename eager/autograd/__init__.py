"""Automatic differentiation of eager tensors.

accumulate.py: add gradients into the ``grad`` of leaves.
ad_inplace_or_view.py: the kernel of the ADInplaceOrView key, which counts writes and links views to their base.
alias_sets.py: find untracked views before an in-place write and merge them into one alias set.
anomaly.py: ``detect_anomaly``.
autograd_meta.py: AutogradMeta, autograd's data of one tensor.
backward.py: ``x.backward()`` and ``td.autograd.grad``.
context.py: the context and the graph node of derivatives written by hand.
derivative_rules.py: an operator's derivative, read off its declaration once.
engine.py: the backward pass over the graph.
forward_calls.py: calls at levels of ``jvp`` without the dispatcher.
forward_mode.py: the kernel of levels of ``jvp``.
function.py: ``td.autograd.Function``.
function_batched.py: a Function under ``vmap``.
grad_modes.py: ``no_grad`` and ``enable_grad``.
graph_functions.py: ``x.grad_fn``, the recorded graph.
hooks.py: hooks of tensors and nodes, and ``retain_grad``.
kernel.py: the kernel of the Autograd keys, which records calls.
lifted_captures.py: captured tensors that become values of a level while a function is traced.
namespace.py: ``td.autograd``.
node.py: nodes of the autograd graph.
node_sources.py: the source of a backward pass's next node.
recompute.py: rematerialization of residuals, for ``td.checkpoint``.
residual_changes.py: replace the tensors among the residuals of nodes.
residual_hooks.py: ``td.autograd.graph``: hooks of the tensors that derivatives need.
view_writes.py: the graph after in-place writes through views.
"""
