"""The Batched key: values of ``vmap``, their kernel, and batching rules.

adopt.py: turn a tensor made inside ``vmap`` into a batch when a batch is written into it.
kernel.py: run an operator on a batch.
loop.py: run an operator without a batching rule on each example.
mapping.py: the function of batches that ``td.vmap`` returns.
rules.py: ``td.register_vmap``.
strategies.py: choose between batching rule, decomposition and loop.
tensor.py: BatchedTensor.
"""
