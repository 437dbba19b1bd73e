"""Function transforms: derivatives, ``vmap``, checkpointing, and functions with custom rules.

arguments.py: check and convert the arguments and results of transforms.
check_grads.py: ``check_grads``, derivatives against finite differences.
checkpoint.py: ``checkpoint`` and its policies.
checkpoint_policies.py: the namespace ``td.checkpoint_policies``.
closures.py: ``closure_convert``.
collectives.py: collective operations along named axes of ``vmap``.
custom_function.py: the base class of functions with custom rules.
custom_gradient.py: ``custom_gradient``.
custom_jvp.py: ``custom_jvp``.
custom_rules.py: run functions with custom derivative rules at every level.
custom_vjp.py: ``custom_vjp``.
custom_vmap.py: ``custom_vmap`` and ``sequential_vmap``.
eval_shape.py: ``eval_shape`` and ``ShapeDtypeStruct``.
forward.py: ``jvp``, ``linearize`` and ``linear_transpose``.
implicit.py: ``custom_root`` and ``custom_linear_solve``.
jacobians.py: ``jacfwd``, ``jacrev`` and ``hessian``.
linear_function.py: LinearFunction, the result of ``vjp`` and ``linearize``.
ravel.py: ``td.tree.ravel``.
numpy_maps.py: ``apply_along_axis``, ``apply_over_axes``, ``vectorize`` and ``fromfunction``.
reverse.py: ``grad``, ``value_and_grad``, ``vjp`` and ``stop_gradient``.
tapes.py: the recorded graph of a function that ran once.
ufuncs.py: ``frompyfunc`` and the methods of elementwise functions, such as ``td.add.outer``.
vmap.py: ``vmap`` and ``register_vmap``.
zeros.py: zero tangents and SymbolicZero.
"""
