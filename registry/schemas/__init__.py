"""The schema language of PyTorch, and calls against a schema.

- binding.py: Binder, which checks and converts the arguments of a call
- compatibility.py: whether a newer schema serves the callers of an older one
- defaults.py: literals of default values
- inference.py: infer_schema, from the type hints of a function
- overloads.py: OverloadSet, which chooses the overload of a call
- parser.py: parse_schema
- schema.py: Schema, Argument, Return, Type, Alias
- spellings.py: other names of arguments, sizes one by one, options by position
"""
