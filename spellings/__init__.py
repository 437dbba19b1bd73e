"""Names of other libraries.

foreign_names.py: names of NumPy, JAX and PyTorch, and what to write with tandem
synonyms.py: names of NumPy, JAX and PyTorch that tandem spells in another way, for error messages
forwarding.py: the ``__getattr__`` of a namespace whose other names are tandem's
integer_arguments.py: integer tensors as arguments of functions that take floats
numpy/, torch/, jax/: the namespaces ``tandem.numpy``, ``tandem.torch`` and ``tandem.jax``

The build maps the three folders to ``tandem.numpy``, ... (``package-dir`` in pyproject.toml), and ``tandem.__path__``
finds them in a clone: folders of these names at the root would shadow the libraries for programs that start there.
"""
