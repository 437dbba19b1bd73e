"""Exchange of tensors with other libraries, and with files.

array_namespace.py: the Array API standard's protocol: ``x.__array_namespace__()``, inspection, ``to_device``.
dlpack.py: DLPack capsules in the host's memory.
einops_backend.py: the backend by which einops finds tensors.
files.py: ``save`` and ``load``, npz and safetensors files.
numpy_protocols.py: NumPy's functions and ufuncs of tensors.
"""
