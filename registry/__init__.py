"""The operator registry: schemas, operators, kernels by dispatch key, and the dispatcher.

- bound_kernel.py: BoundKernel, one kernel of an operator as a callable
- conflicts.py: which registrations replace an earlier one, and which raise
- contract.py: checks that kernels of other packages follow their schema
- dims.py: Dim, symbolic sizes
- dispatch/: dispatch keys, dispatch tables, the state of a thread, guards, the dispatch trace
- dtype_functions.py: can_cast, finfo, iinfo, isdtype, result_type
- dtype_names.py: NumPy's other names of data types, issubdtype
- dtypes.py: data types and promotion
- external_devices.py: register_device, device names for the backends of other packages
- formatting.py: text of values in error messages
- function.py: OperatorFunction, the public callable of an operator
- inventory.py: all registrations, listeners and queries
- layouts.py: tensor layouts
- lazy_operators.py: operators that are declared at the first lookup
- library.py: Library, which defines operators, registers kernels and removes them again
- lock.py: the registry's lock
- missing_kernels.py: error messages for missing kernels
- namespace.py: td.ops
- native_type.py: NativeCallable, the base type of callables with a native entry
- operator.py: Operator, its dispatch table and its calls
- registration.py: Registration, Handle, and the code that registered a kernel
- respelled_calls.py: calls in other spellings, with other overloads, or with ``out``
- schemas/: the schema language, binding of arguments, overload resolution
- source.py: the user's file and line
- types.py: Tensor, Array, Shape and other types for annotations
- values.py: TensorBase, TensorSpec, and descriptions of arguments
"""
